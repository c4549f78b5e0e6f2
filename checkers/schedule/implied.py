"""Waits that say nothing new: what they wait for precedes the task anyway, by its other waits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from syncproof.checkers.schedule.clocks import Clocks
from syncproof.checkers.schedule.program import Program
from syncproof.models.taskflow.pairs import Ints
from syncproof.models.taskflow.schedule import CONSUMING

LARGE = 256
"""Predecessors from which on they are not compared pair by pair."""
CELLS = 1 << 20
"""Pairs of predecessors that are compared at once."""


def implied_waits(program: Program, clocks: Clocks) -> list[tuple[int, str]]:
    """(task, event) of the waits that can all go together, in every launch alike.

    Removing one leaves every clock as it is, so those of one task can be removed after those of
    another; within a task they are removed one by one.
    """
    dropped: dict[tuple[int, str], int] = {}
    for node in _candidates(program, clocks):
        number = program.task_of(node)
        for name in _implied_at(program, clocks, node):
            dropped[number, name] = dropped.get((number, name), 0) + 1
    times = program.schedule.launches.count
    return [pair for pair, count in sorted(dropped.items()) if count == times]


def _candidates(program: Program, clocks: Clocks) -> Iterator[int]:
    """Tasks one of whose waits may be implied: for most of them arrays say at once that none is."""
    rows, large = clocks.predecessors(LARGE)
    yield from (node for node in large if program.task_of(node) >= 0)
    sizes = rows.sizes()
    is_asked = (program.waits.sizes() > 0) & (np.arange(program.nodes) < program.tasks)
    is_asked[large] = False
    queues, positions = np.array(program.queue), np.array(program.position)
    for size in np.unique(sizes[is_asked & (sizes > 1)]).tolist():
        nodes = np.flatnonzero(is_asked & (sizes == size))
        step = max(1, CELLS // (size * size))
        for at in range(0, len(nodes), step):
            some = nodes[at : at + step]
            pairs = rows.start[some][:, None] + np.arange(size)
            is_implied = _maybe_implied(
                rows.first[pairs], rows.second[pairs], clocks, queues, positions
            )
            yield from some[is_implied].tolist()


def _maybe_implied(
    others: Ints, owners: Ints, clocks: Clocks, queues: Ints, positions: Ints
) -> NDArray[np.bool_]:
    """Of each node whether it has a group all of whose triggers others have before them.

    A row is what precedes a node at once, and of which group each of those is.
    """
    # covers[n, a, b]: what is a-th at node n has what is b-th before it
    columns = queues[others][:, None, :]
    covers = clocks.clock[others[:, :, None], columns] > positions[others][:, None, :]
    is_same = owners[:, :, None] == owners[:, None, :]
    is_covered = (covers & ~is_same).any(axis=1)
    # a group is covered if none of it is left uncovered
    is_open = (is_same & ~is_covered[:, None, :]).any(axis=2)
    found: NDArray[np.bool_] = (~is_open & (owners >= 0)).any(axis=1)
    return found


def _fixed(program: Program, node: int) -> list[int]:
    """What precedes a node whatever it waits for."""
    position = program.position[node]
    first = [program.members[program.queue[node]][position - 1]] if position else []
    return first + list(program.before[node])


def implied_events(program: Program, waits: list[tuple[int, str]]) -> list[str]:
    """Events all of whose waits are implied, so that they need not exist."""
    if not waits:
        return []
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
    fixed = _fixed(program, node)
    needs: dict[str, list[int]] = {}
    unclear: set[str] = set()
    for group, threshold in program.waits.of(node):
        name = program.event_of[group]
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
