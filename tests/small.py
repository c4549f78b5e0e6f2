"""Small protocols that several tests use, sound and broken, each a few operations long."""

from __future__ import annotations

from syncproof.checkers.explicit.check import Budget, check, question_of
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import RANK, TOKEN, Ghost, Region
from syncproof.models.protocol import Protocol, Setting, parameter, role
from syncproof.models.values import SENTINEL
from syncproof.models.verdict import Answer, Verdict

CM384 = Profile("cm384")


def instance(kind: type[Protocol], profile: Profile = CM384, **bounds: int) -> Instance:
    """An instance with the protocol's default settings."""
    return Instance(kind, Bounds(**{"ranks": 2, "rounds": 1, **bounds}), profile, {})


def with_settings(made: Instance, **settings: Setting) -> Instance:
    """The instance with some settings changed."""
    return Instance(made.kind, made.bounds, made.profile, {**made.settings, **settings})


def verdict(made: Instance, engine: str = "reference", **budget: int) -> Verdict:
    """The verdict of an explicit engine on all properties."""
    return check(made, question_of(made, made.kind.__name__), engine, Budget(**budget))


def answers(found: Verdict) -> dict[str, Answer]:
    """The answer to each property."""
    return {each.property: each.answer for each in found.properties}


class OneRound(Protocol):
    """One-round Sentinel Polling without kernel ends: the system whose state counts are known."""

    def memory(self) -> None:
        self.window = Region(index=(RANK, TOKEN), initial=SENTINEL)

    @role
    async def sender(self, core: Core) -> None:
        for peer in core.destinations():
            for token in core.tokens_to(peer, 0):
                await core.put(self.window[peer][core.rank, token], core.payload(peer, token, 0))

    @role
    async def receiver(self, core: Core) -> None:
        for peer in core.sources():
            for token in core.tokens_from(peer, 0):
                slot = self.window[core.rank][peer, token]
                block = await core.wait_until(slot, lambda block: block.lead != SENTINEL)
                core.consume(block, peer, token, 0)
                await core.put(slot, SENTINEL)


class FlagAfterData(Protocol):
    """Payload, quiet, flag; the reader waits for the flag. Each operation can be left out."""

    quiet: bool = parameter(True, "the flag is put when the payload has landed")
    flag: bool = parameter(True, "the flag is put at all")

    def memory(self) -> None:
        self.data = Region(index=(RANK,), fields={"payload": 512}, compared=())
        self.ready = Region(index=(RANK,), block=8)

    @role
    async def sender(self, core: Core) -> None:
        for peer in core.destinations():
            await core.put(self.data[peer][core.rank], core.payload(peer, 0, 0))
            if self.quiet:
                await core.quiet()
            if self.flag:
                await core.put(self.ready[peer][core.rank], 1)
        await core.quiet()

    @role
    async def receiver(self, core: Core) -> None:
        for peer in core.sources():
            await core.wait_until(self.ready[core.rank][peer], lambda flag: flag == 1)
            core.consume(await core.load(self.data[core.rank][peer]), peer, 0, 0)


def _more(count: int) -> int:
    return count + 1


def _at_least(count: int, least: int) -> bool:
    return count >= least


class Meeting(Protocol):
    """All ranks meet in a sync, and a ghost says that nobody leaves before all have entered."""

    meets: bool = parameter(True, "the ranks meet at all")

    def memory(self) -> None:
        self.entered = Ghost(0)

    @role
    async def member(self, core: Core) -> None:
        await core.fence()
        core.ghost_update(self.entered, _more)
        if self.meets:
            await core.sync("all")
        else:
            await core.fence()
        core.ghost_check(self.entered, _at_least, core.ranks, message="left before all entered")
        core.reach("left")
