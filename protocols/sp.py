"""Sentinel Polling (UBEP, section 3.4): the receiver waits until its fill value is overwritten."""

from __future__ import annotations

from syncproof.models.core import Core
from syncproof.models.memory import RANK, TOKEN, Region
from syncproof.models.protocol import Protocol, assumption, parameter, role
from syncproof.models.values import SENTINEL


class SentinelPolling(Protocol):
    """The receiver fills its window with a sentinel and waits until it is overwritten."""

    name = "sp"
    windows: int = parameter(2, "receive windows used in turn")

    def memory(self) -> None:
        self.window = Region(index=(RANK, TOKEN, self.windows), initial=SENTINEL)

    @role
    async def sender(self, core: Core) -> None:
        for round in core.rounds():
            for peer in core.destinations():
                for token in core.tokens_to(peer, round):
                    slot = self.window[peer][core.rank, token, round % self.windows]
                    await core.put(slot, core.payload(peer, token, round))
            await core.kernel_end()

    @role
    async def receiver(self, core: Core) -> None:
        for round in core.rounds():
            for peer in core.sources():
                for token in core.tokens_from(peer, round):
                    slot = self.window[core.rank][peer, token, round % self.windows]
                    block = await core.wait_until(slot, lambda block: block.lead != SENTINEL)
                    core.consume(block, source=peer, token=token, round=round)
                    await core.put(slot, SENTINEL)
            await core.kernel_end()
