"""A static tile schedule as a protocol: each queue a process, each event memory that it shares.

For what a graph cannot say: every interleaving, and a fabric that lets a trigger overtake the data
it tells of. Counters are raised by atomic adds, which land when the fabric likes; the flags between
the cores of a rank are on-chip words that a wait takes from with ``wait_until(update=)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from syncproof.models.core import Core
from syncproof.models.memory import Ghost, Pool, Region
from syncproof.models.protocol import Protocol, parameter, role
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
    Task,
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
    given: ClassVar[Schedule | None] = None
    meant: ClassVar[Meant] = {}

    def memory(self) -> None:
        self.schedule = self.given or generate(
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
        self.by_queue = self.schedule.by_queue()
        self.queues = [
            [name for name, queue in self.schedule.queues.items() if queue.rank == rank]
            for rank in range(self.schedule.ranks)
        ]
        self.breaks = _breakpoints(self.schedule)
        self._place_tensors()
        self._place_events()
        for name, pool in self.schedule.pools.items():
            setattr(self, f"pool_{name}", _PoolOn(pool.rank, pool.size))
        if self.meant:
            # The tasks whose triggers have been issued, by event.
            self.issued = Ghost(frozenset())

    def _place_tensors(self) -> None:
        """A block for the tiles between two breakpoints; 0 is what nobody has written."""
        self.data: dict[str, Region] = {}
        for name, tensor in self.schedule.tensors.items():
            if len(self.breaks.get(name, ())) > 1:
                region = Region(
                    owner=tensor.rank,
                    index=(len(self.breaks[name]) - 1,),
                    block=512,
                    fields={"tile": 512},
                    initial=-1 if tensor.is_input else 0,
                )
                self.data[name] = region
                setattr(self, f"tensor {name}", region)

    def _place_events(self) -> None:
        """A word for each counter, and one at each core for all its flags that have one id."""
        self.counts: dict[tuple[str, str], Region] = {}
        self.places: dict[tuple[str, str], list[tuple[str, str]]] = {}
        shared: dict[tuple[str, str], Region] = {}
        for name, event in self.schedule.events.items():
            if event.kind in (COUNTER, MBARRIER):
                waiters = _waiters(event, self.schedule)
                initial = 0 if event.kind == COUNTER else (0,) * (1 + len(waiters))
                region = Region(
                    owner=event.rank,
                    block=32,
                    fields={"count": 32},
                    initial=initial,
                    on_chip=event.kind != COUNTER,
                )
                self.counts[name, ""] = region
                setattr(self, f"event {name}", region)
                continue
            for waiter in _receivers(event, self.schedule):
                word = (waiter, _id_of(event))
                if word not in shared:
                    self.places[word] = _sharing(waiter, _id_of(event), self.schedule)
                    shared[word] = Region(
                        owner=event.rank,
                        block=32,
                        fields={"count": 32},
                        initial=(0,) * len(self.places[word]),
                        on_chip=True,
                        clean=True,
                    )
                    setattr(self, f"{_id_of(event)} at {waiter}", shared[word])
                self.counts[name, waiter] = shared[word]

    def own_places(self, event: Event, waiter: str) -> list[int]:
        """Which numbers of a core's word are the event's, one for each core that sets it."""
        places = self.places[waiter, _id_of(event)]
        return [i for i, (name, _) in enumerate(places) if name == event.name]

    def width(self) -> int:
        """The most queues that a rank has."""
        return max((len(queues) for queues in self.queues), default=1)

    @role(instances=width)
    async def queue(self, core: Core) -> None:
        names = self.queues[core.rank]
        mine = names[core.index] if core.index < len(names) else ""
        for launch in range(self.schedule.launches.count):
            for number in self.by_queue.get(mine, ()):
                task = self.schedule.tasks[number]
                pool = self.schedule.queues[mine].pool
                if pool:
                    held: Pool = getattr(self, f"pool_{pool}")
                    async with core.hold(held):
                        await self.run(core, number, task, launch)
                else:
                    await self.run(core, number, task, launch)
            await self.end_of_launch(core, launch)

    async def run(self, core: Core, number: int, task: Task, launch: int) -> None:
        """Wait, read, write, trigger."""
        at = (
            ""
            if isinstance(self.schedule.places, NoPlaces)
            else self.schedule.places.line("tasks", number)
        )
        for name, amount in task.waits:
            await self.wait(core, self.schedule.events[name], task.queue, amount, launch, at)
            meant = self.meant.get((number, name))
            if meant is not None:
                core.ghost_check(
                    self.issued,
                    _includes,
                    tuple(sorted(meant)),
                    key=name,
                    message=f"{task.name} passes {name} before all that are meant have triggered",
                )
        for access in task.reads:
            for tile in self.tiles(access.tensor, access.first, access.last):
                found = await core.load(
                    self.data[access.tensor][self.owner(access.tensor)][tile], at=at
                )
                core.check(found != 0, f"{task.name} reads {access.tensor} unwritten")
        for access in task.writes:
            for tile in self.tiles(access.tensor, access.first, access.last):
                slot = self.data[access.tensor][self.owner(access.tensor)][tile]
                await core.put(slot, launch * len(self.schedule.tasks) + number + 1, at=at)
        if task.quiet:
            await core.quiet(at=at)
        for name, amount in task.triggers:
            await self.trigger(core, number, task, self.schedule.events[name], amount, at)

    def owner(self, tensor: str) -> int:
        """The rank whose memory holds the tensor."""
        return self.schedule.tensors[tensor].rank

    def tiles(self, tensor: str, first: int, last: int) -> list[int]:
        """The blocks of a range of tiles."""
        breaks = self.breaks[tensor]
        return list(range(breaks.index(first), breaks.index(last)))

    async def wait(
        self, core: Core, event: Event, queue: str, amount: int, launch: int, at: str
    ) -> None:
        """Block until the event is there; all but counters take it away."""
        if event.kind == COUNTER:
            threshold = amount * (launch + 1 if event.epochs else 1)
            slot = self.counts[event.name, ""][event.rank]
            await core.wait_until(slot, lambda count: count >= threshold, at=at)
            return
        if event.kind == MBARRIER:
            slot = self.counts[event.name, ""][event.rank]
            place = _waiters(event, self.schedule).index(queue)
            await core.wait_until(
                slot,
                lambda state: _is_passed(state, place, event.arrivals),
                lambda state: _waited(state, place),
                at=at,
            )
            return
        slot = self.counts[event.name, queue][event.rank]
        own = self.own_places(event, queue)
        for _ in range(amount):
            await core.wait_until(
                slot,
                lambda counts: min(counts[i] for i in own) > 0,
                lambda counts: tuple(n - (i in own) for i, n in enumerate(counts)),
                at=at,
            )

    async def trigger(
        self, core: Core, number: int, task: Task, event: Event, amount: int, at: str
    ) -> None:
        """Raise the event; more than the hardware counts is a failed check."""
        many = f"{task.name} triggers {event.name} when no more may be pending"
        if event.kind == COUNTER:
            await core.add(self.counts[event.name, ""][event.rank], amount, at=at)
        elif event.kind == MBARRIER:
            slot = self.counts[event.name, ""][event.rank]
            arrivals, *waits = await core.atomic(
                slot, lambda state: (state[0] + amount, *state[1:]), at=at
            )
            phases = (arrivals + amount) // event.arrivals
            core.check(all(phases - each <= 1 for each in waits), many)
        else:
            for waiter, setters in _receivers(event, self.schedule).items():
                if task.queue in setters:
                    own = self.own_places(event, waiter)
                    raised = _raised(own[setters.index(task.queue)])
                    slot = self.counts[event.name, waiter][event.rank]
                    for _ in range(amount):
                        counts = raised(await core.atomic(slot, raised, at=at))
                        core.check(min(counts[i] for i in own) <= PENDING[event.kind], many)
                        others = [n for i, n in enumerate(counts) if i not in own]
                        core.check(not any(others), f"{many}: its id means another event still")
        if self.meant:
            core.ghost_update(self.issued, _with, number, key=event.name)

    async def end_of_launch(self, core: Core, launch: int) -> None:
        """All queues of the rank end; one of them zeroes; all ranks meet where they do."""
        launches = self.schedule.launches
        await core.kernel_end()
        if launch + 1 == launches.count:
            return
        if launches.barrier in ("before", "both"):
            await core.sync("all")
        if core.index == 0:
            for name in launches.zero:
                event = self.schedule.events[name]
                if event.rank == core.rank:
                    await core.swap(self.counts[name, ""][event.rank], 0)
        await core.quiet()
        await core.sync("all" if launches.barrier in ("after", "both") else "rank")


class _PoolOn(Pool):
    """A pool of one rank."""

    def __init__(self, rank: int, size: int) -> None:
        self.size = size
        self.region = Region(owner=rank, block=8, initial=size, on_chip=True, clean=True)


def protocol_of(schedule: Schedule, meant: Meant | None = None) -> type[Taskflow]:
    """The protocol of one schedule; with ``meant`` its waits are checked to wait for those."""
    return type("ScheduleProtocol", (Taskflow,), {"given": schedule, "meant": meant or {}})


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


def _raised(place: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    return lambda counts: tuple(each + (i == place) for i, each in enumerate(counts))


def _with(tasks: frozenset[int], task: int) -> frozenset[int]:
    return tasks | {task}


def _includes(tasks: frozenset[int], meant: tuple[int, ...]) -> bool:
    return tasks >= set(meant)
