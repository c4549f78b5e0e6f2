"""From a trace to a run: a counterexample's schedule forced on real bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncproof.checkers.emulator.content import Content
from syncproof.checkers.emulator.flights import Flight
from syncproof.checkers.emulator.machine import Machine, RoleRaised, Wrong
from syncproof.checkers.emulator.operations import step
from syncproof.checkers.emulator.processes import Emulated
from syncproof.checkers.emulator.results import Blocked, blocked_in, in_flight
from syncproof.checkers.emulator.schedule import Adversary, run_in_turn
from syncproof.checkers.explicit.replay import chosen, system_of
from syncproof.models.instance import Instance
from syncproof.models.narrate import NotEnabled, follow
from syncproof.models.operations import Kind
from syncproof.models.system import System
from syncproof.models.transitions import State, Step
from syncproof.models.verdict import Trace

STEPS_TO_GO_ON = 200_000


@dataclass(frozen=True)
class Forced:
    """What became of a trace on the emulator: whether it fails the same way, and what is seen."""

    reproduced: bool
    message: str
    steps: int
    wrong: tuple[Wrong, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    in_flight: tuple[str, ...] = ()


def force(trace: Trace, instance: Instance, content: Content | None = None) -> Forced:
    """Take the steps of ``trace`` on the emulator, one by one, and see whether it breaks the same.

    A hang is one if, whoever goes on from there, the run gets stuck.
    """
    system = system_of(trace, instance)
    steps = [Step(s.kind, s.process, s.what[:-1], s.what[-1]) for s in trace.steps]
    try:
        taken = follow(system, steps)
    except NotEnabled as left:
        return Forced(False, f"the model does not allow step {left.position}", left.position)
    told = dict(trace.choices)
    content = content or Content()
    machine = Machine(
        instance, 0, content, draw=lambda name, values: chosen(name, tuple(values), told)
    )
    try:
        machine.start()
        for position, (state, transition) in enumerate(taken):
            if not _take(machine, system, state, transition.step):
                step_told = trace.steps[position]
                message = f"step {position} is not possible: {step_told.actor}: {step_told.text}"
                return Forced(False, message, position, tuple(machine.wrong))
        return _judged(machine, trace, len(taken))
    except RoleRaised as error:
        return Forced(False, f"a role goes wrong by itself: {error}", machine.steps)
    finally:
        machine.close()


def _take(machine: Machine, system: System, state: State, forced: Step) -> bool:
    """Take one step of the model on the machine; False if it cannot be taken there."""
    if forced.kind in ("process", "fetch"):
        cells = None
        if forced.kind == "process":
            action = system.node(state, forced.process).actions[forced.what[0]]
            cells = tuple(c for c in action.cells if c < len(system.cells)) or None
        process = machine.processes[forced.process]
        if process.operation is not None and process.operation.kind is Kind.SWEEP_BEGIN:
            process.swept = {}
            step(machine, process)
        process.looked = process.looked if process.progress else {}
        return not process.is_done and step(machine, process, cells)
    if forced.kind in ("write back", "evict"):
        line = machine.memory.lines.index(forced.what)
        process = machine.processes[forced.process]
        if line not in process.cache:
            return False
        machine.fabric.give_up_line(process, line)
        return True
    flight = _flight(machine, system, forced)
    if flight is not None:
        machine.fabric.deliver(flight)
    return flight is not None


def _flight(machine: Machine, system: System, forced: Step) -> Flight | None:
    """The put in flight that a step of the fabric is about; the oldest where several are alike."""
    owner = forced.process if forced.process < len(machine.processes) else -1
    cells = tuple(cell % len(system.cells) for cell in forced.what)
    for each in sorted(machine.fabric.free, key=lambda each: each.number):
        here = each.sources if forced.kind == "read source" else each.cells
        if (each.owner, here) == (owner, cells):
            return each
    return None


def _judged(machine: Machine, trace: Trace, steps: int) -> Forced:
    name = trace.property
    if name == "race-free":
        return _race(machine, steps)
    if name == "deadlock-free":
        adversary = Adversary(machine, "random", 0)
        ended = run_in_turn(machine, adversary, lambda: machine.steps > STEPS_TO_GO_ON)
        waiting, left = blocked_in(machine), in_flight(machine)
        message = {
            "stuck": "it hangs: nothing is left that could happen",
            "budget": "it goes round in circles: somebody polls for ever",
            "wrong": "it does not hang, but breaks something else",
            "over": "it does not hang",
        }[ended]
        hangs = ended in ("stuck", "budget")
        return Forced(hangs, message, steps, tuple(machine.wrong), waiting, left)
    if not machine.wrong and machine.is_over:
        machine.judge_end()
    same = [each for each in machine.wrong if each.property == name]
    others = ", ".join(sorted({each.property for each in machine.wrong}))
    message = (
        f"{same[0].message}" if same else f"{name} is not broken{others and ', but ' + others}"
    )
    return Forced(bool(same), message, steps, tuple(same or machine.wrong))


def _race(machine: Machine, steps: int) -> Forced:
    """Whether two accesses to one cell, one of them a write, can both be next."""
    accesses: dict[int, list[tuple[str, bool]]] = {}
    for each in machine.fabric.free:
        for cell in each.cells:
            owner = "" if each.owner < 0 else str(machine.processes[each.owner].process)
            accesses.setdefault(cell, []).append((f"a put of {owner} lands", True))
    for process in machine.fabric.ready:
        for cell, writes in _touches(machine, process):
            kind = "" if process.operation is None else process.operation.kind.value
            accesses.setdefault(cell, []).append((f"{process.process}'s {kind}", writes))
    for cell, found in accesses.items():
        if len(found) > 1 and any(writes for _, writes in found):
            pair = " and ".join(dict.fromkeys(text for text, _ in found))
            message = f"{machine.layout.cells[cell]}: {pair}, in either order"
            return Forced(True, message, steps)
    return Forced(False, "no two accesses to one cell are possible", steps)


def _touches(machine: Machine, process: Emulated) -> Sequence[tuple[int, bool]]:
    operation = process.operation
    reads = (Kind.LOAD, Kind.GET, Kind.WAIT_UNTIL, Kind.ATOMIC)
    stores = (Kind.PUT, Kind.ADD)
    if operation is None or operation.slot is None:
        return ()
    immediate = machine.profile.immediate or operation.slot.region.on_chip
    if operation.kind not in reads and not (operation.kind in stores and immediate):
        return ()
    writes = operation.kind in (Kind.ATOMIC, *stores)
    return [(cell, writes) for cell, _, _ in machine.memory.cells_of(operation.slot)]
