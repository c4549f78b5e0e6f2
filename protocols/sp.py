"""Sentinel Polling (UBEP, section 3.4): the receiver waits until its fill value is overwritten."""

from __future__ import annotations

from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import RANK, TOKEN, Region
from syncproof.models.protocol import assumption, parameter, role
from syncproof.models.values import SENTINEL, Payload
from syncproof.protocols.counts import DataAsFlag

FIELDS = {
    "lead": {"lead": 32, "rest": 480},
    "block": {"lead": 32, "rest": 480},
    "atom": {name: size for i in range(4) for name, size in ((f"lead{i}", 32), (f"rest{i}", 96))},
}


class SentinelPolling(DataAsFlag):
    """The receiver fills its window with a sentinel and waits until it is overwritten.

    Tokens are sent as they are. A block has arrived when the bytes that are compared differ from
    the sentinel; once taken, the receiver fills it with the sentinel again. ``compare`` says which
    bytes: the ``lead`` 32 B; the whole ``block``, which makes a collision rarer (it has arrived
    when *any* of its bytes differ, so that this too relies on a block being stored whole); or, as
    an answer to smaller atoms, 32 B in each 128 B ``atom``, all of which have to differ.

    A token whose compared bytes equal the sentinel is never noticed: ``reserved_sentinel`` says
    that there is none. Without ``quiet`` a kernel ends although resets are still on their way.
    """

    name = "sp"
    compare: str = parameter("lead", "bytes that are compared", ("lead", "block", "atom"))
    quiet: bool = parameter(True, "a kernel ends when its puts have landed")
    reserved_sentinel: bool = assumption("no token's compared bytes equal the sentinel")

    def memory(self) -> None:
        super().memory()
        fields = tuple(FIELDS[self.compare])
        self.window = Region(
            index=(RANK, TOKEN, self.windows),
            fields=FIELDS[self.compare],
            initial=SENTINEL,
            compared={"lead": fields[:1], "block": fields, "atom": fields[::2]}[self.compare],
            clean=True,
        )

    @property
    def compared(self) -> tuple[str, ...]:
        """The fields that are compared with the sentinel."""
        return self.window.compared

    def arrived(self, block: Any) -> bool:
        """Whether a block is held to be overwritten."""
        differ = [getattr(block, name) != SENTINEL for name in self.compared]
        return all(differ) if self.compare == "atom" else any(differ)

    def content(self, core: Core, source: int, destination: int, token: int, round: int) -> Any:
        """What is special about a token: without the assumption it may look like the sentinel."""
        if self.reserved_sentinel:
            return {}
        name = ("token equals the sentinel", source, destination, token, round)
        return dict.fromkeys(self.compared, SENTINEL) if core.choose(name, (False, True)) else {}

    @role
    async def sender(self, core: Core) -> None:
        for round in core.rounds():
            await self.send_counts(core, round)

            # Move and store: raw payload, one block at a time, straight into the peer's window
            for peer in core.destinations():
                await self.send(core, peer, self.tokens(core, core.rank, peer, round), round)

            await self.end_of_kernel(core)

    @role
    async def receiver(self, core: Core) -> None:
        for round in core.rounds():
            told = await self.receive_counts(core, round)
            for source in core.sources():
                for token in range(told[source]):
                    # Overwritten? The block that differs is the block that is taken
                    block = await self.read(core, source, token, round)
                    content = self.content(core, source, core.rank, token, round)
                    core.consume(block, source, token, round, **content)

                    # Cover: back to the sentinel before the window is used again
                    await self.give_back(core, source, token, round)

            await self.end_of_kernel(core)

    async def send(self, core: Core, peer: int, tokens: range, round: int) -> None:
        """Store a batch of tokens in the peer's window."""
        for token in tokens:
            slot = self.window[peer][core.rank, token, round % self.windows]
            await core.put(slot, self.token(core, peer, token, round))

    async def read(self, core: Core, source: int, token: int, round: int) -> Any:
        """Wait until a block is overwritten, and give it."""
        slot = self.window[core.rank][source, token, round % self.windows]
        return await core.wait_until(slot, self.arrived)

    async def give_back(self, core: Core, source: int, token: int, round: int) -> None:
        """Cover a block with the sentinel again."""
        await core.put(self.window[core.rank][source, token, round % self.windows], SENTINEL)

    def token(self, core: Core, peer: int, token: int, round: int) -> Payload:
        """A token as the sender holds it."""
        content = self.content(core, core.rank, peer, token, round)
        return core.payload(peer, token, round, **content)

    async def end_of_kernel(self, core: Core) -> None:
        """The end of a kernel, or without ``quiet`` a meeting that completes no put."""
        if self.quiet:
            await super().end_of_kernel(core)
        else:
            await core.sync("rank")
