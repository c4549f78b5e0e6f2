"""Symmetry of interchangeable processes: checked on the tables, counted as published."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import factorial, prod

import pytest

from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.replay import replay
from syncproof.checkers.explicit.search import Budget, Meter, explore
from syncproof.checkers.fast import tabulation
from syncproof.checkers.fast.check import FULL, check, uncovered
from syncproof.checkers.fast.search import Search
from syncproof.checkers.fast.symmetry import Asymmetric, guesses
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.system import System
from syncproof.models.verdict import Answer
from tests.random_protocols import Plan, instance_of, plan_of, systems_of
from tests.small import instance, with_settings
from tests.test_spin import SC, TwoTurnstiles


def orbits(members: int) -> tuple[int, int]:
    """States and transitions of the two-turnstile barrier up to permutations of its members."""
    made = with_settings(instance(TwoTurnstiles, SC, ranks=1), members=members)
    system = made.system({})
    groups = next(guesses(system))
    meter = Meter(Budget())
    found = Search(system, frozenset(), meter, groups).run()
    assert not found.stopped
    return meter.states, found.transitions


@pytest.mark.parametrize("members", [2, 3, 4, 7, 12])
def test_orbits(members: int) -> None:
    """The published number of orbits: N(N+2)(2N+11)/3."""
    assert orbits(members)[0] == members * (members + 2) * (2 * members + 11) // 3


@pytest.mark.long
@pytest.mark.parametrize("members", range(2, 33))
def test_all_orbits(members: int) -> None:
    """The same for every N from 2 to 32."""
    assert orbits(members)[0] == members * (members + 2) * (2 * members + 11) // 3


@pytest.mark.parametrize(("members", "states"), [(2, 75), (5, 6_805), (7, 125_445)])
def test_unreduced(members: int, states: int) -> None:
    """Without symmetry the published numbers of states."""
    made = with_settings(instance(TwoTurnstiles, SC, ranks=1), members=members)
    meter = Meter(Budget())
    Search(made.system({}), frozenset(), meter).run()
    assert meter.states == states


@pytest.mark.long
@pytest.mark.parametrize(("members", "states"), [(8, 536_319), (9, 2_289_797)])
def test_unreduced_at_length(members: int, states: int) -> None:
    """The same for eight and nine processes."""
    test_unreduced(members, states)


def states_in_orbits(search: Search) -> int:
    """How many states there are in all orbits that a search found, by counting permutations."""
    layout, total = search.layout, 0
    for row in range(search.count):
        state, size = search.state(row), 1
        for orbit in layout.orbits:
            held = Counter(place.known(place.of(state)) for place in orbit.places)
            size *= factorial(len(orbit.places)) // prod(map(factorial, held.values()))
        total += size
    return total


def alike(seed: int) -> Plan | None:
    """A random plan in which all processes of the only rank run one program."""
    plan = plan_of(seed)
    if plan.ranks > 1:
        return None
    return replace(plan, programs=(plan.programs[0],) * plan.instances)


def compared(system: System, groups: list[tuple[int, ...]]) -> str:
    """Both searches of a system, everything explored: how it came out."""
    meter = Meter(Budget(states=4_000))
    try:
        full = explore(system, None, frozenset(), meter, stop_at_first=False)
        search = Search(system, frozenset(), Meter(Budget()), groups)
        reduced = search.run()
    except (Asymmetric, UserError) as reason:
        return type(reason).__name__
    if full.stopped:
        return "stopped"
    assert not reduced.stopped
    assert states_in_orbits(search) == meter.states
    assert (bool(full.good), bool(full.stuck)) == (bool(reduced.good), bool(reduced.stuck))
    assert full.reached == reduced.reached
    return "smaller" if search.count < meter.states else "equal"


def compare(first: int, last: int) -> Counter[str]:
    """Both searches on random plans of equal processes."""
    systems = (next(systems_of(plan)) for plan in filter(None, map(alike, range(first, last))))
    return Counter(
        compared(each, next(guesses(each))) for each in systems if not uncovered(each.features)
    )


def test_random_orbits() -> None:
    """On random systems of equal processes the orbits hold exactly the states of `reference`."""
    assert compare(0, 90)["smaller"] > 8


@pytest.mark.long
def test_many_random_orbits() -> None:
    """The same on two thousand more."""
    assert compare(1_000, 3_000)["smaller"] > 200


def test_random_verdicts() -> None:
    """And the verdicts are the same, with a note that names the symmetry."""
    found: Counter[str] = Counter()
    for plan in filter(None, map(alike, range(300, 325))):
        made = instance_of(plan)
        question = question_of(made, "alike")
        try:
            one = check_explicitly(made, question, "reference", Budget(states=1_500))
            other = check(made, question, "fast", Budget(states=1_500))
        except UserError:
            continue
        if Answer.UNDECIDED not in (one.answer, other.answer):
            assert one.answer is other.answer
            found[other.answer.value] += any("symmetry" in note for note in other.notes)
            if other.trace is not None:
                assert replay(other.trace, made).reproduced
    assert found["violated"] > 1


def test_difference_of_members_is_never_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random processes that differ are refused; a check that compares nothing is noticed."""
    systems = [next(systems_of(plan_of(seed))) for seed in range(30)]
    systems = [each for each in systems if not uncovered(each.features)]
    came_out = [compared(each, [(0, 1)]) for each in systems]
    assert came_out.count("Asymmetric") > len(systems) // 2
    monkeypatch.setattr(tabulation._Situation, "seen", lambda self: None)
    caught = 0
    for each in systems:
        try:
            compared(each, [(0, 1)])
        except (AssertionError, StopIteration, IndexError):
            caught += 1
    assert caught > 2


class Numbered(Protocol):
    """Each member raises its own flag, or all raise one; then all wait for what they raised."""

    own: bool = parameter(False, "each has its own flag")

    def memory(self) -> None:
        self.flag = Region(owner=0, index=(3,), block=8)

    @role(instances=3, on=(0,))
    async def member(self, core: Core) -> None:
        slot = self.flag[0][core.index if self.own else 0]
        await core.fetch_add(slot, 1)
        await core.wait_until(slot, lambda count: count >= 1)


@pytest.mark.parametrize("own", [False, True])
def test_symmetry_is_named_where_it_is(own: bool) -> None:
    """Members that differ in the flag they use are no orbit; the verdict says which it used."""
    made = with_settings(instance(Numbered, SC, ranks=1), own=own)
    question = question_of(made, "numbered")
    found, full = (check(made, question, name, Budget()) for name in ("fast", FULL))
    assert found.answer is full.answer is Answer.PROVED
    notes = [note for note in found.notes if "symmetry" in note]
    assert bool(notes) is not own and not any("symmetry" in note for note in full.notes)
    assert (found.states < full.states) is not own
