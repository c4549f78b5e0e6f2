"""A static schedule as data: queues of tile tasks, and the events that order them.

A queue runs its tasks in the order of the schedule; a task at its head waits for its events, reads
and writes its tiles, and triggers events. Source: HyperParallel-MoE (arXiv 2605.23764) and
mindspore-ai/hyper-parallel, hyper_parallel/core/multicore/ops/runtime/worker_kernel.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol

from syncproof.models.taskflow.pairs import Pairs, pairs_of

VERSION = 1
"""Of the file format."""

COUNTER, CROSS_CORE, FLAG, MBARRIER = "counter", "cross_core", "flag", "mbarrier"
KINDS = (COUNTER, CROSS_CORE, FLAG, MBARRIER)
CONSUMING = (CROSS_CORE, FLAG, MBARRIER)

PENDING = {CROSS_CORE: 15, FLAG: 1, MBARRIER: 1}
"""How many sets (phases of an mbarrier) may be pending; one more is an abort or undefined."""

IDS = {COUNTER: 1024, CROSS_CORE: 16, FLAG: 8}
"""How many ids there are: of counters on a rank, of flags on a core (of a pair of pipes)."""

RESERVED = {CROSS_CORE: (11, 12, 13, 14), FLAG: (6, 7)}
"""Ids that SyncAll and the libraries keep for themselves."""

LARGEST_COUNT = 2**31 - 1
"""Counters are int32."""

CORES = ("aic", "aiv", "pipe")
BARRIERS = ("after", "before", "both", "none")


class Tiles(NamedTuple):
    """The tiles ``first`` to ``last`` (exclusive) of a tensor."""

    tensor: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """``tiles`` tiles in the memory of ``rank``; an input is written before the launch begins."""

    name: str
    rank: int
    tiles: int
    is_input: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """``size`` cores of ``rank``; a queue that is in the pool holds one while it runs or spins."""

    name: str
    rank: int
    size: int


@dataclass(frozen=True, slots=True)
class Queue:
    """A core (or a pipe of one) on ``rank`` that runs its tasks in order."""

    name: str
    rank: int
    core: str = "aiv"
    pool: str = ""


class Event(NamedTuple):
    """What one queue raises and another waits for.

    ``counter``: an int32 of ``rank``, raised by atomic adds from anywhere, waited for with >=;
    with ``epochs`` the n-th launch waits for n times the threshold. ``cross_core``: the 4-bit
    CrossCoreSetFlag counter of each of ``cores``, consumed by waits; mode 0 all cores of one kind,
    mode 1 the two AIVs of a core, mode 2 an AIC and its AIVs. ``flag``: SetFlag/WaitFlag from
    ``cores[0]`` to ``cores[1]``, one bit. ``mbarrier``: ``arrivals`` complete a phase, waits go by
    its parity.
    """

    name: str
    kind: str = COUNTER
    rank: int = 0
    id: int | None = None
    mode: int = 2
    cores: tuple[str, ...] = ()
    arrivals: int = 1
    epochs: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """What a queue does when it is at its head.

    It waits for ``waits`` (event, threshold) in order, reads and then writes tiles, and triggers
    ``triggers`` (event, amount). With ``quiet`` its writes, and all earlier ones of its queue, are
    complete before the first trigger; without, a trigger may overtake them. ``duration`` is in
    microseconds.
    """

    name: str
    queue: str
    reads: tuple[Tiles, ...] = ()
    writes: tuple[Tiles, ...] = ()
    waits: tuple[tuple[str, int], ...] = ()
    triggers: tuple[tuple[str, int], ...] = ()
    duration: float = 0.0
    operator: str = ""
    quiet: bool = True


@dataclass(frozen=True, slots=True)
class Launches:
    """How often the schedule is launched, and what each rank does between two launches.

    When all of a rank's queues are done it zeroes those of the events ``zero`` that are its own.
    A ``barrier`` of all ranks stands before this, after this, both, or nowhere.
    """

    count: int = 1
    zero: tuple[str, ...] = ()
    barrier: str = "after"


class Places(Protocol):
    """Where the parts of a schedule stand in the file that it was read from."""

    def line(self, *path: str | int) -> str:
        """``file:line`` of what ``path`` leads to, such as ``("tasks", 3, "waits", "sent")``."""
        ...


class NoPlaces:
    """The places of a schedule that was built in Python: the path itself."""

    def line(self, *path: str | int) -> str:
        """The path in words."""
        return " ".join(map(str, path))


@dataclass(frozen=True)
class Schedule:
    """All queues, tasks and events of all ranks, by name; the tasks in file order."""

    name: str
    ranks: int
    tensors: Mapping[str, Tensor]
    queues: Mapping[str, Queue]
    events: Mapping[str, Event]
    tasks: tuple[Task, ...]
    pools: Mapping[str, Pool] = field(default_factory=dict)
    launches: Launches = field(default_factory=Launches)
    places: Places = field(default_factory=NoPlaces, compare=False, repr=False)

    @cached_property
    def event_numbers(self) -> dict[str, int]:
        """The place of each event among all."""
        return dict(zip(self.events, range(len(self.events)), strict=True))

    @cached_property
    def all_waits(self) -> Pairs:
        """The waits of all tasks as arrays."""
        return pairs_of((task.waits for task in self.tasks), self.event_numbers)

    @cached_property
    def all_triggers(self) -> Pairs:
        """The triggers of all tasks as arrays."""
        return pairs_of((task.triggers for task in self.tasks), self.event_numbers)

    def by_queue(self) -> dict[str, list[int]]:
        """The numbers of the tasks of each queue, in order."""
        found: dict[str, list[int]] = {name: [] for name in self.queues}
        for number, task in enumerate(self.tasks):
            found[task.queue].append(number)
        return found

    def rank_of(self, task: Task) -> int:
        """The rank that the task runs on."""
        return self.queues[task.queue].rank

    def place_of(self, number: int) -> str:
        """A task by name, with its line if it was read from a file."""
        name = self.tasks[number].name
        return (
            name
            if isinstance(self.places, NoPlaces)
            else (f"{name} ({self.places.line('tasks', number)})")
        )

    def without_events(self, names: Iterable[str]) -> Schedule:
        """The same schedule with some events gone: nobody triggers them, nobody waits for them."""
        gone = set(names)

        def kept(pairs: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
            return tuple(pair for pair in pairs if pair[0] not in gone)

        return replace(
            self,
            events={name: each for name, each in self.events.items() if name not in gone},
            tasks=tuple(
                replace(task, waits=kept(task.waits), triggers=kept(task.triggers))
                for task in self.tasks
            ),
            launches=replace(
                self.launches, zero=tuple(n for n in self.launches.zero if n not in gone)
            ),
        )


def setters_of(event: Event, waiter: str, queues: Mapping[str, Queue]) -> tuple[str, ...]:
    """The cores of a cross-core event that all have to set before ``waiter``'s counter goes up.

    Source: asc-devkit, CrossCoreSetFlag (ISASI), modes 0 to 2.
    """
    if event.mode != 2:
        return event.cores
    kind = queues[waiter].core
    return tuple(name for name in event.cores if queues[name].core != kind)
