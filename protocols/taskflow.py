"""A static tile schedule as a protocol: each queue a process, each event memory that it shares.

For what a graph cannot say: every interleaving, and a fabric that lets a trigger overtake the data
it tells of. Counters are raised by atomic adds, which land when the fabric likes; the flags between
the cores of a rank are on-chip words that a wait takes from with ``wait_until(update=)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from syncproof.models.core import Core
from syncproof.models.memory import Ghost, Pool, Region
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.taskflow.holding import kept, place
from syncproof.models.taskflow.moe import BACKWARD, FORWARD, Layer
from syncproof.models.taskflow.schedule import (
    COUNTER,
    CROSS_CORE,
    FLAG,
    MBARRIER,
    PENDING,
    Event,
    NoPlaces,
    Schedule,
    Tiles,
    setters_of,
)
from syncproof.models.taskflow.scheduling import generate

Meant = Mapping[tuple[int, str], frozenset[int]]
"""For (task, event): the tasks that the wait is meant to wait for."""


class Taskflow(Protocol):
    """A static schedule of AIC and AIV tile tasks (HyperParallel-MoE), by default a generated one.

    The generated schedule is a mixture-of-experts layer with one expert, one AIC and two AIVs a
    rank; `protocol_of` gives the protocol of any other schedule.
    """

    name = "taskflow"
    direction: str = parameter(FORWARD, "which pass is generated", (FORWARD, BACKWARD))
    given: ClassVar[Callable[[], Schedule | None]] = staticmethod(kept(None))
    meant: ClassVar[Meant] = {}

    def memory(self) -> None:
        schedule = type(self).given() or generate(
            Layer(
                ranks=self.bounds.ranks,
                experts=self.bounds.experts_in_all,
                columns=1,
                aic=1,
                aiv=2,
                links=1,
                direction=self.direction,
            )
        )
        self._place_tensors(schedule)
        self._place_events(schedule)
        self._note_tasks(schedule)
        self.pools = {n: _PoolOn(each.rank, each.size) for n, each in schedule.pools.items()}
        place(self, {f"pool {name}": pool for name, pool in self.pools.items()})
        if self.meant:
            # The tasks whose triggers have been issued, by event.
            self.issued = Ghost(frozenset())

    def _note_tasks(self, schedule: Schedule) -> None:
        """What the queues run, as plain data: of these a role can be told apart by its place."""
        self.task_count, self.launches = len(schedule.tasks), schedule.launches.count
        self.zero = [(name, schedule.events[name].rank) for name in schedule.launches.zero]
        barrier = schedule.launches.barrier
        self.meet_before = barrier in ("before", "both")
        self.meet_after = barrier in ("after", "both")
        self.queues = [
            [name for name, queue in schedule.queues.items() if queue.rank == rank]
            for rank in range(schedule.ranks)
        ]
        self.pool_of = {name: queue.pool for name, queue in schedule.queues.items()}
        self.events = {name: _Word.of(event, schedule) for name, event in schedule.events.items()}
        breaks = _breakpoints(schedule)
        self.by_queue = {
            name: [_Step.of(schedule, number, breaks) for number in numbers]
            for name, numbers in schedule.by_queue().items()
        }

    def _place_tensors(self, schedule: Schedule) -> None:
        """A block for the tiles between two breakpoints; 0 is what nobody has written."""
        self.data: dict[str, Region] = {}
        breaks = _breakpoints(schedule)
        for name, tensor in schedule.tensors.items():
            if len(breaks.get(name, ())) > 1:
                region = Region(
                    owner=tensor.rank,
                    index=(len(breaks[name]) - 1,),
                    block=512,
                    fields={"tile": 512},
                    initial=-1 if tensor.is_input else 0,
                )
                self.data[name] = region
                place(self, {f"tensor {name}": region})

    def _place_events(self, schedule: Schedule) -> None:
        """A word for each counter, and one at each core for all its flags that have one id."""
        self.counts: dict[tuple[str, str], Region] = {}
        self.places: dict[tuple[str, str], list[tuple[str, str]]] = {}
        shared: dict[tuple[str, str], Region] = {}
        for name, event in schedule.events.items():
            if event.kind in (COUNTER, MBARRIER):
                waiters = _waiters(event, schedule)
                initial = 0 if event.kind == COUNTER else (0,) * (1 + len(waiters))
                region = Region(
                    owner=event.rank,
                    block=32,
                    fields={"count": 32},
                    initial=initial,
                    on_chip=event.kind != COUNTER,
                )
                self.counts[name, ""] = region
                place(self, {f"event {name}": region})
                continue
            for waiter in _receivers(event, schedule):
                word = (waiter, _id_of(event))
                if word not in shared:
                    self.places[word] = _sharing(waiter, _id_of(event), schedule)
                    shared[word] = Region(
                        owner=event.rank,
                        block=32,
                        fields={"count": 32},
                        initial=(0,) * len(self.places[word]),
                        on_chip=True,
                        clean=True,
                    )
                    place(self, {f"{_id_of(event)} at {waiter}": shared[word]})
                self.counts[name, waiter] = shared[word]

    def own_places(self, event: str, waiter: str) -> list[int]:
        """Which numbers of a core's word are the event's, one for each core that sets it."""
        places = self.places[waiter, self.events[event].id]
        return [i for i, (name, _) in enumerate(places) if name == event]

    def width(self) -> int:
        """The most queues that a rank has."""
        return max((len(queues) for queues in self.queues), default=1)

    @role(instances=width)
    async def queue(self, core: Core) -> None:
        names = self.queues[core.rank]
        mine = names[core.index] if core.index < len(names) else ""
        for launch in range(self.launches):
            for task in self.by_queue.get(mine, ()):
                if self.pool_of[mine]:
                    async with core.hold(self.pools[self.pool_of[mine]]):
                        await self.run(core, task, launch)
                else:
                    await self.run(core, task, launch)
            await self.end_of_launch(core, launch)

    async def run(self, core: Core, task: _Step, launch: int) -> None:
        """Wait, read, write, trigger."""
        at = task.at
        for name, amount in task.waits:
            await self.wait(core, self.events[name], task.queue, amount, launch, at)
            meant = self.meant.get((task.number, name))
            if meant is not None:
                core.ghost_check(
                    self.issued,
                    _includes,
                    tuple(sorted(meant)),
                    key=name,
                    message=f"{task.name} passes {name} before all that are meant have triggered",
                )
        for tensor, owner, tile in task.reads:
            await self.read(core, task, tensor, owner, tile)
        for tensor, owner, tile in task.writes:
            value = launch * self.task_count + task.number + 1
            await core.put(self.data[tensor][owner][tile], value, at=at)
        if task.quiet:
            await core.quiet(at=at)
        for name, amount in task.triggers:
            await self.trigger(core, task, self.events[name], amount)

    async def read(self, core: Core, task: _Step, tensor: str, owner: int, tile: int) -> None:
        """Load a tile, which somebody must have written."""
        found = await core.load(self.data[tensor][owner][tile], at=task.at)
        core.check(found != 0, f"{task.name} reads {tensor} unwritten")

    async def wait(
        self, core: Core, event: _Word, queue: str, amount: int, launch: int, at: str
    ) -> None:
        """Block until the event is there; all but counters take it away."""
        if event.kind == COUNTER:
            threshold = amount * (launch + 1 if event.epochs else 1)
            slot = self.counts[event.name, ""][event.rank]
            await core.wait_until(slot, lambda count: count >= threshold, at=at)
            return
        if event.kind == MBARRIER:
            slot = self.counts[event.name, ""][event.rank]
            place = event.waiters.index(queue)
            await core.wait_until(
                slot,
                lambda state: _is_passed(state, place, event.arrivals),
                lambda state: _waited(state, place),
                at=at,
            )
            return
        slot = self.counts[event.name, queue][event.rank]
        own = self.own_places(event.name, queue)
        for _ in range(amount):
            await core.wait_until(
                slot,
                lambda counts: min(counts[i] for i in own) > 0,
                lambda counts: tuple(n - (i in own) for i, n in enumerate(counts)),
                at=at,
            )

    async def trigger(self, core: Core, task: _Step, event: _Word, amount: int) -> None:
        """Raise the event; more than the hardware counts is a failed check."""
        if event.kind == COUNTER:
            await core.add(self.counts[event.name, ""][event.rank], amount, at=task.at)
        elif event.kind == MBARRIER:
            await self.arrive(core, task, event, amount)
        else:
            for waiter, setters in event.receivers:
                if task.queue in setters:
                    own = self.own_places(event.name, waiter)
                    for _ in range(amount):
                        await self.set(core, task, event, waiter, own[setters.index(task.queue)])
        if self.meant:
            core.ghost_update(self.issued, _with, task.number, key=event.name)

    async def arrive(self, core: Core, task: _Step, event: _Word, amount: int) -> None:
        """Arrive at an mbarrier so many times."""
        arrivals, *waits = await core.atomic(
            self.counts[event.name, ""][event.rank],
            lambda state: (state[0] + amount, *state[1:]),
            at=task.at,
        )
        phases = (arrivals + amount) // event.arrivals
        core.check(all(phases - each <= 1 for each in waits), _too_many(task, event))

    async def set(self, core: Core, task: _Step, event: _Word, waiter: str, place: int) -> None:
        """Set a flag at the core that waits for it."""
        raised, own = _raised(place), self.own_places(event.name, waiter)
        before = await core.atomic(self.counts[event.name, waiter][event.rank], raised, at=task.at)
        counts, many = raised(before), _too_many(task, event)
        core.check(min(counts[i] for i in own) <= PENDING[event.kind], many)
        others = [n for i, n in enumerate(counts) if i not in own]
        core.check(not any(others), f"{many}: its id means another event still")

    async def end_of_launch(self, core: Core, launch: int) -> None:
        """All queues of the rank end; one of them zeroes; all ranks meet where they do."""
        await core.kernel_end()
        if launch + 1 == self.launches:
            return
        if self.meet_before:
            await core.sync("all")
        if core.index == 0:
            for name, rank in self.zero:
                if rank == core.rank:
                    await core.swap(self.counts[name, ""][rank], 0)
        await core.quiet()
        await core.sync("all" if self.meet_after else "rank")


@dataclass(frozen=True)
class _Word:
    """An event as its queues use it; ``receivers`` are the cores that can wait for a flag, each
    with those that have to set it, ``waiters`` the queues that wait for an mbarrier."""

    name: str
    kind: str
    rank: int
    id: str
    arrivals: int
    epochs: bool
    receivers: tuple[tuple[str, tuple[str, ...]], ...]
    waiters: tuple[str, ...]

    @staticmethod
    def of(event: Event, schedule: Schedule) -> _Word:
        """The word of an event."""
        is_flag = event.kind in (CROSS_CORE, FLAG)
        return _Word(
            event.name,
            event.kind,
            event.rank,
            _id_of(event) if is_flag else "",
            event.arrivals,
            event.epochs,
            tuple(_receivers(event, schedule).items()) if is_flag else (),
            tuple(_waiters(event, schedule)) if event.kind == MBARRIER else (),
        )


Blocks = tuple[tuple[str, int, int], ...]
"""(tensor, rank that holds it, block of its region)."""


@dataclass(frozen=True)
class _Step:
    """A task as its queue runs it; ``at`` is its line."""

    number: int
    name: str
    queue: str
    at: str
    waits: tuple[tuple[str, int], ...]
    reads: Blocks
    writes: Blocks
    triggers: tuple[tuple[str, int], ...]
    quiet: bool

    @staticmethod
    def of(schedule: Schedule, number: int, breaks: Mapping[str, list[int]]) -> _Step:
        """The step of a task."""

        def blocks(accesses: Iterable[Tiles]) -> Blocks:
            return tuple(
                (each.tensor, schedule.tensors[each.tensor].rank, block)
                for each in accesses
                for block in range(
                    breaks[each.tensor].index(each.first), breaks[each.tensor].index(each.last)
                )
            )

        task, places = schedule.tasks[number], schedule.places
        at = "" if isinstance(places, NoPlaces) else places.line("tasks", number)
        reads, writes = blocks(task.reads), blocks(task.writes)
        head = (number, task.name, task.queue, at, task.waits)
        return _Step(*head, reads, writes, task.triggers, task.quiet)


class _PoolOn(Pool):
    """A pool of one rank."""

    def __init__(self, rank: int, size: int) -> None:
        self.size = size
        self.region = Region(owner=rank, block=8, initial=size, on_chip=True, clean=True)


def protocol_of(schedule: Schedule, meant: Meant | None = None) -> type[Taskflow]:
    """The protocol of one schedule; with ``meant`` its waits are checked to wait for those."""
    inside = {"given": staticmethod(kept(schedule)), "meant": meant or {}}
    return type("ScheduleProtocol", (Taskflow,), inside)


def _breakpoints(schedule: Schedule) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for task in schedule.tasks:
        for access in (*task.reads, *task.writes):
            found.setdefault(access.tensor, set()).update((access.first, access.last))
    return {name: sorted(points) for name, points in found.items()}


# Events as words of memory


def _id_of(event: Event) -> str:
    """What the hardware knows a flag by, at the core that waits for it."""
    source = f" from {event.cores[0]}" if event.kind == FLAG else ""
    return f"{event.kind}{source} id {event.id}"


def _sharing(waiter: str, id: str, schedule: Schedule) -> list[tuple[str, str]]:
    """(event, core that sets it) of all flags with one id at one core."""
    return [
        (name, setter)
        for name, event in schedule.events.items()
        if event.kind in (CROSS_CORE, FLAG) and _id_of(event) == id
        for setter in _receivers(event, schedule).get(waiter, ())
    ]


def _receivers(event: Event, schedule: Schedule) -> dict[str, tuple[str, ...]]:
    """Who can wait for a flag between cores, and who has to set it for each."""
    if event.kind == FLAG:
        return {event.cores[1]: event.cores[:1]}
    return {waiter: setters_of(event, waiter, schedule.queues) for waiter in event.cores}


def _waiters(event: Event, schedule: Schedule) -> list[str]:
    """The queues that wait for an mbarrier."""
    names = {t.queue for t in schedule.tasks if any(n == event.name for n, _ in t.waits)}
    return sorted(names)


def _is_passed(state: tuple[int, ...], place: int, arrivals: int) -> bool:
    """Whether the phase that is running is not of the parity that is waited for."""
    return (state[0] // arrivals) % 2 != state[1 + place] % 2


def _waited(state: tuple[int, ...], place: int) -> tuple[int, ...]:
    return tuple(each + (i == 1 + place) for i, each in enumerate(state))


def _too_many(task: _Step, event: _Word) -> str:
    return f"{task.name} triggers {event.name} when no more may be pending"


def _raised(place: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    return lambda counts: tuple(each + (i == place) for i, each in enumerate(counts))


def _with(tasks: frozenset[int], task: int) -> frozenset[int]:
    return tasks | {task}


def _includes(tasks: frozenset[int], meant: tuple[int, ...]) -> bool:
    return tasks >= set(meant)
