"""Any number of ranks from the proof of two: what it covers, and what it must refuse."""

from __future__ import annotations

import pytest

from syncproof.checkers.any_ranks.check import check
from syncproof.checkers.explicit.check import check as explicit
from syncproof.checkers.explicit.check import question_of
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

CM384 = load_profile("cm384")


def any_ranks(
    kind: type[Protocol], rounds: int = 2, routing: str = "balanced", profile: Profile = CM384,
    **settings: bool | int | str,
) -> Verdict:  # fmt: skip
    instance = Instance(kind, Bounds(2, 1, rounds, routing=routing), profile, settings)
    return check(instance, question_of(instance, kind.__name__))


def at(
    ranks: int, kind: type[Protocol], rounds: int = 2, **settings: bool | int | str
) -> Verdict:
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
