"""Engines that need programs from outside: what is here is looked up, the question passed on."""

from __future__ import annotations

import os
from collections.abc import Callable

from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.tla.check import check as check_by_tla
from syncproof.checkers.tla.tools import Tools, found_tools
from syncproof.models.instance import Instance
from syncproof.models.verdict import Question, Verdict


def tools_here() -> Tools:
    """Java, TLC and Apalache as this program's environment has them."""
    return found_tools(os.environ)


def check(
    instance: Instance,
    question: Question,
    engine: str,
    budget: Budget,
    report: Callable[[int, int, int], None] | None = None,
) -> Verdict:
    """The verdict of TLC or Apalache on the protocol's TLA+ module."""
    return check_by_tla(instance, question, engine, budget, tools_here())
