"""Steps, transitions and what they are made of: the words in which a system is explored."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import ne
from typing import NamedTuple

from syncproof.models.outbox import Packet

State = tuple[int, ...]

PROPERTIES = ("deadlock-free", "happens-before", "exactly-once", "race-free", "quiescent", "checks")
"""The default properties; ``checks`` are the role's own ``core.check`` and ghost conditions."""

FEW_PLACES, PART = 256, 64
"""Of more places than these most parts are equal, which is told faster than that each place is."""


def differences(before: State, after: State) -> tuple[tuple[int, int], ...]:
    """The places in which two states differ, with what the second holds there."""
    if len(before) <= FEW_PLACES:
        return tuple([(at, after[at]) for at in compress(count(), map(ne, before, after))])
    found: list[tuple[int, int]] = []
    for first in range(0, len(before), PART):
        mine, its = before[first : first + PART], after[first : first + PART]
        if mine != its:
            found += [(at, after[at]) for at in compress(count(first), map(ne, mine, its))]
    return tuple(found)


class Step(NamedTuple):
    """One transition: ``process`` takes ``action``, or the fabric acts on its outbox or cache.

    ``kind`` is "process", "land", "read source", "propagate", "write back" or "evict"; ``what``
    is the action, the cells or the line that it is about; ``variant`` tells apart steps that are
    otherwise alike, such as a load that may be served with any of several old values.
    """

    kind: str
    process: int
    what: tuple[int, ...]
    variant: int = 0


class Failure(NamedTuple):
    """A property that a step broke, and how."""

    property: str
    message: str
    process: int
    expected: str = ""


class Transition:
    """A step from some state, what it leads to and what it says.

    ``fair`` is False for what a machine may do but need not ever do. ``state`` may be given as a
    function: of the many landings that are enabled most searches follow only one.
    """

    __slots__ = ("_state", "failures", "fair", "reached", "step")

    def __init__(
        self,
        step: Step,
        state: State | Callable[[], State],
        failures: tuple[Failure, ...] = (),
        reached: tuple[str, ...] = (),
        fair: bool = True,
    ) -> None:
        self.step, self._state = step, state
        self.failures, self.reached, self.fair = failures, reached, fair

    @property
    def state(self) -> State:
        """The state behind the step."""
        if callable(self._state):
            self._state = self._state()
        return self._state

    def move(self, before: Sequence[int]) -> Move:
        """The same as a change of the state before it."""
        changes = differences(tuple(before), self.state)
        return Move(self.step, changes, self.failures, self.reached)

    def numbered(self, variant: int) -> Transition:
        """The same transition with a number that tells its step from like ones."""
        step = self.step._replace(variant=variant)
        return Transition(step, self._state, self.failures, self.reached, self.fair)


class Overfull(Exception):
    """A put met the in-flight bound: the run goes on beyond what is explored."""


class Delivery:
    """What the fabric may do next with a put: ``after`` is the number of the outbox behind it.

    The source of a copy is read first: then ``after`` is -1, as it depends on what is read. It may
    be given as a function, as the state of a transition may.
    """

    __slots__ = ("_after", "packet", "position", "step")

    def __init__(
        self, step: Step, position: int, packet: Packet, after: int | Callable[[], int]
    ) -> None:
        self.step, self.position, self.packet, self._after = step, position, packet, after

    @property
    def after(self) -> int:
        """The number of the outbox behind the delivery."""
        if callable(self._after):
            self._after = self._after()
        return self._after


class Outline(NamedTuple):
    """Of a node: the cells that it polls, the places of the state that its steps depend on, and
    whether these, the node and the outbox are all."""

    polls: frozenset[int]
    looks: tuple[int, ...]
    local: bool


class Move(NamedTuple):
    """A step as a change of some places of the state."""

    step: Step
    changes: tuple[tuple[int, int], ...]
    failures: tuple[Failure, ...]
    reached: tuple[str, ...]

    def taken(self, state: State) -> Transition:
        """The same from a state."""
        work = list(state)
        for place, value in self.changes:
            work[place] = value
        return Transition(self.step, tuple(work), self.failures, self.reached)


def moves_of(state: Sequence[int], found: Iterable[Transition]) -> tuple[Move, ...]:
    """Steps from a state as changes of it."""
    return tuple([each.move(state) for each in found])


class Access(NamedTuple):
    """What a step does to a cell, for race-free."""

    cell: int
    writes: bool
    synchronizing: bool
    is_put: bool


class Interned:
    """Numbers for hashable things; 0 is the empty one."""

    def __init__(self, empty: Hashable) -> None:
        self.known: list[Hashable] = [empty]
        self._number: dict[Hashable, int] = {empty: 0}

    def number(self, thing: Hashable) -> int:
        found = self._number.get(thing)
        if found is None:
            found = self._number[thing] = len(self.known)
            self.known.append(thing)
        return found


@dataclass(frozen=True)
class Features:
    """Which parts of a state exist at all."""

    twins: bool = False
    locks: bool = False
    caches: bool = False
    views: bool = False
    ghosts: bool = False
