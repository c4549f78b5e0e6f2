"""From a satisfying assignment to a run of the plain interpreter, which has the last word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import z3

from syncproof.checkers.explicit.search import Finding, judge_end, racing
from syncproof.checkers.smt.encoding import Encoding
from syncproof.checkers.smt.events import Landing
from syncproof.checkers.smt.unrolling import Point
from syncproof.models.lowering import ActionKind
from syncproof.models.nodes import Node
from syncproof.models.system import System
from syncproof.models.transitions import Failure, Overfull, State, Step, Transition

MOST_STATES_OF_A_HANG = 20_000


class Disagreement(Exception):
    """The interpreter does not do what the formula says: an error of ours."""


class BeyondBound(Exception):
    """The run of the formula meets the in-flight bound of the interpreter."""


@dataclass(frozen=True)
class Event:
    """A step of the run, and what it must lead to: a node, or values in the cells that land."""

    step: Step
    process: int = -1
    node: Node | None = None
    landing: Landing | None = None


Taken = list[tuple[State, Transition]]


def events_of(encoding: Encoding, model: z3.ModelRef) -> list[Event]:
    """What happens in the run of a model, in the order of its clocks."""
    found: list[tuple[int, int, Event]] = []
    met: set[tuple[str, int]] = set()

    def holds(term: object) -> bool:
        return z3.is_true(model.eval(term, model_completion=True))

    def at(clock: object) -> int:
        return int(model.eval(clock, model_completion=True).as_long())

    for point in encoding.unrolling.all_points():
        for number, action in enumerate(point.node.actions):
            if not holds(encoding.step[point, number]):
                continue
            step = Step("process", point.process, (number,))
            if action.kind is ActionKind.SYNC:
                key = (action.group, point.meeting(action.group))
                if key in met:
                    continue
                met.add(key)
                step = Step("process", min(action.members), (0,))
            target = _target(encoding, point, number, holds)
            event = Event(step, point.process, target)
            found.append((at(encoding.clock[point]), 1, event))
    for landing in encoding.landings:
        packet = landing.packet
        if packet.reads and holds(landing.fetched):
            step = Step("read source", landing.point.process, packet.reads)
            found.append((at(landing.fetch_clock), 0, Event(step, landing=landing)))
        if holds(landing.landed):
            cells = tuple(cell for cell, _, _ in packet.writes)
            step = Step("land", landing.point.process, cells)
            found.append((at(landing.clock), 0, Event(step, landing=landing)))
    return [event for _, _, event in sorted(found, key=lambda each: each[:2])]


def _target(
    encoding: Encoding, point: Point, number: int, holds: Callable[[object], bool]
) -> Node | None:
    for arc in point.arcs:
        if arc.action == number and holds(encoding.taken[arc]):
            return arc.edge.target
    return None


def follow(
    system: System, events: Sequence[Event], stop: Callable[[Transition], bool]
) -> Taken:
    """Step the interpreter through the run, up to the first step at which ``stop`` holds.

    Raises `Disagreement` where it will not go along, `BeyondBound` at the in-flight bound.
    """
    state = system.initial_transition().state
    taken: Taken = []
    for position, event in enumerate(events):
        try:
            enabled = system.step_transitions(state, event.step)
        except Overfull:
            raise BeyondBound from None
        transition = next((each for each in enabled if _is_it(system, event, each)), None)
        if transition is None:
            raise Disagreement(f"step {position} of {len(events)}, {event.step}, is not possible")
        taken.append((state, transition))
        state = transition.state
        if stop(transition):
            break
    return taken


def _is_it(system: System, event: Event, transition: Transition) -> bool:
    step = transition.step
    if (step.kind, step.process, step.what) != (
        event.step.kind,
        event.step.process,
        event.step.what,
    ):
        return False
    if event.node is not None:
        return transition.state[event.process] == event.node.number
    packet = event.landing.packet if event.landing is not None else None
    if packet is None or step.kind != "land" or packet.reads:
        return True
    return all(
        mode or system.value(transition.state, cell) == value for cell, value, mode in packet.writes
    )


def end_of(system: System, taken: Taken) -> State:
    """The state in which a run ends."""
    return taken[-1][1].state if taken else system.initial_transition().state


def failure_of(taken: Taken, asked: frozenset[str]) -> Finding | None:
    """What the last step of a run breaks."""
    if not taken:
        return None
    state, last = taken[-1]
    for each in last.failures:
        if each.property in asked:
            return Finding(each, state, last)
    return None


def finding_at_end(system: System, state: State, name: str) -> Finding | None:
    """The failure of ``name`` of a state in which all processes have returned."""
    if not system.all_done(state):
        return None
    wrong = [each for each in judge_end(system, state) if each.property == name]
    return Finding(wrong[0], state, None) if wrong else None


def hang_at_end(system: System, state: State, asked: frozenset[str]) -> Finding | None:
    """A hang: nothing but sweeps that fail can happen any more, and some process has not returned."""
    seen, work = {state}, [state]
    while work:
        here = work.pop()
        if system.all_done(here) or len(seen) > MOST_STATES_OF_A_HANG:
            return None
        for each in system.transitions(here):
            if each.step.kind != "process" or any(f.property in asked for f in each.failures):
                return None
            if each.state not in seen:
                seen.add(each.state)
                work.append(each.state)
    return Finding(Failure("deadlock-free", "no process can go on", -1), state, None)


def race_at_end(system: System, state: State, cell: int, message: str) -> Finding | None:
    """A race on ``cell`` between two steps that are enabled in ``state``."""
    if not racing(system, state, cell):
        return None
    return Finding(Failure("race-free", message, -1), state, None, cell)
