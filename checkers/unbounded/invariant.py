"""The quotient as an inductive invariant over unbounded integers, checked by z3.

A state of the quotient is read as a *control state* and the differences of the rounds in it, the
*places*. It stands for all integers with these differences, a multiple of B later. z3 is asked,
state by state, for integers for which a test comes out otherwise than it did, or a step
leads out of the invariant. What becomes of each place is taken from the operation itself, not
from the values, so the search that found the states is not relied on (docs/unbounded.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from syncproof.checkers.unbounded.places import Place, Reader, Stepper
from syncproof.checkers.unbounded.search import Graph
from syncproof.models.transitions import State, Transition


@dataclass
class Checked:
    """What z3 was asked: the time of each query in seconds, and the first that failed."""

    times: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


Candidate = dict[Hashable, list[dict[Place, int]]]
"""For each control state the rounds of its states."""


def differences(graph: Graph) -> Candidate:
    """The candidate invariant: what the search has found, by control state."""
    reader = Reader(graph.system)
    found: Candidate = {}
    for state in graph.arcs:
        reading = reader.read(state)
        found.setdefault(reading.control, []).append(reading.rounds)
    return found


def check_invariant(
    graph: Graph, candidate: Candidate, is_over: Callable[[], bool] = lambda: False
) -> Checked:
    """Ask z3 whether the candidate is inductive and excludes failures and states without a step.

    Raises `NotCovered` for steps whose rounds cannot be followed. ``is_over`` ends it early.
    """
    return _Check(graph, candidate).run(is_over)


class _Check:
    def __init__(self, graph: Graph, candidate: Candidate) -> None:
        import z3

        self.z3: Any = z3
        self.graph, self.candidate = graph, candidate
        self.stepper = Stepper(graph)
        self.variables: dict[Place, Term] = {}
        self.solver = z3.SimpleSolver()
        self.solver.from_string("(declare-const later Int)")

    def run(self, is_over: Callable[[], bool]) -> Checked:
        checked, reader = Checked(), self.stepper.reader
        first = reader.read(self.graph.first)
        if first.rounds not in self.candidate.get(first.control, []):
            checked.failed.append("initiation")
        for number, state in enumerate(self.graph.arcs):
            if is_over():
                checked.failed.append("the time is over")
                break
            started = time.monotonic()
            if not self._is_closed(state):
                checked.failed.append(f"state {number}")
            checked.times.append(time.monotonic() - started)
            if checked.failed:
                break
        return checked

    def _is_closed(self, state: State) -> bool:
        """Whether no integers that the state stands for lead out, fail, or have no step."""
        system = self.graph.system
        enabled = system.transitions(state)
        if any(each.failures for each in enabled) or not (enabled or system.all_done(state)):
            return False
        rounds = self.stepper.reader.read(state).rounds
        # All integers that the state stands for: by how much they are later is unknown.
        self.variables = {place: plus("later", value) for place, value in rounds.items()}
        claims = [self._holds(test) for test in self.stepper.waiting(state)]
        for each in enabled:
            claims += [self._holds(test) for test in self.stepper.tests(state, each)]
            claims.append(self._inside(state, each))
        start = "(= later 0)" if self._is_absolute(state) else "(>= later 0)"
        periodic = f"(= (mod later {self.graph.quotient.modulus}) 0)"
        return self._is_excluded(f"(and {start} {periodic} (not {both(claims)}))")

    def _is_excluded(self, condition: Term) -> bool:
        self.solver.push()
        self.solver.from_string(f"(assert {condition})")
        answer = self.solver.check()
        self.solver.pop()
        return bool(answer == self.z3.unsat)

    def _is_absolute(self, state: State) -> bool:
        """Whether some process has not begun to count, so that rounds are what they are."""
        nodes = [self.graph.system.node_of(state, p) for p in range(self.graph.system.processes)]
        return any(node.state != "done" and node.round is None for node in nodes)

    def _moved(
        self, terms: dict[Place, Term], rounds: dict[Place, int], absolute: bool
    ) -> list[Term]:
        """That the terms are ``rounds``, all later by one multiple of the modulus."""
        if not rounds:
            return []
        first = next(iter(rounds))
        by = plus(terms[first], -rounds[first])
        same = [
            f"(= {plus(terms[place], -value)} {by})"
            for place, value in rounds.items()
            if place != first
        ]
        start = f"(= {by} 0)" if absolute else f"(>= {by} 0)"
        return [*same, start, f"(= (mod {by} {self.graph.quotient.modulus}) 0)"]

    def _holds(self, test: Any) -> Term:
        name, left, right, result, process = test
        if name == "old":
            own = self.variables["round", process]
            return f"(>= {self._term(right)} {plus(own, -1 - self.stepper.lookback)})"
        one, other = self._term(left), self._term(right)
        if name in ("-", "%"):
            return f"(= ({'-' if name == '-' else 'mod'} {one} {other}) {number(result)})"
        test = f"({'=' if name == '==' else '<'} {one} {other})"
        return test if result else f"(not {test})"

    def _term(self, term: Any) -> Term:
        if isinstance(term, int):
            return number(term)
        place, more = term
        return number(more) if place is None else plus(self.variables[place], more)

    def _inside(self, state: State, step: Transition) -> Term:
        """That the rounds behind a step are among those of a control state of the candidate."""
        graph = self.graph
        terms = {p: self._term(term) for p, term in self.stepper.terms(state, step).items()}
        target, _ = graph.quotient.least(step.state)
        kept, forgotten = self.stepper.aged(step.state, target)
        reached = {place: terms[was] for place, was in kept.items()}
        lookback = self.stepper.lookback
        conditions = [
            f"(< {terms[place]} {plus(terms['round', process], -1 - lookback)})"
            for place, processes in forgotten
            for process in processes
        ]
        reading = self.stepper.reader.read(target)
        absolute = self._is_absolute(target)
        among = [
            both(self._moved(reached, rounds, absolute))
            for rounds in self.candidate.get(reading.control, [])
            if rounds.keys() == reached.keys()
        ]
        return both([*conditions, f"(or false {' '.join(among)})"])


# Terms as text in SMT-LIB, which z3 reads faster than Python builds its terms

Term = str


def number(value: int) -> Term:
    """A number."""
    return str(value) if value >= 0 else f"(- {-value})"


def plus(term: Term, more: int) -> Term:
    """A number more than a term."""
    return f"(+ {term} {number(more)})" if more else term


def both(claims: list[Term]) -> Term:
    """All of some claims."""
    return f"(and true {' '.join(claims)})"


def ranges(graph: Graph) -> list[str]:
    """The invariant in words: how far each round is from that of the process it belongs to."""
    system, reader = graph.system, Reader(graph.system)
    found: dict[tuple[str, str], set[int]] = {}
    names = [str(each.process) for each in system.framed]
    for state in graph.arcs:
        rounds = reader.read(state).rounds
        running = [p for p in range(system.processes) if ("round", p) in rounds]
        if len(running) < system.processes:
            continue
        for place, value in rounds.items():
            if place[0] == "round":
                for other in running:
                    if other < place[1]:
                        key = (names[place[1]], names[other])
                        found.setdefault(key, set()).add(value - rounds["round", other])
            elif place[0] == "cell":
                cell = system.cells[place[1]]
                for p in running:
                    if system.framed[p].process.rank == cell.slot.rank:
                        key = (str(cell), names[p])
                        found.setdefault(key, set()).add(value - rounds["round", p] + 1)
    return [
        f"{one} - {other}: {min(values)}" + (f" to {max(values)}" if len(values) > 1 else "")
        for (one, other), values in sorted(found.items())
    ]
