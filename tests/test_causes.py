"""What a step depends on, against every other order in which the same steps can be taken."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from syncproof.checkers.explicit import causes
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.memory import Region
from syncproof.models.narrate import describe, narrate
from syncproof.models.outbox import Packet
from syncproof.models.protocol import Protocol, role
from syncproof.models.system import System
from syncproof.models.transitions import Overfull, State, Transition
from syncproof.models.verdict import TraceStep
from tests.random_protocols import plan_of, systems_of
from tests.small import instance

Taken = list[tuple[State, Transition]]
Writers = tuple[int, ...]
LONGEST = 9
MOST_STATES = 4_000


class TooMany(Exception):
    """More orders than are looked at."""


def walk(system: System, seed: int) -> Taken:
    """A random run, a few steps long, in which puts land soon as often as not."""
    chance = random.Random(seed)
    state, taken = system.initial_transition().state, []
    for _ in range(LONGEST):
        enabled = [each for each in system.transitions(state) if each.fair]
        if not enabled:
            break
        landings = [each for each in enabled if each.step.kind == "land"]
        transition = chance.choice(chance.choice([enabled, landings or enabled]))
        taken.append((state, transition))
        if transition.failures:
            break
        state = transition.state
    return taken


class Orders:
    """Every order in which the steps of a run can be taken, each reading what it read there.

    ``first[b]`` are the steps that come before ``b`` in all of them.
    """

    def __init__(self, system: System, taken: Taken) -> None:
        self.system, self.taken = system, taken
        self.told = narrate(system, taken)
        self.read_from = [self._sources(writers, n) for n, writers in self._as_it_was()]
        every = (1 << len(taken)) - 1
        self.first = [every] * len(taken)
        self._seen: set[tuple[int, State, Writers]] = set()
        self._look(0, system.initial_transition().state, (-1,) * len(system.cells))

    def _as_it_was(self) -> Iterator[tuple[int, Writers]]:
        writers: Writers = (-1,) * len(self.system.cells)
        for number in range(len(self.taken)):
            yield number, writers
            writers = self._written(writers, number)

    def _written(self, writers: Writers, number: int) -> Writers:
        step = self.told[number]
        landed = self.taken[number][1].step.what if step.kind == "land" else ()
        mine = {*step.writes, *landed}
        return tuple(number if cell in mine else who for cell, who in enumerate(writers))

    def _sources(self, writers: Writers, number: int) -> Writers:
        return tuple(writers[cell] for cell in self.told[number].reads)

    def same(self, one: int, other: int) -> bool:
        """Whether two steps of the run cannot be told apart."""
        first, second = self.taken[one], self.taken[other]
        return first[1].step == second[1].step and first[1].step.kind != "process"

    def _look(self, mask: int, state: State, writers: Writers) -> None:
        work = [(mask, state, writers)]
        while work:
            mask, state, writers = work.pop()
            if (mask, state, writers) in self._seen:
                continue
            self._seen.add((mask, state, writers))
            if len(self._seen) > MOST_STATES:
                raise TooMany
            enabled = {each.step: each for each in self.system.transitions(state)}
            for number in range(len(self.taken)):
                after = self._taken_here(mask, state, writers, number, enabled)
                if after is not None:
                    self.first[number] &= mask
                    work.append((mask | 1 << number, after, self._written(writers, number)))

    def _taken_here(
        self,
        mask: int,
        state: State,
        writers: Writers,
        number: int,
        enabled: dict[object, Transition],
    ) -> State | None:
        original, transition = self.taken[number]
        step = transition.step
        if mask >> number & 1 or step not in enabled:
            return None
        earlier = [n for n in range(number) if not mask >> n & 1 and self.same(n, number)]
        if earlier or self._sources(writers, number) != self.read_from[number]:
            return None
        if step.kind == "land":
            now = describe(self.system, state, enabled[step])
            if now != self.told[number].text:
                return None
        if step.kind == "process":
            if any(not mask >> n & 1 for n in self._before_it(number)):
                return None
            action = self.system.node(original, step.process).actions[step.what[0]]
            members = action.members or (step.process,)
            if any(state[each] != original[each] for each in members):
                return None
        return enabled[step].state

    def _before_it(self, number: int) -> list[int]:
        """The steps before this one in its program: a loop may stand at one place again."""
        process = self.taken[number][1].step.process
        steps = [each.step for _, each in self.taken[:number]]
        return [n for n, s in enumerate(steps) if (s.kind, s.process) == ("process", process)]

    def clashes(self) -> list[int]:
        """For each step the earlier ones that touch a cell which one of the two writes."""
        found = []
        for number, step in enumerate(self.told):
            landed = step.what[:-1] if step.kind == "land" else ()
            writes, reads = {*step.writes, *landed}, {*step.reads}
            mask = 0
            for n, early in enumerate(self.told[:number]):
                early_landed = early.what[:-1] if early.kind == "land" else ()
                early_writes, early_reads = {*early.writes, *early_landed}, {*early.reads}
                if early_writes & (writes | reads) or early_reads & writes or self.same(n, number):
                    mask |= 1 << n
            found.append(mask)
        return found


def pasts(steps: list[int]) -> list[int]:
    """Everything before each step, given what is directly before it, as bits."""
    found: list[int] = []
    for direct in steps:
        whole = direct
        for number in range(len(found)):
            if direct >> number & 1:
                whole |= found[number]
        found.append(whole)
    return found


def bits(numbers: object) -> int:
    """A set of steps as bits."""
    return sum(1 << number for number in numbers)  # type: ignore[attr-defined]


def faults(system: System, taken: Taken, told: tuple[TraceStep, ...]) -> tuple[int, int]:
    """Dependencies that some order does without, and orders that nothing explains."""
    orders = Orders(system, taken)
    direct = [bits(step.after) for step in told]
    with_clashes = pasts([one | two for one, two in zip(direct, orders.clashes(), strict=True)])
    needless = missing = 0
    for number, past in enumerate(pasts(direct)):
        same = bits(n for n in range(len(taken)) if orders.same(n, number))
        needless += (past & ~orders.first[number] & ~same).bit_count()
        missing += (orders.first[number] & ~with_clashes[number] & ~same).bit_count()
    return needless, missing


def has_twins(system: System, taken: Taken) -> bool:
    """Whether two puts of one process may land alike, so that an order cannot tell them apart."""
    seen: dict[tuple[int, tuple[int, ...]], list[Packet]] = {}
    for state, transition in taken:
        step = transition.step
        if step.kind != "process":
            continue
        for packet in system.node(state, step.process).actions[step.what[0]].packets:
            if packet.is_fence:
                continue
            key = (step.process, tuple(cell for cell, _, _ in packet.writes))
            others = seen.setdefault(key, [])
            if others and (packet.reads or not system.automata[0].profile.same_address_order):
                return True
            if any(each.reads or each.writes == packet.writes for each in others):
                return True
            others.append(packet)
    return False


def campaign(first: int, last: int) -> Counter[str]:
    """The faults over random runs of random protocols."""
    found: Counter[str] = Counter()
    for seed in range(first, last):
        for system in systems_of(plan_of(seed)):
            features = system.features
            if features.views or features.caches or features.twins or features.locks:
                found["not covered"] += 1
                continue
            try:
                taken = walk(system, seed)
                if has_twins(system, taken):
                    found["twins"] += 1
                    continue
                needless, missing = faults(system, taken, causes.told_with_causes(system, taken))
            except (Overfull, UserError, TooMany):
                found["left out"] += 1
                continue
            found["runs"] += 1
            found["landings"] += sum(each.step.kind == "land" for _, each in taken)
            found["needless"] += needless
            found["missing"] += missing
            if needless or missing:
                found[f"first fault at seed {seed}"] += 1
    return found


def test_dependencies_are_those_of_every_order() -> None:
    """A step comes after what it depends on in every order, and after nothing else but by a clash.

    A clash is two steps that touch one cell, which one of them writes.
    """
    found = campaign(0, 300)
    assert (found["needless"], found["missing"]) == (0, 0), found
    assert found["runs"] > 200 and found["landings"] > 80


@pytest.mark.long
def test_dependencies_are_those_of_every_order_at_length() -> None:
    """The same on 10,000 protocols."""
    found = campaign(300, 10_300)
    assert (found["needless"], found["missing"]) == (0, 0), found


def _never(*given: object, **named: object) -> bool:
    return False


def _always(*given: object, **named: object) -> bool:
    return True


FAULTS = {
    "no order between landings": ("_is_held_back", _never, "missing"),
    "every landing after the earlier ones": ("_is_held_back", _always, "needless"),
    "a quiet waits for nothing": ("_waits", _never, "missing"),
    "a quiet waits for everything": ("_waits", _always, "needless"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison notices a dependency too many and one too few."""
    name, planted, kind = FAULTS[fault]
    monkeypatch.setattr(causes._Causes, name, planted)
    assert campaign(0, 150)[kind] > 0


class TwoPuts(Protocol):
    """Two puts to one place, of which either may land first."""

    def memory(self) -> None:
        self.flag = Region(owner=1, block=8)

    @role(on=[0])
    async def sender(self, core: Core) -> None:
        await core.put(self.flag[1], 1)
        await core.put(self.flag[1], 2)

    @role(on=[1])
    async def receiver(self, core: Core) -> None:
        await core.fence()


def test_a_landing_belongs_to_its_own_put() -> None:
    """Where puts to one place may overtake each other, each landing names its own."""
    system = instance(TwoPuts, Profile("free", same_address_order=False)).system({})
    state, taken = system.initial_transition().state, []
    for wanted in ("put flag[1]: 1", "put flag[1]: 2", "2 lands at flag[1]", "1 lands at flag[1]"):
        transition = next(
            each
            for each in system.transitions(state)
            if describe(system, state, each).startswith(wanted)
        )
        taken.append((state, transition))
        state = transition.state
    told = causes.told_with_causes(system, taken)
    assert [step.put for step in told] == [-1, -1, 1, 0]
    assert [step.after for step in told] == [(), (0,), (1,), (0,)]
