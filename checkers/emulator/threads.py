"""A run on real threads: one for each process, one for the puts of each rank.

Each step is taken under one lock, so that the log has an order; who gets the lock, and when a
thread is scheduled at all, is the operating system's.
"""

from __future__ import annotations

import ctypes
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from syncproof.checkers.emulator.flights import Flight
from syncproof.checkers.emulator.machine import Machine, RoleRaised
from syncproof.checkers.emulator.operations import step
from syncproof.checkers.emulator.processes import Emulated
from syncproof.checkers.emulator.schedule import (
    GIVES_UP_A_LINE,
    LOOKS_EVERY,
    Adversary,
    Ended,
    give_up_a_line,
)
from syncproof.checkers.emulator.watchdog import outside_line
from syncproof.models.errors import UserError

MOST_THREADS = 4096
WATCHES_EVERY = 0.05
PAUSE = 0.0002
PAUSES = 0.02


@dataclass
class _Shared:
    """What the threads of a run share; everything is read and changed under ``changed``."""

    machine: Machine
    adversary: Adversary
    changed: threading.Condition = field(default_factory=threading.Condition)
    ended: Ended | None = None
    error: BaseException | None = None

    def end(self, how: Ended) -> None:
        if self.ended is None:
            self.ended = how
        self.changed.notify_all()


def threads_needed(machine: Machine) -> int:
    """How many threads a run takes."""
    return len(machine.processes) + machine.instance.bounds.ranks + 1


def run_on_threads(
    machine: Machine, adversary: Adversary, is_enough: Callable[[], bool], patience: float
) -> Ended:
    """Run until the run is over, wrong or stuck, or ``is_enough`` says so; leaves no thread."""
    needed = threads_needed(machine)
    if needed > MOST_THREADS:
        raise UserError(
            f"{needed} threads",
            where="--ranks",
            expected=f"at most {MOST_THREADS}, or --schedule deterministic, which needs one",
        )
    shared = _Shared(machine, adversary)
    threads = [
        threading.Thread(target=_guarded, args=(shared, _process, each), name=str(each.process))
        for each in machine.processes
    ]
    threads += [
        threading.Thread(target=_guarded, args=(shared, _links, rank), name=f"links of rank {rank}")
        for rank in range(machine.instance.bounds.ranks)
    ]
    started: list[threading.Thread] = []
    try:
        for each in threads:
            each.daemon = True
            each.start()
            started.append(each)
        _watch(shared, is_enough, patience)
    except RuntimeError as error:
        raise UserError(f"{needed} threads: {error}", where="--ranks", expected="fewer") from None
    finally:
        if shared.changed.acquire(timeout=patience or -1):
            shared.end("budget")
            shared.changed.release()
        shared.ended = shared.ended or "budget"
        for each in started:
            each.join(timeout=patience or None)
    if shared.error is not None:
        raise shared.error
    assert shared.ended is not None
    return shared.ended


def _guarded(shared: _Shared, body: Callable[[_Shared, object], None], what: object) -> None:
    try:
        body(shared, what)
    except BaseException as error:
        with shared.changed:
            shared.error = shared.error or error
            shared.end("budget")


def _process(shared: _Shared, what: object) -> None:
    """A process: a step, then perhaps a pause; where it cannot go on, it waits for a change."""
    assert isinstance(what, Emulated)
    pace = random.Random(f"{shared.adversary.random.random()} {what.number}")
    while True:
        with shared.changed:
            while what not in shared.machine.fabric.ready and not _is_finished(shared, what):
                shared.changed.wait()
            if _is_finished(shared, what):
                return
            if shared.adversary.holds(what):
                shared.changed.wait(PAUSE)
                continue
            step(shared.machine, what)
            _after(shared)
        if pace.random() < PAUSES:
            time.sleep(PAUSE * pace.random())


def _is_finished(shared: _Shared, process: Emulated) -> bool:
    return shared.ended is not None or process.is_done


def _links(shared: _Shared, what: object) -> None:
    """The links out of one rank: what may land, lands after a while."""
    assert isinstance(what, int)
    pace = random.Random(f"{shared.adversary.random.random()} links {what}")
    machine = shared.machine
    while True:
        with shared.changed:
            mine = [each for each in machine.fabric.free if _rank_of(machine, each) == what]
            while not mine and shared.ended is None:
                shared.changed.wait()
                mine = [each for each in machine.fabric.free if _rank_of(machine, each) == what]
            if shared.ended is not None:
                return
            chosen = shared.adversary.among(mine)
            if chosen is None:
                shared.changed.wait(PAUSE)
                continue
            machine.fabric.deliver(chosen)
            _after(shared)
        if pace.random() < PAUSES:
            time.sleep(PAUSE * pace.random())


def _rank_of(machine: Machine, flight: Flight) -> int:
    """The rank whose links a flight is on; rank 0 has also what belongs to none."""
    return machine.processes[flight.owner].rank if flight.owner >= 0 else 0


def _after(shared: _Shared) -> None:
    """After each step: is the run at an end, and whom does the change concern?"""
    machine, fabric = shared.machine, shared.machine.fabric
    if machine.memory.lines and shared.adversary.random.random() < GIVES_UP_A_LINE:
        give_up_a_line(machine, shared.adversary.random)
    if machine.wrong:
        shared.end("wrong")
    elif not fabric.ready and not fabric.free:
        shared.end("over" if machine.is_over else "stuck")
    fabric.woken.clear()
    fabric.freed.clear()
    if machine.steps % LOOKS_EVERY == 0:
        machine.remember_less()
    shared.changed.notify_all()


def _watch(shared: _Shared, is_enough: Callable[[], bool], patience: float) -> None:
    """Until the end; a role that does not come back to its core is ended where it is."""
    machine = shared.machine
    seen, since = -1, time.monotonic()
    while shared.ended is None:
        time.sleep(WATCHES_EVERY)
        inside = machine.inside
        if machine.steps != seen or inside is None:
            seen, since = machine.steps, time.monotonic()
        elif patience and time.monotonic() - since > patience:
            _end_role(shared, inside)
            return
        if shared.changed.acquire(timeout=WATCHES_EVERY):
            try:
                if is_enough():
                    shared.end("budget")
            finally:
                shared.changed.release()


def _end_role(shared: _Shared, inside: Emulated) -> None:
    """Tell where a role blocks, and raise there.

    A thread inside of a blocking call of the system cannot be reached; as it is a daemon it ends
    with the program.
    """
    name = str(inside.process)
    for each in threading.enumerate():
        if each.ident is not None and each.name == name:
            where = outside_line(sys._current_frames().get(each.ident))
            shared.error = RoleRaised(name, where, "it blocks outside of its core")
            raised = ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(each.ident), raised)
            return
