"""Rounds that are multiplied and divided: values of one scale move alike, and no others meet."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import lcm
from typing import Any

import pytest

from syncproof.checkers.explicit.check import Budget, check, question_of
from syncproof.checkers.unbounded import channel, frames, invariant_check, spacer_check
from syncproof.checkers.unbounded.check import check as check_unbounded
from syncproof.models import rounds as round_module
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, Setting, parameter, role
from syncproof.models.rounds import OutsideRounds, Round
from syncproof.models.verdict import Answer, Verdict
from syncproof.protocols.ubep import Ubep

PROVED, VIOLATED, UNDECIDED = Answer.PROVED, Answer.VIOLATED, Answer.UNDECIDED
Patch = pytest.MonkeyPatch
Use = Callable[[Any], Any]

USES: dict[str, tuple[Use, Fraction]] = {
    "r": (lambda r: r, Fraction(1)),
    "2 * r + 1": (lambda r: 2 * r + 1, Fraction(2)),
    "r * 2 - 3": (lambda r: r * 2 - 3, Fraction(2)),
    "r // 3": (lambda r: r // 3, Fraction(1, 3)),
    "(r + 1) // 2": (lambda r: (r + 1) // 2, Fraction(1, 2)),
    "(2 * r + 1) // 2": (lambda r: (2 * r + 1) // 2, Fraction(1)),
    "3 * (r // 2)": (lambda r: 3 * (r // 2), Fraction(3, 2)),
    "divmod": (lambda r: divmod(r, 4)[0], Fraction(1, 4)),
}


# The type


@pytest.mark.parametrize("use", USES)
def test_it_gives_what_numbers_give(use: str) -> None:
    """The value at a round is that of numbers, and moves by its scale when all rounds move."""
    function, scale = USES[use]
    for r, k in product(range(12), range(-3, 4)):
        found = function(Round(r))
        assert (found.number_, found.scale_) == (function(r), scale)
        assert found.moved_(12 * k).number_ == function(r + 12 * k)


@pytest.mark.parametrize(("one", "other"), list(product(USES, USES)))
def test_comparisons_come_out_alike_in_all_rounds(one: str, other: str) -> None:
    """Two of one scale are compared as numbers are, and as they are twelve rounds later; two of
    unlike scales are not compared: later it would come out otherwise."""
    (first, scale), (second, its_scale) = USES[one], USES[other]
    for r, s in product(range(6), range(6)):
        left, right = first(Round(r)), second(Round(s))
        for test in (lambda a, b: a < b, lambda a, b: a == b, lambda a, b: a - b):
            if scale != its_scale:
                with pytest.raises(OutsideRounds):
                    test(left, right)
            else:
                expected = test(first(r), second(s))
                assert test(left, right) == expected == test(first(r + 12), second(s + 12))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("modulus", [1, 2, 3, 4])
def test_the_common_multiple_is_enough(use: str, modulus: int) -> None:
    """A residue is the same when all rounds move by what the type asks B to be a multiple of."""
    function, _ = USES[use]
    needed = [1]

    def note(test: str, one: Any, other: Any, found: Any) -> None:
        if test == "scale":
            needed.append(other)
        elif test == "%":
            needed.append((Fraction(one.scale_) / other).denominator)

    for r in range(24):
        assert function(Round(r, 0, note)) % modulus == function(r) % modulus
        assert function(r + lcm(*needed)) % modulus == function(r) % modulus


@pytest.mark.parametrize("use", USES)
def test_what_is_long_past_is_below_what_is_not(use: str) -> None:
    """Of a value of a round before the horizon it is only known that it is below all others."""
    function, _ = USES[use]
    for r, horizon in product(range(12), range(12)):
        value = function(Round(r))
        if value.when_ < horizon:
            old = value.old_(horizon)
            for s in range(r, r + 12):
                later = function(Round(s))
                if later.number_ >= old.number_:
                    assert old != later and old < later and value.number_ < later.number_
        else:
            assert value.number_ >= value.old_(horizon).number_


# Protocols


class Phases(Protocol):
    """A slot for each turn, with a flag that names the pass over the slots, or its parity."""

    what: str = parameter("parity", "what the flag says")
    slots: int = parameter(2, "slots used in turn")

    def memory(self) -> None:
        self.flag = Region(index=(RANK, self.slots), block=32)
        self.data = Region(index=(RANK, self.slots), fields={"payload": 512}, compared=())

    def said(self, round: Any) -> Any:
        match self.what:
            case "parity":
                return 1 + round // self.slots % 2
            case "parity of rounds":
                return 1 + round % 2
            case "pass":
                return round // self.slots + 1
            case "named":
                return "pass", round // self.slots
            case "half as fast":
                return round // (2 * self.slots) + 1
            case "twice":
                return 2 * round + 1
        return 1

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            turn, said = round % self.slots, self.said(round)
            for peer in core.destinations():
                await core.put(self.data[peer][core.rank, turn], core.payload(peer, 0, round))
                await core.quiet()
                await core.put(self.flag[peer][core.rank, turn], said)
            for peer in core.sources():
                mine = self.flag[core.rank][peer, turn]
                await core.wait_until(mine, lambda found, said=said: found == said)
                block = await core.load(self.data[core.rank][peer, turn])
                core.consume(block, source=peer, token=0, round=round)
            await core.sync("all")
        await core.quiet()


class TwoCalls(Protocol):
    """Two handshakes in each round, by one flag that counts calls, as `ubep` does."""

    at_least: bool = parameter(False, "a later call will do")
    second: int = parameter(1, "what the second call adds")
    slots: int = parameter(2, "slots used in turn")

    def memory(self) -> None:
        self.flag = Region(index=(RANK, self.slots), block=32)
        self.data = Region(index=(RANK, self.slots), fields={"payload": 512}, compared=())

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            await self.call(core, 2 * round)
            await self.call(core, 2 * round + self.second)
        await core.quiet()

    async def call(self, core: Core, call: int) -> None:
        for peer in core.destinations():
            await core.put(
                self.data[peer][core.rank, call % self.slots], core.payload(peer, 0, call)
            )
            await core.quiet()
            await core.put(self.flag[peer][core.rank, call % self.slots], call + 1)
        for peer in core.sources():
            mine = self.flag[core.rank][peer, call % self.slots]
            if self.at_least:
                await core.wait_until(mine, lambda found: found >= call + 1)
            else:
                await core.wait_until(mine, lambda found: found == call + 1)
            block = await core.load(self.data[core.rank][peer, call % self.slots])
            core.consume(block, source=peer, token=0, round=call)


class Seldom(Protocol):
    """A mark that is left behind in rounds that are chosen, and looked at in each."""

    def memory(self) -> None:
        self.mark = Region(index=(RANK,), block=32)

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            for peer in core.destinations():
                if core.rank == 0 and core.choose(("marked", round), (False, True)):
                    await core.put(self.mark[peer][core.rank], 2 * round + 1)
                    await core.quiet()
                await core.barrier("all")
                found = await core.load(self.mark[core.rank][peer])
                core.check(found <= 2 * round + 1, "the mark is of a later round")
                await core.barrier("all")


class Overtaking(Protocol):
    """A check on two values of unlike scales that holds in the first rounds and no later."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=32)

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            core.check(2 * round < round + 5, "the double is ahead")
            await core.barrier("all")


def instance_of(kind: type[Protocol], routing: str = "balanced", **settings: Setting) -> Instance:
    return Instance(kind, Bounds(routing=routing), Profile("cm384"), settings)


def unbounded(instance: Instance, states: int = 10_000) -> Verdict:
    question = question_of(instance, "x")
    return check_unbounded(instance, question, "quotient", Budget(states=states))


def bounded(instance: Instance, rounds: int) -> Answer:
    made = dataclasses.replace(instance, bounds=dataclasses.replace(instance.bounds, rounds=rounds))
    return check(made, question_of(made, "x"), "reduced", Budget(states=50_000)).answer


CASES = (
    (Phases, {"what": "parity"}, PROVED),
    (Phases, {"what": "parity", "slots": 3}, PROVED),
    (Phases, {"what": "parity", "slots": 1}, PROVED),
    (Phases, {"what": "pass"}, PROVED),
    (Phases, {"what": "named", "slots": 4}, PROVED),
    (Phases, {"what": "twice"}, PROVED),
    (Phases, {"what": "parity of rounds"}, VIOLATED),
    (Phases, {"what": "half as fast"}, VIOLATED),
    (Phases, {"what": "constant"}, VIOLATED),
    (Seldom, {}, PROVED),
    (TwoCalls, {}, PROVED),
    (TwoCalls, {"at_least": True}, PROVED),
    (TwoCalls, {"at_least": True, "slots": 3}, PROVED),
    (TwoCalls, {"second": 2}, VIOLATED),
    (TwoCalls, {"slots": 1}, VIOLATED),
    (TwoCalls, {"slots": 1, "at_least": True}, VIOLATED),
    (Ubep, {"windows": 1}, VIOLATED),
    (Ubep, {}, PROVED),
    pytest.param(Ubep, {"data": "dc"}, PROVED, marks=pytest.mark.long),
)


@pytest.mark.parametrize(("kind", "settings", "expected"), CASES)
def test_answered_as_in_one_to_three_rounds(
    kind: type[Protocol], settings: dict[str, Setting], expected: Answer
) -> None:
    """What some number of rounds refutes is refuted for any, and nothing else."""
    instance = instance_of(kind, **settings)
    runs = [bounded(instance, rounds) for rounds in (1, 2, 3)]
    assert (VIOLATED in runs) == (expected is VIOLATED)
    assert unbounded(instance).answer is expected


@pytest.mark.parametrize("engine", [invariant_check, spacer_check])
def test_other_engines_leave_it_undecided(engine: Any) -> None:
    """z3's invariant and Spacer's cuts know rounds of scale one only, and say so by name."""
    instance = instance_of(TwoCalls)
    question = question_of(instance, "x")
    question = dataclasses.replace(question, properties=("happens-before",))
    verdict = engine.check(instance, question, "x", Budget(states=10_000, seconds=60))
    assert verdict.answer is UNDECIDED
    assert any("multiplied or divided" in each.detail for each in verdict.properties)


# Faults


def moves_are_not_scaled(patch: Patch) -> None:
    """Every value moves by as much as the rounds do."""
    for module in (round_module, channel):
        patch.setattr(module, "by_scale", lambda by, scale: by)


def divisors_do_not_count(patch: Patch) -> None:
    """B need not be a multiple of what a round is divided by."""
    note = channel.Channel.note

    def without(self: Any, test: str, one: Any, other: Any, found: Any) -> None:
        if test == "%":
            one = Round(one.number_)
        if test != "scale":
            note(self, test, one, other, found)

    patch.setattr(channel.Channel, "note", without)


def fingerprints_are_not_scaled(patch: Patch) -> None:
    """What a role keeps is compared with its own round as if it moved by one."""
    write = frames.RoundIdentity._round

    def unscaled(self: Any, walk: Any, each: Any) -> None:
        write(self, walk, each)
        self._places[-1] = (self._places[-1][0], 1)

    patch.setattr(frames.RoundIdentity, "_round", unscaled)


def answer_or_error(instance: Instance) -> Answer | Exception:
    try:
        return unbounded(instance, states=300).answer
    except (AssertionError, KeyError) as error:
        return error


NOTICED: tuple[tuple[Callable[[Patch], None], type[Protocol], dict[str, Setting]], ...] = (
    (moves_are_not_scaled, Phases, {"what": "pass"}),
    (moves_are_not_scaled, TwoCalls, {}),
    (divisors_do_not_count, Phases, {"what": "parity"}),
    (fingerprints_are_not_scaled, TwoCalls, {}),
)


@pytest.mark.parametrize(
    ("fault", "kind", "settings"), NOTICED, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_planted_fault_is_noticed(
    fault: Callable[[Patch], None],
    kind: type[Protocol],
    settings: dict[str, Setting],
    monkeypatch: Patch,
) -> None:
    """With a fault in how values move what holds is not proved any more."""
    instance = instance_of(kind, **settings)
    assert answer_or_error(instance) is PROVED
    fault(monkeypatch)
    assert answer_or_error(instance) is not PROVED


def test_ages_that_are_not_scaled_are_noticed(monkeypatch: Patch) -> None:
    """A value that is taken to be of the round that it is as a number is not below all others."""
    monkeypatch.setattr(Round, "when_", property(lambda self: self.number_))
    with pytest.raises(AssertionError):
        test_what_is_long_past_is_below_what_is_not("r // 3")


def test_unlike_scales_would_be_compared_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that fails in the second round only is refused; were it answered, as it comes out
    in the first rounds that are looked at, moving would change the answer."""
    instance = instance_of(Overtaking)
    assert bounded(instance, 9) is VIOLATED
    refused = unbounded(instance)
    assert refused.answer is UNDECIDED
    assert any("a round times" in each.detail for each in refused.properties)
    monkeypatch.setattr(Round, "_alike", lambda *_: None)
    assert unbounded(instance).answer is PROVED
