"""Runs made shorter: a step left out is what it is for the model, and none is left to leave out."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from syncproof.checkers.explicit import footprints
from syncproof.checkers.explicit.boxes import Boxes, is_plain
from syncproof.checkers.explicit.counterexample import shortened
from syncproof.checkers.explicit.search import Budget, Finding, Meter, explore
from syncproof.checkers.explicit.shortening import Shortening
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core, Unresolved
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.narrate import NotEnabled, follow
from syncproof.models.outbox import ADD
from syncproof.models.protocol import Protocol, role
from syncproof.models.system import System
from syncproof.models.transitions import PROPERTIES, Failure, Overfull, State, Step
from syncproof.protocols.barrier import Barrier
from tests.random_protocols import plan_of, systems_of

ASKED = frozenset(PROPERTIES)
IMPOSSIBLE = (NotEnabled, Overfull, UserError)


def random_run(system: System, pick: random.Random, most: int = 40) -> list[Step]:
    """The steps of some run."""
    state, steps = system.initial_transition().state, list[Step]()
    try:
        while len(steps) < most:
            enabled = system.transitions(state)
            if not enabled:
                break
            taken = pick.choice(enabled)
            steps.append(taken.step)
            state = taken.state
    except (Overfull, UserError):
        pass
    return steps


def end_of(system: System, steps: Sequence[Step]) -> tuple[tuple[Failure, ...], State] | None:
    """What the last step of a run says and where it ends, walked from the start; None if it is
    not possible."""
    try:
        taken = follow(system, steps)
    except IMPOSSIBLE:
        return None
    last = taken[-1][1] if taken else system.initial_transition()
    return last.failures, last.state


def systems(seeds: range) -> Iterator[tuple[int, System]]:
    """Random systems, every other one on a fabric that orders little between puts."""
    for seed in seeds:
        plan = plan_of(seed)
        if seed % 2:
            little = replace(
                plan.profile, ordering="none", signal="own", hops={}, load_order="program"
            )
            plan = replace(plan, profile=little)
        try:
            for system in systems_of(plan):
                yield seed, system
        except Unresolved:
            continue
        if seed % 10 == 0:
            yield seed, counting_barrier()
        if seed % 10 == 5:
            orders = ORDERS[seed // 10 % len(ORDERS)]
            profile = Profile("orders", fence="none", **orders)
            yield seed, Instance(Orderly, Bounds(2, 1, 1), profile, {}).system({})


ORDERS: list[dict[str, Any]] = [
    {"ordering": "per_pair"},
    {"ordering": "per_queue"},
    {"signal": "prior"},
    {"hops": {"one_hop": {"ordering": "per_pair"}}},
    {},
]


class Orderly(Protocol):
    """Puts to several cells of one rank, some of which come behind others where there is order."""

    def memory(self) -> None:
        self.data = Region(owner=1, index=(3,), block=8)
        self.signal = Region(owner=1, block=8)

    @role(on=[0])
    async def sender(self, core: Core) -> None:
        await core.put(self.data[1][0], 1)
        await core.put(self.data[1][1], 1)
        await core.put_with_signal(self.data[1][2], 1, self.signal[1], 1)
        await core.quiet()


def counting_barrier() -> System:
    """Two ranks that add to each other's words, which random protocols do seldom."""
    bounds = Bounds(ranks=2, rounds=2)
    return Instance(Barrier, bounds, Profile("cm384"), {"scheme": "count"}).system({})


def differences_from_the_model(seeds: range) -> tuple[int, int, list[int]]:
    """How many runs could do without some steps and how many could not, and the seeds of those
    where a `Shortening` says otherwise, or ends otherwise, than the same walked from the start."""
    done, refused, wrong = 0, 0, list[int]()
    for seed, system in systems(seeds):
        pick = random.Random(seed)
        steps = random_run(system, pick)
        for _ in range(6):
            gone = set(pick.sample(range(len(steps)), min(len(steps), pick.choice((1, 1, 2, 4)))))
            kept = [i for i in range(len(steps)) if i not in gone]
            ends: list[Any] = []

            def note(failures: Sequence[Failure], state: State, ends: list[Any] = ends) -> bool:
                ends.append((tuple(failures), state))
                return True

            is_possible = Shortening(system, follow(system, steps), note).keep_only(kept)
            expected = end_of(system, [steps[i] for i in kept])
            done, refused = done + is_possible, refused + (not is_possible)
            if ends != ([] if expected is None else [expected]):
                wrong.append(seed)
    return done, refused, wrong


def test_leaving_out_steps_is_walking_the_rest() -> None:
    """On random runs of random systems: possible or not, its end and what its last step says."""
    done, refused, wrong = differences_from_the_model(range(120))
    assert wrong == []
    assert done > 100
    assert refused > 100


def is_noticed() -> bool:
    """Whether a fault shows: in how a run ends, or as a run that seems no longer possible."""
    try:
        return bool(differences_from_the_model(range(120))[2])
    except (AssertionError, ValueError):
        return True


@pytest.mark.parametrize("fault", ["reads", "outbox", "meeting"])
def test_a_forgotten_dependency_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that forget what they read, their outbox or whom they meet: the ends differ."""
    find = footprints.Footprints._find

    def forgetful(self: Any, process: int, action: Any) -> Any:
        found = find(self, process, action)
        if fault == "reads":
            return found._replace(looks=found.members)
        if fault == "outbox":
            return found._replace(minds_all=False)
        others = {*found.members} - {process}
        return found._replace(looks=tuple([each for each in found.looks if each not in others]))

    monkeypatch.setattr(footprints.Footprints, "_find", forgetful)
    assert is_noticed()


def test_puts_are_kept_apart_in_many_random_runs() -> None:
    """Runs in which a process has several places for its puts, and such where that is not so."""
    counts = {True: 0, False: 0}
    for seed, system in systems(range(120)):
        footprint = footprints.Footprints(system)
        steps = random_run(system, random.Random(seed))
        footprint.meet([(state, each.step) for state, each in follow(system, steps)])
        boxes = footprint.boxes
        counts[any(len(boxes.all_of(p)) > 1 for p in range(system.processes))] += 1
    assert min(counts.values()) >= 20, counts


@pytest.mark.parametrize("fault", ["ordered", "fence", "end"])
def test_puts_wrongly_kept_apart_are_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts of an ordered fabric, those behind a fence, and those that a process waits for or
    leaves behind: with each put by itself the ends differ."""

    def as_if_unordered(self: Boxes, system: System) -> None:
        begin(self, system)
        self._is_apart = is_plain(system)

    def without_fences(self: Boxes, owner: int, packets: Any) -> int:
        return self.of_cells(owner, [cell for each in packets for cell, _, _ in each.writes])

    begin = Boxes.__init__
    if fault == "ordered":
        monkeypatch.setattr(Boxes, "__init__", as_if_unordered)
    elif fault == "fence":
        monkeypatch.setattr(Boxes, "of_packets", without_fences)
    else:
        monkeypatch.setattr(footprints.Footprints, "minded", lambda *_: False)
    assert is_noticed()


def test_a_forgotten_sum_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an add leaves behind depends on what was there."""
    monkeypatch.setattr(footprints, "ADD", ADD + 7)
    assert is_noticed()


def runs_into_failures(seeds: range) -> Iterator[tuple[int, System, Finding, list[Step]]]:
    """Of random systems, searched in a random order: a run into the first failure of a step."""
    for seed, system in systems(seeds):
        pick = random.Random(seed)
        try:
            found = explore(system, None, ASKED, Meter(Budget(states=3000)), stop_at_first=False)
        except UserError:
            continue
        if found.findings:
            finding = pick.choice(found.findings)
            if finding.last is not None:
                yield seed, system, finding, [*found.path(finding.state), finding.last.step]


def test_nothing_is_left_to_leave_out() -> None:
    """By brute force: without any one step of a shortened run, alone or with all that its process
    does later, the rest is not possible or does not fail so."""
    count = 0
    for seed, system, finding, steps in runs_into_failures(range(200)):
        name, process = finding.failure.property, finding.failure.process

        def fails(
            failures: Sequence[Failure], _: State, name: str = name, process: int = process
        ) -> bool:
            return any((each.property, each.process) == (name, process) for each in failures)

        run = shortened(system, follow(system, steps), finding, fails)
        left = [each.step for _, each in run]
        assert fails(run[-1][1].failures, run[-1][1].state) if run else True, seed
        assert len(left) <= len(steps)
        for i, gone in enumerate(left):
            later = [each for each in left[i:] if each.process != gone.process]
            for rest in ([*left[:i], *left[i + 1 :]], [*left[:i], *later]):
                end = end_of(system, rest)
                assert end is None or not fails(*end), f"seed {seed}, step {i}"
            count += 1
    assert count > 150


def test_what_cannot_be_judged_is_left_whole() -> None:
    """Where nobody can tell that a run fails, all of it is shown."""
    for _, system, finding, steps in runs_into_failures(range(10)):
        taken = follow(system, steps)
        left = shortened(system, taken, finding, lambda *_: False)
        assert [each.step for _, each in left] == steps
