"""The fabric of a run: what is in flight, what may land next, and what memory shows to whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from random import Random

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.events import Event, Recorder
from syncproof.checkers.emulator.flights import (
    ALL_RANKS,
    Bag,
    Fence,
    Flight,
    Write,
    is_fenced,
    lands_behind,
    source_read_behind,
)
from syncproof.checkers.emulator.memory import Memory
from syncproof.checkers.emulator.processes import CacheLine, Emulated
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile

Stores = Sequence[tuple[int, bytes]]


class Fabric:
    """Puts in flight, with the processes that wait for something to change.

    ``free`` are the flights that nothing holds back, ``ready`` the processes that may be able to
    take a step; a process that could not is put aside until what it looked at has changed.
    ``freed`` and ``woken`` are those that became so since somebody emptied the lists.
    """

    def __init__(
        self,
        processes: Sequence[Emulated],
        memory: Memory,
        profile: Profile,
        random: Random,
        recorder: Recorder,
    ) -> None:
        self.processes, self.memory, self.profile = processes, memory, profile
        self.random, self.recorder = random, recorder
        self.in_flight: set[Flight] = set()
        self.free: Bag[Flight] = Bag()
        self.ready: Bag[Emulated] = Bag()
        self.woken: list[Emulated] = []
        self.freed: list[Flight] = []
        for process in processes:
            self.ready.add(process)
        self.watchers: list[set[Emulated]] = [set() for _ in self.memory.arrays]
        self._puts = self._taken_off = 0
        self.locked: dict[int, Emulated] = {}
        self._between: dict[tuple[int, int], Profile] = {}
        # What ranks other than the owner see, where a quiet is towards the target alone
        self.has_twins = self.profile.quiet == "target"
        self.others = list(self.memory.initial) if self.has_twins else []
        self._last_twin: dict[int, Flight] = {}
        # What loads may still be served with, where they are not in program order
        self.has_views = self.profile.load_order == "none"
        cells = memory.layout.cells
        self.atom_of = [(str(each.slot), each.atom) for each in cells] if self.has_views else []
        self.cells_of_atom: dict[tuple[str, int], list[int]] = {}
        for number, atom in enumerate(self.atom_of):
            self.cells_of_atom.setdefault(atom, []).append(number)
        self.views: list[dict[tuple[str, int], list[tuple[bytes, ...]]]] = [{} for _ in processes]

    def between(self, source: int, target: int) -> Profile:
        """The profile from one rank to another."""
        found = self._between.get((source, target))
        if found is None:
            found = self._between[source, target] = self.profile.between(source, target)
        return found

    # Waiting

    def put_aside(self, process: Emulated, ranks: Sequence[int]) -> None:
        """A process can do nothing until memory of ``ranks``, or its own puts, have changed."""
        self.ready.discard(process)
        for rank in ranks:
            self.watchers[rank].add(process)

    def wake(self, process: Emulated) -> None:
        """A process may be able to go on."""
        if not process.is_done:
            self.ready.add(process)
            self.woken.append(process)

    def _wake_watchers(self, rank: int) -> None:
        watchers = self.watchers[rank]
        for process in sorted(watchers, key=lambda each: each.number):
            self.wake(process)
        watchers.clear()

    # Memory

    def store(self, stores: Stores) -> None:
        """Change cells in one step."""
        if self.has_views:
            self._remember([cell for cell, _ in stores])
        memory = self.memory
        for cell, data in stores:
            memory.write(cell, data)
            if self.has_twins:
                self._propagate_later(cell, data)
        for rank in dict.fromkeys([memory.ranks[cell] for cell, _ in stores]):
            if self.watchers[rank]:
                self._wake_watchers(rank)

    def seen(self, rank: int, cell: int) -> bytes:
        """The bytes that a rank sees in a cell."""
        if self.has_twins and self.memory.ranks[cell] != rank:
            return self.others[cell]
        return self.memory.read(cell)

    def look(self, process: Emulated, cells: Sequence[int]) -> tuple[bytes, ...]:
        """What a load of some cells is served with: where loads are early, perhaps older bytes."""
        current = [self.seen(process.rank, cell) for cell in cells]
        if not self.has_views:
            return tuple(current)
        view = self.views[process.number]
        atoms = list(dict.fromkeys(self.atom_of[cell] for cell in cells))
        older = [(atom, i) for atom in atoms for i in range(len(view.get(atom, ())))]
        used = self.random.choice([None, *older])
        for atom in atoms:
            if used is not None and atom == used[0]:
                old = dict(zip(self.cells_of_atom[atom], view[atom][used[1]], strict=True))
                current = [old.get(c, now) for c, now in zip(cells, current, strict=True)]
                view[atom] = view[atom][used[1] :]
            else:
                view.pop(atom, None)
        return tuple(current)

    def order_loads(self, process: Emulated) -> None:
        """Nothing older than now is served any more."""
        self.views[process.number].clear()

    def _remember(self, cells: Sequence[int]) -> None:
        for atom in dict.fromkeys(self.atom_of[cell] for cell in cells):
            old = tuple(self.memory.read(cell) for cell in self.cells_of_atom[atom])
            for process in self.processes:
                kept = self.views[process.number].setdefault(atom, [])
                if not process.is_done and (not kept or kept[-1] != old):
                    kept.append(old)

    # Flights

    def issue(self, process: Emulated, flights: Sequence[Flight]) -> None:
        """Send the atoms of one put off."""
        self._puts += 1
        for number, late in enumerate(flights):
            late.put = self._puts
            profile = self.between(process.rank, late.target)
            rivals = _rivals(process, late, flights[:number], profile)
            if rivals:
                _hold_back(process, late, rivals, profile)
            self._take_off(late)
            process.flights.add(late)
            for cell in late.cells:
                there = process.to_cell.get(cell)
                if there is None:
                    process.to_cell[cell] = [late]
                else:
                    there.append(late)

    def _take_off(self, late: Flight) -> None:
        self._taken_off += 1
        late.number = self._taken_off
        for early in (late.lands_after or set()) | (late.reads_after or set()):
            if early.holds is None:
                early.holds = []
            early.holds.append(late)
        self.in_flight.add(late)
        if late.is_free:
            self._set_free(late)

    def _set_free(self, flight: Flight) -> None:
        self.free.add(flight)
        self.freed.append(flight)

    def fence(self, process: Emulated, target: int) -> None:
        """Later puts (to ``target``, or all) come behind the earlier ones."""
        process.fences = [f for f in process.fences if not f.covered.isdisjoint(process.flights)]
        covered = frozenset(
            each
            for each in process.flights
            if not each.is_get and target in (ALL_RANKS, each.target)
        )
        if covered:
            process.fences.append(Fence(target, covered))

    def holds_back(self, process: Emulated, probe: Flight) -> bool:
        """Whether a get or atomic has to wait for an earlier put of its process."""
        profile = self.between(process.rank, probe.target)
        return any(
            lands_behind(early, probe, profile) or is_fenced(early, probe, process.fences)
            for early in process.flights
        )

    def is_quiet(self, process: Emulated, target: int) -> bool:
        """Whether a quiet (towards ``target``, or all) may pass."""
        flights = process.flights
        if self.profile.quiet == "local":
            return not any(each.sources or each.is_get for each in flights)
        return not any(target in (ALL_RANKS, each.target) for each in flights)

    def deliver(self, flight: Flight) -> None:
        """The fabric's next step with a free flight: read a copy's source, or land."""
        self.recorder.steps += 1
        if flight.sources:
            self._read_source(flight)
        else:
            self._land(flight)
        self.recorder.tell_all()

    def _land(self, flight: Flight) -> None:
        self.free.discard(flight)
        self.in_flight.discard(flight)
        stores = [(w.cell, self.landing(w)) for w in flight.writes]
        cells, data = flight.cells, tuple([each for _, each in stores])
        if flight.owner < 0:
            (cell,) = cells
            self.others[cell] = data[0]
            self.recorder.tell(Event(events.PROPAGATE, len(self.processes), cells, data))
            rank = self.memory.ranks[cell]
            self.memory.versions[rank] += 1
            self._wake_watchers(rank)
        else:
            self.store(stores)
            self.recorder.tell(Event(events.LAND, flight.owner, cells, data))
            owner = self.processes[flight.owner]
            owner.flights.discard(flight)
            for cell in cells:
                owner.to_cell[cell].remove(flight)
            self.wake(owner)
        if flight.holds:
            self._release(flight.holds, flight, landed=True)

    def _read_source(self, flight: Flight) -> None:
        memory, rank = self.memory, self.processes[flight.owner].rank
        cells, flight.sources = flight.sources, ()
        for source, write in zip(cells, flight.writes, strict=True):
            value = memory.value(source, self.seen(rank, source))
            write.data = memory.bytes_of(write.cell, value)
        self.recorder.tell(Event(events.READ_SOURCE, flight.owner, cells))
        flight.reads_after = None
        if not flight.is_free:
            self.free.discard(flight)
        self._release(flight.holds or (), flight, landed=False)
        self.wake(self.processes[flight.owner])

    def _release(self, held: Iterable[Flight], flight: Flight, landed: bool) -> None:
        for late in held:
            if late.reads_after:
                late.reads_after.discard(flight)
            if landed and late.lands_after:
                late.lands_after.discard(flight)
            if late.is_free and late in self.in_flight:
                self._set_free(late)

    def landing(self, write: Write) -> bytes:
        """What a cell holds after a write."""
        if not write.is_add:
            return write.data
        old = self.memory.value(write.cell, self.memory.read(write.cell))
        if not isinstance(old, int):
            cell = self.memory.layout.cells[write.cell]
            raise UserError(f"an add to {cell}, which holds {old}", expected="a whole number")
        return self.memory.bytes_of(write.cell, old + write.adds)

    def _propagate_later(self, cell: int, data: bytes) -> None:
        late = Flight(0, -1, -1, 0, (Write(cell, data),))
        before = self._last_twin.get(cell)
        if before is not None and before in self.in_flight:
            late.lands_after = {before}
        self._last_twin[cell] = late
        self._take_off(late)

    # Caches

    def give_up_line(self, process: Emulated, line: int) -> None:
        """A core's cache gives up a line at a time of its own."""
        self.recorder.steps += 1
        held = process.cache.pop(line)
        cells = self.memory.lines[line]
        do = events.WRITE_BACK if held.dirty else events.EVICT
        self.write_back(cells, held)
        self.recorder.tell(Event(do, process.number, cells))
        self.recorder.tell_all()
        self.wake(process)

    def write_back(self, cells: Sequence[int], held: CacheLine) -> None:
        """A dirty line goes back whole."""
        if held.dirty:
            self.store(list(zip(cells, held.data, strict=True)))


def _rivals(
    process: Emulated, late: Flight, own: Sequence[Flight], profile: Profile
) -> Collection[Flight]:
    """What can have to be ahead of ``late``: where puts are in no order, only what goes to the
    same cells and the atoms of its own put."""
    is_plain = not (late.is_get or late.is_signal or late.sources)
    if profile.ordering == "none" and is_plain and not process.fences:
        to_cell = process.to_cell
        same = [each for cell in late.cells if cell in to_cell for each in to_cell[cell]]
        return dict.fromkeys([*same, *own]) if same else own
    return process.flights


def _hold_back(
    process: Emulated, late: Flight, rivals: Collection[Flight], profile: Profile
) -> None:
    """Note behind which of its rivals a flight lands, and is read."""
    lands = [
        early
        for early in rivals
        if lands_behind(early, late, profile) or is_fenced(early, late, process.fences)
    ]
    reads = [early for early in rivals if source_read_behind(early, late, profile)]
    late.lands_after, late.reads_after = set(lands) or None, set(reads) or None
