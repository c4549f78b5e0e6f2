"""Each rank's memory as one byte array: regions one behind the other, blocks at their offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncproof.checkers.emulator.content import Content, Shape
from syncproof.models.instance import cache_lines
from syncproof.models.memory import Cell, Layout, Region, Slot, fields_in

ALIGNMENT = 512
Cells = tuple[int, ...]
Ranges = tuple[tuple[int, int], ...]
"""(first byte, bytes) of each piece."""


@dataclass(frozen=True)
class Place:
    """The bytes of a cell: where they are in their rank's array, and in their field."""

    rank: int
    ranges: Ranges
    shape: Shape


class Memory:
    """The memory of all ranks.

    A cell that stands for several like atoms (where the layout keeps one of each kind) has the
    bytes of all of them.
    """

    def __init__(
        self,
        layout: Layout,
        atomicity: int,
        ranks: int,
        content: Content,
        initial: Sequence[Any],
    ) -> None:
        self.layout, self.content = layout, content
        self.base: dict[str, int] = {}
        size = 0
        for region in layout.regions:
            self.base[region.name] = size
            size += -(-region.blocks * region.block // ALIGNMENT) * ALIGNMENT
        self.arrays = [bytearray(size) for _ in range(ranks)]
        self.places = places_of(layout, atomicity, self.base)
        self.versions = [0] * ranks
        self.lines = cache_lines(layout)
        self.line_of = {cell: n for n, cells in enumerate(self.lines) for cell in cells}
        self._known: dict[Slot, tuple[tuple[int, str, int], ...]] = {}
        self._atoms: dict[tuple[Cells, int], tuple[tuple[int, Cells], ...]] = {}
        for cell, value in enumerate(initial):
            self.write(cell, content.encode(value, self.places[cell].shape))
        self.initial = [self.read(cell) for cell in range(len(self.places))]

    def cells_of(self, slot: Slot) -> tuple[tuple[int, str, int], ...]:
        """The cells of a slot as (cell, field, first byte of its atom)."""
        found = self._known.get(slot)
        if found is None:
            cells = self.layout.cells
            found = self._known[slot] = tuple(
                (cell, field, cells[cell].first_byte)
                for cell, field, _ in self.layout.cells_of(slot)
            )
        return found

    def atoms(self, cells: Cells, atomicity: int) -> tuple[tuple[int, Cells], ...]:
        """The cells that move together, in ascending order of their bytes."""
        found = self._atoms.get((cells, atomicity))
        if found is None:
            groups: dict[int, list[int]] = {}
            for cell in cells:
                number = self.layout.cells[cell].first_byte // atomicity
                groups.setdefault(number, []).append(cell)
            found = tuple((number, tuple(groups[number])) for number in sorted(groups))
            self._atoms[cells, atomicity] = found
        return found

    def read(self, cell: int) -> bytes:
        """The bytes of a cell."""
        place = self.places[cell]
        array = self.arrays[place.rank]
        if len(place.ranges) == 1:
            first, length = place.ranges[0]
            return bytes(array[first : first + length])
        return b"".join(bytes(array[first : first + n]) for first, n in place.ranges)

    def write(self, cell: int, data: bytes) -> None:
        """Change the bytes of a cell."""
        place = self.places[cell]
        array = self.arrays[place.rank]
        start = 0
        for first, length in place.ranges:
            array[first : first + length] = data[start : start + length]
            start += length
        self.versions[place.rank] += 1

    def value(self, cell: int, data: bytes) -> Any:
        """What bytes of a cell mean."""
        return self.content.decode(data, self.places[cell].shape)

    def bytes_of(self, cell: int, value: Any) -> bytes:
        """What a value is in a cell."""
        return self.content.encode(value, self.places[cell].shape)


def places_of(layout: Layout, atomicity: int, base: Mapping[str, int]) -> list[Place]:
    """The bytes of every cell; ``base`` is where each region begins in its rank's memory."""
    patterns = {region.name: _ranges(region, layout, atomicity) for region in layout.regions}
    return [
        _place(cell, patterns[cell.slot.region.name], base[cell.slot.region.name])
        for cell in layout.cells
    ]


def _place(cell: Cell, pattern: Mapping[tuple[int, str], Ranges], base: int) -> Place:
    region = cell.slot.region
    number = 0
    for i, extent in zip(cell.slot.place, region.extents, strict=True):
        number = number * extent + i
    first_byte = base + number * region.block
    in_block = pattern[cell.atom, cell.field]
    start = _start_of(region, cell.field)
    return Place(
        cell.slot.rank,
        tuple((first_byte + first, length) for first, length in in_block),
        Shape(tuple((first - start, length) for first, length in in_block)),
    )


def _start_of(region: Region, field: str) -> int:
    start = 0
    for name, size in region.fields.items():
        if name == field:
            return start
        start += size
    raise KeyError(field)


def _ranges(region: Region, layout: Layout, atomicity: int) -> dict[tuple[int, str], Ranges]:
    """The bytes in its block of each cell (atom, field), like atoms that are left out included."""
    first_block = (0,) * len(region.extents)
    block = Slot(region, region.owners()[0], first_block, tuple(region.fields))
    kept = {atom for _, _, atom in layout.cells_of(block)}
    latest: dict[tuple[str, ...], int] = {}
    found: dict[tuple[int, str], Ranges] = {}
    for number, first in enumerate(range(0, region.block, atomicity)):
        last = min(first + atomicity, region.block)
        kind = fields_in(region, first, last)
        if number in kept:
            latest[kind] = number
        for field in kind:
            start = _start_of(region, field)
            begin, end = max(first, start), min(last, start + region.fields[field])
            key = (latest[kind], field)
            found[key] = (*found.get(key, ()), (begin, end - begin))
    return found
