"""The reduced search against the full one, on random protocols."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncproof.checkers.explicit import outlook, persistent
from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.lowering import ActionKind
from syncproof.models.operations import GhostCheck, GhostUpdate, Statement
from tests.random_protocols import (
    OPERATIONS,
    STATEMENTS,
    draw_plan,
    plan_of,
    systems_of,
)
from tests.reduction_oracles import difference, search


def compare(first: int, last: int) -> Counter[str]:
    """Compare the two searches on the plans of some seeds; how they came out."""
    found: Counter[str] = Counter()
    for seed in range(first, last):
        for number, system in enumerate(systems_of(plan_of(seed))):
            if not PersistentSets.covers(system):
                found["not covered"] += 1
                continue
            why = difference(system)
            assert not why, f"seed {seed}, system {number}: {why}\n{plan_of(seed)}"
            found["too large" if why is None else "same"] += 1
    return found


@pytest.mark.heavy
def test_reduced_search_agrees() -> None:
    """Terminal states and hangs are the full graph's, and all else where nothing is bad: 1,000."""
    found = compare(0, 1_000)
    assert found["same"] > 800
    assert found["too large"] < 30


def test_reduced_search_agrees_when_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outlooks that are cut short, as they take many turns or a role goes on and on, or not tried
    any more after a few in vain, leave nothing out."""
    monkeypatch.setattr(outlook, "MOST_TURNS", 6)
    monkeypatch.setattr(outlook, "MOST_BEHIND", 12)
    monkeypatch.setattr(persistent, "LONG", 1)
    monkeypatch.setattr(persistent, "MOST_IN_VAIN", 2)
    asked: Counter[str] = Counter()
    look, run = PersistentSets._outlook, outlook.Outlook.run

    def looked(*given: Any) -> outlook.Outlook:
        asked["looked"] += 1
        return look(*given)

    def counted(each: outlook.Outlook) -> None:
        asked["run"] += 1
        try:
            run(each)
        finally:
            asked["on and on"] += each.goes_on_and_on
        asked["to the end"] += 1

    monkeypatch.setattr(PersistentSets, "_outlook", looked)
    monkeypatch.setattr(outlook.Outlook, "run", counted)
    assert compare(0, 150)["same"] > 100
    assert asked["looked"] > asked["run"] > asked["to the end"] > asked["on and on"] > 0


@pytest.mark.long
def test_reduced_search_agrees_at_length() -> None:
    """The same on 100,000 plans."""
    assert compare(1_000, 101_000)["same"] > 80_000


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_reduced_search_agrees_shrinking(data: Any) -> None:
    """The same on plans drawn by Hypothesis, so that a difference is shown on the smallest plan."""
    plan = draw_plan(lambda options: data.draw(st.sampled_from(list(options))))
    for system in systems_of(plan):
        if PersistentSets.covers(system):
            assert not difference(system), str(plan)


def test_identity_by_hand_agrees() -> None:
    """The local states that `Identity` tells apart are those of the plan's own identity.

    So the campaigns, which use the latter because it is quick, speak about the former too.
    """
    for seed in range(25):
        plan = plan_of(seed)
        by_hand, captured = next(systems_of(plan)), next(systems_of(plan, Instance))
        one, other = search(by_hand, None), search(captured, None)
        if one.graph is None or other.graph is None or one.stopped:
            assert (one.graph is None) == (other.graph is None), f"seed {seed}"
            continue
        assert len(one.graph.parents) == len(other.graph.parents), f"seed {seed}"
        assert one.graph.transitions == other.graph.transitions, f"seed {seed}"


def test_everything_is_drawn() -> None:
    """A thousand plans use every operation, statement and fabric value, and end in every way."""
    kinds: set[str] = set()
    values: dict[str, set[Any]] = {}
    actions: set[ActionKind] = set()
    for seed in range(1_000):
        plan = plan_of(seed, lines=seed % 2 == 1)
        kinds |= {each.kind for program in plan.programs for each in program}
        for key in Profile.__dataclass_fields__:
            values.setdefault(key, set()).add(str(getattr(plan.profile, key)))
    assert kinds == {*OPERATIONS, *STATEMENTS, "jump"}
    assert values["ordering"] == {"none", "per_pair", "per_queue"}
    assert values["fence"] == {"orders", "drains", "none"}
    assert values["quiet"] == {"all", "target", "local"}
    constant = {key for key, found in values.items() if len(found) == 1}
    assert constant == {"name", "ranks_per_switch", "latency_ns"}
    for seed in range(60):
        for system in systems_of(plan_of(seed, lines=seed % 2 == 1)):
            search(system, None)
            nodes = [node for each in system.automata for node in each.nodes]
            actions |= {action.kind for node in nodes for action in node.actions}
    assert actions == set(ActionKind)


def test_ends_of_all_kinds() -> None:
    """The random systems end well, hang, fail and loop, each in more than a few cases."""
    found: Counter[str] = Counter()
    ghosts: set[type[Statement]] = set()
    for seed in range(120):
        system = next(systems_of(plan_of(seed)))
        seen = search(system, None)
        if seen.graph is None or seen.stopped:
            continue
        found["hangs"] += seen.hung
        found["fails"] += bool(seen.graph.failing_states)
        found["is well"] += not seen.bad
        found["races"] += bool(seen.said["races"])
        for automaton in system.automata:
            for node in automaton.nodes:
                for edge in filter(None, node.edges.values()):
                    ghosts |= {type(each) for each in edge.statements}
                    found["loops"] += edge.target is node or edge.again
    assert min(found[each] for each in ("hangs", "fails", "is well", "races", "loops")) > 3
    assert {GhostCheck, GhostUpdate} <= ghosts


def test_plans_repeat() -> None:
    """A seed stands for one plan."""
    assert plan_of(7) == plan_of(7)
    assert plan_of(7) != plan_of(8)
