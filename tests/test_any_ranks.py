"""Any number of ranks from the proof of two: what it covers, and what it must refuse."""

from __future__ import annotations

from itertools import islice, repeat
from random import Random

import pytest

from syncproof.checkers.any_ranks.argument import proved_for_many
from syncproof.checkers.any_ranks.check import check
from syncproof.checkers.explicit.check import check as explicit
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.checkers.explicit.search import Budget
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import RANK, Region
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.verdict import Answer, Verdict
from syncproof.protocols.dc import DataForChecksum
from syncproof.protocols.sp import SentinelPolling
from syncproof.protocols.sw import StopAndWait
from syncproof.protocols.tff import TokenFlagFusion
from tests.random_uniform import random_uniform

CM384 = load_profile("cm384")


def any_ranks(
    kind: type[Protocol], rounds: int = 2, routing: str = "balanced", profile: Profile = CM384,
    **settings: bool | int | str,
) -> Verdict:  # fmt: skip
    instance = Instance(kind, Bounds(2, 1, rounds, routing=routing), profile, settings)
    return check(instance, question_of(instance, kind.__name__))


def at(ranks: int, kind: type[Protocol], rounds: int = 2, **settings: bool | int | str) -> Verdict:
    instance = Instance(kind, Bounds(ranks, 1, rounds), CM384, settings)
    return explicit(instance, question_of(instance, kind.__name__))


def reason(verdict: Verdict) -> str:
    return next(each.detail for each in verdict.properties if each.answer is Answer.UNDECIDED)


@pytest.mark.parametrize("kind", [SentinelPolling, TokenFlagFusion, StopAndWait, DataForChecksum])
def test_the_data_as_flag_protocols_hold_for_any_number_of_ranks(kind: type[Protocol]) -> None:
    """All properties are proved, and every premise is listed."""
    verdict = any_ranks(kind)
    assert verdict.answer is Answer.PROVED
    assert sum(note.startswith("premise: ") for note in verdict.notes) == 6


def test_every_pattern_of_traffic_of_the_pair_is_covered() -> None:
    """With all routings each pair may have any of the patterns that two ranks have."""
    assert any_ranks(SentinelPolling, rounds=1, routing="all").answer is Answer.PROVED
    assert any_ranks(SentinelPolling, counts=False).answer is Answer.PROVED


def test_what_two_ranks_break_is_violated() -> None:
    """Two ranks are a number of ranks: their counterexample is one."""
    verdict = any_ranks(SentinelPolling, rounds=3, windows=1)
    assert verdict.answer is Answer.VIOLATED and verdict.trace is not None


# The counterexamples of C2: correct at two ranks, wrong at more


class Mailbox(Protocol):
    """Each rank puts a token into the mailbox of every other, acknowledged before the next one."""

    slots: str = parameter("source", "which slot a source uses", ("source", "one", "modulo"))

    def memory(self) -> None:
        shape = (RANK,) if self.slots == "source" else (1 if self.slots == "one" else 4,)
        self.box = Region(index=shape, initial=0)
        self.flag = Region(index=shape, block=32, fields={"flag": 32}, initial=0)

    def place(self, source: int) -> int:
        """The slot of a source at its receiver."""
        if self.slots == "source":
            return source
        return 0 if self.slots == "one" else source % 4

    @role
    async def sender(self, core: Core) -> None:
        for peer in core.destinations():
            place = self.place(core.rank)
            await core.put(self.box[peer][place], core.payload(peer, 0, 0))
            await core.quiet()
            await core.put(self.flag[peer][place], 1)
        await core.quiet()

    @role
    async def receiver(self, core: Core) -> None:
        for source in core.sources():
            place = self.place(source)
            await core.wait_until(self.flag[core.rank][place], lambda flag: flag == 1)
            core.consume(await core.load(self.box[core.rank][place]), source, 0, 0)


class ArrivalCounter(Protocol):
    """One counter of arrivals for all sources: wait until all but this one have arrived."""

    def memory(self) -> None:
        self.box = Region(index=(RANK,), initial=0)
        self.arrived = Region(block=32, fields={"count": 32}, initial=0)

    @role
    async def sender(self, core: Core) -> None:
        for peer in core.destinations():
            await core.put(self.box[peer][core.rank], core.payload(peer, 0, 0))
            await core.quiet()
            await core.add(self.arrived[peer], 1)
        await core.quiet()

    @role
    async def receiver(self, core: Core) -> None:
        await core.wait_until(self.arrived[core.rank], lambda count: count == core.ranks - 1)
        for source in core.sources():
            core.consume(await core.load(self.box[core.rank][source]), source, 0, 0)


class OneArrival(ArrivalCounter):
    """The same, content with the first arrival, which at two ranks is all there is."""

    @role
    async def receiver(self, core: Core) -> None:
        await core.wait_until(self.arrived[core.rank], lambda count: count >= 1)
        for source in core.sources():
            core.consume(await core.load(self.box[core.rank][source]), source, 0, 0)


def test_a_slot_without_its_source_is_refused() -> None:
    """Correct at two ranks and wrong at three: more than two ranks access one block (P1)."""
    assert at(2, Mailbox, 1, slots="one").answer is Answer.PROVED
    assert at(3, Mailbox, 1, slots="one").answer is Answer.VIOLATED
    verdict = any_ranks(Mailbox, 1, slots="one")
    assert verdict.answer is Answer.UNDECIDED
    assert "more than two ranks may access one block" in reason(verdict)
    assert any_ranks(Mailbox, 1, slots="source").answer is Answer.PROVED


def test_a_slot_by_arithmetic_on_its_source_is_refused() -> None:
    """``source % 4`` is right up to four ranks and wrong at five: ranks are opaque (P5)."""
    assert at(2, Mailbox, 1, slots="modulo").answer is Answer.PROVED
    assert "a rank is used as a number" in reason(any_ranks(Mailbox, 1, slots="modulo"))


def test_one_counter_of_arrivals_is_refused() -> None:
    """A counter that all sources add to is a block of more than two ranks (P1)."""
    assert at(2, OneArrival, 1).answer is Answer.PROVED
    assert at(3, OneArrival, 1).answer is Answer.VIOLATED
    assert "more than two ranks may access one block" in reason(any_ranks(OneArrival, 1))
    assert any_ranks(ArrivalCounter, 1).answer is Answer.UNDECIDED


# Deadlock


class Ring(Protocol):
    """Each rank sends to a peer and waits for its answer before it turns to the next."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=32, fields={"flag": 32}, initial=0)

    @role
    async def worker(self, core: Core) -> None:
        for peer in core.destinations():
            await core.put(self.flag[peer][core.rank], 1)
            await core.wait_until(self.flag[core.rank][peer], lambda flag: flag == 1)
        await core.quiet()


class AllThenAll(Ring):
    """Each rank sends to all peers before it waits for any."""

    @role
    async def worker(self, core: Core) -> None:
        for peer in core.destinations():
            await core.put(self.flag[peer][core.rank], 1)
        await core.quiet()
        for peer in core.sources():
            await core.wait_until(self.flag[core.rank][peer], lambda flag: flag == 1)
        await core.quiet()


def test_a_ring_of_waits_is_refused() -> None:
    """Two ranks never wait for each other, three do in a ring: deadlock is not decided."""
    assert at(2, Ring, 1).answer is Answer.PROVED
    assert at(3, Ring, 1).answer is Answer.VIOLATED
    verdict = any_ranks(Ring, 1)
    undecided = [each for each in verdict.properties if each.answer is Answer.UNDECIDED]
    assert [each.property for each in undecided] == ["deadlock-free"]
    assert "in a ring" in undecided[0].detail
    assert any_ranks(AllThenAll, 1).answer is Answer.PROVED


# Ways to tell how many ranks there are


class Disguised(Protocol):
    """A put to the first block of each peer, and somewhere something that counts ranks."""

    how: str = parameter("plain", "how ranks are counted")

    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=32, fields={"flag": 32}, initial=0)

    @role
    async def worker(self, core: Core) -> None:
        met, peers = 0, core.destinations()
        kept: list[int] = []
        if self.how == "length":
            met = len(core.destinations())
        elif self.how == "list":
            met = len([*core.destinations()])
        elif self.how == "tuple":
            met = len(tuple(core.destinations()))
        elif self.how == "comprehension":
            met = len([0 for _ in core.destinations()])
        elif self.how == "generator":
            met = sum(1 for _ in core.destinations())
        elif self.how == "enumerate":
            for number, _ in enumerate(core.destinations()):
                met = number
        elif self.how == "islice":
            for _ in islice(core.destinations(), 2):
                await core.quiet()
        elif self.how == "zip":
            for _ in zip(repeat(0, 2), core.destinations(), strict=False):
                await core.quiet()
        elif self.how == "unpacking":
            (_,) = core.destinations()
        elif self.how == "any":
            met = any(peer == core.rank for peer in core.destinations())
        elif self.how == "iter":
            next(iter(core.destinations()))
        elif self.how == "set":
            met = len({core.rank, *core.sources()})
        elif self.how == "dict":
            met = len(dict.fromkeys(core.sources()))
        elif self.how == "truth":
            met = 1 if core.rank else 0
        elif self.how == "text":
            met = len(f"{core.rank}")
        elif self.how == "index":
            met = [0, 1, 2][core.rank]
        elif self.how == "ranks":
            met = core.ranks
        elif self.how == "bounds":
            met = self.bounds.ranks
        elif self.how == "experts":
            met = self.bounds.experts_in_all
        elif self.how == "first":
            met = core.rank == 0
        elif self.how == "entries":
            met = len(core.per_rank().entries)
        elif self.how == "bounds as text":
            met = len(str(self.bounds))
        elif self.how == "region":
            met = self.flag.ranks
        elif self.how == "extents":
            met = self.flag.extents[0]
        for peer in peers:
            if self.how == "counter":
                met += 1
            elif self.how == "appended":
                kept.append(0)
            elif self.how == "two others":
                kept.append(peer)
                met += kept[0] == peer
            await core.put(self.flag[peer][core.rank], 1)
        await core.quiet()
        if met > 1 or len(kept) > 1:
            await core.put(self.flag[core.rank][core.rank], 2)
            await core.quiet()


# fmt: off
COUNTING = [
    "length", "list", "tuple", "comprehension", "generator", "enumerate", "islice", "zip",
    "unpacking", "any", "iter", "set", "dict", "truth", "text", "index", "ranks", "bounds",
    "experts", "first", "region", "extents", "counter", "appended", "two others", "entries",
    "bounds as text",
]
# fmt: on


def test_a_role_that_counts_no_ranks_is_covered() -> None:
    """What the next test refuses is refused for what it does to count ranks."""
    assert any_ranks(Disguised, 1, how="plain").answer is Answer.PROVED


@pytest.mark.parametrize("how", COUNTING)
def test_a_role_that_counts_ranks_is_refused(how: str) -> None:
    """What depends on how many ranks there are, or which one this is, is never proved."""
    assert any_ranks(Disguised, 1, how=how).answer is not Answer.PROVED


class Caught(Disguised):
    """Catches what the number of ranks raises."""

    @role
    async def worker(self, core: Core) -> None:
        try:
            met = core.ranks + 0
        except Exception:
            met = 0
        core.check(met < 3, "three ranks")
        await core.quiet()


class Typed(Disguised):
    """Asks what a rank is made of."""

    @role
    async def worker(self, core: Core) -> None:
        if type(core.rank) is not int:
            core.check(False, "a rank is no number")
        await core.quiet()


def test_a_role_that_asks_what_a_rank_is_or_hides_an_error_is_refused() -> None:
    """It would see that it is no number."""
    assert "type()" in reason(any_ranks(Typed, 1))
    assert "a handler of exceptions" in reason(any_ranks(Caught, 1))


class OnlyTheSixth(Protocol):
    """Does wrong from the sixth turn of a loop on, in which the first five do nothing."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=32, fields={"flag": 32}, initial=0)

    @role
    async def worker(self, core: Core) -> None:
        met = 0
        for peer in core.destinations():
            met = met + 1
            if met > 5:
                await core.put(self.flag[peer][core.rank], 1)
        met = 0
        await core.quiet()


def test_turns_without_an_operation_are_not_taken_to_be_all_alike() -> None:
    """A counter that is forgotten behind the loop is seen at the head of the loop."""
    assert "keeps count of the ranks" in reason(any_ranks(OnlyTheSixth, 1))


def campaign(seeds: range) -> tuple[int, int]:
    """Random protocols: how many properties were proved for any number of ranks, and how many of
    those three ranks break."""
    proved = wrong = 0
    for seed in seeds:
        kind = random_uniform(Random(seed))
        of_any = {p.property: p.answer for p in any_ranks(kind, 1).properties}
        if Answer.PROVED not in of_any.values():
            continue
        instance = Instance(kind, Bounds(3, 1, 1), CM384, {})
        question = question_of(instance, "random")
        for each in explicit(instance, question, "reduced", Budget(states=20_000)).properties:
            if of_any.get(each.property) is Answer.PROVED and each.answer is not Answer.UNDECIDED:
                proved += 1
                wrong += each.answer is Answer.VIOLATED
    return proved, wrong


def test_random_protocols_that_are_proved_hold_at_three_ranks() -> None:
    """What is proved for any number of ranks is proved, or not decided, at three."""
    proved, wrong = campaign(range(60))
    assert (proved > 20, wrong) == (True, 0)


@pytest.mark.long
def test_many_random_protocols_that_are_proved_hold_at_three_ranks() -> None:
    """The same, 3,000 of them."""
    proved, wrong = campaign(range(1000, 4000))
    print(f"{proved} properties proved for any number of ranks, {wrong} broken at three")
    assert (proved > 1000, wrong) == (True, 0)


class LastIsFirst(Disguised):
    """Holds each rank of a second loop against the last of the first: at two ranks they are one."""

    @role
    async def worker(self, core: Core) -> None:
        last = core.rank
        for peer in core.destinations():
            await core.put(self.flag[peer][core.rank], 1)
            last = peer
        await core.quiet()
        for peer in core.destinations():
            core.check(peer == last, "another rank")


def test_what_is_said_in_a_turn_without_an_operation_counts() -> None:
    """A check that only fails for another rank is seen."""
    assert at(2, LastIsFirst, 1).answer is Answer.PROVED
    assert at(3, LastIsFirst, 1).answer is Answer.VIOLATED
    assert any_ranks(LastIsFirst, 1).answer is Answer.UNDECIDED


@pytest.mark.long
@pytest.mark.parametrize("kind", [SentinelPolling, TokenFlagFusion, StopAndWait, DataForChecksum])
def test_mutants_that_are_proved_from_two_hold_at_three_ranks(kind: type[Protocol]) -> None:
    """Of the mutants that two ranks are said to decide none is violated at three."""
    base = Instance(kind, Bounds(3, 1, 2), CM384, {})
    answers = []
    for mutant in find_mutants(base):
        made, question = mutant.applied(base), question_of(base, kind.name)
        if proved_for_many(made, question, Budget(), None) is not None:
            answers.append(explicit(made, question, "reduced").answer)
    assert answers and {*answers} == {Answer.PROVED}
