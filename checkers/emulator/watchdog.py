"""A role that blocks outside of its core: noticed, named by its line, and ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from syncproof.checkers.emulator.machine import Machine, RoleRaised

PATIENCE = 10.0
"""Seconds that a role may take from one operation to the next."""
LOOKS = 4


@contextmanager
def watched(machine: Machine, patience: float = PATIENCE) -> Iterator[None]:
    """Within, a role that does not come back to its core raises `RoleRaised` where it hangs.

    Sleeping, waiting for a lock and looping are all interrupted. Only the main thread can do so;
    in any other nothing is watched.
    """
    if threading.current_thread() is not threading.main_thread() or not patience:
        yield
        return
    seen = [-1, 0]

    def look(number: int, frame: FrameType | None) -> None:
        inside = machine.inside
        if inside is None or machine.steps != seen[0]:
            seen[:] = [machine.steps, 0]
            return
        seen[1] += 1
        if seen[1] >= LOOKS:
            raise RoleRaised(
                str(inside.process), outside_line(frame), "it blocks outside of its core"
            )

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, patience / LOOKS, patience / LOOKS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outside_line(frame: FrameType | None) -> str:
    """The innermost line of a stack that is not ours: a role's, or of what it has called."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("syncproof.models", "syncproof.checkers", "threading")):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"
