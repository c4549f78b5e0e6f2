"""Protocols with one planted fault each, named for what a check must say about them."""

from __future__ import annotations

import itertools
import sys
from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import CORE, RANK, Region
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


class Wide(Protocol):
    """Cores that have nothing to do with each other: too many interleavings for a small budget."""

    cores: int = parameter(8, "cores of each rank")

    def memory(self) -> None:
        self.scratch = Region(index=(CORE,), block=32, on_chip=True)

    @role(instances="cores")
    async def core(self, core: Core) -> None:
        for value in range(8):
            await core.put(self.scratch[core.rank][core.index], value)


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


class Exits(Flags):
    """A role that would end the program, as if all were well."""

    @role
    async def rank(self, core: Core) -> None:
        await core.quiet()
        sys.exit(0)


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
