"""Memory gives back what was put, not something else that calls itself equal to it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal

import pytest

from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.values import Values
from syncproof.models.verdict import Answer
from tests.small import answers, instance, verdict


@dataclass(frozen=True)
class Message:
    """A message of which only the number is compared."""

    number: int
    data: Hashable = field(compare=False)


@dataclass(frozen=True)
class Modular:
    """A number that is compared modulo 4."""

    number: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Modular) and (self.number - other.number) % 4 == 0

    def __hash__(self) -> int:
        return self.number % 4


@dataclass(frozen=True)
class Holder:
    held: Hashable


APART = [
    (Message(1, 5), Message(1, 6)),
    (Message(1, Message(2, 5)), Message(1, Message(2, 6))),
    (Modular(1), Modular(5)),
    (Holder(1), Holder(True)),
    (Holder(0.0), Holder(-0.0)),
    (frozenset((1,)), frozenset((True,))),
    (Decimal("1.0"), Decimal("1.00")),
]


@pytest.mark.parametrize(("one", "other"), APART, ids=str)
def test_values_that_call_themselves_equal_are_told_apart(one: Hashable, other: Hashable) -> None:
    """Two values that Python calls equal and that hold something else have two numbers."""
    assert one == other
    values = Values()
    numbers = [values.number(each) for each in (one, other, one)]
    assert numbers[0] == numbers[2] != numbers[1]
    assert [values[each] for each in numbers[:2]] == [one, other]
    assert values[numbers[1]] is other


class Overwritten(Protocol):
    """A message is put over another one that it calls equal, and read."""

    expected = 6

    def memory(self) -> None:
        self.slot, self.bell = Region(owner=1, block=32), Region(owner=1, block=32)

    @role(on=[0])
    async def producer(self, core: Core) -> None:
        for data in (5, 6):
            await core.put(self.slot[1], Message(1, data))
            await core.quiet()
        await core.put(self.bell[1], 1)
        await core.quiet()

    @role(on=[1])
    async def consumer(self, core: Core) -> None:
        await core.wait_until(self.bell[1], lambda rung: rung == 1)
        message = await core.load(self.slot[1])
        core.check(message.data == self.expected, "another message")


class Forgotten(Overwritten):
    """It expects the message that was put first."""

    expected = 5


@pytest.mark.parametrize(
    ("kind", "answer"), [(Overwritten, Answer.PROVED), (Forgotten, Answer.VIOLATED)]
)
def test_the_last_message_is_read(kind: type[Protocol], answer: Answer) -> None:
    """What is put over an equal value replaces it: proved for the last one, not for the first."""
    assert answers(verdict(instance(kind)))["checks"] is answer


def test_a_value_that_holds_a_list_is_refused_for_it() -> None:
    """Also one that may be hashed, as it leaves the list out."""
    with pytest.raises(UserError, match="holds a list, which may be changed in place"):
        Values().number(Message(1, [1]))  # type: ignore[arg-type]
