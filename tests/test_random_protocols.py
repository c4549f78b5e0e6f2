"""The two explicit engines on random protocols: the same verdicts, as the theorem says."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncproof.checkers.explicit.persistent import PersistentSets
from tests.random_protocols import draw_plan, plan_of, systems_of
from tests.reduction_oracles import difference

BATCH = 100


def differences(seeds: range) -> tuple[int, dict[int, str]]:
    """How many systems were compared to their end, and how the engines differ on any."""
    compared, found = 0, {}
    for seed in seeds:
        system = next(systems_of(plan_of(seed)))
        if PersistentSets.covers(system):
            difference_found = difference(system)
            compared += difference_found is not None
            if difference_found:
                found[seed] = difference_found
    return compared, found


@pytest.mark.parametrize("first", range(0, 1_000, BATCH))
def test_engines_agree(first: int) -> None:
    """Same hang verdict and terminal states; without a hang the same failures, places, races."""
    compared, found = differences(range(first, first + BATCH))
    assert found == {}
    assert compared > BATCH // 2


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 100_000, 10_000))
def test_engines_agree_at_length(first: int) -> None:
    """The same on a hundred thousand protocols."""
    compared, found = differences(range(first, first + 10_000))
    assert found == {}
    assert compared > 5_000


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_engines_agree_on_what_hypothesis_draws(data: st.DataObject) -> None:
    """The same on plans that shrink."""
    plan = draw_plan(lambda options: data.draw(st.sampled_from(list(options))))
    system = next(systems_of(plan))
    if PersistentSets.covers(system):
        assert not difference(system), str(plan)


def test_a_seed_stands_for_one_plan() -> None:
    """Campaigns can be repeated: the same seed draws the same plan."""
    seed = random.Random(1).randrange(10**6)
    assert plan_of(seed) == plan_of(seed)
    assert plan_of(seed) != plan_of(seed + 1)
