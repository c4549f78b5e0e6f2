"""Reusable barriers between ranks, as communication libraries write them (``--set scheme=``).

Seven ways to say "I am here" and what makes each reusable:

F1 ``reset``, ``reset_two_slots``: a constant flag that its reader clears (HCCL AIV BarrierAll; old
   vLLM all-reduce; pplx-kernels). One slot is a reset race.
F2 ``at_least``: an epoch, waited for with >= (NCCL LSA and GIN barriers, NVSHMEM, mscclpp).
F3 ``equal``: an epoch in one slot, waited for with == (DeepEP low-latency barrier).
   ``equal_or_next``: the same, one epoch ahead let through (Ascend CrossRankSync, shmem barrier).
F4 ``two_slots``: an epoch with == in two slots in turn (vLLM all-reduce).
   ``two_words``: +1 twice, then -1 twice, on two shared words (DeepEP v2, DeepGEMM nvlink_barrier).
F5 ``sense``: one slot holds the parity of the epoch (Ascend CrossRankSyncV2, back to back).
   ``sense_two_slots``: the same in two slots in turn.
F6 ``sentinel``: whatever is not the sentinel, in three slots, the last one filled again in between
   (flashinfer and TensorRT-LLM Lamport all-reduce). ``sentinel_two_slots``: with two.
F7 ``credit``: +T to oneself and -T to all others, until nothing is positive (DeepEP barrier_block).
   ``sign_flip``: one word whose top bit turns when all have added (cooperative groups grid sync).
   ``put_wait``: compare-and-swap 0 to 1 at the peer, 1 to 0 at home (PyTorch symmetric memory).
   ``count``: +1 to all, == N, then -N at home (ThunderKittens barrier_all).
   ``count_at_least``: the same with >= (the repair in PyTorch issue 192861).

``reset``, ``equal``, ``sense`` and ``count`` hang: a rank that is let out may enter the next
barrier and overwrite what a slower one still has to see. The others hold, also where puts and adds
overtake each other.
"""

from __future__ import annotations

from syncproof.models.core import Core
from syncproof.models.memory import RANK, Ghost, Region, Slot
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.values import SENTINEL, Mark

SCHEMES = (
    "at_least",
    "reset",
    "reset_two_slots",
    "equal",
    "equal_or_next",
    "two_slots",
    "two_words",
    "sense",
    "sense_two_slots",
    "sentinel",
    "sentinel_two_slots",
    "credit",
    "sign_flip",
    "put_wait",
    "count",
    "count_at_least",
)
SELF_CLEANING = ("reset", "reset_two_slots", "credit", "put_wait", "count", "count_at_least")
SETTLED = ("reset", "reset_two_slots", "sentinel", "sign_flip", "put_wait")
"""Schemes whose last step in each barrier completes all of the rank's stores."""

SLOTS = {
    "reset_two_slots": 2,
    "two_slots": 2,
    "sense_two_slots": 2,
    "sentinel": 3,
    "sentinel_two_slots": 2,
}
DATA = Mark("DATA")
CREDIT = 1024


class Barrier(Protocol):
    """Every rank meets every other, again and again: nobody leaves before all have entered."""

    name = "barrier"
    scheme: str = parameter("at_least", "how a rank says that it is here", SCHEMES)

    def memory(self) -> None:
        clean = self.scheme in SELF_CLEANING
        initial = SENTINEL if self.scheme.startswith("sentinel") else 0
        slots = SLOTS.get(self.scheme, 1)
        # One 32 B slot for each peer and turn; one word for counts, two in turn.
        self.slot = Region(index=(RANK, slots), block=32, initial=initial, clean=clean)
        self.word = Region(index=(2,), block=32, clean=clean)
        self.shared = Region(owner=0, block=32)
        # How many barriers each rank has entered: it does so with its first step of each.
        self.entered = Ghost(0)

    @role
    async def rank(self, core: Core) -> None:
        for round in core.rounds():
            match self.scheme:
                case "reset" | "reset_two_slots":
                    await self.by_reset(core, round)
                case "at_least" | "equal" | "equal_or_next" | "two_slots":
                    await self.by_epoch(core, round)
                case "sense" | "sense_two_slots":
                    await self.by_sense(core, round)
                case "sentinel" | "sentinel_two_slots":
                    await self.by_sentinel(core, round)
                case "two_words":
                    await self.by_two_words(core, round)
                case "credit":
                    await self.by_credit(core, round)
                case "sign_flip":
                    await self.by_sign_flip(core, round)
                case "put_wait":
                    await self.by_put_wait(core, round)
                case "count" | "count_at_least":
                    await self.by_count(core, round)
            self._leave(core, round)
        if self.scheme not in SETTLED:
            # A kernel does not end with stores on their way.
            await core.quiet()

    async def by_epoch(self, core: Core, round: int) -> None:
        """F2, F3, F4: store the epoch at every peer, wait until each peer's is here."""
        epoch, turn = round + 1, round % self._slots
        for peer in core.destinations():
            await core.put(self.slot[peer][core.rank, turn], epoch)
            self._enter(core, round)
        for peer in core.sources():
            mine = self.slot[core.rank][peer, turn]
            if self.scheme == "at_least":
                await core.wait_until(mine, lambda seen: seen >= epoch)
            elif self.scheme == "equal_or_next":
                await core.wait_until(mine, lambda seen: seen in (epoch, epoch + 1))
            else:
                await core.wait_until(mine, lambda seen: seen == epoch)

    async def by_reset(self, core: Core, round: int) -> None:
        """F1: a constant flag, cleared by the one who waited for it."""
        turn = round % self._slots
        for peer in core.destinations():
            await core.put(self.slot[peer][core.rank, turn], 1)
            self._enter(core, round)
        for peer in core.sources():
            mine = self.slot[core.rank][peer, turn]
            await core.wait_until(mine, lambda flag: flag == 1)
            await core.put(mine, 0)
        # The cleared flags are in memory before anybody is told that this rank is here again.
        await core.quiet()

    async def by_sense(self, core: Core, round: int) -> None:
        """F5: the slot holds one bit, which turns each time that the slot is used."""
        slots = self._slots
        turn, bit = round % slots, 1 if round % (2 * slots) < slots else 0
        for peer in core.destinations():
            await core.put(self.slot[peer][core.rank, turn], bit)
            self._enter(core, round)
        for peer in core.sources():
            await core.wait_until(self.slot[core.rank][peer, turn], lambda flag: flag == bit)

    async def by_sentinel(self, core: Core, round: int) -> None:
        """F6: data that is never the sentinel; the slots of the last round are filled again.

        With three slots any time before the next round will do; with two it is the next round's
        slot, so it must be filled before this rank lets anybody go there.
        """
        slots = self._slots
        turn, last = round % slots, (round - 1) % slots
        if slots == 2:
            await self.refill(core, last)
        for peer in core.destinations():
            await core.put(self.slot[peer][core.rank, turn], DATA)
            self._enter(core, round)
        if slots == 3:
            await self.refill(core, last)
        for peer in core.sources():
            await core.wait_until(self.slot[core.rank][peer, turn], lambda data: data != SENTINEL)

    async def refill(self, core: Core, last: int) -> None:
        """Put the sentinel back into the slots of the last round, and have it there."""
        for peer in core.sources():
            await core.put(self.slot[core.rank][peer, last], SENTINEL)
        await core.quiet()

    async def by_two_words(self, core: Core, round: int) -> None:
        """F4: a word that goes from 0 to N and back, in turn with a second one."""
        turn, down = round % 2, round % 4 >= 2
        goal = 0 if down else core.ranks
        for peer in (core.rank, *core.destinations()):
            await core.add(self.word[peer][turn], -1 if down else 1)
            self._enter(core, round)
        await core.wait_until(self.word[core.rank][turn], lambda word: word == goal)

    async def by_credit(self, core: Core, round: int) -> None:
        """F7: +T for each peer at home, -T from each peer, until none of them is positive."""
        for peer in core.destinations():
            await core.fetch_add(self.slot[core.rank][peer, 0], CREDIT)
            self._enter(core, round)
        for peer in core.destinations():
            await core.add(self.slot[peer][core.rank, 0], -CREDIT)
        for peer in core.sources():
            await core.wait_until(self.slot[core.rank][peer, 0], lambda credit: credit <= 0)

    async def by_sign_flip(self, core: Core, round: int) -> None:
        """F7: the first adds 2^31 - (N - 1), the others 1; together they turn the top bit.

        Here the word is only as wide as it takes to count the ranks below its top bit.
        """
        top_bit = 1 << core.ranks.bit_length()
        amount = top_bit - (core.ranks - 1) if core.rank == 0 else 1
        word = self.shared[0]
        side = top_bit & await core.atomic(word, lambda old: (old + amount) % (2 * top_bit))
        self._enter(core, round)
        await core.wait_until(word, lambda now: now & top_bit != side)

    async def by_put_wait(self, core: Core, round: int) -> None:
        """F7: put a credit where there is none, then take one from each peer."""
        for peer in core.destinations():
            theirs = self.slot[peer][core.rank, 0]
            await core.wait_until(theirs, lambda flag: flag == 0, update=lambda flag: 1)
            self._enter(core, round)
        for peer in core.sources():
            mine = self.slot[core.rank][peer, 0]
            await core.wait_until(mine, lambda flag: flag == 1, update=lambda flag: 0)

    async def by_count(self, core: Core, round: int) -> None:
        """F7: +1 at everybody, wait for N at home, take the N away."""
        everybody = core.ranks
        for peer in (core.rank, *core.destinations()):
            await core.add(self.word[peer][0], 1)
            self._enter(core, round)
        mine: Slot = self.word[core.rank][0]
        if self.scheme == "count":
            await core.wait_until(mine, lambda count: count == everybody)
        else:
            await core.wait_until(mine, lambda count: count >= everybody)
        await core.fetch_add(mine, -everybody)

    @property
    def _slots(self) -> int:
        return SLOTS.get(self.scheme, 1)

    def _enter(self, core: Core, round: int) -> None:
        core.ghost_update(self.entered, max, round + 1, key=core.rank)

    def _leave(self, core: Core, round: int) -> None:
        for peer in core.destinations():
            core.ghost_check(
                self.entered,
                _at_least,
                round + 1,
                key=peer,
                message=f"rank {core.rank} leaves a barrier before rank {peer} has entered",
            )


def _at_least(entered: int, needed: int) -> bool:
    return entered >= needed
