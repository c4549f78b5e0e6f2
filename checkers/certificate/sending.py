"""The puts of one process that have not surely landed, and what they hold back."""

from __future__ import annotations

from syncproof.models.fabric import Profile
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.outbox import SET, Packet, must_precede


class Outgoing:
    """Packets in the order of issue, each with its landing and all that precedes that.

    A fence is a packet as well; what precedes it is what it waits for.
    """

    def __init__(self) -> None:
        self._packets: list[tuple[Packet, int]] = []

    def forget(self, known: int) -> None:
        """Drop what has landed before the process's next step."""
        self._packets = [each for each in self._packets if each[1] & ~known]

    def before(self, packet: Packet, profile: Profile) -> int:
        """What must land before a packet that is issued now."""
        found = 0
        for early, past in self._packets:
            if must_precede(early, packet, profile):
                found |= past
        return found

    def overfull(self, packet: Packet, most: int) -> bool:
        """Whether a packet may be one too many in flight to one of its cells."""
        if len(self._packets) < most:
            return False
        for cell, _, _ in packet.writes:
            if sum(any(c == cell for c, _, _ in p.writes) for p, _ in self._packets) >= most:
                return True
        return False

    def add(self, packet: Packet, past: int) -> None:
        """A packet is issued; ``past`` is its landing with what precedes it."""
        self._packets.append((packet, past))

    def fence(self, packet: Packet, profile: Profile) -> None:
        """A fence: later packets come after what must come before it."""
        self._packets.append((packet, self.before(packet, profile)))

    def settle(self) -> None:
        """The put that was issued last is an earlier one from now on."""
        self._packets = [
            (packet._replace(own_put=False, place=0, is_signal=False), past)
            if packet.own_put or packet.place or packet.is_signal
            else (packet, past)
            for packet, past in self._packets
        ]

    def landed(self, target: int) -> int:
        """What has landed after a quiet towards a rank (-1: all)."""
        found = 0
        for packet, past in self._packets:
            if target < 0 or packet.target == target:
                found |= past
        return found

    def ahead_of(
        self, action: Action, groups: tuple[tuple[int, ...], ...], profile: Profile
    ) -> int:
        """What must land before a get or an atomic, before whichever group of cells it reads."""
        is_get, found = action.kind is ActionKind.READ, -1
        for cells in groups:
            probe = Packet(
                tuple((cell, -1, SET) for cell in cells),
                cells if is_get else (),
                action.target,
                action.queue,
                False,
                0,
                False,
                is_get,
                False,
            )
            found &= self.before(probe, profile)
        return found

    def open(self, known: int) -> bool:
        """Whether a put may still be in flight."""
        return any(past & ~known for _, past in self._packets)
