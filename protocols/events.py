"""Events: what one queue raises and another waits for, as a library over atomics and waits.

Memory comes from the functions that give a `Region`, to be assigned in ``Protocol.memory``; what a
role awaits are the others. All but the mailboxes and the triggers are on chip: raised at once, in
order, and asked to end as they began, as a count that is left over meets the next kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from syncproof.models.core import Core
from syncproof.models.memory import Extent, Region, Slot

FLAG_LIMIT = 15
"""A CrossCoreSetFlag counter has four bits (asc-devkit, CrossCoreSetFlag; catlass)."""

FLAG_IDS = 16
"""Flag ids have four bits as well: id 16 is id 0."""


# Ascend: CrossCoreSetFlag and CrossCoreWaitFlag


def cross_core_flags(waiters: int, setters: int = 1, ids: int = 1) -> Region:
    """A counter for each waiting core and flag id: ``flags[rank][waiter, id % 16]``.

    ``setters`` is how many cores have to set a flag before the waiter's counter goes up by one.

    - mode 0, all cores of one kind: ``waiters`` and ``setters`` are all of them;
    - mode 1, the two AIVs of one AI core: two and two;
    - mode 2, an AIC for its AIVs: two waiters, one setter; the AIVs for their AIC: one and two.
    """
    nothing = (0,) * setters
    return Region(index=(waiters, ids), block=8, initial=nothing, on_chip=True, clean=True)


async def cross_core_set(
    core: Core,
    flags: Iterable[Slot],
    setter: int = 0,
    *,
    limit: int = FLAG_LIMIT,
    merges: bool = False,
    at: str = "",
) -> None:
    """Set the flag for every waiter in ``flags``, as number ``setter`` of those who must.

    More than ``limit`` sets that nobody has waited for fail a check (on the chip: an abort). With
    ``merges`` they are lost instead: with ``limit=1`` the binary flag that some take it for. The
    core does not wait for its own stores: a set waits for its pipe, which is a quiet before it.
    """
    for flag in flags:
        old = await core.atomic(
            flag, lambda counts: _one_more(counts, setter, limit if merges else limit + 1), at=at
        )
        core.check(merges or old[setter] < limit, f"a flag counter overflows {limit}")


async def cross_core_wait(core: Core, flag: Slot, *, at: str = "") -> None:
    """Wait until all setters have set the flag, and take one set of each."""
    await core.wait_until(flag, all, update=_one_less_each, at=at)


async def cross_core_set_with_reverse(
    core: Core, flags: Iterable[Slot], reverse: Slot, number: int, *, at: str = ""
) -> None:
    """The ``number``-th set (from 0) by credit: after every 15 wait for the ``reverse`` flag.

    Source: catlass, ``CrossCoreFlagWithReverse<15>``.
    """
    await cross_core_set(core, flags, at=at)
    if number % FLAG_LIMIT == FLAG_LIMIT - 1:
        await cross_core_wait(core, reverse, at=at)


async def cross_core_wait_with_reverse(
    core: Core, flag: Slot, reverse: Slot, number: int, *, at: str = ""
) -> None:
    """The ``number``-th wait (from 0) by credit: after every 15 set the ``reverse`` flag."""
    await cross_core_wait(core, flag, at=at)
    if number % FLAG_LIMIT == FLAG_LIMIT - 1:
        await cross_core_set(core, (reverse,), at=at)


def _one_more(counts: tuple[int, ...], setter: int, most: int) -> tuple[int, ...]:
    return (*counts[:setter], min(counts[setter] + 1, most), *counts[setter + 1 :])


def _one_less_each(counts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(count - 1 for count in counts)


# Ascend: SetFlag and WaitFlag between the pipes of one core


def pipe_flags(*index: Extent) -> Region:
    """One bit for each (source pipe, target pipe, event)."""
    return Region(index=index, block=8, on_chip=True, clean=True)


async def set_flag(core: Core, flag: Slot, *, at: str = "") -> None:
    """Raise the bit; a second set before the wait is undefined and fails a check."""
    old = await core.swap(flag, 1, at=at)
    core.check(old == 0, "SetFlag twice without a WaitFlag in between")


async def wait_flag(core: Core, flag: Slot, *, at: str = "") -> None:
    """Wait for the bit and take it."""
    await core.wait_until(flag, _is_one, update=_zero, at=at)


# Ascend: IBSet and IBWait, a mailbox in global memory


def mailboxes(*index: Extent) -> Region:
    """A 32 B slot for each (event, producing core); it has to be zero at first."""
    return Region(index=index, block=32, clean=True)


async def ib_set(core: Core, mailbox: Slot, *, at: str = "") -> None:
    """Wait until the mailbox is empty, then fill it; a barrier over all pipes on both sides."""
    await core.quiet(at=at)
    await core.wait_until(mailbox, _is_zero, at=at)
    await core.put(mailbox, 1, at=at)
    await core.quiet(at=at)


async def ib_wait(core: Core, mailbox: Slot, *, at: str = "") -> None:
    """Wait until the mailbox is full, then empty it; only one core may wait on a mailbox."""
    await core.quiet(at=at)
    await core.wait_until(mailbox, _is_one, at=at)
    await core.put(mailbox, 0, at=at)
    await core.quiet(at=at)


# CUDA: mbarrier


class Phase(NamedTuple):
    """An mbarrier: the parity of the phase it is in, what is still to arrive, and its bytes."""

    parity: int
    pending: int
    bytes: int

    def after(self, arrivals: int, bytes: int, expected: int) -> Phase:
        """Some arrivals and a change of the bytes to come; the next phase if nothing is left."""
        found = Phase(self.parity, self.pending - arrivals, self.bytes + bytes)
        return found if found.pending or found.bytes else Phase(1 - self.parity, expected, 0)


def mbarriers(*index: Extent, arrivals: int) -> Region:
    """Barriers in shared memory, each of which ``arrivals`` arrivals complete (mbarrier.init).

    They end in whatever phase they are in: the memory is given up with the thread block.
    """
    return Region(index=index, block=8, initial=Phase(0, arrivals, 0), on_chip=True)


async def mbarrier_arrive(
    core: Core, barrier: Slot, arrivals: int, *, expect_bytes: int = 0, at: str = ""
) -> None:
    """Arrive, with ``expect_bytes`` as arrive.expect_tx; ``arrivals`` as in `mbarriers`."""
    old = await core.atomic(barrier, lambda phase: phase.after(1, expect_bytes, arrivals), at=at)
    core.check(old.pending > 0, "more arrivals than the mbarrier expects in a phase")


async def mbarrier_complete(
    core: Core, barrier: Slot, arrivals: int, bytes: int, *, at: str = ""
) -> None:
    """Bytes of an asynchronous copy are there (complete_tx)."""
    await core.atomic(barrier, lambda phase: phase.after(0, -bytes, arrivals), at=at)


async def mbarrier_wait(core: Core, barrier: Slot, parity: int, *, at: str = "") -> None:
    """Wait until the phase of this parity is complete (try_wait.parity in a loop)."""
    await core.wait_until(barrier, lambda phase: phase.parity != parity, at=at)


# Semaphores, and counters that only go up


def semaphores(*index: Extent, units: int) -> Region:
    """Counting semaphores with ``units`` free at first."""
    return Region(index=index, block=8, initial=units, on_chip=True, clean=True)


async def acquire(core: Core, semaphore: Slot, units: int = 1, *, at: str = "") -> None:
    """Wait for free units and take them."""
    await core.wait_until(
        semaphore, lambda free: free >= units, update=lambda free: free - units, at=at
    )


async def release(core: Core, semaphore: Slot, units: int = 1, *, at: str = "") -> None:
    """Give units back."""
    await core.fetch_add(semaphore, units, at=at)


def triggers(*index: Extent) -> Region:
    """Counters in device memory that only go up, such as the events of a tile taskflow."""
    return Region(index=index, block=32)


async def trigger(core: Core, counter: Slot, amount: int = 1, *, at: str = "") -> None:
    """Add to a counter, on any rank, behind nothing: complete the data with a quiet first."""
    await core.add(counter, amount, at=at)


async def wait_for(core: Core, counter: Slot, threshold: int, *, at: str = "") -> None:
    """Wait until a counter has come to ``threshold``."""
    await core.wait_until(counter, lambda count: count >= threshold, at=at)


def _is_zero(value: int) -> bool:
    return value == 0


def _is_one(value: int) -> bool:
    return value == 1


def _zero(_: int) -> int:
    return 0
