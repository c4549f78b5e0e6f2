"""The one-slot cut: two processes and the cells of one slot, on rounds of any number.

What the two do elsewhere is left out: other puts are dropped, other reads may find anything that
the cells ever hold, nobody else is waited for, a quiet waits for puts to the slot alone. All of
this only adds runs. What is left of the rest is how far the two are apart (`Apart`), which the
quotient has shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import z3

from syncproof.checkers.unbounded.cases import Case, Role, Shapes, holds
from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.checkers.unbounded.search import Graph
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.nodes import Node
from syncproof.models.operations import Consumed, Failed
from syncproof.models.outbox import ADD, SET, Element, Packet, must_precede, overfull

Key = tuple[str, int]
"""An integer of a state: ("own", process), or ("round", i) for what rounds in memory and in flight
are counted from."""

Read = tuple[int, tuple[int, ...]]
"""A process, and the cells that it reads at once."""


class Content(NamedTuple):
    """What a cell holds: a shape, and for each round in it the integer it is counted from, and how
    far. Rounds that were put together are counted from one."""

    shape: int
    rounds: tuple[tuple[int, int], ...]


class Flight(NamedTuple):
    """A put on its way; in ``packet`` the values are places in ``contents``. ``after`` are the
    places of the puts that must land before it."""

    packet: Packet
    contents: tuple[Content, ...]
    after: tuple[int, ...]


class Control(NamedTuple):
    """A state without its integers."""

    nodes: tuple[int, ...]
    cells: tuple[Content, ...]
    flights: tuple[tuple[Flight, ...], ...]

    def contents(self) -> Iterator[Content]:
        """Everything that holds rounds, in order."""
        yield from self.cells
        for flights in self.flights:
            for flight in flights:
                yield from flight.contents


@dataclass(frozen=True)
class Rule:
    """A step: from one control state to another, or to a failure or an overfull slot."""

    source: Control
    target: Control | str
    guard: Any
    values: dict[Key, Any]


BAD, OVERFULL, CONSUMED = "failure", "overfull", "consumed"
"""A consume goes wrong; a slot has too many puts on their way; a consume goes well."""


Apart = dict[tuple[bool, bool], tuple[int, int]]
"""By how many rounds a process is ahead of another at least and at most, by whether each has
begun to count."""


def apart(graph: Graph, process: int, last: int) -> Apart:
    """How far a process is ahead of another in the states of a quotient."""
    found: Apart = {}
    for state in graph.parents:
        one, other = (graph.system.node_of(state, each) for each in (process, last))
        if one.state == other.state == "run":
            ahead = (one.round or 0) - (other.round or 0)
            begun = one.round is not None, other.round is not None
            least, most = found.get(begun, (ahead, ahead))
            found[begun] = min(least, ahead), max(most, ahead)
    return found


@dataclass
class Cut:
    """What to follow: ``processes`` (the last is the one that consumes), ``cells``, and how far
    each other process is ahead of the last."""

    graph: Graph
    processes: tuple[int, ...]
    cells: tuple[int, ...]
    apart: dict[int, Apart]
    contents: dict[int, tuple[int, ...]]
    shapes: Shapes
    left_out: set[Read] = field(default_factory=set)
    """Reads that may fail, whose failures another cut has to ask for."""

    def __post_init__(self) -> None:
        system = self.graph.system
        self._ends: dict[tuple[int, int], tuple[int, ...]] = {}
        self.roles = {p: Role(system.framed[p].home, self.shapes) for p in self.processes}

    # States

    def first(self) -> tuple[Control, dict[Key, Any]]:
        """The control state in which all begin, and its integers."""
        system, values = self.graph.system, dict[Key, Any]()
        cells = []
        for cell in self.cells:
            plain = system.round_values.plain(system.initial_value(cell))
            shape, quotients = self.shapes.split(plain)
            cells.append(Content(shape, tuple((-1, each) for each in quotients)))
        values["round", -1] = z3.IntVal(0)
        nodes = tuple(system.framed[p].home.first.number for p in self.processes)
        values |= {("own", p): z3.IntVal(0) for p in self.processes[:-1]}
        control = Control(nodes, tuple(cells), tuple(() for _ in self.processes))
        return _renumbered(control, values)

    def asks_for(self, read: Read) -> bool:
        """Whether the failures of a read are asked for here."""
        process, cells = read
        return process in self.processes and set(cells) <= set(self.cells)

    def keys(self, control: Control) -> list[Key]:
        """The integers of a control state, in order; all are relative to the last process."""
        numbers = (i for content in control.contents() for i, _ in content.rounds)
        held: list[Key] = [("round", i) for i in dict.fromkeys(numbers)]
        return [*(("own", p) for p in self.processes[:-1]), *held]

    def node(self, control: Control, place: int) -> Node:
        """The local state of the process at a place of ``processes``."""
        home = self.graph.system.framed[self.processes[place]].home
        return home.nodes[control.nodes[place]]

    # Steps

    def rules(self, control: Control, values: dict[Key, Any]) -> Iterator[Rule]:
        """Every step from a control state whose integers are ``values``."""
        for place, process in enumerate(self.processes):
            yield from self._landings(control, values, place, process)
            node = self.node(control, place)
            if node.state == "run":
                for number, action in enumerate(node.actions):
                    yield from self._steps(control, values, place, node, number, action)

    def _landings(
        self, control: Control, values: dict[Key, Any], place: int, process: int
    ) -> Iterator[Rule]:
        flights = control.flights[place]
        for i, flight in enumerate(flights):
            if flight.after:
                continue
            cells = list(control.cells)
            for cell, at, _ in flight.packet.writes:
                cells[self.cells.index(cell)] = flight.contents[at]
            kept = [n for n in range(len(flights)) if n != i]
            left = tuple(
                flights[n]._replace(after=tuple(kept.index(a) for a in flights[n].after if a != i))
                for n in kept
            )
            target = control._replace(
                cells=tuple(cells), flights=_replaced(control.flights, place, left)
            )
            yield self._rule(control, target, z3.BoolVal(True), values)

    def _steps(
        self,
        control: Control,
        values: dict[Key, Any],
        place: int,
        node: Node,
        number: int,
        action: Action,
    ) -> Iterator[Rule]:
        process = self.processes[place]
        own = self._own(values, place)
        if action.kind in (ActionKind.ISSUE, ActionKind.FENCE, ActionKind.SYNC):
            yield from self._after(control, values, place, node, number, ())
        elif action.kind is ActionKind.QUIET:
            home = self.graph.system.framed[process].home
            pending = [f for f in control.flights[place] if _covers(action, f.packet)]
            if home.quiet_is_local or not pending:
                yield from self._after(control, values, place, node, number, ())
        elif action.kind is ActionKind.READ:
            if set(action.cells) <= set(self.cells):
                held = [control.cells[self.cells.index(cell)] for cell in action.cells]
                read = [values["round", i] + more for each in held for i, more in each.rounds]
                shapes = tuple(each.shape for each in held)
                for case in self.roles[process].cases(node, number, shapes):
                    guard = holds(case.tests, own, read)
                    yield from self._case(control, values, place, node, number, case, guard)
            else:
                for shapes in _product([self.contents[cell] for cell in action.cells]):
                    yield from self._after(control, values, place, node, number, shapes)
        else:
            raise NotCovered(f"the cut does not cover a step that is an {action.kind.value}")

    def _after(
        self,
        control: Control,
        values: dict[Key, Any],
        place: int,
        node: Node,
        number: int,
        shapes: tuple[int, ...],
    ) -> Iterator[Rule]:
        """The steps of an action on values about whose rounds nothing is known."""
        free = node.actions[number].kind is ActionKind.READ
        for case in self.roles[self.processes[place]].cases(node, number, shapes):
            true = z3.BoolVal(True)
            yield from self._case(control, values, place, node, number, case, true, free=free)

    def _case(
        self,
        control: Control,
        values: dict[Key, Any],
        place: int,
        node: Node,
        number: int,
        case: Case,
        guard: Any,
        *,
        free: bool = False,
    ) -> Iterator[Rule]:
        edge = case.edge.edge
        if edge is None:
            return
        process, action = self.processes[place], node.actions[number]
        if any(_fails(each) for each in edge.statements):
            if free:  # any rounds may have been read
                self.left_out.add((process, action.cells))
            else:
                yield self._rule(control, BAD, guard, {})
            return
        if not free and any(isinstance(each, Consumed) for each in edge.statements):
            yield self._rule(control, CONSUMED, guard, {})
        if any(cell in self.cells for cell, _, _ in action.writes):
            raise NotCovered("the cut does not cover a write at once")
        if edge.target.state == "error":
            return  # the quotient meets no such state
        after, flights = dict(values), control.flights
        issued = self._issued(control, values, place, node, action, after)
        if issued is None:
            yield self._rule(control, OVERFULL, guard, {})
            return
        flights = _replaced(flights, place, issued)
        moved = self.roles[process].moves_on(node, case.edge)
        if moved and place == len(self.processes) - 1:
            after = {key: value - moved for key, value in after.items()}
        elif moved:
            after["own", process] = after["own", process] + moved
        for settled in self._settled(place, edge.target):
            nodes = _replaced(control.nodes, place, settled)
            yield self._rule(control, Control(nodes, control.cells, flights), guard, after)

    # Steps that nobody sees

    def _settled(self, place: int, node: Node) -> tuple[int, ...]:
        """Where a process stands once it has taken the steps that do nothing here.

        Such steps are always possible, and no other step depends on whether they are taken.
        """
        key = (place, node.number)
        if key not in self._ends:
            ends, seen, work = dict[int, None](), {node.number}, [node]
            while work:
                here = work.pop()
                after = self._silent(place, here)
                if after is None:
                    ends[here.number] = None
                for each in after or ():
                    if each.number not in seen:
                        seen.add(each.number)
                        work.append(each)
            self._ends[key] = tuple(ends)
        return self._ends[key]

    def _silent(self, place: int, node: Node) -> list[Node] | None:
        """Where a step that does nothing here leads; None if the step does something."""
        role = self.roles[self.processes[place]]
        if node.state != "run" or len(node.actions) != 1 or not self._is_elsewhere(node.actions[0]):
            return None
        (action,) = node.actions
        found = []
        for shapes in _product([self.contents[cell] for cell in action.cells]):
            for case in role.cases(node, 0, shapes):
                if case.edge.edge is None:
                    continue
                if any(_fails(each) for each in case.edge.edge.statements):
                    if not action.cells:
                        return None
                    self.left_out.add((self.processes[place], action.cells))
                    continue
                target = case.edge.edge.target
                if role.moves_on(node, case.edge) or target.state != "run":
                    return None
                if role.has_begun(node) != role.has_begun(target):
                    return None
                if role.residue(node) != role.residue(target):
                    return None
                found.append(target)
        return found

    def _is_elsewhere(self, action: Action) -> bool:
        """Whether an action has nothing to do with the cells of the cut."""
        written = {cell for packet in action.packets for cell, _, _ in packet.writes}
        written |= {cell for cell, _, _ in action.writes}
        if written & set(self.cells):
            return False
        if action.kind is ActionKind.READ:
            return not set(action.cells) <= set(self.cells)
        return action.kind in (ActionKind.ISSUE, ActionKind.FENCE, ActionKind.SYNC)

    def _issued(
        self,
        control: Control,
        values: dict[Key, Any],
        place: int,
        node: Node,
        action: Action,
        after: dict[Key, Any],
    ) -> tuple[Flight, ...] | None:
        """The puts on their way once an action has issued its own; None if they are too many."""
        process = self.processes[place]
        flights = list(control.flights[place])
        elements = [Element(each.packet, (), ()) for each in flights]
        for packet, profile in zip(action.packets, action.profiles, strict=True):
            if packet.is_fence:
                continue  # without it more may be overtaken
            writes = [write for write in packet.writes if write[0] in self.cells]
            if not writes:
                continue
            if packet.reads or any(mode == ADD for _, _, mode in writes):
                raise NotCovered("the cut does not cover copies and atomic puts")
            fresh = FRESH + len(flights)
            after["round", fresh] = self._own(values, place)
            contents = []
            for _, number, _ in writes:
                shape, quotients = self.roles[process].written(node, number)
                contents.append(Content(shape, tuple((fresh, each) for each in quotients)))
            made = [(cell, at, SET) for at, (cell, _, _) in enumerate(writes)]
            late = packet._replace(writes=tuple(made))
            if overfull(elements, late, profile.in_flight):
                return None
            before = tuple(
                i for i, f in enumerate(flights) if must_precede(f.packet, late, profile)
            )
            flights.append(Flight(late, tuple(contents), before))
            elements.append(Element(late, (), ()))
        return tuple(
            f._replace(packet=f.packet._replace(own_put=False, place=0, is_signal=False))
            for f in flights
        )

    def _own(self, values: dict[Key, Any], place: int) -> Any:
        if place == len(self.processes) - 1:
            return z3.IntVal(0)
        return values["own", self.processes[place]]

    def _rule(
        self, source: Control, target: Control | str, guard: Any, values: dict[Key, Any]
    ) -> Rule:
        if isinstance(target, str):
            return Rule(source, target, guard, {})
        near = self._near(target, values)
        control, after = _renumbered(target, values)
        return Rule(source, control, z3.And(guard, *near), after)

    def _near(self, control: Control, values: dict[Key, Any]) -> Iterator[Any]:
        """That the processes are no farther apart than they ever are."""
        last = self.node(control, len(self.processes) - 1)
        if last.state != "run":
            return
        for place, process in enumerate(self.processes[:-1]):
            node = self.node(control, place)
            if node.state == "run":
                role, last_role = self.roles[process], self._last_role
                begun = role.has_begun(node), last_role.has_begun(last)
                least, most = self.apart[process].get(begun, (1, 0))
                shift = role.residue(node) - last_role.residue(last)
                ahead = values["own", process] * self.shapes.modulus + shift
                yield z3.And(least <= ahead, ahead <= most)

    @property
    def _last_role(self) -> Role:
        return self.roles[self.processes[-1]]


FRESH = 1_000
"""Integers of a step's own puts are numbered from here on, until they are renumbered."""


def _renumbered(control: Control, values: dict[Key, Any]) -> tuple[Control, dict[Key, Any]]:
    """The same state with its integers numbered as they occur, each that of its first round."""
    found: dict[int, tuple[int, int]] = {}
    after = {key: value for key, value in values.items() if key[0] == "own"}

    def renumbered(content: Content) -> Content:
        rounds = []
        for i, more in content.rounds:
            if i not in found:
                found[i] = len(found), more
                after["round", found[i][0]] = values["round", i] + more
            number, first = found[i]
            rounds.append((number, more - first))
        return Content(content.shape, tuple(rounds))

    cells = tuple(renumbered(each) for each in control.cells)
    flights = tuple(
        tuple(f._replace(contents=tuple(renumbered(c) for c in f.contents)) for f in each)
        for each in control.flights
    )
    return Control(control.nodes, cells, flights), after


def _fails(statement: Any) -> bool:
    wrong = isinstance(statement, Consumed) and bool(statement.failure)
    return wrong or isinstance(statement, Failed)


def _covers(action: Action, packet: Packet) -> bool:
    return action.target < 0 or packet.target == action.target


def _replaced(held: tuple[Any, ...], place: int, new: Any) -> tuple[Any, ...]:
    return (*held[:place], new, *held[place + 1 :])


def _product(sets: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    if not sets:
        yield ()
        return
    for first in sets[0]:
        for rest in _product(sets[1:]):
            yield (first, *rest)
