"""The axioms: program order, the fabric's order, and that a read gets the last write before it.

A model of them is a *prefix* run: each process stops anywhere, puts may be on their way. Clocks
order what happens; two writes of a cell never have one clock, nor a read and a write of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncproof.checkers.smt.contents import Cells, Contents, Numbers
from syncproof.checkers.smt.control import Control
from syncproof.checkers.smt.events import Landing, Location, Options, Reading, Write
from syncproof.checkers.smt.ordering import add_fabric_order
from syncproof.checkers.smt.terms import TRUE, Term, all_of, any_of, implies, negated, precedes
from syncproof.checkers.smt.unrolling import Point, Unrolling
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.outbox import ADD


class Encoding(Control):
    """The formula of one unrolling, in ``constraints``; names of its parts are its attributes."""

    def __init__(self, unrolling: Unrolling) -> None:
        super().__init__(unrolling)
        self.writes: list[Write] = []
        self.readings: dict[object, Reading] = {}
        self.location: dict[int, Location] = {}
        self._writes_of: dict[tuple[Point, int], list[Write]] = {}
        self._saying: dict[tuple[Point, int], Term] = {}
        self._said: dict[tuple[str, int], list[tuple[Term, Term, int]]] = {}
        self._options: dict[tuple[Write, Location], Options] = {}
        self._undefined: list[tuple[Write, Location]] = []
        add_fabric_order(self)
        self._collect_writes()
        self._locate()
        self._read_all()
        self._define_options()

    # Writes and locations

    def _collect_writes(self) -> None:
        for landing in self.landings:
            cells = tuple(cell for cell, _, _ in landing.packet.writes)
            self.writes.append(
                Write("landing", cells, landing.point, landing.action, landing.landed,
                      landing.clock, landing)
            )  # fmt: skip
        ghosts = self.unrolling.ghosts
        for point in self.unrolling.all_points():
            for number, action in enumerate(point.node.actions):
                arcs = [arc for arc in point.arcs if arc.action == number]
                if action.writes:
                    cells = tuple(cell for cell, _, _ in action.writes)
                    self._write_at_once("store", cells, point, number, self.clock[point])
                written = dict.fromkeys(cell for arc in arcs for cell, _ in arc.edge.writes)
                if written:
                    self._write_at_once("update", tuple(written), point, number, self.clock[point])
                changed = [ghosts.updated(arc.edge.statements) for arc in arcs]
                for cell in dict.fromkeys(cell for cells in changed for cell in cells):
                    self._write_at_once("ghost", (cell,), point, number, self._says(point, number))

    def _write_at_once(
        self, kind: str, cells: Cells, point: Point, number: int, clock: Term
    ) -> None:
        write = Write(kind, cells, point, number, self.step[point, number], clock)
        self.writes.append(write)
        self._writes_of.setdefault((point, number), []).append(write)

    def _says(self, point: Point, number: int) -> Term:
        """When a step is heard by the ghosts: with it, in a sync one member after the other."""
        action = point.node.actions[number]
        if action.kind is not ActionKind.SYNC:
            return self.clock[point]
        if (point, number) not in self._saying:
            _, clock, said = self.meeting(point, action)
            own = self._saying[point, number] = self.time("says", point.process)
            self.add(precedes(clock, own))
            self.add(precedes(own, said))
            others = self._said.setdefault((action.group, point.meeting(action.group)), [])
            for step, its_clock, process in others:
                if process != point.process:
                    in_order = (
                        precedes(its_clock, own)
                        if process < point.process
                        else precedes(own, its_clock)
                    )
                    self.add(implies(step, in_order))
            others.append((self.step[point, number], own, point.process))
        return self._saying[point, number]

    def _cells_read(self) -> Iterator[int]:
        for point in self.unrolling.all_points():
            for action in point.node.actions:
                yield from action.cells
                for packet in action.packets:
                    yield from packet.reads
                    yield from (cell for cell, _, mode in packet.writes if mode == ADD)
                yield from (cell for cell, _, mode in action.writes if mode == ADD)
            for arc in point.arcs:
                yield from self.unrolling.ghosts.touched(arc.edge.statements)
        for number, cell in enumerate(self.system.cells):
            if cell.slot.region.clean:
                yield number

    def _locate(self) -> None:
        writers: dict[int, list[Write]] = {cell: [] for cell in self._cells_read()}
        for write in self.writes:
            for cell in write.cells:
                if cell in writers:
                    writers[cell].append(write)
        groups: dict[object, list[int]] = {}
        for cell, writes in sorted(writers.items()):
            key = tuple(map(id, writes)) or cell
            groups.setdefault(key, []).append(cell)
        for number, cells in enumerate(groups.values()):
            first = Write("first", tuple(cells), None, -1, TRUE, "")
            location = Location(number, tuple(cells), [first, *writers[cells[0]]])
            self.location |= dict.fromkeys(cells, location)
            for i, one in enumerate(location.writes[1:], 1):
                for other in location.writes[i + 1 :]:
                    if not self._ordered(one, other):
                        both = all_of((one.happened, other.happened))
                        apart = any_of(
                            (precedes(one.clock, other.clock), precedes(other.clock, one.clock))
                        )
                        self.add(implies(both, apart))

    @staticmethod
    def _ordered(one: Write, other: Write) -> bool:
        """Whether two steps of one process are sure not to be at one moment, or not in one run."""
        steps = "landing" not in (one.kind, other.kind)
        return (
            steps
            and one.origin is not None
            and other.origin is not None
            and (one.origin.process == other.origin.process)
        )

    # Reads

    def _read_all(self) -> None:
        for landing in self.landings:
            added = tuple(cell for cell, _, mode in landing.packet.writes if mode == ADD)
            if landing.packet.reads:
                self.reading(("fetch", landing), None, landing.packet.reads,
                             landing.fetched, landing.fetch_clock)  # fmt: skip
            if added:
                write = next(each for each in self.writes if each.landing is landing)
                self.reading(("add", write), None, added, landing.landed,
                             landing.clock, write)  # fmt: skip
        for write in self.writes:
            if write.kind == "store":
                assert write.origin is not None
                action = write.origin.node.actions[write.action]
                added = tuple(cell for cell, _, mode in action.writes if mode == ADD)
                if added:
                    self.reading(("add", write), write.origin, added, write.happened,
                                 write.clock, write)  # fmt: skip
        for point in self.unrolling.all_points():
            for number, action in enumerate(point.node.actions):
                self._read_step(point, number, action)
        for cell in sorted(self.location):
            self._read_end(cell)

    def _read_step(self, point: Point, number: int, action: Action) -> None:
        step = self.step[point, number]
        arcs = [arc for arc in point.arcs if arc.action == number]
        at_once = self._writes_of.get((point, number), [])
        if action.cells and arcs:
            name = ("step", point, number)
            own = next((write for write in at_once if write.kind == "update"), None)
            reading = self.reading(name, point, action.cells, step, self.clock[point], own)
            for arc in arcs:
                met = self.holds(reading, action.cells, arc.values)
                self.add(implies(self.taken[arc], met), ("reads", point, number))
        ghosts = self.unrolling.ghosts
        for cell in dict.fromkeys(c for a in arcs for c in ghosts.touched(a.edge.statements)):
            own = next((write for write in at_once if write.cells == (cell,)), None)
            clock = self._says(point, number)
            self.reading(("ghost", point, number, cell), point, (cell,), step, clock, own)

    def reading(
        self,
        name: object,
        reader: Point | None,
        cells: Cells,
        active: Term,
        clock: Term,
        itself: Write | None = None,
    ) -> Reading:
        """Look at cells at one moment; while ``active`` some write is the last before it."""
        reading = Reading(reader, active, clock, itself, {})
        self.readings[name] = reading
        for location in dict.fromkeys(self.location[cell] for cell in cells):
            near = [w for w in location.writes if w is not itself and not _apart(w, reading)]
            about = self.names.processes(clock)
            sources = [(write, self.proposition("from", *about)) for write in near]
            reading.sources[location] = sources
            self.add(implies(active, any_of(term for _, term in sources)))
            for write, term in sources:
                self.add(implies(term, all_of((active, write.happened))))
                if write.clock:
                    self.add(implies(term, precedes(write.clock, clock)), ("reads", name, write))
                for other in near:
                    if other is not write and other.clock:
                        later = [negated(other.happened), precedes(clock, other.clock)]
                        if write.clock:
                            later.append(precedes(other.clock, write.clock))
                        self.add(implies(term, any_of(later)), ("last", name, other))
        return reading

    def _read_end(self, cell: int) -> None:
        """What memory holds in the end: the last of all writes."""
        location = self.location[cell]
        if ("end", location) in self.readings:
            return
        reading = Reading(None, TRUE, "", None, {})
        self.readings["end", location] = reading
        origins = (write.origin for write in location.writes)
        about = dict.fromkeys(point.process for point in origins if point is not None)
        sources = [(write, self.proposition("last", *about)) for write in location.writes]
        reading.sources[location] = sources
        self.add(any_of(term for _, term in sources))
        for write, term in sources:
            self.add(implies(term, write.happened))
            for other in location.writes:
                if other is not write and other.clock:
                    later = [negated(other.happened)]
                    if write.clock:
                        later.append(precedes(other.clock, write.clock))
                    self.add(implies(term, any_of(later)))

    # Values

    def holds(self, reading: Reading, cells: Cells, values: Numbers) -> Term:
        """Whether a reading finds these values in these cells."""
        wanted = dict(zip(cells, values, strict=True))
        parts = []
        for location in dict.fromkeys(self.location[cell] for cell in cells):
            matches = []
            for write, term in reading.sources[location]:
                for option, condition in self.options(write, location).items():
                    if all(
                        wanted.get(c, v) == v for c, v in zip(location.cells, option, strict=True)
                    ):
                        matches.append(all_of((term, condition)))
            parts.append(any_of(matches))
        return all_of(parts)

    def holds_in_the_end(self, cells: Cells, values: Numbers) -> Term:
        """Whether these cells hold these values when nothing happens any more."""
        parts = []
        for cell, value in zip(cells, values, strict=True):
            reading = self.readings["end", self.location[cell]]
            parts.append(self.holds(reading, (cell,), (value,)))
        return all_of(parts)

    def options(self, write: Write, location: Location) -> Options:
        """The values that a write may give to a location, each with its condition."""
        key = (write, location)
        if key not in self._options:
            self._options[key] = self._new_options(write, location)
        return self._options[key]

    def _new_options(self, write: Write, location: Location) -> Options:
        if write.kind == "first":
            return {self.contents_of(location)[1]: TRUE}
        plain = self._plain_writes(write, location)
        if plain is not None:
            return {tuple(plain[cell] for cell in location.cells): TRUE}
        self._undefined.append((write, location))
        assert write.origin is not None
        process = write.origin.process
        possible = self.contents_of(location)[0].possible(location.cells)
        return {values: self.proposition("gives", process) for values in possible}

    def contents_of(self, location: Location) -> tuple[Contents, Numbers]:
        """What a location may hold, and what it holds at first; one of memory or of ghosts."""
        if location.cells[0] < 0:
            ghosts = self.unrolling.ghosts
            return ghosts.contents, tuple(ghosts.initial(cell) for cell in location.cells)
        initial = tuple(self.unrolling.initial_value(cell) for cell in location.cells)
        return self.unrolling.contents, initial

    def _plain_writes(self, write: Write, location: Location) -> dict[int, int] | None:
        """What is written whatever was there before; None if that depends on it."""
        if write.kind == "landing":
            assert write.landing is not None
            packet = write.landing.packet
            given = () if packet.reads else packet.writes
        elif write.kind == "store":
            assert write.origin is not None
            given = write.origin.node.actions[write.action].writes
        else:
            return None
        if not given or any(m == ADD for c, _, m in given if c in location.cells):
            return None
        return {cell: value for cell, value, _ in given}

    def _define_options(self) -> None:
        for location in dict.fromkeys(self.location.values()):
            for write in location.writes:
                self.options(write, location)
        while self._undefined:
            write, location = self._undefined.pop()
            made = self._made(write, location)
            given = any_of(self._options[write, location].values())
            self.add(implies(write.happened, given))
            for values, term in self._options[write, location].items():
                self.add(implies(term, any_of(made.get(values, ()))))

    def _made(self, write: Write, location: Location) -> dict[Numbers, list[Term]]:
        """For each value that a write can give, the ways in which it comes about."""
        found: dict[Numbers, list[Term]] = {}
        assert write.origin is not None
        if write.kind == "update":
            for arc in write.origin.arcs:
                if arc.action == write.action:
                    cells = write.origin.node.actions[write.action].cells
                    new = dict(zip(cells, arc.values, strict=True)) | dict(arc.edge.writes)
                    values = tuple(new[cell] for cell in location.cells)
                    found.setdefault(values, []).append(self.taken[arc])
        elif write.kind == "ghost":
            self._made_by_ghosts(write, found)
        elif write.landing is not None and write.landing.packet.reads:
            self._made_by_copy(write.landing, location, found)
        else:
            self._made_by_add(write, location, found)
        return found

    def _made_by_ghosts(self, write: Write, found: dict[Numbers, list[Term]]) -> None:
        (cell,) = write.cells
        assert write.origin is not None
        reading = self.readings["ghost", write.origin, write.action, cell]
        for arc in write.origin.arcs:
            if arc.action == write.action:
                for (old,) in self.unrolling.ghosts.contents.possible((cell,)):
                    new, _ = self.unrolling.ghosts.after(arc.edge.statements, cell, old)
                    met = all_of((self.taken[arc], self.holds(reading, (cell,), (old,))))
                    found.setdefault((new,), []).append(met)

    def _made_by_copy(
        self, landing: Landing, location: Location, found: dict[Numbers, list[Term]]
    ) -> None:
        pairs = zip(landing.packet.writes, landing.packet.reads, strict=True)
        source = {target: read for (target, _, _), read in pairs}
        cells = tuple(source[cell] for cell in location.cells)
        reading = self.readings["fetch", landing]
        for values in self.unrolling.contents.possible(cells):
            found.setdefault(values, []).append(self.holds(reading, cells, values))

    def _made_by_add(
        self, write: Write, location: Location, found: dict[Numbers, list[Term]]
    ) -> None:
        assert write.origin is not None
        given: Sequence[tuple[int, int, int]] = (
            write.landing.packet.writes
            if write.landing is not None
            else write.origin.node.actions[write.action].writes
        )
        reading = self.readings["add", write]
        for values in self.unrolling.contents.possible(location.cells):
            new = dict(zip(location.cells, values, strict=True))
            for cell, value, mode in given:
                if cell in new:
                    is_add = mode == ADD
                    new[cell] = self.unrolling.added((new[cell],), value)[0] if is_add else value
            met = self.holds(reading, location.cells, values)
            found.setdefault(tuple(new.values()), []).append(met)


def _apart(write: Write, reading: Reading) -> bool:
    """Whether a write is sure to come after a step that reads, or not to be in one run with it."""
    reader = reading.reader
    if write.origin is None or reader is None or write.origin is reader:
        return False
    return write.origin.process == reader.process and not reader.follows(write.origin)
