"""The waits or the triggers of all tasks as arrays, for schedules with millions of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, repeat
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Pairs(NamedTuple):
    """Task n has the pairs ``start[n]`` to ``start[n + 1]``, each an event's number and an amount.

    The number is the event's place among all events, -1 for an unknown one; the amount is 0 where
    it is none that an int64 holds.
    """

    start: Ints
    event: Ints
    amount: Ints

    def tasks(self) -> Ints:
        """For each pair the number of its task."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def pairs_of(of_tasks: Iterable[tuple[tuple[str, int], ...]], numbers: Mapping[str, int]) -> Pairs:
    """The (event, amount) of tasks, the events by their numbers."""
    rows = list(of_tasks)
    flat = list(chain.from_iterable(rows))
    start = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)), out=start[1:])
    names, amounts = map(itemgetter(0), flat), list(map(itemgetter(1), flat))
    event = np.fromiter(map(numbers.get, names, repeat(-1)), np.int64, len(flat))
    return Pairs(start, event, _whole(amounts))


def _whole(amounts: list[int]) -> Ints:
    """The amounts; whoever builds a schedule in Python may have given anything."""
    if set(map(type, amounts)) <= {int}:
        try:
            return np.array(amounts, dtype=np.int64)
        except OverflowError:
            pass
    return np.array([a if type(a) is int and abs(a) < 1 << 62 else 0 for a in amounts], np.int64)
