"""Random protocols that go on round by round: a small program for each rank, the same each round.

Puts of epochs, constants and tokens, waits, resets, quiets, meetings and choices, over slots
that are used in turn. Most are wrong in some way, which shows after one round or only after three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, parameter, role

Step = tuple[Any, ...]


class Dice:
    """Draws from options by a number that is multiplied on: roles must not reach `random`."""

    def __init__(self, seed: int) -> None:
        self.state = seed * 2654435761 % 2**32 or 1

    def pick(self, options: Any) -> Any:
        for _ in range(3):
            self.state = (self.state * 1103515245 + 12345) % 2**31
        return options[(self.state >> 8) % len(options)]


def program_of(seed: int, rank: int) -> tuple[Step, ...]:
    """The steps of one rank in each round: a handshake, with a few things done to it."""
    shared, dice = Dice(seed), Dice(seed * 7 + rank)
    value = shared.pick(("epoch", "epoch", "one"))
    steps: list[Step] = [
        ("send",),
        ("quiet",),
        ("flag", 0, value, shared.pick((False, False, True))),
        ("await", 0, value, shared.pick((False, True))),
        ("take",),
    ]
    if value == "one":
        steps += [("reset", 0), ("quiet",)]
    end = shared.pick(("nothing", "meet", "acknowledge", "acknowledge"))
    if end == "meet":
        steps += [("quiet",), ("meet",)]
    elif end == "acknowledge":
        steps += [("flag", 1, "epoch", False), ("await", 1, "epoch", shared.pick((False, True)))]
    for _ in range(dice.pick((0, 0, 0, 1, 1, 2))):
        at = dice.pick(range(len(steps)))
        what = dice.pick(("drop", "swap", "insert"))
        if what == "drop":
            del steps[at]
        elif what == "swap" and at:
            steps[at - 1], steps[at] = steps[at], steps[at - 1]
        else:
            kinds = ("flag", "await", "quiet", "reset")
            epoch = dice.pick(("epoch", "one"))
            steps.insert(at, (dice.pick(kinds), dice.pick((0, 1)), epoch, dice.pick((False, True))))
    return tuple(steps)


def _test(expected: Any, at_least: bool) -> Callable[[Any], bool]:
    if at_least:
        return lambda found: bool(found >= expected)
    return lambda found: bool(found == expected)


class RoundByRound(Protocol):
    """A random program, repeated in each round."""

    seed: int = parameter(1, "which program")
    windows: int = parameter(2, "slots used in turn")

    def memory(self) -> None:
        self.flags = Region(index=(RANK, 2, self.windows), block=32)
        self.data = Region(index=(RANK, self.windows), fields={"payload": 512}, compared=())
        self.programs = tuple(program_of(self.seed, rank) for rank in range(self.bounds.ranks))

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            for step in self.programs[core.rank]:
                for peer in core.destinations():
                    await self.do(core, step, peer, round)
        await core.quiet()

    async def do(self, core: Core, step: Step, peer: int, round: int) -> None:
        turn = round % self.windows
        kind = step[0]
        if kind == "quiet":
            await core.quiet()
        elif kind == "meet":
            await core.sync("all")
        elif kind == "send":
            await core.put(self.data[peer][core.rank, turn], core.payload(peer, 0, round))
        elif kind == "take":
            found = await core.load(self.data[core.rank][peer, turn])
            core.consume(found, source=peer, token=0, round=round)
        elif kind == "reset":
            await core.put(self.flags[core.rank][peer, step[1], turn], 0)
        else:
            value = round + 1 if step[2] == "epoch" else 1
            if kind == "flag":
                if step[3] and not core.choose(("flag", core.rank, round), (True, False)):
                    return
                await core.put(self.flags[peer][core.rank, step[1], turn], value)
            else:
                at_least = step[3] and step[2] == "epoch"
                slot = self.flags[core.rank][peer, step[1], turn]
                await core.wait_until(slot, _test(value, at_least))
