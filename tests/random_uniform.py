"""Random protocols whose ranks all do the same with each peer, most of them wrong somewhere."""

from __future__ import annotations

from random import Random
from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, role

Plan = tuple[Any, ...]


class Uniform(Protocol):
    """Two roles that follow plans: loops through the peers, and what is done on the own rank."""

    plans: tuple[Plan, Plan] = ((), ())

    def memory(self) -> None:
        self.data = Region(index=(RANK,), initial=0)
        self.flag = Region(index=(RANK, 2), block=32, fields={"flag": 32}, initial=0)
        self.own = Region(index=(), block=32, fields={"flag": 32}, initial=0)

    @role
    async def one(self, core: Core) -> None:
        await self.follow(core, self.plans[0])

    @role
    async def other(self, core: Core) -> None:
        await self.follow(core, self.plans[1])

    async def follow(self, core: Core, plan: Plan) -> None:
        """Do what a plan says."""
        for step in plan:
            if step[0] == "loop":
                told = core.per_rank()
                for peer in core.destinations():
                    told[peer] = 0
                    for inner in step[1]:
                        told[peer] = await self.with_peer(core, peer, inner)
            elif step[0] == "loops":
                told = core.per_rank()
                for peer in core.sources():
                    told[peer] = await core.load(self.flag[core.rank][peer, 0])
                for peer in core.sources():
                    if told[peer] == step[1]:
                        await core.put(self.flag[peer][core.rank, 1], 2)
            elif step[0] == "own put":
                await core.put(self.own[core.rank], step[1])
            elif step[0] == "own wait":
                await core.wait_until(self.own[core.rank], _at_least(step[1]))
            elif step[0] == "sync":
                await core.sync("rank")
        await core.quiet()

    async def with_peer(self, core: Core, peer: int, step: Any) -> int:
        """A step of a plan that is about a peer."""
        if step[0] == "send":
            await core.put(self.data[peer][core.rank], core.payload(peer, 0, 0))
        elif step[0] == "raise":
            await core.put(self.flag[peer][core.rank, step[1]], step[2])
        elif step[0] == "await":
            await core.wait_until(self.flag[core.rank][peer, step[1]], _at_least(step[2]))
        elif step[0] == "take":
            core.consume(await core.load(self.data[core.rank][peer]), peer, 0, 0)
        elif step[0] == "quiet":
            await core.quiet()
        elif step[0] == "fence":
            await core.fence(peer)
        elif step[0] == "own add":
            await core.fetch_add(self.own[core.rank], 1)
        return int(step[-1]) if isinstance(step[-1], int) else 0


def _at_least(value: int) -> Any:
    return lambda found: found >= value


def random_uniform(random: Random) -> type[Uniform]:
    """A protocol; half of them begin from one that is right."""
    if random.random() < 0.5:
        plans = [_sending(random), _receiving(random)]
        if random.random() < 0.3:
            plans[random.randrange(2)] += (_step(random),)
    else:
        plans = [tuple(_step(random) for _ in range(random.randint(1, 3))) for _ in range(2)]
    return type("Random", (Uniform,), {"plans": tuple(plans)})


def _sending(random: Random) -> Plan:
    order: list[Any] = [("send",), ("quiet",), ("raise", 0, 1)]
    if random.random() < 0.3:
        order.remove(random.choice(order))
    if random.random() < 0.3:
        order.insert(random.randrange(len(order) + 1), _inner(random))
    if random.random() < 0.3:
        return (("loop", tuple(order[:1])), ("loop", tuple(order[1:])))
    return (("loop", tuple(order)),)


def _receiving(random: Random) -> Plan:
    order: list[Any] = [("await", 0, 1), ("take",)]
    if random.random() < 0.3:
        order.insert(random.randrange(len(order) + 1), _inner(random))
    return (("loop", tuple(order)),)


def _inner(random: Random) -> Any:
    return random.choice(
        (
            ("raise", random.randrange(2), random.randint(1, 2)),
            ("await", random.randrange(2), random.randint(1, 2)),
            ("quiet",),
            ("fence",),
            ("own add",),
        )
    )


def _step(random: Random) -> Any:
    kind = random.choice(("loop", "loop", "loops", "own put", "own wait", "sync"))
    if kind == "loop":
        return (kind, tuple(_inner(random) for _ in range(random.randint(1, 2))))
    return (kind, random.randint(1, 2))
