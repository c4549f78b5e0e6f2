"""The graph's answers on schedules with planted faults, and on the generated ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from syncproof.checkers.schedule.check import check
from syncproof.checkers.schedule.cost import contention, contention_over_time, sending
from syncproof.checkers.schedule.execution import Costs
from syncproof.models.taskflow.builder import Builder
from syncproof.models.taskflow.findings import (
    HANG,
    INITIALISED,
    ORDER,
    PENDING,
    QUIESCENT,
    RESET,
    THRESHOLDS,
    Checked,
)
from syncproof.models.taskflow.moe import BACKWARD, FORWARD, Layer
from syncproof.models.taskflow.schedule import Schedule
from syncproof.models.taskflow.scheduling import generate
from syncproof.models.verdict import Answer
from syncproof.reports.gantt import Gantt, bars_of, to_perfetto, to_svg
from tests import taskflow_faults as faults

SOUND: dict[str, Callable[[], Schedule]] = {
    "pair": faults.pair,
    "15 sets": lambda: faults.cross_core(15, 15),
    "credit": lambda: faults.cross_core(40, 40, credit=True),
    "id in turn": lambda: faults.id_reused(ordered=True),
    "flag in turn": lambda: faults.flag_set_twice(ordered=True),
    "mbarrier": lambda: faults.mbarrier(ordered=True),
    "phases in order": lambda: faults.shared_by_phases(ordered=True),
    "barrier after zeroing": lambda: faults.zeroing("after"),
    "pool with room": lambda: faults.pool(2),
}
BROKEN: dict[str, tuple[Callable[[], Schedule], str, set[str]]] = {
    "order reversed": (faults.order_reversed, HANG, {"use b", "make b", "use a", "make a"}),
    "threshold too high": (lambda: faults.pair(3), HANG, {"gemm", "put0", "put1"}),
    "threshold too low": (lambda: faults.pair(1), THRESHOLDS, {"gemm", "put0", "put1"}),
    "too many triggers": (lambda: faults.pair(2, triggers=2), THRESHOLDS, {"gemm", "put0"}),
    "half a tile": (lambda: faults.pair(1), ORDER, {"gemm"}),
    "id reused while pending": (
        lambda: faults.id_reused(ordered=False),
        PENDING,
        {"set second", "wait first"},
    ),
    "16 sets": (lambda: faults.cross_core(16, 16), PENDING, {"set15", "wait0"}),
    "core without tiles skips its waits": (lambda: faults.cross_core(3, 0), QUIESCENT, {"set2"}),
    "unbalanced at exit": (lambda: faults.cross_core(3, 2), QUIESCENT, {"set2"}),
    "flag set twice": (lambda: faults.flag_set_twice(ordered=False), PENDING, {"load1", "add0"}),
    "mbarrier overrun": (lambda: faults.mbarrier(ordered=False), PENDING, {"mma0"}),
    "empty tile is silent": (faults.silent_empty_tile, HANG, {"gemm", "tile0", "tile1"}),
    "signal before its data": (lambda: faults.pair(quiet=False), ORDER, {"put0", "gemm"}),
    "two phases, one event": (
        lambda: faults.shared_by_phases(ordered=False),
        THRESHOLDS,
        {"first", "one", "two"},
    ),
    "its own trigger counted": (faults.counts_itself, THRESHOLDS, {"both", "first", "second"}),
    "no barrier": (lambda: faults.zeroing("none"), RESET, {"signal0"}),
    "barrier before zeroing": (lambda: faults.zeroing("before"), RESET, {"signal1"}),
}


def checked(schedule: Schedule) -> Checked:
    """What the graph says of a schedule."""
    return check(schedule).checked


@pytest.mark.parametrize("name", SOUND)
def test_sound_schedule_is_proved(name: str) -> None:
    """A schedule that keeps every rule is proved."""
    found = checked(SOUND[name]())
    assert found.answer is Answer.PROVED, found.findings


@pytest.mark.parametrize("name", BROKEN)
def test_planted_fault_is_found_with_its_tasks(name: str) -> None:
    """Each planted fault breaks its property, and the finding names the offending tasks."""
    make, property, tasks = BROKEN[name]
    found = checked(make())
    assert found.of(property) is Answer.VIOLATED
    named = {task for each in found.findings if each.property == property for task in each.tasks}
    assert tasks <= named


def test_cycle_is_printed_in_order() -> None:
    """A cycle names its tasks one after the other, with why each waits for the next."""
    [finding] = checked(faults.order_reversed()).findings
    assert finding.message == (
        "a cycle: use b waits for b from make b is queued behind use a waits for a from "
        "make a is queued behind use b"
    )
    assert finding.tasks == ("use b", "make b", "use a", "make a")


def test_silent_tile_is_named() -> None:
    """The tile of the same operator that triggers nothing is pointed out."""
    [finding] = checked(faults.silent_empty_tile()).findings
    assert "of the same operator tile2 triggers nothing" in finding.message


def test_pool_without_room_is_not_proved() -> None:
    """A spinner that may hold the only core is left to the exploration."""
    assert checked(faults.pool(1)).of(HANG) is not Answer.PROVED


def test_pool_without_room_is_not_proved_if_either_of_two_may_notify() -> None:
    """No notifier surely precedes the spinner, and yet it may hold the core that both need."""
    found = checked(faults.pool_of_either())
    assert found.of(HANG) is Answer.UNDECIDED
    assert found.of(THRESHOLDS) is Answer.VIOLATED


def test_reading_before_writing_is_found() -> None:
    """A reader that is ordered before its writer reads what nobody has written."""
    b = Builder(ranks=1)
    b.tensor("x", 0, 1)
    b.queue("aiv", 0)
    b.task("read", "aiv", reads=[("x", 0, 1)])
    b.task("write", "aiv", writes=[("x", 0, 1)])
    found = checked(b.build())
    assert found.of(INITIALISED) is Answer.VIOLATED
    assert found.of(ORDER) is Answer.PROVED


def test_implied_wait_is_reported_and_only_it() -> None:
    """Of two waits the one that the other implies can go; the other cannot."""
    b = Builder(ranks=1)
    b.tensor("x", 0, 1)
    for name in ("a", "b", "c"):
        b.queue(name, 0)
    b.event("written")
    b.event("read")
    b.task("write", "a", writes=[("x", 0, 1)], triggers={"written": 1})
    b.task("read", "b", waits={"written": 1}, reads=[("x", 0, 1)], triggers={"read": 1})
    b.task("last", "c", waits={"written": 1, "read": 1}, reads=[("x", 0, 1)])
    assert checked(b.build()).implied == (("last", "written"),)


# Generated schedules


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
@pytest.mark.parametrize("routing", ["balanced", "skewed"])
def test_generated_schedule_is_proved_over_two_launches(direction: str, routing: str) -> None:
    """The generated passes are proved with zeroing and a barrier between two launches."""
    layer = Layer(ranks=4, experts=8, tiles=2, direction=direction, routing=routing)
    assert checked(generate(layer, launches=2)).answer is Answer.PROVED


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
def test_every_event_is_needed_or_implied(direction: str) -> None:
    """Without any one event a small schedule is refuted, or the event was reported as implied."""
    schedule = generate(Layer(ranks=2, experts=4, direction=direction))
    whole = checked(schedule)
    refuted = {
        name
        for name in schedule.events
        if check(schedule.without_events([name]), price=False).checked.answer is Answer.VIOLATED
    }
    assert refuted | set(whole.implied_events) == set(schedule.events)
    assert not refuted & set(whole.implied_events)
    assert refuted


def test_implied_events_can_all_go_together() -> None:
    """What is reported as implied can be removed at once without losing the proof."""
    schedule = generate(Layer(ranks=2, experts=4, direction=BACKWARD))
    implied = checked(schedule).implied
    gone = {(task, event) for task, event in implied}
    tasks = tuple(
        replace(task, waits=tuple(w for w in task.waits if (task.name, w[0]) not in gone))
        for task in schedule.tasks
    )
    assert implied
    assert checked(replace(schedule, tasks=tasks)).answer is Answer.PROVED


def test_makespan_is_within_1_3_of_what_bounds_it() -> None:
    """The generated schedules are close to the larger of critical path and busiest queue."""
    for direction in (FORWARD, BACKWARD):
        for ranks in (2, 4):
            layer = Layer(ranks=ranks, experts=8 * ranks, tiles=2, links=4, direction=direction)
            cost = checked(generate(layer)).cost
            assert cost is not None
            assert cost.bound <= cost.makespan <= 1.3 * cost.bound
            assert cost.by_operator > 0


def test_expert_without_a_token_still_signals() -> None:
    """Skewed routing leaves the last expert without tokens, and its tiles trigger all the same."""
    schedule = generate(Layer(ranks=2, experts=4, routing="skewed"))
    last = [t for t in schedule.tasks if t.name.startswith("dispatch") and "to1.e1" in t.name]
    assert last and all(t.triggers and not t.writes for t in last)


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
@pytest.mark.parametrize("ranks", [4, 8])
def test_rank_aware_order_takes_contention_from_all_ranks_to_one(
    ranks: int, direction: str
) -> None:
    """Figure 6 of the paper: naive order has all ranks send to one at once, rotated order one.

    On balanced routing, with as many products of a turn as matrix cores; in every exchange.
    """
    peaks = {}
    for reorder in (False, True):
        layer = Layer(
            ranks=ranks,
            experts=2 * ranks,
            columns=2,
            aic=4,
            links=2,
            direction=direction,
            reorder=reorder,
        )
        found = check(generate(layer))
        exchanges = sending(found.program.schedule)
        assert len(exchanges) == 2
        peaks[reorder] = {
            operator: set(contention(found.program, found.execution, [operator]).values())
            for operator in exchanges
        }
        peaks[reorder]["all"] = set(contention(found.program, found.execution).values())
    assert set(map(max, peaks[True].values())) == {1}
    first = "dispatch" if direction == FORWARD else "combine_grad"
    assert peaks[False][first] == peaks[False]["all"] == {ranks}


def test_contention_over_time_by_hand() -> None:
    """Two ranks send to a third for 3 and 5 us, the second of them from 1 us on."""
    b = Builder(ranks=3)
    b.tensor("x", 2, 2)
    for rank in range(2):
        b.queue(f"q{rank}", rank)
    b.task("late", "q1", duration=1)
    for rank in range(2):
        writes = [("x", rank, rank + 1)]
        b.task(f"send{rank}", f"q{rank}", writes=writes, duration=3 + 2 * rank, operator="send")
    found = check(b.build())
    levels = contention_over_time(found.program, found.execution)
    assert levels[2] == [(0, 1), (1, 2), (3, 1), (6, 0)]
    assert not levels[0] and not levels[1]
    assert contention(found.program, found.execution)[2] == 2


def test_pictures_show_the_failing_waits_and_the_cycle() -> None:
    """Both pictures draw each edge of the cycle, and mark the two tasks that wait for ever."""
    found = check(faults.order_reversed())
    schedule, run = found.program.schedule, found.execution
    bars = bars_of(schedule, run.start, run.end)
    gantt = Gantt(schedule, bars, found.checked.findings, {0: [(0.0, 1), (1.0, 0)]})
    svg = to_svg(gantt)
    ElementTree.fromstring(svg)
    assert svg.count("marker-end") == len(found.checked.findings[0].edges) == 4
    assert svg.count('stroke="#d62728" stroke-width="2"') == 2
    assert "senders to rank 0" in svg
    events = json.loads(to_perfetto(gantt))["traceEvents"]
    phases = Counter(event["ph"] for event in events)
    assert phases["s"] == phases["f"] == 4
    assert phases["i"] == 2
    assert phases["C"] == 2
    waiting = {event["tid"] for event in events if event["ph"] == "i"}
    assert len(waiting) == 2


def test_cost_of_two_queues_by_hand() -> None:
    """Makespan, critical path, idle time and operator time of a case computed by hand."""
    b = Builder(ranks=1)
    b.queue("a", 0)
    b.queue("b", 0)
    b.event("e")
    b.task("a0", "a", duration=2, triggers={"e": 1}, operator="one")
    b.task("a1", "a", duration=3, operator="one")
    b.task("b0", "b", waits={"e": 1}, duration=4, operator="two")
    cost = check(b.build(), Costs(wait=1, barrier=10)).checked.cost
    assert cost is not None
    assert cost.makespan == 17  # 2, then 1 + 4 beside 3, then the end of the launch: 10
    assert cost.idle == {"a": 12, "b": 12}
    assert cost.busiest_queue == 5
    assert cost.by_operator == (3 + 10) + (4 + 10)  # one: 2 and 3 on two cores


def test_transfers_one_by_one_use_the_cores_that_make_transfers() -> None:
    """By hand: four transfers on the one of two vector cores that makes transfers, 4 * 3 us, then
    two vector tasks on both at once; the tile schedule is done when the second half is: 13 us."""
    b = Builder(ranks=2)
    b.tensor("x", 1, 4)
    b.queue("link", 0)
    b.queue("other", 0)
    for number in range(2):
        b.event(f"e{number}")
    for number in range(4):
        b.task(
            f"send{number}",
            "link",
            writes=[("x", number, number + 1)],
            triggers={f"e{number // 2}": 1},
            duration=3,
            operator="send",
        )
    for number in range(2):
        b.task(f"add{number}", "other", waits={f"e{number}": 2}, duration=1, operator="add")
    cost = checked(b.build()).cost
    assert cost is not None
    assert cost.makespan == 13
    assert cost.by_operator == 4 * 3 + 1


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
@pytest.mark.parametrize("ranks", [2, 4])
def test_generated_schedules_gain_over_operators_one_by_one(direction: str, ranks: int) -> None:
    """The tile schedule is faster than its operators one after the other on the same cores."""
    layer = Layer(
        ranks=ranks, experts=2 * ranks, columns=2, aic=24, aiv=48, links=2, direction=direction
    )
    cost = checked(generate(layer)).cost
    assert cost is not None
    assert cost.by_operator > cost.makespan
