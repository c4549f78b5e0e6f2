"""A schedule unrolled over its launches: nodes in queues, and groups of triggers with thresholds.

Every kind of event comes down to *groups*: triggers whose amounts are summed. A wait asks of one
group that its sum reaches a number. A counter is one group, waited for with its threshold. The
counter of a core in a cross-core event is one group for each core that has to set, and its n-th
wait asks each of them for n; a flag is the same with one setter; the n-th wait of a queue for an
mbarrier asks for n phases of arrivals. So a consumed event needs no subtraction: sums only grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from syncproof.models.taskflow.schedule import (
    COUNTER,
    CROSS_CORE,
    FLAG,
    MBARRIER,
    PENDING,
    Event,
    Schedule,
    Task,
    setters_of,
)

Waits = list[tuple[int, int]]
"""(group, sum that it has to reach), in the order of the waits."""


@dataclass(slots=True)
class Group:
    """Triggers whose amounts add up; ``nodes`` and ``amounts`` go together.

    ``launch`` is the launch that a zeroed counter is of, or -1.
    """

    event: str
    launch: int
    nodes: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)

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
    """

    schedule: Schedule
    queue: list[int]
    position: list[int]
    before: list[tuple[int, ...]]
    members: list[list[int]]
    groups: list[Group]
    waits: list[Waits]
    triggers: list[list[tuple[int, int]]]
    receivers: list[Receiver]

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
    launches, count = schedule.launches.count, len(schedule.tasks)
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
    made = Program(
        schedule,
        queue,
        position,
        [()] * len(queue),
        members,
        [],
        [[] for _ in queue],
        [[] for _ in queue],
        [],
    )
    _add_launches(made, own, names)
    _Events(made, count).add()
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
    """Adds the groups, waits and triggers of all events to a program."""

    def __init__(self, program: Program, count: int) -> None:
        self.program, self.count = program, count
        self.schedule = program.schedule
        self.zeroed = set(self.schedule.launches.zero)
        # Groups by event: of all counters and mbarriers, and of counters that mean what they say.
        self.counters: dict[str, int] = {}
        self.plain: dict[str, int] = {}
        self.sets: dict[tuple[str, str], list[int]] = {}
        self.receiver_of: dict[tuple[str, str], Receiver] = {}

    def add(self) -> None:
        for event in self.schedule.events.values():
            if event.kind in (CROSS_CORE, FLAG):
                self._add_receivers(event)
        for launch in range(self.schedule.launches.count):
            self._add_counters(launch)
            for node, task in enumerate(self.schedule.tasks, launch * self.count):
                self._add_waits(node, launch, task)
                self._add_triggers(node, task)
        self.program.receivers = list(self.receiver_of.values())

    def _add_counters(self, launch: int) -> None:
        """A group for each counter and mbarrier; one for each launch for those that are zeroed."""
        for name, event in self.schedule.events.items():
            if event.kind in (COUNTER, MBARRIER):
                is_zeroed = name in self.zeroed
                if is_zeroed or launch == 0:
                    self.counters[name] = self._new_group(name, launch if is_zeroed else -1)
                if event.kind == COUNTER and not event.epochs:
                    self.plain[name] = self.counters[name]

    def _add_waits(self, node: int, launch: int, task: Task) -> None:
        waits, plain = self.program.waits[node], self.plain
        for name, amount in task.waits:
            if name in plain:
                waits.append((plain[name], amount))
            else:
                waits += self._waits(node, launch, task.queue, self.schedule.events[name], amount)

    def _add_triggers(self, node: int, task: Task) -> None:
        triggers, groups, counters = self.program.triggers[node], self.program.groups, self.counters
        for name, amount in task.triggers:
            counter = counters.get(name, -1)
            for number in (counter,) if counter >= 0 else self.sets.get((name, task.queue), ()):
                groups[number].nodes.append(node)
                groups[number].amounts.append(amount)
                triggers.append((number, amount))

    def _new_group(self, event: str, launch: int = -1) -> int:
        self.program.groups.append(Group(event, launch))
        return len(self.program.groups) - 1

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
                groups.append(self._new_group(event.name))
                self.sets.setdefault((event.name, setter), []).append(groups[-1])
            self.receiver_of[event.name, waiter] = Receiver(event, waiter, groups, 1)

    def _waits(self, node: int, launch: int, queue: str, event: Event, amount: int) -> Waits:
        """The sums that a wait asks for, unless its event is a plain counter."""
        if event.kind == COUNTER:
            return [(self.counters[event.name], amount * (launch + 1))]
        if event.kind == MBARRIER and (event.name, queue) not in self.receiver_of:
            made = Receiver(event, queue, [self.counters[event.name]], event.arrivals)
            self.receiver_of[event.name, queue] = made
        receiver = self.receiver_of[event.name, queue]
        receiver.waits += [node] * amount
        return [(group, len(receiver.waits) * receiver.unit) for group in receiver.groups]
