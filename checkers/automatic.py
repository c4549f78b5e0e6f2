"""The engine that nobody has to choose: a certificate if there is one, else a search.

Where a search of many processes would take long, a few random runs come first: they find most of
what is wrong at once, and say nothing where they find nothing.
"""

from __future__ import annotations

from dataclasses import replace

from syncproof.checkers.certificate.check import certify
from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.turns import Report, by_turns
from syncproof.models.instance import Instance
from syncproof.models.verdict import Question, Verdict

FEW_PROCESSES = 6
"""With no more processes than this a search soon finds what is wrong."""


def check(
    instance: Instance,
    question: Question,
    engine: str,
    budget: Budget,
    report: Report = None,
) -> Verdict:
    """The verdict of whichever engine decides; why there is no certificate is a note.

    With choices to make there may be more assignments than anybody can certify, and the random
    runs come first.
    """
    is_large = len(instance.processes(instance.protocol())) > FEW_PROCESSES
    looked: list[Verdict | None] = []

    def look() -> Verdict | None:
        from syncproof.checkers.emulator.random_runs import look_for_violation

        if is_large and not looked:
            looked.append(look_for_violation(instance, question, budget))
        return looked[0] if looked else None

    certified = certify(instance, question, budget, report, at_first_choice=look)
    if isinstance(certified, Verdict):
        return certified
    verdict = look() or by_turns(instance, question, budget, report)
    return replace(verdict, notes=(*verdict.notes, f"no certificate: {certified}"))
