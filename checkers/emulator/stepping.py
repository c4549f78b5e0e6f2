"""What every operation needs: to go on, to be put aside, and the cells that move together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from syncproof.checkers.emulator.machine import Machine
from syncproof.checkers.emulator.processes import Emulated

Cells = tuple[int, ...]


def done(machine: Machine, process: Emulated, result: Any = None) -> bool:
    """The operation is over: the role goes on with its result."""
    machine.resume(process, result)
    if process.is_done:
        machine.fabric.ready.discard(process)
    return True


def blocked(machine: Machine, process: Emulated, ranks: Sequence[int]) -> bool:
    """The operation has to wait until memory of ``ranks``, or what the process has put, changes."""
    machine.fabric.put_aside(process, ranks)
    return False


def atoms(machine: Machine, cells: Sequence[int], atomicity: int) -> list[tuple[int, Cells]]:
    """The cells that move together, in ascending order of their bytes."""
    groups: dict[int, list[int]] = {}
    for cell in cells:
        groups.setdefault(machine.layout.cells[cell].first_byte // atomicity, []).append(cell)
    return [(atom, tuple(groups[atom])) for atom in sorted(groups)]
