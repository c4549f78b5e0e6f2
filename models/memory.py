"""Memory as a kernel sees it: regions of blocks with fields, and the cells that they are cut into.

A put of a block lands atom by atom; each atom covers parts of some fields. The part of one field
in one atom is a *cell*, the unit of state. Cells of one atom land together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from syncproof.models.errors import UserError
from syncproof.models.values import PLAIN, AnyOf, Block, Payload, uncover


@dataclass(frozen=True)
class IndexWord:
    """An extent that depends on the instance: how many ranks, cores, tokens or experts."""

    name: str


RANK, CORE, TOKEN, EXPERT = (IndexWord(name) for name in ("RANK", "CORE", "TOKEN", "EXPERT"))

Extent = IndexWord | int


class Region:
    """An array of blocks in the memory of every rank, or of one rank (``owner=0``).

    ``index`` gives the extents, ``block`` the bytes that a kernel writes at once, ``fields`` their
    byte ranges in order (default: ``lead``, the first 32 B, and ``rest``). ``compared`` names the
    fields that control flow looks at (default: the first); the others are opaque. ``on_chip``
    memory (UB, shared memory) is immediate and in order. ``line`` puts the region behind the
    cores' write-back caches. ``clean`` asks that it ends as it began.
    """

    def __init__(
        self,
        owner: IndexWord | int = RANK,
        index: Sequence[Extent] = (),
        block: int = 512,
        fields: Mapping[str, int] | None = None,
        initial: Any = 0,
        compared: Sequence[str] | None = None,
        on_chip: bool = False,
        line: int | None = None,
        clean: bool = False,
    ) -> None:
        if fields is None:
            fields = {"lead": 32, "rest": block - 32} if block > 32 else {"lead": block}
        if sum(fields.values()) != block or any(size <= 0 for size in fields.values()):
            raise UserError(
                f"fields {dict(fields)} do not fill a block of {block} B",
                where="Region",
                expected="positive sizes whose sum is the block",
            )
        self.owner, self.index, self.block = owner, tuple(index), block
        self.fields, self.names = dict(fields), tuple(fields)
        self.initial, self.on_chip, self.line, self.clean = initial, on_chip, line, clean
        self.compared = tuple(fields)[:1] if compared is None else tuple(compared)
        for name in self.compared:
            self.check_field(name)
        self.name = ""
        self.ranks = 0
        self.extents: tuple[int, ...] = ()

    def check_field(self, name: str) -> None:
        if name not in self.fields:
            raise UserError(
                f"the region {getattr(self, 'name', '')} has no field {name!r}",
                expected=f"one of {', '.join(self.fields)}",
            )

    def place(self, name: str, ranks: int, extents: tuple[int, ...]) -> None:
        """Fix the name and the extents for one instance."""
        self.name, self.ranks, self.extents = name, ranks, extents

    @property
    def blocks(self) -> int:
        """How many blocks each rank holds."""
        return prod(self.extents)

    def owners(self) -> range:
        """The ranks that hold the region."""
        if isinstance(self.owner, int):
            return range(self.owner, self.owner + 1)
        return range(self.ranks)

    def __getitem__(self, rank: int) -> Any:
        if not (0 <= rank < self.ranks and self.owner is RANK) and rank not in self.owners():
            raise UserError(
                f"{self.name}[{rank}]: no such rank holds the region",
                expected=f"a rank from {self.owners()[0]} to {self.owners()[-1]}",
            )
        return Blocks(self, rank) if self.extents else Slot(self, rank, (), self.names)


@dataclass(unsafe_hash=True)
class Blocks:
    """The blocks of one rank: ``window[peer][source, token, 0]``."""

    region: Region
    rank: int

    def __getitem__(self, index: int | tuple[int, ...]) -> Slot:
        place = index if isinstance(index, tuple) else (index,)
        region = self.region
        extents = region.extents
        if len(place) != len(extents):
            raise self._outside(place)
        number = at = 0
        for i in place:
            if not 0 <= i < extents[at]:
                raise self._outside(place)
            number = number * extents[at] + i
            at += 1  # noqa: SIM113 - a million blocks: counted here, it takes half the time
        return Slot(region, self.rank, place, region.names, number)

    def _outside(self, place: tuple[int, ...]) -> UserError:
        return UserError(
            f"{self.region.name}[{self.rank}][{', '.join(map(str, place))}] is outside",
            expected=f"indices below {self.region.extents}",
        )


@dataclass(unsafe_hash=True)
class Slot:
    """One block of a region, or some of its fields (``slot.field("flag")``).

    ``number`` counts the blocks of a rank in the order of their places.
    """

    region: Region
    rank: int
    place: tuple[int, ...]
    names: tuple[str, ...]
    number: int = 0

    def field(self, *names: str) -> Slot:
        """The same block, only these fields."""
        for name in names:
            self.region.check_field(name)
        return Slot(self.region, self.rank, self.place, names, self.number)

    def spread(self, value: Any) -> dict[str, Hashable]:
        """What a put of ``value`` writes into each field.

        A token gives each field its part; a mapping, or the block that a load gave, names the
        fields it writes; any other value goes into every field.
        """
        kind = type(value)
        if kind is Payload and self.names:
            return {name: value.field(name) for name in self.names}
        if kind is Block:
            value = vars(value)
        if kind is Block or kind is dict or (kind not in PLAIN and isinstance(value, Mapping)):
            for name in value:
                self.region.check_field(name)
            named = {name: value[name] for name in self.names if name in value}
        else:
            named = dict.fromkeys(self.names, value)
        if not named:
            raise UserError(f"a put to {self} writes no field", expected=", ".join(self.names))
        return {
            name: part.field(name) if isinstance(part, Payload) else uncover(part)
            for name, part in named.items()
        }

    def __str__(self) -> str:
        place = f"[{', '.join(map(str, self.place))}]" if self.region.extents else ""
        fields = "" if self.names == self.region.names else "." + "+".join(self.names)
        return f"{self.region.name}[{self.rank}]{place}{fields}"


class Pool:
    """What must be resident to run: ``core.hold(pool, n)`` takes n of ``size`` units on a rank."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.region = Region(index=(), block=8, initial=size, on_chip=True, clean=True)


class Ghost:
    """State that only the proof sees; a key has the value ``initial`` until it is updated."""

    def __init__(self, initial: Hashable = 0) -> None:
        self.initial = initial
        self.name = ""


@dataclass(frozen=True)
class Cell:
    """The part of one field in one atom of one block."""

    slot: Slot
    atom: int
    field: str
    first_byte: int
    initial: Hashable

    def __str__(self) -> str:
        several = f"@{self.first_byte}B" if self.atom else ""
        return f"{self.slot.field(self.field)}{several}"


def atom_kinds(region: Region, atomicity: int, order: str, whole: bool) -> list[tuple[int, int]]:
    """The atoms of a block that are kept, as (index, first byte).

    One of each kind is kept where control flow sees none of its fields; ``whole`` keeps all. A
    kind is the set of fields, and under ascending landing order also its unbroken run (reference:
    a violating run projects onto the flag and one wrong atom of the kind, and lifts back).
    """
    kept: list[tuple[int, int]] = []
    seen: set[tuple[str, ...]] = set()
    previous: tuple[str, ...] = ()
    for number, first in enumerate(range(0, region.block, atomicity)):
        kind = fields_in(region, first, min(first + atomicity, region.block))
        opaque = not set(kind) & set(region.compared)
        repeats = kind == previous if order == "ascending" else kind in seen
        if whole or not opaque or not repeats:
            kept.append((number, first))
        seen.add(kind)
        previous = kind
    return kept


def fields_in(region: Region, first: int, last: int) -> tuple[str, ...]:
    """The fields that bytes ``first`` to ``last`` (exclusive) of a block touch."""
    found, start = [], 0
    for name, size in region.fields.items():
        if start < last and first < start + size:
            found.append(name)
        start += size
    return tuple(found)


class Layout:
    """All cells of all regions, numbered, and the way from a slot to its cells."""

    def __init__(
        self, regions: Sequence[Region], atomicity: int, order: str, whole: bool = False
    ) -> None:
        self.regions, self._atomicity = tuple(regions), atomicity
        self._own = {region.name: region for region in regions}
        self.size = 0
        self._first: dict[tuple[str, int], int] = {}
        self._pattern: dict[str, list[tuple[int, str, int]]] = {}
        self._named: dict[tuple[str, tuple[str, ...]], list[tuple[int, str, int]]] = {}
        for region in regions:
            kept = atom_kinds(region, atomicity, order, whole)
            self._pattern[region.name] = [
                (number, field, first)
                for number, first in kept
                for field in fields_in(region, first, min(first + atomicity, region.block))
            ]
            for rank in region.owners():
                self._first[region.name, rank] = self.size
                self.size += region.blocks * len(self._pattern[region.name])

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells in order; made when they are first asked for."""
        return [
            cell
            for region in self.regions
            for rank in region.owners()
            for cell in self._cells_in(region, rank)
        ]

    def atoms(self, region: Region) -> list[tuple[int, str, int]]:
        """The cells of each block of a region: (atom, field, first byte)."""
        return self._pattern[region.name]

    def _cells_in(self, region: Region, rank: int) -> Iterator[Cell]:
        for block in range(region.blocks):
            place, rest = [], block
            for extent in reversed(region.extents):
                place.append(rest % extent)
                rest //= extent
            slot = Slot(region, rank, tuple(reversed(place)), region.names, block)
            values: Mapping[str, Hashable] = (
                dict.fromkeys(region.fields, region.initial)
                if isinstance(region.initial, AnyOf)
                else slot.spread(region.initial)
            )
            for atom, field, first in self._pattern[region.name]:
                yield Cell(slot, atom, field, first, values.get(field, 0))

    def shape_of(self, slot: Slot) -> list[tuple[int, int]]:
        """The size of each field of ``slot``, and where it begins in an atom if it is in several.

        Cells of slots of one shape hold the same bytes of their fields.
        """
        shape, start = [], 0
        for name, size in slot.region.fields.items():
            begin = start % self._atomicity
            if name in slot.names:
                shape.append((size, begin if begin + size > self._atomicity else 0))
            start += size
        return shape

    def cells_of(self, slot: Slot) -> list[tuple[int, str, int]]:
        """The cells of the named fields of ``slot``, as (cell, field, atom), in byte order.

        Raises `UserError` for a region that the protocol does not hold.
        """
        region = slot.region.name
        if self._own.get(region) is not slot.region:
            raise UserError(
                f"{slot} is in a region that the protocol does not hold",
                expected="a region that memory() assigns to an attribute of the protocol",
            )
        pattern = self._pattern[region]
        named = self._named.get((region, slot.names))
        if named is None:
            named = self._named[region, slot.names] = [
                (i, field, atom)
                for i, (atom, field, _) in enumerate(pattern)
                if field in slot.names
            ]
        first = self._first[region, slot.rank] + slot.number * len(pattern)
        return [(first + i, field, atom) for i, field, atom in named]
