"""Counterexamples: fewest or minimal, cut to what explains them, and replayed."""

from __future__ import annotations

import dataclasses
import json

import pytest

from syncproof.checkers.explicit.check import check, question_of
from syncproof.checkers.explicit.replay import replay, system_of
from syncproof.models.core import Core
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.narrate import NotEnabled, follow
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.system import System
from syncproof.models.transitions import Step
from syncproof.models.verdict import Answer, Trace, from_data, to_data
from tests.small import FlagAfterData, OneRound, instance, verdict, with_settings

BROKEN = {
    "overtaken": with_settings(instance(FlagAfterData), quiet=False),
    "hang": with_settings(instance(FlagAfterData), flag=False),
    "torn": instance(OneRound, Profile("torn", store_atomicity=128)),
    "outlived": instance(OneRound),
}
ENGINES = ("reference", "reduced")


def trace_of(made: Instance, engine: str) -> Trace:
    found = verdict(made, engine).trace
    assert found is not None
    return found


def steps_of(trace: Trace) -> list[Step]:
    return [Step(each.kind, each.process, each.what[:-1], each.what[-1]) for each in trace.steps]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BROKEN)
def test_trace_replays(name: str, engine: str) -> None:
    """Every trace walks through a fresh model and breaks the same property, also from its JSON."""
    trace = trace_of(BROKEN[name], engine)
    loaded = from_data(Trace, json.loads(json.dumps(to_data(trace))), "trace.json")
    assert replay(loaded, BROKEN[name]).reproduced


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BROKEN)
def test_trace_does_not_replay_on_the_mended_protocol(name: str, engine: str) -> None:
    """On a protocol without the fault the same steps are not possible or break nothing."""
    trace = trace_of(BROKEN[name], engine)
    mended = instance(FlagAfterData)
    result = replay(trace, mended)
    assert not result.reproduced
    assert result.message


@pytest.mark.parametrize("name", BROKEN)
def test_no_single_step_of_a_reduced_trace_can_be_left_out(name: str) -> None:
    """Without any one of its steps the run is not possible or does not break the property."""
    trace = trace_of(BROKEN[name], "reduced")
    for i in range(len(trace.steps)):
        fewer = dataclasses.replace(trace, steps=trace.steps[:i] + trace.steps[i + 1 :])
        if trace.property == "deadlock-free":
            assert not _knot_is_in_place(fewer, trace, BROKEN[name])
        else:
            assert not replay(fewer, BROKEN[name]).reproduced


def _knot_is_in_place(fewer: Trace, trace: Trace, made: Instance) -> bool:
    system = system_of(fewer, made)
    try:
        taken = follow(system, steps_of(fewer))
    except NotEnabled:
        return False
    full = follow(system, steps_of(trace))
    if not taken or not full:
        return False
    return _blocked(system, taken[-1][1].state) == _blocked(system, full[-1][1].state)


def _blocked(system: System, state: tuple[int, ...]) -> set[tuple[int, int]]:
    return {
        (p, state[p])
        for p in range(system.processes)
        if not system.process_transitions(state, p) and system.node(state, p).state == "run"
    }


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "hang"])
def test_reference_has_no_more_steps_than_reduced(name: str) -> None:
    """The breadth-first search over all interleavings promises the fewest steps.

    A hang is left out: there the reduced run stops where the blocked processes are, the other
    goes on until nobody can take a step.
    """
    fewest, reduced = trace_of(BROKEN[name], "reference"), trace_of(BROKEN[name], "reduced")
    assert fewest.property != reduced.property or len(fewest.steps) <= len(reduced.steps)
    assert fewest.fewest and not reduced.fewest


def test_overtaken_payload_takes_five_steps() -> None:
    """Put, put, flag lands, wait, load: five steps, by hand, and the sentence names the edge."""
    trace = trace_of(BROKEN["overtaken"], "reference")
    lane = [(step.kind, step.actor) for step in trace.steps]
    assert len(lane) == 5
    assert trace.missing_edge.startswith("nothing orders the landing of")
    assert "receiver@rank" in trace.missing_edge
    assert "small.py" in trace.missing_edge


def test_altered_trace_is_noticed() -> None:
    """A trace whose step reads another value than the model's is not reproduced."""
    trace = trace_of(BROKEN["overtaken"], "reference")
    last = dataclasses.replace(trace.steps[-1], text="load data[1][0] reads something else")
    altered = dataclasses.replace(trace, steps=(*trace.steps[:-1], last))
    result = replay(altered, BROKEN["overtaken"])
    assert not result.reproduced
    assert result.position == len(trace.steps) - 1


class Onlooker(Protocol):
    """A third rank fetches what rank 0 has put to rank 1, after a quiet that is to rank 1 only."""

    fresh: bool = parameter(True, "the third rank is held to fetch what was put")

    def memory(self) -> None:
        self.data = Region(owner=1, block=32)
        self.done = Region(owner=2, block=32)

    @role(on=[0])
    async def writer(self, core: Core) -> None:
        await core.put(self.data[1], 1)
        await core.quiet()
        await core.put(self.done[2], 1)
        await core.quiet()

    @role(on=[2])
    async def onlooker(self, core: Core) -> None:
        await core.wait_until(self.done[2], lambda done: done == 1)
        core.check(await core.get(self.data[1]) == self.fresh, "fetched something else")


@pytest.mark.parametrize(
    ("fresh", "words"),
    [(True, ["get data[1] reads 0"]), (False, ["1 becomes visible to others at data[1]"])],
)
def test_what_others_see_late_is_told(fresh: bool, words: list[str]) -> None:
    """A trace says what a read was served with, and when a write becomes visible to others."""
    made = with_settings(instance(Onlooker, Profile("late", quiet="target"), ranks=3), fresh=fresh)
    question = question_of(made, "onlooker", properties=("checks",))
    trace = check(made, question, "reference").trace
    assert trace is not None
    told = [each.text for each in trace.steps]
    assert [word for word in words if word not in told] == []
    assert replay(trace, made).reproduced


class Writers(Protocol):
    """Two ranks put to one word, for which one of them waits in the end, or nobody."""

    waits: bool = parameter(False, "the second waits for the word")

    def memory(self) -> None:
        self.word = Region(owner=1, block=32)

    @role
    async def writer(self, core: Core) -> None:
        await core.put(self.word[1], 1)
        await core.barrier()
        if self.waits and core.rank == 1:
            await core.wait_until(self.word[1], lambda word: word == 1)


def test_puts_that_serve_a_wait_behind_the_trace_do_not_race() -> None:
    """Two puts that raced are no race any more once a wait looks at them, wherever it is."""
    made = instance(Writers)
    trace = trace_of(made, "reference")
    assert trace.property == "race-free"
    assert replay(trace, made).reproduced
    assert verdict(with_settings(made, waits=True), "reference").answer is Answer.PROVED
    assert not replay(trace, with_settings(made, waits=True)).reproduced
