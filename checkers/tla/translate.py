"""From a run of a module to a run of our own model, step by step, and to a trace."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from syncproof.checkers.explicit.counterexample import build_trace
from syncproof.checkers.explicit.search import Exploration, Finding, judge_end, race_pairs
from syncproof.checkers.tla.observe import (
    Observer,
    ProcessName,
    cell_name,
    difference,
    process_name,
    seen_in,
)
from syncproof.models.core import Unresolved
from syncproof.models.instance import Choices, Instance
from syncproof.models.narrate import NotEnabled, describe, follow
from syncproof.models.system import System
from syncproof.models.transitions import Failure, State, Step, Transition
from syncproof.models.verdict import Question, Trace

States = Sequence[Mapping[str, Any]]
Taken = list[tuple[State, Transition]]


class Disagreement(Exception):
    """A run of a module that our own model does not have, or judges otherwise."""


def steps_of(system: System, states: States) -> list[Step]:
    """Our step for each step between ``states``: a process that moves, or a put that lands.

    Raises `Disagreement` for a step that is neither.
    """
    return [
        _step(system, before, after, number)
        for number, (before, after) in enumerate(pairwise(states))
    ]


def _step(system: System, before: Mapping[str, Any], after: Mapping[str, Any], number: int) -> Step:
    numbers = {process_name(system, p): p for p in range(system.processes)}
    moved = [name for name in before["at"] if before["at"][name] != after["at"][name]]
    if moved:
        return Step("process", min(numbers[name] for name in moved), (0,))
    landed = [name for name in before["flight"] if before["flight"][name] != after["flight"][name]]
    if len(landed) != 1:
        raise Disagreement(f"step {number} of the TLA+ run moves no process and lands no put")
    return Step("land", numbers[landed[0]], _landed(system, before, after, landed[0]))


def _landed(
    system: System, before: Mapping[str, Any], after: Mapping[str, Any], process: ProcessName
) -> tuple[int, ...]:
    """The cells of the put that is in flight before and not after."""
    earlier, later = before["flight"][process], after["flight"][process]
    gone = next((i for i, put in enumerate(later) if put != earlier[i]), len(later))
    (region, rank, place), block = earlier[gone]["slot"], earlier[gone]["block"]
    numbers = {cell_name(cell): i for i, cell in enumerate(system.cells)}
    return tuple(sorted(numbers[region, rank, place, field] for field in block))


def choices_in(instance: Instance, states: States) -> tuple[System, Choices, list[Step]]:
    """The system under the choices of a module's run, and our steps of the run."""
    choices: dict[Hashable, Hashable] = {}
    while True:
        try:
            system = instance.system(choices)
            steps = steps_of(system, states)
            follow(system, steps)
        except Unresolved as choice:
            choices[choice.name] = _chosen(choice.name, states[0])
            continue
        except NotEnabled:
            pass
        return system, choices, steps


def _chosen(name: Hashable, state: Mapping[str, Any]) -> Hashable:
    """What a run of a module has chosen, read off its first state."""
    assert isinstance(name, tuple)
    kind, *place = name
    if kind == "tokens":
        source, expert, round = place
        return int(state["routing"].get((round, source, expert), 0))
    chosen = {"token equals the sentinel": "alike", "lead repeats": "repeated"}[kind]
    return tuple(place) in state[chosen]


def followed(instance: Instance, states: States) -> tuple[System, Choices, Taken]:
    """A module's run walked through our own model, what can be seen compared at each step.

    Raises `Disagreement` at the first step that is not possible or leads elsewhere.
    """
    system, choices, steps = choices_in(instance, states)
    try:
        taken = follow(system, steps)
    except NotEnabled as left:
        raise Disagreement(
            f"step {left.position} of the TLA+ run is not possible in our model"
        ) from None
    observer = Observer(instance, system)
    start = system.initial_transition().state
    for number, state in enumerate([start, *(t.state for _, t in taken)]):
        ours, theirs = observer.seen(state), seen_in(states[number])
        if ours != theirs:
            where = f"after step {number} our model has other"
            raise Disagreement(f"{where} {difference(ours, theirs)}")
    return system, choices, taken


def trace_of(
    instance: Instance, question: Question, violated: str, states: States, *, fewest: bool
) -> Trace:
    """A counterexample of a tool as our own trace; ``violated`` is the property it breaks.

    With ``fewest`` the tool promises that there is no shorter one; otherwise every step that can
    be left out is left out, as with our own.
    Raises `Disagreement` where our model has no such run, or does not hold it for wrong.
    """
    system, choices, taken = followed(instance, states)
    finding = finding_of(system, taken, violated)
    exploration = Exploration(system, _parents(system, taken))
    return build_trace(question, finding, exploration, choices, fewest=fewest)


def _parents(system: System, taken: Taken) -> dict[State, tuple[State | None, Step | None, int]]:
    parents: dict[State, tuple[State | None, Step | None, int]] = {
        system.initial_transition().state: (None, None, 0)
    }
    for depth, (before, transition) in enumerate(taken, 1):
        parents.setdefault(transition.state, (before, transition.step, depth))
    return parents


def finding_of(system: System, taken: Taken, violated: str) -> Finding:
    """What our own model says is wrong with the end of a run."""
    state = taken[-1][1].state if taken else system.initial_transition().state
    if taken:
        before, last = taken[-1]
        for failure in last.failures:
            if failure.property == violated:
                return Finding(failure, before, last)
    if violated == "deadlock-free" and not system.all_done(state):
        return Finding(Failure(violated, "no process can go on", -1), state, None)
    if violated == "race-free":
        for cell, _, one, other in race_pairs(system, state, system.transitions(state)):
            both = f"{describe(system, state, one)} and {describe(system, state, other)}"
            message = f"{both} are not ordered on {system.cells[cell]}"
            return Finding(Failure(violated, message, one.step.process), state, None, cell)
    for failure in judge_end(system, state) if system.all_done(state) else ():
        if failure.property == violated:
            return Finding(failure, state, None)
    raise Disagreement(f"the TLA+ run breaks {violated}, and in our model it does not")
