"""What every operation needs: to go on, and to be put aside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from syncproof.checkers.emulator.machine import Machine
from syncproof.checkers.emulator.processes import Emulated


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
