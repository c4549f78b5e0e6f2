"""What precedes what in every run: one vector clock a node, one component a queue.

``clock[n][q]`` is how many nodes of queue q have ended in every run before n starts, n itself
included in its own queue. The clock of a wait for a sum is the componentwise quantile of the
triggers' clocks: for each queue, the adversary reaches the sum with the triggers that need the
least of that queue. Where all triggers are needed it is the maximum. The true clocks are the
greatest solution of these equations; a pass in the order of one run solves them at once unless a
wait has triggers to spare, then passes are repeated until nothing changes (docs/taskflow.md).
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from syncproof.checkers.schedule.execution import Execution
from syncproof.checkers.schedule.program import Program

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
        self._totals = [group.total for group in program.groups]
        self._sums: dict[int, list[int]] = {}
        self._waiters = [0] * len(program.groups)
        for waits in program.waits:
            for group, _ in waits:
                self._waiters[group] += 1
        self.spare = [
            node
            for node, waits in enumerate(program.waits)
            if any(self.needed(group, threshold) is None for group, threshold in waits)
        ]
        self.exact = self._solve(passes)

    def precedes(self, first: int, second: int) -> bool:
        """Whether ``first`` has ended in every run before ``second`` starts; true of itself."""
        queue, position = self.program.queue[first], self.program.position[first]
        return int(self.clock.item(second, queue)) > position

    def needed(self, group: int, threshold: int) -> list[int] | None:
        """The triggers without which no run reaches the sum, if they alone reach it.

        None where which triggers it takes is not clear from the group alone.
        """
        found = self.program.groups[group]
        if self._totals[group] == threshold:
            return found.nodes
        sums = self._sums.get(group)
        if sums is None:
            in_one_queue = len({self.program.queue[node] for node in found.nodes}) == 1
            sums = self._sums[group] = list(accumulate(found.amounts)) if in_one_queue else []
        at = bisect_left(sums, threshold)
        return found.nodes[at : at + 1] if at < len(sums) else None

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
        program, clock = self.program, self.clock
        kept: dict[int, Array] = {}
        left = list(self._waiters)
        for node in self.order:
            queue, position = program.queue[node], program.position[node]
            rows = [program.members[queue][position - 1]] if position else []
            rows += program.before[node]
            joined: list[Array] = []
            for group, threshold in program.waits[node]:
                needed = self.needed(group, threshold)
                if needed is None:
                    joined.append(self._quantile(group, threshold))
                elif len(needed) < MANY or self._waiters[group] == 1:
                    rows += needed
                else:
                    joined.append(self._event(group, needed, kept, left))
            self._join(node, rows, joined)
            clock[node, queue] = position + 1

    def _join(self, node: int, rows: list[int], joined: list[Array]) -> None:
        row = self.clock[node]
        if len(rows) == 1:
            row[:] = self.clock[rows[0]]
        elif rows:
            np.maximum.reduce(self.clock[rows], axis=0, out=row)
        else:
            row[:] = 0
        for each in joined:
            np.maximum(row, each, out=row)

    def _event(
        self, group: int, needed: list[int], kept: dict[int, Array], left: list[int]
    ) -> Array:
        """The maximum over all triggers, kept until the last waiter has asked."""
        if len(needed) < len(self.program.groups[group].nodes):
            row: Array = self.clock[needed[0]]
            return row
        left[group] -= 1
        if group not in kept:
            kept[group] = np.maximum.reduce(self.clock[needed], axis=0)
        return kept[group] if left[group] else kept.pop(group)

    def _quantile(self, group: int, threshold: int) -> Array:
        found = self.program.groups[group]
        clocks = self.clock[found.nodes]
        order = np.argsort(clocks, axis=0, kind="stable")
        sums = np.cumsum(np.asarray(found.amounts, dtype=np.int64)[order], axis=0)
        enough = np.argmax(sums >= threshold, axis=0)
        ranked = np.take_along_axis(clocks, order, axis=0)
        least: Array = np.take_along_axis(ranked, enough[None, :], axis=0)[0]
        return least
