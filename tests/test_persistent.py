"""Persistent sets: checked by brute force, with faults planted, and against published counts."""

from __future__ import annotations

import pytest

from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import Budget, Meter, explore
from syncproof.models.fabric import Profile
from syncproof.models.system import System
from tests.crafted_plans import CRAFTED
from tests.random_protocols import plan_of, systems_of
from tests.reduction_faults import HARMLESS, PLANTS, Plant
from tests.reduction_oracles import ASKED, BruteForce, difference
from tests.small import OneRound, instance

GHOSTS = (
    "put", "ghost_update", "ghost_check", "ghost_update",
    "wait_until", "wait_until", "sync", "quiet",
)  # fmt: skip
"""Words for plans with many ghosts."""

GRAPH: dict[str, int] = {
    "values_decide_for_plain_reads": 31,
    "statements_do_not_count": 364,
    "targets_do_not_count": 36,
    "a_blocked_agent_has_no_steps": 3,
    "stores_at_once_are_free": 52,
    "reads_are_free": 3,
    "updates_are_free": 35,
    "puts_never_meet": 3,
    "writes_do_not_disturb_reads": 3,
    "waits_do_not_look": 9,
    "every_quiet_is_blocked": 372,
    "copies_do_not_read": 31,
    "puts_in_flight_stay": 3,
    "returns_are_not_seen": 419,
    "syncs_never_pass": 3,
    "memory_stands_still": 9,
    "other_atoms_stand_still": 125,
    "outlooks_are_not_extended": 9,
}
"""Seeds of plans on which the two searches differ when the fault is planted."""

BRUTE: dict[str, int] = {
    "values_decide_for_plain_reads": 2,
    "statements_do_not_count": 108,
    "targets_do_not_count": 12,
    "a_blocked_agent_has_no_steps": 3,
    "stores_at_once_are_free": 2,
    "reads_are_free": 2,
    "updates_are_free": 2,
    "puts_never_meet": 2,
    "writes_do_not_disturb_reads": 2,
    "waits_do_not_look": 9,
    "every_quiet_is_blocked": 216,
    "copies_do_not_read": 31,
    "a_held_copy_does_not_read": 167,
    "puts_in_flight_stay": 2,
    "returns_are_not_seen": 49,
    "a_quiet_long_ago_suffices": 434,
    "syncs_never_pass": 3,
    "memory_stands_still": 9,
    "other_atoms_stand_still": 15,
    "outlooks_are_not_extended": 9,
    "gets_are_behind": 1676,
    "order_is_taken_for_granted": 160,
    "any_wait_stands_still": 1828,
}
"""Seeds of plans on which brute force finds a set that is not persistent."""


def system_of(seed: int, words: tuple[str, ...] = ()) -> System:
    """The first system of a seed's plan."""
    return next(systems_of(plan_of(seed, words=words) if words else plan_of(seed)))


def witnesses(plant: Plant) -> list[tuple[str, System]]:
    """The oracles that notice a fault, each with a system on which it does."""
    name = plant.__name__
    if name in CRAFTED:
        return [(oracle, next(systems_of(CRAFTED[name]))) for oracle in ("graph", "brute")]
    if "ghost" in name:
        return [(oracle, system_of(37, GHOSTS)) for oracle in ("graph", "brute")]
    seeds = {"graph": GRAPH.get(name), "brute": BRUTE.get(name)}
    return [(oracle, system_of(seed)) for oracle, seed in seeds.items() if seed is not None]


def complaint(oracle: str, system: System) -> str | None:
    """What an oracle has to say against the reduction on one system."""
    return difference(system) if oracle == "graph" else BruteForce(system, 200).broken()


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_planted_fault_is_noticed(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each condition of the reduction is needed: dropped, an oracle complains where it did not."""
    found = witnesses(plant)
    assert found
    for oracle, system in found:
        assert complaint(oracle, system) == ""
        with monkeypatch.context() as patch:
            plant(patch)
            assert complaint(oracle, system)


@pytest.mark.parametrize("plant", HARMLESS, ids=lambda plant: plant.__name__)
def test_harmless_change_is_harmless(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition that is argued to be redundant can be dropped without a complaint."""
    plant(monkeypatch)
    for seed in range(40):
        system = system_of(seed, ("put", "put_nbi", "get", "get", "load", "wait_until"))
        if PersistentSets.covers(system):
            assert not complaint("graph", system)
            assert complaint("brute", system) == ""


def test_sets_are_persistent_by_brute_force() -> None:
    """In no run of the other steps is a member of a chosen set disabled or in conflict."""
    checked = 0
    for seed in range(2_000, 2_120):
        for system in systems_of(plan_of(seed)):
            if PersistentSets.covers(system):
                brute = BruteForce(system, 200)
                assert brute.broken() == "", f"seed {seed}"
                checked += brute.checked
    assert checked > 300


def test_outlook_gives_up_where_updates_follow_updates() -> None:
    """Two processes of four operations whose atomics may follow each other in very many ways: the
    search does not try them all. (It seemed never to end.)"""
    words = ("fetch_add", "swap", "jump", "compare_swap", "wait_update", "put", "load", "jump",
             "fetch_add", "wait_until", "check", "reach")  # fmt: skip
    assert difference(system_of(23, words)) == ""


@pytest.mark.long
def test_sets_are_persistent_by_brute_force_at_length() -> None:
    """As above, on 20,000 systems and up to 600 states outside each set."""
    for seed in range(10_000, 30_000):
        for system in systems_of(plan_of(seed)):
            if PersistentSets.covers(system):
                assert BruteForce(system).broken() == "", f"seed {seed}"


@pytest.mark.parametrize(
    ("ranks", "tokens", "states"), [(2, 1, 11), (3, 1, 31), (3, 2, 61), (8, 2, 561)]
)
def test_one_round_is_one_run(ranks: int, tokens: int, states: int) -> None:
    """One round of Sentinel Polling is, up to commuting steps, one run: the prototype's counts."""
    system = instance(OneRound, Profile("cm384"), ranks=ranks, tokens=tokens).system({})
    choose = PersistentSets(system, ASKED).choose
    found = explore(system, choose, ASKED, Meter(Budget()), stop_at_first=False)
    assert (len(found.parents), found.transitions) == (states, states - 1)


@pytest.mark.parametrize(("ranks", "states", "transitions"), [(2, 36, None), (3, 10_252, 44_898)])
def test_one_round_unreduced(ranks: int, states: int, transitions: int | None) -> None:
    """The full graph has the size that SPIN gives for a model written by hand."""
    system = instance(OneRound, Profile("cm384"), ranks=ranks).system({})
    found = explore(system, None, ASKED, Meter(Budget()), stop_at_first=False)
    assert len(found.parents) == states
    assert transitions is None or found.transitions == transitions
