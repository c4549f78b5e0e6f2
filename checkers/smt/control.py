"""Where processes are, and what they have issued: the part of the axioms without memory."""

from __future__ import annotations

from collections.abc import Iterable

import z3

from syncproof.checkers.smt.events import Landing, Mark, Term
from syncproof.checkers.smt.unrolling import Arc, Point, Unrolling
from syncproof.models.lowering import Action, ActionKind

TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)


def any_of(terms: Iterable[Term]) -> Term:
    """A disjunction, as short as it can be written."""
    found = [term for term in terms if not z3.is_false(term)]
    if any(z3.is_true(term) for term in found):
        return TRUE
    return z3.Or(found) if len(found) > 1 else found[0] if found else FALSE


def all_of(terms: Iterable[Term]) -> Term:
    """A conjunction, as short as it can be written."""
    found = [term for term in terms if not z3.is_true(term)]
    if any(z3.is_false(term) for term in found):
        return FALSE
    return z3.And(found) if len(found) > 1 else found[0] if found else TRUE


class Control:
    """Steps, clocks, meetings and puts of one unrolling, with what has to hold among them."""

    def __init__(self, unrolling: Unrolling) -> None:
        self.unrolling, self.system = unrolling, unrolling.system
        self.constraints: list[Term] = []
        self.labels: list[object] = []
        self.at: dict[Point, Term] = {}
        self.step: dict[tuple[Point, int], Term] = {}
        self.taken: dict[Arc, Term] = {}
        self.clock: dict[Point, Term] = {}
        self.meetings: dict[tuple[str, int], tuple[Term, Term, Term]] = {}
        self.landings: list[Landing] = []
        self.marks: list[Mark] = []
        self._names = 0
        self._control_flow()
        self._packets()

    # Names and constraints

    def add(self, constraint: Term, label: object = None) -> None:
        """Require something; a label makes it a candidate for an explanation."""
        if not z3.is_true(constraint):
            self.constraints.append(constraint)
            self.labels.append(label)

    def proposition(self, name: str) -> Term:
        """A new proposition."""
        self._names += 1
        return z3.Bool(f"{name}!{self._names}")

    def time(self, name: str) -> Term:
        """A new clock."""
        self._names += 1
        return z3.Int(f"{name}!{self._names}")

    # Control flow

    def _control_flow(self) -> None:
        for point in self.unrolling.all_points():
            self._enter(point)
            self.clock[point] = self._clock_of(point)
            steps = []
            for number, action in enumerate(point.node.actions):
                arcs = [arc for arc in point.arcs if arc.action == number]
                step = self.proposition("step") if arcs else FALSE
                self.step[point, number] = step
                steps.append(step)
                self.add(z3.Implies(step, self.at[point]))
                for arc in arcs:
                    free = len(arcs) == 1 and not action.cells
                    self.taken[arc] = step if free else self.proposition("taken")
                    self.add(z3.Implies(self.taken[arc], step))
                self.add(z3.Implies(step, any_of(self.taken[arc] for arc in arcs)))
                if len(arcs) > 1:
                    self.add(z3.AtMost(*[self.taken[arc] for arc in arcs], 1))
                if action.kind is ActionKind.SYNC:
                    self.add(z3.Implies(step, self.meeting(point, action)[0]))
            if len(steps) > 1:
                self.add(z3.AtMost(*steps, 1))
        for point in self.unrolling.all_points():
            for arc in point.arcs:
                if arc.target is not None:
                    before, after = self.end_clock(arc), self.clock[arc.target]
                    self.add(z3.Implies(self.taken[arc], before < after), ("program", arc))
        self._meet()

    def _enter(self, point: Point) -> None:
        if point.number == 0:
            self.at[point] = TRUE
        else:
            self.at[point] = any_of(self.taken[arc] for arc in point.incoming)

    def _clock_of(self, point: Point) -> Term:
        for action in point.node.actions:
            if action.kind is ActionKind.SYNC:
                return self.meeting(point, action)[1]
        return self.time("clock")

    def end_clock(self, arc: Arc) -> Term:
        """When a step is over: a sync when its last member is heard."""
        action = arc.source.node.actions[arc.action]
        if action.kind is ActionKind.SYNC:
            return self.meeting(arc.source, action)[2]
        return self.clock[arc.source]

    def meeting(self, point: Point, action: Action) -> tuple[Term, Term, Term]:
        """Of a sync: whether it happens, its clock, and when what its members say is said."""
        key = (action.group, point.meeting(action.group))
        if key not in self.meetings:
            clock = self.time("meeting")
            said = clock if not self.system.features.ghosts else self.time("said")
            self.meetings[key] = (self.proposition("meets"), clock, said)
        return self.meetings[key]

    def members_at(self, group: str, turn: int) -> dict[int, list[tuple[Point, int]]]:
        """For each member of a group, its points at the sync number ``turn`` of it."""
        found: dict[int, list[tuple[Point, int]]] = {}
        for point in self.unrolling.all_points():
            for number, action in enumerate(point.node.actions):
                if action.kind is ActionKind.SYNC and action.group == group:
                    for member in action.members:
                        found.setdefault(member, [])
                    if point.meeting(group) == turn:
                        found[point.process].append((point, number))
        return found

    def _meet(self) -> None:
        """A sync is one step of all members."""
        for (group, turn), (happens, clock, said) in self.meetings.items():
            for points in self.members_at(group, turn).values():
                here = any_of(self.step[each] for each in points)
                self.add(z3.Implies(happens, here), ("sync", group, turn))
            if said is not clock:
                self.add(clock < said)

    # Puts

    def _packets(self) -> None:
        for point in self.unrolling.all_points():
            for number, action in enumerate(point.node.actions):
                step = self.step[point, number]
                for packet, profile in zip(action.packets, action.profiles, strict=True):
                    if packet.is_fence:
                        mark = Mark(
                            point,
                            packet,
                            profile,
                            step,
                            self.proposition("free"),
                            self.time("free"),
                        )
                        self.marks.append(mark)
                        self.add(z3.Implies(mark.released, step))
                        continue
                    self._landing(Landing(
                        point, number, packet, profile, step,
                        self.proposition("landed"), self.time("lands"),
                        self.proposition("fetched") if packet.reads else TRUE,
                        self.time("fetches") if packet.reads else self.clock[point],
                    ))  # fmt: skip

    def _landing(self, landing: Landing) -> None:
        self.landings.append(landing)
        issue = self.clock[landing.point]
        self.add(z3.Implies(landing.landed, landing.issued))
        self.add(z3.Implies(landing.landed, issue < landing.clock), ("landing", landing))
        if landing.packet.reads:
            self.add(z3.Implies(landing.fetched, landing.issued))
            self.add(z3.Implies(landing.fetched, issue < landing.fetch_clock))
            self.add(z3.Implies(landing.landed, landing.fetched))
            self.add(z3.Implies(landing.landed, landing.fetch_clock < landing.clock))
