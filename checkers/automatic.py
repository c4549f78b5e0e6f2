"""The engine that nobody has to choose: a certificate if there is one, else persistent sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from syncproof.checkers.certificate.check import certify
from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.search import Budget
from syncproof.models.instance import Instance
from syncproof.models.verdict import Question, Verdict


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
    verdict = check_explicitly(instance, question, "reduced", budget, report)
    return dataclasses.replace(verdict, notes=(*verdict.notes, f"no certificate: {certified}"))
