"""How a state is packed: each place of it as a code of as many bits as its contents need.

A place is a process's node, a process's outbox, the cells of one atom, or the ghosts. Its contents
are numbered as they are met. Places are laid into words of 64 bits so that none straddles two; bits
that are left over go to places that may grow, so that a new content seldom means a new layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from syncproof.checkers.fast.arrays import Words, empty_words
from syncproof.checkers.fast.place import Place
from syncproof.checkers.fast.symmetry import Orbit
from syncproof.models.system import System
from syncproof.models.transitions import State

WORD = 64
ROWS_AT_ONCE = 1 << 18


class Layout:
    """Places and where they lie in the words of a packed state."""

    def __init__(self, system: System, groups: Sequence[tuple[int, ...]] = ()) -> None:
        self.system = system
        self.nodes = [Place((process,)) for process in range(system.processes)]
        self.atoms, self.atom_of = _atoms(system)
        self.outboxes = [Place((system.first_outbox + p,)) for p in range(system.processes)]
        self.orbits = [Orbit(group, self._joined(group)) for group in groups]
        self.member_of = {
            process: (orbit, index)
            for orbit in self.orbits
            for index, process in enumerate(orbit.processes)
        }
        self.members = [place for orbit in self.orbits for place in orbit.places]
        self.ghosts = [Place((system.ghosts.at,))] if system.features.ghosts else []
        every = (*self.nodes, *self.atoms, *self.outboxes, *self.ghosts)
        self.places = list(dict.fromkeys(every))
        self.words = 0

    def begin(self, start: State) -> None:
        """Number what the places hold in the first state."""
        for orbit in self.orbits:
            orbit.number(self.system, [place.of(start) for place in orbit.places])
        self.meet(start)

    def _joined(self, group: tuple[int, ...]) -> tuple[Place, ...]:
        """One place for the node and the outbox of each process of an orbit."""
        for process in group:
            place = Place((process, self.system.first_outbox + process))
            self.nodes[process] = self.outboxes[process] = place
        return tuple(self.nodes[process] for process in group)

    def fits(self) -> bool:
        """Whether every code fits into its place."""
        return all(place.needed <= place.bits for place in self.places)

    def meet(self, state: State) -> bool:
        """Number what the places hold in a state; whether anything of it is new."""
        before = sum(len(place.contents) for place in self.places)
        for place in self.places:
            if place not in self.members:
                place.code(place.of(state))
        return sum(len(place.contents) for place in self.places) > before

    def arrange(self) -> None:
        """Lay the places into as few words as they need, and hand out the bits left over."""
        order = sorted(self.places, key=lambda place: -place.needed)
        used: list[int] = []
        for place in order:
            place.bits = max(1, place.needed) if place in self.members else place.needed
            place.word = next(
                (i for i, bits in enumerate(used) if bits + place.bits <= WORD - 1), len(used)
            )
            used += [0] if place.word == len(used) else []
            used[place.word] += place.bits
        if self.orbits and len(used) == 1:
            used.append(0)  # the loops that sort members are those for several words
        self.words = len(used)
        self._hand_out(order, used)
        free = [0] * self.words
        for place in order:
            place.shift = free[place.word]
            free[place.word] += place.bits

    def _hand_out(self, order: Sequence[Place], used: list[int]) -> None:
        """A bit more for each place that may grow: first those that changed so far."""
        for growing in (True, False):
            for place in order:
                if place in self.members:
                    continue
                if (place.needed > 0) == growing and used[place.word] < WORD - 1:
                    place.bits += 1
                    used[place.word] += 1

    def pack(self, state: State) -> Words:
        """The words of a state, members in order; its contents must have codes that fit."""
        words = [0] * self.words
        codes = {place: place.code(place.of(state)) for place in self.places}
        for orbit in self.orbits:
            held = sorted(codes[place] for place in orbit.places)
            codes.update(zip(orbit.places, held, strict=True))
        for place, code in codes.items():
            words[place.word] |= code << place.shift
        return np.array(words, np.uint64)

    def unpack(self, words: Sequence[Any] | Words) -> State:
        """The state that some words stand for."""
        state = [0] * self.system.width
        whole = [int(word) for word in words]
        for place in self.places:
            code = whole[place.word] >> place.shift & (1 << place.bits) - 1
            for position, value in zip(place.positions, place.contents[code], strict=True):
                state[position] = value
        return tuple(state)

    def order(self) -> tuple[Any, Any]:
        """Of each orbit its bits and where its members begin, and of each member word and shift."""
        members = [(place.word, place.shift) for place in self.members]
        heads, first = [], 0
        for orbit in self.orbits:
            heads.append((orbit.places[0].bits, first, first + len(orbit.places)))
            first += len(orbit.places)
        return (
            np.array(heads, np.int64).reshape(-1, 3),
            np.array(members, np.int64).reshape(-1, 2),
        )

    def spot(self) -> list[tuple[int, int, int]]:
        """Where each place lies: word, shift and bits."""
        return [(place.word, place.shift, place.bits) for place in self.places]


def repacked(
    log: Words, count: int, spots: Sequence[tuple[int, int, int]], words: int, layout: Layout
) -> Words:
    """The first ``count`` rows of a log as another layout has them; before, the places lay at
    ``spots`` of rows of ``words`` words."""
    old = log[: count * words].reshape(count, words)
    packed = empty_words(count * layout.words)
    new = packed.reshape(count, layout.words)
    for first in range(0, count, ROWS_AT_ONCE):
        rows = slice(first, min(count, first + ROWS_AT_ONCE))
        for place, (word, shift, bits) in zip(layout.places, spots, strict=True):
            if bits:
                code = (old[rows, word] >> np.uint64(shift)) & np.uint64((1 << bits) - 1)
                new[rows, place.word] |= code << np.uint64(place.shift)
    return packed


def _atoms(system: System) -> tuple[list[Place], list[Place]]:
    """A place for the cells of each atom, and the place of each cell; locks have their own."""
    groups: dict[object, list[int]] = {}
    for number, cell in enumerate(system.cells):
        groups.setdefault((str(cell.slot), cell.atom), []).append(number)
    if system.features.locks:
        for number in range(len(system.cells), 2 * len(system.cells)):
            groups[number] = [number]
    atoms, of = [], {}
    for cells in groups.values():
        place = Place(tuple(system.first_cell + cell for cell in cells))
        atoms.append(place)
        of.update(dict.fromkeys(cells, place))
    return atoms, [of[number] for number in sorted(of)]
