"""What a run came to: complete, wrong, stuck or not finished, in words."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from syncproof.checkers.emulator.conform import NotAllowed
from syncproof.checkers.emulator.flights import Flight
from syncproof.checkers.emulator.machine import Machine, Wrong
from syncproof.checkers.emulator.processes import Emulated
from syncproof.models.nodes import Place
from syncproof.models.operations import Kind
from syncproof.models.values import together

Outcome = Literal["complete", "wrong", "stuck", "not conforming", "not finished"]
MOST_SHOWN = 12


@dataclass(frozen=True)
class Blocked:
    """A process that waits: where, for what, and what it sees there."""

    process: str
    place: Place | None
    waits_for: str
    sees: str


@dataclass(frozen=True)
class Result:
    """What a run came to, with what is needed to see why and to run it again.

    ``blocks`` are the tokens that were consumed, ``seconds`` how long it took by the wall clock.
    ``in_flight`` says what had not landed when nothing could go on. ``walked`` are the steps that
    the model allowed, ``in_model`` the properties that they break there.
    """

    outcome: Outcome
    steps: int
    blocks: int
    seconds: float
    wrong: tuple[Wrong, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    in_flight: tuple[str, ...] = ()
    refused: NotAllowed | None = None
    choices: dict[Hashable, Hashable] = field(default_factory=dict)
    walked: int = 0
    in_model: tuple[str, ...] = ()

    @property
    def properties(self) -> tuple[str, ...]:
        """The properties that were seen to be broken; a run that is stuck is not deadlock-free."""
        if self.outcome == "stuck":
            return ("deadlock-free",)
        return tuple(dict.fromkeys(each.property for each in self.wrong))


def blocked_in(machine: Machine) -> tuple[Blocked, ...]:
    """Every process that has not returned, with what it waits for."""
    return tuple(_blocked(machine, each) for each in machine.processes if not each.is_done)


def _blocked(machine: Machine, process: Emulated) -> Blocked:
    operation, place = process.operation, machine.place(process)
    name = str(process.process)
    if operation is None:
        return Blocked(name, place, "nothing: it has not begun", "")
    if operation.kind is Kind.SYNC:
        missing = [
            f"{each.process}{' (has returned)' if each.is_done else ''}"
            for each in (machine.processes[number] for number in operation.members)
            if each.operation is None or each.operation.group != operation.group
        ]
        return Blocked(name, place, f"sync of {operation.group}", f"not here: {', '.join(missing)}")
    if operation.kind in (Kind.QUIET, Kind.FENCE):
        return Blocked(name, place, operation.kind.value, f"{len(process.flights)} puts in flight")
    if operation.kind is Kind.SWEEP_BEGIN:
        return Blocked(name, place, "a sweep that finds something", "it has found nothing")
    slot = operation.slot
    values = []
    if slot is not None:
        for cell, field_name, _ in machine.memory.cells_of(slot):
            value = machine.memory.value(cell, machine.fabric.seen(process.rank, cell))
            values.append(f"{field_name}: {value}" if len(slot.names) > 1 else str(value))
    return Blocked(name, place, f"{operation.kind.value} {slot}", ", ".join(dict.fromkeys(values)))


def in_flight(machine: Machine) -> tuple[str, ...]:
    """What is on its way, in the order in which it was put."""
    flights = sorted(machine.fabric.in_flight, key=lambda each: each.number)
    return tuple(_flight(machine, each) for each in flights)


def _flight(machine: Machine, flight: Flight) -> str:
    cells = [machine.layout.cells[cell] for cell in flight.cells]
    where = ", ".join(dict.fromkeys(str(cell.slot) for cell in cells))
    if flight.sources:
        what = "a copy"
    else:
        memory = machine.memory
        what = together(
            f"+{w.adds}" if w.is_add else memory.value(w.cell, w.data) for w in flight.writes
        )
    owner = machine.processes[flight.owner].process if flight.owner >= 0 else "the fabric"
    return f"{what} to {where}, from {owner}"


def place_text(place: Place | None) -> str:
    """``sp.py:71  await ...``."""
    if place is None:
        return ""
    kernel = f"  (kernel: {place.at})" if place.at else ""
    return f"{Path(place.file).name}:{place.line}  {place.text}{kernel}"
