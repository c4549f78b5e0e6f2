"""Reusable barriers: known deadlock verdicts and state counts, and what each operation is for."""

from __future__ import annotations

import pytest

from syncproof.checkers.explicit.check import check, question_of
from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.checkers.explicit.search import Budget, Exploration, Meter, explore
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.verdict import Answer
from syncproof.protocols.barrier import SCHEMES, Barrier

SC, CM384 = Profile("sc", immediate=True), Profile("cm384")

# Deadlock states at 2 ranks x 4 rounds and 3 ranks x 3 rounds, from a breadth-first search of the
# abstract flag schemes under sequential consistency that is older than this project's engines.
DEADLOCK_STATES = {
    "equal": (6, 18),
    "sense": (6, 18),
    "count": (6, 12),
    "count_at_least": (0, 0),
    "equal_or_next": (0, 0),
    "at_least": (0, 0),
    "two_slots": (0, 0),
    "two_words": (0, 0),
    "credit": (0, 0),
}
HANG = ("reset", "equal", "sense", "count")


def instance(scheme: str, profile: Profile, ranks: int = 2, rounds: int = 4) -> Instance:
    return Instance(Barrier, Bounds(ranks=ranks, rounds=rounds), profile, {"scheme": scheme})


def enough_rounds(scheme: str, profile: Profile) -> int:
    """Every slot twice; two where adds in flight make sums of all kinds and nothing is in turn."""
    return 2 if scheme.startswith("count") and profile is CM384 else 4


def whole_graph(made: Instance) -> Exploration:
    return explore(made.system({}), None, frozenset(), Meter(Budget()), stop_at_first=False)


@pytest.mark.parametrize("scheme", DEADLOCK_STATES)
@pytest.mark.parametrize(("which", "ranks", "rounds"), [(0, 2, 4), (1, 3, 3)])
def test_number_of_deadlock_states(scheme: str, which: int, ranks: int, rounds: int) -> None:
    """Each scheme has exactly the deadlock states that an independent search has found."""
    stuck = whole_graph(instance(scheme, SC, ranks, rounds)).stuck
    assert len(stuck) == DEADLOCK_STATES[scheme][which]


@pytest.mark.parametrize("engine", ["reference", "reduced"])
@pytest.mark.parametrize("profile", [SC, CM384], ids=lambda each: each.name)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_verdict(scheme: str, profile: Profile, engine: str) -> None:
    """The four schemes that libraries had to repair hang; every other one holds all properties,
    nobody leaving before all have entered among them, also where puts overtake each other."""
    made = instance(scheme, profile, rounds=enough_rounds(scheme, profile))
    found = check(made, question_of(made, "barrier"), engine)
    answers = {each.property: each.answer for each in found.properties}
    if scheme in HANG:
        assert answers["deadlock-free"] is Answer.VIOLATED
        assert Answer.VIOLATED not in {v for k, v in answers.items() if k != "deadlock-free"}
    else:
        assert set(answers.values()) == {Answer.PROVED}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_verdict_at_three_ranks(scheme: str) -> None:
    """The verdicts are the same at three ranks."""
    made = instance(scheme, SC, ranks=3, rounds=3)
    found = check(made, question_of(made, "barrier"), "reference")
    hangs = {each.property for each in found.properties if each.answer is Answer.VIOLATED}
    assert hangs == ({"deadlock-free"} if scheme in HANG else set())


@pytest.mark.parametrize("scheme", [each for each in SCHEMES if each not in HANG])
def test_every_operation_is_needed(scheme: str) -> None:
    """Without any one of its puts, adds, waits or quiets a barrier that holds is refuted."""
    made = instance(scheme, CM384, rounds=enough_rounds(scheme, CM384))
    mutants = find_mutants(made)
    assert mutants
    for mutant in mutants:
        changed = mutant.applied(made)
        found = check(changed, question_of(changed, "barrier", mutant=mutant.name), "reduced")
        assert found.answer is Answer.VIOLATED, mutant.name


class TwoTurnstiles(Protocol):
    """The two-turnstile barrier of the TLA+ examples, which goes round for ever.

    One operation for each label of the PlusCal algorithm: 13 of them, the first of which is skip.
    """

    def memory(self) -> None:
        self.lock = Region(owner=0, block=8, initial=1, on_chip=True)
        self.gate = Region(owner=0, index=(2,), block=8, on_chip=True)
        self.rendezvous = Region(owner=0, block=8, on_chip=True)

    @role
    async def process(self, core: Core) -> None:
        lock, rendezvous, everybody = self.lock[0], self.rendezvous[0], core.ranks
        first, second = self.gate[0][0], self.gate[0][1]
        while True:
            await core.quiet()  # a0: nothing is in flight, so this is the step that does nothing
            await core.wait_until(lock, _is_one, update=_zero)
            await core.add(rendezvous, 1)
            if await core.load(rendezvous) == everybody:
                await core.add(first, everybody)
            await core.put(lock, 1)
            await core.wait_until(first, _is_positive, update=_one_less)
            await core.wait_until(lock, _is_one, update=_zero)
            await core.add(rendezvous, -1)
            if await core.load(rendezvous) == 0:
                await core.add(second, everybody)
            await core.put(lock, 1)
            await core.wait_until(second, _is_positive, update=_one_less)


def _is_one(value: int) -> bool:
    return value == 1


def _zero(_: int) -> int:
    return 0


def _is_positive(value: int) -> bool:
    return value > 0


def _one_less(value: int) -> int:
    return value - 1


@pytest.mark.parametrize(
    ("processes", "states", "transitions"),
    [(2, 75, 113), (3, 353, 709), (4, 1567, 3957), (5, 6805, 20731), (6, 29279, 104515)],
)
def test_the_states_of_the_two_turnstile_barrier(
    processes: int, states: int, transitions: int
) -> None:
    """An endless role has the states and transitions that TLC counts, the initial one included."""
    found = whole_graph(Instance(TwoTurnstiles, Bounds(ranks=processes), SC, {}))
    assert (len(found.parents), found.transitions + 1) == (states, transitions)
    assert not found.stuck
