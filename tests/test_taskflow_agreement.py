"""Graph against exploration: the two say the same of random small schedules, sound and broken."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, given, settings

from syncproof.checkers.explicit.check import Budget, check, question_of
from syncproof.checkers.schedule.check import check as check_by_graph
from syncproof.checkers.schedule.clocks import Clocks
from syncproof.checkers.schedule.execution import execute
from syncproof.checkers.schedule.program import unroll
from syncproof.checkers.smt.check import check as solve
from syncproof.checkers.smt.unrolling import Unrolling
from syncproof.models.bounds import Bounds
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.taskflow.findings import HANG, RESET, THRESHOLDS
from syncproof.models.taskflow.schedule import COUNTER, Schedule
from syncproof.models.verdict import Answer
from syncproof.protocols.taskflow import Meant, protocol_of
from tests.taskflow_random import is_valid, schedules
from tests.test_taskflow_checks import BROKEN, SOUND

UNORDERED = load_profile("cm384,same_address_order=false")
"""The graph takes the fabric to order nothing, not even the writes of one queue to one tile."""
ASKED = ("deadlock-free", "race-free", "quiescent", "checks")


def explored(
    schedule: Schedule,
    meant: Meant | None = None,
    properties: tuple[str, ...] = ASKED,
    states: int = 20_000,
) -> Answer:
    """What exploring every interleaving says, on a fabric that orders nothing."""
    instance = instance_of(schedule, meant)
    question = question_of(instance, schedule.name, properties=properties)
    return check(instance, question, "reduced", Budget(states=states)).answer


def instance_of(schedule: Schedule, meant: Meant | None = None) -> Instance:
    """The schedule as a protocol, on the fabric that orders nothing."""
    bounds = Bounds(ranks=schedule.ranks, rounds=1)
    return Instance(protocol_of(schedule, meant), bounds, UNORDERED, {})


def solved(schedule: Schedule, properties: tuple[str, ...] = ASKED) -> Answer:
    """What z3 says of the schedule as one formula, within some seconds."""
    instance = instance_of(schedule)
    question = question_of(instance, schedule.name, properties=properties)
    return solve(instance, question, budget=Budget(seconds=20)).answer


def meant_by(schedule: Schedule) -> Meant:
    """For each wait the triggers that precede it in every run: the claim behind `thresholds`."""
    program = unroll(schedule)
    clocks = Clocks(program, execute(program))
    found = {}
    for node in range(program.nodes):
        for number, _ in program.waits.of(node):
            group = program.group(number)
            sure = frozenset(t for t in group.nodes if t != node and clocks.precedes(t, node))
            found[node, group.event] = sure
    return found


@pytest.mark.parametrize("name", [n for n in SOUND if n not in ("15 sets", "credit")])
def test_exploration_proves_the_sound_ones(name: str) -> None:
    """What the graph proves holds in every interleaving."""
    assert explored(SOUND[name]()) is Answer.PROVED


TOO_LARGE = ("16 sets",)
"""Sixteen sets in every order with the waits are more than the exploration gets through."""


@pytest.mark.parametrize("name", [n for n in BROKEN if n not in TOO_LARGE])
def test_exploration_breaks_the_broken_ones(name: str) -> None:
    """What the graph refutes has an interleaving that goes wrong."""
    assert explored(BROKEN[name][0]()) is Answer.VIOLATED


def compared(schedule: Schedule) -> tuple[Answer, Answer]:
    """What the graph says that can be compared, and what the exploration says to it.

    A hang stands before all else. A threshold that is met by luck, or a trigger that is erased,
    need not show in any run.
    """
    found = check_by_graph(schedule, price=False).checked
    hang, hangs = found.of(HANG), explored(schedule, properties=("deadlock-free",))
    if hang is not Answer.UNDECIDED and Answer.VIOLATED in (hang, hangs):
        return hang, hangs
    told = {each.answer for each in found.properties if each.property not in (THRESHOLDS, RESET)}
    by_graph = next(a for a in (Answer.VIOLATED, Answer.UNDECIDED, Answer.PROVED) if a in told)
    return by_graph, hangs if hangs is Answer.VIOLATED else explored(schedule)


@pytest.mark.heavy
@pytest.mark.parametrize("count", [40, pytest.param(300, marks=pytest.mark.long)])
def test_graph_and_exploration_agree(count: int) -> None:
    """The graph proves a random schedule exactly if exploration does, hangs each by themselves.

    At least three in ten of the schedules are sound, three in ten broken, and one in twenty at most
    is too large for the exploration.
    """
    said: Counter[Answer] = Counter()

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(schedules())
    def agree(schedule: Schedule) -> None:
        assume(is_valid(schedule))
        by_graph, by_exploring = compared(schedule)
        said[by_exploring] += 1
        assert by_exploring is by_graph or Answer.UNDECIDED in (by_graph, by_exploring)

    agree()
    whole = said.total()
    assert whole >= 0.9 * count, said
    assert said[Answer.PROVED] >= 0.3 * whole, said
    assert said[Answer.VIOLATED] >= 0.3 * whole, said
    assert said[Answer.UNDECIDED] <= whole / 20, said


def test_a_schedule_that_was_looked_through_can_be_watched() -> None:
    """What it keeps of its own, arrays that nobody can watch, costs no proof."""
    schedule = SOUND["mbarrier"]()
    assert len(schedule.all_waits.event) and len(schedule.all_triggers.event)
    assert instance_of(schedule).unwatched() == ""


@pytest.mark.parametrize("name", [n for n in SOUND if n not in ("15 sets", "credit")])
def test_a_formula_proves_the_sound_ones(name: str) -> None:
    """What the graph proves z3 proves, of every kind of event, of pools and of two launches."""
    assert solved(SOUND[name]()) is Answer.PROVED


@pytest.mark.parametrize("name", [n for n in BROKEN if n not in TOO_LARGE])
def test_a_formula_breaks_the_broken_ones(name: str) -> None:
    """What the graph refutes has a run that z3 finds and the interpreter walks."""
    assert solved(BROKEN[name][0]()) is Answer.VIOLATED


@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.long)])
def test_graph_formula_and_exploration_agree(count: int) -> None:
    """Of random schedules, sound and broken, z3 says what the exploration and the graph say.

    At least a tenth are sound, a tenth broken, and one in ten at most is too much for z3.
    """
    said: Counter[Answer] = Counter()

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(schedules())
    def agree(schedule: Schedule) -> None:
        assume(is_valid(schedule))
        by_formula, (by_graph, by_exploring) = solved(schedule), compared(schedule)
        said[by_formula] += 1
        if by_formula is not Answer.UNDECIDED:
            assert by_graph in (by_formula, Answer.UNDECIDED)
            assert by_exploring in (by_formula, Answer.UNDECIDED)

    agree()
    assert said[Answer.PROVED] >= count / 10, said
    assert said[Answer.VIOLATED] >= count / 10, said
    assert said[Answer.UNDECIDED] <= count / 10, said


def test_what_has_been_read_does_not_multiply_local_states() -> None:
    """A queue at one of its tasks is in one local state, whatever the counters held before.

    So the formula has as many points as there are operations; told apart by what was read, two
    ranks with two launches would have hundreds.
    """
    system = instance_of(SOUND["barrier after zeroing"]()).system({})
    points = Unrolling(system, frozenset(ASKED)).points
    assert [len(each) for each in points] == [16, 16]


def test_pools_are_never_proved_wrongly() -> None:
    """With fewer cores than queues the graph proves and refutes only what exploration does too.

    Two tasks that never hold a core together do not race, so only hangs can be compared both ways.
    """
    said: Counter[tuple[Answer, Answer]] = Counter()

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(schedules(pooled=True))
    def agree(schedule: Schedule) -> None:
        assume(is_valid(schedule))
        found = check_by_graph(schedule, price=False).checked
        hangs = explored(schedule, properties=("deadlock-free",), states=200)
        said[found.of(HANG), hangs] += 1
        if found.of(HANG) is not Answer.UNDECIDED:
            assert hangs in (found.of(HANG), Answer.UNDECIDED)
        if found.answer is Answer.PROVED:
            assert explored(schedule, states=200) in (Answer.PROVED, Answer.UNDECIDED)

    agree()
    assert said[Answer.PROVED, Answer.PROVED] >= 5, said
    assert said[Answer.VIOLATED, Answer.VIOLATED] >= 2, said


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(schedules())
def test_what_precedes_a_wait_precedes_it_in_every_run(schedule: Schedule) -> None:
    """The triggers that the clocks put before a wait are issued in every run, and no others are.

    So `thresholds` rests on all runs: each further trigger is missing in some run.
    """
    assume(is_valid(schedule) and schedule.launches.count == 1)
    if check_by_graph(schedule, price=False).checked.of(HANG) is not Answer.PROVED:
        return
    sure = {
        key: triggers
        for key, triggers in meant_by(schedule).items()
        if schedule.events[key[1]].kind == COUNTER
    }
    if not sure:
        return
    assert explored(schedule, sure, ("checks",)) in (Answer.PROVED, Answer.VIOLATED)
    if explored(schedule, None, ("checks",)) is Answer.PROVED:
        assert explored(schedule, sure, ("checks",)) is Answer.PROVED
        for key, triggers in sure.items():
            everyone = {
                n for n, t in enumerate(schedule.tasks) if any(e == key[1] for e, _ in t.triggers)
            }
            for other in everyone - triggers - {key[0]}:
                more = {**sure, key: triggers | {other}}
                assert explored(schedule, more, ("checks",)) is Answer.VIOLATED
