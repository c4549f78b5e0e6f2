"""One run of a program in time: who starts when, in which order, and who never does.

Sums only grow and queues only advance, so all runs of a program without pools end with the same
nodes done: what is stuck in one is stuck in all (docs/taskflow.md).
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from syncproof.checkers.schedule.program import Program


@dataclass(frozen=True)
class Costs:
    """What synchronization costs a queue, in microseconds: each wait, each trigger, a barrier."""

    wait: float = 0.0
    trigger: float = 0.0
    barrier: float = 0.0


@dataclass
class Execution:
    """A run: ``order`` are the nodes as they started; the stuck ones are missing.

    ``start`` and ``end`` are in microseconds, -1 for a node that never gets there.
    """

    start: list[float]
    end: list[float]
    order: list[int] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)

    @property
    def makespan(self) -> float:
        """When the last node ends."""
        return max(self.end, default=0.0)

    def is_stuck(self, node: int) -> bool:
        """Whether the node never starts."""
        return self.end[node] < 0


def execute(program: Program, costs: Costs | None = None, *, in_order: bool = True) -> Execution:
    """Run the program as soon as it can; without ``in_order`` queues hold nobody back."""
    return _Run(program, costs or Costs(), in_order).run()


class _Run:
    def __init__(self, program: Program, costs: Costs, in_order: bool) -> None:
        self.program, self.in_order = program, in_order
        count = program.nodes
        self.found = Execution([-1.0] * count, [-1.0] * count, sums=[0] * program.groups)
        self.missing = program.waits.sizes().tolist()
        self.duration = self._durations(costs)
        waiting = program.waits.rows()
        # By group, the lowest sum first; ``at`` is the first of a group that is not met.
        order = np.lexsort((waiting, program.waits.second, program.waits.first))
        self.waiters = waiting[order].tolist()
        self.sums = program.waits.second[order].tolist()
        self.ends = np.cumsum(np.bincount(program.waits.first, minlength=program.groups)).tolist()
        self.at = [0, *self.ends]
        self.raised, self.groups, self.amounts = (each.tolist() for each in program.triggers)
        self.after: dict[int, list[int]] = {}
        for node, others in enumerate(program.before):
            self.missing[node] += len(others)
            for other in others:
                self.after.setdefault(other, []).append(node)
        self.units = [pool.size for pool in program.schedule.pools.values()]
        self.lines: list[deque[int]] = [deque() for _ in self.units]
        self.pool_of_queue = self._pools() if in_order else [-1] * len(program.members)
        self.running: list[tuple[float, int]] = []

    def _durations(self, costs: Costs) -> list[float]:
        program = self.program
        tasks = program.schedule.tasks
        plain = [
            task.duration + costs.wait * len(task.waits) + costs.trigger * len(task.triggers)
            for task in tasks
        ]
        rest = [costs.barrier if i % 3 == 0 else 0.0 for i in range(program.nodes - program.tasks)]
        return plain * program.schedule.launches.count + rest

    def _pools(self) -> list[int]:
        numbers = {name: i for i, name in enumerate(self.program.schedule.pools)}
        queues = self.program.schedule.queues.values()
        found = [numbers[q.pool] if q.pool else -1 for q in queues]
        return found + [-1] * self.program.schedule.ranks

    def run(self) -> Execution:
        members = self.program.members
        if self.in_order:
            for node, position in enumerate(self.program.position):
                self.missing[node] += position > 0
            for nodes in members:
                if nodes and self.pool_of_queue[self.program.queue[nodes[0]]] >= 0:
                    for node in nodes:
                        self.missing[node] += 1
                    self._acquire(nodes[0], 0.0)
        for node in range(self.program.nodes):
            if self.missing[node] == 0 and self.found.start[node] < 0:
                self._start(node, 0.0)
        while self.running:
            now, node = heapq.heappop(self.running)
            self._finish(node, now)
        return self.found

    def _start(self, node: int, now: float) -> None:
        self.found.start[node] = now
        self.found.order.append(node)
        heapq.heappush(self.running, (now + self.duration[node], node))

    def _finish(self, node: int, now: float) -> None:
        found, program = self.found, self.program
        found.end[node] = now
        ready: list[int] = []
        for pair in range(self.raised[node], self.raised[node + 1]):
            group = self.groups[pair]
            found.sums[group] += self.amounts[pair]
            at, total = self.at[group], found.sums[group]
            while at < self.ends[group] and self.sums[at] <= total:
                ready.append(self.waiters[at])
                at += 1
            self.at[group] = at
        ready += self.after.get(node, ())
        queue = program.queue[node]
        pool = self.pool_of_queue[queue]
        if pool >= 0:
            self._release(pool, now)
        if self.in_order and program.position[node] + 1 < len(program.members[queue]):
            following = program.members[queue][program.position[node] + 1]
            ready.append(following)
            if pool >= 0:
                self._acquire(following, now)
        for each in ready:
            self._less(each, now)

    def _less(self, node: int, now: float) -> None:
        self.missing[node] -= 1
        if self.missing[node] == 0:
            self._start(node, now)

    def _acquire(self, node: int, now: float) -> None:
        """A node at the head of its queue takes a core, or stands in line for one."""
        pool = self.pool_of_queue[self.program.queue[node]]
        if self.units[pool]:
            self.units[pool] -= 1
            self._less(node, now)
        else:
            self.lines[pool].append(node)

    def _release(self, pool: int, now: float) -> None:
        if self.lines[pool]:
            self._less(self.lines[pool].popleft(), now)
        else:
            self.units[pool] += 1
