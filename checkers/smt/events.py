"""What happens in a run besides the steps of processes: landings, fences, and what is written."""

from __future__ import annotations

from dataclasses import dataclass

from syncproof.checkers.smt.contents import Cells, Numbers
from syncproof.checkers.smt.terms import Term
from syncproof.checkers.smt.unrolling import Point
from syncproof.models.fabric import Profile
from syncproof.models.outbox import Packet, fence


@dataclass(eq=False)
class Landing:
    """One atom of a put, from its issue at ``point`` on; a copy is fetched before it lands."""

    point: Point
    action: int
    packet: Packet
    profile: Profile
    issued: Term
    landed: Term
    clock: Term
    fetched: Term
    fetch_clock: Term

    @property
    def settled(self) -> Packet:
        """The packet as later ones of its process see it."""
        return self.packet._replace(own_put=False, place=0, is_signal=False)

    def was_with(self, other: Landing) -> bool:
        """Whether both are atoms of what one step issues."""
        return self.point is other.point and self.action == other.action


@dataclass(eq=False)
class Mark:
    """A fence: ``released`` when every put that it holds back others for has landed."""

    point: Point
    packet: Packet
    profile: Profile
    issued: Term
    released: Term
    clock: Term

    @property
    def settled(self) -> Packet:
        """The packet as later ones of its process see it."""
        return self.packet


@dataclass(eq=False)
class Write:
    """Something that changes cells at one moment: a landing, or a step that writes at once.

    ``origin`` is None and ``clock`` empty for what memory holds at first. ``kind`` is "first",
    "landing", "store" (a step on chip or under ``immediate``), "update" or "ghost".
    """

    kind: str
    cells: Cells
    origin: Point | None
    action: int
    happened: Term
    clock: Term
    landing: Landing | None = None


@dataclass(eq=False)
class Location:
    """Cells that are always written together, and all that writes them."""

    number: int
    cells: Cells
    writes: list[Write]


@dataclass(eq=False)
class Reading:
    """Cells looked at in one moment: for each location, which write is the last before it."""

    reader: Point | None
    active: Term
    clock: Term
    itself: Write | None
    sources: dict[Location, list[tuple[Write, Term]]]


Options = dict[Numbers, Term]
"""The values that a write gives a location, each with its condition (True: always)."""

__all__ = ["Landing", "Location", "Mark", "Options", "Packet", "Reading", "Term", "Write", "fence"]
