"""The arrays that the compiled loops work on, by name; nothing here needs numba.

A decision is a run of integers in ``program``: first which bits of the state it looks at (width,
shift and word in 6, 6 and 20 bits), then for each content of these bits where to go: another
decision (above 0), `UNKNOWN`, `REQUESTED`, or the leaf ``FIRST_LEAF - child``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

UNKNOWN, REQUESTED, FIRST_LEAF = 0, -1, -2

# Places in `Store.control`, each on its own cache line as threads write to them
NEXT, COUNT, PENDING, REQUESTS, TERMINALS = (8 * i for i in range(5))
CONTROL_SIZE = 8 * 5

# A place in `Notes.flags`
HAS_FAILED = 0

AHEAD = 256
"""How many states are looked for at a time when a table is filled."""

MOST_REQUESTS = 4096
MOST_MOVES = (1 << 19) - 1
AT_ONCE = 4
"""Moves that are made together; there is room for as many behind the last one."""

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]


class Steps(NamedTuple):
    """What every agent does, as decisions and leaves.

    ``roots`` is the first decision of each agent. ``spans`` has for each leaf its first move, how
    many they are and whether one says anything (in 43, 19 and 1 bits). ``moves`` has two words for
    each word of a state: it becomes ``(s & keep) | bits``. ``event`` numbers what a move says (0:
    nothing). ``reads``, ``writes`` and ``puts`` are the cells that a leaf
    accesses, as bits, for race-free; ``own`` those on which it races with itself.
    """

    program: Small
    roots: Small
    spans: Numbers
    moves: Words
    reads: Words
    writes: Words
    puts: Words
    own: Words


class Store(NamedTuple):
    """The states: all of them in the order of arrival, and a table to find them by.

    A slot of ``slots`` is 0 or, for states of one word, the state + 1; for others the row + 1 in
    its lower half and a part of the hash in its upper. ``control`` is shared by all threads.
    """

    log: Words
    slots: Words
    control: Numbers


class Work(NamedTuple):
    """What to expand in one call: rows up to ``end`` (of ``rows`` if there are any).

    ``pending`` takes the rows that met an unknown step, ``requests`` such steps as (place in the
    program, row, agent), ``terminals`` the rows without a step.
    """

    rows: Numbers
    pending: Numbers
    requests: Numbers
    terminals: Numbers


class Notes(NamedTuple):
    """What one thread found: whether a step failed and in which state, and one state for each race.

    ``recent`` are states that are in the table already, each where its hash says: many steps lead
    to one of them. Of several states the least is kept, whoever came first.
    """

    flags: Flags
    failed: Words
    raced: Flags
    racing: Words
    buffer: Words
    places: Words
    leaves: Small
    recent: Words


class Kind(NamedTuple):
    """What a loop is given: an array of so many dimensions, or a plain number (no type and 0)."""

    dtype: str
    dimensions: int


def empty_words(number: int) -> Words:
    """An array of words with nothing in it."""
    return np.zeros(number, np.uint64)
