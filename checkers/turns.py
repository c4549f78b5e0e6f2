"""Persistent sets and compiled loops, searching by turns.

Each turn is twice as long as the one before: which of the two is through first nobody can tell, and
so neither costs much more than five times what the better one needs.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from dataclasses import replace

from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.search import Budget
from syncproof.models.instance import Instance
from syncproof.models.verdict import Answer, Question, Verdict

FIRST_TURN_S = 5.0

Report = Callable[[int, int, int], None] | None


def by_turns(instance: Instance, question: Question, budget: Budget, report: Report) -> Verdict:
    """The verdict of the engine that is through first; the last one's if time is up.

    Without numba there are no compiled loops, and the other has one turn without end.
    """
    engines = ["reduced", "fast"] if importlib.util.find_spec("numba") else ["reduced"]
    end = time.monotonic() + (budget.seconds or math.inf)
    turn = FIRST_TURN_S
    while True:
        left = max(end - time.monotonic(), 0.001)
        seconds = min(turn, left) if len(engines) > 1 else left
        given = replace(budget, seconds=0.0 if math.isinf(seconds) else seconds)
        verdict = _asked(engines[0], instance, question, given, report)
        undecided = verdict.answer is Answer.UNDECIDED
        late = any(given.time_is_up in each.detail for each in verdict.properties)
        if undecided and late and seconds < left:
            engines.reverse()
            turn *= 2
        elif undecided and not late and engines[0] == "fast":
            engines.remove("fast")
        else:
            return naming(verdict, given, budget)


def _asked(
    engine: str, instance: Instance, question: Question, budget: Budget, report: Report
) -> Verdict:
    if engine == "reduced":
        return check_explicitly(instance, question, engine, budget, report)
    from syncproof.checkers.fast.check import check as check_fast

    return check_fast(instance, question, engine, budget, report)


def naming(verdict: Verdict, given: Budget, asked: Budget) -> Verdict:
    """A verdict that names the seconds that the user asked for, not those given to an engine."""
    properties = [
        replace(each, detail=each.detail.replace(given.time_is_up, asked.time_is_up))
        for each in verdict.properties
    ]
    return replace(verdict, properties=tuple(properties))
