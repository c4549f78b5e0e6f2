"""Kernel decomposition (UBEP, section 3.2): no SyncAll; offsets handed on from core to core."""

from __future__ import annotations

from syncproof.models.core import Core
from syncproof.models.memory import RANK, TOKEN, Region
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.protocols.output import Output, offsets_of

KERNEL = "moe_distribute_dispatch_v2_full_mesh.h"
EMPTY, ARRIVED = 0, 1


class PrefixSum(Protocol):
    """CalCumSum: counts from rank to rank, offsets from core to core (a part of others).

    The sources are cut into consecutive slices, one for each count core. A count core takes the
    {flag, count} of its slice, and with several of them each writes the sum of its slice into row
    i of an N x N matrix and reads column j, so that core j knows how many tokens come before its
    slice. Then it writes {offset, count} of each source for each core, with a signal behind it.
    Every flag and signal is constant and emptied by its only reader; the status area has two
    halves, as a rank may be a round ahead; what lies within a rank needs one, as kernels end.
    """

    windows: int = parameter(2, "halves of the status area, used in turn")
    token_cores: int = parameter(1, "cores of each rank that send tokens")
    count_cores: int = parameter(1, "cores of each rank that send counts and sum them up")
    one_put: bool = parameter(True, "flag and count are one 32 B store")
    wait_for_offset: bool = parameter(True, "a core waits for the signal of each offset")
    zero_column: bool = parameter(True, "a count core empties its column when it has read it")

    def memory(self) -> None:
        self.status = Region(
            index=(RANK, self.windows),
            block=32,
            fields={"flag": 4, "count": 4, "unused": 24},
            compared=("flag", "count"),
            clean=True,
        )
        if not self.one_put:
            self.count_area = Region(index=(RANK, self.windows), block=32)
        if self.count_cores > 1:
            self.matrix = Region(
                index=(self.count_cores, self.count_cores),
                block=32,
                fields={"flag": 4, "sum": 4, "unused": 24},
                compared=("flag", "sum"),
                clean=self.zero_column,
            )
        self.offset = Region(
            index=(self.cores, RANK),
            block=32,
            fields={"offset": 4, "count": 4, "unused": 24},
            compared=("offset", "count"),
        )
        self.signal = Region(index=(self.cores, RANK), block=32, clean=self.wait_for_offset)

    @property
    def cores(self) -> int:
        """All cores of a rank: first those that send tokens, then those that count."""
        return int(self.token_cores + self.count_cores)

    def share(self, core: Core, number: int) -> range:
        """The slice of count core ``number`` among the other ranks in ascending order."""
        others, cores = core.ranks - 1, self.count_cores
        return range(others * number // cores, others * (number + 1) // cores)

    async def send_counts(self, core: Core, round: int) -> None:
        """{flag, count} to each peer that falls to this count core, also when the count is zero."""
        for i, peer in enumerate(core.destinations()):
            if i in self.share(core, core.index):
                slot = self.status[peer][core.rank, round % self.windows]
                number = len(core.tokens_to(peer, round))
                if self.one_put:
                    await core.put(slot, {"flag": ARRIVED, "count": number}, at=f"{KERNEL}:726")
                else:
                    area = self.count_area[peer][core.rank, round % self.windows]
                    await core.put(area, number)
                    await core.put(slot, {"flag": ARRIVED})

    async def sum_up(self, core: Core, round: int) -> None:
        """Take the counts of this core's slice and hand each offset on to every core."""
        counts = {}
        for source in self.slice_of(core):
            counts[source] = await self.take_count(core, source, round)
        before = await self.exchange_sums(core, sum(counts.values()))
        first = min(counts, default=0)
        expected = self.tokens_before(core, first, round) if counts else before
        core.check(before == expected, "the sums read are not this round's")
        offsets = offsets_of(counts)
        for number in range(self.cores):
            for source in self.slice_of(core):
                # In the kernel: all prefixes, PipeBarrier<PIPE_MTE3>, then all signals
                await core.put_with_signal(
                    self.offset[core.rank][number, source],
                    {"offset": before + offsets[source], "count": counts[source]},
                    self.signal[core.rank][number, source],
                    ARRIVED,
                    at=f"{KERNEL}:807",
                )

    def tokens_before(self, core: Core, source: int, round: int) -> int:
        """How many tokens come from the ranks before ``source``, as the routing has it."""
        others = (rank for rank in range(source) if rank != core.rank)
        return sum(len(core.tokens_from(each, round)) for each in others)

    def slice_of(self, core: Core) -> list[int]:
        """The sources that fall to this count core."""
        others = [rank for rank in range(core.ranks) if rank != core.rank]
        return [others[i] for i in self.share(core, core.index)]

    async def take_count(self, core: Core, source: int, round: int) -> int:
        """Wait for a count, read it in the same 32 B as its flag, and empty the flag."""
        half = round % self.windows
        slot = self.status[core.rank][source, half]
        found = await core.wait_until(
            slot.field("flag", "count"), lambda block: block.flag == ARRIVED, at=f"{KERNEL}:764"
        )
        await core.put(slot, {"flag": EMPTY, "count": 0}, at=f"{KERNEL}:775")
        count: int = found.count
        if not self.one_put:
            count = await core.load(self.count_area[core.rank][source, half])
        expected = len(core.tokens_from(source, round))
        core.check(count == expected, "the count read is not this round's")
        return count

    async def exchange_sums(self, core: Core, own: int) -> int:
        """How many tokens come before this core's slice: the sums of the cores before it."""
        if self.count_cores == 1:
            return 0
        matrix, me = self.matrix[core.rank], core.index
        for other in range(self.count_cores):
            await core.put(matrix[me, other], {"flag": ARRIVED, "sum": own})
        before = 0
        for other in range(self.count_cores):
            cell = matrix[other, me].field("flag", "sum")
            found = await core.wait_until(cell, lambda block: block.flag == ARRIVED)
            before += found.sum if other < me else 0
            if self.zero_column:
                await core.put(matrix[other, me], {"flag": EMPTY, "sum": 0})
        return before

    async def wait_offset(self, core: Core, number: int, source: int) -> tuple[int, int]:
        """Core ``number`` waits for the offset of a source: (offset, count)."""
        if self.wait_for_offset:
            signal = self.signal[core.rank][number, source]
            await core.wait_until(signal, lambda flag: flag == ARRIVED, at=f"{KERNEL}:872")
            await core.put(signal, EMPTY, at=f"{KERNEL}:879")
        slot = self.offset[core.rank][number, source].field("offset", "count")
        found = await core.load(slot, at=f"{KERNEL}:890")
        return found.offset, found.count


class KernelDecomposition(PrefixSum):
    """A dispatch without SyncAll: some cores send tokens while others exchange and sum up counts.

    Afterwards every core waits for its offsets and copies a share of the tokens. Here a token
    carries the number of its round in its 512 B block and has arrived when that is read; `ubep`
    has the schemes of section 3.4 instead.

    Source: UBEP, section 3.2; hicann/ops-transformer c29bc106, mc2, CalCumSum.
    """

    name = "cumsum"

    def memory(self) -> None:
        super().memory()
        self.window = Region(index=(RANK, TOKEN, self.windows), fields={"flag": 32, "payload": 480})
        self.output = self.include(Output, token_bytes=480)

    @role(instances="token_cores")
    async def token_core(self, core: Core) -> None:
        for round in core.rounds():
            # Token-Sending
            for peer in core.destinations():
                for token in core.tokens_to(peer, round):
                    if token % core.count == core.index:
                        slot = self.window[peer][core.rank, token, round % self.windows]
                        block = {"flag": round + 1, "payload": core.payload(peer, token, round)}
                        await core.put(slot, block, at=f"{KERNEL}:440")

            # Token-Reordering
            await self.reorder(core, core.index, round)

    @role(instances="count_cores")
    async def count_core(self, core: Core) -> None:
        for round in core.rounds():
            # TokenCnt-Sending and CalCumSum
            await self.send_counts(core, round)
            await self.sum_up(core, round)

            # Token-Reordering
            await self.reorder(core, self.token_cores + core.index, round)

    async def reorder(self, core: Core, number: int, round: int) -> None:
        """Copy the tokens that fall to core ``number`` to their offsets as they arrive."""
        epoch = round + 1
        for source in core.sources():
            offset, count = await self.wait_offset(core, number, source)
            expected = self.tokens_before(core, source, round)
            core.check(offset == expected, "the offset read is not this round's")
            for token in range(count):
                if (offset + token) % self.cores == self.cores - 1 - number:
                    slot = self.window[core.rank][source, token, round % self.windows]
                    block = await core.wait_until(
                        slot, lambda block: block.flag == epoch, at=f"{KERNEL}:966"
                    )
                    await self.output.place(
                        core, offset + token, block.payload, round, at=f"{KERNEL}:972"
                    )
        await core.kernel_end()

        # The next kernel
        await self.output.read(core, number, self.cores, round)
