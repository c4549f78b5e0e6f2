"""The engine that nobody has to choose: a certificate if there is one, else persistent sets.

Where a search of many processes would take long, a few random runs come first: they find most of
what is wrong at once, and say nothing where they find nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from syncproof.checkers.certificate.check import certify
from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.search import Budget
from syncproof.models.instance import Instance
from syncproof.models.verdict import Question, Verdict

FEW_PROCESSES = 8
"""With no more processes than this a search soon finds what is wrong."""


def check(
    instance: Instance,
    question: Question,
    engine: str,
    budget: Budget,
    report: Callable[[int, int, int], None] | None = None,
) -> Verdict:
    """The verdict of whichever engine decides; why there is no certificate is a note."""
    certified = certify(instance, question, budget, report)
    if isinstance(certified, Verdict):
        return certified
    verdict = None
    if len(instance.processes(instance.protocol())) > FEW_PROCESSES:
        from syncproof.checkers.emulator.random_runs import look_for_violation

        verdict = look_for_violation(instance, question, budget)
    if verdict is None:
        verdict = check_explicitly(instance, question, "reduced", budget, report)
    return dataclasses.replace(verdict, notes=(*verdict.notes, f"no certificate: {certified}"))
