"""``--engine smt --rounds unbounded``: the quotient, and z3's word that it is an invariant."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.unbounded.channel import SCALED, NotCovered
from syncproof.checkers.unbounded.check import LEFT, answer
from syncproof.checkers.unbounded.invariant import Checked, check_invariant, differences, ranges
from syncproof.checkers.unbounded.readings import Reader
from syncproof.models.instance import Instance
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Verdict


def check(
    instance: Instance,
    question: Question,
    engine: str = "smt",
    budget: Budget | None = None,
    report: Callable[[int, int, int], None] | None = None,
) -> Verdict:
    """The verdict of the quotient, proved only if z3 also finds the invariant inductive.

    What is refuted is refuted by a bounded run and needs no invariant.
    """
    limits = budget or Budget()
    started = time.monotonic()
    verdict, graphs = answer(instance, question, engine, limits, report)
    if verdict.answer is not Answer.PROVED:
        return verdict

    if any(graph.system.channel.scaled for graph in graphs):
        return _undecided(verdict, f"{LEFT}{SCALED}")

    def is_over() -> bool:
        return bool(limits.seconds) and time.monotonic() - started >= limits.seconds

    states, queries, failed, shown = 0, 0, [], []
    try:
        for graph in graphs:
            reader = Reader(graph.system)
            checked: Checked = check_invariant(graph, reader, differences(graph, reader), is_over)
            states += checked.states
            queries += len(checked.queries)
            failed += checked.failed
            shown += ranges(graph, reader)
    except NotCovered as reason:
        return _undecided(verdict, f"{LEFT}{reason}")
    if failed:
        return _undecided(verdict, f"z3 does not find the invariant inductive: {failed[0]}")
    note = (
        f"invariant: {queries} queries to z3 over unbounded integers for {states} states: all "
        "tests come out alike, every step stays inside, none fails, some step is enabled: "
        "unsatisfiable to the contrary"
    )
    invariant = [f"invariant: {each}" for each in shown]
    return replace(verdict, notes=(*verdict.notes, note, *invariant))


def _undecided(verdict: Verdict, reason: str) -> Verdict:
    undecided = [
        PropertyVerdict(each.property, Answer.UNDECIDED, reason) for each in verdict.properties
    ]
    return replace(verdict, properties=tuple(undecided))
