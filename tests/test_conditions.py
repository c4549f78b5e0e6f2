"""What a condition looks at: it keeps nothing, and what the role changes later is not looked at."""

from __future__ import annotations

import itertools
import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Any

import pytest

from syncproof.checkers.certificate import certify
from syncproof.checkers.explicit.check import question_of
from syncproof.models import conditions
from syncproof.models.bounds import Bounds
from syncproof.models.conditions import leaves_no_trace
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.lowering import frozen
from syncproof.models.memory import Ghost, Region
from syncproof.models.operations import Kind, Operation
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.traces import trace
from syncproof.models.values import Block
from syncproof.models.verdict import Answer, Verdict
from syncproof.protocols.counts import equals
from tests.small import answers, instance, verdict, with_settings

ENGINES = ("reference", "reduced")


@dataclass
class Local:
    """What a role keeps in an object."""

    number: int = 0


class Counter:
    """A callable that counts how often it was called."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, flag: int) -> bool:
        self.times += 1
        return flag == 1 or self.times == 1


class Polled(Protocol):
    """A message and a flag; the condition passes on the flag, or the first time it is asked."""

    how: str = parameter("variable", "where the condition counts")

    def memory(self) -> None:
        self.data = Region(owner=1, block=512)
        self.flag = Region(owner=1, block=32)

    @role(on=[0])
    async def sender(self, core: Core) -> None:
        await core.put(self.data[1], core.payload(1, 0, 0))
        await core.fence()
        await core.put(self.flag[1], 1)
        await core.quiet()

    @role(on=[1])
    async def receiver(self, core: Core) -> None:
        await core.wait_until(self.flag[1], self.condition())
        core.consume(await core.load(self.data[1]), source=0, token=0, round=0)

    def condition(self) -> Callable[[int], Any]:
        times, seen, numbers = 0, list[int](), itertools.count(1)

        def counts(flag: int) -> bool:
            nonlocal times
            times += 1
            return flag == 1 or times == 1

        def gives_up(flag: int) -> bool:
            nonlocal times
            times += 1
            return flag == 1 or times > 3

        conditions: dict[str, Callable[[int], Any]] = {
            "variable": counts,
            "patience": gives_up,
            "list": lambda flag: seen.append(flag) or flag == 1 or len(seen) == 1,
            "default": lambda flag, kept=[]: kept.append(flag) or flag == 1 or len(kept) == 1,
            "iterator": lambda flag: next(numbers) == 1 or flag == 1,
            "object": Counter(),
            "bound": Counter().__call__,
            "partial": partial(Counter.__call__, Counter()),
        }
        return conditions[self.how]


HOW = ("variable", "patience", "list", "default", "iterator", "object", "bound", "partial")


@pytest.mark.parametrize("how", HOW)
def test_a_condition_that_counts_is_refused(how: str) -> None:
    """An engine asks once for each content, so such a condition would never give up."""
    made = with_settings(instance(Polled), how=how)
    with pytest.raises(UserError, match="keeps something from one asking to the next"):
        verdict(made)
    assert not isinstance(certify(made, question_of(made, "x")), Verdict)


class Changed(Protocol):
    """The flag is 1, then 2; the receiver waits for one after the other and may miss the first."""

    how: str = parameter("variable", "where the number that is waited for stands")

    def memory(self) -> None:
        self.flag = Region(owner=1, block=8)

    @role(on=[0])
    async def sender(self, core: Core) -> None:
        for number in (1, 2):
            await core.put(self.flag[1], number)
            await core.quiet()

    @role(on=[1])
    async def receiver(self, core: Core) -> None:
        number, local = 0, Local()
        conditions: dict[str, Callable[[int], bool]] = {
            "variable": lambda flag: flag == number,
            "object": lambda flag: flag == local.number,
            "default": lambda flag, local=local: flag == local.number,  # type: ignore[misc]
            "global": lambda flag: flag == EVERYWHERE.number,
            "bound": lambda flag: flag == bound_anew,
            "helper": lambda flag, equals=lambda flag: flag == number: equals(flag),
        }
        global bound_anew
        for number in (1, 2):
            local.number = number
            if self.how == "global":
                EVERYWHERE.number = number
            if self.how == "bound":
                bound_anew = number
            await core.wait_until(self.flag[1], conditions[self.how])


EVERYWHERE = Local()
bound_anew = 0


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_role_changes_later_is_not_looked_at(engine: str) -> None:
    """A variable is seen as it was when the role began to wait; an object that moved on is not."""
    made = instance(Changed)
    for how in ("variable", "helper"):
        found = verdict(with_settings(made, how=how), engine)
        assert answers(found)["deadlock-free"] is Answer.VIOLATED
    for how in ("object", "default"):
        with pytest.raises(UserError, match="the role has changed since it waits"):
            verdict(with_settings(made, how=how), engine)
    for how in ("global", "bound"):
        with pytest.raises(UserError, match=r"since it waits|what other roles and runs see"):
            verdict(with_settings(made, how=how), engine)


Holder = tuple[Callable[[int], Any], Callable[[int], bool]]
"""How a number is set, and a condition that the flag is this number."""


def by_attribute(held: Any, name: str = "number") -> Callable[[int], None]:
    return lambda number: setattr(held, name, number)


def in_a_set(core: Core) -> Holder:
    local = Hashed()
    return by_attribute(local), lambda flag, within={local}: any(
        flag == each.number for each in within
    )


def far_below(core: Core) -> Holder:
    local = Local()
    above = Nested(Nested(Nested(Nested(Nested(local)))))
    return by_attribute(local), lambda flag: flag == above.below.below.below.below.below.number


def on_the_core(core: Core) -> Holder:
    return by_attribute(core, "_number"), lambda flag: flag == core._number  # type: ignore[attr-defined]


def in_a_block(core: Core) -> Holder:
    block = Block({"number": 0})
    return by_attribute(block), lambda flag: flag == block.number  # type: ignore[attr-defined]


def behind_a_view(core: Core) -> Holder:
    held = {"number": 0}
    view = MappingProxyType(held)
    return lambda number: held.update(number=number), lambda flag: flag == view["number"]


def behind_a_reference(core: Core) -> Holder:
    local = Hashed()
    found = weakref.ref(local)
    return by_attribute(local), lambda flag: flag == found().number  # type: ignore[union-attr]


def hidden_from_copies(core: Core) -> Holder:
    local = Hidden()
    return by_attribute(local), lambda flag: flag == local.number


def in_a_class_of_its_own(core: Core) -> Holder:
    class Within:
        number = 0

    within = Within()
    return by_attribute(Within), lambda flag: flag == within.number


def in_a_module_of_its_own(core: Core) -> Holder:
    module = ModuleType("nowhere")
    return by_attribute(module), lambda flag: flag == module.number


class Hashed(Local):
    """A holder that may be in a set."""

    __hash__ = object.__hash__


@dataclass
class Nested:
    """An object in an object."""

    below: Any


class Hidden:
    """A holder of which a copy has nothing."""

    number = 0

    def __getstate__(self) -> None:
        return None


class ChangedWithin(Changed):
    """The number that is waited for stands in an object of some kind."""

    holder: Callable[[Core], Holder] = staticmethod(in_a_set)

    @role(on=[1])
    async def receiver(self, core: Core) -> None:
        change, condition = type(self).holder(core)
        for number in (1, 2):
            change(number)
            await core.wait_until(self.flag[1], condition)


HOLDERS = (
    in_a_set,
    far_below,
    on_the_core,
    in_a_block,
    behind_a_view,
    behind_a_reference,
    hidden_from_copies,
    in_a_class_of_its_own,
    in_a_module_of_its_own,
)


@pytest.mark.parametrize("holder", HOLDERS)
def test_no_object_hides_what_a_role_changes_later(holder: Callable[[Core], Holder]) -> None:
    """Whatever the number stands in: a change is seen, or the condition is refused."""
    kind = type("Within", (ChangedWithin,), {"holder": staticmethod(holder)})
    refused = r"since it waits|nobody can tell whether it stays|changed in place|what other roles"
    with pytest.raises(UserError, match=refused):
        verdict(instance(kind))


class Logs(Changed):
    """Its condition looks at a list, and its methods write a log."""

    def least(self) -> int:
        LOG.debug("asked")
        return 1

    @role(on=[1])
    async def receiver(self, core: Core) -> None:
        numbers = [1, 2]
        await core.wait_until(self.flag[1], lambda flag: flag >= self.least() and flag in numbers)


LOG = logging.getLogger(__name__)


def test_a_log_is_nothing_that_a_condition_looks_at() -> None:
    """It holds files and locks of which nobody can tell anything, and tells no role anything."""
    assert verdict(instance(Logs)).answer is Answer.PROVED


class Told(Changed):
    """The number that is waited for is kept for a rank."""

    @role(on=[1])
    async def receiver(self, core: Core) -> None:
        told = core.per_rank()
        for number in (1, 2):
            told[0] = number
            await core.wait_until(self.flag[1], lambda flag: bool(flag == told[0]))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_kept_for_a_rank_is_seen_as_it_was(engine: str) -> None:
    """A table for ranks is like a variable: later entries are not looked at."""
    assert answers(verdict(instance(Told), engine))["deadlock-free"] is Answer.VIOLATED


def test_plain_conditions_are_asked_as_they_are() -> None:
    """The usual ones cost nothing; one that looks into an object or may change one does."""
    number, local, numbers = 3, Local(), [3]
    assert leaves_no_trace(lambda flag: flag == number)
    assert leaves_no_trace(lambda flag, least=number: flag >= least)
    assert leaves_no_trace(lambda block: block.lead != number and block.rest == number)
    assert leaves_no_trace(equals(1))
    assert not leaves_no_trace(lambda flag: flag == ENGINES)
    assert not leaves_no_trace(lambda flag: flag == local.number)
    assert not leaves_no_trace(lambda flag: flag == EVERYWHERE.number)
    assert not leaves_no_trace(lambda flag: flag == numbers[0])
    assert leaves_no_trace(lambda flag: max(flag, 1) == number)
    assert not leaves_no_trace(lambda flag: Counter()(flag))
    assert not leaves_no_trace(Counter())


def reads(held: Any) -> Callable[[int], bool]:
    """A condition on a number, or on what an object holds."""
    return lambda flag: flag == getattr(held, "number", held)


SEEN: list[int] = []


class Due(Protocol):
    """Its method asks for what a subclass may say otherwise."""

    def memory(self) -> None:
        self.flag = Region(owner=0, block=32)

    @property
    def least(self) -> int:
        """The least value that is due."""
        return 1

    def is_due(self, value: int) -> bool:
        """A condition."""
        return value >= self.least

    @role(on=[0])
    async def waiter(self, core: Core) -> None:
        """Waits for what nobody puts."""
        await core.wait_until(self.flag[0], self.is_due)


def counted(self: object) -> int:
    """Enough at the third asking."""
    SEEN.append(0)
    return 2 - len(SEEN)


class Keeps(Due):
    """Its limit counts how often it was asked."""

    least = property(counted)  # type: ignore[assignment]


class Mixed:
    """No protocol: what it asks for is said by the protocol that it is part of."""

    def is_due(self, value: int) -> bool:
        """A condition."""
        return bool(value >= self.least)  # type: ignore[attr-defined]


class KeepsByMixing(Mixed, Keeps):
    """The same with the condition from elsewhere."""


def kept_within() -> type[Due]:
    """The same with a class that no module has a name for."""

    class Within(Due):
        least = property(counted)  # type: ignore[assignment]

        def is_due(self, value: int) -> bool:
            return value >= self.least

    return Within


KEEPING = (Keeps, KeepsByMixing, kept_within())


@pytest.mark.parametrize("kind", KEEPING)
def test_what_a_condition_asks_of_its_protocol_is_looked_at(kind: type[Due]) -> None:
    """A method that asks for a property keeps something if the property does, whoever says it."""
    held = kind(Bounds())
    assert leaves_no_trace(Due(Bounds()).is_due)
    assert not leaves_no_trace(held.is_due)
    assert not leaves_no_trace(lambda value: held.is_due(value))
    with pytest.raises(UserError, match="keeps something"):
        verdict(instance(kind, ranks=1))


def test_functions_of_one_text_are_looked_at_one_by_one() -> None:
    """One that closes over a number says nothing of one that closes over an object."""
    for one, other in ((reads(1), reads(Local())), (reads(Local()), reads(1))):
        assert not leaves_no_trace(lambda flag, one=one, other=other: one(flag) or other(flag))
    one, other = reads(1), reads(2)
    assert leaves_no_trace(lambda flag: one(flag) or other(flag))


TEXTS = """
def reads(held):
    return lambda flag: flag == getattr(held, "number", held)

def has_default(held):
    return lambda flag, held=held: flag == getattr(held, "number", held)

def names():
    return lambda flag: flag >= least
"""


def made_in(module: str) -> dict[str, Any]:
    """The names of a module that has the texts above, made anew."""
    space: dict[str, Any] = {"__name__": module}
    exec(TEXTS, space)
    return space


def check_texts(module: str) -> None:
    """What is said of a function holds of this function, whatever was asked before."""
    for maker, held in itertools.product(("reads", "has_default"), itertools.permutations(HELD)):
        make = made_in(module)[maker]
        for each in (*held, *held):
            assert leaves_no_trace(make(each)) is (type(each) is not Local), each
    space = made_in(module)
    condition = space["names"]()
    assert leaves_no_trace(condition)
    space["least"] = 1
    assert leaves_no_trace(condition) is (module == OF_PACKAGE)


HELD = (1, "text", Local())
OF_PACKAGE = "syncproof.made"


@pytest.mark.parametrize("module", [OF_PACKAGE, "made"])
def test_a_text_tells_nothing_of_what_a_function_closes_over(module: str) -> None:
    """A verdict is kept for a text of this package, but only for functions over plain values."""
    check_texts(module)


@pytest.mark.parametrize(("rule", "module"), [("_is_bare", OF_PACKAGE), ("_is_of_package", "made")])
def test_each_rule_of_the_kept_verdicts_is_needed(
    rule: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a rule always says yes, some function is held to be another."""
    monkeypatch.setattr(conditions, rule, lambda _: True)
    with pytest.raises(AssertionError):
        check_texts(module)


def test_a_function_that_calls_itself_is_frozen() -> None:
    """Its copy calls the copy, with the number of the time."""
    least = 1

    def halves(value: int) -> bool:
        return value == least or (value > least and halves(value // 2))

    copy = frozen(Operation(Kind.WAIT_UNTIL, predicate=halves)).predicate
    least = 5
    assert copy is not None
    assert [copy(each) for each in (0, 1, 2, 5)] == [False, True, True, True]
    assert [halves(each) for each in (0, 1, 2, 5)] == [False, False, False, True]


@dataclass(frozen=True)
class Scale:
    """Equal to others that do something else."""

    name: str
    by: int = field(compare=False)


class Scaled(Protocol):
    """Two atomics that do not commute, whose functions close over equal objects."""

    def memory(self) -> None:
        self.word = Region(owner=0, block=8, initial=1)
        self.done = Region(owner=0, block=8)

    @role
    async def scaler(self, core: Core) -> None:
        scale = Scale("scale", core.rank + 2)
        await core.atomic(self.word[0], lambda old: old * scale.by + 1)
        await core.fetch_add(self.done[0], 1)

    @role(on=[0])
    async def reader(self, core: Core) -> None:
        await core.wait_until(self.done[0], lambda count: count == 2)
        core.check(await core.load(self.word[0]) == 10, "the other order")


def test_functions_over_equal_objects_need_not_be_the_same() -> None:
    """Only over values of which it is known are they one function that commutes with itself."""
    made = instance(Scaled)
    assert answers(verdict(made))["checks"] is Answer.VIOLATED
    assert not isinstance(certify(made, question_of(made, "x")), Verdict)


def _noted(old: tuple[Any, ...], new: Any) -> tuple[Any, ...]:
    return (*old, new)


def _begins_with_a_number(held: tuple[Any, ...]) -> bool:
    return type(held[0]) is int


class Noted(Protocol):
    """Each rank notes something in a ghost: 1 and True."""

    def memory(self) -> None:
        self.done = Region(owner=0, block=8)
        self.notes = Ghost(())

    @role
    async def worker(self, core: Core) -> None:
        await core.fetch_add(self.done[0], 1)
        core.ghost_update(self.notes, _noted, True if core.rank else 1)
        await core.fetch_add(self.done[0], 1)

    @role(on=[0])
    async def reader(self, core: Core) -> None:
        await core.wait_until(self.done[0], lambda count: count == 4)
        core.ghost_check(self.notes, _begins_with_a_number, message="True came first")


@pytest.mark.parametrize("engine", ENGINES)
def test_ghosts_tell_a_number_from_a_truth(engine: str) -> None:
    """As memory does: 1 and True are two values."""
    assert answers(verdict(instance(Noted), engine))["checks"] is Answer.VIOLATED


class Unheld(Protocol):
    """Speaks of a ghost that the protocol does not hold as an attribute."""

    def memory(self) -> None:
        self.flag = Region(owner=0, block=8)
        self.all = [Ghost(0)]

    @role(on=[0])
    async def worker(self, core: Core) -> None:
        core.ghost_check(self.all[0], lambda value: value == 7, message="it is not 7")
        await core.put(self.flag[0], 1)
        await core.quiet()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_ghost_that_nobody_holds_is_refused(engine: str) -> None:
    """Nothing that is said of it would be judged."""
    made = instance(Unheld)
    with pytest.raises(UserError, match="none of the protocol's"):
        verdict(made, engine)
    with pytest.raises(UserError, match="none of the protocol's"):
        certify(made, question_of(made, "x"))


def test_what_an_object_holds_is_told_whatever_its_class_says_that_it_equals() -> None:
    """A metaclass may say that its class equals `int`, whose objects hold nothing."""

    class Feigned(type):
        def __hash__(cls) -> int:
            return hash(int)

        def __eq__(cls, other: object) -> bool:
            return True

    class Feigning(metaclass=Feigned):
        count = 0

    held = Feigning()
    before = trace(held)
    held.count = 1
    assert trace(held) != before
