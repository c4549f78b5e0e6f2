"""The engine that nobody has to choose: a certificate if there is one, else a search.

Where a search of many processes would take long, a few random runs come first: they find most of
what is wrong at once, and say nothing where they find nothing. Then what two ranks prove for all
numbers of them is asked, if there are more: it is soon told, or soon told that it does not apply.
Of very many ranks it is asked before all else, as their one run is longer than all runs of two.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache

from syncproof.checkers.certificate.check import certify
from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.turns import Report, by_turns, naming
from syncproof.models.instance import Instance
from syncproof.models.verdict import Question, Verdict

FEW_PROCESSES = 6
"""With no more processes than this a search soon finds what is wrong."""
MANY_RANKS = 64
"""With more ranks than this a certificate takes longer than what two ranks prove for all."""


def check(
    instance: Instance,
    question: Question,
    engine: str,
    budget: Budget,
    report: Report = None,
) -> Verdict:
    """The verdict of whichever engine decides; why there is no certificate is a note.

    With choices to make there may be more assignments than anybody can certify, and the random
    runs, and what two ranks prove, come first.
    """
    is_large = len(instance.processes(instance.protocol())) > FEW_PROCESSES
    started = time.monotonic()

    def left() -> Budget:
        """What those before have left of the time."""
        spent = time.monotonic() - started
        return replace(budget, seconds=budget.seconds and max(budget.seconds - spent, 0.001))

    @cache
    def look() -> Verdict | None:
        from syncproof.checkers.emulator.random_runs import look_for_violation

        return look_for_violation(instance, question, left()) if is_large else None

    @cache
    def by_pairs() -> Verdict | None:
        from syncproof.checkers.any_ranks.argument import proved_for_many

        return proved_for_many(instance, question, left(), report) if is_large else None

    if instance.bounds.ranks > MANY_RANKS and (proved := by_pairs()):
        return proved
    given = left()
    certified = certify(
        instance, question, given, report, at_first_choice=lambda: look() or by_pairs()
    )
    if isinstance(certified, Verdict):
        return certified
    reason = certified.replace(given.time_is_up, budget.time_is_up)
    verdict = look() or by_pairs()
    if verdict is None:
        given = left()
        verdict = naming(by_turns(instance, question, given, report), given, budget)
    return replace(verdict, notes=(*verdict.notes, f"no certificate: {reason}"))
