"""A schedule unrolled over its launches: nodes in queues, and groups of triggers with thresholds.

Every kind of event comes down to *groups*: triggers whose amounts are summed. A wait asks of one
group that its sum reaches a number. A counter is one group, waited for with its threshold. The
counter of a core in a cross-core event is one group for each core that has to set, and its n-th
wait asks each of them for n; a flag is the same with one setter; the n-th wait of a queue for an
mbarrier asks for n phases of arrivals. So a consumed event needs no subtraction: sums only grow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syncproof.checkers.schedule.rows import NO_ROWS, Rows, rows_of
from syncproof.models.taskflow.pairs import Ints, Pairs
from syncproof.models.taskflow.schedule import (
    COUNTER,
    CROSS_CORE,
    FLAG,
    KINDS,
    MBARRIER,
    PENDING,
    Event,
    Schedule,
    setters_of,
)

Bools = NDArray[np.bool_]


class Group(NamedTuple):
    """Triggers whose amounts add up; ``nodes`` and ``amounts`` go together.

    ``launch`` is the launch that a zeroed counter is of, or -1.
    """

    event: str
    launch: int
    nodes: list[int]
    amounts: list[int]

    @property
    def total(self) -> int:
        """What all triggers add up to."""
        return sum(self.amounts)


@dataclass
class Receiver:
    """Where a consumed event is counted: the groups that all have to rise, and the waits."""

    event: Event
    waiter: str
    groups: list[int]
    unit: int
    waits: list[int] = field(default_factory=list)

    @property
    def pending(self) -> int:
        """How many may be pending."""
        return PENDING[self.event.kind]


@dataclass
class Program:
    """Nodes 0 to tasks*launches-1 are the tasks, launch by launch; behind them the ranks' own.

    ``queue`` and ``position`` place a node, ``before`` lists what else has to end first (the last
    tasks of a launch, a barrier). ``members[q]`` are the nodes of queue ``q`` in order. Each rank
    has a queue of its own behind the schedule's, with the nodes end, zero and start for a launch.

    ``waits`` has for each node (group, sum that it has to reach), ``triggers`` (group, amount).
    Of each group ``event_of`` and ``launch_of_group`` say what it counts.
    """

    schedule: Schedule
    queue: list[int]
    position: list[int]
    before: list[tuple[int, ...]]
    members: list[list[int]]
    receivers: list[Receiver] = field(default_factory=list)
    event_of: list[str] = field(default_factory=list)
    launch_of_group: list[int] = field(default_factory=list)
    waits: Rows = NO_ROWS
    triggers: Rows = NO_ROWS

    @cached_property
    def triggered(self) -> Rows:
        """For each group its (node, amount)."""
        return self.triggers.turned(self.groups)

    @cached_property
    def totals(self) -> Ints:
        """For each group what all its triggers add up to."""
        sums = np.concatenate(([0], np.cumsum(self.triggered.second)))
        return np.diff(sums[self.triggered.start])

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.event_of)

    def group(self, number: int) -> Group:
        """One group, with its triggers in the order of their queues."""
        at = slice(self.triggered.start[number], self.triggered.start[number + 1])
        return Group(
            self.event_of[number],
            self.launch_of_group[number],
            self.triggered.first[at].tolist(),
            self.triggered.second[at].tolist(),
        )

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.queue)

    @property
    def tasks(self) -> int:
        """How many of the nodes are tasks."""
        return len(self.schedule.tasks) * self.schedule.launches.count

    def task_of(self, node: int) -> int:
        """The number of the task that a node runs, or -1."""
        return node % len(self.schedule.tasks) if node < self.tasks else -1

    def launch_of(self, node: int) -> int:
        """The launch that a node belongs to, from 0."""
        if node < self.tasks:
            return node // len(self.schedule.tasks)
        return (node - self.tasks) // 3 // self.schedule.ranks

    def host(self, launch: int, rank: int, phase: int) -> int:
        """The node of a rank after a launch: its end (0), its zeroing (1), the next start (2)."""
        return self.tasks + (launch * self.schedule.ranks + rank) * 3 + phase

    def name(self, node: int) -> str:
        """A node in the words of the file."""
        several = self.schedule.launches.count > 1
        if node < self.tasks:
            launch = f" in launch {self.launch_of(node) + 1}" if several else ""
            return self.schedule.place_of(self.task_of(node)) + launch
        rest, phase = divmod(node - self.tasks, 3)
        launch_number, rank = divmod(rest, self.schedule.ranks)
        what = ("the end", "the zeroing after", "the start after")[phase]
        of = "of" if phase == 0 else ""
        return " ".join(f"{what} {of} launch {launch_number + 1} on rank {rank}".split())


def unroll(schedule: Schedule) -> Program:
    """The program of a validated schedule."""
    launches = schedule.launches.count
    names = {name: number for number, name in enumerate(schedule.queues)}
    own = [names[task.queue] for task in schedule.tasks]
    queue = own * launches
    for rank in [rank for _ in range(launches) for rank in range(schedule.ranks)]:
        queue += [len(names) + rank] * 3
    members: list[list[int]] = [[] for _ in range(len(names) + schedule.ranks)]
    position = []
    for node, its_queue in enumerate(queue):
        position.append(len(members[its_queue]))
        members[its_queue].append(node)
    made = Program(schedule, queue, position, [()] * len(queue), members)
    _add_launches(made, own, names)
    _Events(made).add()
    return made


def _add_launches(program: Program, own: list[int], names: dict[str, int]) -> None:
    """What orders one launch after another on each rank, and the barriers between ranks."""
    schedule = program.schedule
    ranks, count = range(schedule.ranks), len(schedule.tasks)
    first: dict[int, int] = {}
    for number, queue in enumerate(own):
        first.setdefault(queue, number)
    last = dict(zip(own, range(count), strict=True))
    rank_of = {names[each.name]: each.rank for each in schedule.queues.values()}
    last_of: list[list[int]] = [[] for _ in ranks]
    for queue, number in last.items():
        last_of[rank_of[queue]].append(number)
    for launch in range(schedule.launches.count):
        for rank in ranks:
            ended = tuple(launch * count + number for number in last_of[rank])
            program.before[program.host(launch, rank, 0)] = ended
            _add_barriers(program, launch, rank)
        for queue, number in first.items() if launch else ():
            start = program.host(launch - 1, rank_of[queue], 2)
            program.before[launch * count + number] = (start,)


def _add_barriers(program: Program, launch: int, rank: int) -> None:
    """All ranks meet before the zeroing, before the next start, at both, or never."""
    for phase, names in ((1, ("before", "both")), (2, ("after", "both"))):
        if program.schedule.launches.barrier in names:
            program.before[program.host(launch, rank, phase)] = tuple(
                program.host(launch, other, phase - 1) for other in range(program.schedule.ranks)
            )


class _Events:
    """Adds the groups, waits and triggers of all events to a program.

    Counters are unrolled as arrays; what is consumed, or counted at cores, wait by wait.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.schedule = program, program.schedule
        self.events = list(self.schedule.events.values())
        self.launches = self.schedule.launches.count
        self.sets: dict[tuple[str, str], list[int]] = {}
        self.receiver_of: dict[tuple[str, str], Receiver] = {}

    def add(self) -> None:
        program, schedule = self.program, self.schedule
        for event in self.events:
            if event.kind in (CROSS_CORE, FLAG):
                self._add_receivers(event)
        kinds = np.array([KINDS.index(event.kind) for event in self.events], dtype=np.int64)
        is_counter, is_mbarrier = kinds == KINDS.index(COUNTER), kinds == KINDS.index(MBARRIER)
        by_epoch = np.array([event.epochs for event in self.events], dtype=bool) & is_counter
        self.groups = self._groups(is_counter | is_mbarrier)
        waits, triggers = schedule.all_waits, schedule.all_triggers
        # What the n-th launch waits for is n times as much with epochs.
        program.waits = self._unrolled(waits, ~is_counter, self._consume, by_epoch)
        at_cores = ~(is_counter | is_mbarrier)
        program.triggers = self._unrolled(triggers, at_cores, self._set, np.zeros_like(by_epoch))
        program.receivers = list(self.receiver_of.values())

    def _groups(self, is_counted: Bools) -> Ints:
        """For each launch and event the group that counts it: of its own if it is zeroed.

        -1 for what is counted at cores.
        """
        program, numbers = self.program, self.schedule.event_numbers
        is_zeroed = np.zeros(len(self.events), dtype=bool)
        is_zeroed[[numbers[name] for name in self.schedule.launches.zero]] = True
        found = np.full((self.launches, len(self.events)), -1, dtype=np.int64)
        for launch in range(self.launches):
            new = np.flatnonzero(is_counted & is_zeroed if launch else is_counted)
            found[launch:, new] = np.arange(program.groups, program.groups + len(new))
            program.event_of += [self.events[number].name for number in new.tolist()]
            program.launch_of_group += np.where(is_zeroed[new], launch, -1).tolist()
        return found

    def _unrolled(
        self,
        pairs: Pairs,
        is_special: Bools,
        special: Callable[[int, Event, int], list[tuple[int, int]]],
        by_epoch: Bools,
    ) -> Rows:
        """The (group, amount) of all nodes; ``special`` gives those of one with a special event."""
        count, nodes = len(self.schedule.tasks), self.program.nodes
        launch = np.repeat(np.arange(self.launches), len(pairs.event))
        node = np.tile(pairs.tasks(), self.launches) + launch * count
        event, amount = (np.tile(each, self.launches) for each in (pairs.event, pairs.amount))
        group = self.groups[launch, event]
        amount = amount * np.where(by_epoch[event], launch + 1, 1)
        chosen = is_special[event]
        if not chosen.any():
            return rows_of(node, group, amount, nodes)
        order = np.arange(len(node))
        plain = np.stack((order, node, group, amount), axis=1)[~chosen]
        rows = [
            (at, int(node[at]), *each)
            for at in np.flatnonzero(chosen).tolist()
            for each in special(int(node[at]), self.events[event[at]], int(amount[at]))
        ]
        whole = np.concatenate((plain, np.array(rows, dtype=np.int64).reshape(-1, 4)))
        _, node, group, amount = whole[np.argsort(whole[:, 0], kind="stable")].T
        return rows_of(node, group, amount, nodes)

    def _queue_of(self, node: int) -> str:
        return self.schedule.tasks[self.program.task_of(node)].queue

    def _set(self, node: int, event: Event, amount: int) -> list[tuple[int, int]]:
        groups = self.sets.get((event.name, self._queue_of(node)), ())
        return [(group, amount) for group in groups]

    def _consume(self, node: int, event: Event, amount: int) -> list[tuple[int, int]]:
        """The sums that a wait asks for which takes away what it waits for."""
        queue = self._queue_of(node)
        if event.kind == MBARRIER and (event.name, queue) not in self.receiver_of:
            group = int(self.groups[0, self.schedule.event_numbers[event.name]])
            self.receiver_of[event.name, queue] = Receiver(event, queue, [group], event.arrivals)
        receiver = self.receiver_of[event.name, queue]
        receiver.waits += [node] * amount
        return [(group, len(receiver.waits) * receiver.unit) for group in receiver.groups]

    def _add_receivers(self, event: Event) -> None:
        """A counter for each core that can wait, raised when all its setters have set."""
        waiters = event.cores[1:] if event.kind == FLAG else event.cores
        for waiter in waiters:
            setters = (
                event.cores[:1]
                if event.kind == FLAG
                else setters_of(event, waiter, self.schedule.queues)
            )
            groups = []
            for setter in setters:
                groups.append(self.program.groups)
                self.program.event_of.append(event.name)
                self.program.launch_of_group.append(-1)
                self.sets.setdefault((event.name, setter), []).append(groups[-1])
            self.receiver_of[event.name, waiter] = Receiver(event, waiter, groups, 1)
