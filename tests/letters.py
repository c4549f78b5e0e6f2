"""Random protocols that pass letters: data, something that orders it, a flag, perhaps an answer.

Pieces are left out or swapped at random, so that some have one run, many have several and some
are wrong. Of protocols drawn without such a plan hardly any has a single run.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from syncproof.checkers.explicit.search import (
    Budget,
    Meter,
    explore,
    hung_states,
    judge_races,
)
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.system import System
from syncproof.models.transitions import PROPERTIES

MOST_STATES = 2_000


def has_one_clean_outcome(system: System) -> bool | None:
    """Whether every run of the full graph ends in one state with nothing wrong anywhere.

    None if the graph is too large to say.
    """
    meter = Meter(Budget(states=MOST_STATES))
    try:
        found = explore(system, None, frozenset(PROPERTIES), meter)
    except UserError:
        return False
    if found.stopped.startswith("--budget"):
        return None
    clean = not (found.stopped or found.findings or hung_states(found) or judge_races(found))
    return clean and len(found.good) == 1


@dataclass(frozen=True)
class Act:
    """One operation: ``verb`` on word ``word`` of ``rank``'s memory, with a value."""

    verb: str
    rank: int = 0
    word: int = 0
    value: int = 0
    queue: int = 0


@dataclass(frozen=True)
class Letters:
    """A system as data: the profile and what each process does."""

    profile: Profile
    programs: tuple[tuple[Act, ...], ...]


class LetterProtocol(Protocol):
    """The protocol of some letters (a class attribute of the subclass made by `instance_of`)."""

    letters: Letters

    def memory(self) -> None:
        self.word = Region(index=(9,), block=8)
        self.wide = Region(index=(3,), block=32, fields={"lead": 8, "rest": 24})

    @role
    async def worker(self, core: Core) -> None:
        for act in self.letters.programs[core.rank]:
            await perform(self, core, act)


async def perform(protocol: LetterProtocol, core: Core, act: Act) -> None:
    """One operation of a letter's program."""
    value, slot = act.value, protocol.word[act.rank][act.word]
    if act.verb == "put":
        await core.put(slot, value, queue=act.queue)
    elif act.verb == "signal":
        flag = protocol.word[act.rank][act.word + 1]
        await core.put_with_signal(slot, value, flag, value, queue=act.queue)
    elif act.verb == "wide":
        await core.put(protocol.wide[act.rank][act.word % 3], value, queue=act.queue)
    elif act.verb == "wait equal":
        await core.wait_until(slot, lambda found: found == value)
    elif act.verb == "wait least":
        await core.wait_until(slot, lambda found: found >= value)
    elif act.verb == "wait wide":
        await core.wait_until(
            protocol.wide[act.rank][act.word % 3], lambda block: block.lead >= value
        )
    elif act.verb == "load":
        core.check(await core.load(slot) == value, f"word {act.word} is not {value}")
    elif act.verb == "get":
        core.check(await core.get(slot) == value, f"word {act.word} is not {value}")
    elif act.verb == "fence":
        await core.fence(act.rank if value else None)
    elif act.verb == "quiet":
        await core.quiet()
    else:
        await core.sync("all")


def draw(seed: int) -> Letters:
    """The letters that a seed stands for: two or three ranks, one to four letters."""
    pick = random.Random(seed)
    ranks = pick.choice((2, 2, 3))
    programs: list[list[Act]] = [[] for _ in range(ranks)]
    for number in range(1, pick.choice((2, 3, 3, 4, 5))):
        source, target = pick.sample(range(ranks), 2)
        _add_letter(pick, programs, source, target, number)
    for program in programs:
        if pick.random() < 0.9:
            program.append(Act("quiet"))
        if pick.random() < 0.15 and len(program) > 1:
            i, j = pick.sample(range(len(program)), 2)
            program[i], program[j] = program[j], program[i]
    return Letters(_profile(pick), tuple(map(tuple, programs)))


def _add_letter(
    pick: random.Random, programs: list[list[Act]], source: int, target: int, number: int
) -> None:
    data, queue = pick.choice((0, 0, 3)), pick.choice((0, 0, 0, 1))
    wait = pick.choice(("wait equal", "wait least", "wait least"))
    style = pick.choice(("flag", "flag", "signal", "wide", "sync"))
    send, receive = programs[source], programs[target]
    if style == "wide":
        send.append(Act("wide", target, data, number, queue))
        receive.append(Act("wait wide", target, data, number))
    elif style == "signal":
        send.append(Act("signal", target, data, number, queue))
        receive.append(Act(wait, target, data + 1, number))
    elif style == "sync":
        send.append(Act("put", target, data, number, queue))
        send += [Act("quiet")] if pick.random() < 0.8 else []
        for program in programs:
            program.append(Act("sync"))
    else:
        send.append(Act("put", target, data, number, queue))
        send += _between(pick, target)
        send.append(Act("put", target, data + 1, number, pick.choice((queue, queue, 1))))
        receive.append(Act(wait, target, data + 1, number))
    if style != "wide" and pick.random() < 0.85:
        receive.append(Act(pick.choice(("load", "load", "get")), target, data, number))
    if pick.random() < 0.75:
        receive.append(Act("put", source, data + 2, number))
        send.append(Act("wait least", source, data + 2, number))


def _between(pick: random.Random, target: int) -> Sequence[Act]:
    """What stands between payload and flag: an order, or nothing."""
    choice = pick.random()
    if choice < 0.45:
        return (Act("quiet"),)
    if choice < 0.85:
        return (Act("fence", target, value=pick.choice((0, 1))),)
    return ()


def _profile(pick: random.Random) -> Profile:
    return Profile(
        "letters",
        store_atomicity=pick.choice((8, 32, 32, 32)),
        in_block_order=pick.choice(("any", "ascending")),
        ordering=pick.choice(("none", "none", "none", "per_pair", "per_queue")),
        same_address_order=pick.random() < 0.8,
        fence=pick.choice(("orders", "orders", "orders", "drains", "none")),
        fence_scope=pick.choice(("all", "target")),
        signal=pick.choice(("own", "prior")),
        quiet=pick.choice(("all",) * 7 + ("local",)),
        in_flight=pick.choice((1, 2, 2)),
        immediate=pick.random() < 0.1,
    )


def instance_of(letters: Letters) -> Instance:
    """The instance of some letters."""
    kind = type("SomeLetters", (LetterProtocol,), {"letters": letters})
    return Instance(kind, Bounds(ranks=len(letters.programs), rounds=1), letters.profile, {})
