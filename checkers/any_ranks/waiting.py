"""Who may wait for whom: without a cycle no number of ranks can be stuck.

Of a system that is stuck take a process that waits, at ``w``, for a block that it shares with
another rank. Seen from these two ranks that is a state of the pair with nothing in flight, in which
some process that may write the block stands at ``w'``, and waits as well. So there would be an
endless chain of such edges, and there is none if they have no cycle.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import networkx as nx

from syncproof.checkers.any_ranks.memory import concerns
from syncproof.checkers.any_ranks.roles import Point, own_line
from syncproof.checkers.any_ranks.simulation import Simulation
from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.models.lowering import ActionKind
from syncproof.models.nodes import Node
from syncproof.models.operations import Kind
from syncproof.models.ranks import OTHER
from syncproof.models.system import System
from syncproof.models.transitions import State

Standing = tuple[str, int, tuple[tuple[str, int], ...], int]
"""Role, core, lines and round: what does not depend on who else is looked at."""

LONGEST_SWEEP = 10_000


class Waits:
    """The edges from where a process waits to where those stand that it waits for."""

    def __init__(self) -> None:
        self.graph: nx.DiGraph[Standing] = nx.DiGraph()

    def add(self, system: System, states: Iterable[State], roles: list[Simulation]) -> None:
        """Add the edges of all states in which nothing is in flight and everybody may wait."""
        writers = _writers(system)
        for state in states:
            if system.nothing_in_flight(state):
                self._add_state(system, state, roles, writers)

    def cycle(self) -> str:
        """A cycle of waits in words; empty if there is none."""
        try:
            found = nx.find_cycle(self.graph)
        except nx.NetworkXNoCycle:
            return ""
        return " waits for ".join(_words(edge[0]) for edge in [*found, found[0]])

    def _add_state(
        self,
        system: System,
        state: State,
        roles: list[Simulation],
        writers: dict[int, set[int]],
    ) -> None:
        blocked = [_blocked(system, state, process) for process in range(system.processes)]
        nodes = [_first(system.node(state, process)) for process in range(system.processes)]
        standing: list[list[Standing]] = []
        for role, node, sees in zip(roles, nodes, blocked, strict=True):
            standing.append(_standing(role, node, here=sees is not None, elsewhere=True))
            if node.state != "done" and not standing[-1]:
                return
        for process, sees in enumerate(blocked):
            if sees is None:
                continue
            there = self._awaited(roles, nodes, standing, process, sees, writers)
            for one in _standing(roles[process], nodes[process], here=True, elsewhere=False):
                self.graph.add_edges_from((one, other) for other in there)

    def _awaited(
        self,
        roles: list[Simulation],
        nodes: list[Node],
        standing: list[list[Standing]],
        process: int,
        sees: Sees,
        writers: dict[int, set[int]],
    ) -> list[Standing]:
        """Where those stand for whom a process waits: who may be missing, or who may write."""
        kind, found = sees
        if kind == "cells":
            able = {w for cell in found for w in writers.get(cell, ()) if w != process}
            able = {each for each in able if nodes[each].state != "done"}
            if not able:
                raise NotCovered(f"{roles[process].role.process} waits for what nobody may write")
            return [place for each in sorted(able) for place in standing[each]]
        missing: list[Standing] = []
        for each in found:
            if nodes[each].state == "done":
                raise NotCovered(f"{roles[process].role.process} waits for one that has ended")
            at_sync = _syncs(nodes[each], nodes[process])
            missing += (
                _standing(roles[each], nodes[each], here=False, elsewhere=True)
                if at_sync
                else standing[each]
            )
        return missing


def _words(standing: Standing) -> str:
    role, core, lines, round = standing
    which = f"[{core}]" if core else ""
    file, line = own_line(lines)
    return f"{role}{which} at {Path(file).name}:{line} in round {round}"


def _first(node: Node) -> Node:
    return node.base or node


def _standing(role: Simulation, node: Node, *, here: bool, elsewhere: bool) -> list[Standing]:
    """Where a process may wait while the process of the pair is at ``node``.

    ``here``: for its own rank or the peer, where the process of the pair waits too; ``elsewhere``:
    for another rank. One that polls may look at both.
    """
    found: set[Standing] = set()
    process = role.role.process
    for number in role.at.get(node.number, ()):
        point = role.role.points[number]
        if _may_wait(point, here, elsewhere):
            found.add((process.role, process.instance, point.lines, point.round))
    return sorted(found)


def _may_wait(point: Point, here: bool, elsewhere: bool) -> bool:
    operation = point.operation
    if operation is None:
        return False
    if point.in_sweep:
        return True
    if operation.kind is Kind.SYNC:
        return here
    if operation.kind is not Kind.WAIT_UNTIL:
        return False
    return elsewhere if concerns(operation) == OTHER else here


Sees = tuple[str, tuple[int, ...]]
"""What a process may be blocked on: the others of a sync, or the cells that it looked at."""


def _blocked(system: System, state: State, process: int) -> Sees | None:
    """What the process waits for while memory stays as it is; None if it does not.

    One that polls is asked about a whole sweep, as it would come to that. At a sync it may wait
    even if all are there: one of them may still wait for another rank.
    """
    start = _first(system.node(state, process))
    start = node = start.sweep_first or start
    automaton, seen = system.automata[process], set[int]()
    for _ in range(LONGEST_SWEEP):
        if node.state != "run" or not node.actions:
            return None
        action = node.actions[0]
        if action.kind is ActionKind.SYNC and not seen and not node.in_sweep:
            return ("members", tuple(each for each in action.members if each != process))
        if action.kind not in (ActionKind.READ, ActionKind.UPDATE):
            if node.in_sweep:
                raise NotCovered(f"a sweep that does more than load, at {node.place}")
            return None
        seen.update(action.cells)
        edge = automaton.edge(node, 0, tuple(system.value(state, c) for c in action.cells))
        if edge is None or edge.again or (edge.target is start and start.in_sweep):
            return ("cells", tuple(sorted(seen)))
        if not (edge.target.progress or edge.target.in_sweep):
            return None
        node = edge.target
    raise NotCovered("a sweep is too long")


def _syncs(one: Node, other: Node) -> bool:
    """Whether two processes are at one sync."""
    return any(
        first.kind is ActionKind.SYNC and first.group == second.group
        for first in one.actions
        for second in other.actions
    )


def _writers(system: System) -> dict[int, set[int]]:
    """For each cell the processes that write it, whatever they do."""
    found: dict[int, set[int]] = {}

    def note(cells: Iterable[Any], process: int) -> None:
        for cell in cells:
            found.setdefault(cell, set()).add(process)

    for process, automaton in enumerate(system.automata):
        for node in automaton.nodes:
            for action in node.actions:
                note((write[0] for write in action.writes), process)
                note((w[0] for packet in action.packets for w in packet.writes), process)
                if action.kind is ActionKind.UPDATE:
                    note(action.cells, process)
    return found
