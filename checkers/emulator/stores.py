"""Operations that store: puts, adds, puts with a signal, and copies by the fabric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.flights import Flight, Write
from syncproof.checkers.emulator.machine import Machine, slot_of
from syncproof.checkers.emulator.memory import Cells
from syncproof.checkers.emulator.processes import Emulated
from syncproof.checkers.emulator.stepping import done
from syncproof.models.errors import UserError
from syncproof.models.memory import Slot
from syncproof.models.operations import Kind, Operation


def _is_immediate(machine: Machine, slot: Slot) -> bool:
    return machine.profile.immediate or slot.region.on_chip


def writes_of(machine: Machine, slot: Slot, value: Any, adds: bool) -> list[Write]:
    """What a store of ``value`` to a slot writes into each cell."""
    memory, found = machine.memory, []
    values = slot.spread(value)
    for cell, name, _ in memory.area(slot).named:
        if name not in values:
            continue
        amount = values[name]
        if not adds:
            found.append(Write(cell, memory.bytes_of(cell, amount)))
        elif isinstance(amount, int):
            found.append(Write(cell, b"", amount, True))
        else:
            raise UserError(f"an add of {value!r} to {slot}", expected="a whole number")
    return found


def _flights(
    machine: Machine, process: Emulated, operation: Operation, slot: Slot, writes: list[Write]
) -> list[Flight]:
    atomicity = machine.fabric.between(process.rank, slot.rank).store_atomicity
    cells = tuple([each.cell for each in writes])
    groups = machine.memory.atoms(cells, atomicity)
    if len(groups) == 1 and groups[0][1] == cells:
        atom = groups[0][0]
        return [Flight(0, process.number, slot.rank, operation.queue, tuple(writes), (), atom=atom)]
    of_cell = {each.cell: each for each in writes}
    return [
        Flight(
            0,
            process.number,
            slot.rank,
            operation.queue,
            tuple(of_cell[cell] for cell in cells),
            atom=atom,
            is_last=atom == groups[-1][0],
        )
        for atom, cells in groups
    ]


def _write_now(machine: Machine, process: Emulated, writes: Sequence[Write]) -> None:
    fabric, cells = machine.fabric, tuple(each.cell for each in writes)
    if len(set(cells)) == len(cells):
        fabric.store([(each.cell, fabric.landing(each)) for each in writes])
    else:
        for each in writes:
            fabric.store([(each.cell, fabric.landing(each))])
    machine.recorder.tell(Event(events.STORE, process.number, cells))


def put(machine: Machine, process: Emulated, operation: Operation, _: Cells | None) -> bool:
    """A put or an add."""
    slot = slot_of(operation)
    writes = writes_of(machine, slot, operation.value, operation.kind is Kind.ADD)
    if _is_immediate(machine, slot):
        _write_now(machine, process, writes)
        return done(machine, process)
    machine.fabric.issue(process, _flights(machine, process, operation, slot, writes))
    return _issued(machine, process, writes)


def _issued(machine: Machine, process: Emulated, writes: Sequence[Write]) -> bool:
    cells = tuple([each.cell for each in writes])
    machine.recorder.tell(Event(events.ISSUE, process.number, cells))
    return done(machine, process)


def put_with_signal(
    machine: Machine, process: Emulated, operation: Operation, _: Cells | None
) -> bool:
    """A put, and a signal that lands behind it."""
    slot, signal = slot_of(operation), operation.signal
    assert signal is not None
    writes = writes_of(machine, slot, operation.value, False)
    extra = writes_of(machine, signal, operation.signal_value, operation.signal_adds)
    if _is_immediate(machine, slot) and _is_immediate(machine, signal):
        _write_now(machine, process, [*writes, *extra])
        return done(machine, process)
    signals = _flights(machine, process, operation, signal, extra)
    for each in signals:
        each.is_signal = True
    machine.fabric.issue(process, [*_flights(machine, process, operation, slot, writes), *signals])
    return _issued(machine, process, [*writes, *extra])


def copy(machine: Machine, process: Emulated, operation: Operation, _: Cells | None) -> bool:
    """A copy: its source is read later, its target written later still."""
    slot, source = slot_of(operation), operation.source
    assert source is not None
    memory = machine.memory
    targets, sources = memory.area(slot).cells, memory.area(source).cells
    shapes = [memory.layout.shape_of(each) for each in (slot, source)]
    if len(targets) != len(sources) or shapes[0] != shapes[1]:
        raise UserError(f"a copy of {source} to {slot} of another shape", where=operation.at)
    if machine.profile.immediate:
        return _copy_now(machine, process, targets, sources)
    is_get = operation.kind is Kind.GET_NBI
    remote = source.rank if is_get else slot.rank
    atomicity = machine.fabric.between(process.rank, remote).store_atomicity
    pairs = dict(zip(targets, sources, strict=True))
    groups = memory.atoms(targets, atomicity)
    flights = [
        Flight(
            0,
            process.number,
            remote,
            operation.queue,
            tuple(Write(cell, b"") for cell in cells),
            tuple(pairs[cell] for cell in cells),
            is_get,
            atom=atom,
            is_last=atom == groups[-1][0],
        )
        for atom, cells in groups
    ]
    machine.fabric.issue(process, flights)
    return _issued(machine, process, [Write(cell, b"") for cell in targets])


def _copy_now(machine: Machine, process: Emulated, targets: Cells, sources: Cells) -> bool:
    """A copy where everything is immediate: one step reads, the next one writes."""
    memory = machine.memory
    if not process.progress:
        data = machine.fabric.look(process, sources)
        process.progress = dict(zip(sources, data, strict=True))
        machine.recorder.tell(Event(events.READ, process.number, sources, data))
        return True
    values = [memory.value(cell, process.progress[cell]) for cell in sources]
    writes = [
        Write(cell, memory.bytes_of(cell, value))
        for cell, value in zip(targets, values, strict=True)
    ]
    _write_now(machine, process, writes)
    return done(machine, process)
