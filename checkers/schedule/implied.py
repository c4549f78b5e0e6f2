"""Waits that say nothing new: what they wait for precedes the task anyway, by its other waits."""

from __future__ import annotations

import numpy as np

from syncproof.checkers.schedule.clocks import Clocks
from syncproof.checkers.schedule.program import Program
from syncproof.models.taskflow.schedule import CONSUMING

LARGE = 256
"""Predecessors from which on they are not compared pair by pair."""


def implied_waits(program: Program, clocks: Clocks) -> list[tuple[int, str]]:
    """(task, event) of the waits that can all go together, in every launch alike.

    Removing one leaves every clock as it is, so those of one task can be removed after those of
    another; within a task they are removed one by one.
    """
    dropped: dict[tuple[int, str], int] = {}
    for node in clocks.order:
        number = program.task_of(node)
        if number >= 0 and program.waits[node]:
            for name in _implied_at(program, clocks, node):
                dropped[number, name] = dropped.get((number, name), 0) + 1
    times = program.schedule.launches.count
    return [pair for pair, count in sorted(dropped.items()) if count == times]


def implied_events(program: Program, waits: list[tuple[int, str]]) -> list[str]:
    """Events all of whose waits are implied, so that they need not exist."""
    gone = set(waits)
    needed = {
        name
        for number, task in enumerate(program.schedule.tasks)
        for name, _ in task.waits
        if (number, name) not in gone
    }
    candidates = {name for _, name in waits} - needed
    return [name for name in program.schedule.events if name in candidates]


def _implied_at(program: Program, clocks: Clocks, node: int) -> list[str]:
    queue, position = program.queue[node], program.position[node]
    fixed = [program.members[queue][position - 1]] if position else []
    fixed += program.before[node]
    needs: dict[str, list[int]] = {}
    unclear: set[str] = set()
    for group, threshold in program.waits[node]:
        name = program.groups[group].event
        found = clocks.needed(group, threshold)
        if found is None:
            unclear.add(name)
        else:
            needs.setdefault(name, []).extend(found)
    candidates = [name for name in needs if name not in unclear]
    if len(fixed) + len(needs) < 2 or not candidates:
        return []
    return _droppable(program, clocks, fixed, needs, candidates)


def _droppable(
    program: Program,
    clocks: Clocks,
    fixed: list[int],
    needs: dict[str, list[int]],
    candidates: list[str],
) -> list[str]:
    others = fixed + [node for nodes in needs.values() for node in nodes]
    if len(others) > LARGE:
        return _droppable_by_rows(program, clocks, fixed, needs, candidates)
    queues = np.array([program.queue[node] for node in others])
    positions = np.array([program.position[node] for node in others])
    # covers[a, b]: the node others[a] has others[b] before it
    covers = clocks.clock[np.array(others)[:, None], queues[None, :]] > positions[None, :]
    spans: dict[str, slice] = {}
    at = len(fixed)
    for name, nodes in needs.items():
        spans[name] = slice(at, at + len(nodes))
        at += len(nodes)
    # how many of those that are still there have it before them, itself included
    covering = covers.sum(axis=0)
    gone = []
    for name in candidates:
        span = spans[name]
        own = covers[span, span].sum(axis=0)
        if (covering[span] > own).all():
            gone.append(name)
            covering -= covers[span].sum(axis=0)
    return gone


def _droppable_by_rows(
    program: Program,
    clocks: Clocks,
    fixed: list[int],
    needs: dict[str, list[int]],
    candidates: list[str],
) -> list[str]:
    """The same in time linear in the triggers, for waits that have thousands."""
    rows = {name: clocks.clock[nodes].max(axis=0) for name, nodes in needs.items()}
    base = clocks.clock[fixed].max(axis=0) if fixed else 0 * next(iter(rows.values()))
    gone: list[str] = []
    for name in candidates:
        others = base
        for other, row in rows.items():
            if other != name and other not in gone:
                others = np.maximum(others, row)
        if all(others[program.queue[n]] > program.position[n] for n in needs[name]):
            gone.append(name)
    return gone


def only_counters(program: Program, waits: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Without the waits that consume: those can go only together with the sets they consume."""
    events = program.schedule.events
    return [pair for pair in waits if events[pair[1]].kind not in CONSUMING]
