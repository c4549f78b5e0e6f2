"""A schedule in, the answer for each property out."""

from __future__ import annotations

from dataclasses import dataclass

from syncproof.checkers.schedule.clocks import Clocks
from syncproof.checkers.schedule.collected import Collected
from syncproof.checkers.schedule.conflicts import Conflicts
from syncproof.checkers.schedule.cost import cost_of
from syncproof.checkers.schedule.counters import Counters, check_balances
from syncproof.checkers.schedule.execution import Costs, Execution, execute
from syncproof.checkers.schedule.hangs import explain_hang
from syncproof.checkers.schedule.implied import implied_events, implied_waits, only_counters
from syncproof.checkers.schedule.pools import crowded_queues, may_starve
from syncproof.checkers.schedule.program import Program, unroll
from syncproof.checkers.schedule.resets import check_resets
from syncproof.models.taskflow.collector import collector_paused
from syncproof.models.taskflow.findings import (
    CHECKED,
    HANG,
    PENDING,
    RESET,
    THRESHOLDS,
    Checked,
)
from syncproof.models.taskflow.schedule import Schedule
from syncproof.models.verdict import Answer, PropertyVerdict


@dataclass(frozen=True)
class Checking:
    """A check with what it was computed from, for pictures and comparisons."""

    checked: Checked
    program: Program
    execution: Execution


def check(schedule: Schedule, costs: Costs | None = None, *, price: bool = True) -> Checking:
    """Check a validated schedule by graph; ``price`` simulates what it costs as well."""
    with collector_paused():
        return _check(schedule, costs, price)


def _check(schedule: Schedule, costs: Costs | None, price: bool) -> Checking:
    program = unroll(schedule)
    execution = execute(program, costs)
    collected = Collected(program)
    if any(execution.is_stuck(node) for node in range(program.nodes)):
        explain_hang(program, execution, collected)
        check_balances(program, collected)
        return Checking(_stuck(schedule, program, collected), program, execution)
    clocks = Clocks(program, execution)
    counters = Counters(program, clocks, collected)
    Conflicts(program, clocks, collected).check()
    counters.check()
    check_resets(program, clocks, collected)
    waits = only_counters(program, implied_waits(program, clocks))
    gone = implied_events(program, waits)
    starving = _starving(program, clocks, collected)
    checked = Checked(
        schedule.name,
        len(schedule.tasks),
        dependencies(program),
        _answers(collected, clocks.exact, starving),
        tuple(collected.findings),
        tuple((schedule.tasks[number].name, name) for number, name in waits),
        tuple(gone),
        counters.persists(execution.sums),
        cost_of(program, execution, costs or Costs(), waits) if price else None,
    )
    return Checking(checked, program, execution)


def dependencies(program: Program) -> int:
    """Pairs of a trigger and a wait for its event: what the events order."""
    return int(program.triggered.sizes()[program.waits.first].sum())


def _starving(program: Program, clocks: Clocks, collected: Collected) -> str:
    """Why a task may spin for ever for want of a core; empty if none can."""
    if not crowded_queues(program):
        return ""
    if collected.counts[THRESHOLDS]:
        return "cores are fewer than queues, and what a wait waits for depends on the run"
    found = may_starve(program, clocks)
    if found is None:
        return ""
    waiter, notifier = map(program.name, found)
    return (
        f"{waiter} may spin on the last core of its pool while {notifier} needs one: "
        "ask the exploration"
    )


def _answers(collected: Collected, exact: bool, starving: str) -> tuple[PropertyVerdict, ...]:
    """Proved is what holds as long as events count what is added to them: where one overflows, or
    a trigger is erased, the rest is not known."""
    miscounts = collected.counts[PENDING] or collected.counts[RESET]
    found = []
    for name in CHECKED:
        if collected.counts[name]:
            answer = PropertyVerdict(name, Answer.VIOLATED, collected.first(name))
        elif miscounts:
            why = "an event overflows, means two things, or loses a trigger"
            answer = PropertyVerdict(name, Answer.UNDECIDED, why)
        elif not exact:
            answer = PropertyVerdict(name, Answer.UNDECIDED, "the clocks did not settle")
        elif name == HANG and starving:
            answer = PropertyVerdict(name, Answer.UNDECIDED, starving)
        else:
            answer = PropertyVerdict(name, Answer.PROVED)
        found.append(answer)
    return tuple(found)


def _stuck(schedule: Schedule, program: Program, collected: Collected) -> Checked:
    """A schedule that hangs: what precedes what is not known, so all else is not decided."""
    answers = []
    for name in CHECKED:
        if collected.counts[name]:
            answers.append(PropertyVerdict(name, Answer.VIOLATED, collected.first(name)))
        else:
            answers.append(PropertyVerdict(name, Answer.UNDECIDED, "the schedule hangs"))
    assert collected.counts[HANG], "a stuck schedule must have a reason"
    return Checked(
        schedule.name,
        len(schedule.tasks),
        dependencies(program),
        tuple(answers),
        tuple(collected.findings),
    )
