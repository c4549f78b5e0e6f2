"""Persistent sets in the quotient: by brute force, against all steps, and with faults planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from syncproof.checkers.explicit import conflicts
from syncproof.checkers.explicit.check import check as check_bounded
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.contents import GiveUp
from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.checkers.unbounded import search
from syncproof.checkers.unbounded.check import Explored, explore_all
from syncproof.checkers.unbounded.check import check as check_unbounded
from syncproof.checkers.unbounded.frames import FramedAutomaton
from syncproof.checkers.unbounded.reduction import QuotientSets, Reduction
from syncproof.checkers.unbounded.search import Graph
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, Setting, role
from syncproof.models.transitions import Overfull, State, Transition
from syncproof.models.verdict import Answer
from syncproof.protocols.cumsum import KernelDecomposition
from syncproof.protocols.sp import SentinelPolling
from syncproof.protocols.sw import StopAndWait
from tests.reduction_oracles import ASKED, BruteForce, Key, Moves
from tests.round_protocols import RoundByRound

Patch = pytest.MonkeyPatch
Says = tuple[Any, ...]


def instance_of(kind: type[Protocol], routing: str = "all", **settings: Setting) -> Instance:
    return Instance(kind, Bounds(routing=routing), Profile("cm384"), settings)


def random_instance(seed: int) -> Instance:
    return instance_of(RoundByRound, "balanced", seed=seed, windows=1 + seed % 3)


def graph_of(
    instance: Instance, reduction: Reduction = Reduction.SETS, states: int = 4_000
) -> tuple[Graph | None, Explored]:
    """The quotient, as far as it is explored with a failure not ending it."""
    explored = Explored(Meter(Budget(states=states)))
    try:
        explore_all(instance, ASKED, explored, reduction, stop_at_first=False)
    except Exception as error:
        explored.stopped = str(error)
    return (explored.graphs[0] if explored.graphs else None), explored


class QuotientBruteForce(BruteForce):
    """The same of states of the quotient: a step has all its answers, and orders may lead to
    states that differ in what is forgotten."""

    def _find(self, state: State) -> Moves:
        found = super()._find(state)
        for key in [each for each in found if each[0] == "process"]:
            steps = self.system.process_transitions(state, key[1])
            found[key] = [each for each in steps if each.step.what == key[2]]
        return found

    def _conflict(self, state: State, key: Key, other: Key, step: Transition) -> str:
        first = self._both(state, key, other)
        last = self._both(state, other, key)
        if not first or not last:
            return "one disables the other"
        if first != {(end, theirs, own) for end, own, theirs in last}:
            return "the orders differ"
        return self._race(state, self.moves(state)[key][0], step)

    def _both(self, state: State, one: Key, other: Key) -> set[tuple[State, Says, Says]]:
        return {
            (self.quotient.least(last.state)[0], _says(first), _says(last))
            for first in self.moves(state)[one]
            for last in self.moves(first.state).get(other, ())
        }


def _says(each: Transition) -> Says:
    return each.failures, each.reached


def complaint(graph: Graph, states: int = 150) -> tuple[str, int]:
    """What brute force has to say against the sets of a graph's states, and how many it saw."""
    brute = QuotientBruteForce(graph.system, 40)
    brute.quotient = graph.quotient
    sets = QuotientSets(graph.system, ASKED)
    checked = 0
    for state in list(graph.arcs)[:states]:
        enabled = graph.system.transitions(state)
        chosen = sets.choose(state, enabled)
        if len({each.step for each in chosen}) == len({each.step for each in enabled}):
            continue
        checked += 1
        steps = {each.step for each in chosen}
        moves = brute.moves(state)
        keys = frozenset(k for k, ways in moves.items() if any(w.step in steps for w in ways))
        try:
            why = brute.not_persistent(state, keys)
        except (UserError, Overfull):
            continue
        if why:
            return f"{[each.step for each in chosen]}: {why}", checked
    return "", checked


class Overwritten(Protocol):
    """Rank 1 overwrites a cell for a while, in rounds that are chosen."""

    def memory(self) -> None:
        self.cell = Region(owner=0, index=(), block=32)
        self.other = Region(owner=1, index=(), block=32)

    @role(on=[0])
    async def reader(self, core: Core) -> None:
        for _ in core.rounds():
            found = await core.load(self.cell[0])
            core.check(found != 2, "it is overwritten")
            await core.barrier("all")

    @role(on=[1])
    async def writer(self, core: Core) -> None:
        for round in core.rounds():
            await core.load(self.other[1])
            if core.choose(("overwritten", round), (False, True)):
                await core.put(self.cell[0], 2)
                await core.quiet()
                await core.put(self.cell[0], 0)
            await core.barrier("all")


class Unreached(Protocol):
    """The same in each round, behind a modulus that is never taken: states need not know of it."""

    def memory(self) -> None:
        self.cell = Region(owner=0, index=(), block=32)
        self.flag = Region(owner=1, index=(), block=32)

    @role(on=[0])
    async def reader(self, core: Core) -> None:
        for _ in core.rounds():
            await core.put(self.flag[1], 1)
            await core.quiet()
            found = await core.load(self.cell[0])
            core.check(found != 2, "it is overwritten")
            await core.barrier("all")

    @role(on=[1])
    async def writer(self, core: Core) -> None:
        for round in core.rounds():
            await core.wait_until(self.flag[1], lambda found: found == 1)
            if await core.load(self.flag[1]) != 1:
                core.check(round % 37 == 0, "it is not")
            await core.put(self.cell[0], 2)
            await core.quiet()
            await core.put(self.cell[0], 0)
            await core.put(self.flag[1], 0)
            await core.barrier("all")


# Faults planted in what the quotient adds to the reduction


def one_answer_is_taken(patch: Patch) -> None:
    """Of the answers to a choice that others make the outlook has the first."""
    ways = FramedAutomaton.ways
    patch.setattr(FramedAutomaton, "ways", lambda *of: ways(*of)[:1])


def answers_are_not_compared(patch: Patch) -> None:
    """Two ways of a step under a choice are taken to be one."""
    patch.setattr(conflicts, "_agree", lambda one, other: not (one or other))


def who_runs_ahead_stops(patch: Patch) -> None:
    """What is too far ahead does not happen, and the outlook is used."""
    ways = FramedAutomaton.ways

    def stopping(*of: Any) -> Any:
        try:
            return ways(*of)
        except GiveUp:
            return ()

    patch.setattr(FramedAutomaton, "ways", stopping)
    patch.setattr("syncproof.checkers.unbounded.reduction.ROUNDS_AHEAD", 0)


def what_is_given_up_is_alone(patch: Patch) -> None:
    """Where an outlook meets what is not covered, one step is taken nevertheless."""
    patch.setattr(
        "syncproof.checkers.unbounded.reduction.free_steps",
        lambda system, state, enabled: [e for e in enabled if e.step == enabled[0].step],
    )


def a_step_has_one_answer(patch: Patch) -> None:
    """Of the step that is explored only one answer is."""
    choose = QuotientSets.choose
    patch.setattr(QuotientSets, "choose", lambda *of: choose(*of)[:1])


def answer_of(instance: Instance, engine: str = "quotient", states: int = 30_000) -> Answer:
    question = question_of(instance, "x")
    return check_unbounded(instance, question, engine, Budget(states=states)).answer


def is_wrong(instance: Instance) -> bool:
    """Whether the verdict is not the one of all steps."""
    return answer_of(instance) is not answer_of(instance, "quotient-full")


def is_refused(instance: Instance) -> bool:
    """Whether brute force finds a set that is not persistent."""
    graph, _ = graph_of(instance, states=400)
    return graph is not None and complaint(graph, 60)[0] != ""


NOTICED: tuple[tuple[Callable[[Patch], None], Callable[[Instance], bool], Instance], ...] = (
    (one_answer_is_taken, is_wrong, instance_of(Overwritten)),
    (answers_are_not_compared, is_refused, random_instance(27)),
    (who_runs_ahead_stops, is_wrong, random_instance(15)),
    (who_runs_ahead_stops, is_refused, random_instance(27)),
    (what_is_given_up_is_alone, is_wrong, instance_of(Unreached)),
    (a_step_has_one_answer, is_wrong, random_instance(6)),
)


@pytest.mark.parametrize(
    ("fault", "oracle", "instance"), NOTICED, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_planted_fault_is_noticed(
    fault: Callable[[Patch], None],
    oracle: Callable[[Instance], bool],
    instance: Instance,
    monkeypatch: Patch,
) -> None:
    """Each condition is needed: without it a verdict or a set is wrong that was right before."""
    assert not oracle(instance)
    fault(monkeypatch)
    assert oracle(instance)


def test_sets_are_persistent_by_brute_force() -> None:
    """In no run of the other steps is a member of a chosen set disabled or in conflict."""
    checked = 0
    for seed in range(1, 16):
        graph, _ = graph_of(random_instance(seed), states=400)
        if graph is not None:
            why, found = complaint(graph, 60)
            assert why == "", f"seed {seed}"
            checked += found
    assert checked > 200


def long_run_of_brute_force(seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        graph, _ = graph_of(random_instance(seed), states=1_000)
        why = "" if graph is None else complaint(graph)[0]
        found += [f"{seed}: {why}"] if why else []
    return found


@pytest.mark.long
def test_sets_are_persistent_by_brute_force_at_length() -> None:
    """The same, of a thousand protocols."""
    assert long_run_of_brute_force(range(100, 1_100)) == []


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (SentinelPolling, {"counts": False}),
        (StopAndWait, {"counts": False, "windows": 1}),
        (Overwritten, {}),
        (Unreached, {}),
    ],
)
def test_all_steps_give_the_same_verdict(
    kind: type[Protocol], settings: dict[str, Setting]
) -> None:
    """With and without the reduction the answer is the same; it leaves out some states."""
    instance = instance_of(kind, **settings)
    reduced, full = graph_of(instance), graph_of(instance, Reduction.NONE, 20_000)
    assert answer_of(instance) is answer_of(instance, "quotient-full")
    assert reduced[1].meter.states < full[1].meter.states


def test_a_choice_may_be_asked_again_in_an_outlook() -> None:
    """A role that asks for one choice in two steps has both answers at each in an outlook; when it
    is run again each step has its own. (A role was called not deterministic.)"""
    assert not is_wrong(random_instance(249))


def test_what_a_few_rounds_refute_is_said_at_once(monkeypatch: Patch) -> None:
    """A large quotient is not explored where two rounds show a failure, and that is the trace."""
    monkeypatch.setattr(search, "MANY_STATES", 20)
    instance = instance_of(KernelDecomposition, "balanced", windows=1)
    verdict = check_unbounded(instance, question_of(instance, "x"))
    assert verdict.answer is Answer.VIOLATED and verdict.states < 60
    assert verdict.trace is not None and verdict.trace.question.bounds["rounds"] == 2


# Kernel decomposition


def bounded(instance: Instance, rounds: int) -> Answer:
    made = replace(instance, bounds=replace(instance.bounds, rounds=rounds))
    return check_bounded(made, question_of(made, "x"), "reduced", Budget(states=50_000)).answer


CHANGES: tuple[dict[str, Setting], ...] = (
    {},
    {"windows": 1},
    {"one_put": False},
    {"wait_for_offset": False},
)


@pytest.mark.parametrize("settings", CHANGES, ids=str)
def test_kernel_decomposition_is_answered_as_in_a_few_rounds(settings: dict[str, Setting]) -> None:
    """`cumsum` and what breaks it get the answer of one to three rounds."""
    instance = instance_of(KernelDecomposition, "balanced", **settings)
    answer = answer_of(instance)
    runs = [bounded(instance, rounds) for rounds in (1, 2, 3)]
    assert answer is (Answer.VIOLATED if Answer.VIOLATED in runs else Answer.PROVED)
    assert (answer is Answer.PROVED) == (not settings)
