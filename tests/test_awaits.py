"""An operation that is made and not awaited is refused, with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import syncproof.protocols
from syncproof.awaits import awaited_methods, check_awaits
from syncproof.checkers.certificate.check import check as certify
from syncproof.checkers.explicit.check import Budget, question_of
from syncproof.cli import run
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.verdict import Answer
from tests.small import instance, verdict, with_settings

HELPERS = """async def look(self, core):
    pass
def told(self, core):
    return core.put(1, 1)
"""
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


@pytest.mark.parametrize(
    "line",
    [
        "core.check(core.load(1), 'set')",
        "core.check(core.load(1) == 1, 'set')",
        "core.check(self.look(core), 'set')",
        "if self.look(core): pass",
        "if not core.get(1): pass",
        "while core.load(1): pass",
        "found = core.get(1) and 2",
        "found = 1 if self.look(core) else 2",
        "[core.put(i, 1) for i in range(2)]",
        "[core.put(1, 1)] * 2",
        "found = core.load(1) * 2",
        "(core.put(1, 1), core.fence())[core.ranks > 1]",
        "found = (1, 2)[core.load(1)]",
        "if [core.load(1)]: pass",
        "core.ranks > 1 and core.fence()",
        "core.fence() if core.ranks > 1 else None",
        "self.told(core)",
    ],
)
def test_an_operation_that_is_lost_in_an_expression_is_found(line: str) -> None:
    """As a condition or a value an operation is none, and one in a list that is lost is lost."""
    with pytest.raises(UserError, match="is not awaited") as refused:
        check_awaits(f"{HELPERS}async def role(self, core):\n    {line}\n", "own.py")
    assert refused.value.where == "own.py:6"


@pytest.mark.parametrize(
    "line",
    [
        "await self.told(core)",
        "kept = core.put(1, 1)",
        "kept = [self.look(core) for _ in range(2)]",
        "for each in (core.put(1, 1), core.fence()): await each",
        "for each in [core.put(i, 1) for i in range(2)]: await each",
        "kept = [core.put(1, 1)] + [core.fence()]",
        "await (core.put(1, 1), core.fence())[core.ranks > 1]",
        "await hand(self.look(core))",
        "await (core.put(1, 1) if core.ranks > 1 else core.fence())",
        "found = [each async for each in self.look(core)]",
        "found = table.get(1) and 2",
        "core.check(await core.load(1) == 1, 'set')",
    ],
)
def test_an_operation_that_may_be_awaited_later_is_left_alone(line: str) -> None:
    """What is kept, returned or handed on may be awaited, and a dict's ``get`` is no operation."""
    more = "def note(self, seen):\n    seen.add(1)\n"
    check_awaits(f"{HELPERS}{more}async def role(self, core, table):\n    {line}\n", "own.py")


class AlwaysTrue(Protocol):
    """A role that takes for a value what is none, in a way that its text does not tell."""

    way: str = parameter("load", "what is taken for a value")

    def memory(self) -> None:
        self.word = Region(owner=0, block=8)

    @role(on=[0])
    async def reader(self, core: Core) -> None:
        word, load = self.word[0], core.load
        if self.way == "load":
            core.check(load(word), "not zero")
        elif self.way == "compared":
            core.check(load(word) != 0, "not zero")
        elif self.way == "function":
            core.check(lambda: False, "never")
        elif self.way == "coroutine":
            made = self.look(core)
            try:
                core.check(made, "never")
            finally:
                made.close()
        elif self.way == "async wait":
            await core.wait_until(word, self.is_five)
        elif self.way == "load in a wait":
            await core.wait_until(word, lambda _: load(word))

    async def is_five(self, value: int) -> bool:
        return value == 5

    async def look(self, core: Core) -> Any:
        core.check(False, "looked")


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("engine", ["reference", "certificate"])
@pytest.mark.parametrize(
    "way", ["load", "compared", "function", "coroutine", "async wait", "load in a wait"]
)
def test_what_is_no_value_is_no_condition(way: str, engine: str) -> None:
    """An operation, a coroutine or a function would always hold: nothing is proved by one."""
    made = with_settings(instance(AlwaysTrue), way=way)
    asked = question_of(made, "always true")
    if engine == "certificate":
        assert certify(made, asked, "certificate", Budget()).answer is Answer.UNDECIDED
        return
    with pytest.raises(UserError, match=r"used as a value|as a condition|always holds"):
        verdict(made)
