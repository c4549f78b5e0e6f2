"""Each role unrolled without loops: the points it can come to, and the arcs between them.

The points are the nodes of the automata on all values that memory may hold (`Contents`), told
apart by how many syncs lie behind them. Arcs that end in a failure that is asked for lead nowhere:
such a run is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from syncproof.checkers.smt.contents import Change, Contents, Numbers
from syncproof.checkers.smt.ghosts import GhostCells
from syncproof.checkers.smt.uncovered import Uncovered
from syncproof.models.automaton import Automaton
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.nodes import Edge, Node
from syncproof.models.operations import Consumed, Failed, Statement
from syncproof.models.outbox import ADD, Packet
from syncproof.models.system import System

MOST_POINTS = 20_000

Syncs = tuple[tuple[str, int], ...]
"""For each group, how many of its syncs lie behind."""


@dataclass(eq=False)
class Point:
    """A place that a process can come to; ``number`` rises along every run of it."""

    process: int
    node: Node
    syncs: Syncs
    number: int = 0
    arcs: list[Arc] = field(default_factory=list)
    incoming: list[Arc] = field(default_factory=list)
    behind: int = 0
    """The points that may lie behind it, as a set of bits."""

    def follows(self, other: Point) -> bool:
        """Whether ``other`` may lie behind this point in a run."""
        return self.process == other.process and bool(self.behind >> other.number & 1)

    def meeting(self, group: str) -> int:
        """The number of the sync of a group that would be next."""
        return dict(self.syncs).get(group, 0)


@dataclass(eq=False)
class Arc:
    """A step from a point by an action on some values; no ``target`` where the run is over."""

    source: Point
    action: int
    values: Numbers
    edge: Edge
    target: Point | None
    failures: tuple[str, ...]
    """Properties in question that the step breaks by what it says."""


class Unrolling:
    """All points of all processes of a system under one assignment of its choices."""

    def __init__(self, system: System, asked: frozenset[str]) -> None:
        self.system, self.asked = system, asked
        self.ghosts = GhostCells(system)
        self.contents = Contents(self.initial_value)
        self._refuse_features()
        self._met: list[dict[int, Node]] = [{} for _ in system.automata]
        self._tabulate()
        self.points: list[list[Point]] = [self._unrolled(each) for each in system.automata]

    def initial_value(self, cell: int) -> int:
        """The number of what a cell, a lock or a ghost holds at first."""
        if cell < 0:
            return self.ghosts.initial(cell)
        if cell >= len(self.system.cells):
            return self.system.values.number(0)
        return self.system.initial_value(cell)

    def first(self, process: int) -> Point:
        """Where a process begins."""
        return self.points[process][0]

    def all_points(self) -> Iterator[Point]:
        """Every point of every process."""
        for points in self.points:
            yield from points

    def _refuse_features(self) -> None:
        features = self.system.features
        profile = self.system.automata[0].profile.name
        if features.views:
            raise Uncovered("load_order 'none'", f"fabric {profile}")
        if features.twins:
            raise Uncovered("quiet 'target'", f"fabric {profile}")
        if features.caches:
            raise Uncovered("memory behind write-back caches", "Region(line=...)")

    # What can happen, whatever the order

    def _tabulate(self) -> None:
        while True:
            self._to_fixed_point()
            if not self._raise_bounds():
                return

    def _to_fixed_point(self) -> None:
        """Follow every edge on every possible value until nothing new turns up."""
        stamps: dict[tuple[int, int], int] = {}
        copies: dict[tuple[int, int, int, int], Packet] = {}
        changed = True
        while changed:
            changed = False
            for process, automaton in enumerate(self.system.automata):
                met = self._met[process]
                met.setdefault(automaton.first.number, automaton.first)
                work = list(met.values())
                while work:
                    node = work.pop()
                    cells = [cell for action in node.actions for cell in action.cells]
                    stamp = self.contents.stamp(cells)
                    if stamps.get((process, node.number)) == stamp:
                        continue
                    stamps[process, node.number] = stamp
                    changed = True
                    for target in self._look(process, node, copies):
                        if target.number not in met:
                            met[target.number] = target
                            work.append(target)
                if sum(map(len, self._met)) > MOST_POINTS:
                    raise Uncovered(f"more than {MOST_POINTS} local states", "")
            for packet in copies.values():
                for values in self.contents.possible(packet.reads):
                    writes = zip(packet.writes, values, strict=True)
                    self.contents.write([(cell, value) for (cell, _, _), value in writes])

    def _look(
        self, process: int, node: Node, copies: dict[tuple[int, int, int, int], Packet]
    ) -> Iterator[Node]:
        """Where the edges of a node lead; what its actions write is noted."""
        for number, action in enumerate(node.actions):
            name = (process, node.number, number)
            for i, packet in enumerate(action.packets):
                if packet.reads:
                    copies[*name, i] = packet
                elif packet.writes:
                    self._note_writes((*name, i), packet.writes)
            self._note_writes((*name, -1), action.writes)
            for _, edge in self.edges(process, node, number):
                if action.kind is ActionKind.UPDATE:
                    function = _updating(self.system.automata[process], node, number, action)
                    self.contents.change(name, action.cells, function)
                elif edge.writes:
                    self.contents.write(edge.writes)
                self.ghosts.note(self.contents, (*name, edge.target.number), edge.statements)
                if not edge.again and not self.failures_of(edge.statements):
                    yield edge.target

    def _note_writes(self, name: object, writes: Sequence[tuple[int, int, int]]) -> None:
        self.contents.write([(cell, value) for cell, value, mode in writes if mode != ADD])
        for cell, delta, mode in writes:
            if mode == ADD:
                self.contents.change((name, cell), (cell,), self._adding(delta))

    def _adding(self, delta: int) -> Change:
        return lambda old: self.added(old, delta)

    def added(self, old: Numbers, delta: int) -> Numbers | None:
        """The value of one cell after an add; None where it holds no number."""
        values = self.system.values
        held, more = values[old[0]], values[delta]
        if not isinstance(held, int) or not isinstance(more, int):
            return None
        return (values.number(held + more),)

    def edges(self, process: int, node: Node, action: int) -> Iterator[tuple[Numbers, Edge]]:
        """The edges of an action, on each of the values that its cells may hold."""
        automaton = self.system.automata[process]
        for values in self.contents.possible(node.actions[action].cells):
            edge = automaton.edge(node, action, values)
            if edge is not None:
                yield values, edge

    def failures_of(self, statements: Sequence[Statement]) -> tuple[str, ...]:
        """The properties in question that a step breaks by what it says itself."""
        found = []
        for each in statements:
            if isinstance(each, Consumed) and each.failure:
                found.append("happens-before")
            elif isinstance(each, Failed):
                found.append("checks")
        return tuple(name for name in dict.fromkeys(found) if name in self.asked)

    def _raise_bounds(self) -> bool:
        """Allow as many read-modify-writes of a cell as some run has; True if that is more."""
        most: dict[int, int] = {}
        for process, met in enumerate(self._met):
            order = self._topological(process)
            counts: dict[int, dict[int, int]] = {}
            for number in reversed(order):
                counts[number] = self._most_changes(process, met[number], counts)
            for cell, count in counts[self.system.automata[process].first.number].items():
                most[cell] = most.get(cell, 0) + count
        return any([self.contents.allow(cell, count) for cell, count in most.items()])

    def _most_changes(
        self, process: int, node: Node, counts: dict[int, dict[int, int]]
    ) -> dict[int, int]:
        best: dict[int, int] = {}
        for number, action in enumerate(node.actions):
            own: dict[int, int] = {}
            writes = [w for packet in action.packets for w in packet.writes] + list(action.writes)
            for cell in [c for c, _, mode in writes if mode == ADD]:
                own[cell] = own.get(cell, 0) + 1
            if action.kind is ActionKind.UPDATE:
                own = dict.fromkeys(action.cells, 1)
            for _, edge in self.edges(process, node, number):
                here = dict(own)
                for cell in self.ghosts.updated(edge.statements):
                    here[cell] = here.get(cell, 0) + 1
                if not edge.again and edge.target.number in counts:
                    for cell, count in counts[edge.target.number].items():
                        here[cell] = here.get(cell, 0) + count
                for cell, count in here.items():
                    best[cell] = max(best.get(cell, 0), count)
        return best

    def _successors(self, process: int, node: Node) -> list[Node]:
        return [
            edge.target
            for number in range(len(node.actions))
            for _, edge in self.edges(process, node, number)
            if not edge.again and not self.failures_of(edge.statements)
        ]

    def _topological(self, process: int) -> list[int]:
        """The nodes of a process, each before those it leads to; a loop is not covered."""
        met = self._met[process]
        after = {n: [t.number for t in self._successors(process, each)] for n, each in met.items()}
        incoming = dict.fromkeys(met, 0)
        for targets in after.values():
            for target in targets:
                incoming[target] += 1
        free = [n for n, count in incoming.items() if not count]
        order = []
        while free:
            number = free.pop()
            order.append(number)
            for target in after[number]:
                incoming[target] -= 1
                if not incoming[target]:
                    free.append(target)
        if len(order) < len(met):
            node = next(met[n] for n in met if incoming[n])
            raise Uncovered(
                "a loop whose number of turns depends on what is read", str(node.place or "")
            )
        return order

    # Points

    def _unrolled(self, automaton: Automaton) -> list[Point]:
        process = automaton.process.number
        first = Point(process, automaton.first, ())
        known = {(automaton.first.number, first.syncs): first}
        work = [first]
        while work:
            point = work.pop()
            for number, action in enumerate(point.node.actions):
                syncs = _counted(point.syncs, action)
                for values, edge in self.edges(process, point.node, number):
                    if edge.again:
                        continue
                    failures = self.failures_of(edge.statements)
                    target = None
                    if not failures:
                        key = (edge.target.number, syncs)
                        if key not in known:
                            known[key] = Point(process, edge.target, syncs)
                            work.append(known[key])
                        target = known[key]
                    arc = Arc(point, number, values, edge, target, failures)
                    point.arcs.append(arc)
                    if target is not None:
                        target.incoming.append(arc)
            if len(known) > MOST_POINTS:
                raise Uncovered(f"more than {MOST_POINTS} points", "")
        return _in_order(first, len(known))


def _updating(automaton: Automaton, node: Node, number: int, action: Action) -> Change:
    def function(old: Numbers) -> Numbers | None:
        edge = automaton.edge(node, number, old)
        if edge is None or not edge.writes:
            return None
        new = dict(zip(action.cells, old, strict=True)) | dict(edge.writes)
        return tuple(new[cell] for cell in action.cells)

    return function


def _counted(syncs: Syncs, action: Action) -> Syncs:
    if action.kind is not ActionKind.SYNC:
        return syncs
    counts = dict(syncs)
    counts[action.group] = counts.get(action.group, 0) + 1
    return tuple(sorted(counts.items()))


def _in_order(first: Point, count: int) -> list[Point]:
    """The points, each behind those that may lie behind it, numbered so."""
    waiting: dict[int, int] = {}
    order = [first]
    for point in order:
        for arc in point.arcs:
            if arc.target is not None:
                left = waiting.setdefault(id(arc.target), len(arc.target.incoming)) - 1
                waiting[id(arc.target)] = left
                if not left:
                    order.append(arc.target)
    assert len(order) == count, "the points of a process have a cycle"
    for number, point in enumerate(order):
        point.number = number
        for arc in point.incoming:
            point.behind |= arc.source.behind | 1 << arc.source.number
    return order
