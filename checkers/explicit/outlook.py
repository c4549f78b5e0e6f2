"""What the agents outside a set may do before any member of the set acts: an over-approximation.

Each atom of memory holds a set of contents: the current one and whatever may be written from
outside. A process goes on from a wait if some content lets it. The run takes every step once and
records what it touches; `conflicts` compares that with the members of the set.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import IntEnum
from typing import NamedTuple

from syncproof.checkers.explicit.contents import AbstractMemory, Atoms, GiveUp
from syncproof.models import outbox as boxes
from syncproof.models.lowering import BETWEEN, Action, ActionKind
from syncproof.models.nodes import Edge, Node, TooLong
from syncproof.models.operations import Consumed, Failed, GhostCheck, GhostUpdate, Statement
from syncproof.models.outbox import ADD, SET, Packet, Write
from syncproof.models.system import System
from syncproof.models.transitions import State

MOST_NODES = 20_000
MOST_TURNS = 60_000
"""How often nodes are looked at in one run, each again when what it reads has grown."""
MOST_BEHIND = 500_000
"""How many operations lie behind all nodes of a process that one run meets: to make those of a role
that goes on and on they are gone through again and again."""
MOST_SYNCS = 8
"""Passed syncs are counted up to here; beyond, a process may meet any other that is beyond."""


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


class Behind(NamedTuple):
    """What surely lies behind a process at a node: a fence behind the frozen puts, and a quiet
    behind all of its puts."""

    fenced: Fenced
    quiet: bool


Passed = tuple[tuple[str, int], ...]
"""How many syncs of each group a process has passed since the run began."""


class Place(NamedTuple):
    """A node of a process, with the syncs passed on the way there."""

    process: int
    node: Node
    passed: Passed


class Reader(NamedTuple):
    """An action that reads, at the node where it stands."""

    place: Place
    number: int
    action: Action


class Writer(NamedTuple):
    """Who writes a cell, and with which put, if it is one."""

    agent: Agent
    packet: Packet | None


class Outlook:
    """The abstract run of everything but ``frozen``, and what it touches."""

    def __init__(
        self,
        system: System,
        atoms: Atoms,
        state: State,
        frozen: set[Agent],
        asked: frozenset[str] = frozenset(),
    ) -> None:
        self.system, self.atoms, self.state = system, atoms, state
        self.frozen, self.asked = frozen, asked
        self.writers: dict[int, dict[Writer, None]] = {}
        self.plain_readers: dict[int, Agent] = {}
        self.ghosts: dict[str, Agent] = {}
        self.returned: set[int] = set()
        """Processes that may return while a put of theirs is in flight."""
        self.readers: dict[int, dict[tuple[Place, int], Reader]] = {}
        self.memory = AbstractMemory(system, atoms, state, self._grown)
        self._after: dict[Place, dict[Place, None]] = {}
        self._once: dict[Place, None] = {}
        self._followed = 0
        self._visited: dict[Place, Behind] = {}
        self._arrived: dict[tuple[str, int], dict[int, list[tuple[Place, int]]]] = {}
        self._work: list[Place] = []
        self.turns, self._behind = 0, [0] * system.processes
        self._held: dict[int, list[Packet]] = {}
        for agent in frozen:
            if isinstance(agent, PacketAgent):
                packet = system.outbox(state, agent.owner)[agent.position].packet
                self._held.setdefault(agent.owner, []).append(packet)

    def run(self) -> None:
        """Take every step that may come before one of a frozen agent. Raises `GiveUp`."""
        system, state = self.system, self.state
        for owner in range(system.processes):
            if state[system.first_outbox + owner]:
                self._pending(owner)
        for process in range(system.processes):
            if ProcessAgent(process) not in self.frozen:
                behind = Behind(Fenced.NOT, not state[system.first_outbox + process])
                self._visit(Place(process, system.node(state, process), ()), behind)
        self._finish()

    @property
    def goes_on_and_on(self) -> bool:
        """Whether a process met more, and longer, histories than are gone through again."""
        return max(self._behind) > MOST_BEHIND

    def _finish(self) -> None:
        """Go on until nothing is new. What is counted on once must not lie on a cycle."""
        try:
            while self._work:
                self.turns += 1
                if self.turns > MOST_TURNS:
                    raise GiveUp
                self._go_on(self._work.pop())
        except TooLong:
            raise GiveUp from None
        for place in self._once:
            if self._may_come_back(place):
                raise GiveUp

    def _may_come_back(self, place: Place) -> bool:
        seen: set[Place] = set()
        work = list(self._after.get(place, ()))
        while work:
            each = work.pop()
            if each == place:
                return True
            if each not in seen:
                seen.add(each)
                work += self._after.get(each, ())
        return False

    def follow(self, process: int, action: Action) -> None:
        """Let a frozen process take one step: what it issues comes on top of all else.

        Raises `GiveUp` where more is changed than that: a step that writes at once, or a sync,
        which takes others along.
        """
        if action.kind in (ActionKind.UPDATE, ActionKind.WRITE, ActionKind.SYNC):
            raise GiveUp
        for packet in action.packets if action.kind is ActionKind.ISSUE else ():
            self._followed += 1
            self._lands(packet, ProcessAgent(process), self._followed)
        self._finish()

    # Memory

    def _grown(self, atom: int) -> None:
        self._work += [place for place, _ in self.readers.get(atom, ())]

    def _store(self, writes: tuple[Write, ...], writer: Writer, instance: Hashable) -> None:
        """Writes of one step, at any time from now on and behind any other."""
        for cell, _, _ in writes:
            self._written(cell, writer)
        self.memory.store(writes, instance)

    def _written(self, cell: int, writer: Writer) -> None:
        self.writers.setdefault(cell, {})[writer] = None

    # The fabric

    def _pending(self, owner: int) -> None:
        """Puts that are in flight, as far as no frozen one holds them back.

        The source of a copy may be read although the copy must not land yet.
        """
        unread: set[int] = set()
        held: set[int] = set()
        for position, each in enumerate(self.system.outbox(self.state, owner)):
            agent = PacketAgent(owner, position)
            packet = each.packet
            behind = held if packet.is_get else unread
            before = each.after if packet.is_get else each.read_after
            if agent in self.frozen or behind.intersection(before):
                unread.add(position)
            if position in unread or held.intersection(each.after):
                held.add(position)
            if packet.is_fence:
                continue
            if position not in held:
                self._lands(packet, agent, agent)
            elif packet.reads and position not in unread:
                self._read_plainly(packet.reads, agent)

    def _lands(self, packet: Packet, agent: Agent, instance: Hashable) -> None:
        writer = Writer(agent, packet)
        if not packet.reads:
            self._store(packet.writes, writer, instance)
            return
        self._read_plainly(packet.reads, agent)
        for (target, _, _), source in zip(packet.writes, packet.reads, strict=True):
            self._written(target, writer)
            self.memory.copy(source, target)

    def _read_plainly(self, cells: Iterable[int], agent: Agent) -> None:
        for cell in cells:
            self.plain_readers.setdefault(cell, agent)

    # Processes

    def _visit(self, place: Place, behind: Behind) -> None:
        """Reach a node; ``behind`` is what holds on all paths to it."""
        before = self._visited.get(place)
        if before is not None:
            behind = Behind(min(before.fenced, behind.fenced), before.quiet and behind.quiet)
        else:
            self._behind[place.process] += place.node.length
            if len(self._visited) > MOST_NODES or self.goes_on_and_on:
                raise GiveUp
        if behind != before:
            self._visited[place] = behind
            self._work.append(place)

    def _go_on(self, place: Place) -> None:
        for number, action in enumerate(place.node.actions):
            if action.kind in (ActionKind.READ, ActionKind.UPDATE):
                self._read(Reader(place, number, action))
            elif action.kind is ActionKind.SYNC:
                self._meet(place, number, action)
            else:
                self._act(place, number, action)

    def _act(self, place: Place, number: int, action: Action) -> None:
        process, behind = place.process, self._visited[place]
        if action.kind is ActionKind.QUIET:
            if self._is_held(process, action):
                return
            local = self.system.automata[process].quiet_is_local
            behind = behind._replace(quiet=behind.quiet or (action.target < 0 and not local))
        elif action.kind is ActionKind.ISSUE:
            self._issue(place, number, action, behind.fenced)
            behind = behind._replace(quiet=False)
        elif action.kind is ActionKind.WRITE:
            self._write(place, number, action)
        elif action.kind is ActionKind.FENCE and action.packets:
            behind = behind._replace(fenced=max(behind.fenced, self._fence(process, action)))
        for _, edge in self.system.automata[process].ways(place.node, number, ()):
            assert edge is not None
            self._take(place, edge, behind)

    def _write(self, place: Place, number: int, action: Action) -> None:
        writer, writes = Writer(ProcessAgent(place.process), None), action.writes
        base = place.node.base
        if base is not None and dict(place.node.progress).keys() == {BETWEEN}:
            cell, value, _ = writes[0]
            self._written(cell, writer)
            self.memory.update(("update", self._read_at(place, base), 0), cell, None, value)
            writes = writes[1:]
        self._counted(place, writes)
        self._store(writes, writer, (place, number))

    def _read_at(self, place: Place, base: Node) -> Place:
        """The place of the read whose write, of an atomic in two steps, is made at ``place``.

        A read from before the run is none of those to come, which may well see what is written.
        """
        if place != Place(place.process, self.system.node(self.state, place.process), ()):
            return place._replace(node=base)
        self._once[place] = None
        return place

    def _take(self, place: Place, edge: Edge, behind: Behind) -> None:
        process = place.process
        if edge.statements:
            for ghost in ghosts_of(edge.statements):
                self.ghosts.setdefault(ghost, ProcessAgent(process))
        if edge.target.state == "done" and not behind.quiet:
            self.returned.add(process)
        if edge.statements and not self.asked.isdisjoint(failures_of(edge.statements)):
            return
        after = Place(process, edge.target, place.passed)
        self._after.setdefault(place, {})[after] = None
        self._visit(after, behind)

    def _counted(self, place: Place, writes: Iterable[Write]) -> None:
        """Adds come as often as there are places for them: these must be passed once."""
        if any(mode == ADD for _, _, mode in writes):
            self._once[place] = None

    def _read(self, reader: Reader) -> None:
        place, number, action = reader
        process, node, _ = place
        before = self._visited[place]
        for atom in {self.atoms.atom_of[cell] for cell in action.cells}:
            self.readers.setdefault(atom, {})[place, number] = reader
        automaton, agent = self.system.automata[process], ProcessAgent(process)
        updates = action.kind is ActionKind.UPDATE
        effect = ("update", place, number) if updates else None
        for values in self.memory.combinations(action.cells, without=effect):
            for _, edge in automaton.ways(node, number, values):
                if edge is None:
                    continue
                if updates:
                    self._update(reader, values[0], edge)
                elif not synchronizes(node, action):
                    self._read_plainly(action.cells, agent)
                self._take(place, edge, before)

    def _update(self, reader: Reader, old: int, edge: Edge) -> None:
        place, number, action = reader
        writer = Writer(ProcessAgent(place.process), None)
        self._once[place] = None
        for cell in action.cells:
            self._written(cell, writer)
        for cell, new in edge.writes:
            if cell == action.cells[0]:
                self.memory.update(("update", place, number), cell, old, new)
            else:
                self._store(((cell, new, SET),), writer, None)

    def _meet(self, place: Place, number: int, action: Action) -> None:
        """A sync passes once each member may be at it, all after the same number of them."""
        count = dict(place.passed).get(action.group, 0)
        here = self._arrived.setdefault((action.group, count), {})
        arrivals = here.setdefault(place.process, [])
        if (place, number) not in arrivals:
            arrivals.append((place, number))
        if len(here) < len(action.members):
            return
        for member in action.members:
            for each, its_number in tuple(here[member]):
                passed = {**dict(each.passed), action.group: min(count + 1, MOST_SYNCS)}
                after = each._replace(passed=tuple(sorted(passed.items())))
                self._after.setdefault(each, {})[after] = None
                for _, edge in self.system.automata[member].ways(each.node, its_number, ()):
                    assert edge is not None
                    self._take(after, edge, self._visited[each])

    # Behind frozen puts

    def _is_held(self, process: int, action: Action) -> bool:
        """Whether a quiet is blocked by a frozen put."""
        if self.system.automata[process].quiet_is_local:
            return False
        held = self._held.get(process, ())
        return any(action.target < 0 or each.target in (action.target, -1) for each in held)

    def _fence(self, process: int, action: Action) -> Fenced:
        """What a fence that is issued here puts between the frozen puts and later ones."""
        targets = {packet.target for packet in action.packets}
        held = self._held.get(process, ())
        if not held:
            return Fenced.NOT
        if -1 in targets:
            return Fenced.FROM_ALL
        covered = all(each.target in targets for each in held)
        return Fenced.BY_TARGET if covered else Fenced.NOT

    def _issue(self, place: Place, number: int, action: Action, fenced: Fenced) -> None:
        process = place.process
        held = [each for each in self._held.get(process, ()) if not each.is_get]
        for i, packet in enumerate(action.packets):
            profile = action.profiles[i]
            behind = (
                held
                and not packet.is_get
                and not packet.reads
                and any(
                    fenced is Fenced.FROM_ALL
                    or (fenced is Fenced.BY_TARGET and early.target == packet.target)
                    or boxes.must_precede(early, packet, profile)
                    for early in held
                )
            )
            if not behind:
                self._counted(place, packet.writes)
                self._lands(packet, ProcessAgent(process), (place, number, i))


def synchronizes(node: Node, action: Action) -> bool:
    """Whether a read is a wait or part of a sweep, which race-free exempts."""
    return action.kind is ActionKind.READ and (action.synchronizing or node.in_sweep)


def failures_of(statements: Iterable[Statement]) -> set[str]:
    """The properties that some statements surely break."""
    broken = {"checks" for s in statements if isinstance(s, Failed)}
    return broken | {"happens-before" for s in statements if isinstance(s, Consumed) and s.failure}


def ghosts_of(statements: Iterable[Statement]) -> set[str]:
    """The ghosts that some statements read or change."""
    return {s.ghost for s in statements if isinstance(s, (GhostUpdate, GhostCheck))}
