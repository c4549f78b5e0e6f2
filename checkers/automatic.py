"""The engine that nobody has to choose: a certificate if there is one, else a search.

Where a search of many processes would take long, a few random runs come first: they find most of
what is wrong at once, and say nothing where they find nothing. Then persistent sets and compiled
loops search by turns, each turn twice as long as the one before: which of them is through first
nobody can tell, and so none takes much more than five times what the better one needs.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from syncproof.checkers.certificate.check import certify
from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.search import Budget
from syncproof.models.instance import Instance
from syncproof.models.verdict import Answer, Question, Verdict

FEW_PROCESSES = 8
"""With no more processes than this a search soon finds what is wrong."""
FIRST_TURN_S = 5.0

Report = Callable[[int, int, int], None] | None


def check(
    instance: Instance,
    question: Question,
    engine: str,
    budget: Budget,
    report: Report = None,
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
        verdict = _Search(instance, question, budget, report).by_turns()
    return replace(verdict, notes=(*verdict.notes, f"no certificate: {certified}"))


@dataclass
class _Search:
    """One question for two engines."""

    instance: Instance
    question: Question
    budget: Budget
    report: Report

    def by_turns(self) -> Verdict:
        """The verdict of the engine that is through first; the last one's if time is up."""
        engines = ["reduced", "fast"] if importlib.util.find_spec("numba") else ["reduced"]
        end = time.monotonic() + (self.budget.seconds or math.inf)
        turn = FIRST_TURN_S
        while True:
            left = max(end - time.monotonic(), 0.001)
            seconds = min(turn, left) if len(engines) > 1 else left
            budget = replace(self.budget, seconds=0.0 if math.isinf(seconds) else seconds)
            verdict = self._ask(engines[0], budget)
            undecided = verdict.answer is Answer.UNDECIDED
            late = any(budget.time_is_up in each.detail for each in verdict.properties)
            if undecided and late and seconds < left:
                engines.reverse()
                turn *= 2
            elif undecided and not late and engines[0] == "fast":
                engines.remove("fast")
            else:
                return self._of_all_turns(verdict, budget)

    def _ask(self, engine: str, budget: Budget) -> Verdict:
        if engine == "reduced":
            return check_explicitly(self.instance, self.question, engine, budget, self.report)
        from syncproof.checkers.fast.check import check as check_fast

        return check_fast(self.instance, self.question, engine, budget, self.report)

    def _of_all_turns(self, verdict: Verdict, last: Budget) -> Verdict:
        """A verdict that names the user's seconds, not those of the last turn."""
        properties = tuple(
            replace(each, detail=each.detail.replace(last.time_is_up, self.budget.time_is_up))
            for each in verdict.properties
        )
        return replace(verdict, properties=properties)
