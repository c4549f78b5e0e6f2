"""Bulk-synchronous dispatch, the baseline of UBEP (section 2.3): phases with SyncAll between."""

from __future__ import annotations

from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.memory import RANK, TOKEN, Region
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.values import any_of
from syncproof.protocols.output import Output, offsets_of

KERNEL = "moe_distribute_dispatch.h"

WORKSPACE = {"zeroed": (0,), "garbage": (0, 1)}
"""What a slot of the software SyncAll may hold when the kernel starts."""


class BulkSynchronous(Protocol):
    """The MoE dispatch of CANN EP: every core takes part in every phase.

    Send the tokens, SyncAll, send {flag, count} to every rank, verify the flags of a share of the
    sources, SyncAll, sum up all counts, copy the tokens to their offsets. SyncAll joins the cores
    of one rank only; ranks are joined by the flags. A flag turns each time that its half of the
    status area is used, so it is never reset. The work is shared out so that already at two ranks
    the core that sends a flag is not the one that sent the tokens, nor is the one that copies a
    token the one that verified its source.

    ``syncall=software`` counts in the rank's workspace, as where there is no hardware flag: each
    core adds to its own slot and polls until the sum shows that all have. Slots are never reset,
    so the workspace has to be zero at first: ``initial`` is what it holds.

    Source: hicann/ops-transformer c29bc106, mc2; SyncAll: asc-devkit.
    """

    name = "bsp"
    cores: int = parameter(2, "cores of each rank, at least 2")
    windows: int = parameter(2, "halves of the window and of the status area, used in turn")
    syncall: str = parameter("ideal", "how SyncAll works", ("ideal", "software"))
    first_barrier: bool = parameter(True, "a SyncAll between the tokens and the flags")
    second_barrier: bool = parameter(True, "a SyncAll between the flags and the offsets")
    initial: str = parameter("zeroed", "the workspace of SyncAll", ("zeroed", "garbage"))

    def memory(self) -> None:
        if self.cores < 2:
            raise UserError(
                f"bsp with {self.cores} core", where="--set cores", expected="at least 2"
            )
        half = self.windows
        self.window = Region(index=(RANK, TOKEN, half), fields={"payload": 512}, compared=())
        self.status = Region(
            index=(RANK, half),
            block=32,
            fields={"flag": 4, "count": 4, "unused": 24},
            compared=("flag", "count"),
        )
        if self.syncall == "software":
            found = any_of(*WORKSPACE[self.initial])
            self.workspace = Region(index=(self.cores,), block=32, initial=found)
        self.output = self.include(Output)

    @role(instances="cores")
    async def aiv(self, core: Core) -> None:
        met = await self.met_so_far(core)
        for round in core.rounds():
            # Phase 2, token sending, and nothing goes on before the stores have landed
            await self.send_tokens(core, round)
            await core.quiet(at=f"{KERNEL}:593")

            # Phase 3, completion signals, when the tokens of all cores are there
            if self.first_barrier:
                met = await self.sync_all(core, met, at=f"{KERNEL}:594")
            await self.send_flags(core, round)

            # Phase 4, flag verification, each core a share of the sources
            await self.verify_flags(core, round)
            if self.second_barrier:
                met = await self.sync_all(core, met, at=f"{KERNEL}:706")

            # Phase 5, offset calculation and reordering
            await self.reorder(core, round)
            await core.kernel_end()

            # The next kernel
            await self.output.read(core, core.index, core.count, round)

    async def send_tokens(self, core: Core, round: int) -> None:
        """Token t is owned by core t mod cores, and goes straight into the peer's window."""
        for peer in core.destinations():
            for token in core.tokens_to(peer, round):
                if token % core.count == core.index:
                    slot = self.window[peer][core.rank, token, round % self.windows]
                    payload = core.payload(peer, token, round)
                    await core.put(slot, payload, at=f"{KERNEL}:539")

    async def send_flags(self, core: Core, round: int) -> None:
        """{flag, count} of each peer in one 32 B store; the last core begins."""
        for i, peer in enumerate(core.destinations()):
            if i % core.count == core.count - 1 - core.index:
                slot = self.status[peer][core.rank, round % self.windows].field("flag", "count")
                told = {"flag": self.flag(round), "count": len(core.tokens_to(peer, round))}
                await core.put(slot, told, at=f"{KERNEL}:613")

    async def verify_flags(self, core: Core, round: int) -> None:
        """Poll the flags of every cores-th source."""
        expected = self.flag(round)
        for i, source in enumerate(core.sources()):
            if i % core.count == core.index:
                slot = self.status[core.rank][source, round % self.windows]
                await core.wait_until(
                    slot.field("flag"), lambda flag: flag == expected, at=f"{KERNEL}:696"
                )

    def flag(self, round: int) -> int:
        """1 when a half is used for the first time, then 0, then 1 again."""
        return 1 if round % (2 * self.windows) < self.windows else 0

    async def reorder(self, core: Core, round: int) -> None:
        """Read all counts, sum them up, and copy a share of the tokens to where they belong."""
        counts = {}
        for source in core.sources():
            slot = self.status[core.rank][source, round % self.windows]
            counts[source] = await core.load(slot.field("count"), at=f"{KERNEL}:714")
            expected = len(core.tokens_from(source, round))
            core.check(counts[source] == expected, "the count read is not this round's")
        offsets = offsets_of(counts)
        for source in core.sources():
            for token in range(counts[source]):
                position = offsets[source] + token
                if position % core.count == core.count - 1 - core.index:
                    slot = self.window[core.rank][source, token, round % self.windows]
                    data = await core.load(slot, at=f"{KERNEL}:822")
                    await self.output.place(core, position, data, round, at=f"{KERNEL}:833")

    async def met_so_far(self, core: Core) -> int:
        """How often this core has gone through a software SyncAll, as its own slot says."""
        if self.syncall == "ideal":
            return 0
        met: int = await core.load(self.workspace[core.rank][core.index])
        core.check(met in WORKSPACE[self.initial], "another core writes to this one's slot")
        return met

    async def sync_all(self, core: Core, met: int, at: str) -> int:
        """Nobody goes on before all cores of the rank are here; how often they have met now."""
        if self.syncall == "ideal":
            await core.sync("rank", at=at)
            return met
        number, slots = met + 1, self.workspace[core.rank]
        # The sum takes in the core's own slot: when it is reached, this store has landed too
        await core.put(slots[core.index], number)

        async def everybody_is_here() -> bool | None:
            total = 0
            for each in range(core.count):
                total += await core.load(slots[each])
            return total >= core.count * number or None

        await core.poll_until(everybody_is_here)
        return number
