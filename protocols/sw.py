"""Stop and wait: each token is followed by a flag, with a quiet between the two."""

from __future__ import annotations

from syncproof.models.core import Core
from syncproof.models.memory import RANK, TOKEN, Region
from syncproof.models.protocol import parameter, role
from syncproof.protocols.counts import EMPTY, DataAsFlag, equals

KERNEL = "moe_distribute_combine_v2.h"


class StopAndWait(DataAsFlag):
    """The sender stops until a token is complete, and only then raises its flag.

    This is what data-as-flag saves: payload, quiet, flag, for each token. The flag is an epoch, a
    number that the slot has not held before, so that nobody has to reset it; the receiver waits
    for exactly that number. On an unordered fabric the quiet is what orders the token before its
    flag; where a pair's puts stay in order (``ordering=per_pair``) it is not needed.

    Source: UBEP, section 3.4 ("explicit memory barriers to enforce visibility ordering between
    payload and flags"); hicann/ops-transformer c29bc106, mc2, combine V2, which has one flag for
    each token too, but of constant value and reset. Its PipeBarrier<PIPE_MTE3> stands where the
    quiet stands here; that it completes puts at another rank is not documented, and
    PTOAS issue 744 says that it does not (``quiet=no``).
    """

    name = "sw"
    quiet: bool = parameter(True, "wait until the token is complete before its flag is put")

    def memory(self) -> None:
        super().memory()
        shape = (RANK, TOKEN, self.windows)
        self.window = Region(index=shape, fields={"payload": 512}, compared=())
        self.flag = Region(index=shape, block=32, fields={"flag": 32}, initial=EMPTY)

    @role
    async def sender(self, core: Core) -> None:
        for round in core.rounds():
            await self.send_counts(core, round)
            for peer in core.destinations():
                for token in self.tokens(core, core.rank, peer, round):
                    place = core.rank, token, round % self.windows

                    # Token-Sending
                    payload = core.payload(peer, token, round)
                    await core.put(self.window[peer][place], payload, at=f"{KERNEL}:936")

                    # Stop until it is complete
                    if self.quiet:
                        await core.quiet(at=f"{KERNEL}:852")

                    # SendFlag
                    await core.put(self.flag[peer][place], self.epoch(round), at=f"{KERNEL}:857")

            await self.end_of_kernel(core)

    @role
    async def receiver(self, core: Core) -> None:
        for round in core.rounds():
            told = await self.receive_counts(core, round)
            for source in core.sources():
                for token in range(told[source]):
                    place = source, token, round % self.windows

                    # Verification
                    flag = self.flag[core.rank][place]
                    await core.wait_until(flag, equals(self.epoch(round)), at=f"{KERNEL}:984")

                    # Token-Reordering: read the token out of the window
                    payload = await core.load(self.window[core.rank][place])
                    core.consume(payload, source, token, round)

            await self.end_of_kernel(core)

    def epoch(self, round: int) -> int:
        """The number that says that a token of this round is there."""
        return round + 1
