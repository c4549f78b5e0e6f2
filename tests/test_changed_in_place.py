"""What a role puts or says stays as it was: what may be changed in place afterwards is refused."""

from __future__ import annotations

import sys
from collections import Counter as Counted
from collections import deque
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import pytest

from syncproof.checkers.certificate.check import check as check_by_certificate
from syncproof.checkers.emulator.random_runs import look_for_violation
from syncproof.checkers.explicit.check import check, question_of
from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.fast.check import check as check_fast
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.memory import Ghost, Region
from syncproof.models.per_rank import PerRank
from syncproof.models.protocol import Protocol, role
from syncproof.models.values import SENTINEL, Block, Opaque, Part, Torn, changeable
from syncproof.models.verdict import Answer
from tests.small import instance, verdict


class Message:
    """A message that is filled anew."""

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass(frozen=True)
class Frozen:
    """A message that is as it was made, but for what it holds."""

    held: Any


class Colour(Enum):
    RED = 1


class Counter:
    """A function that keeps how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, old: Any) -> int:
        self.times += 1
        return self.times


LOG: list[int] = []
LIMIT, TIMES = 3, 0


def counted(old: Any) -> int:
    global TIMES
    TIMES += 1
    return TIMES


def logged(old: Any) -> int:
    return helped()


def helped() -> int:
    return len(LOG)


THIS = sys.modules[__name__]


def by_a_module(old: Any) -> int:
    return THIS.counted(old)  # type: ignore[no-any-return]


def with_a_default(old: Any, seen: list[int] = []) -> int:  # noqa: B006
    seen.append(1)
    return len(seen)


def below(old: Any) -> int:
    return min(copy(old) + 1, LIMIT)


def first_is_one(_: Any, seen: Any) -> bool:
    return bool(seen[0] == 1)


def giving(value: Any) -> Callable[..., Any]:
    """The name of a ghost function that gives a list."""
    return {"a list": lambda old: [1]}[value]


class Saying(Protocol):
    """One process; ``act`` of a subclass is what it does."""

    def memory(self) -> None:
        self.slot = Region(owner=0, block=8)
        self.ghost = Ghost(0)

    @role(on=[0])
    async def worker(self, core: Core) -> None:
        await self.act(core)
        await core.put(self.slot[0], 1)
        await core.quiet()

    async def act(self, core: Core) -> None:
        """To be said."""


class Argument(Saying):
    """The check fails where it is said, and would hold where it is judged."""

    async def act(self, core: Core) -> None:
        seen = [0]
        core.ghost_check(self.ghost, first_is_one, seen, message="is one")  # type: ignore[arg-type]
        seen[0] = 1


class Put(Saying):
    """What was put is read as it was put."""

    async def act(self, core: Core) -> None:
        message = Message(0)
        await core.put(self.slot[0], message)
        await core.quiet()
        message.number = 1
        found = await core.load(self.slot[0])
        core.check(found.number == 1, "changed in memory without a landing")


class Swapped(Saying):
    async def act(self, core: Core) -> None:
        await core.swap(self.slot[0], Message(0))


class Named(Saying):
    async def act(self, core: Core) -> None:
        await core.put(self.slot[0], core.payload(0, Message(0), 0))


class Keyed(Saying):
    async def act(self, core: Core) -> None:
        core.ghost_update(self.ghost, below, key=Message(0))


class Callable_(Saying):
    async def act(self, core: Core) -> None:
        core.ghost_update(self.ghost, Counter())


class Global(Saying):
    async def act(self, core: Core) -> None:
        core.ghost_update(self.ghost, counted)


class Logged(Saying):
    async def act(self, core: Core) -> None:
        core.ghost_update(self.ghost, logged)


class ByModule(Saying):
    async def act(self, core: Core) -> None:
        core.ghost_update(self.ghost, by_a_module)


class Default(Saying):
    async def act(self, core: Core) -> None:
        core.ghost_update(self.ghost, with_a_default)


class Bound(Saying):
    async def act(self, core: Core) -> None:
        core.ghost_update(self.ghost, Counter().__call__)


class BuiltIn(Saying):
    async def act(self, core: Core) -> None:
        core.ghost_update(self.ghost, LOG.index)


class Given(Saying):
    async def act(self, core: Core) -> None:
        core.ghost_update(self.ghost, giving("a list"))


@pytest.mark.parametrize(
    "kind",
    [
        Argument,
        Put,
        Swapped,
        Named,
        Keyed,
        Callable_,
        Global,
        Logged,
        ByModule,
        Default,
        Bound,
        BuiltIn,
        Given,
    ],
)
def test_what_may_be_changed_later_is_refused(kind: type[Protocol]) -> None:
    """No engine looks at an object, or asks a function, that may be otherwise by then."""
    made = instance(kind, ranks=1)
    with pytest.raises(UserError):
        verdict(made)
    try:
        found = check_by_certificate(made, question_of(made, "x"), "certificate", Budget())
    except UserError:
        return
    assert found.answer is Answer.UNDECIDED


class Plain(Saying):
    async def act(self, core: Core) -> None:
        core.ghost_update(self.ghost, below)
        core.ghost_update(self.ghost, max, 2)
        core.ghost_update(self.ghost, int.__mul__, 1)
        core.ghost_check(self.ghost, lambda held: held == 2, message="two")
        await core.put(self.slot[0], Frozen((1, "a")))


def test_what_stays_as_it_is_is_not_refused() -> None:
    """Functions of their arguments and of constants, and frozen dataclasses, are as before."""
    assert verdict(instance(Plain, ranks=1)).answer is Answer.PROVED


class Numbers(tuple[int, ...]):
    """A tuple that can be given attributes."""


class Loose(Frozen):
    """Frozen are only the fields of the class from which it derives."""


class Feigned(type):
    """What classes say that they are whole numbers."""

    def __hash__(cls) -> int:
        return hash(int)

    def __eq__(cls, other: object) -> bool:
        return True


class Feigning(metaclass=Feigned):
    """A message that can be filled anew, and equals no other."""


def test_a_class_that_equals_another_is_not_taken_for_it() -> None:
    """It is found among the types of what nobody can change, and is none of them."""
    assert type(Feigning()) in {int} and changeable(Feigning())
    assert changeable((1, Feigning()))


def test_only_what_nobody_can_change_is_let_pass() -> None:
    """Objects are looked into as far as they hold others."""
    lasting = (1, 1.5, "a", None, b"a", Colour.RED, Fraction(1, 2), frozenset({1}), int, range(2))
    for value in (*lasting, lasting, SENTINEL, Part(0, 1, (0, 1), 2, "lead"), Torn((1, 2))):
        assert not changeable(value) and not changeable(Frozen(value))
    changing = ([1], {1}, {1: 2}, Message(1), bytearray(b"a"), (1, [2]), Block({}), PerRank())
    for value in (*changing, Numbers((1,)), Loose(1), lambda: 1):
        assert changeable(value) and changeable(Frozen(value))
        assert changeable(Part(0, 1, value, 2, "lead")) and changeable(Torn((value,)))
        assert changeable(Opaque(value))


class Shared:
    """What roles must not tell each other by."""

    number = 0
    seen: ClassVar[list[int]] = []


class Telling(Protocol):
    """Rank 1 looks at what rank 0 has left behind beside memory: nothing orders the two."""

    def memory(self) -> None:
        self.slot = Region(owner=0, block=8)

    @role(on=[0])
    async def first(self, core: Core) -> None:
        self.tell()
        await core.quiet()

    @role(on=[1])
    async def second(self, core: Core) -> None:
        await core.quiet()
        core.check(self.is_told(), "rank 0 was first")

    def tell(self) -> None:
        Shared.number += 1

    def is_told(self) -> bool:
        return Shared.number > 0


class TellingByList(Telling):
    def tell(self) -> None:
        Shared.seen.append(1)

    def is_told(self) -> bool:
        return len(Shared.seen) > 0


class TellingByGlobal(Telling):
    def tell(self) -> None:
        global TIMES
        TIMES += 1

    def is_told(self) -> bool:
        return TIMES > 0


@pytest.mark.parametrize("kind", [Telling, TellingByList, TellingByGlobal])
@pytest.mark.parametrize("engine", ["reference", "certificate"])
def test_what_roles_share_beside_memory_must_stay_as_it_is(
    kind: type[Protocol], engine: str
) -> None:
    """A class, a list or a name of a module is no memory: nothing says when a store to it lands."""
    made = instance(kind, ranks=2)
    with pytest.raises(UserError, match="changes what other roles and runs see"):
        if engine == "reference":
            verdict(made)
        check_by_certificate(made, question_of(made, "x"), "certificate", Budget())


class TellingAtTheEnd(Telling):
    """The same behind the last operation, where no local state is written down any more."""

    @role(on=[0])
    async def first(self, core: Core) -> None:
        await core.quiet()
        self.tell()


class TellingByCounter(TellingAtTheEnd):
    """By an object of the protocol that is no list, dict or set, and cannot be sealed."""

    def memory(self) -> None:
        super().memory()
        self.counter = Counted()

    def tell(self) -> None:
        self.counter["told"] += 1

    def is_told(self) -> bool:
        return self.counter["told"] > 0


class TellingByDeque(TellingAtTheEnd):
    def tell(self) -> None:
        QUEUE.append(1)

    def is_told(self) -> bool:
        return len(QUEUE) > 0


class TellingBySlots(TellingAtTheEnd):
    def tell(self) -> None:
        SLOTTED.number += 1

    def is_told(self) -> bool:
        return SLOTTED.number > 0


class TellingByClass(TellingAtTheEnd):
    """By a class, beside an object of which nobody can tell what it holds."""

    def tell(self) -> None:
        len(QUEUE)
        Shared.number += 1

    def is_told(self) -> bool:
        return len(QUEUE) >= 0 and Shared.number > 0


@dataclass(slots=True)
class Slotted:
    """An object that keeps its number where no dict shows it."""

    number: int = 0


QUEUE: deque[int] = deque()
SLOTTED = Slotted()
UNSEEN = (TellingAtTheEnd, TellingByCounter, TellingByDeque, TellingBySlots, TellingByClass)


@pytest.mark.parametrize("kind", UNSEEN)
@pytest.mark.parametrize("engine", ["reference", "fast", "certificate"])
def test_nothing_that_roles_share_is_left_out(kind: type[Protocol], engine: str) -> None:
    """Whatever holds it, and where the role says no more: before, all of this was "proved"."""
    Shared.number = SLOTTED.number = 0
    QUEUE.clear()
    made = instance(kind, ranks=2)
    checks = {"reference": check, "fast": check_fast, "certificate": check_by_certificate}
    with pytest.raises(UserError, match="changes what other roles and runs see"):
        checks[engine](made, question_of(made, "x"), engine, Budget())


class Counting(Protocol):
    """Counts in the block that it was given: each run that is given the same would count on."""

    def memory(self) -> None:
        self.slot = Region(owner=0, block=8, fields={"count": 4, "other": 4}, initial=0)
        self.hidden = Region(owner=0, block=8, fields={"a": 4, "b": 4}, initial=0, compared=())
        self.flag = Region(owner=0, block=8)

    @role(on=[1])
    async def writer(self, core: Core) -> None:
        await core.put(self.flag[0], 1)
        await core.quiet()

    @role(on=[0])
    async def reader(self, core: Core) -> None:
        count = await self.counted(core)
        await core.quiet()
        flag = await core.wait_until(self.flag[0], lambda flag: flag in (0, 1))
        core.check(flag == 0 or count() != 1, "counted once")

    async def counted(self, core: Core) -> Callable[[], int]:
        """To be said."""
        raise NotImplementedError


class CountsInABlock(Counting):
    async def counted(self, core: Core) -> Callable[[], int]:
        block: Any = await core.load(self.slot[0])
        block.count += 1
        return lambda: int(block.count)


class CountsUnseen(Counting):
    async def counted(self, core: Core) -> Callable[[], int]:
        block: Any = await core.load(self.hidden[0])
        block.a.value += 1
        return lambda: int(block.a.value)


class CountsInACondition(Counting):
    async def counted(self, core: Core) -> Callable[[], int]:
        def counts(block: Any) -> bool:
            block.count += 1
            return bool(block.count == 1)

        block: Any = await core.wait_until(self.slot[0], counts)
        return lambda: int(block.count)


class CountsInAToken(Counting):
    async def counted(self, core: Core) -> Callable[[], int]:
        token: Any = core.payload(1, 0, 0)
        token.round += 1
        return lambda: int(token.round)


class CountsInAPart(Counting):
    async def counted(self, core: Core) -> Callable[[], int]:
        part: Any = core.payload(1, 0, 0).field("count")
        part.round += 1
        return lambda: int(part.round)


class CountsOnItsCore(Counting):
    async def counted(self, core: Any) -> Callable[[], int]:
        len(QUEUE)
        core.number = getattr(core, "number", 0) + 1
        return lambda: int(core.number)


@pytest.mark.parametrize(
    "kind",
    [
        CountsInABlock,
        CountsUnseen,
        CountsInACondition,
        CountsInAToken,
        CountsInAPart,
        CountsOnItsCore,
    ],
)
@pytest.mark.parametrize("engine", ["reference", "reduced"])
def test_what_a_role_is_given_stays_as_it_was(kind: type[Protocol], engine: str) -> None:
    """A search runs a role again on the values that it read: it must read the same."""
    with pytest.raises(UserError, match=r"changed in place|what other roles and runs see"):
        verdict(instance(kind, ranks=2), engine)


class Remembering(TellingAtTheEnd):
    """What is found out once, from nothing that changes, is no message."""

    @cached_property
    def limit(self) -> int:
        return min(3, len(QUEUE))

    def tell(self) -> None:
        assert self.limit >= 0

    def is_told(self) -> bool:
        return self.limit >= 0


def test_a_property_that_is_kept_is_no_message() -> None:
    """It is looked for as before, and no role is refused for it."""
    assert verdict(instance(Remembering, ranks=2)).answer is Answer.PROVED


class ToldOnce(Telling):
    """What is set once is there from the start of all later runs."""

    def tell(self) -> None:
        Shared.seen[:] = [7]

    def is_told(self) -> bool:
        return Shared.seen == [7]


def test_random_runs_leave_nothing_to_the_search_behind_them() -> None:
    """What a random run has changed would be as it is from the start of the search."""
    Shared.seen[:] = []
    made = instance(ToldOnce, ranks=2)
    with pytest.raises(UserError, match="changes what other roles and runs see"):
        look_for_violation(made, question_of(made, "x"), Budget())
