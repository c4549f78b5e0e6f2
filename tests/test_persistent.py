"""Chosen sets are persistent, by brute force, and faults planted in the reduction are noticed."""

from __future__ import annotations

import pytest

from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import Budget, Meter, explore
from tests.random_protocols import plan_of, systems_of
from tests.reduction_faults import PLANTS
from tests.reduction_oracles import ASKED, BruteForce, difference
from tests.small import OneRound, instance

SEEDS = range(120)
WITNESSES: dict[str, tuple[int, ...]] = {
    "a_blocked_agent_has_no_steps": (
        3,
        49,
    ),
    "a_held_copy_does_not_read": (
        167,
        260,
    ),
    "a_quiet_long_ago_suffices": (434,),
    "any_wait_stands_still": (1828,),
    "copies_do_not_read": (
        31,
        130,
        510,
    ),
    "every_quiet_is_blocked": (
        216,
        240,
        372,
    ),
    "gets_are_behind": (1676,),
    "memory_stands_still": (
        9,
        12,
        15,
    ),
    "order_is_taken_for_granted": (160,),
    "other_atoms_stand_still": (
        15,
        122,
        125,
    ),
    "outlooks_are_not_extended": (
        9,
        154,
    ),
    "puts_in_flight_stay": (
        2,
        3,
    ),
    "puts_never_meet": (
        2,
        3,
        9,
    ),
    "reads_are_free": (
        2,
        3,
        9,
    ),
    "returns_are_not_seen": (
        49,
        56,
        419,
    ),
    "statements_do_not_count": (
        108,
        147,
        364,
    ),
    "stores_at_once_are_free": (
        2,
        15,
        52,
    ),
    "syncs_never_pass": (
        3,
        216,
        1911,
    ),
    "targets_do_not_count": (
        12,
        36,
        52,
    ),
    "updates_are_free": (
        2,
        11,
        35,
    ),
    "values_decide_for_plain_reads": (
        2,
        3,
        31,
    ),
    "waits_do_not_look": (
        9,
        12,
        35,
    ),
    "writes_do_not_disturb_reads": (
        2,
        3,
        9,
    ),
}
"""For each planted fault some seeds whose systems show it."""


@pytest.mark.parametrize("seed", SEEDS)
def test_chosen_sets_are_persistent(seed: int) -> None:
    """Every run of the other steps commutes with and preserves the members of each chosen set."""
    for system in systems_of(plan_of(seed)):
        if PersistentSets.covers(system):
            assert BruteForce(system, 200).broken() == ""


def noticed(seed: int) -> bool:
    """Whether one of the two oracles objects to the reduction of the system of a seed."""
    system = next(systems_of(plan_of(seed)))
    return bool(difference(system)) or bool(BruteForce(system, 200).broken())


@pytest.mark.parametrize("fault", [p for p in PLANTS if p.__name__ in WITNESSES])
def test_planted_fault_is_noticed(fault: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one of the conditions that it rests on the reduction is seen to be wrong."""
    assert callable(fault)
    seeds = WITNESSES[fault.__name__]
    assert not any(noticed(seed) for seed in seeds)
    fault(monkeypatch)
    assert any(noticed(seed) for seed in seeds)


@pytest.mark.parametrize(
    ("ranks", "tokens", "states"), [(2, 1, 11), (3, 1, 31), (3, 2, 61), (8, 2, 561)]
)
def test_one_round_of_sentinel_polling_is_one_path(ranks: int, tokens: int, states: int) -> None:
    """Reduced, one-round Sentinel Polling has the states of one run (design, section 7)."""
    system = instance(OneRound, ranks=ranks, tokens=tokens).system({})
    meter = Meter(Budget())
    explore(system, PersistentSets(system, ASKED).choose, frozenset(), meter, stop_at_first=False)
    assert (meter.states, meter.transitions) == (states, states - 1)


@pytest.mark.parametrize(("ranks", "states", "transitions"), [(2, 36, 60), (3, 10_252, 44_898)])
def test_unreduced_counts_are_those_of_spin(ranks: int, states: int, transitions: int) -> None:
    """Unreduced, it has the states and transitions of a hand-written Promela model under SPIN."""
    system = instance(OneRound, ranks=ranks).system({})
    meter = Meter(Budget())
    explore(system, None, frozenset(), meter, stop_at_first=False)
    assert (meter.states, meter.transitions) == (states, transitions)
