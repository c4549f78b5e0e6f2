"""Token-Flag Fusion (UBEP, section 3.4): a flag travels in the block of the token itself."""

from __future__ import annotations

from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import RANK, TOKEN, Region
from syncproof.models.protocol import parameter, role
from syncproof.protocols.counts import ARRIVED, EMPTY, KERNEL, DataAsFlag, equals

BLOCK, FLAG, ATOM = 512, 32, 128


class TokenFlagFusion(DataAsFlag):
    """Each 512 B block is 32 B of flag and 480 B of payload, stored as one.

    The receiver polls the flag and reads the payload with a second load. With a ``constant`` flag
    it then puts the flag back (``reset``), so that the block is not taken again when the window
    comes round; an ``epoch`` flag is another number each round and need not be reset.

    ``flags=atom`` puts a flag into each 128 B, for fabrics that store no more than that as one;
    ``flag_at`` says where in the block (or atom) it is: UBEP's figure has it at the head, CANN's
    dispatch V2 full-mesh at the tail. With ``reuse=reset`` the sender reads the receiver's flag and
    waits for its reset before it puts, the credit of Ascend C's IBSet, so that one window will do;
    the payload then has to be read before the reset.

    Source: UBEP, section 3.4; hicann/ops-transformer c29bc106, mc2.
    """

    name = "tff"
    flag: str = parameter("constant", "value of a raised flag", ("constant", "epoch"))
    reset: str = parameter(
        "after", "when a flag is reset, of the payload's read", ("after", "before", "never")
    )
    flags: str = parameter("block", "what has a flag each", ("block", "atom"))
    flag_at: str = parameter("head", "where the flag is", ("head", "tail"))
    reuse: str = parameter("turn", "what frees a window for the sender", ("turn", "reset"))

    def memory(self) -> None:
        super().memory()
        parts = range(BLOCK // ATOM) if self.flags == "atom" else ("",)
        size = BLOCK // len(parts)
        fields: dict[str, int] = {}
        for part in parts:
            flag, payload = {f"flag{part}": FLAG}, {f"payload{part}": size - FLAG}
            fields |= flag | payload if self.flag_at == "head" else payload | flag
        self.flag_fields = tuple(name for name in fields if name.startswith("flag"))
        self.payload_fields = tuple(name for name in fields if name.startswith("payload"))
        self.window = Region(
            index=(RANK, TOKEN, self.windows),
            block=BLOCK,
            fields=fields,
            initial=EMPTY,
            compared=self.flag_fields,
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
                for token in range(told[source]):
                    payload = await self.read(core, source, token, round)
                    core.consume(payload, source, token, round)
                    await self.give_back(core, source, token, round)

            await self.end_of_kernel(core)

    async def send(self, core: Core, peer: int, tokens: range, round: int) -> None:
        """Store a batch of tokens, each block with its flag."""
        for token in tokens:
            slot = self.window[peer][core.rank, token, round % self.windows]

            # The credit: has the receiver put the flag back?
            if self.reuse == "reset":
                for name in self.flag_fields:
                    await core.wait_until(slot.field(name), equals(EMPTY))

            # Move, embed the flag, store: token and flag are one put
            flags = dict.fromkeys(self.flag_fields, self.raised(round))
            payload = core.payload(peer, token, round, **flags)
            await core.put(slot, payload, at=f"{KERNEL}:460")

    async def read(self, core: Core, source: int, token: int, round: int) -> Any:
        """Check the flags of a block, then read its payload with a second load."""
        slot = self.window[core.rank][source, token, round % self.windows]
        for name in self.flag_fields:
            flag = slot.field(name)
            await core.wait_until(flag, equals(self.raised(round)), at=f"{KERNEL}:923")

        if self.reset == "before":
            await self.put_back(core, source, token, round)

        # Token-Reordering: a second load reads the payload
        return await core.load(slot.field(*self.payload_fields), at=f"{KERNEL}:966")

    async def give_back(self, core: Core, source: int, token: int, round: int) -> None:
        """Reset the flags of a block whose payload is read."""
        if self.reset == "after":
            await self.put_back(core, source, token, round)

    async def put_back(self, core: Core, source: int, token: int, round: int) -> None:
        """Reset the flags of a block."""
        slot = self.window[core.rank][source, token, round % self.windows]
        await core.put(slot, dict.fromkeys(self.flag_fields, EMPTY), at=f"{KERNEL}:1015")

    def raised(self, round: int) -> int:
        """The value of a flag whose token is there."""
        return round + 1 if self.flag == "epoch" else ARRIVED
