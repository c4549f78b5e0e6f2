"""Where processes are, and what they have issued: the part of the axioms without memory."""

from __future__ import annotations

from syncproof.checkers.smt.events import Landing, Mark
from syncproof.checkers.smt.terms import (
    FALSE,
    TRUE,
    Names,
    Term,
    any_of,
    at_most,
    implies,
    precedes,
)
from syncproof.checkers.smt.unrolling import Arc, Point, Unrolling
from syncproof.models.fabric import Profile
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.outbox import Packet


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
        self.names = Names()
        self._control_flow()
        self._packets()

    # Names and constraints

    def add(self, constraint: Term, label: object = None) -> None:
        """Require something; a label makes it a candidate for an explanation."""
        if constraint != TRUE:
            self.constraints.append(constraint)
            self.labels.append(label)

    def proposition(self, name: str, *processes: int) -> Term:
        """A new proposition about some processes."""
        return self.names.new(name, "Bool", processes)

    def time(self, name: str, *processes: int) -> Term:
        """A new clock of something that some processes do."""
        return self.names.new(name, "Int", processes)

    # Control flow

    def _control_flow(self) -> None:
        for point in self.unrolling.all_points():
            self._enter(point)
            self.clock[point] = self._clock_of(point)
            steps = []
            for number, action in enumerate(point.node.actions):
                arcs = [arc for arc in point.arcs if arc.action == number]
                step = self.proposition("step", point.process) if arcs else FALSE
                self.step[point, number] = step
                steps.append(step)
                self.add(implies(step, self.at[point]))
                for arc in arcs:
                    free = len(arcs) == 1 and not action.cells
                    self.taken[arc] = step if free else self.proposition("taken", point.process)
                    self.add(implies(self.taken[arc], step))
                self.add(implies(step, any_of(self.taken[arc] for arc in arcs)))
                if len(arcs) > 1:
                    self.add(at_most(1, [self.taken[arc] for arc in arcs]))
                if action.kind is ActionKind.SYNC:
                    self.add(implies(step, self.meeting(point, action)[0]))
            if len(steps) > 1:
                self.add(at_most(1, steps))
        for point in self.unrolling.all_points():
            for arc in point.arcs:
                if arc.target is not None:
                    before, after = self.end_clock(arc), self.clock[arc.target]
                    self.add(implies(self.taken[arc], precedes(before, after)), ("program", arc))
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
        return self.time("clock", point.process)

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
            clock = self.time("meeting", *action.members)
            said = clock if not self.system.features.ghosts else self.time("said", *action.members)
            self.meetings[key] = (self.proposition("meets", *action.members), clock, said)
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
                self.add(implies(happens, here), ("sync", group, turn))
            if said is not clock:
                self.add(precedes(clock, said))

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
                            self.proposition("free", point.process),
                            self.time("free", point.process),
                        )
                        self.marks.append(mark)
                        self.add(implies(mark.released, step))
                        continue
                    self._landing(self._issued(point, number, packet, profile))

    def _issued(self, point: Point, number: int, packet: Packet, profile: Profile) -> Landing:
        process, reads = point.process, bool(packet.reads)
        return Landing(
            point,
            number,
            packet,
            profile,
            self.step[point, number],
            self.proposition("landed", process),
            self.time("lands", process),
            self.proposition("fetched", process) if reads else TRUE,
            self.time("fetches", process) if reads else self.clock[point],
        )

    def _landing(self, landing: Landing) -> None:
        self.landings.append(landing)
        issue = self.clock[landing.point]
        self.add(implies(landing.landed, landing.issued))
        self.add(implies(landing.landed, precedes(issue, landing.clock)), ("landing", landing))
        if landing.packet.reads:
            self.add(implies(landing.fetched, landing.issued))
            self.add(implies(landing.fetched, precedes(issue, landing.fetch_clock)))
            self.add(implies(landing.landed, landing.fetched))
            self.add(implies(landing.landed, precedes(landing.fetch_clock, landing.clock)))
