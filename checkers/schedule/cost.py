"""What a schedule costs: one simulated run with the tasks' durations, and what bounds it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace

from syncproof.checkers.schedule.execution import Costs, Execution, execute
from syncproof.checkers.schedule.program import Program, unroll
from syncproof.models.taskflow.findings import Cost
from syncproof.models.taskflow.schedule import Schedule, Task


def cost_of(
    program: Program, execution: Execution, costs: Costs, implied: Iterable[tuple[int, str]]
) -> Cost:
    """The cost of a run that ``execute`` gave for ``costs``; the implied waits can be left out."""
    makespan = execution.makespan
    queues = list(program.schedule.queues)
    busy = [
        sum(execution.end[node] - execution.start[node] for node in program.members[number])
        for number in range(len(queues))
    ]
    slim = without_waits(program.schedule, implied)
    shorter = execute(unroll(slim), costs).makespan if slim is not program.schedule else makespan
    return Cost(
        makespan,
        execute(program, costs, in_order=False).makespan,
        max(busy, default=0.0),
        operator_by_operator(program, execution, costs) * program.schedule.launches.count,
        shorter,
        {name: makespan - busy[i] for i, name in enumerate(queues)},
        contention(program, execution),
    )


def without_waits(schedule: Schedule, waits: Iterable[tuple[int, str]]) -> Schedule:
    """The schedule without some waits, and without the events that nobody waits for any more."""
    gone = set(waits)
    if not gone:
        return schedule
    tasks = list(schedule.tasks)
    for number in {number for number, _ in gone}:
        kept = tuple(pair for pair in tasks[number].waits if (number, pair[0]) not in gone)
        tasks[number] = replace(tasks[number], waits=kept)
    slim = replace(schedule, tasks=tuple(tasks))
    waited = {name for task in tasks for name, _ in task.waits}
    lost = {name for _, name in gone} - waited
    return slim.without_events(lost) if lost else slim


def gains(schedule: Schedule, events: Iterable[str], costs: Costs) -> dict[str, float]:
    """By how much the makespan is shorter without each event, one at a time."""
    whole = execute(unroll(schedule), costs).makespan
    return {
        name: whole - execute(unroll(schedule.without_events([name])), costs).makespan
        for name in events
    }


def operator_by_operator(program: Program, execution: Execution, costs: Costs) -> float:
    """A launch, operator after operator, all cores of a kind on each, a barrier after each.

    Transfers run on the cores that make transfers in the schedule too: links are not more for being
    used one operator at a time. Operators come in the order of their first tasks in the run; tasks
    without one are each their own. Tasks go to the core that is free first, the longest first.
    """
    schedule = program.schedule
    senders = sending(schedule) - {""}
    cores: dict[tuple[int, str, bool], set[str]] = {}
    phases: dict[str, dict[tuple[int, str, bool], list[float]]] = {}
    for queue in schedule.queues.values():
        cores.setdefault((queue.rank, queue.core, False), set()).add(queue.name)
    for node in execution.order:
        if node >= len(schedule.tasks):
            continue
        task = schedule.tasks[node]
        queue = schedule.queues[task.queue]
        is_transfer = task.operator in senders
        kind = (queue.rank, queue.core, is_transfer)
        if is_transfer:
            cores.setdefault(kind, set()).add(task.queue)
        phase = phases.setdefault(task.operator or task.name, {})
        phase.setdefault(kind, []).append(task.duration)
    return sum(
        max(_spread(durations, len(cores[kind])) for kind, durations in phase.items())
        + costs.barrier
        for phase in phases.values()
    )


def _spread(durations: list[float], cores: int) -> float:
    ends = [0.0] * min(cores, len(durations))
    for each in sorted(durations, reverse=True):
        heapq.heapreplace(ends, ends[0] + each)
    return max(ends)


def destination_of(schedule: Schedule, task: Task) -> int | None:
    """The rank that a task writes to, if it is a transfer; to its own rank counts for transfers
    of an operator that also sends to others."""
    for access in task.writes:
        return schedule.tensors[access.tensor].rank
    return None


def sending(schedule: Schedule) -> set[str]:
    """The operators some of whose tasks write to another rank."""
    return {
        task.operator
        for task in schedule.tasks
        if destination_of(schedule, task) not in (None, schedule.rank_of(task))
    }


def contention_over_time(
    program: Program, execution: Execution, operators: Iterable[str] | None = None
) -> dict[int, list[tuple[float, int]]]:
    """For each rank how many ranks send to it, as (time from which on, senders)."""
    schedule = program.schedule
    chosen = sending(schedule) if operators is None else set(operators)
    changes: dict[int, list[tuple[float, int, int]]] = {r: [] for r in range(schedule.ranks)}
    for node in range(program.tasks):
        task = schedule.tasks[program.task_of(node)]
        target = destination_of(schedule, task)
        if task.operator in chosen and target is not None and not execution.is_stuck(node):
            source = schedule.rank_of(task)
            changes[target].append((execution.start[node], 1, source))
            changes[target].append((execution.end[node], -1, source))
    return {rank: _levels(each, schedule.ranks) for rank, each in changes.items()}


def _levels(changes: list[tuple[float, int, int]], ranks: int) -> list[tuple[float, int]]:
    open_of, senders = [0] * ranks, 0
    levels: list[tuple[float, int]] = []
    # Ends come before starts of the same moment; a microsecond's 1e-9 part is rounding.
    for time, change, source in sorted((round(t, 9), c, s) for t, c, s in changes):
        before = open_of[source] > 0
        open_of[source] += change
        senders += (open_of[source] > 0) - before
        if levels and levels[-1][0] == time:
            levels[-1] = (time, senders)
        else:
            levels.append((time, senders))
    return levels


def contention(
    program: Program, execution: Execution, operators: Iterable[str] | None = None
) -> dict[int, int]:
    """The most ranks that send to each rank at once."""
    over_time = contention_over_time(program, execution, operators)
    return {rank: max((n for _, n in levels), default=0) for rank, levels in over_time.items()}
