"""Rounds in disguise: protocols that a few rounds refute must not be proved for every number."""

from __future__ import annotations

import dataclasses
from enum import IntEnum
from fractions import Fraction
from typing import Any

import pytest

from syncproof.checkers.explicit.check import Budget, check, question_of
from syncproof.checkers.unbounded.check import check as check_unbounded
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import Ghost, Region
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.verdict import Answer


class Phase(IntEnum):
    FIRST = 0
    THIRD = 2


TABLE = {2: "the third"}


class InDisguise(Protocol):
    """Lock step, with one way to tell rounds apart that is no comparison of two rounds."""

    what: str = parameter("nothing", "how rounds are told apart")

    def memory(self) -> None:
        self.flag = Region(index=(), block=32)
        self.two = Region(index=(2,), block=32)
        self.seen = Ghost(0)

    @role
    async def worker(self, core: Core) -> None:
        before: Any = None
        for round in core.rounds():
            found = await core.load(self.flag[core.rank])
            old = None if found == 0 else found[0]
            core.check(self.holds(round, old), "the third round is told apart")
            if self.what == "a choice by a text":
                now = core.choose(f"choice {round}", (0, 1))
                core.check(before is None or now == before, "chosen otherwise than before")
                before = now
            elif self.what == "a choice by an old round" and old is not None:
                now = core.choose(("choice", old), (0, 1))
                core.check(before is None or now == before, "chosen otherwise than before")
                before = now
            elif self.what == "a ghost of the round before":
                core.ghost_check(self.seen, _untouched, key=round - 1, message="is touched")
                core.ghost_update(self.seen, _later, 1, key=round)
            elif self.what == "a ghost of the next round":
                core.ghost_check(self.seen, _untouched, key=round, message="is touched")
                await core.barrier()
                core.ghost_update(self.seen, _later, 1, key=round + 1)
            elif self.what == "a token taken twice":
                for each in (round, round + 1):
                    token = core.payload(core.rank, 0, each)
                    core.consume(token.field("payload"), core.rank, 0, each)
            await core.barrier()
            await core.put(self.flag[core.rank], (round,))
            await core.barrier()

    def holds(self, round: int, old: Any) -> bool:
        match self.what:
            case "a set":
                return round not in {2, 3}
            case "a dict":
                return TABLE.get(round) is None
            case "a set of an old round":
                return old is None or old not in {round - 1}
            case "an enum":
                return round != Phase.THIRD
            case "a fraction":
                return round != Fraction(2)
            case "a complex number":
                return round != 2 + 0j
            case "a text":
                return str(round) != "2"
            case "a width":
                return f"{round:03}" != "002"
            case "a name that numbers do not have":
                return any(getattr(round, name, 2) != 2 for name in ("value", "least", "note"))
            case "a name that numbers have":
                return getattr(round, "real", 2) != 2
            case "an error that is caught":
                try:
                    return round != 2
                except Exception:
                    return True
        return True


def _untouched(value: int) -> bool:
    return value == 0


def _later(old: int, new: int) -> int:
    return new


class OfAType(Protocol):
    """Asks in a function inside for the type of a round."""

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            core.check((lambda value: type(value) is not int)(round), "a round is a number")
            await core.barrier()


class WithAnAttribute(Protocol):
    """Asks for what only numbers have."""

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            core.check(not hasattr(round, "bit_length"), "a round is a number")
            await core.barrier()


DISGUISES = (
    "a set",
    "a dict",
    "a set of an old round",
    "an enum",
    "a fraction",
    "a complex number",
    "a text",
    "a width",
    "an error that is caught",
    "a name that numbers do not have",
    "a name that numbers have",
    "a choice by a text",
    "a choice by an old round",
    "a ghost of the round before",
    "a ghost of the next round",
    "a token taken twice",
)


def answers(kind: type[Protocol], rounds: int, **settings: str | bool) -> tuple[Answer, Answer]:
    """What is said of every number of rounds, and of a few."""
    instance = Instance(kind, Bounds(), Profile("cm384"), settings)
    few = dataclasses.replace(instance, bounds=Bounds(rounds=rounds))
    budget = Budget(states=20_000)
    every = check_unbounded(instance, question_of(instance, "x"), "quotient", budget)
    return every.answer, check(few, question_of(few, "x"), "reduced", budget).answer


@pytest.mark.parametrize("what", DISGUISES)
def test_a_round_in_disguise_is_not_proved(what: str) -> None:
    """What three or four rounds refute is refuted or not decided for every number of them."""
    every, few = answers(InDisguise, 4, what=what)
    assert few is Answer.VIOLATED
    assert every is not Answer.PROVED


def test_the_same_without_a_disguise_is_proved() -> None:
    """It is the disguise that is refused."""
    assert answers(InDisguise, 4, what="nothing") == (Answer.PROVED, Answer.PROVED)


@pytest.mark.parametrize("kind", [OfAType, WithAnAttribute])
def test_what_a_round_is_made_of_is_not_told(kind: type[Protocol]) -> None:
    """``type()`` and ``hasattr()`` are refused wherever a role names them."""
    assert answers(kind, 1) == (Answer.UNDECIDED, Answer.VIOLATED)


class Opaquely(Protocol):
    """Compares a round with a field that control flow must not look at."""

    def memory(self) -> None:
        self.data = Region(index=(), fields={"payload": 512}, compared=())

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            found = await core.load(self.data[core.rank])
            core.check(round != found, "the payload is the round")


def test_an_opaque_field_is_refused_beside_a_round_too() -> None:
    """The error is that of a bounded run."""
    instance = Instance(Opaquely, Bounds(), Profile("cm384"), {})
    with pytest.raises(UserError, match="opaque field"):
        check_unbounded(instance, question_of(instance, "x"))


class Named(Protocol):
    """Choices with names like those that the engine uses itself."""

    @role
    async def worker(self, core: Core) -> None:
        for _ in core.rounds():
            pair, number = core.choose(("choice", "x"), (0, 1)), core.choose(0, (0, 1))
            core.check(pair in (0, 1) and number in (0, 1), "neither of the two")
            await core.barrier()


def test_names_of_choices_are_free() -> None:
    """A choice may be named by any tuple or number."""
    assert answers(Named, 2) == (Answer.PROVED, Answer.PROVED)


class Idle(Protocol):
    """Goes through its rounds and does nothing."""

    @role
    async def worker(self, core: Core) -> None:
        for _ in core.rounds():
            pass


def test_rounds_without_an_operation_are_not_decided() -> None:
    """Who waits for nobody and does nothing is never done with its first step: this is said."""
    assert answers(Idle, 2) == (Answer.UNDECIDED, Answer.PROVED)


class InOtherLoops(Protocol):
    """The rounds of a core, held in a variable, which a range would allow to use again."""

    what: str = parameter("again", "how they are used")

    @role
    async def worker(self, core: Core) -> None:
        rounds = core.rounds()
        for round in rounds:
            await core.barrier()
            if self.what == "inside":
                for first in rounds:
                    core.check(round != first, "the first round again")
                    break
            elif self.what == "looked into":
                core.check(round + 1 not in rounds, "there is a next round")
        if self.what == "again":
            for _ in rounds:
                core.check(False, "the rounds once more")


@pytest.mark.parametrize("what", ["again", "inside", "looked into"])
def test_rounds_that_are_used_twice_are_not_proved(what: str) -> None:
    """A range begins again with each loop, and is not used up by a look into it."""
    assert answers(InOtherLoops, 2, what=what) == (Answer.UNDECIDED, Answer.VIOLATED)


class ChosenInACondition(Protocol):
    """Each round rank 1 waits for what the condition itself chooses; rank 0 sends 1, or that."""

    asks: bool = parameter(True, "the sender sends what is chosen")

    def memory(self) -> None:
        self.flag = Region(owner=1, block=32)

    @role(on=[0])
    async def sender(self, core: Core) -> None:
        for round in core.rounds():
            number = core.choose(("number", round), (1, 2)) if self.asks else 1
            await core.put(self.flag[1], (number, round))
            await core.barrier()

    @role(on=[1])
    async def receiver(self, core: Core) -> None:
        for round in core.rounds():
            await core.wait_until(
                self.flag[1],
                lambda held: (
                    held != 0
                    and held[1] == round  # noqa: B023 - it is asked in this round
                    and held[0] == core.choose(("number", round), (1, 2))  # noqa: B023
                ),
            )
            await core.barrier()


def test_a_wait_that_its_choice_does_not_let_pass_is_a_hang() -> None:
    """The answers under which a condition does not hold are answers too."""
    assert answers(ChosenInACondition, 1, asks=False) == (Answer.VIOLATED, Answer.VIOLATED)
    assert answers(ChosenInACondition, 2, asks=True) == (Answer.PROVED, Answer.PROVED)


def _is_not_the_third(_: int, round: int) -> bool:
    try:
        return round != 2
    except Exception:
        return True


class CaughtInAGhost(Protocol):
    """The function of a ghost catches the error of a comparison that is not covered."""

    def memory(self) -> None:
        self.seen = Ghost(0)

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            core.ghost_check(self.seen, _is_not_the_third, round, message="the third round")
            await core.barrier()


def test_an_error_that_a_ghost_catches_is_seen() -> None:
    """As one that a role catches is."""
    assert answers(CaughtInAGhost, 3) == (Answer.UNDECIDED, Answer.VIOLATED)
