"""What the steps of a node look at and touch, as far as the node alone tells."""

from __future__ import annotations

from syncproof.models.lowering import ActionKind
from syncproof.models.nodes import Node
from syncproof.models.outbox import ADD
from syncproof.models.transitions import Access, Outline

LOCAL = frozenset(
    (ActionKind.READ, ActionKind.UPDATE, ActionKind.ISSUE, ActionKind.QUIET, ActionKind.FENCE)
)
"""Actions that depend on the process, what it reads and its outbox, and change nothing else."""


def outline_of(node: Node, first_cell: int, entangled: bool) -> Outline:
    """What the steps of a node depend on; ``entangled`` where more than cells and outbox count."""
    polls = [
        cell
        for action in node.actions
        if action.kind is ActionKind.UPDATE
        or (action.kind is ActionKind.READ and (action.synchronizing or node.in_sweep))
        for cell in action.cells
    ]
    looks = dict.fromkeys(first_cell + cell for action in node.actions for cell in action.cells)
    local = not entangled and all(each.kind in LOCAL for each in node.actions)
    return Outline(frozenset(polls), tuple(looks), local)


def accesses_of(node: Node, number: int) -> list[Access]:
    """What an action of a node reads and writes at once, for race-free."""
    action = node.actions[number]
    if action.kind is ActionKind.READ:
        sync = action.synchronizing or node.in_sweep
        return [Access(cell, False, sync, False) for cell in action.cells]
    if action.kind is ActionKind.UPDATE:
        return [Access(cell, True, True, False) for cell in action.cells]
    if action.kind is ActionKind.WRITE:
        is_put = not action.synchronizing
        return [Access(c, True, True, is_put and mode != ADD) for c, _, mode in action.writes]
    return []
