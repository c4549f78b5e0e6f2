"""Protocols with one planted fault each, named for what a check must say about them."""

from __future__ import annotations

import itertools
from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, parameter, role

counter = itertools.count()


class Flags(Protocol):
    """A flag on every rank."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=32)


class Hangs(Flags):
    """Two ranks wait for each other before they signal."""

    @role
    async def rank(self, core: Core) -> None:
        other = 1 - core.rank
        await core.wait_until(self.flag[core.rank][other], lambda seen: seen == 1, at="hang.cu:7")
        await core.put(self.flag[other][core.rank], 1)
        await core.quiet()


class Vacuous(Flags):
    """No run comes to the place that some run must come to."""

    @role
    async def rank(self, core: Core) -> None:
        seen = await core.load(self.flag[core.rank][0])
        if seen == 7:
            core.reach("seven")


class Wide(Flags):
    """Puts that nothing orders: too many interleavings for any small budget."""

    puts: int = parameter(12, "puts of each rank")

    def memory(self) -> None:
        self.flag = Region(index=(self.puts,), block=32)

    @role
    async def rank(self, core: Core) -> None:
        for place in range(self.puts):
            await core.put(self.flag[1 - core.rank][place], 1)
        await core.quiet()


class NotDeterministic(Flags):
    """A role that does something else each time it runs."""

    @role
    async def rank(self, core: Core) -> None:
        for _ in range(next(counter) % 3):
            await core.put(self.flag[core.rank][0], 1)
        await core.quiet()


class Outside(Flags):
    """A put to a block that the region does not have."""

    @role
    async def rank(self, core: Core) -> None:
        await core.put(self.flag[core.rank][99], 1)


class Unhashable(Flags):
    """A put of a value that cannot be kept."""

    @role
    async def rank(self, core: Core) -> None:
        await core.put(self.flag[core.rank][0], [1, 2])


class Raises(Flags):
    """A role with an error in it."""

    @role
    async def rank(self, core: Core) -> None:
        await core.put(self.flag[core.rank][0], 1 // (core.rank - core.rank))


class BadMemory(Protocol):
    """Memory that is no memory."""

    def memory(self) -> None:
        wrong: Any = 5
        self.flag = Region(index=wrong)

    @role
    async def rank(self, core: Core) -> None:
        await core.quiet()


class NoRole(Flags):
    """Memory and nothing that uses it."""


class NoProtocol:
    """A class of another kind."""
