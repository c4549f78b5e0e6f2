"""What the data-as-flag protocols share: windows, the exchange of counts, the end of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import RANK, Region
from syncproof.models.per_rank import PerRank
from syncproof.models.protocol import Protocol, assumption, parameter

EMPTY, ARRIVED = 0, 1
KERNEL = "moe_distribute_dispatch_v2_full_mesh.h"

HALVES = 2
"""Halves of the state area used in turn; two suffice because no rank is two rounds ahead."""


def equals(expected: int) -> Callable[[Any], bool]:
    """The condition of a wait for exactly this value; a torn one is not it."""
    return lambda found: bool(found == expected)


class DataAsFlag(Protocol):
    """Tokens go into windows used in turn; the token's own bytes or a flag say that it is there.

    **Counts.** In each round every rank puts {flag, count} into a 32 B slot of every other rank,
    also when the count is zero, and every rank waits for the slots of all others before it takes
    tokens. The sender puts the counts, before the tokens, so that no fabric that keeps puts in
    order lets a count vouch for tokens; the receiver waits for them and empties each slot. In the
    kernel that this follows (CANN's dispatch V2 full-mesh, ``CalAndSendCnt`` and
    ``WaitTokenNumAndCopy``) one core does both and hands the counts on to the others; that relay
    is the protocol ``cumsum`` and adds no edge between ranks.

    **Why the skew is one.** A rank in round k+2 has ended its kernel k+1, so its receiver had the
    counts of round k+1 of *all* ranks. A rank puts these only after its kernel k has ended, which
    needs its sender and its receiver and a quiet of both. So every rank has read and reset what
    round k left in window k mod 2, and the resets have landed, before anything of round k+2 is
    put into it. Both halves are needed: a rank may be a round ahead, never two. The argument
    uses a message from every rank to every rank in every round, also between ranks that exchange
    no token: without it a rank that receives nothing waits for nobody.

    **Without counts** the receiver knows the routing beforehand, and the same argument holds with
    tokens in the place of counts if every rank sends every other one at least one token in every
    round: the assumption ``dense_traffic``. While it holds, ``--routing all`` ranges over the
    routings without an empty pair, and any other routing with one is an error. Dropped, rounds
    and pairs without tokens are allowed.

    Source: UBEP, sections 3.2 and 3.4; hicann/ops-transformer c29bc106, mc2.
    """

    windows: int = parameter(2, "receive windows used in turn")
    counts: bool = parameter(True, "every rank tells every rank how many tokens come, each round")
    dense_traffic: bool = assumption(
        "every rank sends at least one token to every other rank in every round"
    )

    def memory(self) -> None:
        if self.counts:
            self.status = Region(
                index=(RANK, HALVES),
                block=32,
                fields={"flag": 4, "count": 4, "unused": 24},
                initial=EMPTY,
                compared=("flag", "count"),
                clean=True,
            )

    def assumptions(self) -> dict[str, str]:
        """What is assumed here; with counts the traffic may be as sparse as it likes."""
        found = super().assumptions()
        if self.counts:
            found.pop("dense_traffic", None)
        return found

    def tokens(self, core: Core, source: int, destination: int, round: int) -> range:
        """The tokens that the routing sends from ``source`` to ``destination`` in ``round``."""
        dense = self.dense_traffic and not self.counts
        return range(self.bounds.sent(source, destination, round, core.choose, dense))

    async def send_counts(self, core: Core, round: int) -> None:
        """Tell every other rank how many tokens come from here in this round."""
        if self.counts:
            for peer in core.destinations():
                number = len(self.tokens(core, core.rank, peer, round))
                slot = self.status[peer][core.rank, round % HALVES]
                await core.put(slot, {"flag": ARRIVED, "count": number}, at=f"{KERNEL}:726")

    async def receive_counts(self, core: Core, round: int) -> PerRank:
        """Wait until every other rank has told; the number of tokens of each."""
        told = core.per_rank()
        if not self.counts:
            for source in core.sources():
                told[source] = len(self.tokens(core, source, core.rank, round))
            return told
        for source in core.sources():
            slot = self.status[core.rank][source, round % HALVES]
            counted = await core.wait_until(
                slot.field("flag", "count"), lambda block: block.flag == ARRIVED, at=f"{KERNEL}:764"
            )
            told[source] = counted.count
        for source in core.sources():
            slot = self.status[core.rank][source, round % HALVES]
            await core.put(slot, {"flag": EMPTY, "count": 0}, at=f"{KERNEL}:775")
        return told

    # What a scheme does for tokens; the roles of each, and `ubep`, are made of these

    async def send(self, core: Core, peer: int, tokens: range, round: int) -> None:
        """Store a batch of tokens in the peer's window."""
        raise NotImplementedError

    async def verify(self, core: Core, source: int, tokens: int, round: int) -> None:
        """Wait for what says that a whole batch is there; most schemes have nothing of the kind."""

    async def read(self, core: Core, source: int, token: int, round: int) -> Any:
        """Wait for a token, and give what was read of it."""
        raise NotImplementedError

    async def give_back(self, core: Core, source: int, token: int, round: int) -> None:
        """Make a token's place ready for the next one; some schemes need not."""

    def content(self, core: Core, source: int, destination: int, token: int, round: int) -> Any:
        """The fields of a token that hold something special, and what."""
        return {}

    async def end_of_kernel(self, core: Core) -> None:
        """All puts of this process have landed and all processes of its rank are here.

        Of the quiets the receiver's is needed, for its resets; what the sender has put has been
        waited for by the receivers. A stream completes the stores of all cores in any case.
        """
        await core.kernel_end()
