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
    WITNESSES,
    Known,
    Landings,
    Memory,
    Numbers,
    Rows,
    known_at_first,
    landings_of,
    memory_of,
    rows_for,
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
    code = numpy.array(record.instructions, dtype=numpy.int32)
    check: Any = _compiled() if len(code) > LONG else check_all
    room = 2 * record.processes + 16
    while True:
        state = (
            known_at_first(record),
            landings_of(record),
            memory_of(record),
            rows_for(record.processes, room),
        )
        kind, process, place, other = check(
            code, *state, record.in_flight, record.same_address_order
        )
        if kind != NO_ROOM:
            return (int(kind), int(process), int(place), int(other)), state[0]
        room *= 2


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
    code: Numbers,
    known: Known,
    landings: Landings,
    memory: Memory,
    rows: Rows,
    in_flight: int,
    same_address_order: bool,
) -> tuple[int, int, int, int]:
    """Take the instructions in order; the first that is not ordered, or `SOUND`."""
    count_uses(code, landings, memory)
    at = landing = entry = read = 0
    while at < len(code):
        kind, process = code[at], code[at + 1]
        wrong, place, other = SOUND, -1, -1
        if kind in (PUT, STORE):
            puts = code[at + 2] if kind == PUT else 1
            at += 3 if kind == PUT else 2
            first = landing
            for _ in range(puts):
                places = code[at + 1 : at + 1 + code[at]]
                landings.first_of_put[landing] = first
                landings.at_once[landing] = kind == STORE
                if not issue(landing, process, known, landings, rows):
                    return NO_ROOM, process, -1, -1
                for place in places:
                    wrong, other = check_write(
                        place, landing, known, landings, memory, in_flight, same_address_order
                    )
                    if wrong != SOUND:
                        return wrong, process, place, other
                    landings.entry[entry] = landing
                    landings.entry_before[entry] = memory.last[place]
                    memory.last[place], memory.reads[place] = entry, -1
                    entry += 1
                at += 1 + len(places)
                landing += 1
            known.own[process] += 1
            continue
        if kind == READ:
            for place in code[at + 3 : at + 3 + code[at + 2]]:
                wrong, other = check_load(process, place, known, landings, memory)
                if wrong != SOUND:
                    return wrong, process, place, other
                note_read(process, place, read, known, landings, memory)
                read += 1
            known.own[process] += 1
        elif kind == WAIT:
            place = code[at + 2]
            wrong, other = check_wait(process, place, code[at + 3], known, landings, memory, rows)
            if wrong != SOUND:
                return wrong, process, place, other
            note_read(process, place, read, known, landings, memory)
            read += 1
            known.own[process] += 1
        elif kind == SYNC:
            meet(code[at + 2 : at + 2 + code[at + 1]], known, rows)
        elif kind == RETURN:
            open_put = unproved(process, known, landings)
            if open_put >= 0:
                return RETURNS_EARLY, process, place_of(open_put, landings, memory), process
        else:
            if kind == QUIET:
                known.complete[process], known.unproved[process] = known.own[process], -1
            elif kind == FENCE:
                known.fenced[process] = known.own[process]
            known.own[process] += 1
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


def count_uses(code: Numbers, landings: Landings, memory: Memory) -> None:
    """Note who issues each landing and how many waits of others read it."""
    at = landing = 0
    while at < len(code):
        kind, process = code[at], code[at + 1]
        if kind in (PUT, STORE):
            puts = code[at + 2] if kind == PUT else 1
            at += 3 if kind == PUT else 2
            for _ in range(puts):
                landings.source[landing] = process
                for place in code[at + 1 : at + 1 + code[at]]:
                    memory.last[place] = landing
                at += 1 + code[at]
                landing += 1
            continue
        if kind == WAIT:
            read = memory.last[code[at + 2]]
            if read >= 0 and landings.source[read] != process:
                landings.uses[read] += 1
        at += length(code, at)
    memory.last[:] = -1


def has_step(process: int, other: int, step: int, known: Known) -> bool:
    """Whether a step of ``other`` surely precedes what ``process`` does next."""
    if other == process:
        return bool(step < known.own[process])
    return bool(known.steps[process, other] > step)


def has_landed(process: int, landing: int, known: Known, landings: Landings) -> bool:
    """Whether a landing surely precedes what ``process`` does next."""
    source, step = landings.source[landing], landings.step[landing]
    if landings.at_once[landing]:
        return has_step(process, source, step, known)
    complete = known.complete[process] if source == process else known.landed[process, source]
    if complete > step:
        return True
    for i in range(WITNESSES):
        witness = landings.witness[landing, i]
        if witness < 0:
            break
        if has_step(process, witness, landings.witness_step[landing, i], known):
            return True
    return False


def issue(landing: int, process: int, known: Known, landings: Landings, rows: Rows) -> bool:
    """A put is issued; False if there is no room for what its issuer knows."""
    landings.step[landing] = known.own[process]
    landings.covers[landing] = known.complete[process]
    if not landings.at_once[landing]:  # a fence does not hold back what never is on the way
        landings.covers[landing] = max(known.complete[process], known.fenced[process])
    landings.unproved[landing] = known.unproved[process]
    known.unproved[process] = landing
    if not landings.uses[landing]:
        return True
    row = known.row[process]
    if row < 0:
        if not rows.free[0]:
            return False
        row = rows.free[rows.free[0]]
        rows.free[0] -= 1
        known.row[process], rows.owner[row] = row, process
        for other in range(len(known.own)):
            rows.steps[row, other] = known.steps[process, other]
            rows.landed[row, other] = known.landed[process, other]
    rows.references[row] += landings.uses[landing]
    landings.row[landing] = row
    return True


def release(row: int, known: Known, rows: Rows) -> None:
    """A row is free when no wait has still to learn from it."""
    if not rows.references[row]:
        if known.row[rows.owner[row]] == row:
            known.row[rows.owner[row]] = -1
        rows.free[0] += 1
        rows.free[rows.free[0]] = row


def check_write(
    place: int,
    landing: int,
    known: Known,
    landings: Landings,
    memory: Memory,
    in_flight: int,
    same_address_order: bool,
) -> tuple[int, int]:
    """The landing before, and all who read it, surely precede this one: (what is wrong, whose)."""
    process = landings.source[landing]
    read = memory.reads[place]
    while read >= 0:
        reader = memory.read_process[read]
        if not has_step(process, reader, memory.read_step[read], known):
            return UNORDERED_READ, reader
        read = memory.read_next[read]
    entry = memory.last[place]
    if entry < 0 or has_landed(process, landings.entry[entry], known, landings):
        return SOUND, -1
    before = landings.entry[entry]
    source = landings.source[before]
    both_puts = not (landings.at_once[before] or landings.at_once[landing])
    if source != process or not both_puts or not same_address_order:
        return LATE_WRITE, source
    pending = 0
    while entry >= 0 and not has_landed(process, landings.entry[entry], known, landings):
        pending += landings.source[landings.entry[entry]] == process
        entry = landings.entry_before[entry]
    return (IN_FLIGHT if pending >= in_flight else SOUND), source


def check_load(
    process: int, place: int, known: Known, landings: Landings, memory: Memory
) -> tuple[int, int]:
    """What a load reads has surely landed."""
    entry = memory.last[place]
    if entry < 0 or has_landed(process, landings.entry[entry], known, landings):
        return SOUND, -1
    return LATE_READ, landings.source[landings.entry[entry]]


def check_wait(
    process: int,
    place: int,
    fails_since: int,
    known: Known,
    landings: Landings,
    memory: Memory,
    rows: Rows,
) -> tuple[int, int]:
    """What a wait reads has surely landed: it is known, or the wait fails on all else."""
    entry = memory.last[place]
    if entry < 0:
        return SOUND, -1
    landing = landings.entry[entry]
    source = landings.source[landing]
    if not has_landed(process, landing, known, landings):
        if fails_since >= 0 and not has_landed(process, fails_since, known, landings):
            return LATE_READ, source
        learn(process, landing, known, landings, rows)
    row = landings.row[landing]
    if source != process and row >= 0:
        rows.references[row] -= 1
        release(row, known, rows)
    return SOUND, -1


def learn(process: int, landing: int, known: Known, landings: Landings, rows: Rows) -> None:
    """A process has read what surely landed: it knows what the issuer knew."""
    source, row = landings.source[landing], landings.row[landing]
    if source == process:
        return
    raise_to(known.steps, process, rows.steps, row)
    raise_to(known.landed, process, rows.landed, row)
    step, covers = landings.step[landing] + 1, landings.covers[landing]
    known.steps[process, source] = max(known.steps[process, source], step)
    known.landed[process, source] = max(known.landed[process, source], covers)
    known.row[process] = -1


def raise_to(clocks: Numbers, process: int, others: Numbers, row: int) -> None:
    """Join a row of clocks with another."""
    for i in range(clocks.shape[1]):
        if others[row, i] > clocks[process, i]:
            clocks[process, i] = others[row, i]


def note_read(
    process: int, place: int, read: int, known: Known, landings: Landings, memory: Memory
) -> None:
    """A read comes after the landing that it read, and before the next one there."""
    step = known.own[process]
    memory.read_process[read], memory.read_step[read] = process, step
    memory.read_next[read], memory.reads[place] = memory.reads[place], read
    entry = memory.last[place]
    if entry < 0:
        return
    landing = landings.entry[entry]
    add_witness(landing, process, step, landings)
    if landings.signal[landing]:
        for other in range(landings.first_of_put[landing], landing):
            if not landings.signal[other]:
                add_witness(other, process, step, landings)


def add_witness(landing: int, process: int, step: int, landings: Landings) -> None:
    """A step that surely comes after a landing; of each process the first will do."""
    for i in range(WITNESSES):
        if landings.witness[landing, i] == process:
            return
        if landings.witness[landing, i] < 0:
            landings.witness[landing, i] = process
            landings.witness_step[landing, i] = step
            return


def meet(members: Numbers, known: Known, rows: Rows) -> None:
    """A sync: afterwards each member knows what all knew, and that all have taken this step."""
    first = members[0]
    for member in members:
        raise_to(known.steps, first, known.steps, member)
        raise_to(known.landed, first, known.landed, member)
    for member in members:
        known.own[member] += 1
        known.steps[first, member] = known.own[member]
        complete = max(known.landed[first, member], known.complete[member])
        known.landed[first, member] = complete
    for member in members:
        known.row[member] = -1
        raise_to(known.steps, member, known.steps, first)
        raise_to(known.landed, member, known.landed, first)


def unproved(process: int, known: Known, landings: Landings) -> int:
    """A put of a process that may be in flight although the process returns, or -1."""
    landing = known.unproved[process]
    while landing >= 0:
        if not has_landed(process, landing, known, landings):
            return int(landing)
        landing = landings.unproved[landing]
    return -1


def place_of(landing: int, landings: Landings, memory: Memory) -> int:
    """Where a landing still is the last, if it is."""
    for place in range(len(memory.last)):
        entry = memory.last[place]
        if entry >= 0 and landings.entry[entry] == landing:
            return place
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
    place_of,
)
