"""Puts on their way: what holds each back, as a reader of ``specs/fabrics/README.md`` would say it.

Written apart from ``models/outbox.py`` on purpose: a run is walked through the model, and two
readings of one page that agree on every step are worth more than one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from syncproof.models.fabric import Profile

ALL_RANKS = -1


@dataclass(slots=True)
class Write:
    """What lands in one cell: bytes, or a number that is added."""

    cell: int
    data: bytes
    adds: int = 0
    is_add: bool = False


@dataclass(eq=False, slots=True)
class Flight:
    """One atom of a put, copy or add on its way from process ``owner`` to memory of ``target``.

    A copy has ``sources``, the cell that each of its writes comes from, until these are read.
    ``put`` numbers the operation, ``atom`` the atom of it; ``is_last`` if no atom comes behind.
    ``due`` is when it arrives, in a run that has a clock.
    """

    number: int
    owner: int
    target: int
    queue: int
    writes: tuple[Write, ...]
    sources: tuple[int, ...] = ()
    is_get: bool = False
    put: int = 0
    atom: int = 0
    is_last: bool = True
    is_signal: bool = False
    lands_after: set[Flight] | None = None
    reads_after: set[Flight] | None = None
    holds: list[Flight] | None = None
    due: float = 0.0
    cells: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.cells = tuple([each.cell for each in self.writes])

    @property
    def is_free(self) -> bool:
        """Whether the fabric may do something with it now."""
        held_back = self.reads_after if self.sources and not self.is_get else self.lands_after
        return not held_back


@dataclass
class Fence:
    """A fence towards ``target`` (or all): later puts there come behind ``covered``."""

    target: int
    covered: frozenset[Flight]


def lands_behind(early: Flight, late: Flight, profile: Profile) -> bool:
    """Whether ``late`` must not land (a get: not be served) before ``early`` has landed.

    ``profile`` is that of the way to the target of ``late``; fences are not looked at.
    """
    if early.is_get:
        return False
    if profile.same_address_order:
        touched = late.cells + late.sources if late.is_get else late.cells
        if any(cell in touched for cell in early.cells):
            return True
    same_target = early.target == late.target
    same_queue = same_target and early.queue == late.queue
    if early.put == late.put:
        ascending = profile.in_block_order == "ascending" and early.atom < late.atom
        return (late.is_signal and not early.is_signal) or ascending
    if late.is_signal and profile.signal == "prior" and same_queue:
        return True
    if profile.ordering == "none":
        return False
    return same_target if profile.ordering == "per_pair" else same_queue


def source_read_behind(early: Flight, late: Flight, profile: Profile) -> bool:
    """Whether the source of the copy ``late`` must be read after that of ``early``."""
    if not early.sources or early.is_get or late.is_get or not late.sources:
        return False
    if early.put == late.put:
        return profile.in_block_order == "ascending" and early.atom < late.atom
    return profile.ordering != "none" and (early.target, early.queue) == (late.target, late.queue)


def is_fenced(early: Flight, late: Flight, fences: list[Fence]) -> bool:
    """Whether a fence between the two orders them; gets are not ordered by fences."""
    if early.is_get or late.is_get:
        return False
    return any(each.target in (ALL_RANKS, late.target) and early in each.covered for each in fences)


Thing = TypeVar("Thing")


class Bag(Generic[Thing]):
    """A set from which one can be drawn at random, and that is walked in the order of arrival.

    ``things`` are those that are in it, to be read and not changed.
    """

    def __init__(self) -> None:
        self.things: list[Thing] = []
        self._at: dict[Thing, int] = {}

    def add(self, thing: Thing) -> None:
        if thing not in self._at:
            self._at[thing] = len(self.things)
            self.things.append(thing)

    def discard(self, thing: Thing) -> None:
        at = self._at.pop(thing, None)
        if at is None:
            return
        last = self.things.pop()
        if last is not thing:
            self.things[at] = last
            self._at[last] = at

    def draw(self, random: random.Random) -> Thing:
        """One of them, each as likely as any other."""
        return self.things[int(random.random() * len(self.things))]

    def __contains__(self, thing: object) -> bool:
        return thing in self._at

    def __iter__(self) -> Iterator[Thing]:
        return iter(self.things)

    def __len__(self) -> int:
        return len(self.things)
