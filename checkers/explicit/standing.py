"""Single steps that are persistent because some process stands still, found at little cost.

An outlook in which one process takes no step serves many states: while the others move it covers
what they do, and what the process itself issues is added. It answers for the steps of that process
and for each put without whose landing the process cannot move. docs/soundness.md has the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from syncproof.checkers.explicit.conflicts import conflict
from syncproof.checkers.explicit.contents import GiveUp
from syncproof.checkers.explicit.outlook import Agent, Outlook, PacketAgent, ProcessAgent
from syncproof.models.lowering import ActionKind
from syncproof.models.outbox import Packet
from syncproof.models.system import System
from syncproof.models.transitions import State, Transition

MOST_STATES = 64
"""States that outlooks are kept for, until the search comes to them."""

Outlooks = dict[int, Outlook]
"""By the process that stands still."""

Blocked = dict[int, list[tuple[int, frozenset[int]]]]
"""Processes that a wait blocks, with the cells that it looks at, by the first of these."""


Look = Callable[[State, set[Agent]], Outlook]
"""The outlook from a state in which some agents take no step. Raises `GiveUp`."""


class Standing:
    """The outlooks of one search, handed on from state to state along single steps."""

    def __init__(self, system: System, look: Look) -> None:
        self.system, self._look = system, look
        self._in_order = system.automata[0].profile.same_address_order
        self._kept: dict[State, Outlooks] = {}

    def outlooks(self, state: State) -> Outlooks:
        """Those that were handed on to ``state``."""
        return self._kept.pop(state, {})

    def alone(self, state: State, steps: dict[Agent, Transition], known: Outlooks) -> Agent | None:
        """An agent whose only step commutes with all that comes while some process stands still.

        The outlooks of earlier states are asked first. They may have grown stale, so that a
        conflict in one of them means only that a new one is worth its time.
        """
        for seed, process in self._pairs(state, steps):
            if process in known and self._commutes(state, seed, steps[seed], known[process]):
                return seed
        fresh: set[int] = set()
        for seed, process in self._pairs(state, steps):
            if process not in fresh:
                fresh.add(process)
                self._renew(state, process, known)
            if process in known and self._commutes(state, seed, steps[seed], known[process]):
                return seed
        return None

    def _pairs(self, state: State, steps: dict[Agent, Transition]) -> Iterator[tuple[Agent, int]]:
        """Agents, each with a process that stands still as long as the agent takes no step."""
        blocked = self._blocked(state)
        for seed in steps:
            if isinstance(seed, ProcessAgent):
                yield seed, seed.process
                continue
            packet = self.system.outbox(state, seed.owner)[seed.position].packet
            if packet.reads or packet.is_get or not self._in_order:
                continue
            cells = {cell for cell, _, _ in packet.writes}
            for cell in cells:
                for process, waited in blocked.get(cell, ()):
                    if cells >= waited:
                        yield seed, process
            if self._quiet_waits_for(state, seed.owner, packet):
                yield seed, seed.owner

    def _blocked(self, state: State) -> Blocked:
        found: Blocked = {}
        for process in range(self.system.processes):
            node = self.system.node(state, process)
            if len(node.actions) == 1 and node.actions[0].waits:
                cells = node.actions[0].cells
                values = tuple([self.system.value(state, cell) for cell in cells])
                ways = self.system.automata[process].ways(node, 0, values)
                if all(edge is None for _, edge in ways):
                    found.setdefault(cells[0], []).append((process, frozenset(cells)))
        return found

    def _quiet_waits_for(self, state: State, owner: int, packet: Packet) -> bool:
        """Whether the issuer of a put is at a quiet that must wait for its landing."""
        actions = self.system.node(state, owner).actions
        if len(actions) != 1 or actions[0].kind is not ActionKind.QUIET:
            return False
        covered = actions[0].target < 0 or packet.target in (actions[0].target, -1)
        return covered and not self.system.automata[owner].quiet_is_local

    def _commutes(self, state: State, seed: Agent, step: Transition, outlook: Outlook) -> bool:
        behind = seed.owner if isinstance(seed, PacketAgent) else -1
        try:
            return conflict(outlook, state, seed, step, behind) is None
        except GiveUp:
            return False

    def _renew(self, state: State, process: int, known: Outlooks) -> None:
        known.pop(process, None)
        with suppress(GiveUp):
            known[process] = self._look(state, {ProcessAgent(process)})

    def hand_on(self, state: State, taken: Transition, known: Outlooks) -> None:
        """Keep the outlooks for the state behind ``taken``, the only step that is explored.

        A step of another process was in them already; one of the process itself is added.
        """
        if not known:
            return
        step = taken.step
        if step.kind == "process":
            action = self.system.node(state, step.process).actions[step.what[0]]
            for process in action.members or (step.process,):
                if process in known:
                    try:
                        known[process].follow(process, action)
                    except GiveUp:
                        del known[process]
        if len(self._kept) >= MOST_STATES:
            del self._kept[next(iter(self._kept))]
        self._kept[taken.state] = known
