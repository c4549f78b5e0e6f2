"""A question asked of z3: one formula for each assignment of the choices, one verdict.

"Proved" is written for an unsatisfiable query alone, and only where the same constraints have a
complete run that the interpreter has walked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import z3

from syncproof.checkers.explicit.check import Interrupted, assignments
from syncproof.checkers.explicit.counterexample import build_trace
from syncproof.checkers.explicit.search import Budget, Exploration, Finding
from syncproof.checkers.smt.choices import Assignments, made
from syncproof.checkers.smt.encoding import Encoding
from syncproof.checkers.smt.queries import Queries
from syncproof.checkers.smt.races import Races
from syncproof.checkers.smt.runs import (
    BeyondBound,
    Disagreement,
    Taken,
    end_of,
    events_of,
    failure_of,
    finding_at_end,
    follow,
    hang_at_end,
    race_at_end,
)
from syncproof.checkers.smt.solving import Model, Parts, Solver
from syncproof.checkers.smt.terms import FALSE, Term, any_of
from syncproof.checkers.smt.uncovered import Uncovered
from syncproof.checkers.smt.unrolling import Unrolling
from syncproof.models.core import Unresolved
from syncproof.models.instance import Choices, Instance
from syncproof.models.nodes import TooLong
from syncproof.models.reaches import declared_reaches
from syncproof.models.system import System
from syncproof.models.transitions import Overfull, State, Step, Transition
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Trace, Verdict

A_MINUTE = 60.0
IN_FLIGHT = "a put met the in-flight bound: raise it with --fabric NAME,in_flight=N"
STOPPED = "the search stopped at the first failure"


class Undecided(Exception):
    """Why a query has no answer."""


@dataclass
class Tally:
    """What all formulas were together."""

    formulas: int = 0
    events: int = 0
    constraints: int = 0
    queries: int = 0
    by_parts: int = 0
    reached: set[str] = field(default_factory=set)
    persists: set[str] = field(default_factory=set)

    def work(self) -> tuple[tuple[str, int], ...]:
        """The same for the verdict."""
        counts = (self.formulas, self.events, self.constraints, self.queries)
        return tuple(zip(("formulas", "events", "constraints", "queries"), counts, strict=True))


class Deadline:
    """What is left of ``--budget-seconds``."""

    def __init__(self, budget: Budget) -> None:
        self.seconds = budget.seconds
        self._end = time.monotonic() + budget.seconds

    def milliseconds(self) -> int:
        """What a query may take; 0 for no limit. Raises `Undecided` when nothing is left."""
        if not self.seconds:
            return 0
        left = int((self._end - time.monotonic()) * 1000)
        if left <= 0:
            raise Undecided(f"z3 ran out of time at --budget-seconds {self.seconds:g}: raise it")
        return left


class Formula:
    """The formula of one assignment, its solvers, and the runs that they find."""

    def __init__(
        self, system: System, asked: frozenset[str], deadline: Deadline, tally: Tally
    ) -> None:
        self.system, self.asked = system, asked
        self._deadline, self._tally = deadline, tally
        self.encoding = Encoding(Unrolling(system, asked, deadline.milliseconds))
        self.queries = Queries(self.encoding, asked)
        self._solver = Solver(self.encoding, self.encoding.constraints)
        self._parts = Parts(self.encoding)
        tally.formulas += 1
        tally.constraints += len(self.encoding.constraints)
        tally.events += len(self.encoding.step) + len(self.encoding.landings)

    def model(self, *conditions: Term) -> Model | None:
        """A run that meets the conditions; None if there is none."""
        if FALSE in conditions:
            return None
        self._tally.queries += 1
        answer = self._solver.answer(conditions, self._deadline.milliseconds())
        if answer == z3.unknown:
            self._deadline.milliseconds()
            raise Undecided(f"z3 says unknown: {self._solver.why_unknown()}")
        return self._solver.model() if answer == z3.sat else None

    def excluded(self, condition: Term, cells: Iterable[int] = ()) -> bool:
        """Whether the constraints on the ranks concerned suffice to show that no run meets a
        condition; if not, nothing is known."""
        if condition == FALSE:
            return True
        solver = self._parts.solver(condition, cells)
        if solver is None:
            return False
        self._tally.queries += 1
        answer = solver.answer((condition,), self._deadline.milliseconds())
        self._tally.by_parts += answer == z3.unsat
        return bool(answer == z3.unsat)

    def run(self, *conditions: Term) -> Taken | None:
        """A run that meets the conditions, walked by the interpreter up to its first failure."""
        model = self.model(*conditions)
        if model is None:
            return None
        try:
            return self._walk(model)
        except BeyondBound:
            model = self.model(self.queries.within_bound(), *conditions)
            try:
                if model is not None:
                    return self._walk(model)
            except BeyondBound:
                pass
            raise Undecided(IN_FLIGHT) from None

    def _walk(self, model: Model) -> Taken:
        def stop(transition: Transition) -> bool:
            return any(each.property in self.asked for each in transition.failures)

        return follow(self.system, events_of(self.encoding, model), stop)


def check(
    instance: Instance,
    question: Question,
    engine: str = "smt",
    budget: Budget | None = None,
    report: Callable[[int, int, int], None] | None = None,
) -> Verdict:
    """Ask z3 about every assignment of the free choices; the first violation ends it."""
    tally, deadline = Tally(), Deadline(budget or Budget())
    asked = frozenset(question.properties)
    trace, reason, found = None, "", None
    pending = Assignments(assignments(instance))
    try:
        while pending and found is None and not reason:
            choices = pending.take()
            try:
                decided = _decide(instance.system(choices), asked, deadline, tally)
                if decided is not None:
                    trace = _trace(question, *decided, made(choices))
                    found = decided[0]
            except Unresolved as choice:
                pending.fork(choices, choice)
                continue
            except (Undecided, Uncovered, TooLong) as why:
                reason = str(why)
                continue
            except Overfull:
                reason = IN_FLIGHT
                continue
            except Disagreement as error:
                return _broken(instance, question, engine, str(error))
            if report is not None:
                report(tally.formulas, len(pending), 0)
    except KeyboardInterrupt:
        verdict = _verdict(instance, question, engine, tally, None, "interrupted", None)
        raise Interrupted(verdict) from None
    return _verdict(instance, question, engine, tally, found, reason, trace)


def check_for_a_minute(
    instance: Instance,
    question: Question,
    engine: str,
    budget: Budget,
    report: Callable[[int, int, int], None] | None = None,
) -> Verdict:
    """The same, but without a budget of the user's for no longer than a minute."""
    limited = budget if budget.seconds else replace(budget, seconds=A_MINUTE)
    return check(instance, question, engine, limited, report)


Decided = tuple[Finding, System, Taken]


def _decide(
    system: System, asked: frozenset[str], deadline: Deadline, tally: Tally
) -> Decided | None:
    """The first failure under one assignment; None if there is none."""
    at_first = system.initial_transition()
    for failure in at_first.failures:
        if failure.property in asked:
            return Finding(failure, at_first.state, None), system, []
    formula = Formula(system, asked, deadline, tally)
    complete = _complete_run(formula, tally)
    for point, term in formula.queries.errors().items():
        if formula.run(term, formula.queries.goes_on) is not None:
            assert point.node.error is not None
            raise point.node.error
    for find in (_wrong_step, _hang, _wrong_end, _early_return, _race):
        found = find(formula)
        if found is not None:
            finding, taken = found
            return finding, system, taken
    if not complete and ("deadlock-free" in asked or not _hang(formula, asked_for=False)):
        raise Disagreement("the constraints have no complete run, and no run is wrong either")
    _note_reached(formula, tally)
    overfull = [each for each in formula.queries.meets_bound() if not formula.excluded(each)]
    if formula.model(any_of(overfull), formula.queries.goes_on) is not None:
        raise Undecided(IN_FLIGHT)
    return None


Found = tuple[Finding, Taken] | None


def _complete_run(formula: Formula, tally: Tally) -> bool:
    """Whether some run ends well as far as waits go; without one a proof would be empty (C14)."""
    queries = formula.queries
    conditions = (queries.maximal, queries.goes_on, queries.all_done)
    try:
        taken = formula.run(*conditions)
    except Undecided as why:
        if str(why) != IN_FLIGHT:
            raise
        return True
    if taken is None:
        return False
    system, state = formula.system, end_of(formula.system, taken)
    stopped = failure_of(taken, formula.asked) is not None
    if not stopped and not (system.all_done(state) and system.nothing_in_flight(state)):
        raise Disagreement("the run that should be complete is not")
    if not stopped:
        for number, cell in enumerate(system.cells):
            if system.value(state, number) != system.initial_value(number):
                tally.persists.add(cell.slot.region.name)
    return True


def _wrong_step(formula: Formula) -> Found:
    for name in ("happens-before", "checks"):
        if name in formula.asked:
            for term, cells in formula.queries.each_wrong(name):
                taken = None if formula.excluded(term, cells) else formula.run(term)
                if taken is not None:
                    return _failed(formula, taken, name)
    return None


def _failed(formula: Formula, taken: Taken, name: str) -> Found:
    finding = failure_of(taken, formula.asked)
    if finding is None:
        raise Disagreement(f"the run breaks no {name}")
    return finding, taken


def _early_return(formula: Formula) -> Found:
    if "quiescent" not in formula.asked:
        return None
    open_ways = [each for each in formula.queries.returns_early() if not formula.excluded(each)]
    taken = formula.run(formula.queries.goes_on, any_of(open_ways))
    return None if taken is None else _failed(formula, taken, "quiescent")


def _hang(formula: Formula, *, asked_for: bool = True) -> Found:
    if asked_for and "deadlock-free" not in formula.asked:
        return None
    queries = formula.queries
    taken = formula.run(queries.maximal, queries.goes_on, queries.not_all_done)
    if taken is None:
        return None
    early = failure_of(taken, formula.asked)
    if early is not None:
        return early, taken
    finding = hang_at_end(formula.system, end_of(formula.system, taken), formula.asked)
    if finding is None:
        raise Disagreement("the run that should hang can go on")
    return finding, taken


def _wrong_end(formula: Formula) -> Found:
    queries = formula.queries
    wrong = {"exactly-once": queries.miscounted, "quiescent": queries.not_clean}
    for name, condition in wrong.items():
        if name not in formula.asked:
            continue
        taken = formula.run(queries.maximal, queries.goes_on, queries.all_done, condition())
        if taken is None:
            continue
        finding = failure_of(taken, formula.asked) or finding_at_end(
            formula.system, end_of(formula.system, taken), name
        )
        if finding is None:
            raise Disagreement(f"the run breaks no {name}")
        return finding, taken
    return None


def _race(formula: Formula) -> Found:
    if "race-free" not in formula.asked:
        return None
    races = Races(formula.queries)
    goes_on = formula.queries.goes_on
    for cell, term, message in races.certain():
        taken = None if formula.excluded(term) else formula.run(goes_on, term)
        if taken is not None:
            return _raced(formula, taken, cell, message)
    for cell, term, message in races.between_puts():
        if formula.excluded(term) or formula.model(goes_on, term) is None:
            continue
        if all(formula.model(goes_on, here) is None for here in races.polls(cell)):
            taken = formula.run(goes_on, term)
            assert taken is not None
            return _raced(formula, taken, cell, message)
    return None


def _raced(formula: Formula, taken: Taken, cell: int, message: str) -> Found:
    finding = failure_of(taken, formula.asked) or race_at_end(
        formula.system, end_of(formula.system, taken), cell, message
    )
    if finding is None:
        raise Disagreement(f"nothing races: {message}")
    return finding, taken


def _note_reached(formula: Formula, tally: Tally) -> None:
    for name in formula.queries.names_reached():
        if name not in tally.reached:
            condition = formula.queries.reaches(name)
            if formula.run(condition) is not None:
                tally.reached.add(name)
    tally.reached |= set(formula.system.initial_transition().reached)


# The answer


def _trace(
    question: Question, finding: Finding, system: System, taken: Taken, choices: Choices
) -> Trace:
    parents: dict[State, tuple[State | None, Step | None, int]] = {}
    parents[system.initial_transition().state] = (None, None, 0)
    for depth, (state, transition) in enumerate(taken, 1):
        parents.setdefault(transition.state, (state, transition.step, depth))
    exploration = Exploration(system, parents)
    return build_trace(question, finding, exploration, choices, fewest=False)


def _broken(instance: Instance, question: Question, engine: str, why: str) -> Verdict:
    """The verdict where formula and interpreter do not agree: one of the two is wrong."""
    detail = f"the formula and the interpreter disagree: {why}"
    properties = tuple(PropertyVerdict(n, Answer.BROKEN, detail) for n in question.properties)
    return Verdict(question, engine, properties, 0, 0, 0, instance.protocol().assumptions())


def _verdict(
    instance: Instance,
    question: Question,
    engine: str,
    tally: Tally,
    found: Finding | None,
    reason: str,
    trace: Trace | None,
) -> Verdict:
    properties = []
    for name in question.properties:
        if found is not None and found.failure.property == name:
            properties.append(PropertyVerdict(name, Answer.VIOLATED, found.failure.message))
        elif found is not None or reason:
            properties.append(PropertyVerdict(name, Answer.UNDECIDED, reason or STOPPED))
        else:
            properties.append(PropertyVerdict(name, Answer.PROVED))
    for name in declared_reaches(instance.kind):
        if name not in tally.reached and not reason and found is None:
            detail = f"vacuous: no run reaches {name!r}"
            properties.append(PropertyVerdict("reached", Answer.VIOLATED, detail))
    routing = instance.bounds.routing
    parts = f"z3: {tally.by_parts} of {tally.queries} queries answered by the ranks concerned alone"
    notes = (parts,) if tally.by_parts else ()
    return Verdict(
        question,
        engine,
        tuple(properties),
        0,
        0,
        0,
        instance.protocol().assumptions(),
        tuple(sorted(tally.persists)),
        routing if isinstance(routing, str) else "as given",
        notes,
        trace,
        work=tally.work(),
    )
