"""What can be seen of a state, alike for the TLA+ modules and for our own model.

Observable are the tokens that each process has consumed, what each cell of memory holds, the puts
that each process has in flight, and who has finished. Where a process stands is not.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from syncproof.checkers.tla.schedules import Code, place_of, writers_of
from syncproof.models.instance import Instance
from syncproof.models.memory import Cell
from syncproof.models.outbox import Outbox
from syncproof.models.system import System
from syncproof.models.transitions import State
from syncproof.models.values import Mark, Part

CellName = tuple[str, int, tuple[int, ...], str]
"""A field of a block: region, rank, place, field."""

ProcessName = tuple[str, int, int]
"""Role, rank and instance."""

Flying = tuple[tuple[tuple[CellName, Code], ...], ...]
"""Puts in flight, each with the cells that it writes."""


class Observable(NamedTuple):
    """What can be seen of a state; each part in a fixed order, so that equal ones are equal."""

    consumed: tuple[tuple[ProcessName, tuple[Code, ...]], ...]
    memory: tuple[tuple[CellName, Code], ...]
    in_flight: tuple[tuple[ProcessName, Flying], ...]
    finished: frozenset[ProcessName]


def coded(value: Hashable) -> Code:
    """A value of our model as the modules write it (specs/tla/Fabric.tla)."""
    if isinstance(value, Mark):
        return ()
    if isinstance(value, Part):
        source, destination, token, round = value.key
        return tuple(map(_number, (source, destination, token, round)))
    if isinstance(value, tuple):
        return (len(value), *(n for each in value for n in coded(each)))
    return (_number(value),)


def _number(value: Hashable) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise AssertionError(f"{value!r} has no form in the TLA+ modules")
    return value


def cell_name(cell: Cell) -> CellName:
    """The name of a cell of whole blocks."""
    region, place = place_of(cell.slot.region.name, cell.slot.place)
    return (region, cell.slot.rank, place, cell.field)


class Observer:
    """Sees the states of one system of an instance; they are many and share most of their parts."""

    def __init__(self, instance: Instance, system: System) -> None:
        self.system = system
        self._writer = writers_of(instance)
        self._cells = [cell_name(cell) for cell in system.cells]
        self._processes = [process_name(system, p) for p in range(system.processes)]
        self._value = cache(self._value_of)
        self._outbox = cache(self._outbox_of)
        self._consumed = cache(self._consumed_by)

    def seen(self, state: State) -> Observable:
        """What can be seen of a state of the system."""
        system, names = self.system, self._processes
        nodes = [system.node(state, p) for p in range(system.processes)]
        outboxes = state[system.first_outbox : system.first_outbox + system.processes]
        return Observable(
            _taken((names[p], self._consumed(node.ledger)) for p, node in enumerate(nodes)),
            tuple(
                sorted(
                    (c, self._value(c[-1], system.value(state, i)))
                    for i, c in enumerate(self._cells)
                )
            ),
            tuple(sorted((names[p], self._outbox(box)) for p, box in enumerate(outboxes))),
            frozenset(names[p] for p, node in enumerate(nodes) if node.state == "done"),
        )

    def _value_of(self, field: str, number: int) -> Code:
        value = self.system.values[number]
        return (self._writer(value) if field == "tile" else None) or coded(value)

    def _outbox_of(self, number: int) -> Flying:
        box: Outbox = self.system.outboxes[number]
        return tuple(
            sorted(
                tuple(
                    sorted(
                        (self._cells[c], self._value(self._cells[c][-1], v))
                        for c, v, _ in each.packet.writes
                    )
                )
                for each in box
            )
        )

    def _consumed_by(self, ledger: int) -> tuple[Code, ...]:
        _, consumed = self.system.ledger.contents[ledger]
        return tuple(sorted(coded_key(key) for key, count in consumed for _ in range(count)))


def _taken(
    consumed: Iterable[tuple[ProcessName, tuple[Code, ...]]],
) -> tuple[tuple[ProcessName, tuple[Code, ...]], ...]:
    """What each process has taken, of those who have."""
    return tuple(sorted(each for each in consumed if each[1]))


def process_name(system: System, number: int) -> ProcessName:
    """The name of a process of a system."""
    process = system.automata[number].process
    return (process.role, process.rank, process.instance)


def coded_key(key: Hashable) -> Code:
    """Which token it is, as the modules write it."""
    assert isinstance(key, tuple)
    return tuple(map(_number, key))


def seen_in(state: Mapping[str, Any]) -> Observable:
    """What can be seen of a state of a module."""
    return Observable(
        _taken(
            (process, tuple(sorted(each["token"] for each in taken)))
            for process, taken in state.get("consumed", {}).items()
        ),
        tuple(
            sorted(cell for slot, block in state["memory"].items() for cell in _cells(slot, block))
        ),
        tuple(
            sorted(
                (p, tuple(sorted(tuple(sorted(_cells(e["slot"], e["block"]))) for e in puts)))
                for p, puts in state["flight"].items()
            )
        ),
        frozenset(p for p, at in state["at"].items() if at["stage"] == "done"),
    )


def _cells(slot: Any, block: Mapping[str, Code]) -> list[tuple[CellName, Code]]:
    region, rank, place = slot
    return [((region, rank, place, field), value) for field, value in block.items()]


def difference(one: Observable, other: Observable) -> str:
    """The first thing in which two states differ, in words."""
    for name, mine, theirs in zip(one._fields, one, other, strict=True):
        if mine != theirs:
            return f"{name.replace('_', ' ')}: {sorted(set(mine) ^ set(theirs))[:2]}"
    return "nothing"
