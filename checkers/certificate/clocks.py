"""Check a record with vector clocks: whether every other run must be this run again.

``steps[p, q]`` is how many steps of process q surely come before what process p does next;
``landed[p, q]`` says that all puts that q issued before that step have surely landed. A process's
own counts are kept apart, so that its clock changes only when it learns. What the issuer of a put
knew is kept as a row, shared by all its puts until it learns more, and only while a wait has still
to learn from it. The rules are those of docs/certificate.md.

Plain loops over arrays: those of a long record are compiled by numba.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy

from syncproof.checkers.certificate.knowledge import (
    AT_ONCE,
    BEFORE,
    BEFORE_IT,
    COMPLETE,
    COVERS,
    FENCED,
    FIRST_OF_PUT,
    FREE,
    KNEW,
    LANDED,
    LAST,
    OWN,
    OWNER,
    READS,
    REFERENCES,
    ROW,
    SIGNAL,
    SOURCE,
    STEP,
    STEPS,
    UNPROVED,
    USES,
    WHAT,
    WHEN,
    WITNESS,
    WITNESSES,
    Known,
    Numbers,
    known_at_first,
)
from syncproof.checkers.certificate.record import (
    FENCE,
    PUT,
    QUIET,
    READ,
    RETURN,
    STORE,
    SYNC,
    WAIT,
    Record,
)

LONG = 100_000
"""Records of more numbers than this are worth compiled loops."""

SOUND, LATE_READ, LATE_WRITE, UNORDERED_READ, IN_FLIGHT, RETURNS_EARLY, NO_ROOM = range(7)
GAPS = {
    LATE_READ: "nothing orders {other}'s put to {place} before {process}'s read",
    LATE_WRITE: "nothing orders {process}'s put to {place} after {other}'s",
    UNORDERED_READ: "nothing orders {process}'s put to {place} after {other}'s read",
    IN_FLIGHT: "{process}'s put to {place} may meet the in-flight bound",
    RETURNS_EARLY: "{process} may return before its put to {place} lands",
}


def first_gap(record: Record) -> tuple[int, int, int, int]:
    """The first pair that nothing orders: (what is wrong, process, place, other process).

    `SOUND` if there is none: every run is the record's, up to steps that commute.
    """
    return clocks_of(record)[0]


def clocks_of(record: Record) -> tuple[tuple[int, int, int, int], Known]:
    """The first pair that nothing orders, and what each process knows there or at the end."""
    code = numpy.frombuffer(record.instructions, dtype=numpy.int32)
    check: Any = _compiled() if len(code) > LONG else check_all
    room = 2 * record.processes + 16
    while True:
        known = known_at_first(record, room)
        kind, process, place, other = check(
            code, known, record.in_flight, record.same_address_order
        )
        if kind != NO_ROOM:
            if kind == RETURNS_EARLY:
                place = _place_of(place, known)
            return (int(kind), int(process), int(place), int(other)), known
        room *= 2


def _place_of(landing: int, known: Known) -> int:
    """Where a landing still is the last, or -1."""
    entries = known.places[:, LAST]
    found = numpy.flatnonzero((entries >= 0) & (known.entries[entries, WHAT] == landing))
    return int(found[0]) if len(found) else -1


@cache
def _compiled() -> Any:
    try:
        from numba import njit
        from numba.extending import register_jitable
    except ImportError:
        return check_all  # slower, and the same

    for each in HELPERS:
        register_jitable(each)
    return njit(cache=True)(check_all)


# What follows is compiled, and so is written in what numba knows


def check_all(
    code: Numbers, known: Known, in_flight: int, same_address_order: bool
) -> tuple[int, int, int, int]:
    """Take the instructions in order; the first that is not ordered, or `SOUND`.

    Of a process that returns early the landing is told in the place of the place.
    """
    count_uses(code, known)
    at = landing = entry = 0
    while at < len(code):
        kind, process = code[at], code[at + 1]
        if kind in (PUT, STORE):
            first, last = landing, landing + (code[at + 2] if kind == PUT else 1)
            at += 3 if kind == PUT else 2
            while landing < last:
                if not issue(landing, process, first, kind == STORE, known):
                    return NO_ROOM, process, -1, -1
                for i in range(at + 1, at + 1 + code[at]):
                    place = code[i]
                    wrong, other = check_write(place, landing, known, in_flight, same_address_order)
                    if wrong != SOUND:
                        return wrong, process, place, other
                    known.entries[entry, BEFORE] = known.places[place, LAST]
                    known.entries[entry, WHAT] = landing
                    known.places[place, LAST], known.places[place, READS] = entry, -1
                    entry += 1
                at += 1 + code[at]
                landing += 1
            known.lines[process, OWN] += 1
            continue
        if kind in (READ, WAIT):
            first = at + 3 if kind == READ else at + 2
            for i in range(first, first + (code[at + 2] if kind == READ else 1)):
                place = code[i]
                if kind == READ:
                    wrong, other = check_load(process, place, known)
                else:
                    wrong, other = check_wait(process, place, code[i + 1], known)
                if wrong != SOUND:
                    return wrong, process, place, other
                note_read(process, place, entry, known)
                entry += 1
            known.lines[process, OWN] += 1
        elif kind == SYNC:
            meet(code, at + 2, at + 2 + process, known)
        elif kind == RETURN:
            pending = unproved(process, known)
            if pending >= 0:
                return RETURNS_EARLY, process, pending, process
        else:
            if kind == QUIET:
                known.lines[process, COMPLETE] = known.lines[process, OWN]
                known.lines[process, UNPROVED] = -1
            elif kind == FENCE:
                known.lines[process, FENCED] = known.lines[process, OWN]
            known.lines[process, OWN] += 1
        at += length(code, at)
    return SOUND, -1, -1, -1


def length(code: Numbers, at: int) -> int:
    """The numbers of an instruction that is no put."""
    kind = code[at]
    if kind == READ:
        return int(3 + code[at + 2])
    if kind == SYNC:
        return int(2 + code[at + 1])
    return 4 if kind == WAIT else 2


def count_uses(code: Numbers, known: Known) -> None:
    """Note who issues each landing and how many waits of others read it."""
    at = landing = 0
    while at < len(code):
        kind, process = code[at], code[at + 1]
        if kind in (PUT, STORE):
            last = landing + (code[at + 2] if kind == PUT else 1)
            at += 3 if kind == PUT else 2
            while landing < last:
                known.landings[landing, SOURCE] = process
                for i in range(at + 1, at + 1 + code[at]):
                    known.places[code[i], LAST] = landing
                at += 1 + code[at]
                landing += 1
            continue
        if kind == WAIT:
            read = known.places[code[at + 2], LAST]
            if read >= 0 and known.landings[read, SOURCE] != process:
                known.landings[read, USES] += 1
        at += length(code, at)
    for place in range(len(known.places)):
        known.places[place, LAST] = -1


def has_step(process: int, other: int, step: int, known: Known) -> bool:
    """Whether a step of ``other`` surely precedes what ``process`` does next."""
    if other == process:
        return bool(step < known.lines[process, OWN])
    return bool(known.clocks[process, other, STEPS] > step)


def has_landed(process: int, landing: int, known: Known) -> bool:
    """Whether a landing surely precedes what ``process`` does next."""
    source, step = known.landings[landing, SOURCE], known.landings[landing, STEP]
    if known.landings[landing, AT_ONCE]:
        return has_step(process, source, step, known)
    complete = known.clocks[process, source, LANDED]
    if source == process:
        complete = known.lines[process, COMPLETE]
    if complete > step:
        return True
    for i in range(WITNESS, WITNESS + WITNESSES):
        witness = known.landings[landing, i]
        if witness < 0:
            break
        if has_step(process, witness, known.landings[landing, i + WITNESSES], known):
            return True
    return False


def issue(landing: int, process: int, first: int, at_once: bool, known: Known) -> bool:
    """A put is issued; False if there is no room for what its issuer knows."""
    covers = known.lines[process, COMPLETE]
    if not at_once:  # a fence does not hold back what never is on the way
        covers = max(covers, known.lines[process, FENCED])
    known.landings[landing, STEP], known.landings[landing, COVERS] = (
        known.lines[process, OWN],
        covers,
    )
    known.landings[landing, AT_ONCE], known.landings[landing, FIRST_OF_PUT] = at_once, first
    known.landings[landing, BEFORE_IT] = known.lines[process, UNPROVED]
    known.lines[process, UNPROVED] = landing
    if not known.landings[landing, USES]:
        return True
    row = known.lines[process, ROW]
    if row < 0:
        rows = known.clocks.shape[1]
        free = known.lines[rows, FREE]
        if not free:
            return False
        row = known.lines[rows + free, FREE]
        known.lines[rows, FREE] = free - 1
        known.lines[process, ROW], known.lines[row, OWNER] = row, process
        for other in range(known.clocks.shape[1]):
            known.clocks[row, other, STEPS] = known.clocks[process, other, STEPS]
            known.clocks[row, other, LANDED] = known.clocks[process, other, LANDED]
    known.lines[row, REFERENCES] += known.landings[landing, USES]
    known.landings[landing, KNEW] = row
    return True


def release(row: int, known: Known) -> None:
    """A row is free when no wait has still to learn from it."""
    if not known.lines[row, REFERENCES]:
        owner, rows = known.lines[row, OWNER], known.clocks.shape[1]
        if known.lines[owner, ROW] == row:
            known.lines[owner, ROW] = -1
        known.lines[rows, FREE] += 1
        known.lines[rows + known.lines[rows, FREE], FREE] = row


def check_write(
    place: int, landing: int, known: Known, in_flight: int, same_address_order: bool
) -> tuple[int, int]:
    """The landing before, and all who read it, surely precede this one: (what is wrong, whose)."""
    process = known.landings[landing, SOURCE]
    read = known.places[place, READS]
    while read >= 0:
        reader = known.entries[read, WHAT]
        if not has_step(process, reader, known.entries[read, WHEN], known):
            return UNORDERED_READ, reader
        read = known.entries[read, BEFORE]
    entry = known.places[place, LAST]
    if entry < 0:
        return SOUND, -1
    before = known.entries[entry, WHAT]
    source = known.landings[before, SOURCE]
    pending = 0
    while entry >= 0 and not has_landed(process, known.entries[entry, WHAT], known):
        pending += known.landings[known.entries[entry, WHAT], SOURCE] == process
        entry = known.entries[entry, BEFORE]
    if entry != known.places[place, LAST]:
        stores = known.landings[before, AT_ONCE] or known.landings[landing, AT_ONCE]
        if source != process or stores or not same_address_order:
            return LATE_WRITE, source
    return (IN_FLIGHT if pending >= in_flight else SOUND), source


def check_load(process: int, place: int, known: Known) -> tuple[int, int]:
    """What a load reads has surely landed."""
    entry = known.places[place, LAST]
    if entry < 0 or has_landed(process, known.entries[entry, WHAT], known):
        return SOUND, -1
    return LATE_READ, known.landings[known.entries[entry, WHAT], SOURCE]


def check_wait(process: int, place: int, fails_since: int, known: Known) -> tuple[int, int]:
    """What a wait reads has surely landed: it is known, or the wait fails on all else."""
    entry = known.places[place, LAST]
    if entry < 0:
        return SOUND, -1
    landing = known.entries[entry, WHAT]
    source, row = known.landings[landing, SOURCE], known.landings[landing, KNEW]
    if not has_landed(process, landing, known):
        if fails_since >= 0 and not has_landed(process, fails_since, known):
            return LATE_READ, source
        learn(process, landing, known)
    if source != process and row >= 0:
        known.lines[row, REFERENCES] -= 1
        release(row, known)
    return SOUND, -1


def learn(process: int, landing: int, known: Known) -> None:
    """A process has read what surely landed: it knows what the issuer knew."""
    source = known.landings[landing, SOURCE]
    if source == process:
        return
    raise_to(process, known.landings[landing, KNEW], known)
    clock = known.clocks[process, source]
    clock[STEPS] = max(clock[STEPS], known.landings[landing, STEP] + 1)
    clock[LANDED] = max(clock[LANDED], known.landings[landing, COVERS])
    known.lines[process, ROW] = -1


def raise_to(line: int, other: int, known: Known) -> None:
    """Join a clock with another."""
    clock, more = known.clocks[line], known.clocks[other]
    for i in range(clock.shape[0]):
        clock[i, STEPS] = max(clock[i, STEPS], more[i, STEPS])
        clock[i, LANDED] = max(clock[i, LANDED], more[i, LANDED])


def note_read(process: int, place: int, entry: int, known: Known) -> None:
    """A read comes after the landing that it read, and before the next one there."""
    step, last = known.lines[process, OWN], known.places[place, LAST]
    known.entries[entry, WHAT], known.entries[entry, WHEN] = process, step
    known.entries[entry, BEFORE], known.places[place, READS] = known.places[place, READS], entry
    if last < 0:
        return
    landing = known.entries[last, WHAT]
    add_witness(landing, process, step, known)
    if known.landings[landing, SIGNAL]:
        for other in range(known.landings[landing, FIRST_OF_PUT], landing):
            if not known.landings[other, SIGNAL]:
                add_witness(other, process, step, known)


def add_witness(landing: int, process: int, step: int, known: Known) -> None:
    """A step that surely comes after a landing; of each process the first will do."""
    for i in range(WITNESS, WITNESS + WITNESSES):
        if known.landings[landing, i] == process:
            return
        if known.landings[landing, i] < 0:
            known.landings[landing, i] = process
            known.landings[landing, i + WITNESSES] = step
            return


def meet(code: Numbers, begin: int, end: int, known: Known) -> None:
    """A sync: afterwards each member knows what all knew, and that all have taken this step."""
    first = code[begin]
    for i in range(begin, end):
        raise_to(first, code[i], known)
    for i in range(begin, end):
        line, clock = known.lines[code[i]], known.clocks[first, code[i]]
        line[OWN], line[ROW] = line[OWN] + 1, -1
        clock[STEPS], clock[LANDED] = line[OWN], max(clock[LANDED], line[COMPLETE])
    for i in range(begin, end):
        raise_to(code[i], first, known)


def unproved(process: int, known: Known) -> int:
    """A put of a process that may be in flight although the process returns, or -1."""
    landing = known.lines[process, UNPROVED]
    while landing >= 0:
        if not has_landed(process, landing, known):
            return int(landing)
        landing = known.landings[landing, BEFORE_IT]
    return -1


HELPERS = (
    length,
    count_uses,
    has_step,
    has_landed,
    issue,
    release,
    check_write,
    check_load,
    check_wait,
    learn,
    raise_to,
    note_read,
    add_witness,
    meet,
    unproved,
)
