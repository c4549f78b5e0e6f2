"""Certify every assignment of the free choices, or say what stands in the way."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from syncproof.checkers.certificate.run import NotCertified, SingleRun
from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.models.core import Unresolved
from syncproof.models.instance import Instance
from syncproof.models.reaches import declared_reaches
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Verdict


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
) -> Verdict | str:
    """The proof that under each assignment there is one run only, and it is right.

    A text when there is none: what is not ordered. That does not make the protocol wrong; a
    general engine decides.
    """
    obstacle = _outside(instance)
    if obstacle:
        return obstacle
    states = transitions = depth = assigned = 0
    reached: set[str] = set()
    persists: set[str] = set()
    pending: list[dict[Hashable, Hashable]] = [{}]
    while pending:
        choices = pending.pop(0)
        try:
            run = SingleRun(instance.parts(choices), Meter(budget or Budget(), report))
            run.run()
        except Unresolved as choice:
            pending[:0] = [{**choices, choice.name: value} for value in choice.values]
            continue
        except NotCertified as reason:
            return str(reason)
        assigned += 1
        states += run.steps + 1
        transitions += run.steps
        depth = max(depth, run.steps)
        reached |= run.reached
        persists |= run.persisting()
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


def _outside(instance: Instance) -> str:
    """What of the instance the certificate does not cover at all."""
    if instance.mutation is not None:
        return "mutants are left to the explicit engines"
    if instance.profile.load_order == "none":
        return "loads may be served early"
    if instance.initial_choices():
        return "memory starts with any value"
    return ""
