"""``--engine auto`` where there is no certificate: two engines search by turns."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import pytest

from syncproof.checkers import automatic, turns
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.search import Budget
from syncproof.models.bounds import Bounds
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.verdict import Answer, Verdict
from syncproof.registry import built_ins

numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")


def answered(scheme: str, ranks: int, seconds: float = 0.0, **fabric: str) -> Verdict:
    """What ``auto`` says of a barrier that no certificate covers."""
    bounds = Bounds(ranks, 1, 2, routing="balanced")
    profile = replace(load_profile("cm384"), **fabric)
    made = Instance(built_ins()["barrier"], bounds, profile, {"scheme": scheme})
    asked = question_of(made, "barrier")
    return automatic.check(made, asked, "auto", Budget(seconds=seconds))


@numba
def test_what_one_engine_cannot_do_the_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters that persistent sets leave nothing to skip are searched by compiled loops."""
    monkeypatch.setattr(turns, "FIRST_TURN_S", 1.0)
    verdict = answered("count_at_least", 3)
    assert (verdict.engine, verdict.answer) == ("fast", Answer.PROVED)


@numba
def test_what_the_compiled_engine_does_not_cover_stays_with_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Loads out of order, which `fast` does not know, are searched by `reduced` to the end."""
    monkeypatch.setattr(turns, "FIRST_TURN_S", 0.001)
    verdict = answered("reset", 2, load_order="none")
    assert (verdict.engine, verdict.answer) == ("reduced", Answer.VIOLATED)


@pytest.mark.parametrize("has_numba", [True, False])
def test_time_that_is_up_is_the_users(monkeypatch: pytest.MonkeyPatch, has_numba: bool) -> None:
    """An undecided verdict names the seconds that were given, however they were divided."""
    find = importlib.util.find_spec

    def found(name: str, *rest: Any) -> Any:
        return find(name, *rest) if has_numba or name != "numba" else None

    monkeypatch.setattr(importlib.util, "find_spec", found)
    monkeypatch.setattr(turns, "FIRST_TURN_S", 0.1)
    verdict = answered("count_at_least", 4, seconds=0.5)
    reasons = {each.detail for each in verdict.properties}
    assert verdict.answer is Answer.UNDECIDED
    assert reasons == {"the search stopped at --budget-seconds 0.5: raise it"}
