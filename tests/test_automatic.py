"""``--engine auto`` where there is no certificate: two engines search by turns."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import pytest

from syncproof.checkers import automatic, turns
from syncproof.checkers.any_ranks.argument import proved_for_many
from syncproof.checkers.explicit.check import check as explicit
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.search import Budget
from syncproof.engines import unfinished
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol, role
from syncproof.models.verdict import Answer, Question, Verdict
from syncproof.protocols.sp import SentinelPolling
from syncproof.registry import built_ins

CM384 = load_profile("cm384")

numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")


def answered(scheme: str, ranks: int, seconds: float = 0.0, **fabric: str) -> Verdict:
    """What ``auto`` says of a barrier that no certificate covers."""
    bounds = Bounds(ranks, 1, 2, routing="balanced")
    profile = replace(CM384, **fabric)
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


# What two ranks prove for all numbers of them


def asked(
    kind: type[Protocol], bounds: Bounds, seconds: float = 0.0, **settings: bool | int | str
) -> Verdict:
    made = Instance(kind, bounds, CM384, settings)
    return automatic.check(made, question_of(made, kind.name), "auto", Budget(seconds=seconds))


def test_very_many_ranks_are_proved_from_two() -> None:
    """A thousand ranks are not run: all interleavings of two, and the premises, are the proof."""
    verdict = asked(built_ins()["sp"], Bounds(1000, 1, 2, routing="balanced"))
    assert (verdict.engine, verdict.answer) == ("pairs", Answer.PROVED)
    assert verdict.question.bounds["ranks"] == 1000
    assert sum(note.startswith("premise: ") for note in verdict.notes) == 6


def test_all_routings_of_more_ranks_are_proved_from_two() -> None:
    """The routings of four ranks and two rounds are 2 to the 24th; those of a pair are 16."""
    verdict = asked(built_ins()["tff"], Bounds(4, 1, 2, routing="all"))
    assert (verdict.engine, verdict.answer) == ("pairs", Answer.PROVED)
    few = asked(built_ins()["tff"], Bounds(2, 1, 2, routing="all"))
    assert few.engine != "pairs"


NOT_LIKE_TWO = {
    "a table": Bounds(4, 1, 1, routing=((tuple((0, 1, 1, 1) for _ in range(4))),)),
    "experts": Bounds(4, 1, 1, experts=8, routing="all"),
    "topk": Bounds(4, 1, 1, topk=2, routing="all"),
    "two ranks": Bounds(2, 1, 1, routing="all"),
}


@pytest.mark.parametrize("which", NOT_LIKE_TWO)
def test_routings_that_two_ranks_do_not_have_are_not_proved_from_two(which: str) -> None:
    """A table, more experts than ranks, or fewer of them for a token: not what a pair may have."""
    made = Instance(built_ins()["sp"], NOT_LIKE_TWO[which], CM384, {})
    assert proved_for_many(made, question_of(made, "sp"), Budget(), None) is None


class Mine(SentinelPolling):
    """A protocol that does not ship with the package."""

    name = "mine"


def test_protocols_of_others_are_not_proved_from_two() -> None:
    """Code of others might tell how many ranks there are; it is answered at its own size."""
    bounds = Bounds(3, 1, 1, routing="balanced")
    for kind, is_proved in ((SentinelPolling, True), (Mine, False)):
        made = Instance(kind, bounds, CM384, {})
        verdict = proved_for_many(made, question_of(made, "any"), Budget(), None)
        assert (verdict is not None) is is_proved


@pytest.mark.parametrize("name", ["bsp", "cumsum", "ubep", "barrier"])
def test_what_is_shared_by_all_ranks_is_not_proved_from_two(name: str) -> None:
    """Prefix sums, counters and barriers know how many ranks there are."""
    made = Instance(built_ins()[name], Bounds(4, 1, 2, routing="balanced"), CM384, {})
    assert proved_for_many(made, question_of(made, name), Budget(), None) is None


def test_what_two_ranks_break_is_not_said_of_more() -> None:
    """One window fails on two ranks, and what is said of five is shown on five."""
    bounds = Bounds(5, 1, 3, routing="all")
    made = Instance(built_ins()["sp"], bounds, CM384, {"windows": 1})
    assert proved_for_many(made, question_of(made, "sp"), Budget(), None) is None
    verdict = asked(built_ins()["sp"], bounds, windows=1)
    assert verdict.answer is Answer.VIOLATED and verdict.trace is not None
    assert len(verdict.trace.processes) == 10


# Time


def test_all_engines_together_have_the_time_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the certificate used is not given to the search once more."""
    now = [100.0]
    monkeypatch.setattr(automatic.time, "monotonic", lambda: now[0])
    given: list[float] = []

    def certify(_: Instance, __: Question, budget: Budget, *___: Any, **____: Any) -> str:
        now[0] += 3
        return f"the run met {budget.time_is_up}"

    def search(made: Instance, question: Question, budget: Budget, _: Any) -> Verdict:
        given.append(budget.seconds)
        return unfinished(made, question, "reduced", (0, 0), f"stopped at {budget.time_is_up}")

    monkeypatch.setattr(automatic, "certify", certify)
    monkeypatch.setattr(automatic, "by_turns", search)
    verdict = asked(built_ins()["sp"], Bounds(2, 1, 1), seconds=5.0)
    assert given == [2.0]
    assert {each.detail for each in verdict.properties} == {"stopped at --budget-seconds 5"}
    assert "no certificate: the run met --budget-seconds 5" in verdict.notes


class ManyChoices(Protocol):
    """A role that makes a hundred choices before its first step."""

    name = "many_choices"

    @role
    async def chooser(self, core: Core) -> None:
        for number in range(100):
            core.choose(number, (False, True))
        await core.quiet()


@pytest.mark.parametrize("engine", ["reference", "reduced"])
def test_time_runs_while_choices_are_made(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that has not taken its first step yet stops when the time is up."""
    made, systems = Instance(ManyChoices, Bounds(1, 1, 1), CM384, {}), list[object]()
    build = Instance.system
    monkeypatch.setattr(Instance, "system", lambda *a: systems.append(a) or build(*a))
    verdict = explicit(made, question_of(made, "many"), engine, Budget(seconds=1e-9))
    assert verdict.answer is Answer.UNDECIDED
    assert len(systems) == 1
