"""What the agents outside a set may do before any member of the set acts: an over-approximation.

Each cell holds a set of values: the current one and whatever may be written from outside. A
process goes on from a wait if some value lets it. Every access met is compared with those of the
members; the first that does not commute with one of them is the conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import product
from math import prod
from typing import NamedTuple

from syncproof.models import outbox as boxes
from syncproof.models.automaton import Edge, Node
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.operations import GhostCheck, GhostUpdate, Statement
from syncproof.models.outbox import ADD, Packet, Write
from syncproof.models.system import State, System, Transition

MOST_VALUES = 64
MOST_NODES = 50_000


class ProcessAgent(NamedTuple):
    """A process: its steps are those of its current node."""

    process: int


class PacketAgent(NamedTuple):
    """A put in flight: an element of an outbox."""

    owner: int
    position: int


Agent = ProcessAgent | PacketAgent


class Fenced(IntEnum):
    """What keeps a put that is issued later behind the frozen puts: a fence for every target, one
    for each of theirs (it holds back only what goes to the same target), or none."""

    NOT = 0
    BY_TARGET = 1
    FROM_ALL = 2


class GiveUp(Exception):
    """The over-approximation has grown too large to be worth it."""


@dataclass(frozen=True, eq=False)
class Conflict:
    """An access from outside that does not commute with a member, and the agent behind it."""

    agent: Agent
    outlook: Outlook


class _Found(Exception):
    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent


class _Members:
    """The accesses of the members of the set, by cell."""

    def __init__(self) -> None:
        self.lands: dict[int, list[Packet]] = {}
        self.reads: set[int] = set()
        self.updates: set[int] = set()
        self.stores: set[int] = set()
        self.waits: list[tuple[int, Node, int, Action, Edge]] = []
        self.waited: set[int] = set()
        self.ghosts: set[str] = set()


class Outlook:
    """The abstract run of everything but ``frozen``."""

    def __init__(
        self,
        system: System,
        state: State,
        frozen: set[Agent],
        by_agent: dict[Agent, list[Transition]],
    ) -> None:
        self.system, self.state, self.frozen = system, state, frozen
        self.values: dict[int, set[int]] = {}
        self.writers: dict[int, list[Agent]] = {}
        self._readers: dict[int, list[tuple[int, Node, Fenced]]] = {}
        self._adders: dict[int, list[tuple[int, Agent]]] = {}
        self._copies: dict[int, list[tuple[int, Agent]]] = {}
        self._visited: dict[tuple[int, int], Fenced] = {}
        self._arrived: dict[tuple[str, int], list[tuple[Node, int, Fenced]]] = {}
        self._work: list[tuple[int, Node, Fenced]] = []
        self._held = {
            owner: [
                system.outbox(state, owner)[a.position]
                for a in frozen
                if isinstance(a, PacketAgent) and a.owner == owner
            ]
            for owner in {a.owner for a in frozen if isinstance(a, PacketAgent)}
        }
        self._members = _Members()
        for agent in frozen:
            for each in by_agent[agent]:
                self._add_member(agent, each)

    # Members

    def _add_member(self, agent: Agent, transition: Transition) -> None:
        members, system, state = self._members, self.system, self.state
        if isinstance(agent, PacketAgent):
            packet = system.outbox(state, agent.owner)[agent.position].packet
            if packet.reads:
                members.reads.update(packet.reads)
            for cell, _, _ in packet.writes if not packet.reads else ():
                members.lands.setdefault(cell, []).append(packet)
            return
        process, number = agent.process, transition.step.what[0]
        node = system.node(state, process)
        action = node.actions[number]
        if action.kind is ActionKind.SYNC:
            for member in action.members:
                sync_edge = system.automata[member].edge(system.node(state, member), 0, ())
                if sync_edge is not None:
                    members.ghosts |= ghosts_of(sync_edge.statements)
            return
        current = tuple(system.value(state, cell) for cell in action.cells)
        edge = system.automata[process].edge(node, number, current)
        assert edge is not None
        members.ghosts |= ghosts_of(edge.statements)
        if action.kind is ActionKind.READ and (action.synchronizing or node.in_sweep):
            members.waits.append((process, node, number, action, edge))
            members.waited.update(action.cells)
        elif action.kind is ActionKind.READ:
            members.reads.update(action.cells)
        elif action.kind is ActionKind.UPDATE:
            members.updates.update(action.cells)
        elif action.kind is ActionKind.WRITE:
            members.stores.update(cell for cell, _, _ in action.writes)

    # The abstract run

    def conflict(self) -> Conflict | None:
        """The first access from outside that conflicts with a member, or None."""
        system, state = self.system, self.state
        try:
            for owner in range(system.processes):
                if state[system.first_outbox + owner]:
                    self._pending(owner)
            for process in range(system.processes):
                if ProcessAgent(process) not in self.frozen:
                    self._visit(process, system.node(state, process), Fenced.NOT)
            while self._work:
                self._go_on(*self._work.pop())
        except _Found as found:
            return Conflict(found.agent, self)
        return None

    def _pending(self, owner: int) -> None:
        """Puts that are in flight and not held back by a frozen one."""
        blocked: set[int] = set()
        for position, each in enumerate(self.system.outbox(self.state, owner)):
            agent = PacketAgent(owner, position)
            if agent in self.frozen or blocked.intersection((*each.after, *each.read_after)):
                blocked.add(position)
            elif not each.packet.is_fence:
                self._lands(each.packet, agent)

    def _lands(self, packet: Packet, agent: Agent) -> None:
        if packet.reads:
            self._touch_plain(packet.reads, agent)
            for (cell, _, _), source in zip(packet.writes, packet.reads, strict=True):
                self._touch_write(cell, agent)
                self._copies.setdefault(source, []).append((cell, agent))
                for value in tuple(self._values(source)):
                    self._add_value(cell, value, agent)
            return
        self._stored(packet.writes, agent)

    def _stored(self, writes: Iterable[Write], agent: Agent) -> None:
        for cell, value, mode in writes:
            self._touch_write(cell, agent)
            if mode == ADD:
                self._adders.setdefault(cell, []).append((value, agent))
                for old in tuple(self._values(cell)):
                    self._add_value(cell, self._sum(old, value), agent)
            else:
                self._add_value(cell, value, agent)

    def _sum(self, one: int, other: int) -> int:
        a, b = self.system.values[one], self.system.values[other]
        if not (isinstance(a, int) and isinstance(b, int)):
            raise GiveUp
        return self.system.values.number(a + b)

    def _values(self, cell: int) -> set[int]:
        found = self.values.get(cell)
        if found is None:
            found = self.values[cell] = {self.system.value(self.state, cell)}
        return found

    def _add_value(self, cell: int, value: int, agent: Agent) -> None:
        self.writers.setdefault(cell, []).append(agent)
        known = self._values(cell)
        if value in known:
            return
        if len(known) >= MOST_VALUES:
            raise GiveUp
        known.add(value)
        for amount, adder in self._adders.get(cell, ()):
            self._add_value(cell, self._sum(value, amount), adder)
        for target, copier in self._copies.get(cell, ()):
            self._add_value(target, value, copier)
        self._work += self._readers.get(cell, ())
        if cell in self._members.waited:
            self._check_waits(cell, agent)

    def _visit(self, process: int, node: Node, fenced: Fenced) -> None:
        """Reach a node; ``fenced`` as far as on all paths a fence came behind the frozen puts."""
        key = (process, node.number)
        before = self._visited.get(key)
        if before is None or before > fenced:
            if len(self._visited) > MOST_NODES:
                raise GiveUp
            self._visited[key] = fenced
            self._work.append((process, node, fenced))

    def _go_on(self, process: int, node: Node, fenced: Fenced) -> None:
        fenced = self._visited.get((process, node.number), fenced)
        for number, action in enumerate(node.actions):
            self._act(process, node, number, action, fenced)

    def _act(self, process: int, node: Node, number: int, action: Action, fenced: Fenced) -> None:
        agent = ProcessAgent(process)
        kind = action.kind
        if kind in (ActionKind.READ, ActionKind.UPDATE):
            self._read(process, node, number, action, fenced)
            return
        if kind is ActionKind.SYNC:
            self._sync(process, node, number, action, fenced)
            return
        if kind is ActionKind.QUIET and self._quiet_is_blocked(process, action):
            return
        if kind is ActionKind.ISSUE:
            self._issue(process, action, fenced, agent)
        elif kind is ActionKind.WRITE:
            self._stored(action.writes, agent)
        elif kind is ActionKind.FENCE and action.packets:
            fenced = max(fenced, self._fenced(process, action))
        self._take(process, self.system.automata[process].edge(node, number, ()), fenced)

    def _take(self, process: int, edge: Edge | None, fenced: Fenced) -> None:
        if edge is None:
            return
        agent = ProcessAgent(process)
        if self._members.ghosts and self._members.ghosts & ghosts_of(edge.statements):
            raise _Found(agent)
        if edge.target.state == "done" and process in self._held:
            raise _Found(agent)
        self._visit(process, edge.target, fenced)

    def _quiet_is_blocked(self, process: int, action: Action) -> bool:
        held = self._held.get(process, ())
        if self.system.automata[process].quiet_is_local:
            return False
        return any(action.target < 0 or e.packet.target in (action.target, -1) for e in held)

    def _fenced(self, process: int, action: Action) -> Fenced:
        """What a fence that is issued here puts between the frozen puts and later ones."""
        targets = {packet.target for packet in action.packets}
        held = self._held.get(process, ())
        if not held:
            return Fenced.NOT
        if -1 in targets:
            return Fenced.FROM_ALL
        covered = all(each.packet.target in targets for each in held)
        return Fenced.BY_TARGET if covered else Fenced.NOT

    def _issue(self, process: int, action: Action, fenced: Fenced, agent: Agent) -> None:
        held = [each.packet for each in self._held.get(process, ()) if not each.packet.is_get]
        for packet, profile in zip(action.packets, action.profiles, strict=True):
            behind = not packet.is_get and not packet.reads and any(
                fenced is Fenced.FROM_ALL
                or (fenced is Fenced.BY_TARGET and early.target == packet.target)
                or boxes.must_precede(early, packet, profile)
                for early in held
            )
            if not behind:
                self._lands(packet, agent)

    def _read(
        self, process: int, node: Node, number: int, action: Action, fenced: Fenced
    ) -> None:
        for cell in action.cells:
            readers = self._readers.setdefault(cell, [])
            entry = (process, node, fenced)
            if entry not in readers:
                readers.append(entry)
        synchronizing = action.kind is ActionKind.READ and (action.synchronizing or node.in_sweep)
        automaton = self.system.automata[process]
        agent = ProcessAgent(process)
        for values in self._combinations(action.cells):
            edge = automaton.edge(node, number, values)
            if edge is None:
                continue
            if action.kind is ActionKind.UPDATE:
                self._touch_update(action.cells, agent)
            elif not synchronizing:
                self._touch_plain(action.cells, agent)
            else:
                self._touch_wait(process, node, number, action, values, edge)
            for cell, value in edge.writes:
                self._add_value(cell, value, agent)
            self._take(process, edge, fenced)

    def _combinations(self, cells: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        sets = [sorted(self._values(cell)) for cell in cells]
        if prod(map(len, sets)) > MOST_VALUES:
            raise GiveUp
        return product(*sets)

    def _sync(
        self, process: int, node: Node, number: int, action: Action, fenced: Fenced
    ) -> None:
        here = self._arrived.setdefault((action.group, process), [])
        if (node, number, fenced) not in here:
            here.append((node, number, fenced))
        if not all((action.group, member) in self._arrived for member in action.members):
            return
        for member in action.members:
            for each, its_number, its_fenced in tuple(self._arrived[action.group, member]):
                edge = self.system.automata[member].edge(each, its_number, ())
                self._take(member, edge, its_fenced)

    # Conflicts

    def _touch_write(self, cell: int, agent: Agent) -> None:
        members = self._members
        if (
            cell in members.lands
            or cell in members.reads
            or cell in members.updates
            or cell in members.stores
        ):
            raise _Found(agent)

    def _touch_plain(self, cells: Iterable[int], agent: Agent) -> None:
        members = self._members
        for cell in cells:
            if cell in members.lands or cell in members.updates or cell in members.stores:
                raise _Found(agent)

    def _touch_update(self, cells: Iterable[int], agent: Agent) -> None:
        members = self._members
        for cell in cells:
            if cell in members.waited:
                raise _Found(agent)
            self._touch_write(cell, agent)

    def _touch_wait(
        self,
        process: int,
        node: Node,
        number: int,
        action: Action,
        values: tuple[int, ...],
        edge: Edge,
    ) -> None:
        """A wait from outside that passes: does it pass alike after each member?"""
        members = self._members
        agent = ProcessAgent(process)
        for cell in action.cells:
            if cell in members.updates or cell in members.stores:
                raise _Found(agent)
            for packet in members.lands.get(cell, ()):
                after = dict(zip(action.cells, values, strict=True))
                for written, value, mode in packet.writes:
                    if written in after:
                        after[written] = (
                            self._sum(after[written], value) if mode == ADD else value
                        )
                other = self.system.automata[process].edge(node, number, tuple(after.values()))
                if not alike(edge, other):
                    raise _Found(agent)

    def _check_waits(self, cell: int, agent: Agent) -> None:
        """A member that waits on ``cell``: does it go the same way on every value there may be?"""
        for process, node, number, action, edge in self._members.waits:
            if cell in action.cells:
                for values in self._combinations(action.cells):
                    other = self.system.automata[process].edge(node, number, values)
                    if not alike(edge, other):
                        raise _Found(agent)


def alike(one: Edge, other: Edge | None) -> bool:
    """Whether two edges lead to the same node with the same statements and writes."""
    return (
        other is not None
        and one.target is other.target
        and one.writes == other.writes
        and one.statements == other.statements
    )


def ghosts_of(statements: Iterable[Statement]) -> set[str]:
    """The ghosts that some statements read or change."""
    return {s.ghost for s in statements if isinstance(s, (GhostUpdate, GhostCheck))}
