"""The library of events: what the vendors' documents say of each, and their published mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from syncproof.checkers.explicit.check import check, question_of
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import Ghost, Region
from syncproof.models.protocol import Protocol, Setting, parameter, role
from syncproof.models.verdict import Answer
from syncproof.protocols import events

CM384 = Profile("cm384")


def violated(kind: type[Protocol], ranks: int = 1, **settings: Setting) -> set[str]:
    """The violated properties, the same under both engines where nothing hangs."""
    made = Instance(kind, Bounds(ranks=ranks, rounds=1), CM384, settings)
    broken = []
    for engine in ("reference", "reduced"):
        found = check(made, question_of(made, kind.__name__), engine)
        assert found.answer in (Answer.PROVED, Answer.VIOLATED)
        broken.append({e.property for e in found.properties if e.answer is Answer.VIOLATED})
    assert bool(broken[0]) == bool(broken[1])
    return broken[0]


# CrossCoreSetFlag


class Ahead(Protocol):
    """One core sets a flag many times, perhaps by credit, another waits for it as often."""

    sets: int = parameter(15, "how often the flag is set")
    waits: int = parameter(15, "how often it is waited for")
    credit: bool = parameter(False, "with a reverse flag after every 15")
    merges: bool = parameter(False, "the flag is one bit")

    def memory(self) -> None:
        self.flag = events.cross_core_flags(1)
        self.reverse = events.cross_core_flags(1)

    @role
    async def setter(self, core: Core) -> None:
        flag, back = self.flag[0][0, 0], self.reverse[0][0, 0]
        for number in range(self.sets):
            if self.credit:
                await events.cross_core_set_with_reverse(core, (flag,), back, number)
            elif self.merges:
                await events.cross_core_set(core, (flag,), limit=1, merges=True)
            else:
                await events.cross_core_set(core, (flag,))

    @role
    async def waiter(self, core: Core) -> None:
        flag, back = self.flag[0][0, 0], self.reverse[0][0, 0]
        for number in range(self.waits):
            if self.credit:
                await events.cross_core_wait_with_reverse(core, flag, back, number)
            else:
                await events.cross_core_wait(core, flag)


@pytest.mark.parametrize(
    ("settings", "broken"),
    [
        ({}, set()),
        ({"sets": 16, "waits": 16}, {"checks"}),
        ({"sets": 16, "waits": 16, "credit": True}, set()),
        ({"sets": 3, "waits": 2}, {"quiescent"}),
        ({"sets": 2, "waits": 3}, {"deadlock-free"}),
        ({"sets": 2, "waits": 2, "merges": True}, {"deadlock-free"}),
    ],
    ids=["15", "16 overflow", "16 by credit", "left over", "unpaired wait", "one bit loses a set"],
)
def test_a_flag_counts_to_fifteen(settings: dict[str, Any], broken: set[str]) -> None:
    """15 sets without a wait are counted, 16 overflow unless a credit returns after every 15;
    sets and waits have to be paired; a one-bit flag merges two sets."""
    assert violated(Ahead, **settings) == broken


class CubeAndVectors(Protocol):
    """Mode 2: a cube core and its two vector cores hand a tile to and fro."""

    both: bool = parameter(True, "both vector cores set their flag")
    seconds: int = parameter(2, "vector cores that the cube core's flag goes to")

    def memory(self) -> None:
        self.to_vectors = events.cross_core_flags(2)
        self.to_cube = events.cross_core_flags(1, setters=2)
        self.tile = Region(block=32)

    @role
    async def cube(self, core: Core) -> None:
        await core.put(self.tile[0], 1)
        await core.quiet()
        flags = [self.to_vectors[0][i, 0] for i in range(self.seconds)]
        await events.cross_core_set(core, flags)
        await events.cross_core_wait(core, self.to_cube[0][0, 0])
        await core.put(self.tile[0], 2)
        await core.quiet()

    @role(instances=2)
    async def vector(self, core: Core) -> None:
        await events.cross_core_wait(core, self.to_vectors[0][core.index, 0])
        core.check(await core.load(self.tile[0]) == 1, "the tile is not the one announced")
        if self.both or core.index == 0:
            await events.cross_core_set(core, (self.to_cube[0][0, 0],), core.index)


@pytest.mark.parametrize(
    ("settings", "broken"),
    [({}, set()), ({"both": False}, {"deadlock-free"}), ({"seconds": 1}, {"deadlock-free"})],
)
def test_both_vector_cores_have_to_set(settings: dict[str, Any], broken: set[str]) -> None:
    """One set of the cube core reaches both vector cores; the cube waits for the sets of both."""
    assert violated(CubeAndVectors, **settings) == broken


def _entered(count: int) -> int:
    return count + 1


def _all(count: int, needed: int) -> bool:
    return count >= needed


class HardSyncAll(Protocol):
    """SyncAll of vector cores: all set flag 14 in mode 0, each waits for it; twice in a row."""

    wait: bool = parameter(True, "a core waits for the flag")
    id: int = parameter(14, "the flag's id")

    def memory(self) -> None:
        self.flags = events.cross_core_flags(2, setters=2, ids=events.FLAG_IDS)
        self.entered = Ghost(0)

    @role(instances=2)
    async def vector(self, core: Core) -> None:
        number = self.id % events.FLAG_IDS
        for meeting in range(1, 3):
            await core.quiet()
            core.ghost_update(self.entered, _entered)
            everybody = [self.flags[0][i, number] for i in range(core.count)]
            await events.cross_core_set(core, everybody, core.index)
            if self.wait:
                await events.cross_core_wait(core, self.flags[0][core.index, number])
            needed = meeting * core.count
            core.ghost_check(self.entered, _all, needed, message="left before all had entered")


def test_sync_all_is_a_barrier() -> None:
    """Nobody leaves before all have entered, which needs the wait."""
    assert violated(HardSyncAll) == set()
    assert violated(HardSyncAll, wait=False) == {"checks"}


# SetFlag and WaitFlag


class Pipes(Protocol):
    """Two pipes of one core hand a buffer to and fro."""

    back: bool = parameter(True, "the second pipe tells the first that the buffer is free")
    items: int = parameter(2, "buffers filled")

    def memory(self) -> None:
        self.full, self.free = events.pipe_flags(), events.pipe_flags()

    @role
    async def filler(self, core: Core) -> None:
        for item in range(self.items):
            if self.back and item:
                await events.wait_flag(core, self.free[0])
            await events.set_flag(core, self.full[0])

    @role
    async def user(self, core: Core) -> None:
        for item in range(self.items):
            await events.wait_flag(core, self.full[0])
            if self.back and item < self.items - 1:
                await events.set_flag(core, self.free[0])


def test_a_pipe_flag_is_one_bit() -> None:
    """A second SetFlag before the WaitFlag is an error; a flag back prevents it."""
    assert violated(Pipes) == set()
    assert violated(Pipes, back=False) == {"checks"}


# IBSet and IBWait


class Mailbox(Protocol):
    """Cores pass a turn through a mailbox in global memory."""

    waiters: int = parameter(1, "cores that wait on the one mailbox")
    sets: int = parameter(2, "how often it is filled")

    def memory(self) -> None:
        self.mailbox = events.mailboxes()

    @role
    async def producer(self, core: Core) -> None:
        for _ in range(self.sets):
            await events.ib_set(core, self.mailbox[0])

    @role(instances="waiters")
    async def consumer(self, core: Core) -> None:
        for _ in range(self.sets // core.count):
            await events.ib_wait(core, self.mailbox[0])


def test_a_mailbox_has_one_waiter() -> None:
    """IBSet waits for an empty mailbox, so none is lost; two waiters may both take one filling."""
    assert violated(Mailbox) == set()
    assert violated(Mailbox, waiters=2) != set()


# mbarrier


class Pipeline(Protocol):
    """A producer fills a stage with an asynchronous copy, a consumer uses it, phase by phase."""

    turns: bool = parameter(True, "the consumer waits for the parity of its phase")
    empty: bool = parameter(True, "the producer waits until the stage is empty")
    phases: int = parameter(3, "how often the stage is filled")

    def memory(self) -> None:
        self.full = events.mbarriers(arrivals=1)
        self.empty_again = events.mbarriers(arrivals=1)
        self.stage = Region(block=32, on_chip=True)

    @role
    async def producer(self, core: Core) -> None:
        full, empty = self.full[0], self.empty_again[0]
        for phase in range(self.phases):
            if self.empty and phase:
                await events.mbarrier_wait(core, empty, (phase - 1) % 2)
            await events.mbarrier_arrive(core, full, 1, expect_bytes=64)
            for half in (1, 2):
                await core.put(self.stage[0], 2 * phase + half)
                await events.mbarrier_complete(core, full, 1, 32)

    @role
    async def consumer(self, core: Core) -> None:
        for phase in range(self.phases):
            parity = phase % 2 if self.turns else 0
            await events.mbarrier_wait(core, self.full[0], parity)
            read = await core.load(self.stage[0])
            core.check(read == 2 * phase + 2, "the stage does not hold this phase's data")
            await events.mbarrier_arrive(core, self.empty_again[0], 1)


def test_an_mbarrier_tells_one_phase_from_the_next() -> None:
    """A phase ends with its arrivals and bytes; a wait with the wrong parity passes early, and a
    producer that does not wait for the empty stage overruns the consumer."""
    assert violated(Pipeline) == set()
    assert violated(Pipeline, turns=False) == {"checks"}
    assert violated(Pipeline, empty=False) != set()


class TooManyArrivals(Protocol):
    """Three threads arrive at a barrier for two, of which bytes are still due."""

    arrivals: int = parameter(2, "how many arrive")

    def memory(self) -> None:
        self.barrier = events.mbarriers(arrivals=2)

    @role(instances="arrivals")
    async def thread(self, core: Core) -> None:
        await events.mbarrier_arrive(core, self.barrier[0], 2, expect_bytes=16)


def test_an_mbarrier_refuses_arrivals_beyond_its_count() -> None:
    """More arrivals in a phase than the barrier was made for are an error."""
    assert violated(TooManyArrivals) == set()
    assert violated(TooManyArrivals, arrivals=3) == {"checks"}


# Semaphores and triggers


def _more(inside: int) -> int:
    return inside + 1


def _less(inside: int) -> int:
    return inside - 1


def _at_most(inside: int, most: int) -> bool:
    return inside <= most


class Critical(Protocol):
    """Three cores go through a section that has room for some of them."""

    room: int = parameter(2, "units of the semaphore")
    most: int = parameter(2, "how many may be inside")

    def memory(self) -> None:
        self.semaphore = events.semaphores(units=self.room)
        self.inside = Ghost(0)

    @role(instances=3)
    async def worker(self, core: Core) -> None:
        await events.acquire(core, self.semaphore[0])
        core.ghost_update(self.inside, _more)
        core.ghost_check(self.inside, _at_most, self.most, message="too many inside")
        await core.quiet()
        core.ghost_update(self.inside, _less)
        await events.release(core, self.semaphore[0])


def test_a_semaphore_lets_in_as_many_as_it_has_units() -> None:
    """With two units never three are inside; with three units they may be."""
    assert violated(Critical) == set()
    assert violated(Critical, room=3) == {"checks"}


class Tile(Protocol):
    """A tile is stored on another rank and an event there is triggered."""

    quiet: bool = parameter(True, "the tile is complete before the event is triggered")

    def memory(self) -> None:
        self.tile = Region(fields={"payload": 512}, compared=())
        self.event = events.triggers()

    @role(on=(0,))
    async def producer(self, core: Core) -> None:
        await core.put(self.tile[1], core.payload(1, 0, 0))
        if self.quiet:
            await core.quiet()
        await events.trigger(core, self.event[1])
        await core.quiet()

    @role(on=(1,))
    async def consumer(self, core: Core) -> None:
        await events.wait_for(core, self.event[1], 1)
        core.consume(await core.load(self.tile[1]), 0, 0, 0)


def test_a_trigger_orders_nothing_by_itself() -> None:
    """Without a quiet between the tile and the trigger the tile may come later."""
    assert violated(Tile, ranks=2) == set()
    assert violated(Tile, ranks=2, quiet=False) == {"happens-before"}
