"""All numbers of ranks at once; where two ranks do not settle it, what they say.

The argument is in argument.py and docs/any-ranks.md.
"""

from __future__ import annotations

from syncproof.checkers.any_ranks.argument import Report, argue, concluded, of_two
from syncproof.checkers.automatic import check as check_quickly
from syncproof.checkers.explicit.search import Budget
from syncproof.models.instance import Instance
from syncproof.models.verdict import Question, Verdict


def check(
    instance: Instance,
    question: Question,
    engine: str = "pairs",
    budget: Budget | None = None,
    report: Report = None,
) -> Verdict:
    """The verdict on all numbers of ranks from two on. Raises `UserError` as all engines do."""
    given = budget or Budget()
    verdict, premises = argue(instance, question, given, report)
    if verdict is None:
        verdict = check_quickly(instance, of_two(question), "auto", given, report)
    return concluded(verdict, premises, question, engine)
