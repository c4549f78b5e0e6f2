"""A question asked of the fast engine: all interleavings that matter, in compiled loops."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace

from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.search import Budget, Exploration, Meter
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.system import System
from syncproof.models.transitions import Features
from syncproof.models.verdict import Question, Verdict

FULL = "fast-full"
"""The engine without symmetry and reduction: its counts are those of `reference`."""


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
    searching = _Searching(is_full=engine == FULL)
    verdict = check_explicitly(instance, question, engine, budget, report, searching.search)
    return replace(verdict, notes=(*verdict.notes, *searching.notes))


class _Searching:
    """Searches of one question, and by which symmetries they left out states."""

    def __init__(self, is_full: bool) -> None:
        self._is_full = is_full
        self.notes: dict[str, None] = {}
        self._refuted: list[list[tuple[int, ...]]] = []

    def search(self, system: System, asked: frozenset[str], meter: Meter) -> Exploration:
        """Search one system, up to the symmetries that its tables have."""
        why_not = uncovered(system.features)
        if why_not:
            return Exploration(system, {system.initial(): (None, None, 0)}, stopped=why_not)
        from syncproof.checkers.fast.search import Search
        from syncproof.checkers.fast.symmetry import Asymmetric, guesses

        before = meter.states, meter.transitions, meter.depth
        for groups in [[]] if self._is_full else guesses(system):
            if groups in self._refuted:
                continue
            try:
                search = Search(system, asked, meter, groups, reduces=not self._is_full)
                found = search.run()
            except Asymmetric:
                meter.states, meter.transitions, meter.depth = before
                self._refuted.append(groups)
                continue
            for orbit in search.layout.orbits:
                self.notes[f"symmetry: {orbit.describe(system)}, checked on the tables"] = None
            return found
        raise AssertionError("the last guess is no symmetry at all")
