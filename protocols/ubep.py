"""UBEP: the dispatch and the combine of each MoE layer, without SyncAll (sections 3.2 and 3.4)."""

from __future__ import annotations

from syncproof.models.core import Core
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.protocols.counts import DataAsFlag
from syncproof.protocols.cumsum import PrefixSum
from syncproof.protocols.dc import DataForChecksum
from syncproof.protocols.output import Output
from syncproof.protocols.sp import SentinelPolling
from syncproof.protocols.tff import TokenFlagFusion

SCHEMES: dict[str, type[DataAsFlag]] = {
    "sp": SentinelPolling,
    "tff": TokenFlagFusion,
    "dc": DataForChecksum,
}


class Ubep(Protocol):
    """Kernel decomposition with data-as-flag, over several layers (a round is a layer).

    Layer l is two calls, dispatch 2l and combine 2l+1, which use the windows in turn; each ends
    with its kernel. *Dispatch*: token cores send while count cores exchange counts and sum them up
    (`cumsum`); then every core takes tokens as they arrive (`sp`, `tff` or `dc`) and copies them
    to their offsets. *Experts*: each token is read from the output; the ends of the kernels that
    compute are left out, as nothing here needs them. *Combine*: each core sends the results of
    some sources back to where the tokens came from, and takes a share of those that are due to its
    own rank; nobody needs a count, as a rank knows what it has sent.

    **Why two windows suffice.** A rank that begins dispatch l+1 has the counts of layer l of all
    ranks, so all have ended layer l-1. It has ended combine l, and so has the results of whatever
    it sent in layer l: a rank to which it sent something has taken it out of the window before, and
    one to which it sent nothing does not look at its part of the window. A rank that begins
    combine l has the counts of layer l, so all have ended combine l-1. No wait joins all ranks
    within a combine. With one window the results meet the tokens of the same layer.

    The schemes have their default parameters, and their assumptions are this protocol's too.

    Source: UBEP; hicann/ops-transformer c29bc106, mc2, dispatch V2 full-mesh and combine V2.
    """

    name = "ubep"
    data: str = parameter("sp", "how a token says that it is there", tuple(SCHEMES))
    windows: int = parameter(2, "windows used in turn by the calls")
    token_cores: int = parameter(1, "cores of each rank that send tokens")
    count_cores: int = parameter(1, "cores of each rank that send counts and sum them up")

    def memory(self) -> None:
        self.counting = self.include(
            PrefixSum, token_cores=self.token_cores, count_cores=self.count_cores
        )
        self.scheme: DataAsFlag = self.include(
            SCHEMES[self.data], windows=self.windows, counts=False, dense_traffic=False
        )
        if self.data == "tff":
            self.output = self.include(Output, token_bytes=480)
        else:
            self.output = self.include(Output, lead_bytes=32)

    @role(instances="token_cores")
    async def token_core(self, core: Core) -> None:
        for layer in core.rounds():
            # Token-Sending
            for i, peer in enumerate(core.destinations()):
                if i % core.count == core.index:
                    await self.scheme.send(core, peer, core.tokens_to(peer, layer), 2 * layer)

            await self.reorder(core, core.index, layer)
            await self.expert(core, core.index, layer)
            await self.combine(core, core.index, layer)

    @role(instances="count_cores")
    async def count_core(self, core: Core) -> None:
        number = self.token_cores + core.index
        for layer in core.rounds():
            # TokenCnt-Sending and CalCumSum
            await self.counting.send_counts(core, layer)
            await self.counting.sum_up(core, layer)

            await self.reorder(core, number, layer)
            await self.expert(core, number, layer)
            await self.combine(core, number, layer)

    async def reorder(self, core: Core, number: int, layer: int) -> None:
        """Token-Reordering: take the tokens that fall to core ``number`` to their offsets."""
        call, cores = 2 * layer, self.counting.cores
        for source in core.sources():
            offset, count = await self.counting.wait_offset(core, number, source)
            expected = self.counting.tokens_before(core, source, layer)
            core.check(offset == expected, "the offset read is not this layer's")
            mine = [t for t in range(count) if (offset + t) % cores == cores - 1 - number]
            if mine:
                await self.scheme.verify(core, source, count, call)
            for token in mine:
                data = await self.scheme.read(core, source, token, call)
                await self.output.place(core, offset + token, data, layer)
                await self.scheme.give_back(core, source, token, call)
        await core.kernel_end()

    async def expert(self, core: Core, number: int, layer: int) -> None:
        """The experts read their tokens: here the dispatch is trusted."""
        call = 2 * layer
        for position, (source, token) in self.output.share(
            core, number, self.counting.cores, layer
        ):
            data = await self.output.take(core, position, layer)
            content = self.scheme.content(core, source, core.rank, token, call)
            core.consume(data, source, token, call, **content)

    async def combine(self, core: Core, number: int, layer: int) -> None:
        """Send results back, and take those that come back to this rank."""
        call, cores = 2 * layer + 1, self.counting.cores
        for i, source in enumerate(core.destinations()):
            if i % cores == number:
                await self.scheme.send(core, source, core.tokens_from(source, layer), call)
        for expert in core.sources():
            due = len(core.tokens_to(expert, layer))
            mine = [t for t in range(due) if t % cores == cores - 1 - number]
            if mine:
                await self.scheme.verify(core, expert, due, call)
            for token in mine:
                data = await self.scheme.read(core, expert, token, call)
                content = self.scheme.content(core, expert, core.rank, token, call)
                core.consume(data, expert, token, call, **content)
                await self.scheme.give_back(core, expert, token, call)
        await core.kernel_end()
