"""A state read as a *control state* and the rounds in it, part by part.

The parts are the processes, the cells, the puts in flight of each owner, and what is held beside.
Each part is held by number in a state, so that what is read of it is kept.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from syncproof.checkers.unbounded.system import RoundSystem
from syncproof.models.outbox import Element
from syncproof.models.rounds import Old, Round, mapped
from syncproof.models.transitions import State
from syncproof.models.values import typed

Rounds = tuple[int, ...]
"""The rounds of a part, in an order that belongs to its shape."""

Part = tuple[int, Rounds]
"""What is read of a part: the number of its shape, and its rounds."""


class Reading(NamedTuple):
    """A state as the shapes of its parts, by number, and the rounds of each part."""

    control: tuple[int, ...]
    rounds: tuple[Rounds, ...]


class Reader:
    """Reads states; parts of one shape always have their rounds in the same places."""

    def __init__(self, system: RoundSystem) -> None:
        self.system, self.values = system, system.round_values
        self._values: dict[int, tuple[Hashable, Rounds]] = {}
        self._elements: dict[int, tuple[tuple[Hashable, Element], ...]] = {}
        self._beside: dict[int, tuple[tuple[int, int], ...]] = {}
        self._parts: dict[tuple[str, int], Part] = {}
        self._shapes: dict[Hashable, int] = {}

    def value(self, number: int) -> tuple[Hashable, Rounds]:
        """A value without its rounds, and these in order."""
        known = self._values.get(number)
        if known is None:
            found: list[int] = []

            def without(each: Round) -> Hashable:
                if type(each) is Old:
                    return ("old", each.least_)
                found.append(each.number_)
                return ("round", each.least_)

            shape = typed(mapped(self.values.plain(number), without))
            known = self._values[number] = (shape, tuple(found))
        return known

    def elements(self, number: int) -> tuple[tuple[Hashable, Element], ...]:
        """The puts in flight of an outbox with their shapes, ordered by these and by rounds."""
        known = self._elements.get(number)
        if known is None:
            outbox = self.system.outboxes[number]
            shapes = [
                (
                    each.packet._replace(writes=()),
                    tuple(
                        (c, None if v < 0 else self.value(v)[0], m)
                        for c, v, m in each.packet.writes
                    ),
                    tuple(sorted(repr(outbox[i].packet[1:]) for i in each.after)),
                    len(each.read_after),
                )
                for each in outbox
            ]
            texts = [repr(each) for each in shapes]
            rounds = [
                tuple(self.value(v)[1] for _, v, _ in e.packet.writes if v >= 0) for e in outbox
            ]
            order = sorted(range(len(outbox)), key=lambda i: (texts[i], rounds[i]))
            known = self._elements[number] = tuple((texts[i], outbox[i]) for i in order)
        return known

    def beside(self, number: int) -> tuple[tuple[int, int], ...]:
        """Choices, tokens and ghosts in an order of their own."""
        known = self._beside.get(number)
        if known is None:
            pairs = self.system.beside.pairs(number)
            order = sorted(pairs, key=lambda p: (repr(self.value(p[0])[0]), self.value(p[0])[1]))
            known = self._beside[number] = tuple(order)
        return known

    def read(self, state: State) -> Reading:
        """A state as control and rounds."""
        system, parts = self.system, list[Part]()
        for process in range(system.processes):
            node = system.node_of(state, process)
            assert node.home is not None
            parts.append((node.home.number, () if node.round is None else (node.round,)))
        parts += map(self.cell, state[system.first_cell : system.first_outbox])
        parts += map(self.outbox, state[system.first_outbox : system.first_cache])
        parts.append(self.aside(system.beside_of(state)))
        return Reading(tuple([shape for shape, _ in parts]), tuple([each for _, each in parts]))

    def cell(self, number: int) -> Part:
        """What a cell holds, as the number of its shape and its rounds."""
        known = self._parts.get(("cell", number))
        return known or self._part("cell", number, [self.value(number)])

    def outbox(self, number: int) -> Part:
        """The same of the puts in flight of one owner."""
        known = self._parts.get(("outbox", number))
        if known is not None:
            return known
        elements = self.elements(number)
        values = [v for _, each in elements for _, v, _ in each.packet.writes if v >= 0]
        found = [self.value(each)[1] for each in values]
        shape = tuple(each for each, _ in elements)
        return self._part("outbox", number, [(shape, tuple(r for each in found for r in each))])

    def aside(self, number: int) -> Part:
        """The same of what is held beside."""
        known = self._parts.get(("beside", number))
        values = [] if known else [self.value(v) for pair in self.beside(number) for v in pair]
        return known or self._part("beside", number, values)

    def _part(self, kind: str, number: int, found: list[tuple[Hashable, Rounds]]) -> Part:
        shape = (kind, tuple(each for each, _ in found))
        rounds = tuple(each for _, part in found for each in part)
        known = self._shapes.setdefault(shape, len(self._shapes)), rounds
        self._parts[kind, number] = known
        return known
