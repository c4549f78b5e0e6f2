"""Memory as a straight run sees it: *places*, the cells that are always accessed together.

The cells of one field in one atom that only ever move together are one place. Which do shows
while the run goes on: an access to a part of a place raises `Divided`, and the run begins anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from syncproof.models.errors import UserError
from syncproof.models.instance import Parts
from syncproof.models.memory import Region, Slot
from syncproof.models.values import AnyOf, Block, Mark, Opaque, Payload, Torn, typed

Fields = tuple[str, ...]
Division = dict[str, list[tuple[int, Fields]]]
"""The places of each block of a region by name, as (atom, fields)."""


class Divided(Exception):
    """A place was accessed in part; the division is now finer."""


@dataclass(frozen=True)
class Access:
    """How a block's fields are accessed: places by their number in the block, with their fields.

    ``single`` is the one place, if there is but one;
    ``atoms`` are the places again, those of one atom together, in order of their bytes.
    ``order`` are all fields as they lie, each with whether control flow compares it; ``is_block``
    says that a load gives them as a block, ``may_tear`` that one of them is in two places.
    """

    places: tuple[int, ...]
    single: int | None
    atoms: tuple[tuple[int, ...], ...]
    fields: tuple[Fields, ...]
    order: tuple[tuple[str, bool], ...]
    is_block: bool
    may_tear: bool


def coarsest(parts: Parts) -> Division:
    """Each atom one place; a block that is stored as one, one place in all."""
    division: Division = {}
    for region in parts.layout.regions:
        found: dict[int, list[str]] = {}
        for atom, field, _ in parts.layout.atoms(region):
            fields = found.setdefault(0 if region.on_chip else atom, [])
            if field not in fields:
                fields.append(field)
        division[region.name] = [(atom, tuple(fields)) for atom, fields in found.items()]
    return division


class Places:
    """Numbers of places for slots, and values for what they hold."""

    def __init__(self, parts: Parts, division: Division) -> None:
        self._division, self._layout = division, parts.layout
        self._first: dict[tuple[Region, int], tuple[int, int]] = {}
        self._accesses: dict[tuple[Region, Fields], Access] = {}
        self._met: dict[tuple[Region, int, Fields], tuple[Access, int, int]] = {}
        self._spreads: dict[Any, tuple[Fields, dict[str, Any]]] = {}
        self.count = 0
        self._starts: list[tuple[int, Region, int]] = []
        for region in parts.layout.regions:
            for rank in region.owners():
                self._first[region, rank] = self.count, len(division[region.name])
                self._starts.append((self.count, region, rank))
                self.count += region.blocks * len(division[region.name])

    def at(self, slot: Slot, names: Fields) -> tuple[Access, int]:
        """How these fields of a block are accessed, and the number of the block's first place."""
        region, rank = slot.region, slot.rank
        found = self._met.get((region, rank, names))
        if found is None:
            self._layout.cells_of(slot)  # refuses a region that is not the protocol's
            access = self._access(region, names)
            found = self._met[region, rank, names] = access, *self._first[region, rank]
        access, first, per_block = found
        return access, first + slot.number * per_block

    def of_region(self, region: Region) -> Iterator[tuple[Fields, range]]:
        """The places of a region, those of the same fields and rank together."""
        groups = self._division[region.name]
        for rank in region.owners():
            first, step = self._first[region, rank]
            for i, (_, fields) in enumerate(groups):
                yield fields, range(first + i, first + region.blocks * step, step)

    def slot_at(self, place: int) -> Slot:
        """The block and the fields that a place is."""
        start, region, rank = max(
            (each for each in self._starts if each[0] <= place), key=lambda each: each[0]
        )
        groups = self._division[region.name]
        block, group = divmod(place - start, len(groups))
        number = block
        index: list[int] = []
        for extent in reversed(region.extents):
            index.append(number % extent)
            number //= extent
        return Slot(region, rank, tuple(reversed(index)), groups[group][1], block)

    def _access(self, region: Region, names: Fields) -> Access:
        """How these fields of a region's blocks are accessed; `Divided` if only now it shows."""
        found = self._accesses.get((region, names))
        if found is None:
            found = self._accesses[region, names] = self._find_access(region, names)
        return found

    def _find_access(self, region: Region, names: Fields) -> Access:
        groups = self._division[region.name]
        wanted = set(names)
        finer: list[tuple[int, Fields]] = []
        for atom, fields in groups:
            inside = tuple(f for f in fields if f in wanted)
            outside = tuple(f for f in fields if f not in wanted)
            finer += [(atom, part) for part in (inside, outside) if part]
        if len(finer) > len(groups):
            self._division[region.name] = finer
            raise Divided
        chosen = [
            (i, atom, fields) for i, (atom, fields) in enumerate(groups) if fields[0] in wanted
        ]
        atoms: dict[int, tuple[int, ...]] = {}
        for i, atom, _ in chosen:
            atoms[atom] = (*atoms.get(atom, ()), i)
        held = tuple(fields for _, _, fields in chosen)
        order = tuple((name, name in region.compared) for name in region.names if name in wanted)
        return Access(
            tuple(i for i, _, _ in chosen),
            chosen[0][0] if len(chosen) == 1 else None,
            tuple(atoms[atom] for atom in sorted(atoms)),
            held,
            order,
            len(names) > 1,
            len(order) < sum(map(len, held)),
        )

    def captured(self, slot: Slot, value: Any) -> tuple[Fields, Any]:
        """Which fields a put of ``value`` writes, and what a place then holds, unchangeable.

        What is held is the value itself, a token to be spread when it is read, or a field's values
        by name; those that are equal are one object.
        """
        if type(value) in AS_IT_IS:
            return slot.names, value
        kinds = tuple(map(type, value.values())) if type(value) is dict else (None,)
        if not PLAIN.issuperset(kinds):
            return _captured(slot, value)
        key = slot.region, slot.names, *kinds, *value, *value.values()
        found = self._spreads.get(key)
        if found is None:
            found = self._spreads[key] = _captured(slot, value)
        return found


AS_IT_IS = frozenset((int, Mark, Payload))
"""Values that cannot change and that every field of a block can hold."""
PLAIN = frozenset((int, bool, str))
"""Values that are the same if they are equal and of one type."""


def _captured(slot: Slot, value: Any) -> tuple[Fields, Any]:
    if isinstance(value, Mapping | Block):
        spread = slot.spread(value)
        for each in spread.values():
            _check_hashable(each)
        return tuple(spread), spread
    if isinstance(value, Opaque):
        value = value.value
    _check_hashable(value)
    return slot.names, value


def _check_hashable(value: Any) -> None:
    try:
        hash(value)
    except TypeError as error:
        raise UserError(f"the value {value!r} cannot be hashed") from error


def held_at_first(slot: Slot, choices: Mapping[Any, Any]) -> Any:
    """What the places of a block hold at first, in the form of `captured`."""
    region = slot.region
    if type(region.initial) in AS_IT_IS:
        return region.initial
    if isinstance(region.initial, AnyOf):
        block = Slot(region, slot.rank, slot.place, region.names, slot.number)
        return {name: choices["initial", str(block), name] for name in region.names}
    if isinstance(region.initial, Mapping):
        return dict.fromkeys(region.names, 0) | slot.spread(region.initial)
    return region.initial


def field_of(held: Any, name: str) -> Any:
    """The value of one field of what a place holds."""
    if type(held) is dict:
        return held[name]
    return held.field(name) if isinstance(held, Payload) else held


def read(access: Access, held: Any) -> Any:
    """What a load gives when its one place holds this."""
    if not access.is_block:
        name, compared = access.order[0]
        value = field_of(held, name)
        return value if compared else Opaque(value)
    found: dict[str, Any] = {}
    is_dict, is_token = type(held) is dict, isinstance(held, Payload)
    for name, compared in access.order:
        value = held[name] if is_dict else held.field(name) if is_token else held
        found[name] = value if compared else Opaque(value)
    return Block(found)


def assembled(access: Access, held: tuple[Any, ...]) -> Any:
    """What a load gives when its places hold this."""
    if len(held) == 1:
        return read(access, held[0])
    found: dict[str, Any] = {}
    if access.may_tear:
        pieces: dict[str, list[Any]] = {}
        for fields, each in zip(access.fields, held, strict=True):
            for name in fields:
                pieces.setdefault(name, []).append(field_of(each, name))
        found = {name: _whole(each) for name, each in pieces.items()}
    else:
        for fields, each in zip(access.fields, held, strict=True):
            for name in fields:
                found[name] = field_of(each, name)
    result = {n: found[n] if compared else Opaque(found[n]) for n, compared in access.order}
    return Block(result) if access.is_block else result[access.order[0][0]]


def _whole(pieces: list[Any]) -> Any:
    same = len({typed(each) for each in pieces}) == 1
    return pieces[0] if same else Torn(tuple(pieces))
