"""Failures in systems of so many rounds: those of the quotient, and what a few rounds show."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from syncproof.checkers.explicit.check import check
from syncproof.checkers.explicit.counterexample import build_trace
from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import (
    Budget,
    Exploration,
    Finding,
    Meter,
    explore,
    hung_states,
    judge_races,
)
from syncproof.checkers.unbounded.search import Found, Graph
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.instance import Choices, Instance
from syncproof.models.round_core import ENDS
from syncproof.models.rounds import Round, mapped
from syncproof.models.transitions import Failure, State
from syncproof.models.verdict import Question, Trace

MOST_STATES = 100_000
MORE_ROUNDS = 2

FEW_STATES = 500
FEW_ROUNDS = (1, 2, 3)


@dataclass(frozen=True)
class Confirmed:
    """A failure with a run of a bounded system that shows it."""

    failure: Failure
    trace: Trace


def refute(instance: Instance, question: Question) -> Confirmed | None:
    """A failure in a few rounds that takes few states to find: many protocols that fail do so at
    once, while their quotient, in which rounds go on and on, may be large."""
    for rounds in FEW_ROUNDS:
        bounded = replace(instance, bounds=replace(instance.bounds, rounds=rounds))
        about = replace(question, bounds={**question.bounds, "rounds": rounds})
        try:
            trace = check(bounded, about, "reduced", Budget(states=FEW_STATES)).trace
        except UserError:
            return None
        if trace is not None:
            return Confirmed(Failure(trace.property, trace.message, -1), trace)
    return None


def confirm(
    instance: Instance, question: Question, found: Found, graph: Graph, choices: Choices
) -> Confirmed | None:
    """A bounded run that breaks a property, under the choices of the run to a finding."""
    made: dict[Any, Hashable] = {**choices, **choices_on_the_way(graph, found)}
    ends = [name[1] for name, yes in made.items() if _is_end(name) and yes]
    least = min(ends) if ends else graph.rounds_of(found.state)
    made = {name: value for name, value in made.items() if not _is_end(name)}
    for rounds in range(least, least + 1 + MORE_ROUNDS):
        confirmed = _search(instance, question, made, rounds)
        if confirmed is not None:
            return confirmed
    return None


def _is_end(name: Any) -> bool:
    return isinstance(name, tuple) and len(name) == 2 and name[0] == ENDS


def choices_on_the_way(graph: Graph, found: Found) -> dict[Hashable, Hashable]:
    """The choices that the run to a finding makes, their rounds counted from the first one."""
    made: dict[Hashable, Hashable] = {}
    for state, shift in _states_on_the_way(graph, found):
        values = graph.system.round_values
        for name, value in graph.system.beside.pairs(graph.system.beside_of(state)):
            key = values.plain(name)
            if isinstance(key, tuple) and key[0] == "choice":
                plain = mapped(key[1], partial(_counted, shift))
                made.setdefault(plain, values.plain(value))
    return made


def _counted(shift: int, each: Round) -> int:
    return each.moved_(shift).number_


def _states_on_the_way(graph: Graph, found: Found) -> list[tuple[State, int]]:
    states: list[tuple[State, int]] = []
    at: State | None = found.state
    while at is not None:
        states.append((at, graph.shifted[at]))
        at = graph.parents[at][0]
    states.reverse()
    if found.after is not None:
        states.append((found.after, graph.shifted[found.state]))
    return states


def _search(
    instance: Instance, question: Question, choices: dict[Hashable, Hashable], rounds: int
) -> Confirmed | None:
    bounded = replace(instance, bounds=replace(instance.bounds, rounds=rounds))
    asked = frozenset(question.properties)
    made = dict(choices)
    while True:
        try:
            system = bounded.system(made)
            choose = PersistentSets(system, asked).choose if PersistentSets.covers(system) else None
            explored = explore(system, choose, asked, Meter(Budget(states=MOST_STATES)))
            break
        except Unresolved as choice:
            made[choice.name] = choice.values[0]
    finding = _finding(explored, asked)
    if finding is None:
        return None
    about = replace(question, bounds={**question.bounds, "rounds": rounds})
    trace = build_trace(about, finding, explored, made, fewest=False)
    return Confirmed(finding.failure, trace)


def _finding(explored: Exploration, asked: frozenset[str]) -> Finding | None:
    if explored.findings:
        return explored.findings[0]
    if explored.stopped:
        return None
    hung = hung_states(explored)
    if hung and "deadlock-free" in asked:
        message = "no run from here lets every process finish"
        return Finding(Failure("deadlock-free", message, -1), hung[0], None)
    races = [] if hung or "race-free" not in asked else judge_races(explored)
    return races[0] if races else None
