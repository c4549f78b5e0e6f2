"""How much memory a search may use: what the user says, or a part of what this machine has."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from syncproof.models.errors import UserError

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
CGROUPS = Path("/sys/fs/cgroup")
LEAST_SLACK = 64 * 2**20


def parse_size(text: str) -> int:
    """Bytes from ``800M`` or ``1.5GiB`` (powers of 1024)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:i?B)?", text.strip(), re.IGNORECASE)
    size = float(match[1]) * UNITS[match[2].upper()] if match else 0.0
    if size < 1:
        raise UserError(f"size {text!r}", where="--memory", expected="such as 800M or 4G")
    return int(size)


def default_memory() -> int:
    """Three quarters of the memory that this process can have, in bytes; 0 if nobody says."""
    limits = [each for each in (_physical_memory(), *cgroup_limits()) if each]
    return min(limits, default=0) * 3 // 4


def available_cores() -> int:
    """How many cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


def cgroup_limits(
    groups: Path = Path("/proc/self/cgroup"), mounted: Path = CGROUPS
) -> Iterator[int]:
    """The memory limits of this process's control groups, both versions, and of those above."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers == "":
            top, file = mounted, "memory.max"
        elif "memory" in controllers.split(","):
            top, file = mounted / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = top / place.lstrip("/")
        for folder in (group, *group.parents):
            yield _limit_in(folder / file)
            if folder == top:
                break


def _limit_in(file: Path) -> int:
    try:
        text = file.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0


@contextmanager
def memory_ceiling(budget: int) -> Iterator[None]:
    """Within, an allocation well beyond ``budget`` bytes fails instead of starving the machine.

    Searches stop themselves at the budget; this is for what grows between two looks at it. Does
    nothing where the system has no such limit.
    """
    try:
        import resource
    except ImportError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [each for each in (soft, hard) if each != resource.RLIM_INFINITY]
    ceiling = min([*known, budget + max(budget // 8, LEAST_SLACK)]) if budget else soft
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
