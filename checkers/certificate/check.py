"""Certify every assignment of the free choices, or say what stands in the way."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from syncproof.checkers.certificate.clocks import GAPS, SOUND, first_gap
from syncproof.checkers.certificate.closure import MOST_STEPS, Closure
from syncproof.checkers.certificate.execution import Beyond, Execution, run
from syncproof.checkers.certificate.roles import NotCertified
from syncproof.checkers.explicit.check import assignments
from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.models.core import Unresolved
from syncproof.models.instance import Instance
from syncproof.models.reaches import declared_reaches
from syncproof.models.taskflow.collector import collector_paused
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Verdict


@dataclass(frozen=True)
class Certificate:
    """One assignment's run, shown to be the only one."""

    steps: int
    reached: set[str]
    persisting: set[str]


def check(
    instance: Instance,
    question: Question,
    engine: str,
    budget: Budget,
    report: Callable[[int, int, int], None] | None = None,
) -> Verdict:
    """The certificate as an engine of its own: it proves, or it decides nothing."""
    certified = certify(instance, question, budget, report)
    if isinstance(certified, Verdict):
        return certified
    reason = f"no certificate: {certified}"
    return Verdict(
        question,
        engine,
        tuple(PropertyVerdict(name, Answer.UNDECIDED, reason) for name in question.properties),
        0,
        0,
        0,
        instance.protocol().assumptions(),
    )


def certify(
    instance: Instance,
    question: Question,
    budget: Budget | None = None,
    report: Callable[[int, int, int], None] | None = None,
    at_first_choice: Callable[[], Verdict | None] = lambda: None,
) -> Verdict | str:
    """The proof that under each assignment there is one run only, and it is right.

    A text when there is none: what is not ordered. That does not make the protocol wrong; a
    general engine decides. ``at_first_choice`` may give a verdict that saves going through all
    assignments.
    """
    obstacle = outside(instance)
    if obstacle:
        return obstacle
    states = transitions = depth = assigned = 0
    has_chosen = False
    reached: set[str] = set()
    persists: set[str] = set()
    meter = Meter(budget or Budget(), report)
    pending: list[dict[Hashable, Hashable]] = [dict(each) for each in assignments(instance)]
    while pending:
        choices = pending.pop(0)
        try:
            found = certificate(instance, choices, meter)
        except Unresolved as choice:
            verdict = None if has_chosen else at_first_choice()
            if verdict is not None:
                return verdict
            has_chosen = True
            pending[:0] = [{**choices, choice.name: value} for value in choice.values]
            continue
        except NotCertified as reason:
            return str(reason)
        assigned += 1
        states += found.steps + 1
        transitions += found.steps
        depth = max(depth, found.steps)
        reached |= found.reached
        persists |= found.persisting
    missing = [name for name in declared_reaches(instance.kind) if name not in reached]
    if missing:
        return f"no run reaches {missing[0]!r}"
    routing = instance.bounds.routing
    notes = [f"{assigned} assignments of the free choices"] if assigned > 1 else []
    return Verdict(
        question,
        "certificate",
        tuple(PropertyVerdict(name, Answer.PROVED) for name in question.properties),
        states,
        transitions,
        depth,
        instance.protocol().assumptions(),
        tuple(sorted(persists)),
        routing if isinstance(routing, str) else "as given",
        tuple(notes),
    )


def certificate(
    instance: Instance, choices: Mapping[Hashable, Hashable], meter: Meter
) -> Certificate:
    """The certificate under one assignment; `NotCertified` says why there is none.

    Clocks are quick and know little, the closure knows more and is for runs that are not long.
    """
    try:
        with collector_paused():
            made = run(lambda: instance.parts(choices), meter)
        gap = first_gap(made.record)
        if gap[0] == SOUND:
            return Certificate(made.record.steps, made.roles.reached, made.persisting())
        reason = _said(made, gap)
        if made.record.steps > MOST_STEPS:
            raise NotCertified(reason)
    except Beyond:
        pass
    closure = Closure(instance.parts(choices), meter)
    closure.run()
    return Certificate(closure.steps, closure.roles.reached, closure.persisting())


def _said(made: Execution, gap: tuple[int, int, int, int]) -> str:
    kind, process, place, other = gap
    names = made.roles.names
    where = str(made.places.slot_at(place)) if place >= 0 else "memory"
    return GAPS[kind].format(process=names[process], place=where, other=names[other])


def outside(instance: Instance) -> str:
    """What of the instance the certificate does not cover at all."""
    if instance.mutation is not None:
        return "mutants are left to the explicit engines"
    if instance.profile.load_order == "none":
        return "loads may be served early"
    if instance.profile.quiet == "target":
        return "quiet completes towards the target only"
    return ""
