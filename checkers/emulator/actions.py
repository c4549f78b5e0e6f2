"""Which actions of the model each step of a run can be."""

from __future__ import annotations

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.events import Event
from syncproof.models.lowering import ActionKind
from syncproof.models.nodes import Node
from syncproof.models.operations import Kind

WAIT_UNTIL = Kind.WAIT_UNTIL
ACTIONS = {
    events.ISSUE: (ActionKind.ISSUE,),
    events.STORE: (ActionKind.WRITE,),
    events.READ: (ActionKind.READ,),
    events.WAIT: (ActionKind.READ,),
    events.UPDATE: (ActionKind.UPDATE,),
    events.QUIET: (ActionKind.QUIET,),
    events.FENCE: (ActionKind.FENCE,),
    events.SYNC: (ActionKind.SYNC,),
    events.READ_CACHED: (ActionKind.READ_CACHED,),
    events.FETCH: (ActionKind.READ_CACHED,),
    events.STORE_CACHED: (ActionKind.WRITE_CACHED,),
    events.CLEAN: (ActionKind.CLEAN,),
}
"""The kinds of action that a step of a process can be in the model."""


def kinds_of(event: Event) -> tuple[ActionKind, ...]:
    """The kinds of action that an event can be."""
    return ACTIONS[event.do]


def is_at(node: Node, event: Event) -> bool:
    """Whether a process at ``node`` stands at such an operation."""
    if node.operation is None:
        return False
    waits = node.operation.kind is WAIT_UNTIL
    if event.do == events.WAIT:
        return waits
    return not (event.do == events.READ and waits)
