"""A state of the model that is changed in place: one step costs what it touches, not the state.

It takes only steps of which it is sure; for all others `Walk` asks the system itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.actions import is_at, kinds_of
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.live import LiveAutomaton
from syncproof.models.fabric import Profile
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.nodes import Edge
from syncproof.models.outbox import (
    ADD,
    SET,
    Element,
    Outbox,
    Packet,
    canonical,
    must_precede,
    reads_first,
)
from syncproof.models.system import System
from syncproof.models.transitions import Failure, State

BytesOf = Callable[[int, int], bytes]
"""The bytes that a value number stands for in a cell."""


SYNC, QUIET = ActionKind.SYNC, ActionKind.QUIET
LOOKING = (ActionKind.READ, ActionKind.UPDATE)


class Flying:
    """A packet in flight, with those that must land, or be read, before it."""

    __slots__ = ("after", "cells", "followers", "packet", "read_after")

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.cells = tuple([cell for cell, _, _ in packet.writes])
        self.after: set[Flying] = set()
        self.read_after: set[Flying] = set()
        self.followers: list[Flying] = []


class Box:
    """What one process has in flight, in the order in which it was issued."""

    def __init__(self) -> None:
        self.flying: dict[Flying, None] = {}
        self.to_cell: dict[int, list[Flying]] = {}
        self.fences: dict[Flying, None] = {}

    def add(self, each: Flying) -> None:
        """Send off a packet whose dependencies are known."""
        self.flying[each] = None
        if each.after or each.read_after:
            for early in each.after | each.read_after:
                early.followers.append(each)
        if each.packet.is_fence:
            self.fences[each] = None
        to_cell = self.to_cell
        for cell in each.cells:
            if cell in to_cell:
                to_cell[cell].append(each)
            else:
                to_cell[cell] = [each]

    def remove(self, each: Flying) -> None:
        """It has landed, and so has every fence that waited for nothing else."""
        del self.flying[each]
        self.fences.pop(each, None)
        for cell in each.cells:
            there = self.to_cell[cell]
            there.remove(each)
            if not there:
                del self.to_cell[cell]
        for late in each.followers:
            late.after.discard(each)
            late.read_after.discard(each)
            if late.packet.is_fence and not late.after and late in self.flying:
                self.remove(late)

    def rivals(self, late: Packet, own: Sequence[Flying], profile: Profile) -> Iterable[Flying]:
        """All that can have to precede ``late``: where puts are in no order, few."""
        if profile.ordering != "none" or late.is_get or late.is_fence or late.is_signal:
            return self.flying
        to_cell = self.to_cell
        same = [each for cell, _, _ in late.writes if cell in to_cell for each in to_cell[cell]]
        return dict.fromkeys([*same, *self.fences, *own]) if same or self.fences else own

    def elements(self) -> Outbox:
        """As the model writes it."""
        number = {each: i for i, each in enumerate(self.flying)}
        return canonical(
            [
                Element(
                    _settled(each.packet),
                    tuple(sorted(number[e] for e in each.after)),
                    tuple(sorted(number[e] for e in each.read_after)),
                )
                for each in self.flying
            ]
        )


def box_of(outbox: Outbox) -> Box:
    """An outbox of the model, to be changed in place."""
    box, made = Box(), [Flying(element.packet) for element in outbox]
    for each, element in zip(made, outbox, strict=True):
        each.after = {made[i] for i in element.after}
        each.read_after = {made[i] for i in element.read_after}
    for each in made:
        box.add(each)
    return box


def suits(system: System) -> bool:
    """Whether states of a system can be changed in place: no caches, no views, no twins."""
    features = system.features
    return not (features.twins or features.caches or features.views)


class InPlace:
    """Follows a run from ``state`` on as long as each step is the only one that fits."""

    def __init__(self, system: System, state: State, bytes_of: BytesOf) -> None:
        self._system, self._bytes_of = system, bytes_of
        self._work = list(state)
        self._first = system.first_cell
        self._boxes = [box_of(system.outbox(state, p)) for p in range(system.processes)]
        self._automata = cast("tuple[LiveAutomaton, ...]", system.automata)
        self._nodes = [system.node(state, process) for process in range(system.processes)]
        self.failures: list[Failure] = []

    def state(self) -> State:
        """The state as the system has it."""
        system = self._system
        for process, box in enumerate(self._boxes):
            number = system.outboxes.number(box.elements()) if box.flying else 0
            self._work[system.first_outbox + process] = number
        return tuple(self._work)

    def take(self, event: Event) -> bool:
        """Take a step; False, and nothing is changed, unless exactly one step of the model is
        surely the event's."""
        do = event.do
        if do == events.LAND:
            return self._land(event)
        if do == events.READ_SOURCE:
            return self._read_source(event)
        return do not in events.OF_THE_FABRIC and self._step(event)

    # The fabric

    def _land(self, event: Event) -> bool:
        box, cells = self._boxes[event.process], event.cells
        found = [
            each
            for each in box.to_cell.get(cells[0], ())
            if not each.after and not each.packet.reads and each.cells == cells
        ]
        if len(found) != 1 or len(set(cells)) != len(cells):
            return False
        work, first, values = self._work, self._first, []
        for (cell, value, mode), data in zip(found[0].packet.writes, event.data, strict=True):
            if mode == ADD:
                value = self._sum(work[first + cell], value)
            if self._bytes_of(cell, value) != data:
                return False
            values.append(value)
        for cell, value in zip(cells, values, strict=True):
            work[first + cell] = value
        box.remove(found[0])
        return True

    def _sum(self, old: int, more: int) -> int:
        values = self._system.values
        one, other = values[old], values[more]
        assert isinstance(one, int) and isinstance(other, int)
        return values.number(one + other)

    def _read_source(self, event: Event) -> bool:
        box = self._boxes[event.process]
        found = [
            each
            for each in box.flying
            if each.packet.reads == event.cells
            and not (each.after if each.packet.is_get else each.read_after)
        ]
        if len(found) != 1:
            return False
        (each,) = found
        writes = tuple(
            (cell, self._work[self._first + source], mode)
            for (cell, _, mode), source in zip(each.packet.writes, each.packet.reads, strict=True)
        )
        each.packet = each.packet._replace(writes=writes, reads=())
        each.read_after.clear()
        for late in each.followers:
            late.read_after.discard(each)
        return True

    # Processes

    def _step(self, event: Event) -> bool:
        node = self._nodes[event.process]
        if node.state != "run" or not is_at(node, event):
            return False
        found = _fitting(node.actions, event)
        if len(found) != 1:
            return False
        process, action = event.process, node.actions[found[0]]
        kind, work, first = action.kind, self._work, self._first
        if kind is SYNC:
            return self._meet(process, action)
        values: tuple[int, ...] = ()
        if kind in LOOKING:
            values = tuple([work[first + cell] for cell in action.cells])
            if not self._have(event, values):
                return False
            if action.ordered and self._holds_back(process, action):
                return False
        elif kind is QUIET and not self._is_quiet(process, action.target):
            return False
        edge = self._automata[process].edge(node, found[0], values)
        if edge is None:
            return False
        if action.packets:
            self._issue(process, action)
        for cell, value, mode in action.writes:
            at = first + cell
            work[at] = self._sum(work[at], value) if mode == ADD else value
        self._go(process, edge)
        return True

    def _have(self, event: Event, values: tuple[int, ...]) -> bool:
        """Whether values have the bytes that were read."""
        bytes_of = self._bytes_of
        for cell, value, data in zip(event.cells, values, event.data, strict=False):
            if bytes_of(cell, value) != data:
                return False
        return True

    def _go(self, process: int, edge: Edge) -> None:
        for cell, value in edge.writes:
            self._work[self._first + cell] = value
        self._nodes[process] = edge.target
        self._work[process] = edge.target.number
        if edge.statements:
            self._system.ghosts.hear(self._work, process, edge.statements, self.failures, [])
        if edge.target.state == "done" and self._boxes[process].flying:
            failure = Failure("quiescent", "returns while its puts are in flight", process)
            self.failures.append(failure)

    def _meet(self, process: int, action: Action) -> bool:
        if process != min(action.members):
            return False
        edges: list[Edge] = []
        for member in action.members:
            node = self._nodes[member]
            here = [i for i, each in enumerate(node.actions) if _is_meeting(each, action)]
            edge = self._automata[member].edge(node, here[0], ()) if here else None
            if edge is None:
                return False
            edges.append(edge)
        for member, edge in zip(action.members, edges, strict=True):
            self._go(member, edge)
        return True

    def _issue(self, process: int, action: Action) -> None:
        box = self._boxes[process]
        own: list[Flying] = []
        for packet, profile in zip(action.packets, action.profiles, strict=True):
            late = Flying(packet)
            for early in box.rivals(packet, own, profile):
                if must_precede(early.packet, packet, profile):
                    late.after.add(early)
                if _is_read_behind(early.packet, packet, profile):
                    late.read_after.add(early)
            if packet.is_fence and not late.after:
                continue
            box.add(late)
            own.append(late)
        for each in own:
            each.packet = _settled(each.packet)

    def _is_quiet(self, process: int, target: int) -> bool:
        flying = [each.packet for each in self._boxes[process].flying]
        if self._automata[process].quiet_is_local:
            return not any(each.reads or each.is_get for each in flying)
        return not any(target < 0 or each.target in (target, -1) for each in flying)

    def _holds_back(self, process: int, action: Action) -> bool:
        """Whether an earlier put of the process must land before this get or atomic."""
        profile = self._automata[process].profile_to(action.target)
        is_get = action.kind is ActionKind.READ
        writes = tuple([(cell, -1, SET) for cell in action.cells])
        reads = action.cells if is_get else ()
        probe = Packet(writes, reads, action.target, action.queue, False, 0, False, is_get, False)
        flying = self._boxes[process].flying
        return any(must_precede(each.packet, probe, profile) for each in flying)


def _fitting(actions: Sequence[Action], event: Event) -> list[int]:
    """Which actions can be an event's, by what they do and where."""
    kinds, cells = kinds_of(event), event.cells
    if not event.data:
        return [i for i, action in enumerate(actions) if action.kind in kinds]
    count = len(cells)
    return [
        i
        for i, action in enumerate(actions)
        if action.kind in kinds and action.cells[:count] == cells
    ]


def _settled(packet: Packet) -> Packet:
    """A packet without what only orders it against the others of its own put."""
    writes, reads, target, queue, _, _, _, is_get, is_fence = packet
    return Packet(writes, reads, target, queue, False, 0, False, is_get, is_fence)


def _is_meeting(action: Action, other: Action) -> bool:
    return action.kind is ActionKind.SYNC and action.group == other.group


def _is_read_behind(early: Packet, late: Packet, profile: Profile) -> bool:
    if not late.reads or late.is_get or not early.reads or early.is_get:
        return False
    return reads_first(early, late, profile)
