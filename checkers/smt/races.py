"""Races: two conflicting accesses of a cell that are enabled in one state of some prefix run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from syncproof.checkers.smt.events import Landing
from syncproof.checkers.smt.ordering import must_wait_for, probe_of
from syncproof.checkers.smt.queries import Queries
from syncproof.checkers.smt.terms import Term, all_of, any_of, implies, negated
from syncproof.checkers.smt.unrolling import Point
from syncproof.models.looks import accesses_of
from syncproof.models.lowering import ActionKind
from syncproof.models.outbox import ADD, must_precede
from syncproof.models.transitions import Access


@dataclass(frozen=True)
class Enabled:
    """An access that a step makes, and the condition that the step is enabled in the end."""

    access: Access
    process: int
    """-1 for the fabric."""
    term: Term
    text: str


Pair = tuple[int, Term, str]
"""A cell, the condition that two accesses of it race, and the same in words."""


class Races:
    """All pairs of accesses that may race under one encoding."""

    def __init__(self, queries: Queries) -> None:
        self.queries, self.encoding = queries, queries.encoding
        self._by_cell: dict[int, list[Enabled]] = {}
        self._polls: dict[int, list[Term]] = {}
        for point in self.encoding.unrolling.all_points():
            for number in range(len(point.node.actions)):
                self._add_step(point, number)
        for landing in self.encoding.landings:
            self._add_landing(landing)

    def certain(self) -> Iterator[Pair]:
        """For each cell, that a plain access of it races."""
        for cell, accesses in self._by_cell.items():
            yield from self._on(cell, accesses, plain=True)

    def between_puts(self) -> Iterator[Pair]:
        """For each cell, that two puts to it race; none do if the cell is polled."""
        for cell, accesses in self._by_cell.items():
            yield from self._on(cell, accesses, plain=False)

    def polls(self, cell: int) -> list[Term]:
        """That some process comes to where it polls the cell."""
        return self._polls.get(cell, [])

    def _on(self, cell: int, accesses: list[Enabled], *, plain: bool) -> Iterator[Pair]:
        found = []
        for i, one in enumerate(accesses):
            for other in accesses[:i]:
                if one.process == other.process >= 0 or one.term is other.term:
                    continue
                if not (one.access.writes or other.access.writes):
                    continue
                both = one.access.synchronizing and other.access.synchronizing
                puts = both and one.access.is_put and other.access.is_put
                if (not both) if plain else puts:
                    found.append(all_of((one.term, other.term)))
        if found:
            where = self.encoding.system.cells[cell]
            yield cell, any_of(found), f"two accesses of {where} are not ordered"

    # What is enabled in the end

    def _add_step(self, point: Point, number: int) -> None:
        action = point.node.actions[number]
        cells = len(self.encoding.system.cells)
        accesses = accesses_of(point.node, number)
        is_update = action.kind is ActionKind.UPDATE
        if is_update or any(a.synchronizing for a in accesses if not a.writes):
            for cell in action.cells:
                self._polls.setdefault(cell, []).append(self.encoding.at[point])
        if not any(arc.action == number for arc in point.arcs) and action.kind is not (
            ActionKind.READ
        ):
            return
        if not accesses:
            return
        steps = range(len(point.node.actions))
        stays = [negated(self.encoding.step[point, each]) for each in steps]
        term = all_of((self.encoding.at[point], *stays, *self._not_held_back(point, number)))
        if action.waits and action.cells:
            passing = [
                self.encoding.holds_in_the_end(action.cells, values)
                for values, _ in self.queries.unrolling.edges(point.process, point.node, number)
            ]
            term = all_of((term, any_of(passing)))
        for access in accesses:
            if access.cell < cells:
                self._add(Enabled(access, point.process, term, str(point.node.place)))

    def _not_held_back(self, point: Point, number: int) -> Iterator[Term]:
        action = point.node.actions[number]
        if not action.ordered:
            return
        probe = probe_of(action)
        profile = self.encoding.system.automata[point.process].profile_to(action.target)
        for early in self.encoding.landings:
            if point.follows(early.point) and must_precede(early.settled, probe, profile):
                yield implies(early.issued, early.landed)
        for mark in self.encoding.marks:
            if point.follows(mark.point) and must_precede(mark.packet, probe, profile):
                yield implies(mark.issued, mark.released)

    def _add_landing(self, landing: Landing) -> None:
        held = list(must_wait_for(self.encoding, landing))
        packet = landing.packet
        waits = [implies(issued, done) for issued, done in held]
        may_land = all_of((
            landing.issued, landing.fetched, negated(landing.landed),
            *([] if packet.is_get else waits),
        ))  # fmt: skip
        is_put = any(mode != ADD for _, _, mode in packet.writes)
        for cell, _, _ in packet.writes:
            self._add(Enabled(Access(cell, True, True, is_put), -1, may_land, "landing"))
        if packet.reads:
            first = waits if packet.is_get else []
            copies = [
                implies(issued, done)
                for issued, done in must_wait_for(self.encoding, landing, to_fetch=True)
            ]
            may_fetch = all_of((landing.issued, negated(landing.fetched), *first, *copies))
            for cell in packet.reads:
                self._add(Enabled(Access(cell, False, False, False), -1, may_fetch, "fetch"))

    def _add(self, enabled: Enabled) -> None:
        self._by_cell.setdefault(enabled.access.cell, []).append(enabled)
