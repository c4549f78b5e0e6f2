"""A question asked of an explicit engine: all assignments searched, one verdict."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from syncproof.checkers.explicit.counterexample import build_trace
from syncproof.checkers.explicit.loops import has_loop
from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import (
    Budget,
    Choose,
    Exploration,
    Finding,
    Meter,
    explore,
    hung_states,
    judge_races,
)
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.instance import Choices, Instance
from syncproof.models.reaches import declared_reaches
from syncproof.models.system import System
from syncproof.models.transitions import PROPERTIES, Failure
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Trace, Verdict

ENGINES = ("reference", "reduced")


Search = Callable[[System, frozenset[str], Meter], Exploration]
"""A search of one system that judges all that is asked."""


class Interrupted(Exception):
    """The search was interrupted; ``verdict`` says what was covered."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__("interrupted")
        self.verdict = verdict


@dataclass
class Coverage:
    """What the searches of all assignments found together."""

    meter: Meter
    search: Search | None = None
    findings: list[tuple[Finding, Exploration, Choices]] = field(default_factory=list)
    assignments: int = 0
    left: int = 0
    stopped: str = ""
    reached: set[str] = field(default_factory=set)
    persists: set[str] = field(default_factory=set)
    complete: bool = True
    loops: bool = False


def check(
    instance: Instance,
    question: Question,
    engine: str = "reduced",
    budget: Budget | None = None,
    report: Callable[[int, int, int], None] | None = None,
    search: Search | None = None,
) -> Verdict:
    """Search every assignment of the free choices and give the verdict with its trace.

    ``search`` is another engine's own search of one system, which also judges hangs and races.
    Raises `UserError` for what the user can mend and `Interrupted` on Ctrl-C.
    """
    if search is None and engine not in ENGINES:
        raise UserError(f"no engine {engine!r}", where="--engine", expected=", ".join(ENGINES))
    asked = frozenset(question.properties)
    coverage = Coverage(Meter(budget or Budget(), report), search)
    try:
        _search_all(instance, asked, engine, coverage)
    except KeyboardInterrupt:
        coverage.stopped = "interrupted"
        raise Interrupted(_verdict(instance, question, engine, coverage, None)) from None
    trace = None
    if coverage.findings:
        finding, exploration, choices = min(coverage.findings, key=lambda each: _length(each))
        trace = build_trace(question, finding, exploration, choices, fewest=engine == "reference")
    return _verdict(instance, question, engine, coverage, trace)


def _length(found: tuple[Finding, Exploration, Choices]) -> tuple[int, list[object]]:
    finding, exploration, _ = found
    steps: list[object] = list(exploration.path(finding.state))
    return len(steps) + (finding.last is not None), steps


def assignments(instance: Instance) -> Iterator[Choices]:
    """Every assignment of the choices of initial memory; those of roles are found on the way."""
    pending: list[dict[Hashable, Hashable]] = [{}]
    for name, values in instance.initial_choices().items():
        pending = [{**each, name: value} for each in pending for value in values]
    yield from pending


def _search_all(instance: Instance, asked: frozenset[str], engine: str, coverage: Coverage) -> None:
    pending = list(assignments(instance))
    while pending:
        choices = pending.pop(0)
        coverage.left = len(pending) + 1
        try:
            exploration = _search_one(instance, choices, asked, engine, coverage)
        except Unresolved as choice:
            pending[:0] = [{**choices, choice.name: value} for value in choice.values]
            coverage.left = len(pending)
            coverage.stopped = coverage.meter.reached(len(pending))
            if coverage.stopped:
                return
            continue
        _note(coverage, exploration, choices, asked, engine)
        coverage.left = len(pending)
        coverage.assignments += 1
        if exploration.stopped not in ("", "depth"):
            coverage.stopped = exploration.stopped
            return
        if coverage.findings and engine != "reference":
            return


def _search_one(
    instance: Instance, choices: Choices, asked: frozenset[str], engine: str, coverage: Coverage
) -> Exploration:
    system = instance.system(choices)
    if coverage.search is not None:
        return _search_by(coverage.search, system, asked, coverage.meter)
    choose: Choose | None = None
    if engine == "reduced" and PersistentSets.covers(system):
        choose = PersistentSets(system, asked).choose
    deepest = min((_length(each)[0] - 1 for each in coverage.findings), default=0)
    before = (coverage.meter.states, coverage.meter.transitions)
    try:
        return explore(system, choose, asked, coverage.meter, deepest=deepest)
    except Unresolved:
        coverage.meter.states, coverage.meter.transitions = before
        raise


def _search_by(search: Search, system: System, asked: frozenset[str], meter: Meter) -> Exploration:
    before = (meter.states, meter.transitions)
    try:
        return search(system, asked, meter)
    except Unresolved:
        meter.states, meter.transitions = before
        raise


def _note(
    coverage: Coverage,
    found: Exploration,
    choices: Choices,
    asked: frozenset[str],
    engine: str,
) -> None:
    """Add what one search found; hangs and races can be judged only where it is complete.

    A reduced search that finds a hang has not seen all that the full one would: it decides
    nothing else (docs/soundness.md).
    """
    if found.stopped or (found.findings and not found.whole):
        coverage.complete = False
    elif not found.whole:
        hung = hung_states(found)
        if hung and "deadlock-free" in asked:
            message = "no run from here lets every process finish"
            found.findings.append(Finding(Failure("deadlock-free", message, -1), hung[0], None))
        if hung and engine == "reduced":
            coverage.complete = False
        elif "race-free" in asked:
            found.findings += judge_races(found)[:1]
    coverage.loops |= any(has_loop(each) for each in found.system.automata)
    coverage.findings += [(each, found, choices) for each in found.findings]
    coverage.reached |= found.reached
    for state in found.good:
        for number, cell in enumerate(found.system.cells):
            if found.system.value(state, number) != found.system.initial_value(number):
                coverage.persists.add(cell.slot.region.name)


def _verdict(
    instance: Instance,
    question: Question,
    engine: str,
    coverage: Coverage,
    trace: Trace | None,
) -> Verdict:
    protocol = instance.protocol()
    violated = {each.failure.property: each.failure for each, _, _ in coverage.findings}
    reason = _why_undecided(coverage)
    properties = []
    for name in question.properties:
        if name in violated:
            properties.append(PropertyVerdict(name, Answer.VIOLATED, violated[name].message))
        elif reason:
            properties.append(PropertyVerdict(name, Answer.UNDECIDED, reason))
        else:
            fair = name == "deadlock-free" and coverage.loops
            detail = "terminates under strong fairness: a role loops over loads" if fair else ""
            properties.append(PropertyVerdict(name, Answer.PROVED, detail))
    for name in declared_reaches(instance.kind):
        if name not in coverage.reached and not reason:
            detail = f"vacuous: no run reaches {name!r}"
            properties.append(PropertyVerdict("reached", Answer.VIOLATED, detail))
    return Verdict(
        question,
        engine,
        tuple(properties),
        coverage.meter.states,
        coverage.meter.transitions,
        coverage.meter.depth,
        protocol.assumptions(),
        tuple(sorted(coverage.persists)),
        _routing(instance),
        _notes(coverage),
        trace,
    )


def _why_undecided(coverage: Coverage) -> str:
    """Why a property without a finding is not proved, or nothing if it is."""
    if coverage.stopped == "in_flight":
        return "a put met the in-flight bound: raise it with --fabric NAME,in_flight=N"
    if coverage.stopped == "interrupted":
        return "interrupted"
    if coverage.stopped.startswith("--"):
        return f"the search stopped at {coverage.stopped}: raise it"
    if coverage.stopped:
        return coverage.stopped
    if coverage.findings and (coverage.left or not coverage.complete):
        return "the search stopped at the first failure"
    return "" if coverage.complete else "a hang that was not asked for hides the rest"


def _routing(instance: Instance) -> str:
    routing = instance.bounds.routing
    return routing if isinstance(routing, str) else "as given"


def _notes(coverage: Coverage) -> tuple[str, ...]:
    notes = [f"{coverage.assignments} assignments of the free choices"]
    if coverage.left:
        notes.append(f"at least {coverage.left} assignments were not searched")
    return tuple(notes) if coverage.assignments > 1 or coverage.left else ()


def question_of(
    instance: Instance,
    name: str,
    dropped: tuple[str, ...] = (),
    mutant: str = "",
    properties: tuple[str, ...] = PROPERTIES,
) -> Question:
    """The question that a verdict on ``instance`` answers."""
    bounds = instance.bounds
    return Question(
        name,
        {
            "ranks": bounds.ranks,
            "tokens": bounds.tokens,
            "rounds": bounds.rounds,
            "experts": bounds.experts_in_all,
            "topk": bounds.topk or bounds.experts_in_all,
            "routing": bounds.routing,
        },
        instance.profile.as_data(),
        instance.protocol().settings(),
        dropped,
        mutant,
        properties,
    )


__all__ = ["ENGINES", "Budget", "Interrupted", "System", "check", "question_of"]
