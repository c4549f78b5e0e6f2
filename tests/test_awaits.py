"""An operation that is made and not awaited is refused, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

import syncproof.protocols
from syncproof.awaits import awaited_methods, check_awaits
from syncproof.cli import run
from syncproof.models.errors import UserError

DOORBELL = (Path(__file__).parent / "data" / "doorbell.py").read_text()
AWAITED = [n for n, line in enumerate(DOORBELL.splitlines()) if line.strip().startswith("await ")]


@pytest.mark.parametrize("number", AWAITED)
def test_each_forgotten_await_is_found(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any one statement of a protocol without its ``await`` ends with exit code 2 and its line."""
    lines = DOORBELL.splitlines()
    lines[number] = lines[number].replace("await ", "", 1)
    file = tmp_path / "doorbell.py"
    file.write_text("\n".join(lines))
    assert run([str(file)]) == 2
    told = capsys.readouterr().err
    assert f"doorbell.py:{number + 1}: core." in told
    assert "is not awaited" in told


def test_a_helper_that_is_not_awaited_is_found() -> None:
    """So is an async function of the file itself, as a method and as a function."""
    for call in ("self.send(core)", "send(core)"):
        text = f"async def send(core):\n    pass\nasync def role(self, core):\n    {call}\n"
        with pytest.raises(UserError, match="is not awaited"):
            check_awaits(text, "own.py")


def test_what_is_awaited_or_no_operation_is_left_alone() -> None:
    """Statements for the proof are no operations, and every protocol of ours awaits its own."""
    assert {"put", "fence", "quiet", "wait_until", "kernel_end", "poll_until"} <= awaited_methods()
    assert not {"consume", "check", "reach", "payload", "choose"} & awaited_methods()
    for folder in syncproof.protocols.__path__:
        for file in Path(folder).glob("*.py"):
            check_awaits(file.read_text(), file.name)


@pytest.mark.parametrize("kind", ["", ": Core", ": 'core.Core'", ": Any"])
def test_an_argument_that_may_be_a_core_is_looked_at(kind: str) -> None:
    """``core.add(...)`` is an operation, whatever the core is called."""
    text = f"async def role(self, mine{kind}):\n    mine.add(1, 2)\n"
    with pytest.raises(UserError, match="is not awaited"):
        check_awaits(text, "own.py")


@pytest.mark.parametrize("kind", ["set[int]", "list", "Seen"])
def test_an_argument_that_is_said_to_be_something_else_is_not(kind: str) -> None:
    """``seen.add(1)`` of a set is no operation."""
    check_awaits(f"async def role(self, core, seen: {kind}):\n    seen.add(1)\n", "own.py")
