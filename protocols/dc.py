"""Data for Checksum (UBEP, section 3.4): a checksum of the tokens' bytes says they are there."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import RANK, TOKEN, Region
from syncproof.models.protocol import assumption, parameter, role
from syncproof.models.values import Mark
from syncproof.protocols.counts import DataAsFlag

NO_CHECKSUM = Mark("NO_CHECKSUM")


class DataForChecksum(DataAsFlag):
    """The sender puts raw tokens and then, apart, a checksum over the lead 32 B of each block.

    The receiver reads the checksum and the leads until they agree, then reads the tokens. UBEP
    argues that "the checksum write acts as a per-batch barrier"; on an unordered fabric it does
    not, as the checksum may land first (``compare=no`` waits for its arrival alone and fails):
    it is the comparison that holds the tokens back, and only as far as it can tell new from old.

    So a block must have another lead than what its slot held before, another token or the initial
    zeros: ``distinct_leads``. And a window and a checksum left over from an earlier round must not
    verify each other: ``round_in_checksum``. ``ideal`` stands for a checksum without collisions.
    An ``additive`` one adds the leads up; it is tried with leads that serve it worst, distinct in
    each slot but of equal sum in every full batch of two or more. ``initial`` is what the checksum
    cells hold at first: ``invalid``, which no batch gives, or ``zeroed`` like the windows.

    Nothing resets windows or checksums. No public kernel is known to have this scheme.
    """

    name = "dc"
    checksum: str = parameter("ideal", "how leads are summed up", ("ideal", "additive"))
    round_in_checksum: bool = parameter(True, "the checksum covers the number of the round")
    compare: bool = parameter(True, "the receiver compares the checksum with the leads")
    initial: str = parameter("invalid", "what checksum cells hold at first", ("invalid", "zeroed"))
    distinct_leads: bool = assumption("no block has the lead that its slot held before")

    def memory(self) -> None:
        super().memory()
        self.window = Region(index=(RANK, TOKEN, self.windows), initial=0)
        self.total = Region(
            index=(RANK, self.windows), block=32, fields={"checksum": 32}, initial=self.at_first
        )

    @role
    async def sender(self, core: Core) -> None:
        for round in core.rounds():
            await self.send_counts(core, round)
            for peer in core.destinations():
                await self.send(core, peer, self.tokens(core, core.rank, peer, round), round)

            await self.end_of_kernel(core)

    @role
    async def receiver(self, core: Core) -> None:
        for round in core.rounds():
            told = await self.receive_counts(core, round)
            for source in core.sources():
                await self.verify(core, source, told[source], round)

                # Token-Reordering: read the tokens
                for token in range(told[source]):
                    block = await self.read(core, source, token, round)
                    content = self.content(core, source, core.rank, token, round)
                    core.consume(block, source, token, round, **content)

            await self.end_of_kernel(core)

    async def send(self, core: Core, peer: int, tokens: range, round: int) -> None:
        """Store a batch of raw tokens, then its checksum as a packet of its own."""
        leads: tuple[int, ...] = ()
        for token in tokens:
            lead = self.lead(core, core.rank, peer, token, round)
            slot = self.window[peer][core.rank, token, round % self.windows]
            await core.put(slot, core.payload(peer, token, round, lead=lead))
            leads += (lead,)
        if leads:
            total = self.total[peer][core.rank, round % self.windows]
            await core.put(total, self.checksum_of(leads, round))

    async def read(self, core: Core, source: int, token: int, round: int) -> Any:
        """Read a token of a batch that is verified."""
        slot = self.window[core.rank][source, token, round % self.windows]
        return await core.load(slot)

    async def verify(self, core: Core, source: int, tokens: int, round: int) -> None:
        """Read the checksum and the leads of a batch until they agree."""
        if not tokens:
            return

        async def agree() -> bool | None:
            found = await core.load(self.total[core.rank][source, round % self.windows])
            leads: tuple[Any, ...] = ()
            for token in range(tokens if self.compare else 0):
                slot = self.window[core.rank][source, token, round % self.windows]
                leads += (await core.load(slot.field("lead")),)
            return True if self.verifies(found, leads, round) else None

        await core.poll_until(agree)

    # What is in the packets

    @property
    def at_first(self) -> Hashable:
        """What a checksum cell holds before the first round."""
        return 0 if self.initial == "zeroed" else NO_CHECKSUM

    def checksum_of(self, leads: tuple[Any, ...], round: int) -> Hashable:
        """The checksum of a batch; None if a lead is no number that could be added up."""
        if self.checksum == "ideal":
            summed: Hashable = leads
        elif all(isinstance(lead, int) for lead in leads):
            summed = sum(leads)
        else:
            return None
        return (round, summed) if self.round_in_checksum else summed

    def verifies(self, found: Any, leads: tuple[Any, ...], round: int) -> bool:
        """Whether the receiver takes the batch for complete."""
        if self.compare:
            return bool(found == self.checksum_of(leads, round))
        if self.round_in_checksum:
            return isinstance(found, tuple) and found[0] == round
        return bool(found != self.at_first)

    def content(self, core: Core, source: int, destination: int, token: int, round: int) -> Any:
        """What is special about a token: its lead is a number."""
        return {"lead": self.lead(core, source, destination, token, round)}

    def lead(self, core: Core, source: int, destination: int, token: int, round: int) -> int:
        """The lead of a token; without the assumption perhaps that of the slot's last one."""
        if not self.distinct_leads:
            name = ("lead repeats", source, destination, token, round)
            if core.choose(name, (False, True)):
                before = round - self.windows
                return 0 if before < 0 else self.lead(core, source, destination, token, before)
        last = self.bounds.tokens_per_pair - 1
        if token < last or not last:
            return 1 + (token * self.bounds.rounds if token else 0) + round
        return 1 + last * (self.bounds.rounds * (last + 1) - round)
