"""Each role unrolled without loops: the points it can come to, and the arcs between them.

The points are the nodes of the automata on all values that memory may hold (`Contents`), told
apart by how many syncs lie behind them. Arcs that end in a failure that is asked for lead nowhere:
such a run is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from syncproof.checkers.smt.contents import Change, Contents, Numbers
from syncproof.checkers.smt.ghosts import GhostCells
from syncproof.checkers.smt.uncovered import Uncovered
from syncproof.models.automaton import Automaton
from syncproof.models.lowering import BETWEEN, Action, ActionKind
from syncproof.models.nodes import Edge, Node
from syncproof.models.operations import Consumed, Failed, Statement
from syncproof.models.outbox import ADD, Packet
from syncproof.models.system import System

MOST_POINTS = 20_000
MOST_TURNS = 300

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
    """All points of all processes of a system under one assignment of its choices.

    ``tick`` is called now and then while it grows, and may raise to end it.
    """

    def __init__(
        self, system: System, asked: frozenset[str], tick: Callable[[], object] = int
    ) -> None:
        self.system, self.asked, self._tick = system, asked, tick
        self.ghosts = GhostCells(system)
        self.contents = Contents(self.initial_value)
        self._refuse_features()
        self._met: list[dict[int, Node]] = [{} for _ in system.automata]
        self._level: dict[tuple[int, int], int] = {}
        self._tabulate()
        self.points: list[list[Point]] = [self._unrolled(each) for each in system.automata]

    def initial_value(self, cell: int) -> int:
        """The number of what a cell or a lock holds at first."""
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
        looked: dict[tuple[int, int], tuple[int, int]] = {}
        changed, turns = True, 0
        while changed:
            changed, turns = False, turns + 1
            self._tick()
            if turns > MOST_TURNS:
                raise Uncovered("values in memory that grow with every step", "")
            for process, automaton in enumerate(self.system.automata):
                self._arrive(process, automaton.first, 0)
                work = list(self._met[process].values())
                while work:
                    node = work.pop()
                    cells = [cell for action in node.actions for cell in action.cells]
                    cells += [c for a in node.actions for p in a.packets for c in p.reads]
                    now = (self.contents.stamp(cells), self._level[process, node.number])
                    if looked.get((process, node.number)) == now:
                        continue
                    looked[process, node.number] = now
                    changed = True
                    for target, level in self._look(process, node):
                        if level <= self.contents.most and self._arrive(process, target, level):
                            work.append(target)
                if sum(map(len, self._met)) > MOST_POINTS:
                    raise Uncovered(f"more than {MOST_POINTS} local states", "")

    def _arrive(self, process: int, node: Node, level: int) -> bool:
        """Note a node with its level, as in `Contents`; whether that is news."""
        key = (process, node.number)
        if self._level.get(key, level + 1) <= level:
            return False
        self._met[process][node.number] = node
        self._level[key] = level
        return True

    def _look(self, process: int, node: Node) -> Iterator[tuple[Node, int]]:
        """Where the edges of a node lead; what its actions write is noted."""
        here = self._level[process, node.number]
        for number, action in enumerate(node.actions):
            for packet in action.packets:
                if packet.reads:
                    self._note_copy(packet, here)
                elif packet.writes:
                    self._note_writes(packet.writes, here)
            self._note_writes(_without_atomic(node, action), here)
            for cell, new in _second_half(node, action):
                self.contents.write([(cell, new)], here + 1)
            for values, edge in self.edges(process, node, number):
                level = max(here, self.contents.levels(action.cells)[values])
                if action.kind is ActionKind.UPDATE:
                    after = dict(zip(action.cells, values, strict=True)) | dict(edge.writes)
                    written = tuple(after[cell] for cell in action.cells)
                    self.contents.exchange(action.cells, values, written, here)
                    level += 1
                self.ghosts.note((process, node.number, number, values), edge.statements)
                if not edge.again and not self.failures_of(edge.statements):
                    yield edge.target, level

    def _note_copy(self, packet: Packet, here: int) -> None:
        for values, level in list(self.contents.levels(packet.reads).items()):
            writes = zip(packet.writes, values, strict=True)
            stored = [(cell, value) for (cell, _, _), value in writes]
            self.contents.write(stored, max(here, level))

    def _note_writes(self, writes: Sequence[tuple[int, int, int]], here: int) -> None:
        stored = {cell: value for cell, value, mode in writes if mode != ADD}
        self.contents.write(list(stored.items()), here)
        for cell, delta, mode in writes:
            if mode == ADD:
                self.contents.change(("add", cell, delta), (cell,), self._adding(delta), here)

    def _adding(self, delta: int) -> Change:
        return lambda old: self.added(old, delta)

    def added(self, old: Numbers, delta: int) -> Numbers:
        """The value of one cell after an add."""
        values = self.system.values
        held, more = values[old[0]], values[delta]
        if not isinstance(held, int) or not isinstance(more, int):
            raise Uncovered(f"an add to memory that may hold {held}", "")
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
        """Allow as many read-modify-writes as some run has; True if that is more than before."""
        changes = ghosts = 0
        for process, met in enumerate(self._met):
            counts: dict[int, tuple[int, int]] = {}
            for number in reversed(self._topological(process)):
                counts[number] = self._most_changes(process, met[number], counts)
            first = counts[self.system.automata[process].first.number]
            changes, ghosts = changes + first[0], ghosts + first[1]
        self.ghosts.contents.allow(ghosts)
        return self.contents.allow(changes)

    def _most_changes(
        self, process: int, node: Node, counts: dict[int, tuple[int, int]]
    ) -> tuple[int, int]:
        """The most read-modify-writes from a node on, of memory and of ghosts."""
        most = most_of_ghosts = 0
        for number, action in enumerate(node.actions):
            writes = [w for packet in action.packets for w in packet.writes] + list(action.writes)
            own = sum(mode == ADD for _, _, mode in writes) + len(_second_half(node, action))
            own += action.kind is ActionKind.UPDATE
            most = max(most, own)
            for _, edge in self.edges(process, node, number):
                after = (0, 0) if edge.again else counts.get(edge.target.number, (0, 0))
                said = len(self.ghosts.updated(edge.statements))
                most = max(most, own + after[0])
                most_of_ghosts = max(most_of_ghosts, said + after[1])
        return most, most_of_ghosts

    def _successors(self, process: int, node: Node) -> list[Node]:
        return [
            edge.target
            for number in range(len(node.actions))
            for _, edge in self.edges(process, node, number)
            if not edge.again
            and not self.failures_of(edge.statements)
            and edge.target.number in self._met[process]
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
                    if not failures and edge.target.number not in self._met[process]:
                        continue  # by no run: it would take too many read-modify-writes
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


def _second_half(node: Node, action: Action) -> list[tuple[int, int]]:
    """The write of a local atomic that falls into two steps; others may have written since its
    read, so that it need not meet the value that it was made from."""
    return [action.writes[0][:2]] if BETWEEN in dict(node.progress) else []


def _without_atomic(node: Node, action: Action) -> tuple[tuple[int, int, int], ...]:
    return action.writes[1:] if BETWEEN in dict(node.progress) else action.writes


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
