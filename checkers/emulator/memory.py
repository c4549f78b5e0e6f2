"""Each rank's memory as one byte array: regions one behind the other, blocks at their offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(eq=False)
class Area:
    """The cells of a slot: ``named`` has each with its field and the first byte of its atom,
    ``fields`` those of each field, ``atoms`` those that are read together, by the reading rank."""

    cells: Cells
    named: tuple[tuple[int, str, int], ...]
    fields: tuple[tuple[str, Cells], ...]
    atoms: dict[int, tuple[Cells, ...]] = field(default_factory=dict)


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
        self.ranks = [place.rank for place in self.places]
        self.versions = [0] * ranks
        self.lines = cache_lines(layout)
        self.line_of = {cell: n for n, cells in enumerate(self.lines) for cell in cells}
        self.known = [content.of(place.shape) for place in self.places]
        views = [memoryview(array) for array in self.arrays]
        self._pieces = [_pieces(views[place.rank], place.ranges) for place in self.places]
        self._areas: dict[tuple[Region, int, int, tuple[str, ...]], Area] = {}
        self._atoms: dict[tuple[Cells, int], tuple[tuple[int, Cells], ...]] = {}
        for cell, value in enumerate(initial):
            self.write(cell, content.encode(value, self.places[cell].shape))
        self.initial = [self.read(cell) for cell in range(len(self.places))]

    def area(self, slot: Slot) -> Area:
        """The cells of a slot."""
        key = (slot.region, slot.rank, slot.number, slot.names)
        found = self._areas.get(key)
        if found is None:
            cells = self.layout.cells
            named = tuple(
                (cell, field, cells[cell].first_byte)
                for cell, field, _ in self.layout.cells_of(slot)
            )
            of_field: dict[str, Cells] = {}
            for cell, name, _ in named:
                of_field[name] = (*of_field.get(name, ()), cell)
            cells_in = tuple(cell for cell, _, _ in named)
            found = self._areas[key] = Area(cells_in, named, tuple(of_field.items()))
        return found

    def cells_of(self, slot: Slot) -> tuple[tuple[int, str, int], ...]:
        """The cells of a slot as (cell, field, first byte of its atom)."""
        return self.area(slot).named

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
        pieces = self._pieces[cell]
        return pieces[0].tobytes() if len(pieces) == 1 else b"".join(pieces)

    def write(self, cell: int, data: bytes) -> None:
        """Change the bytes of a cell."""
        pieces = self._pieces[cell]
        if len(pieces) == 1:
            pieces[0][:] = data
        else:
            start = 0
            for piece in pieces:
                piece[:] = data[start : start + len(piece)]
                start += len(piece)
        self.versions[self.ranks[cell]] += 1

    def value(self, cell: int, data: bytes) -> Any:
        """What bytes of a cell mean."""
        return self.content.decoded(data, self.known[cell])

    def bytes_of(self, cell: int, value: Any) -> bytes:
        """What a value is in a cell."""
        return self.content.encoded(value, self.known[cell])


def _pieces(view: memoryview, ranges: Ranges) -> tuple[memoryview, ...]:
    """Windows on the bytes of a cell, to read and to write."""
    return tuple(view[first : first + length] for first, length in ranges)


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
        for name in kind:
            start = _start_of(region, name)
            begin, end = max(first, start), min(last, start + region.fields[name])
            key = (latest[kind], name)
            found[key] = (*found.get(key, ()), (begin, end - begin))
    return found
