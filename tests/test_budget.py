"""Memory budgets: sizes as text, limits of control groups, and a ceiling that holds."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from syncproof.budget import cgroup_limits, default_memory, memory_ceiling, parse_size
from syncproof.models.errors import UserError


@pytest.mark.parametrize(
    ("text", "size"),
    [("1K", 2**10), ("800M", 800 * 2**20), ("1.5GiB", 3 * 2**29), ("2tb", 2**41), (" 4 g ", 2**32)],
)
def test_size_is_read_with_its_unit(text: str, size: int) -> None:
    """Units are powers of 1024, in either case."""
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "4", "G", "-1G", "0M", "1e3M", "4 apples"])
def test_size_that_is_none_is_refused(text: str) -> None:
    """A size without a unit, or of nothing, is bad input."""
    with pytest.raises(UserError, match="--memory: size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("line", "folder", "file"),
    [
        ("0::/job/part", "", "memory.max"),
        ("4:cpu,memory:/job/part", "memory", "memory.limit_in_bytes"),
    ],
)
def test_limit_of_any_group_above_counts(line: str, folder: str, file: str, tmp_path: Path) -> None:
    """Both versions of control groups are read, from the group of this process up to the top."""
    groups, top = tmp_path / "cgroup", tmp_path / "sys"
    groups.write_text(f"9:pids:/elsewhere\n{line}\n")
    for place, text in (("job/part", "max"), ("job", "5000"), ("", "7000")):
        (top / folder / place).mkdir(parents=True, exist_ok=True)
        (top / folder / place / file).write_text(f"{text}\n")
    assert sorted(cgroup_limits(groups, top)) == [0, 5000, 7000]


def test_default_is_less_than_what_there_is() -> None:
    """The default leaves room for others."""
    assert 0 < default_memory() < 2**60


def test_ceiling_is_only_there_within() -> None:
    """Within the ceiling a large allocation fails; afterwards the limits are as before."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(MemoryError), memory_ceiling(2**32):
        bytearray(2**34)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
