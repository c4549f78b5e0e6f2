"""Random runs before a search: what they find is wrong in the model, and minimal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncproof.checkers.automatic import FEW_PROCESSES
from syncproof.checkers.automatic import check as check_automatically
from syncproof.checkers.emulator import random_runs
from syncproof.checkers.emulator.fabric import Fabric
from syncproof.checkers.emulator.past import past_of_the_end
from syncproof.checkers.emulator.random_runs import look_for_violation
from syncproof.checkers.explicit import counterexample, stuck
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.counterexample import shortened
from syncproof.checkers.explicit.replay import replay, system_of
from syncproof.checkers.explicit.search import Budget, hung_states
from syncproof.checkers.explicit.shortening import IsWrong
from syncproof.checkers.explicit.stuck import as_run, is_stuck, straight_on
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.instance import Instance
from syncproof.models.memory import RANK, Region
from syncproof.models.narrate import NotEnabled, follow
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol, Setting, role
from syncproof.models.system import System
from syncproof.models.transitions import PROPERTIES, Step
from syncproof.models.verdict import Answer, Trace, Verdict
from syncproof.registry import built_ins
from tests.random_protocols import plan_of, systems_of
from tests.reduction_oracles import search

ASKED = frozenset(PROPERTIES)


def instance_of(name: str, ranks: int = 5, **settings: Setting) -> Instance:
    bounds = Bounds(ranks, 1, 3, routing="balanced")
    return Instance(built_ins()[name], bounds, load_profile("cm384"), settings)


def found_in(made: Instance) -> Verdict | None:
    return look_for_violation(made, question_of(made, "x"), Budget())


def trace_in(made: Instance) -> Trace:
    found = found_in(made)
    assert found is not None and found.trace is not None
    return found.trace


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("sp", {"windows": 1}),
    ("sp", {"quiet": False}),
    ("tff", {"windows": 1}),
    ("tff", {"reset": "never"}),
    ("sw", {"quiet": False}),
    ("sw", {"windows": 1}),
    ("dc", {"windows": 1}),
    ("bsp", {"windows": 1}),
    ("cumsum", {"windows": 1}),
]


@pytest.mark.parametrize(("name", "settings"), BROKEN)
def test_broken_protocol_is_found_and_its_run_replays(name: str, settings: Any) -> None:
    """Each protocol that a mutant breaks is found wrong on five ranks, by a run that replays."""
    made = instance_of(name, **settings)
    trace = trace_in(made)
    again = replay(trace, made)
    assert again.reproduced, again.message


@pytest.mark.parametrize(("name", "settings"), [BROKEN[0], BROKEN[4]])
def test_no_step_can_be_left_out(name: str, settings: Any) -> None:
    """By brute force: without any one of its steps the run is not possible, or breaks nothing."""
    made = instance_of(name, **settings)
    trace = trace_in(made)
    system = system_of(trace, made)
    steps = [Step(s.kind, s.process, s.what[:-1], s.what[-1]) for s in trace.steps]
    assert any(f.property == trace.property for f in follow(system, steps)[-1][1].failures)
    for i in range(len(steps)):
        try:
            _, last = follow(system, steps[:i] + steps[i + 1 :])[-1]
        except NotEnabled:
            continue
        assert trace.property not in {each.property for each in last.failures}, f"step {i}"


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("barrier", {"scheme": "equal"}),
        ("barrier", {"scheme": "reset"}),
        ("barrier", {"scheme": "count"}),
        ("cumsum", {"windows": 1}),
    ],
)
def test_no_step_into_a_hang_can_be_left_out(
    name: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By brute force: without any one step that is shown, those that wait for each other do not
    get there, or can go on when everybody goes straight on."""
    asked: list[tuple[System, IsWrong]] = []

    def noted(*arguments: Any) -> Any:
        asked.append((arguments[0], arguments[3]))
        return shortened(*arguments)

    monkeypatch.setattr(counterexample, "shortened", noted)
    made = instance_of(name, ranks=4, **settings)
    trace = trace_in(made)
    assert trace.property == "deadlock-free"
    ((system, hangs),) = asked
    steps = [Step(s.kind, s.process, s.what[:-1], s.what[-1]) for s in trace.steps]
    shown = steps[: len(trace.shown)]

    def still_hangs(rest: list[Step]) -> bool:
        try:
            last = follow(system, rest)[-1][1]
        except NotEnabled:
            return False
        return hangs(last.failures, last.state)

    assert still_hangs(shown)
    for i in range(len(shown)):
        assert not still_hangs([*shown[:i], *shown[i + 1 :]]), f"step {i}"


@pytest.mark.parametrize("name", ["sp", "tff", "sw", "dc", "bsp", "cumsum"])
def test_nothing_is_found_in_sound_protocols(name: str) -> None:
    """What is proved has no run that breaks it."""
    assert found_in(instance_of(name, ranks=3)) is None


def test_an_emulator_that_errs_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fabric that lets a quiet pass too early breaks a sound protocol; the model knows better."""
    monkeypatch.setattr(Fabric, "is_quiet", lambda *_: True, raising=True)
    assert found_in(instance_of("sw", ranks=3)) is None


def test_automatic_engine_asks_large_systems_first() -> None:
    """More than six processes: random runs answer; fewer: the reduced search does."""
    large, small = instance_of("sp", 5, windows=1), instance_of("sp", 2, windows=1)
    for made, engine in ((large, "runs"), (small, "reduced")):
        found = check_automatically(made, question_of(made, "sp"), "auto", Budget())
        assert found.engine == engine
        assert found.answer is Answer.VIOLATED
        assert any("no certificate" in note for note in found.notes)
    assert len(small.processes(small.protocol())) <= FEW_PROCESSES


def test_choices_are_looked_at_before_all_assignments_are_certified() -> None:
    """With 56 leads to choose in each round nobody waits for certificates of their assignments."""
    made = Instance(
        built_ins()["dc"],
        Bounds(8, 1, 2, routing="balanced"),
        load_profile("cm384"),
        {"counts": False, "distinct_leads": False},
    )
    found = check_automatically(made, question_of(made, "dc"), "auto", Budget(seconds=60))
    assert found.engine == "runs"
    assert found.answer is Answer.VIOLATED


def test_data_that_comes_long_after_its_checksum_is_found() -> None:
    """On eight ranks: both tokens of the last round, and only these, land after their checksum."""
    one_way = tuple(tuple(2 if (i, j) == (0, 1) else 0 for j in range(8)) for i in range(8))
    made = Instance(
        built_ins()["dc"],
        Bounds(8, 2, 3, routing=(one_way,)),
        load_profile("cm384"),
        {"checksum": "additive"},
    )
    found = found_in(made)
    assert found is not None and found.trace is not None
    assert found.trace.property == "happens-before"


def test_a_process_that_is_long_behind_is_found() -> None:
    """On eight ranks: one of all routings, and a receiver that is two rounds late. Choices that
    nobody has come to do not stand in the way."""
    made = Instance(
        built_ins()["sw"],
        Bounds(8, 1, 3, routing="all"),
        load_profile("cm384"),
        {"counts": False, "dense_traffic": False},
    )
    assert trace_in(made).property == "deadlock-free"


@pytest.mark.parametrize(("name", "settings"), [BROKEN[0], BROKEN[3], BROKEN[7]])
def test_what_a_step_depends_on_is_a_run(
    name: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is less than the whole, and the model finds the same wrong in it alone."""
    parts: list[tuple[int, int]] = []
    walks: list[bool] = []

    def part(told: Any, profile: Any) -> Any:
        found = past_of_the_end(told, profile)
        parts.append((len(found), len(told)))
        return found

    def walk(*arguments: Any) -> Any:
        found = walked(*arguments)
        walks.append(found is not None)
        return found

    walked = random_runs._walked
    monkeypatch.setattr(random_runs, "past_of_the_end", part)
    monkeypatch.setattr(random_runs, "_walked", walk)
    assert found_in(instance_of(name, **settings)) is not None
    assert walks[-1]
    assert len(walks) == len(parts), "the whole run was walked, too"
    assert all(few < all_of_it for few, all_of_it in parts)


def test_where_too_little_is_kept_the_whole_run_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step alone is not possible; what is found is found in the whole run."""
    monkeypatch.setattr(random_runs, "past_of_the_end", lambda told, _: told[-1:])
    assert found_in(instance_of("sp", windows=1)) is not None


# Stuck, without a search


class TwoReadersMeet(Protocol):
    """Each rank waits for its flag, which is up, and then all meet: reads alone lead to a sync."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=8, initial=1)

    @role
    async def reader(self, core: Core) -> None:
        await core.wait_until(self.flag[core.rank][core.rank], lambda v: v == 1)
        await core.sync()
        await core.put(self.flag[core.rank][core.rank], 1)
        await core.quiet()


class PollsForEver(Protocol):
    """A rank polls two flags of which none is ever raised; the other returns at once."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=8)

    @role
    async def reader(self, core: Core) -> None:
        async def sweep() -> int | None:
            for peer in range(2):
                if await core.load(self.flag[core.rank][peer]):
                    return peer
            return None

        if core.rank == 0:
            await core.poll_until(sweep)


class StoresWhatIsThere(Protocol):
    """One process may store what a word holds anyway, until another one has changed it."""

    def memory(self) -> None:
        self.word = Region(index=(2,), block=8, on_chip=True)

    @role(on=[0])
    async def clears(self, core: Core) -> None:
        await core.load(self.word[0][1])
        await core.put(self.word[0][0], 0)

    @role(on=[0])
    async def raises(self, core: Core) -> None:
        await core.put(self.word[0][0], 1)
        await core.wait_until(self.word[0][0], lambda word: word == 0)


def system_from(kind: type[Protocol]) -> Any:
    return Instance(kind, Bounds(2, 1, 1), load_profile("cm384"), {}).system({})


def test_a_process_that_polls_for_ever_is_stuck() -> None:
    """Nothing can change what it reads, though it can always take a step."""
    system = system_from(PollsForEver)
    start = system.initial_transition().state
    run = straight_on(system, start, ASKED)
    assert run is not None
    assert is_stuck(system, as_run(start, run)[-1][1].state if run else start)


def test_a_store_of_what_is_there_is_seen_again_when_that_changes() -> None:
    """Who could only store what was there anyway is asked again, and lets the other one go on."""
    system = system_from(StoresWhatIsThere)
    assert straight_on(system, system.initial_transition().state, ASKED) is None


def wrongly_stuck(seeds: range) -> tuple[int, list[int]]:
    """How many states of random systems are stuck, and the seeds with one that can still end."""
    count, wrong = 0, []
    for seed in seeds:
        for system in systems_of(plan_of(seed)):
            seen = search(system, None)
            if seen.graph is None or seen.stopped:
                continue
            hung = set(hung_states(seen.graph))
            told = {state for state in seen.graph.parents if is_stuck(system, state)}
            count += len(told)
            if not told <= hung:
                wrong.append(seed)
    return count, wrong


def test_only_hung_states_are_stuck() -> None:
    """Of all states of random systems only those from which no run ends are called stuck."""
    count, wrong = wrongly_stuck(range(120))
    assert wrong == []
    assert count > 100


def test_readers_that_meet_are_not_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that by reads come to a sync go on together; who forgets that is noticed."""
    system = system_from(TwoReadersMeet)
    start = system.initial_transition().state
    assert not is_stuck(system, start)
    assert straight_on(system, start, ASKED) is None
    forgetful: Callable[..., Any] = type("Nothing", (), {"SYNC": object()})
    monkeypatch.setattr(stuck, "ActionKind", forgetful)
    assert is_stuck(system, start)
