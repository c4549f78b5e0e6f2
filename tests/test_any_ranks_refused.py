"""Protocols that are right at two ranks and wrong at three, and were once called proved for any."""

from __future__ import annotations

from typing import Any

import pytest

from syncproof.checkers.any_ranks import roles
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.verdict import Answer
from tests.test_any_ranks import any_ranks, at, reason


def flags(*index: Any) -> Region:
    return Region(index=index, block=32, fields={"flag": 32}, initial=0)


def one(value: Any) -> bool:
    return bool(value == 1)


class Flags(Protocol):
    """A flag of each rank for each rank, and one of its own."""

    def memory(self) -> None:
        self.flag, self.back, self.own = flags(RANK), flags(RANK), flags()


class SyncRing(Flags):
    """A core waits for a third rank before a sync, at which the pair already sees it."""

    def first(self, core: Core, source: int, target: int) -> Any:
        """A free choice of each pair: who goes first."""
        return core.choose(("first", source, target), (0, 1))

    @role
    async def sender(self, core: Core) -> None:
        for peer in core.destinations():
            if self.first(core, core.rank, peer):
                await core.wait_until(self.back[core.rank][peer], one)
        for peer in core.destinations():
            if not self.first(core, core.rank, peer):
                await core.put(self.flag[peer][core.rank], 1)
        await core.quiet()

    @role(instances=2)
    async def receiver(self, core: Core) -> None:
        if core.index == 1:
            for peer in core.sources():
                if not self.first(core, peer, core.rank):
                    await core.wait_until(self.flag[core.rank][peer], one)
            await core.sync("role")
        else:
            await core.sync("role")
            for peer in core.sources():
                if self.first(core, peer, core.rank):
                    await core.put(self.back[peer][core.rank], 1)
            await core.quiet()


class SweepFence(Flags):
    """Waits in a ring, by polling behind a fence."""

    @role
    async def worker(self, core: Core) -> None:
        for peer in core.destinations():
            await core.put(self.flag[peer][core.rank], 1)
            flag = self.flag[core.rank][peer]

            async def sweep(flag: Any = flag) -> Any:
                await core.fence()
                return await core.load(flag) or None

            await core.poll_until(sweep)
        await core.quiet()


class SweepSync(Flags):
    """A sync within a sweep, for a core that waits in a ring."""

    @role
    async def sender(self, core: Core) -> None:
        for peer in core.destinations():
            await core.put(self.flag[peer][core.rank], 1)
            await core.wait_until(self.back[core.rank][peer], one)
        await core.quiet()

    @role(instances=2)
    async def receiver(self, core: Core) -> None:
        if core.index == 1:
            for peer in core.sources():
                await core.wait_until(self.flag[core.rank][peer], one)
            await core.sync("role")
        else:

            async def sweep() -> int:
                await core.load(self.own[core.rank])
                await core.sync("role")
                return 1

            await core.poll_until(sweep)
            for peer in core.sources():
                await core.put(self.back[peer][core.rank], 1)
            await core.quiet()


class QuietForever(Flags):
    """Goes on for ever once it has met two other ranks."""

    @role
    async def worker(self, core: Core) -> None:
        some = several = False
        for peer in core.destinations():
            several, some = some, True
            await core.put(self.flag[peer][core.rank], 1)
        await core.quiet()
        while several:
            await core.quiet()


class Broadcast(Flags):
    """One token of a rank for all the others: consumed once among two."""

    def memory(self) -> None:
        super().memory()
        self.box = Region(index=(RANK,), initial=0)

    @role
    async def sender(self, core: Core) -> None:
        token = core.payload(core.rank, 0, 0)
        for peer in core.destinations():
            await core.put(self.box[peer][core.rank], token)
        await core.quiet()
        for peer in core.destinations():
            await core.put(self.flag[peer][core.rank], 1)
        await core.quiet()

    @role
    async def receiver(self, core: Core) -> None:
        for source in core.sources():
            await core.wait_until(self.flag[core.rank][source], one)
            core.consume(await core.load(self.box[core.rank][source]), source, 0, 0, owner=source)


class PairRace(Flags):
    """A race at two ranks says nothing of what else holds at three."""

    @role
    async def worker(self, core: Core) -> None:
        for peer in core.destinations():
            await core.put(self.own[peer], 1)
        await core.quiet()
        await core.load(self.own[core.rank])
        core.check(core.ranks < 3, "three ranks")


class MissingEntry(Flags):
    """Counts the entries that are missing, by what a lookup raises."""

    @role
    async def worker(self, core: Core) -> None:
        met, told = 0, core.per_rank()
        for peer in core.destinations():
            await core.put(self.flag[peer][core.rank], 1)
            try:
                told[peer]
            except KeyError:
                met += 1
        await core.quiet()
        core.check(met < 2, "two others")


class SharedEntry(Flags):
    """One list is the entry of all ranks."""

    @role
    async def worker(self, core: Core) -> None:
        told, shared = core.per_rank(), list[int]()
        for peer in core.destinations():
            told[peer] = shared
        for peer in core.destinations():
            told[peer].append(1)
        several = len(shared) > 1
        await core.quiet()
        core.check(not several, "two others")


class CountedTwice(Flags):
    """Goes through the same rounds twice."""

    @role
    async def worker(self, core: Core) -> None:
        rounds = core.rounds()
        some = several = False
        for _ in rounds:
            for peer in core.destinations():
                several, some = some, True
                await core.put(self.flag[peer][core.rank], 1)
        await core.quiet()
        for _ in rounds:
            core.check(not several, "two others")


class SizeInMemory(Flags):
    """Asks its memory how many ranks there are."""

    def memory(self) -> None:
        super().memory()
        self.several = self.flag.blocks > 2

    @role
    async def worker(self, core: Core) -> None:
        core.check(not self.several, "three ranks")
        await core.quiet()


class IsTuple(Flags):
    """Asks whether all ranks are a tuple, and how long it is."""

    @role
    async def worker(self, core: Core) -> None:
        peers = core.destinations()
        core.check(not (isinstance(peers, tuple) and len(peers) > 1), "two others")
        await core.quiet()


class Matched(Flags):
    """The same by a pattern."""

    @role
    async def worker(self, core: Core) -> None:
        match core.destinations():
            case [_, _, *_]:
                core.check(False, "two others")
        await core.quiet()


class SignedZeros(Flags):
    """Counts by the signs of zeros, which are equal."""

    @role
    async def worker(self, core: Core) -> None:
        x, y, begun, wrong = float("0"), float("0"), False, False
        for _ in core.destinations():
            if not begun:
                begun = True
            elif str(y) == "0.0":
                y = -y
            elif str(x) == "0.0":
                x, y = -x, -y
            else:
                wrong = True
        await core.quiet()
        core.check(not wrong, "six ranks")


@pytest.mark.parametrize(
    "kind",
    [
        SyncRing,
        SweepFence,
        SweepSync,
        QuietForever,
        Broadcast,
        MissingEntry,
        SharedEntry,
        CountedTwice,
        SizeInMemory,
        IsTuple,
        Matched,
    ],
)
def test_what_three_ranks_break_is_not_proved(kind: type[Protocol]) -> None:
    """Two ranks are right and three are wrong, which only "not decided" leaves open."""
    assert at(2, kind, 1).answer is Answer.PROVED
    wrong = [p.property for p in at(3, kind, 1).properties if p.answer is Answer.VIOLATED]
    of_any = {p.property: p.answer for p in any_ranks(kind, 1).properties}
    assert wrong and all(of_any[each] is Answer.UNDECIDED for each in wrong)


def test_what_six_ranks_break_is_not_proved() -> None:
    """Equal zeros of other signs are two local states."""
    assert any_ranks(SignedZeros, 1).answer is Answer.UNDECIDED


def test_nothing_is_proved_where_two_ranks_break_something() -> None:
    """What holds at two ranks is then not carried over to more."""
    answers = {each.property: each.answer for each in any_ranks(PairRace, 1).properties}
    assert answers["race-free"] is Answer.VIOLATED and Answer.PROVED not in answers.values()


class ConditionAsks(Flags):
    """A condition looks up what is kept of a rank."""

    @role
    async def worker(self, core: Core) -> None:
        told = core.per_rank()
        for peer in core.destinations():
            told[peer] = 1
            await core.put(self.flag[peer][core.rank], 1)
        await core.quiet()
        for peer in core.sources():
            await core.wait_until(
                self.flag[core.rank][peer],
                lambda flag: flag == told[peer],  # noqa: B023
            )


class FenceByNumber(Flags):
    """A fence to rank 0."""

    @role
    async def worker(self, core: Core) -> None:
        await core.fence(0)


class PowerInMemory(Flags):
    """Computes with the number of ranks where memory is laid out."""

    def memory(self) -> None:
        super().memory()
        self.links = self.bounds.ranks**2

    @role
    async def worker(self, core: Core) -> None:
        await core.quiet()


class QuietSweep(Flags):
    """Polls for ever, and loads nothing, once it has met two other ranks."""

    @role
    async def worker(self, core: Core) -> None:
        some = several = False
        for _ in core.destinations():
            several, some = some, True

        async def sweep() -> int | None:
            if several:
                await core.quiet()
                return None
            return 1 + int(await core.load(self.own[core.rank]))

        await core.poll_until(sweep)


class EmptySweep(Flags):
    """The same without an operation."""

    @role
    async def worker(self, core: Core) -> None:
        some = several = False
        for _ in core.destinations():
            several, some = some, True

        async def sweep() -> int | None:
            return None if several else 1 + int(await core.load(self.own[core.rank]))

        await core.poll_until(sweep)


class ReachedByTwo(Flags):
    """Reaches a place at two ranks alone."""

    @role
    async def worker(self, core: Core) -> None:
        some = several = False
        for _ in core.destinations():
            several, some = some, True
        await core.quiet()
        if not several:
            core.reach("one other rank")


class Forever:
    """Zeros without end."""

    def __iter__(self) -> Forever:
        return self

    def __next__(self) -> int:
        return 0


class EndlessFor(Flags):
    """A loop without end that two ranks leave at once."""

    @role
    async def worker(self, core: Core) -> None:
        some = several = False
        for _ in core.destinations():
            several, some = some, True
        await core.quiet()
        for _ in Forever():
            if not several:
                break
            await core.quiet()


def test_an_empty_sweep_that_failed_is_an_error_and_no_endless_loop() -> None:
    """Nothing that it would see again can make it succeed."""
    with pytest.raises(UserError, match="failed without an operation"):
        at(3, EmptySweep, 1)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (ConditionAsks, "a condition asks about another rank"),
        (FenceByNumber, "a fence to rank 0, by its number"),
        (PowerInMemory, "the number of ranks is used"),
        (QuietSweep, "a sweep that does more than load"),
        (EmptySweep, "a sweep of worker without an operation"),
        (ReachedByTwo, "core.reach"),
        (EndlessFor, "__next__ at"),
    ],
)
def test_what_is_not_covered_is_said(kind: type[Protocol], why: str) -> None:
    """A reason, and no error of ours."""
    assert why in reason(any_ranks(kind, 1))


def test_going_on_without_the_pair_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing is said of the language: steps that are left out must come to an end."""
    monkeypatch.setattr(roles, "check_language", lambda _: None)
    assert "may go on for ever without the pair" in reason(any_ranks(EndlessFor, 1))
