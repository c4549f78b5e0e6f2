"""What the clocks keep, as arrays: what processes know, landings, places of memory.

They are few and wide, a column for each kind of number: so there is little to compile, and what is
used together lies together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from syncproof.checkers.certificate.record import Record

WITNESSES = 4
"""How many reads are kept that surely come after a landing."""

Numbers = NDArray[numpy.int32]

STEPS, LANDED = range(2)
"""Of a process, as a clock has it: how many of its steps, and the puts of how many."""

OWN, COMPLETE, FENCED, ROW, UNPROVED = range(5)
"""Of a process: its steps, how many of them a quiet and a fence cover, the row that is what it
knows now, and its last put that may be in flight."""

REFERENCES, OWNER, FREE = range(3)
"""Of a row: the waits that have still to learn from it, the process whose it is, and, whatever the
row, one that is free: there are as many as the first row says."""

SOURCE, STEP, COVERS, AT_ONCE, SIGNAL, FIRST_OF_PUT, KNEW, USES, BEFORE_IT, WITNESS = range(10)
"""Of a landing: who issued it and at which step, how many steps a quiet or a fence covers there,
whether it is a store that lands as it is made, whether it is a signal, the first landing of its
put, the row of what its issuer knew, how many waits learn from it, the issuer's put before it,
and the processes of its witnesses, whose steps follow."""
WITNESS_STEP = WITNESS + WITNESSES

LAST, READS = range(2)
"""Of a place: the entry of its last landing, and the last of the reads since."""

BEFORE, WHAT, WHEN = range(3)
"""Of an entry, which is a landing or a read at a place: the one before it there; the landing, or
the reader; and the reader's step."""


class Known(NamedTuple):
    """What is known, and of what.

    ``clocks`` has a line for each process and then one for each row; so has ``lines``, with what
    is not known of others. ``entries`` are in the order of the record.
    """

    clocks: Numbers
    lines: Numbers
    landings: Numbers
    places: Numbers
    entries: Numbers

    @property
    def processes(self) -> int:
        """How many processes there are."""
        return int(self.clocks.shape[1])

    @property
    def steps(self) -> Numbers:
        """``steps[p, q]`` of q's steps surely come before what p does next."""
        return self.clocks[: self.processes, :, STEPS]

    @property
    def landed(self) -> Numbers:
        """The puts of ``landed[p, q]`` of q's steps have surely landed before what p does next."""
        return self.clocks[: self.processes, :, LANDED]


def known_at_first(record: Record, room: int) -> Known:
    """Nobody knows anything; there is room for ``room`` rows, of which the first is no row."""
    count = record.processes
    lines = numpy.zeros((count + room, 5), dtype=numpy.int32)
    lines[:count, ROW] = lines[:count, UNPROVED] = -1
    lines[count:, FREE] = numpy.arange(count, count + room)
    lines[count, FREE] = room - 1
    landings = numpy.zeros((record.landings, WITNESS_STEP + WITNESSES), dtype=numpy.int32)
    landings[numpy.array(record.signals, dtype=numpy.int32), SIGNAL] = 1
    landings[:, KNEW] = landings[:, BEFORE_IT] = -1
    landings[:, WITNESS:] = -1
    return Known(
        numpy.zeros((count + room, count, 2), dtype=numpy.int32),
        lines,
        landings,
        numpy.full((record.places, 2), -1, dtype=numpy.int32),
        numpy.zeros((len(record.instructions), 3), dtype=numpy.int32),
    )
