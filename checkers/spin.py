"""Runs SPIN on a Promela model and reads its answer: an opinion from outside on our own counts.

Needs the programs ``spin`` (6.5) and ``gcc``; everything happens in a temporary directory.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from syncproof.models.errors import UserError

OPTIONS = ("-DSAFETY", "-DVECTORSZ=32768")
KEEP_ALL = ("-o1", "-o2", "-o3")
"""No dataflow analysis, no dead variables left out, no statements merged: states are ours."""


@dataclass(frozen=True)
class Limits:
    """How much SPIN may use: seconds for each of its programs, memory in MiB, depth of a run."""

    seconds: float = 600.0
    memory: int = 4096
    depth: int = 200_000


@dataclass(frozen=True)
class SpinResult:
    """What SPIN found: ``error`` is empty or the first error in its words.

    ``transitions`` counts entering the initial state; ``vector`` is the size of a state in bytes,
    ``memory`` all memory used, in bytes; ``seconds`` is the search alone, as SPIN measures it.
    """

    states: int
    transitions: int
    depth: int
    error: str
    vector: int
    memory: int
    seconds: float


def missing_programs() -> tuple[str, ...]:
    """The programs that running SPIN needs and this machine does not have."""
    return tuple(name for name in ("spin", "gcc") if shutil.which(name) is None)


def run_spin(
    model: str,
    *,
    reduce: bool = False,
    stuck: bool = False,
    optimise: bool = True,
    limits: Limits | None = None,
) -> SpinResult:
    """Explore a Promela model.

    ``reduce`` lets SPIN use its partial-order reduction; ``stuck`` makes a state in which a process
    cannot go on an error; without ``optimise`` (-O2) small models compile four times faster.
    Raises `UserError` if a program is missing or fails, or at a limit.
    """
    missing = missing_programs()
    if missing:
        raise UserError(
            f"{' and '.join(missing)} cannot be found",
            where="SPIN",
            expected="the programs spin and gcc on PATH (Debian: apt-get install spin gcc)",
        )
    limits = limits or Limits()
    options = [*OPTIONS, "-O2" if optimise else "-O0", f"-DMEMLIM={limits.memory}"]
    options += [] if reduce else ["-DNOREDUCE"]
    with tempfile.TemporaryDirectory(prefix="syncproof-spin-") as folder:
        place = Path(folder)
        (place / "model.pml").write_text(model, encoding="ascii")
        _run(["spin", *KEEP_ALL, "-a", "model.pml"], place, limits)
        _run(["gcc", *options, "-o", "pan", "pan.c"], place, limits)
        flags = [f"-m{limits.depth}", "-n", *([] if stuck else ["-E"])]
        return read_answer(_run(["./pan", *flags], place, limits))


def _run(command: Sequence[str], place: Path, limits: Limits) -> str:
    try:
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, timeout=limits.seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{command[0]} took more than {limits.seconds:g} s",
            where="SPIN",
            expected="a smaller system or a larger limit",
        ) from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[0]
        raise UserError(f"{command[0]} ended with {done.returncode}: {said}", where="SPIN")
    return done.stdout


def read_answer(output: str) -> SpinResult:
    """The numbers in what a SPIN verifier prints; a `UserError` if its search was not complete."""
    for incomplete in ("max search depth too small", "reached -DMEMLIM bound", "out of memory"):
        if incomplete in output:
            raise UserError(f"the search is not complete: {incomplete}", where="SPIN")
    error = re.search(r"^pan:\d+: (.+?) \(at depth", output, re.MULTILINE)
    failed = int(_number(r"errors: (\d+)", output))
    if bool(error) != bool(failed):
        raise UserError(f"{failed} errors, but no text for them", where="SPIN")
    return SpinResult(
        int(_number(r"(\d+) states, stored", output)),
        int(_number(r"(\d+) transitions", output)),
        int(_number(r"depth reached (\d+)", output)),
        error.group(1) if error else "",
        int(_number(r"State-vector (\d+) byte", output)),
        int(_number(r"([\d.]+)\s+total actual memory", output) * 2**20),
        _number(r"elapsed time ([\d.]+) seconds", output),
    )


def _number(pattern: str, output: str) -> float:
    found = re.search(pattern, output)
    if found is None:
        raise UserError(f"its output has no {pattern!r}", where="SPIN", expected="SPIN 6.5")
    return float(found.group(1))
