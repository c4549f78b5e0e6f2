"""What the clocks keep, as arrays: knowledge of processes, landings, memory, and rows of clocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from syncproof.checkers.certificate.record import Record

WITNESSES = 4
"""How many reads are kept that surely come after a landing."""

Numbers = NDArray[numpy.int32]


class Known(NamedTuple):
    """What the processes know; one row or number for each."""

    steps: Numbers
    landed: Numbers
    own: Numbers
    complete: Numbers
    fenced: Numbers
    row: Numbers
    unproved: Numbers


class Landings(NamedTuple):
    """What came to memory: one number for each landing, or for each place of one (``entry``)."""

    source: Numbers
    step: Numbers
    covers: Numbers
    at_once: Numbers
    signal: Numbers
    first_of_put: Numbers
    row: Numbers
    uses: Numbers
    unproved: Numbers
    witness: Numbers
    witness_step: Numbers
    entry: Numbers
    entry_before: Numbers


class Memory(NamedTuple):
    """For each place its last landing's entry and the reads since, as a list of numbers."""

    last: Numbers
    reads: Numbers
    read_next: Numbers
    read_process: Numbers
    read_step: Numbers


class Rows(NamedTuple):
    """Clocks that waits have still to learn from; ``free`` begins with the number of free rows."""

    steps: Numbers
    landed: Numbers
    references: Numbers
    owner: Numbers
    free: Numbers


def known_at_first(record: Record) -> Known:
    """Nobody knows anything."""
    count = record.processes
    square = [numpy.zeros((count, count), dtype=numpy.int32) for _ in range(2)]
    lines = [numpy.zeros(count, dtype=numpy.int32) for _ in range(5)]
    lines[3][:] = lines[4][:] = -1
    return Known(*square, *lines)


def landings_of(record: Record) -> Landings:
    """Room for the landings of a record."""
    count, numbers = record.landings, len(record.instructions)
    made = [numpy.zeros(count, dtype=numpy.int32) for _ in range(9)]
    if len(record.signals):
        made[4][numpy.array(record.signals)] = 1
    made[6][:] = made[8][:] = -1
    witnesses = [numpy.full((count, WITNESSES), -1, dtype=numpy.int32) for _ in range(2)]
    entries = [numpy.full(numbers, -1, dtype=numpy.int32) for _ in range(2)]
    return Landings(*made, *witnesses, *entries)


def memory_of(record: Record) -> Memory:
    """Places without landings, and room for the reads of a record."""
    places = [numpy.full(record.places, -1, dtype=numpy.int32) for _ in range(2)]
    reads = [numpy.zeros(len(record.instructions), dtype=numpy.int32) for _ in range(3)]
    return Memory(*places, *reads)


def rows_for(processes: int, count: int) -> Rows:
    """Free rows."""
    steps, landed = (numpy.zeros((count, processes), dtype=numpy.int32) for _ in range(2))
    references, owner = (numpy.zeros(count, dtype=numpy.int32) for _ in range(2))
    free = numpy.arange(count + 1, dtype=numpy.int32) - 1
    free[0] = count
    return Rows(steps, landed, references, owner, free)
