"""What is asked of the formula: each question as a condition on a run.

A run is a prefix unless it is asked to be `maximal`: then every put has landed and each process
has returned or is at a wait that fails on what memory holds in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from syncproof.checkers.smt.encoding import Encoding
from syncproof.checkers.smt.events import Landing
from syncproof.checkers.smt.terms import (
    FALSE,
    TRUE,
    Term,
    all_of,
    any_of,
    at_least,
    implies,
    negated,
    precedes,
    sums_to,
)
from syncproof.checkers.smt.unrolling import Arc, Point
from syncproof.models.lowering import ActionKind
from syncproof.models.nodes import Node, TokenKey
from syncproof.models.operations import GhostCheck, Reached


class Queries:
    """Conditions over the names of one encoding."""

    def __init__(self, encoding: Encoding, asked: frozenset[str]) -> None:
        self.encoding, self.asked = encoding, asked
        self.unrolling, self.system = encoding.unrolling, encoding.system

    # Failures of steps

    def says_wrong(self, name: str) -> Term:
        """Some step breaks ``name`` by what it says."""
        return any_of(term for _, term in self.failing_arcs(name))

    def each_wrong(self, name: str) -> list[tuple[Term, tuple[int, ...]]]:
        """The same, one condition for each place at which something may be said, with the cells
        that are read there."""
        places: dict[tuple[Point, int], list[Arc]] = {}
        terms: dict[tuple[Point, int], list[Term]] = {}
        for arc, term in self.failing_arcs(name):
            places.setdefault((arc.source, arc.action), []).append(arc)
            terms.setdefault((arc.source, arc.action), []).append(term)
        return [
            (any_of(terms[point, number]), self._cells_read(point, number, arcs))
            for (point, number), arcs in places.items()
        ]

    def _cells_read(self, point: Point, number: int, arcs: list[Arc]) -> tuple[int, ...]:
        ghosts = self.unrolling.ghosts
        said = (cell for arc in arcs for cell in ghosts.touched(arc.edge.statements))
        return (*point.node.actions[number].cells, *dict.fromkeys(said))

    def failing_arcs(self, name: str) -> Iterator[tuple[Arc, Term]]:
        """The steps that break ``name`` by what they say, each with its condition."""
        for point in self.unrolling.all_points():
            for arc in point.arcs:
                if name in arc.failures:
                    yield arc, self.encoding.taken[arc]
                elif name == "checks" and name in self.asked:
                    term = self._ghost_fails(arc)
                    if term != FALSE:
                        yield arc, term

    def _ghost_fails(self, arc: Arc) -> Term:
        statements = arc.edge.statements
        if not any(isinstance(each, GhostCheck) for each in statements):
            return FALSE
        ghosts, found = self.unrolling.ghosts, []
        for cell in ghosts.touched(statements):
            reading = self.encoding.readings["ghost", arc.source, arc.action, cell]
            for (old,) in self.unrolling.ghosts.contents.possible((cell,)):
                if not ghosts.after(statements, cell, old)[1]:
                    met = self.encoding.holds(reading, (cell,), (old,))
                    found.append(all_of((self.encoding.taken[arc], met)))
        return any_of(found)

    @cached_property
    def goes_on(self) -> Term:
        """No step breaks a property in question, so that the run is not over."""
        terms = [self.says_wrong(name) for name in ("happens-before", "checks")]
        return negated(any_of(terms))

    def errors(self) -> dict[Point, Term]:
        """The points at which a role has gone wrong."""
        return {
            point: self.encoding.at[point]
            for point in self.unrolling.all_points()
            if point.node.state == "error"
        }

    def reaches(self, name: str) -> Term:
        """Some step says that it reaches a place."""
        return any_of(
            self.encoding.taken[arc]
            for point in self.unrolling.all_points()
            for arc in point.arcs
            if any(isinstance(s, Reached) and s.name == name for s in arc.edge.statements)
        )

    def names_reached(self) -> list[str]:
        """The places that some step names."""
        statements = [
            each
            for point in self.unrolling.all_points()
            for arc in point.arcs
            for each in arc.edge.statements
        ]
        return list(dict.fromkeys(s.name for s in statements if isinstance(s, Reached)))

    # Runs that are complete

    @cached_property
    def maximal(self) -> Term:
        """Nothing happens any more."""
        terms = [implies(each.issued, each.landed) for each in self.encoding.landings]
        for point in self.unrolling.all_points():
            if point.node.state != "done":
                stays = all_of((self.encoding.at[point], *self._no_step(point)))
                terms.append(implies(stays, self.blocked(point)))
        return all_of(terms)

    def _no_step(self, point: Point) -> list[Term]:
        numbers = range(len(point.node.actions))
        return [negated(self.encoding.step[point, number]) for number in numbers]

    @cached_property
    def all_done(self) -> Term:
        """Every process has returned."""
        return all_of(self.is_done(process) for process in range(self.system.processes))

    @cached_property
    def not_all_done(self) -> Term:
        """Some process has not returned."""
        return negated(self.all_done)

    def is_done(self, process: int) -> Term:
        """A process has returned."""
        points = self.unrolling.points[process]
        return any_of(self.encoding.at[p] for p in points if p.node.state == "done")

    def blocked(self, point: Point) -> Term:
        """A process at ``point`` can never go on, once memory holds what it does in the end."""
        actions = point.node.actions
        if not actions:
            return FALSE
        if actions[0].kind is ActionKind.SYNC:
            turn = point.meeting(actions[0].group)
            members = self.encoding.members_at(actions[0].group, turn)
            present = [any_of(self.encoding.at[p] for p, _ in each) for each in members.values()]
            return negated(all_of(present))
        if len(actions) == 1 and actions[0].waits:
            return self._wait_fails(point)
        return self._sweep_fails(point, point.node, 0)

    def _wait_fails(self, point: Point) -> Term:
        (action,) = point.node.actions
        passing = [
            self.encoding.holds_in_the_end(action.cells, values)
            for values, _ in self.unrolling.edges(point.process, point.node, 0)
        ]
        return negated(any_of(passing))

    def _sweep_fails(self, point: Point, base: Node, depth: int) -> Term:
        """A sweep that begins at ``base`` and has come to ``point`` fails in the end."""
        action = point.node.actions[0] if point.node.actions else None
        if action is None or action.kind is not ActionKind.READ or not _within(point.node, base):
            return FALSE
        found = []
        for values, edge in self.unrolling.edges(point.process, point.node, 0):
            fails = FALSE
            if edge.again:
                fails = TRUE if edge.target is base else FALSE
            else:
                target = next(
                    (a.target for a in point.arcs if a.action == 0 and a.edge is edge), None
                )
                if target is not None:
                    fails = self._sweep_fails(target, base, depth + 1)
            if fails != FALSE:
                met = self.encoding.holds_in_the_end(action.cells, values)
                found.append(all_of((met, fails)))
        return any_of(found)

    # Ends

    def returns_early(self) -> Iterator[Term]:
        """A process returns while its puts are in flight, one condition for each way to return."""
        for point in self.unrolling.all_points():
            for arc in point.arcs:
                if arc.target is not None and arc.target.node.state == "done":
                    pending = [self._pending_at(each, arc) for each in self.encoding.landings]
                    yield all_of((self.encoding.taken[arc], any_of(pending)))

    def _pending_at(self, landing: Landing, arc: Arc) -> Term:
        if landing.point is arc.source and landing.action == arc.action:
            return TRUE
        if not arc.source.follows(landing.point):
            return FALSE
        late = any_of(
            (negated(landing.landed), precedes(self.encoding.end_clock(arc), landing.clock))
        )
        return all_of((landing.issued, late))

    def not_clean(self) -> Term:
        """A region that must end as it began does not."""
        found = []
        for number, cell in enumerate(self.system.cells):
            if cell.slot.region.clean and len(self.encoding.location[number].writes) > 1:
                initial = self.system.initial_value(number)
                held = self.encoding.holds_in_the_end((number,), (initial,))
                found.append(negated(held))
        return any_of(found)

    def miscounted(self) -> Term:
        """When all have returned some token was not consumed exactly once."""
        sent: dict[TokenKey, list[Term]] = {}
        times: dict[TokenKey, list[tuple[Term, int]]] = {}
        for point in self.unrolling.all_points():
            if point.node.state == "done":
                here = self.encoding.at[point]
                ledger_sent, consumed = self.system.ledger.contents[point.node.ledger]
                for key in ledger_sent:
                    sent.setdefault(key, []).append(here)
                for key, count in consumed:
                    times.setdefault(key, []).append((here, count))
        found = []
        for key in sorted({*sent, *times}, key=str):
            counts = times.get(key, [])
            once = sums_to(1, counts) if counts else FALSE
            right = all_of((any_of(sent.get(key, [])), once))
            found.append(negated(right))
        return any_of(found)

    # The in-flight bound

    def within_bound(self) -> Term:
        """No put meets the in-flight bound of its fabric."""
        return all_of(negated(each) for each in self.meets_bound())

    def meets_bound(self) -> Iterator[Term]:
        """A put meets the bound, one condition for each."""
        by_cell: dict[tuple[int, int], list[Landing]] = {}
        for landing in self.encoding.landings:
            for cell in dict.fromkeys(cell for cell, _, _ in landing.packet.writes):
                by_cell.setdefault((landing.point.process, cell), []).append(landing)
        for landings in by_cell.values():
            for late in landings:
                most = late.profile.in_flight
                pending = [
                    term for early in landings if (term := self._pending_when(early, late)) != FALSE
                ]
                if len(pending) >= most:
                    yield all_of((late.issued, at_least(most, pending)))

    def _pending_when(self, early: Landing, late: Landing) -> Term:
        if late.point.follows(early.point):
            issue = self.encoding.clock[late.point]
            after = any_of((negated(early.landed), precedes(issue, early.clock)))
            return all_of((early.issued, after))
        packets = [id(packet) for packet in late.point.node.actions[late.action].packets]
        earlier = late.was_with(early) and packets.index(id(early.packet)) < packets.index(
            id(late.packet)
        )
        return early.issued if earlier else FALSE


def _within(node: Node, base: Node) -> bool:
    """Whether a node belongs to the sweep that begins at ``base``."""
    here = node.base or node
    return here is base or here.sweep_first is base
