"""Pairs of numbers in rows of any length, as arrays: what a million of waits are kept in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from syncproof.models.taskflow.pairs import Ints


class Rows(NamedTuple):
    """Pairs of numbers in rows: row n are those from ``start[n]`` to ``start[n + 1]``."""

    start: Ints
    first: Ints
    second: Ints

    def of(self, row: int) -> list[tuple[int, int]]:
        """The pairs of one row."""
        at = slice(self.start[row], self.start[row + 1])
        return list(zip(self.first[at].tolist(), self.second[at].tolist(), strict=True))

    def sizes(self) -> Ints:
        """How many pairs each row has."""
        return np.diff(self.start)

    def rows(self) -> Ints:
        """For each pair the number of its row."""
        return np.repeat(np.arange(len(self.start) - 1), self.sizes())

    def turned(self, count: int) -> Rows:
        """The same with ``first`` as the rows, of which there are ``count``, in the same order."""
        return rows_of(self.first, self.rows(), self.second, count)


def rows_of(row: Ints, first: Ints, second: Ints, count: int) -> Rows:
    """Pairs by their rows; those of one row stay in order."""
    order = np.argsort(row, kind="stable")
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=count), out=start[1:])
    return Rows(start, first[order], second[order])


_NONE = np.zeros(0, dtype=np.int64)
NO_ROWS = Rows(np.zeros(1, dtype=np.int64), _NONE, _NONE)


def ranges(start: Ints, sizes: Ints) -> Ints:
    """The numbers from each start on, as many as its size, one range after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(start - ends + sizes, sizes)
