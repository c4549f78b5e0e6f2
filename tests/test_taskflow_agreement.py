"""Graph against exploration: the two say the same of random small schedules, sound and broken."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncproof.checkers.explicit.check import Budget, check, question_of
from syncproof.checkers.schedule.check import check as check_by_graph
from syncproof.checkers.schedule.clocks import Clocks
from syncproof.checkers.schedule.execution import execute
from syncproof.checkers.schedule.program import unroll
from syncproof.models.bounds import Bounds
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.taskflow.builder import Builder
from syncproof.models.taskflow.findings import HANG, THRESHOLDS, Checked
from syncproof.models.taskflow.schedule import CROSS_CORE, FLAG, Schedule
from syncproof.models.verdict import Answer
from syncproof.protocols.taskflow import Meant, protocol_of
from tests.test_taskflow_checks import BROKEN, SOUND

UNORDERED = load_profile("cm384")
ASKED = ("deadlock-free", "race-free", "quiescent", "checks")


def explored(
    schedule: Schedule, meant: Meant | None = None, properties: tuple[str, ...] = ASKED
) -> Answer:
    """What exploring every interleaving says, on a fabric that orders nothing."""
    kind = protocol_of(schedule, meant)
    instance = Instance(kind, Bounds(ranks=schedule.ranks, rounds=1), UNORDERED, {})
    question = question_of(instance, schedule.name, properties=properties)
    return check(instance, question, "reduced", Budget(states=20_000)).answer


def meant_by(schedule: Schedule) -> Meant:
    """For each wait the triggers that precede it in every run: the claim behind `thresholds`."""
    program = unroll(schedule)
    clocks = Clocks(program, execute(program))
    found = {}
    for node, waits in enumerate(program.waits):
        for group, _ in waits:
            triggers = program.groups[group].nodes
            sure = frozenset(t for t in triggers if t != node and clocks.precedes(t, node))
            found[node, program.groups[group].event] = sure
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


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """A few tasks on two or three queues of one or two ranks, with counters, flags and tiles."""
    ranks = draw(st.integers(1, 2))
    b = Builder(ranks, name="random")
    queues = [("aic", 0), ("aiv", 0), ("far", ranks - 1)][: draw(st.integers(2, 3))]
    for name, rank in queues:
        b.queue(name, rank, core="aic" if name == "aic" else "aiv")
    b.tensor("x", 0, 2)
    b.tensor("y", ranks - 1, 1, is_input=True)
    b.event("c0", 0)
    b.event("c1", ranks - 1)
    kind = draw(st.sampled_from([CROSS_CORE, FLAG]))
    b.event("f", 0, kind=kind, id=0, mode=2, cores=("aic", "aiv"))
    rank_of = dict(queues)
    plan = []
    for number in range(draw(st.integers(2, 5))):
        queue = draw(st.sampled_from([name for name, _ in queues]))
        accesses = st.lists(
            st.sampled_from([("x", 0, 1), ("x", 1, 2), ("x", 0, 2), ("y", 0, 1)]), max_size=1
        )
        home = {"c0": 0, "c1": ranks - 1}
        local = [e for e, rank in home.items() if rank == rank_of[queue]]
        waits = {e: draw(st.integers(1, 2)) for e in local if draw(st.integers(0, 2)) == 0}
        triggers = {e: draw(st.integers(1, 2)) for e in home if draw(st.integers(0, 2)) == 0}
        if queue == "aiv" and draw(st.booleans()):
            waits["f"] = 1
        if queue == "aic" and draw(st.booleans()):
            triggers["f"] = 1
        quiet = draw(st.integers(0, 3)) > 0
        plan.append((f"t{number}", queue, draw(accesses), draw(accesses), waits, triggers, quiet))
    triggered = {e for *_, triggers, _ in plan for e in triggers}
    for name, queue, reads, writes, waits, triggers, quiet in plan:
        kept = {e: n for e, n in waits.items() if e in triggered}
        b.task(name, queue, reads=reads, writes=writes, waits=kept, triggers=triggers, quiet=quiet)
    if kind == FLAG:
        # source and target of the flag
        b._events["f"] = type(b._events["f"])("f", FLAG, 0, 0, cores=("aic", "aiv"))
    return b.build()


def proved_but_for_thresholds(found: Checked) -> bool:
    """Whether all that a single run can show wrong is proved."""
    return all(
        each.answer is Answer.PROVED for each in found.properties if each.property != THRESHOLDS
    )


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(schedules())
def test_graph_and_exploration_agree(schedule: Schedule) -> None:
    """The graph proves a random schedule exactly if exploration does, hangs each by themselves."""
    found = check_by_graph(schedule, price=False).checked
    hangs = explored(schedule, properties=("deadlock-free",))
    assert (found.of(HANG) is Answer.VIOLATED) == (hangs is Answer.VIOLATED)
    if found.of(HANG) is Answer.PROVED:
        expected = Answer.PROVED if proved_but_for_thresholds(found) else Answer.VIOLATED
        assert explored(schedule) is expected


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(schedules())
def test_what_precedes_a_wait_precedes_it_in_every_run(schedule: Schedule) -> None:
    """The triggers that the clocks put before a wait are issued in every run, and no others are.

    So `thresholds` rests on all runs: each further trigger is missing in some run.
    """
    if check_by_graph(schedule, price=False).checked.of(HANG) is not Answer.PROVED:
        return
    sure = {key: triggers for key, triggers in meant_by(schedule).items() if key[1] != "f"}
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
