"""What each operation of a role does to the machine, one step at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.flights import ALL_RANKS, Flight, Write
from syncproof.checkers.emulator.machine import Machine, slot_of
from syncproof.checkers.emulator.memory import Area, Cells
from syncproof.checkers.emulator.processes import CacheLine, Emulated
from syncproof.checkers.emulator.stepping import blocked, done
from syncproof.checkers.emulator.stores import copy, put, put_with_signal, writes_of
from syncproof.models.errors import UserError
from syncproof.models.memory import Slot
from syncproof.models.operations import Kind, Operation
from syncproof.models.values import Block, Opaque, Torn, typed

SENDING = frozenset((Kind.PUT, Kind.ADD, Kind.PUT_WITH_SIGNAL, Kind.PUT_NBI, Kind.GET_NBI))
WAIT_UNTIL = Kind.WAIT_UNTIL
MOST_IN_FLIGHT = 256
"""Atoms of one process on their way; a put beyond that waits until one has landed."""


def step(machine: Machine, process: Emulated, cells: Cells | None = None) -> bool:
    """Take the next step of a process; False (and it is put aside) if it can take none.

    ``cells`` says which atom is read next, where several could be.
    """
    operation = process.operation
    assert operation is not None and not process.is_done
    if operation.kind in SENDING and len(process.flights) >= MOST_IN_FLIGHT:
        return blocked(machine, process, ())
    recorder = machine.recorder
    before = recorder.steps
    recorder.steps += 1
    try:
        is_taken = HANDLERS[operation.kind](machine, process, operation, cells)
    except UserError as error:
        raise machine.raised_at(process, error) from error
    if is_taken:
        process.steps += 1
        recorder.tell_all()
        return True
    recorder.steps = before
    return False


# Reads


def _read(machine: Machine, process: Emulated, operation: Operation, cells: Cells | None) -> bool:
    slot, fabric, progress = slot_of(operation), machine.fabric, process.progress
    waits = operation.kind is WAIT_UNTIL
    if waits and operation.update is not None:
        return _atomic(machine, process, operation, cells)
    if process.looked and not progress and not _has_changed(machine, process):
        return blocked(machine, process, list(process.looked))
    area = machine.memory.area(slot)
    groups = left = area.atoms.get(process.rank) or _atoms_to_read(machine, process, slot)
    if progress:
        left = tuple(each for each in groups if each[0] not in progress)
    group = cells or (left[0] if len(left) == 1 else _any_of(machine, process, slot, left))
    if operation.ordered and fabric.holds_back(process, _probe(process, operation, group, True)):
        return blocked(machine, process, ())
    version = machine.memory.versions[slot.rank]
    data = fabric.look(process, group)
    if not progress:
        process.looked = {slot.rank: version}
    if process.in_sweep:
        _note_sweep(machine, process, slot.rank)
    progress = {**progress, **dict(zip(group, data, strict=True))}
    do = events.WAIT if waits else events.READ
    if len(left) > 1:
        process.progress = progress
        machine.recorder.tell(Event(do, process.number, group, data))
        return True
    result = _assembled(machine, slot, area, progress)
    fails = operation.predicate is not None and not _holds(process, operation, result)
    if fails:
        process.progress = {}
        if len(groups) == 1:
            return blocked(machine, process, [slot.rank])
    machine.recorder.tell(Event(do, process.number, group, data))
    if fails:
        return True
    process.keep_read(result, slot, progress)
    return done(machine, process, result)


def _atoms_to_read(machine: Machine, process: Emulated, slot: Slot) -> tuple[Cells, ...]:
    """The cells that the process reads at a time, in ascending order; the same each time."""
    area = machine.memory.area(slot)
    found: tuple[Cells, ...] = (area.cells,)
    if not slot.region.on_chip:
        profile = machine.fabric.between(process.rank, slot.rank)
        atomicity = profile.load_atomicity or profile.store_atomicity
        found = tuple(group for _, group in machine.memory.atoms(area.cells, atomicity))
    area.atoms[process.rank] = found
    return found


def _any_of(machine: Machine, process: Emulated, slot: Slot, left: Sequence[Cells]) -> Cells:
    """Which atom of several is read next."""
    ascending = machine.fabric.between(process.rank, slot.rank).in_block_order == "ascending"
    return left[0] if ascending else machine.random.choice(left)


def _has_changed(machine: Machine, process: Emulated) -> bool:
    versions = machine.memory.versions
    return any([versions[rank] != old for rank, old in process.looked.items()])


def _note_sweep(machine: Machine, process: Emulated, rank: int) -> None:
    if process.in_sweep:
        process.swept.setdefault(rank, machine.memory.versions[rank])


def _probe(process: Emulated, operation: Operation, cells: Cells, is_get: bool) -> Flight:
    rank = slot_of(operation).rank
    writes = tuple(Write(cell, b"") for cell in cells)
    sources = cells if is_get else ()
    return Flight(0, process.number, rank, operation.queue, writes, sources, is_get, put=-1)


def _assembled(machine: Machine, slot: Slot, area: Area, data: dict[int, bytes]) -> Any:
    """What a role is given for the bytes of a block; a field whose atoms differ is torn."""
    memory, compared = machine.memory, slot.region.compared
    fields: dict[str, Any] = {}
    for name, cells in area.fields:
        value = memory.value(cells[0], data[cells[0]])
        if len(cells) > 1:
            values = [memory.value(cell, data[cell]) for cell in cells]
            value = value if len({typed(each) for each in values}) == 1 else Torn(tuple(values))
        fields[name] = value if name in compared else Opaque(value)
    return fields[slot.names[0]] if len(slot.names) == 1 else Block(fields)


def _holds(process: Emulated, operation: Operation, result: Any) -> bool:
    assert operation.predicate is not None
    try:
        return bool(operation.predicate(result))
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"the condition of {operation.kind.value} on {operation.slot} raised "
            f"{type(error).__name__}: {error}"
        ) from error


# Atomics


def _atomic(machine: Machine, process: Emulated, operation: Operation, _: Cells | None) -> bool:
    slot, fabric, memory = slot_of(operation), machine.fabric, machine.memory
    cells = [cell for cell, _, _ in memory.cells_of(slot)]
    if len(cells) != 1:
        raise UserError(
            f"an atomic on {slot}, which is {len(cells)} atoms", expected="one field in one atom"
        )
    (cell,) = cells
    in_two = (
        machine.profile.atomics == "nic_only"
        and slot.rank == process.rank
        and not slot.region.on_chip
    )
    if in_two and process.between is not None:
        return _second_half(machine, process, operation, cell)
    probe = _probe(process, operation, (cell,), False)
    if operation.ordered and fabric.holds_back(process, probe):
        return blocked(machine, process, ())
    data = memory.read(cell)
    old = memory.value(cell, data)
    _note_sweep(machine, process, slot.rank)
    if operation.predicate is not None and not _holds(process, operation, old):
        return blocked(machine, process, [slot.rank])
    if in_two and cell in fabric.locked:
        return blocked(machine, process, [slot.rank])
    new = _updated(operation, old)
    machine.recorder.tell(Event(events.UPDATE, process.number, (cell,), (data,)))
    if in_two:
        fabric.locked[cell], process.between = process, data
        return True
    fabric.store([(cell, memory.bytes_of(cell, new))])
    return done(machine, process, old)


def _second_half(machine: Machine, process: Emulated, operation: Operation, cell: int) -> bool:
    """The write of a local atomic that the NIC's do not exclude."""
    memory, fabric = machine.memory, machine.fabric
    assert process.between is not None
    old = memory.value(cell, process.between)
    process.between = None
    del fabric.locked[cell]
    fabric.store([(cell, memory.bytes_of(cell, _updated(operation, old)))])
    machine.recorder.tell(Event(events.STORE, process.number, (cell,)))
    return done(machine, process, old)


def _updated(operation: Operation, old: Any) -> Any:
    assert operation.update is not None
    try:
        return operation.update(old)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"the function of {operation.kind.value} on {operation.slot} raised "
            f"{type(error).__name__}: {error}"
        ) from error


# Caches


def _cached_cells(machine: Machine, operation: Operation) -> Cells:
    slot = slot_of(operation)
    if slot.region.line is None:
        raise UserError(f"a cached access to {slot}", expected="Region(line=64)")
    return machine.memory.area(slot).cells


def _fetched(machine: Machine, process: Emulated, cells: Cells) -> bool:
    """Bring in the lines of ``cells``; whether one was not there."""
    memory, missing = machine.memory, False
    for cell in cells:
        line = memory.line_of[cell]
        if line not in process.cache:
            missing = True
            process.cache[line] = CacheLine([memory.read(each) for each in memory.lines[line]])
    return missing


def _load_cached(
    machine: Machine, process: Emulated, operation: Operation, _: Cells | None
) -> bool:
    cells, memory = _cached_cells(machine, operation), machine.memory
    missing = _fetched(machine, process, cells)
    data = []
    for cell in cells:
        line = memory.line_of[cell]
        data.append(process.cache[line].data[memory.lines[line].index(cell)])
    progress = dict(zip(cells, data, strict=True))
    slot = slot_of(operation)
    result = _assembled(machine, slot, memory.area(slot), progress)
    _note_sweep(machine, process, slot_of(operation).rank)
    if operation.predicate is not None and not _holds(process, operation, result):
        if missing:
            machine.recorder.tell(Event(events.FETCH, process.number, cells))
            return True
        return blocked(machine, process, ())
    machine.recorder.tell(Event(events.READ_CACHED, process.number, cells, tuple(data)))
    process.keep_read(result, slot_of(operation), progress)
    return done(machine, process, result)


def _store_cached(
    machine: Machine, process: Emulated, operation: Operation, _: Cells | None
) -> bool:
    cells, memory = _cached_cells(machine, operation), machine.memory
    _fetched(machine, process, cells)
    for write in writes_of(machine, slot_of(operation), operation.value, False):
        line = memory.line_of[write.cell]
        held = process.cache[line]
        held.data[memory.lines[line].index(write.cell)] = write.data
        held.dirty = True
    machine.recorder.tell(Event(events.STORE_CACHED, process.number, cells))
    return done(machine, process)


def _clean(machine: Machine, process: Emulated, operation: Operation, _: Cells | None) -> bool:
    cells, memory = _cached_cells(machine, operation), machine.memory
    for line in dict.fromkeys(memory.line_of[cell] for cell in cells):
        held = process.cache.pop(line, None)
        if held is not None:
            machine.fabric.write_back(memory.lines[line], held)
    machine.recorder.tell(Event(events.CLEAN, process.number, cells))
    return done(machine, process)


# Order and meeting


def _fence(machine: Machine, process: Emulated, operation: Operation, _: Cells | None) -> bool:
    """What a fence gives towards each target; if some hops drain and others order, it orders."""
    fabric = machine.fabric
    target = ALL_RANKS if operation.target is None else operation.target
    owners = {rank for region in machine.layout.regions for rank in region.owners()}
    targets = sorted(owners) if target == ALL_RANKS else [target]
    profiles = [fabric.between(process.rank, each) for each in targets]
    if all(each.fence == "drains" for each in profiles):
        return _wait_quiet(machine, process, target)
    if all(each.fence != "none" and each.fence_scope == "all" for each in profiles):
        fabric.fence(process, target)
    else:
        for each, profile in zip(targets, profiles, strict=True):
            if profile.fence != "none":
                fabric.fence(process, each)
    fabric.order_loads(process)
    machine.recorder.tell(Event(events.FENCE, process.number))
    return done(machine, process)


def _quiet(machine: Machine, process: Emulated, operation: Operation, _: Cells | None) -> bool:
    return _wait_quiet(machine, process, ALL_RANKS)


def _wait_quiet(machine: Machine, process: Emulated, target: int) -> bool:
    if not machine.fabric.is_quiet(process, target):
        return blocked(machine, process, ())
    machine.fabric.order_loads(process)
    machine.recorder.tell(Event(events.QUIET, process.number))
    return done(machine, process)


def _sync(machine: Machine, process: Emulated, operation: Operation, _: Cells | None) -> bool:
    members = [machine.processes[number] for number in operation.members]
    for each in members:
        there = each.operation
        if there is None or there.kind is not Kind.SYNC or there.group != operation.group:
            return blocked(machine, process, ())
    event = Event(events.SYNC, min(operation.members), members=tuple(operation.members))
    machine.recorder.tell(event)
    for each in members:
        machine.fabric.order_loads(each)
        machine.fabric.wake(each)
        done(machine, each)
    return True


# Sweeps


def _sweep_again(
    machine: Machine, process: Emulated, operation: Operation, _: Cells | None
) -> bool:
    """A sweep found nothing: it looks again when what it looked at has changed."""
    versions, swept = machine.memory.versions, process.swept
    if swept and not process.cache and all(versions[r] == old for r, old in swept.items()):
        return blocked(machine, process, list(swept))
    process.swept = {}
    return done(machine, process)


Handler = Callable[[Machine, Emulated, Operation, Cells | None], bool]

HANDLERS: dict[Kind, Handler] = {
    Kind.PUT: put,
    Kind.ADD: put,
    Kind.PUT_WITH_SIGNAL: put_with_signal,
    Kind.PUT_NBI: copy,
    Kind.GET_NBI: copy,
    Kind.GET: _read,
    Kind.LOAD: _read,
    Kind.WAIT_UNTIL: _read,
    Kind.ATOMIC: _atomic,
    Kind.STORE_CACHED: _store_cached,
    Kind.LOAD_CACHED: _load_cached,
    Kind.CLEAN_AND_INVALIDATE: _clean,
    Kind.FENCE: _fence,
    Kind.QUIET: _quiet,
    Kind.SYNC: _sync,
    Kind.SWEEP_BEGIN: _sweep_again,
    Kind.SWEEP_END: _sweep_again,
}
"""What does each operation; a test fails if one is missing."""
