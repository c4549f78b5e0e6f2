"""The wait-for table of a hang: who waits where, for what, and why nobody can help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import chain

from syncproof.checkers.explicit.search import Finding
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.narrate import line_of
from syncproof.models.nodes import Node
from syncproof.models.system import System
from syncproof.models.transitions import State, Transition
from syncproof.models.verdict import Waiting

Written = Sequence[Set[int]]
"""For each process the cells that its steps write or issue puts to."""


def wait_for_table(
    system: System, taken: Sequence[tuple[State, Transition]], finding: Finding
) -> tuple[Waiting, ...]:
    """A row for each process that cannot finish from the end of the run."""
    if finding.failure.property != "deadlock-free":
        return ()
    state = taken[-1][1].state if taken else system.initial_transition().state
    written = _written(system)
    return tuple(
        _row(system, state, process, written)
        for process in range(system.processes)
        if system.node(state, process).state != "done"
    )


def _row(system: System, state: State, process: int, written: Written) -> Waiting:
    node = system.node(state, process)
    action = node.actions[0]
    helpers = _helpers(system, state, process, action, written)
    reasons = "; ".join(_excuse(system, state, each) for each in helpers)
    if not helpers:
        reasons = "no process that writes it gets that far"
    elif action.kind is ActionKind.READ and not action.waits:
        reasons = f"it goes on polling, but: {reasons}"
    return Waiting(
        str(system.automata[process].process),
        line_of(node),
        _operation(node),
        _sees(system, state, action),
        tuple(str(system.automata[each].process) for each in helpers),
        reasons,
    )


def core_of_hang(system: System, state: State, with_polling: bool = False) -> dict[int, int]:
    """A smallest knot of blocked processes that only wait for each other, with their nodes.

    Empty if no process is blocked: then the hang is one of processes that poll for ever, which
    count as blocked only ``with_polling``, where nothing else can happen.
    """
    written = _written(system)
    waits: dict[int, set[int]] = {}
    for process in range(system.processes):
        node = system.node(state, process)
        is_blocked = with_polling or not system.process_transitions(state, process)
        if node.state == "run" and is_blocked:
            waits[process] = {
                helper
                for action in node.actions
                for helper in _helpers(system, state, process, action, written)
                if system.node(state, helper).state != "done"
            }
    smallest = min(_knots(waits), key=lambda knot: (len(knot), knot), default=[])
    return {process: state[process] for process in smallest}


def _knots(waits: Mapping[int, Set[int]]) -> list[list[int]]:
    """Those who wait for each other and, even by others, for nobody else."""
    reach: dict[int, set[int]] = {}
    for process in {*waits, *chain.from_iterable(waits.values())}:
        found, work = {process}, [process]
        while work:
            more = waits.get(work.pop(), set()) - found
            found |= more
            work += more
        reach[process] = found
    return [
        sorted(knot)
        for process, knot in reach.items()
        if all(process in reach[each] for each in knot)
    ]


def _operation(node: Node) -> str:
    operation = node.operation
    assert operation is not None
    about = operation.slot if operation.slot is not None else operation.group
    return f"{operation.kind.value} {about}".strip()


def _sees(system: System, state: State, action: Action) -> str:
    values = [str(system.values[system.value(state, cell)]) for cell in action.cells]
    return ", ".join(dict.fromkeys(values))


def _written(system: System) -> Written:
    return [{cell for node in each.nodes for cell in writes_of(node)} for each in system.automata]


def _helpers(
    system: System, state: State, process: int, action: Action, written: Written
) -> list[int]:
    """The processes that could end the wait: writers of its cells, or members not yet there."""
    if action.kind is ActionKind.SYNC:
        return [
            member
            for member in action.members
            if not any(
                each.kind is ActionKind.SYNC and each.group == action.group
                for each in system.node(state, member).actions
            )
        ]
    if action.kind is ActionKind.QUIET:
        return [process]
    return [
        other
        for other, cells in enumerate(written)
        if other != process and not cells.isdisjoint(action.cells)
    ]


def writes_of(node: Node) -> set[int]:
    """The cells that the steps of a node write or issue puts to."""
    found: set[int] = set()
    for action in node.actions:
        found |= {cell for packet in action.packets for cell, _, _ in packet.writes}
        found |= {cell for cell, _, _ in action.writes}
        if action.kind is ActionKind.UPDATE:
            found |= set(action.cells)
    return found


def _excuse(system: System, state: State, process: int) -> str:
    node = system.node(state, process)
    name = str(system.automata[process].process)
    if node.state == "done":
        return f"{name} has returned"
    if node.place is None:
        return f"{name} cannot go on"
    return f"{name} waits itself at {node.place}"
