"""Free steps taken at once in the fast engine: fewer states, and all that `reference` finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

import pytest

from syncproof.checkers.explicit import persistent
from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.replay import replay
from syncproof.checkers.explicit.search import Budget, Meter, explore, hung_states, race_pairs
from syncproof.checkers.fast import strides
from syncproof.checkers.fast.check import FULL, check, uncovered
from syncproof.checkers.fast.place import Place
from syncproof.checkers.fast.search import Search
from syncproof.checkers.fast.strides import Stride, Strides
from syncproof.checkers.fast.tabulation import Tabulation
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.lowering import ActionKind
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.system import System
from syncproof.models.transitions import Failure, State
from syncproof.models.verdict import Answer
from tests.random_protocols import instance_of, plan_of, systems_of
from tests.small import CM384, OneRound, instance
from tests.test_persistent import GHOSTS

STATES = 2_500
NOTHING: frozenset[str] = frozenset()
RACES = frozenset({"race-free"})


@dataclass(frozen=True)
class Met:
    """What a search of everything met: all that a verdict is made of."""

    good: frozenset[State]
    stuck: frozenset[State]
    hangs: bool
    failures: frozenset[Failure]
    reached: frozenset[str]
    races: frozenset[tuple[int, bool]]


def met_slowly(system: System) -> Met | None:
    """By the engine that defines what is right; None if that is too much."""
    found = explore(system, None, NOTHING, Meter(Budget(states=STATES)), stop_at_first=False)
    if found.stopped:
        return None
    failures = set(system.initial_transition().failures)
    races = set[tuple[int, bool]]()
    for state in found.parents:
        enabled = system.told_apart(system.transitions(state))
        failures.update(failure for each in enabled for failure in each.failures)
        races.update((cell, sure) for cell, sure, _, _ in race_pairs(system, state, enabled))
    return Met(
        frozenset(found.good),
        frozenset(found.stuck),
        bool(hung_states(found)),
        frozenset(failures),
        frozenset(found.reached),
        frozenset(kind for kind in races if kind[1] or kind[0] not in system.polled),
    )


def met_quickly(system: System) -> tuple[Met, Search]:
    """By the fast engine, with free steps taken at once."""
    failures, fails = set[Failure](), Tabulation._fails

    def noted(self: Tabulation, stride: Stride) -> bool:
        failures.update(stride.failures)
        return fails(self, stride)

    with patch.object(Tabulation, "_fails", noted):
        search = Search(system, RACES, Meter(Budget()), reduces=True)
        found = search.run()
    assert not found.stopped
    failures.update(search.start.failures)
    hanging = Search(system, frozenset({"deadlock-free"}), Meter(Budget()), reduces=True)
    met = Met(
        frozenset(found.good),
        frozenset(found.stuck),
        bool(hanging.run().findings),
        frozenset(failures),
        frozenset(found.reached),
        frozenset(kind for kind in search._races if kind[1] or kind[0] not in system.polled),
    )
    return met, search


def compared(system: System) -> str:
    """Both on one system: how it came out; asserts that they met the same."""
    try:
        slow = None if uncovered(system.features) else met_slowly(system)
    except UserError:
        return "error"
    if slow is None:
        return "not compared"
    quick, search = met_quickly(system)
    assert quick == slow
    full = Search(system, NOTHING, Meter(Budget()))
    full.run()
    assert search.count <= full.count
    return "smaller" if search.count < full.count else "equal"


def compare(first: int, last: int) -> Counter[str]:
    """Both on random systems."""
    return Counter(
        compared(system) for seed in range(first, last) for system in systems_of(plan_of(seed))
    )


def test_meets_all_that_reference_meets() -> None:
    """On random systems: the same ends, hangs, failures, places reached and races."""
    assert compare(400, 460)["smaller"] > 20


@pytest.mark.long
def test_meets_all_that_reference_meets_at_length() -> None:
    """The same on two thousand more plans."""
    assert compare(20_000, 22_000)["smaller"] > 500


def verdicts(first: int, last: int, threads: int = 1) -> Counter[str]:
    """The verdicts of `reference`, of the fast engine and of that with `--full` on random
    protocols: never a contradiction, and every counterexample replays."""
    found: Counter[str] = Counter()
    for seed in range(first, last):
        made = instance_of(plan_of(seed))
        question, limit = question_of(made, "random"), Budget(states=STATES, threads=threads)
        try:
            right = check_explicitly(made, question, "reference", limit)
            some = check(made, question, "fast", limit)
            every = check(made, question, FULL, limit)
        except UserError:
            continue
        if Answer.UNDECIDED in (right.answer, some.answer, every.answer):
            continue
        assert right.answer is some.answer is every.answer, f"seed {seed}"
        told = {each.property: each.answer for each in right.properties}
        for each in some.properties:
            pair = {each.answer, told.get(each.property, each.answer)}
            assert pair != {Answer.PROVED, Answer.VIOLATED}, f"seed {seed}: {each.property}"
        if some.trace is not None:
            assert replay(some.trace, made).reproduced, f"seed {seed}"
        found[right.answer.value] += 1
        found["smaller"] += some.states < every.states
    return found


def test_verdicts() -> None:
    """On random protocols, by two threads."""
    found = verdicts(600, 650, threads=2)
    assert found["violated"] > 5 and found["proved"] > 1 and found["smaller"] > 5


@pytest.mark.long
def test_verdicts_at_length() -> None:
    """The same on two thousand more."""
    found = verdicts(30_000, 32_000)
    assert found["violated"] > 500 and found["proved"] > 100


@pytest.mark.parametrize(("tokens", "states", "steps"), [(1, 1_728, 6_912)])
def test_one_round(tokens: int, states: int, steps: int) -> None:
    """One-round Sentinel Polling, where 10,252 states and 44,898 transitions are without."""
    system = instance(OneRound, ranks=3, tokens=tokens).system({})
    meter = Meter(Budget())
    found = Search(system, NOTHING, meter, reduces=True).run()
    assert (meter.states, found.transitions) == (states, steps)


# Free steps without end


class Fencing(Protocol):
    """Rank 0 fences for ever; rank 1 goes wrong in its own time."""

    def memory(self) -> None:
        self.flag = Region(owner=1, block=8)

    @role
    async def worker(self, core: Core) -> None:
        while core.rank == 0:
            await core.fence()
        await core.put(self.flag[1], 1)
        await core.wait_until(self.flag[1], lambda value: value == 1)
        core.check(False, "what rank 1 says")


def test_endless_free_steps_hide_nothing() -> None:
    """Whoever takes free steps for ever keeps nobody else from being found wrong; nor is the hang
    overlooked where that is all that is asked."""
    made = instance(Fencing, ranks=2)
    for name, asked in (("checks", ("checks",)), ("deadlock-free", ("deadlock-free",))):
        found = check(made, question_of(made, name, properties=asked), "fast", Budget())
        assert [(e.property, e.answer) for e in found.properties] == [(name, Answer.VIOLATED)]
        assert found.trace is not None and replay(found.trace, made).reproduced


class Overfilling(Protocol):
    """Rank 0 puts once more than may be in flight; rank 1 goes wrong behind its first put."""

    def memory(self) -> None:
        self.flag = Region(owner=0, index=(2,), block=8)

    @role(on=[0])
    async def first(self, core: Core) -> None:
        for number in range(3):
            await core.put(self.flag[0][0], number)
        await core.quiet()

    @role(on=[1])
    async def second(self, core: Core) -> None:
        await core.put(self.flag[0][1], 1)
        core.check(False, "what rank 1 says")
        await core.quiet()


@pytest.mark.parametrize("ordered", [True, False])
def test_a_run_goes_through_states_in_which_others_meet_the_bound(ordered: bool) -> None:
    """Within a stride others are not asked what they do, and so not when its run is shown."""
    made = instance(Overfilling, CM384.changed({"same_address_order": ordered}), ranks=2)
    found = check(made, question_of(made, "x", properties=("checks",)), "fast", Budget())
    assert found.answer is Answer.VIOLATED
    assert found.trace is not None and replay(found.trace, made).reproduced


# Faults planted in the reduction


def called_free(*kinds: ActionKind) -> Callable[[pytest.MonkeyPatch], None]:
    """Steps of these kinds count as free, and all that they depend on is looked at."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        joining = strides.Strides._joining

        def looking(
            self: Strides, state: State, process: int, looked: dict[Place, None]
        ) -> tuple[int, ...]:
            members = joining(self, state, process, looked)
            for action in self.system.node(state, process).actions if members else ():
                cells = [*action.cells, *(write[0] for write in action.writes)]
                looked.update(dict.fromkeys(self.layout.atom_of[cell] for cell in cells))
            return members

        patch.setattr(persistent, "FREE", (*persistent.FREE, *kinds))
        patch.setattr(strides, "FREE", persistent.FREE)
        patch.setattr(strides, "is_free", lambda system, state, step: True)
        patch.setattr(strides.Strides, "_joining", looking)

    return plant


def ghosts_do_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(persistent, "ghosts_of", lambda statements: set())


def free_steps_say_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(strides.Stride, "failures", property(lambda self: self.steps[0].failures))
    patch.setattr(strides.Stride, "reached", property(lambda self: self.steps[0].reached))


def nothing_is_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(strides.Strides, "_joining", lambda self, state, process, looked: (process,))


def the_step_before_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(strides.Stride, "failures", property(lambda self: self.steps[-1].failures))
    patch.setattr(strides.Stride, "reached", property(lambda self: self.steps[-1].reached))


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "stores are free": called_free(ActionKind.WRITE),
    "reads are free": called_free(ActionKind.READ),
    "updates are free": called_free(ActionKind.UPDATE),
    "ghosts do not count": ghosts_do_not_count,
    "free steps say nothing": free_steps_say_nothing,
    "the step before them says nothing": the_step_before_is_forgotten,
    "what they depend on is not looked at": nothing_is_looked_at,
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is noticed on some random systems on which nothing was wrong before."""
    plans = [plan_of(seed) for seed in range(30, 55)]
    if "ghosts" in name:
        plans = [plan_of(seed, words=GHOSTS) for seed in (3, 35, 81)]
    FAULTS[name](monkeypatch)
    caught = 0
    for plan in plans:
        try:
            compared(next(systems_of(plan)))
        except (AssertionError, IndexError, StopIteration):
            caught += 1
    assert caught > 1
