"""The states that were found, and how the room for them grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from syncproof.checkers.fast import machine_code
from syncproof.checkers.fast.arrays import AHEAD, CONTROL_SIZE, COUNT, Store, Words, empty_words
from syncproof.checkers.fast.layout import Layout, repacked
from syncproof.models.transitions import State

FIRST_ROWS, FIRST_SLOTS = 1 << 12, 1 << 13
GROWTH_OF_LOG, GROWTH_OF_LARGE_LOG = 2.0, 1.0625
GROWTH_OF_TABLE, GROWTH_OF_LARGE_TABLE = 2.0, 1.25
LARGE_LOG, LARGE_TABLE = 1 << 18, 1 << 24
FULLEST, FULLEST_LARGE = 0.75, 0.85
LONGEST_RUN = 1 << 10


class States:
    """States as the compiled loops see them: a table, and a log of those that it ``keeps``.

    Where a state is one word the table has it, so that the log may be of the frontier alone.
    ``ask_for`` is told of bytes before they are taken, and may refuse.
    """

    def __init__(self, layout: Layout, keeps: bool, ask_for: Callable[[int], None]) -> None:
        self.layout, self.keeps, self._ask_for = layout, keeps, ask_for
        self.log: Words = empty_words(FIRST_ROWS * layout.words)
        self.slots: Words = empty_words(FIRST_SLOTS)
        self.control: Any = np.zeros(CONTROL_SIZE, np.int64)
        self._forgotten = 0

    @property
    def rows(self) -> int:
        """How many rows there are in the log."""
        return int(self.control[COUNT])

    @property
    def count(self) -> int:
        """How many states were found."""
        return self._forgotten + self.rows

    @property
    def store(self) -> Store:
        """The arrays of the loops."""
        return Store(self.log, self.slots, self.control)

    def begin(self, state: State) -> None:
        """The first state."""
        self.log[: self.layout.words] = self.layout.pack(state)
        self.control[COUNT] = 1
        self._fill_table()

    def words(self, row: int) -> Words:
        """The words of a row."""
        width = self.layout.words
        return self.log[row * width : (row + 1) * width]

    def state(self, row: int) -> State:
        """The state of a row."""
        return self.layout.unpack(self.words(row))

    def forget(self, end: int) -> None:
        """Keep only the rows from ``end`` on, as the first ones."""
        left = self.rows - end
        self.log[:left] = self.log[end : end + left]
        self._forgotten += end
        self.control[COUNT] = left

    # Room

    def room(self) -> int:
        """How many more states there is room for."""
        rows = len(self.log) // self.layout.words
        return min(rows - self.rows, int(_fullest(self.slots) * len(self.slots)) - self.count)

    def grow(self, reserve: int) -> None:
        """Make room for at least ``reserve`` more states."""
        rows = self.rows + reserve
        if len(self.log) < rows * self.layout.words:
            factor = GROWTH_OF_LOG if len(self.log) < LARGE_LOG else GROWTH_OF_LARGE_LOG
            size = int(max(rows, factor * self.rows)) * self.layout.words
            self._ask_for(8 * (size - len(self.log)))
            self.log.resize(size, refcheck=False)
        states, before, fullest = self.count + reserve, len(self.slots), _fullest(self.slots)
        if fullest * before < states:
            factor = GROWTH_OF_TABLE if before < LARGE_TABLE else GROWTH_OF_LARGE_TABLE
            self._grow_table(int(max(states / fullest + 1, factor * before)))

    def _grow_table(self, size: int) -> None:
        before = len(self.slots)
        self._ask_for(8 * (size - before))
        if self.layout.words == 1:
            self.slots.resize(size, refcheck=False)
            taken = empty_words(LONGEST_RUN)
            while before := machine_code.run("spread_table", before, self.slots, taken):
                taken = empty_words(2 * len(taken))
        else:
            self.slots = empty_words(0)
            self.slots = empty_words(size)
            self._fill_table()

    def _fill_table(self) -> None:
        fill_table(self.rows, self.layout.words, self.log, self.slots)

    def repack(self, spots: Sequence[tuple[int, int, int]], words: int) -> None:
        """Take over a new arrangement of the layout; ``spots`` and ``words`` are of the last."""
        self._ask_for(8 * self.count * self.layout.words)
        known, count = self.log, self.rows
        if not self.keeps:
            known, count = self.slots[self.slots != 0] - np.uint64(1), self.count
        self.slots = empty_words(max(FIRST_SLOTS, int(self.count / FULLEST) + 1))
        known = repacked(known, count, spots, words, self.layout)
        fill_table(count, self.layout.words, known, self.slots)
        self.log = known if self.keeps else repacked(self.log, self.rows, spots, words, self.layout)


def _fullest(slots: Words) -> float:
    """How full a table may be: small ones trade room for shorter runs of full slots."""
    return FULLEST if len(slots) < LARGE_TABLE else FULLEST_LARGE


def fill_table(count: int, words: int, log: Words, slots: Words) -> None:
    """Put the first ``count`` rows of a log into an empty table."""
    machine_code.run("fill_table", count, words, log, slots, empty_words(AHEAD))
