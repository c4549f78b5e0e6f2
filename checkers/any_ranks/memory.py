"""What a pair's memory was seen to hold, and which ranks a block is for.

Another rank is to this one as the peer is in a pair of their own. So what may be read of it is what
was seen to be read of the peer, under any routing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import product
from math import prod
from typing import Any

from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.models.instance import Instance
from syncproof.models.lowering import Lowering
from syncproof.models.memory import Slot
from syncproof.models.operations import Kind, Operation
from syncproof.models.ranks import OTHER, PEER, THIS, Rank
from syncproof.models.system import System
from syncproof.models.transitions import State
from syncproof.models.values import Values, typed

MOST_RESULTS = 10_000


class Memory:
    """The values seen in each cell, over all assignments of the free choices."""

    def __init__(self, instance: Instance, system: System) -> None:
        self.protocol = instance.protocol()
        self._values = Values()
        self._lowering = Lowering(
            instance.layout(self.protocol), instance.profile, self._values, locks=False
        )
        self._seen: list[dict[Hashable, int]] = [{} for _ in system.cells]

    def note(self, system: System, states: Iterable[State]) -> None:
        """Take down what the cells hold in some states."""
        first = system.first_cell
        seen: list[set[int]] = [set() for _ in self._seen]
        for state in states:
            for cell, values in enumerate(seen):
                values.add(state[first + cell])
        for known, values in zip(self._seen, seen, strict=True):
            for number in values:
                value = system.values[number]
                known.setdefault(typed(value), self._values.number(value))

    def slot(self, slot: Slot, own: int) -> Slot:
        """The block in the pair's memory that stands for one of opaque ranks."""

        def number(each: Any) -> Any:
            if type(each) is not Rank:
                return each
            return own if each.which_ == THIS else 1 - own

        blocks = self.protocol.regions[slot.region.name][number(slot.rank)]
        found = blocks[tuple(number(each) for each in slot.place)] if slot.place else blocks
        assert isinstance(found, Slot)
        return found.field(*slot.names)

    def results(self, slot: Slot) -> list[Any]:
        """All that a load of a block may give, and more: any of the values of each cell."""
        cells = [cell for cell, _, _ in self._lowering.layout.cells_of(slot)]
        options = [sorted(self._seen[cell].values()) for cell in cells]
        if prod(map(len, options)) > MOST_RESULTS:
            raise NotCovered(f"{slot} may hold too many values")
        return [
            self._lowering.assembled(slot, dict(zip(cells, chosen, strict=True)))
            for chosen in product(*options)
        ]


def ranks_of(slot: Slot) -> list[Rank]:
    """The ranks that a block of opaque ranks names: its owner, then those of its index."""
    named: tuple[Any, ...] = (slot.rank, *slot.place)
    return [each for each in named if type(each) is Rank]


def parties(slot: Slot) -> str:
    """Whom a block that a role accesses is for, beside its own rank.

    `NotCovered` if more than two ranks may access it: premise P1.
    """
    owner, *others = ranks_of(slot)
    ranks = [owner]
    for each in others:
        if not any(each is known for known in ranks):
            ranks.append(each)
    which = [each.which_ for each in ranks]
    if THIS not in which:
        raise NotCovered(
            f"{slot.region.name} of another rank is accessed, and its index does not say by whom: "
            "more than two ranks may access one block"
        )
    apart = [each for each in which if each != THIS]
    if len(apart) > 1:
        raise NotCovered(f"a block of {slot.region.name} is for three ranks")
    return apart[0] if apart else THIS


WRITING = (Kind.PUT, Kind.ADD, Kind.PUT_NBI, Kind.PUT_WITH_SIGNAL, Kind.GET_NBI)


def concerns(operation: Operation) -> str:
    """Whom an operation concerns beside its own rank; `NotCovered` if that is mixed."""
    if operation.kind is Kind.FENCE:
        target: Any = operation.target
        if target is not None and type(target) is not Rank:
            raise NotCovered(f"a fence to rank {target}, by its number")
        return THIS if target is None else str(target.which_)
    slots = [each for each in (operation.slot, operation.source, operation.signal) if each]
    found = [parties(each) for each in slots]
    if OTHER in found:
        written = [parties(each) for each in (operation.slot, operation.signal) if each]
        if PEER in found or (operation.kind in WRITING and set(written) != {OTHER}):
            raise NotCovered(f"a {operation.kind.value} between blocks for different ranks")
        return OTHER
    return PEER if PEER in found else THIS
