"""What the model finds is made to happen: counterexamples forced on bytes, and found by chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest

from syncproof.checkers.emulator.forced import force
from syncproof.checkers.emulator.run import Options, run
from syncproof.checkers.emulator.schedule import ADVERSARIES
from syncproof.checkers.explicit.check import check, question_of
from syncproof.models.instance import Instance
from syncproof.models.transitions import PROPERTIES
from syncproof.models.verdict import Trace
from tests import test_barriers, test_data_as_flag, test_layout_protocols
from tests.random_protocols import instance_of, plan_of

CRAFTED = {"reserved_sentinel", "distinct_leads", "checksum"}
"""Settings by which it is the data that hurts: the choices, or the leads of an additive sum."""
QUICK = {
    "sp: one window",
    "sp: a token like the sentinel",
    "sp: 128 B atoms, lead",
    "sp: no counts, one way",
    "sw: without the quiet",
    "sw: one window",
    "tff: constant flag, never reset",
    "tff: 128 B atoms, a flag in each block",
    "dc: zeroed window and checksum",
    "dc: the checksum's arrival alone",
    "dc: one window",
    "bsp: without the first SyncAll",
    "bsp: without the second SyncAll",
    "cumsum: without the wait for the offset signal",
    "barrier: reset",
    "barrier: equal",
}
"""Rows whose counterexample is found within a second; the others are for --long."""
MOST_RUNS = 1_000
NAMES = list(ADVERSARIES)


@dataclass(frozen=True)
class Case:
    """A violated row of a table of verdicts; ``asked`` are the properties that it asks for."""

    name: str
    made: Instance
    violated: str
    asked: tuple[str, ...] = PROPERTIES

    @property
    def depends_on_data(self) -> bool:
        return bool(CRAFTED & set(self.made.settings))

    @property
    def is_quick(self) -> bool:
        return self.name in QUICK


def _cases() -> Iterator[Case]:
    for row in test_data_as_flag.ROWS:
        if row.violated:
            name = f"{row.protocol}: {row.name}"
            yield Case(name, row.instance(), row.violated, row.asked)
    for other in test_layout_protocols.ROWS:
        if other.violated:
            yield Case(f"{other.kind.name}: {other.name}", other.instance(), other.violated)
    for scheme in test_barriers.HANG:
        made = test_barriers.instance(scheme, test_barriers.CM384, rounds=2 + (scheme != "count"))
        yield Case(f"barrier: {scheme}", made, "deadlock-free")


CASES = list(_cases())


def trace_of(case: Case) -> Trace:
    return _trace_of(CASES.index(case))


@cache
def _trace_of(number: int) -> Trace:
    case = CASES[number]
    question = question_of(case.made, "case", properties=case.asked)
    trace = check(case.made, question, "reduced").trace
    assert trace is not None and trace.property == case.violated
    return trace


def runs_until_found(case: Case, most: int) -> int:
    """How many random runs it takes until one breaks the property; 0 if none of them does."""
    for number in range(most):
        options = Options(
            seed=number,
            adversary=NAMES[number % len(NAMES)],
            conform=False,
            properties=(case.violated,),
            steps=20_000,
        )
        if case.violated in run(case.made, options).properties:
            return number + 1
    return 0


def parametrised(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(each, id=each.name, marks=[] if each.is_quick else pytest.mark.long)
            for each in cases
        ],
    )


@parametrised(CASES)
def test_counterexample_fails_on_real_bytes(case: Case) -> None:
    """The counterexample's schedule breaks the same property on the emulator."""
    forced = force(trace_of(case), case.made)
    assert forced.reproduced, forced
    if case.violated == "happens-before":
        assert "expected" in forced.wrong[0].difference
    if case.violated == "deadlock-free":
        assert forced.blocked


@parametrised([c for c in CASES if c.made.settings.get("windows") == 1])
def test_counterexample_does_no_harm_to_the_sound_protocol(case: Case) -> None:
    """With two windows the steps that break one window are not possible, or break nothing."""
    sound = replace(case.made, settings={})
    assert not force(trace_of(case), sound).reproduced


def test_random_runs_find_most_rows() -> None:
    """Of some rows that depend on the schedule alone, nine in ten are found by chance."""
    cases = [c for c in CASES if c.is_quick and not c.depends_on_data][::2]
    found = [runs_until_found(case, 60) for case in cases]
    assert sum(map(bool, found)) >= 0.9 * len(cases)


@pytest.mark.long
def test_random_runs_find_nine_in_ten_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """All rows, with how many runs each takes; those that need crafted data counted apart."""
    counts: list[tuple[Case, int]] = []
    for case in CASES:
        number = runs_until_found(case, MOST_RUNS)
        counts.append((case, number))
        kind = "data" if case.depends_on_data else "schedule"
        with capsys.disabled():
            print(f"\n{kind:9} {case.name}: {number or 'not found'}", end="", flush=True)
    alone = [number for case, number in counts if not case.depends_on_data]
    assert sum(map(bool, alone)) >= 0.9 * len(alone)


def test_counterexamples_of_random_protocols_fail_on_real_bytes() -> None:
    """Whatever the reduced engine finds in random systems happens on the emulator too."""
    forced: list[int] = []
    missed: list[int] = []
    for seed in range(60):
        made = instance_of(plan_of(seed))
        if made.profile.load_order == "none":
            continue
        trace = check(made, question_of(made, "random"), "reduced").trace
        if trace is not None:
            found = force(trace, made)
            if "goes wrong by itself" not in found.message:
                (forced if found.reproduced else missed).append(seed)
    assert len(forced) >= 30
    assert not missed
