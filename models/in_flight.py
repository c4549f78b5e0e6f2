"""The outboxes of a system by number, and what may become of each: every answer kept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from syncproof.models import outbox as boxes
from syncproof.models.nodes import Node
from syncproof.models.outbox import Outbox
from syncproof.models.transitions import Delivery, Interned, Overfull, Step


class InFlight:
    """Outboxes as numbers; 0 is the empty one. Owners from ``processes`` on are the fabric's.

    ``alike`` is set once two deliveries of one outbox have been met that are one step: a put and a
    copy to the same cell, say.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self.alike = False
        self._outboxes = Interned(())
        self._deliveries: dict[tuple[int, int], tuple[Delivery, ...]] = {}
        self._issues: dict[tuple[int, int, int, int], int] = {}
        self._landing_cells: dict[tuple[int, int], frozenset[int] | None] = {}

    def __getitem__(self, number: int) -> Outbox:
        found: Outbox = self._outboxes.known[number]  # type: ignore[assignment]
        return found

    def number(self, outbox: Outbox) -> int:
        """The number of an outbox."""
        return self._outboxes.number(outbox)

    def issued(self, process: int, node: Node, action: int, number: int) -> int:
        """The outbox after an action that issues puts or a fence; raises `Overfull`."""
        key = (process, node.number, action, number)
        found = self._issues.get(key)
        if found is None:
            what = node.actions[action]
            after = boxes.issue(self[number], what.packets, what.profiles)
            found = self._issues[key] = -1 if after is None else self.number(after)
        if found < 0:
            raise Overfull
        return found

    def deliveries(self, owner: int, number: int) -> tuple[Delivery, ...]:
        """What the fabric may do next with the puts of an outbox."""
        found = self._deliveries.get((owner, number))
        if found is None:
            found = self._deliveries[owner, number] = tuple(self._find_deliveries(owner, number))
            self.alike = self.alike or len({each.step for each in found}) < len(found)
        return found

    def _find_deliveries(self, owner: int, number: int) -> Iterator[Delivery]:
        outbox = self[number]
        kind = "land" if owner < self._processes else "propagate"
        for position, each in enumerate(outbox):
            packet = each.packet
            if boxes.can_land(each):
                after = partial(self._landed, outbox, position)
                cells = tuple(cell for cell, _, _ in packet.writes)
                yield Delivery(Step(kind, owner, cells), position, packet, after)
            elif boxes.can_be_read(each):
                yield Delivery(Step("read source", owner, packet.reads), position, packet, -1)

    def _landed(self, outbox: Outbox, position: int) -> int:
        return self.number(boxes.landed(outbox, position))

    def landing_cells(self, owner: int, number: int) -> frozenset[int] | None:
        """The cells on which the fabric may act next from an outbox; None if one is there twice."""
        key = (owner, number)
        if key not in self._landing_cells:
            cells = [cell for each in self.deliveries(owner, number) for cell in each.step.what]
            once = len(set(cells)) == len(cells)
            self._landing_cells[key] = frozenset(cells) if once else None
        return self._landing_cells[key]
