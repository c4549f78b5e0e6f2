"""A question asked of the fast engine: every interleaving, in compiled loops."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.search import Budget, Exploration, Meter
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.system import System
from syncproof.models.transitions import Features
from syncproof.models.verdict import Question, Verdict


def uncovered(features: Features) -> str:
    """What of a system's features the fast engine does not know, or nothing."""
    for there, what in (
        (features.caches, "write-back caches"),
        (features.views, "loads served out of order (load_order: none)"),
        (features.twins, "a quiet for its own caller only (quiet: target)"),
    ):
        if there:
            return f"{what}: not in the fast engine, ask --engine reduced"
    return ""


def check(
    instance: Instance,
    question: Question,
    engine: str,
    budget: Budget,
    report: Callable[[int, int, int], None] | None = None,
) -> Verdict:
    """The verdict of a search of all interleavings, by as many threads as the budget says.

    Raises `UserError` without numba, or where `check` of the explicit engines would.
    """
    if importlib.util.find_spec("numba") is None:
        raise UserError(
            "the fast engine needs numba, which is not installed",
            where="--engine fast",
            expected="pip install numba, or --engine reduced",
        )
    with _saying_that_it_compiles():
        return check_explicitly(instance, question, engine, budget, report, _search)


def _search(system: System, asked: frozenset[str], meter: Meter) -> Exploration:
    why_not = uncovered(system.features)
    if why_not:
        return Exploration(system, {system.initial(): (None, None, 0)}, stopped=why_not)
    from syncproof.checkers.fast.search import Search

    return Search(system, asked, meter).run()


@contextmanager
def _saying_that_it_compiles() -> Iterator[None]:
    """Say on standard error when numba begins to compile: once, as it keeps what it compiled."""
    from numba.core import event

    class Notice(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said:
                print("compiling the fast engine: takes seconds, and is kept", file=sys.stderr)
            self.said = True

        def on_end(self, event: Any) -> None:
            """Nothing to say."""

    with event.install_listener("numba:compile", Notice()):
        yield
