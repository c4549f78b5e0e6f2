"""What precedes what in every run: one vector clock a node, one component a queue.

``clock[n][q]`` is how many nodes of queue q have ended in every run before n starts, n itself
included in its own queue. The clock of a wait for a sum is the componentwise quantile of the
triggers' clocks: for each queue, the adversary reaches the sum with the triggers that need the
least of that queue. Where all triggers are needed it is the maximum. The true clocks are the
greatest solution of these equations; a pass in the order of one run solves them at once unless a
wait has triggers to spare, then passes are repeated until nothing changes (docs/taskflow.md).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from syncproof.checkers.schedule.execution import Execution
from syncproof.checkers.schedule.program import Program
from syncproof.checkers.schedule.rows import Rows, ranges, rows_of

Array = NDArray[np.int32]
NEVER = np.iinfo(np.int32).max
MANY = 8
"""From so many triggers on, the clock of an event with several waiters is kept."""


class Clocks:
    """The clocks of all nodes that run at all; ``exact`` is False if the passes did not settle."""

    def __init__(self, program: Program, execution: Execution, passes: int = 64) -> None:
        self.program = program
        self.order = execution.order
        self.clock: Array = np.full((program.nodes, len(program.members)), NEVER, dtype=np.int32)
        triggered, waits = program.triggered, program.waits
        self._sums = np.cumsum(triggered.second)
        self._base = np.concatenate(([0], self._sums))[triggered.start[:-1]]
        self._in_one_queue = self._queues_agree()
        self._waiting = waits.rows()
        # Of each wait: all triggers of its group are needed, a single one, or which is not clear.
        self._all = program.totals[waits.first] == waits.second
        self._single = ~self._all & self._in_one_queue[waits.first]
        unclear = ~self._all & ~self._single
        self.spare: list[int] = np.unique(self._waiting[unclear]).tolist()
        # Groups of so many triggers that they are joined once for all that wait for them.
        waiters = np.bincount(waits.first[self._all], minlength=program.groups)
        is_shared = (triggered.sizes() >= MANY) & (waiters > 1)
        self._direct = self._predecessors(self._all & ~is_shared[waits.first])
        self._shared = self._by_node(self._all & is_shared[waits.first])
        self._unclear = self._by_node(unclear)
        self._waiters = waiters
        self.exact = self._solve(passes)

    def precedes(self, first: int, second: int) -> bool:
        """Whether ``first`` has ended in every run before ``second`` starts; true of itself."""
        queue, position = self.program.queue[first], self.program.position[first]
        return int(self.clock.item(second, queue)) > position

    def needed(self, group: int, threshold: int) -> list[int] | None:
        """The triggers without which no run reaches the sum, if they alone reach it.

        None where which triggers it takes is not clear from the group alone.
        """
        if self.program.totals[group] == threshold:
            return self.program.group(group).nodes
        at = int(np.searchsorted(self._sums, self._base[group] + threshold))
        if not self._in_one_queue[group] or at >= self.program.triggered.start[group + 1]:
            return None
        return [int(self.program.triggered.first[at])]

    def predecessors(self, most: int) -> tuple[Rows, list[int]]:
        """What precedes each node at once: (node, group of which it is a trigger, or -1).

        Nodes that have more than ``most`` have empty rows, and are given apart. Triggers of
        waits of which it is not clear which they need are left out.
        """
        sizes = self.program.triggered.sizes()[self.program.waits.first]
        extra = np.bincount(
            self._waiting[self._all], sizes[self._all], minlength=self.program.nodes
        )
        # Those that the direct rows hold are counted twice at most.
        is_large = extra + self._direct.sizes() > most
        rows = self._predecessors(self._all & ~is_large[self._waiting])
        return rows, np.flatnonzero(is_large).tolist()

    def _queues_agree(self) -> NDArray[np.bool_]:
        """For each group whether all its triggers are in one queue."""
        triggered = self.program.triggered
        queues, groups = np.array(self.program.queue)[triggered.first], triggered.rows()
        found = np.ones(self.program.groups, dtype=bool)
        found[groups[queues != queues[triggered.start[groups]]]] = False
        return found

    def _by_node(self, chosen: NDArray[np.bool_]) -> dict[int, list[tuple[int, int]]]:
        """The chosen waits, as (group, threshold)."""
        found: dict[int, list[tuple[int, int]]] = {}
        waits = self.program.waits
        columns = (self._waiting, waits.first, waits.second)
        for node, group, threshold in zip(*(c[chosen].tolist() for c in columns), strict=True):
            found.setdefault(node, []).append((group, threshold))
        return found

    def _predecessors(self, chosen: NDArray[np.bool_]) -> Rows:
        """For each node the one before it in its queue, what ``before`` says, and the triggers of
        its chosen waits and of those that need a single one; each with its group or -1."""
        program, waits, triggered = self.program, self.program.waits, self.program.triggered
        pairs = [(other, node) for node, before in enumerate(program.before) for other in before]
        pairs += [pair for members in program.members for pair in pairwise(members)]
        fixed = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        nodes, others = [fixed[:, 1]], [fixed[:, 0]]
        groups = [np.full(len(fixed), -1, dtype=np.int64)]
        single = waits.first[self._single]
        at = np.searchsorted(self._sums, self._base[single] + waits.second[self._single])
        nodes.append(self._waiting[self._single])
        others.append(triggered.first[at])
        groups.append(single)
        whole = waits.first[chosen]
        sizes = triggered.sizes()[whole]
        nodes.append(np.repeat(self._waiting[chosen], sizes))
        others.append(triggered.first[ranges(triggered.start[whole], sizes)])
        groups.append(np.repeat(whole, sizes))
        row, first, second = map(np.concatenate, (nodes, others, groups))
        return rows_of(row, first, second, program.nodes)

    def _solve(self, passes: int) -> bool:
        if not self.spare:
            self._pass()
            return True
        for _ in range(passes):
            before = self.clock.copy()
            self._pass()
            if np.array_equal(before, self.clock):
                return True
        return False

    def _pass(self) -> None:
        program, clock, others = self.program, self.clock, self._direct.first
        start = self._direct.start.tolist()
        kept: dict[int, Array] = {}
        left = self._waiters.tolist()
        for node in self.order:
            row, queue = clock[node], program.queue[node]
            joined = [self._quantile(*wait) for wait in self._unclear.get(node, ())]
            joined += [self._event(group, kept, left) for group, _ in self._shared.get(node, ())]
            first, last = start[node], start[node + 1]
            if last - first > 1:
                np.maximum.reduce(clock.take(others[first:last], axis=0), axis=0, out=row)
            else:
                row[:] = clock[others[first]] if first < last else 0
            for each in joined:
                np.maximum(row, each, out=row)
            row[queue] = program.position[node] + 1

    def _event(self, group: int, kept: dict[int, Array], left: list[int]) -> Array:
        """The maximum over all triggers, kept until the last waiter has asked."""
        left[group] -= 1
        if group not in kept:
            kept[group] = np.maximum.reduce(self.clock[self.program.group(group).nodes], axis=0)
        return kept[group] if left[group] else kept.pop(group)

    def _quantile(self, group: int, threshold: int) -> Array:
        found = self.program.group(group)
        clocks = self.clock[found.nodes]
        order = np.argsort(clocks, axis=0, kind="stable")
        sums = np.cumsum(np.asarray(found.amounts, dtype=np.int64)[order], axis=0)
        enough = np.argmax(sums >= threshold, axis=0)
        ranked = np.take_along_axis(clocks, order, axis=0)
        least: Array = np.take_along_axis(ranked, enough[None, :], axis=0)[0]
        return least
