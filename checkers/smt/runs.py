"""From a satisfying assignment to a run of the plain interpreter, which has the last word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from syncproof.checkers.explicit.search import Finding, judge_end, racing
from syncproof.checkers.smt.encoding import Encoding
from syncproof.checkers.smt.events import Landing
from syncproof.checkers.smt.solving import Model
from syncproof.checkers.smt.unrolling import Point
from syncproof.models.lowering import ActionKind
from syncproof.models.nodes import Node
from syncproof.models.outbox import Packet
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


def events_of(encoding: Encoding, model: Model) -> list[Event]:
    """What happens in the run of a model, in the order of its clocks."""
    found: list[tuple[int, int, Event]] = []
    met: set[tuple[str, int]] = set()

    for point in encoding.unrolling.all_points():
        for number, action in enumerate(point.node.actions):
            if not model.holds(encoding.step[point, number]):
                continue
            step = Step("process", point.process, (number,))
            if action.kind is ActionKind.SYNC:
                key = (action.group, point.meeting(action.group))
                if key in met:
                    continue
                met.add(key)
                step = Step("process", min(action.members), (0,))
            target = _target(encoding, point, number, model)
            event = Event(step, point.process, target)
            found.append((model.time(encoding.clock[point]), 1, event))
    for landing in encoding.landings:
        packet = landing.packet
        if packet.reads and model.holds(landing.fetched):
            step = Step("read source", landing.point.process, packet.reads)
            found.append((model.time(landing.fetch_clock), 0, Event(step, landing=landing)))
        if model.holds(landing.landed):
            cells = tuple(cell for cell, _, _ in packet.writes)
            step = Step("land", landing.point.process, cells)
            found.append((model.time(landing.clock), 0, Event(step, landing=landing)))
    return [event for _, _, event in sorted(found, key=lambda each: each[:2])]


def _target(encoding: Encoding, point: Point, number: int, model: Model) -> Node | None:
    for arc in point.arcs:
        if arc.action == number and model.holds(encoding.taken[arc]):
            return arc.edge.target
    return None


def follow(system: System, events: Sequence[Event], stop: Callable[[Transition], bool]) -> Taken:
    """Step the interpreter through the run, up to the first step at which ``stop`` holds.

    Raises `Disagreement` where it will not go along, `BeyondBound` at the in-flight bound.
    """
    state = system.initial_transition().state
    taken: Taken = []
    for position, event in enumerate(events):
        try:
            transition = _transition(system, state, event)
        except Overfull:
            raise BeyondBound from None
        if transition is None:
            raise Disagreement(f"step {position} of {len(events)}, {event.step}, is not possible")
        taken.append((state, transition))
        state = transition.state
        if stop(transition):
            break
    return taken


def _transition(system: System, state: State, event: Event) -> Transition | None:
    """The step of the interpreter that an event is; None if it is not possible."""
    if event.landing is not None:
        return _landing(system, state, event.step, event.landing)
    for each in system.step_transitions(state, event.step):
        if each.step == event.step and event.node is not None:
            is_there = each.state[event.process] == event.node.number
            return each if is_there else None
    return None


def _landing(system: System, state: State, step: Step, landing: Landing) -> Transition | None:
    """The delivery of just this packet; several puts to the same cells may be under way."""
    owner, variant = step.process, 0
    deliveries = system.deliveries(owner, state[system.first_outbox + owner])
    for delivery, each in zip(deliveries, system.landings(state, owner), strict=True):
        if delivery.step != step:
            continue
        if _same_packet(delivery.packet, landing.packet):
            return each.numbered(variant) if variant else each
        variant += 1
    return None


def _same_packet(found: Packet, wanted: Packet) -> bool:
    """Whether a packet under way is the one that was issued; a copy has got its values since."""
    values = not wanted.reads
    return [(cell, mode, value if values else 0) for cell, value, mode in found.writes] == [
        (cell, mode, value if values else 0) for cell, value, mode in wanted.writes
    ] and (found.target, found.queue, found.is_get) == (wanted.target, wanted.queue, wanted.is_get)


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
    """A hang: some process has not returned, and nothing but sweeps that fail can happen."""
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
