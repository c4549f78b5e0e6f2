"""Where the puts in flight of a run are, as places of its state: those that land independently of
each other apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from syncproof.models.outbox import Element, Packet, canonical
from syncproof.models.system import System


class Joined(Exception):
    """Puts that were kept apart depend on each other: what was told of the run is to be told
    again."""


class Boxes:
    """The places for the puts of each process, which hold numbers of outboxes.

    Where no order holds between puts to different cells, a process has a place for each set of
    cells that it puts to together, behind the places of the state; else the one of the state.
    """

    def __init__(self, system: System) -> None:
        profile = system.automata[0].profile
        self.system = system
        self._width_of_state = self.width = len(system.initial_transition().state)
        orders_little = profile.ordering == "none" and profile.signal == "own" and not profile.hops
        self._is_apart = orders_little and is_plain(system)
        self._place_of: dict[tuple[int, int], int] = {}
        self._cells_of: dict[int, list[tuple[int, int]]] = {}
        self._of: list[list[int]] = [[] for _ in range(system.first_cache - system.first_outbox)]
        self._together: dict[tuple[int, ...], int] = {}

    def of_packets(self, owner: int, packets: Sequence[Packet]) -> int:
        """The place of packets that are put together."""
        if any(each.is_fence or each.reads for each in packets) and self._is_apart:
            self._is_apart = False
            raise Joined
        return self.of_cells(owner, [cell for each in packets for cell, _, _ in each.writes])

    def of_cells(self, owner: int, cells: Collection[int]) -> int:
        """The place of what a process has on the way to some cells."""
        if not self._is_apart:
            return self.system.first_outbox + owner
        known = {self._place_of.get((owner, cell), -1) for cell in cells}
        places = sorted(known - {-1})
        place = places[0] if places else self._new_place(owner)
        if -1 in known or len(places) > 1:
            moved = [each for other in places[1:] for each in self._cells_of.pop(other)]
            self._of[owner] = [each for each in self._of[owner] if each not in places[1:]]
            for each in (*moved, *[(owner, cell) for cell in cells]):
                if self._place_of.get(each) != place:
                    self._place_of[each] = place
                    self._cells_of[place].append(each)
        if len(places) > 1:
            raise Joined
        return place

    def _new_place(self, owner: int) -> int:
        place, self.width = self.width, self.width + 1
        self._of[owner].append(place)
        self._cells_of[place] = []
        return place

    def all_of(self, owner: int) -> Sequence[int]:
        """All the places for puts of a process."""
        return self._of[owner] if self._is_apart else (self.system.first_outbox + owner,)

    def outbox(self, here: Sequence[int], places: Collection[int]) -> int:
        """The number of the outbox with all that some places hold."""
        numbers = sorted([here[each] for each in places if each < len(here) and here[each]])
        if len(numbers) <= 1:
            return numbers[0] if numbers else 0
        found = self._together.get(tuple(numbers))
        if found is None:
            elements: list[Element] = []
            for number in numbers:
                first = len(elements)
                for packet, after, read_after in self.system.outboxes[number]:
                    moved = [tuple([first + i for i in each]) for each in (after, read_after)]
                    elements.append(Element(packet, *moved))
            found = self.system.outboxes.number(canonical(elements))
            self._together[tuple(numbers)] = found
        return found

    def state(self, here: Sequence[int]) -> list[int]:
        """The state of the system, each outbox in its place."""
        state = list(here[: self.system.first_outbox])
        for owner in range(len(self._of)):
            state.append(self.outbox(here, self.all_of(owner)))
        return state + list(here[len(state) : self._width_of_state])


def is_plain(system: System) -> bool:
    """Whether a state is no more than nodes, cells, outboxes and ghosts."""
    features = system.features
    return not (features.views or features.caches or features.twins or features.locks)
