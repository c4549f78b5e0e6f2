"""Random small schedules: sound by construction, then each with one planted fault or none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from syncproof.models.errors import UserError
from syncproof.models.taskflow.builder import Builder
from syncproof.models.taskflow.schedule import (
    COUNTER,
    CROSS_CORE,
    FLAG,
    MBARRIER,
    Launches,
    Schedule,
    Task,
)
from syncproof.models.taskflow.validation import validate

QUEUES = (("aic", 0, "aic"), ("aiv", 0, "aiv"), ("far", 1, "aiv"))
"""Name, rank and core. Two queues share a rank, so flags have somewhere to go."""


@dataclass
class _Plan:
    """A task before its events are chosen."""

    queue: str
    rank: int
    reads: list[tuple[str, int, int]]
    writes: list[tuple[str, int, int]]
    waits: dict[str, int] = field(default_factory=dict)
    triggers: dict[str, int] = field(default_factory=dict)


@st.composite
def sound(draw: st.DrawFn, *, pooled: bool = False) -> Schedule:
    """Tasks in one order of all; where two of different queues conflict, an event orders them."""
    plans = [_plan(draw, number) for number in range(draw(st.integers(3, 4 if pooled else 5)))]
    two_launches = not pooled and draw(st.integers(0, 9)) == 0
    events: dict[str, dict[str, object]] = {}
    for second, later in enumerate(plans):
        for first in range(second):
            earlier = plans[first]
            is_needed = earlier.queue != later.queue and _conflict(earlier, later)
            if is_needed or draw(st.integers(0, 19)) == 0:
                _order(draw, f"e{first}.{second}", earlier, later, events, two_launches)
    zero = tuple(name for name, kind in events.items() if kind["kind"] == COUNTER)
    barrier = draw(st.sampled_from(["after", "both"]))
    b = Builder(2, "random", Launches(2, zero, barrier) if two_launches else Launches())
    if pooled:
        b.pool("cores", 0, draw(st.integers(1, 2)))
    for name, rank, core in QUEUES:
        b.queue(name, rank, core=core, pool="cores" if pooled and rank == 0 else "")
    b.tensor("x", 0, 2)
    b.tensor("y", 1, 1, is_input=True)
    for name, kind in events.items():
        b.event(name, **kind)  # type: ignore[arg-type]
    for number, plan in enumerate(plans):
        b.task(
            f"t{number}",
            plan.queue,
            reads=plan.reads,
            writes=plan.writes,
            waits=plan.waits,
            triggers=plan.triggers,
        )
    return b.build()


def _plan(draw: st.DrawFn, number: int) -> _Plan:
    """A task; the first ones write all tiles, so that what is read later was written."""
    # Mostly not where the last one is, else there is little that events order.
    queue, rank, _ = QUEUES[(number + draw(st.sampled_from((0, 0, 0, 1, 2)))) % len(QUEUES)]
    if number == 0:
        return _Plan(queue, rank, [], [("x", 0, 2)])
    tiles = st.sampled_from([("x", 0, 2), ("x", 0, 1), ("x", 1, 2), ("y", 0, 1)])
    accesses = [draw(tiles)]
    is_write = draw(st.booleans())
    return _Plan(queue, rank, [] if is_write else accesses, accesses if is_write else [])


def _conflict(one: _Plan, two: _Plan) -> bool:
    return any(
        a[0] == b[0] and a[1] < b[2] and b[1] < a[2]
        for first, second in ((one.writes, two.reads + two.writes), (one.reads, two.writes))
        for a in first
        for b in second
    )


def _order(
    draw: st.DrawFn,
    name: str,
    earlier: _Plan,
    later: _Plan,
    events: dict[str, dict[str, object]],
    two_launches: bool,
) -> None:
    """An event from one task to another, of a kind that can be between their queues."""
    kinds = [COUNTER, COUNTER]
    if earlier.rank == later.rank and earlier.queue != later.queue:
        kinds += [MBARRIER] if two_launches else [MBARRIER, CROSS_CORE, FLAG]
    kind = draw(st.sampled_from(kinds))
    made: dict[str, object] = {"kind": kind, "rank": later.rank}
    if kind in (CROSS_CORE, FLAG):
        # An id of its own each, while there are any; source and target of a flag are in order.
        used = sum(each["kind"] == kind for each in events.values())
        made["id"] = used % (6 if kind == FLAG else 11)
        made["cores"] = (earlier.queue, later.queue)
    joined = [n for n, e in events.items() if e["kind"] == COUNTER and n in later.waits]
    if kind == COUNTER and joined and draw(st.booleans()):
        name = joined[0]
    else:
        events[name] = made
    amount = draw(st.integers(1, 2)) if kind == COUNTER else 1
    if name in earlier.triggers:
        return
    earlier.triggers[name] = amount
    later.waits[name] = later.waits.get(name, 0) + amount


FAULTS = (
    "wait forgotten",
    "trigger forgotten",
    "threshold one too high",
    "threshold one too low",
    "one trigger too many",
    "two tasks exchanged",
    "no quiet",
    "ids exchanged",
    "no zeroing",
    "no barrier",
)
CHANGES = {
    "wait forgotten": ("waits", 0),
    "trigger forgotten": ("triggers", 0),
    "threshold one too high": ("waits", 1),
    "threshold one too low": ("waits", -1),
    "one trigger too many": ("triggers", 1),
}


@st.composite
def schedules(draw: st.DrawFn, *, pooled: bool = False) -> Schedule:
    """A quarter as they should be, the others with a fault that they have a place for."""
    schedule = draw(sound(pooled=pooled))
    broken = [made for fault in FAULTS for made in with_fault(schedule, fault)]
    if not broken or draw(st.integers(0, 3)) == 0:
        return schedule
    return draw(st.sampled_from(broken))


def with_fault(schedule: Schedule, fault: str) -> list[Schedule]:
    """The schedules that the fault makes, one for each of its places that leaves it valid."""
    launches = schedule.launches
    if fault == "no zeroing":
        made = [replace(schedule, launches=replace(launches, zero=()))] if launches.zero else []
    elif fault == "no barrier":
        bare = replace(schedule, launches=replace(launches, barrier="none"))
        made = [bare] if launches.count > 1 else []
    elif fault == "ids exchanged":
        made = _with_one_id(schedule)
    else:
        made = [
            replace(schedule, tasks=tuple(tasks))
            for at in range(len(schedule.tasks))
            for tasks in _worse(list(schedule.tasks), at, fault)
        ]
    return [each for each in made if is_valid(each)]


def _worse(tasks: list[Task], at: int, fault: str) -> list[list[Task]]:
    """The tasks with a fault at one of them, as often as it can be made there."""
    task = tasks[at]
    if fault == "two tasks exchanged":
        behind = next((n for n in range(at + 1, len(tasks)) if tasks[n].queue == task.queue), None)
        if behind is None:
            return []
        tasks[at], tasks[behind] = tasks[behind], task
        return [tasks]
    if fault == "no quiet":
        changed = [replace(task, quiet=False)] if task.writes and task.triggers else []
    else:
        key, step = CHANGES[fault]
        pairs = getattr(task, key)
        changed = [
            replace(task, **{key: _stepped(pairs, which, step)}) for which in range(len(pairs))
        ]
    return [[*tasks[:at], each, *tasks[at + 1 :]] for each in changed]


def _stepped(
    pairs: tuple[tuple[str, int], ...], which: int, step: int
) -> tuple[tuple[str, int], ...]:
    """The pairs with one amount changed, or without that pair."""
    name, amount = pairs[which]
    changed = [(name, amount + step)] if step else []
    return (*pairs[:which], *changed, *pairs[which + 1 :])


def _with_one_id(schedule: Schedule) -> list[Schedule]:
    """All flags of a kind share one id."""
    flags = [name for name, event in schedule.events.items() if event.id]
    events = {
        name: event._replace(id=0) if name in flags else event
        for name, event in schedule.events.items()
    }
    return [replace(schedule, events=events)] if flags else []


def is_valid(schedule: Schedule) -> bool:
    """Whether the schedule is one that is checked at all."""
    try:
        validate(schedule)
    except UserError:
        return False
    return True
