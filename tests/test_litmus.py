"""The fabric against published litmus tests: what may happen does, and what may not never does.

Every verdict here comes from outside (tests/litmus/table.py names its source). Conditions are
judged on complete runs, those in which all threads end and all puts have landed.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache

import pytest

from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import Meter, explore, judge_races
from syncproof.models.fabric import Profile
from syncproof.models.profiles import load_profile
from tests.litmus.flips import KEYS, NOT_FLIPPED, PROGRAMS, KeyFlip, ProgramFlip
from tests.litmus.language import LARGEST, Behaviour, behaviour, protocol_of, system_of
from tests.litmus.table import B_ROWS, KEY_ROWS, MISSING, RACY, ROWS, S_ROWS, STATES, Row


@cache
def behaviour_of(memory: str, program: str, fabric: str) -> Behaviour:
    """All that a program can do, by the reference engine."""
    found = behaviour(protocol_of("Test", memory, program), load_profile(fabric))
    assert found is not None
    return found


def row_name(row: Row) -> str:
    return f"{row.id}, {row.reading}" if row.reading else row.id


def flip_name(flip: KeyFlip | ProgramFlip) -> str:
    return f"{flip[0]}: {flip.pair}"


@pytest.mark.parametrize("row", ROWS, ids=row_name)
def test_published_verdict_is_reproduced(row: Row) -> None:
    """A final condition is found if the source allows it, and exhaustively not if it forbids it."""
    found = behaviour_of(row.memory, row.program, row.fabric)
    assert found.allows(row.condition) == row.allowed, row.source


@pytest.mark.parametrize("row", ROWS, ids=row_name)
def test_reduced_search_has_the_same_outcomes(row: Row) -> None:
    """Persistent sets keep every complete run's result and whether a hang exists."""
    kind, profile = protocol_of("Test", row.memory, row.program), load_profile(row.fabric)
    reduced = behaviour(kind, profile, reduced=True)
    if reduced is None:
        features = system_of(kind, profile).features
        assert features.caches or features.views or features.twins
        return
    full = behaviour_of(row.memory, row.program, row.fabric)
    assert (reduced.outcomes, reduced.can_hang) == (full.outcomes, full.can_hang)
    assert reduced.states <= full.states


@pytest.mark.parametrize(("name", "states"), STATES.items())
def test_state_counts_are_those_of_the_published_explorer(name: str, states: int) -> None:
    """Where steps are cut alike, two explorers written apart visit the same number of states."""
    row = next(each for each in ROWS if each.id == name)
    assert behaviour_of(row.memory, row.program, row.fabric).states == states


@pytest.mark.parametrize(("name", "racy"), RACY.items())
def test_undefined_programs_have_races(name: str, racy: bool) -> None:
    """race-free refuses exactly the programs that OpenSHMEM calls undefined."""
    row = next(each for each in S_ROWS if each.id == name)
    system = system_of(protocol_of("Test", row.memory, row.program), load_profile(row.fabric))
    found = explore(system, None, frozenset({"race-free"}), Meter(LARGEST))
    assert bool(judge_races(found)) == racy


def test_every_listed_test_is_a_row_or_listed_as_missing() -> None:
    """No published test is dropped without a word; what cannot be said names what it would need."""
    families = {"R": 32, "S": 30, "IB": 20, "G": 16, "A": 12, "U": 8, "C": 12, "B": 4}
    listed = {f"{name}{n:02}" for name, last in families.items() for n in range(2, last + 1, 2)}
    listed |= {f"{name}{n}" for name in ("W", "AMO") for n in range(1, 5)}
    missing = {each.id for each in MISSING}
    rows = {row.id for row in ROWS}
    assert missing == {"IB12", "S28", "AMO2", "U04", "W1"}
    assert rows - {row.id for row in KEY_ROWS} - {"fence-get"} == listed - missing
    assert all(each.needs for each in MISSING)


def test_disagreements_have_both_readings() -> None:
    """Where sources disagree each reading is a row, and the fabric makes the difference."""
    disputed = {row.id for row in ROWS if row.reading} - {"IB04", "IB20"}
    assert disputed == {"R20", "R22", "R24", "R26", "S20", "A02", "U02"}
    for name in disputed:
        verdicts = {row.allowed for row in ROWS if row.id == name}
        assert verdicts == {True, False}, name


@pytest.mark.parametrize("flip", KEYS, ids=flip_name)
def test_key_makes_the_difference(flip: KeyFlip) -> None:
    """One program, two values of one fabric key: one forbids the outcome, the other allows it."""
    strong, weak = load_profile(flip.forbids), load_profile(flip.allows)
    differ = {f.name for f in fields(Profile) if getattr(strong, f.name) != getattr(weak, f.name)}
    assert differ == {"name", flip.key}
    assert not behaviour_of(flip.memory, flip.program, flip.forbids).allows(flip.condition)
    assert behaviour_of(flip.memory, flip.program, flip.allows).allows(flip.condition)


@pytest.mark.parametrize("flip", PROGRAMS, ids=flip_name)
def test_way_of_writing_makes_the_difference(flip: ProgramFlip) -> None:
    """One fabric, two programs: the operation that a kernel is said to need is needed."""
    assert not behaviour_of(*flip.forbids, flip.fabric).allows(flip.condition)
    assert behaviour_of(*flip.allows, flip.fabric).allows(flip.condition)


def test_every_fabric_key_is_discriminated() -> None:
    """A key that no test can see would be an empty promise."""
    assert {flip.key for flip in KEYS} | NOT_FLIPPED.keys() == {f.name for f in fields(Profile)}


def test_each_hop_class_has_its_own_keys() -> None:
    """A block is torn towards a rank two hops away and whole one hop away, if a profile says so."""
    hops = {"two_hops": {"store_atomicity": 64}}
    profile = load_profile("cm384").changed({"ranks_per_switch": 2, "hops": hops})
    for reader, torn in ((1, False), (2, True)):
        program = f"T0@0: put x=1,f=1 | T1@{reader}: wait f=1; ld r=x"
        found = behaviour(protocol_of("Test", f"x:64+f:64@{reader}", program), profile)
        assert found is not None
        assert found.allows("T1.r=0") == torn


def test_fence_gives_no_more_than_each_hop_does() -> None:
    """A fence over all targets orders nothing towards a hop class whose fence is none."""
    base = load_profile("nvlink").changed({"ranks_per_switch": 2})
    weak = base.changed({"hops": {"two_hops": {"fence": "none"}}})
    program = "T0@0: put x=1; fence; put f=1 | T1@2: wait f=1; ld r=x"
    for profile, stale in ((base, False), (weak, True)):
        found = behaviour(protocol_of("Test", "x@2 f@2", program), profile)
        assert found is not None
        assert found.allows("T1.r=0") == stale


def test_no_complete_run_is_needed_to_see_a_hang() -> None:
    """Programs that come to a standstill have a state without a way out, and it is reported."""
    for row in B_ROWS:
        found = behaviour_of(row.memory, row.program, row.fabric)
        assert found.can_hang == (row.id in ("B04", "W2", "W3", "W4"))


def test_reduction_reduces() -> None:
    """The reduced engine is not the reference engine under another name."""
    row = next(each for each in ROWS if each.id == "R32")
    kind, profile = protocol_of("Test", row.memory, row.program), load_profile(row.fabric)
    assert PersistentSets.covers(system_of(kind, profile))
    reduced = behaviour(kind, profile, reduced=True)
    assert reduced is not None
    assert reduced.states < behaviour_of(row.memory, row.program, row.fabric).states
