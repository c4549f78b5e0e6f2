"""The record of a straight run: what each step did, as numbers, for a check that runs no role."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

PUT, STORE, READ, WAIT, STEP, QUIET, FENCE, SYNC, RETURN = range(9)
"""What an instruction of a record is; its operands follow:

- ``PUT process landings, then for each landing: places place...``: issued, and landed in this order
- ``STORE process places place...``: a store that lands as it is made
- ``READ process places place...``: a load of these places at once
- ``WAIT process place known``: a wait that passed; it fails on all that the place held since
  landing number ``known``, that one included (-1: since the start; the landing read: on none)
- ``STEP process``: a step that orders nothing; ``QUIET process``, ``FENCE process``
- ``SYNC members process...``: one step of them all
- ``RETURN process``: it has returned, which is no step
"""


@dataclass
class Record:
    """Instructions in the order of the run, which is complete.

    ``signals`` are landings that come behind the other landings of their put (puts with signals).
    """

    processes: int
    places: int
    in_flight: int
    same_address_order: bool
    immediate: bool
    instructions: array[int] = field(default_factory=lambda: array("i"))
    signals: array[int] = field(default_factory=lambda: array("i"))
    landings: int = 0
    steps: int = 0

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """The instructions one by one."""
        at, code = 0, self.instructions
        while at < len(code):
            length = length_of(code, at)
            yield tuple(code[at : at + length])
            at += length


def length_of(code: array[int], at: int) -> int:
    """How many numbers the instruction at this place has."""
    kind = code[at]
    if kind == PUT:
        end = at + 3
        for _ in range(code[at + 2]):
            end += 1 + code[end]
        return end - at
    if kind in (STORE, READ):
        return 3 + code[at + 2]
    if kind == SYNC:
        return 2 + code[at + 1]
    return 4 if kind == WAIT else 2
