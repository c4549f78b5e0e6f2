"""The quotient as an inductive invariant over unbounded integers, checked by z3.

A state of the quotient is read as a *control state* and the differences of the rounds in it. It
stands for all integers with these differences, a multiple of B later. z3 is asked for integers for
which a test comes out otherwise than it did, or a step leads out of the invariant. What
becomes of each round is taken from the operation itself, not from the values, so the search that
found the states is not relied on (docs/unbounded.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from syncproof.checkers.unbounded.carried import Carrier, LeadsOut
from syncproof.checkers.unbounded.guards import Guards, Term, plus, variable
from syncproof.checkers.unbounded.readings import Reader, Rounds
from syncproof.checkers.unbounded.reduction import Reduction, free_steps
from syncproof.checkers.unbounded.search import Graph
from syncproof.models.transitions import State, Transition

Candidate = dict[tuple[int, ...], set[tuple[Rounds, ...]]]
"""For each control state the rounds of its states, part by part."""


@dataclass
class Checked:
    """How many states were looked at, the queries to z3 with the time of each in seconds, and
    the first state for which something was not excluded."""

    states: int = 0
    queries: dict[Term, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


def differences(graph: Graph, reader: Reader) -> Candidate:
    """The candidate invariant: what the search has found, by control state."""
    found: Candidate = {}
    for state in graph.arcs:
        control, rounds = reader.read(state)
        found.setdefault(control, set()).add(rounds)
    return found


def check_invariant(
    graph: Graph,
    reader: Reader,
    candidate: Candidate,
    is_over: Callable[[], bool] = lambda: False,
) -> Checked:
    """Ask z3 whether the candidate is inductive and excludes failures and states without a step.

    Raises `NotCovered` for steps whose rounds cannot be followed. ``is_over`` ends it early.
    """
    return _Check(graph, reader, candidate).run(is_over)


class _Check:
    def __init__(self, graph: Graph, reader: Reader, candidate: Candidate) -> None:
        self.graph, self.system, self.candidate = graph, graph.system, candidate
        self.quotient, self.reader = graph.quotient, reader
        self.guards = Guards(graph.system, graph.quotient.lookback)
        self.carrier = Carrier(graph, reader)
        self.checked = Checked()
        self.excluded = _Excluded(graph.quotient.modulus, self.checked.queries)
        self._listed: dict[State, bool] = {}
        assert graph.reduction is not Reduction.SETS, "these rest on what z3 is not asked"
        self.has_free_steps = graph.reduction is Reduction.FREE

    def run(self, is_over: Callable[[], bool]) -> Checked:
        checked = self.checked
        if not self._is_listed(self.graph.first):
            checked.failed.append("initiation")
        for state in self.graph.arcs:
            if checked.failed:
                break
            if is_over():
                checked.failed.append("the time is over")
            elif not self._is_closed(state):
                checked.failed.append(f"state {checked.states}")
            checked.states += 1
        return checked

    def _is_closed(self, state: State) -> bool:
        """Whether no integers that the state stands for lead out, fail, or have no step."""
        system, start = self.system, self._is_absolute(state)
        enabled = system.transitions(state)
        if not (enabled or system.all_done(state)):
            return False
        steps = free_steps(system, state, enabled) if self.has_free_steps else enabled
        try:
            return (
                not any(each.failures for each in steps)
                and all(
                    self.excluded(claim, start)
                    for process in range(system.processes)
                    for claim in self.guards.waiting(state, process)
                )
                and all(
                    self.excluded(claim, start)
                    for each in steps
                    for claim in self._step(state, each)
                )
            )
        except LeadsOut:
            return False

    def _is_listed(self, state: State) -> bool:
        known = self._listed.get(state)
        if known is None:
            control, rounds = self.reader.read(state)
            known = self._listed[state] = rounds in self.candidate.get(control, ())
        return known

    def _is_absolute(self, state: State) -> bool:
        """Whether some process has not begun to count, so that rounds are what they are."""
        nodes = [self.system.node_of(state, p) for p in range(self.system.processes)]
        return any(node.round is None and node.state != "done" for node in nodes)

    def _step(self, state: State, step: Transition) -> Iterator[Term]:
        """The claims that a step is taken and leads to a state of the candidate, moved."""
        taken = self.guards.taken(state, step.step, step.state)
        for each in taken:
            yield from self.guards.of(each)
        target, by = self.quotient.least(step.state)
        if not self._is_listed(target):
            raise LeadsOut
        moved, modulus = plus("later", by), self.quotient.modulus
        yield f"(= {moved} 0)" if self._is_absolute(target) else f"(>= {moved} 0)"
        yield f"(= (mod {moved} {modulus}) 0)"
        least = -1 - self.quotient.lookback
        start = self._is_absolute(state)
        for fate in self.carrier.fates(state, step, target, taken, start):
            yield from fate.claims
            for term, processes in fate.forgotten:
                for process in processes:
                    yield f"(< {term} {plus(self._round_behind(state, step, process), least)})"

    def _round_behind(self, state: State, step: Transition, process: int) -> Term:
        """The round of a process behind a step."""
        old = self.system.node_of(state, process).round
        new = self.system.node_of(step.state, process).round
        if new is None:
            raise LeadsOut
        return str(new) if old is None else plus(variable(old), new - old)


class _Excluded:
    """Whether no integers contradict a claim: each is asked of z3 once, for all states."""

    def __init__(self, modulus: int, queries: dict[Term, float]) -> None:
        import z3

        self.z3: Any = z3
        self.solver = z3.SimpleSolver()
        self.solver.from_string("(declare-const later Int)")
        self.modulus, self.queries = modulus, queries
        self._known: dict[tuple[Term, bool], bool] = {}

    def __call__(self, claim: Term, is_absolute: bool) -> bool:
        known = self._known.get((claim, is_absolute))
        if known is None:
            known = self._known[claim, is_absolute] = self._ask(claim, is_absolute)
        return known

    def _ask(self, claim: Term, is_absolute: bool) -> bool:
        start = "(= later 0)" if is_absolute else "(>= later 0)"
        query = f"(and {start} (= (mod later {self.modulus}) 0) (not {claim}))"
        started = time.monotonic()
        self.solver.push()
        self.solver.from_string(f"(assert {query})")
        answer = self.solver.check()
        self.solver.pop()
        self.queries[query] = time.monotonic() - started
        return bool(answer == self.z3.unsat)


def ranges(graph: Graph, reader: Reader) -> list[str]:
    """The invariant in words: how far each round is from that of the process it belongs to."""
    system = graph.system
    found: dict[tuple[str, str], set[int]] = {}
    names = [str(each.process) for each in system.framed]
    first, last = system.first_cell, system.processes
    for rounds in {graph.quotient.frame(state).rounds for state in graph.arcs}:
        known = [each for each in rounds if each is not None]
        if len(known) == len(rounds):
            for p, one in enumerate(known):
                for other in range(p):
                    found.setdefault((names[p], names[other]), set()).add(one - known[other])
    for n, cell in enumerate(system.cells):
        near = [p for p in range(last) if system.framed[p].process.rank == cell.slot.rank]
        for value, nodes in {(state[first + n], state[:last]) for state in graph.arcs}:
            rounds = graph.quotient.frame(nodes).rounds
            for p in near if None not in rounds else ():
                for each in reader.value(value)[1]:
                    own = each - (rounds[p] or 0) + 1
                    found.setdefault((str(cell), names[p]), set()).add(own)
    return [
        f"{one} - {other}: {min(values)}" + (f" to {max(values)}" if len(values) > 1 else "")
        for (one, other), values in sorted(found.items())
    ]
