"""Whether a state is stuck for good, told without a search: nothing lands, and whoever is not done
only reads what nobody changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from operator import itemgetter
from typing import Any, NamedTuple

from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.lowering import ActionKind
from syncproof.models.nodes import TooLong
from syncproof.models.system import System
from syncproof.models.transitions import Overfull, State, Transition

MOST_STEPS = 20_000

Run = list[tuple[State, Transition]]


class Alone(NamedTuple):
    """What a process can do by itself: ``steps`` to the first that is more than a read, or to a
    sync, if there is one; else whether it ``may_end`` by reads, or is done.

    ``looks`` are the places of the state on which that depends besides where the process stands,
    None for all.
    """

    steps: Run | None
    may_end: bool
    looks: frozenset[int] | None


def is_stuck(system: System, state: State) -> bool:
    """Whether no step from ``state`` on changes anything but where polling processes stand, and
    one of them can never be done.

    Such processes cannot hinder or help each other, so each is followed by itself.
    """
    try:
        return _Straight(system, state).ends_stuck()
    except (Overfull, TooLong, UserError):
        return False


def straight_on(
    system: System, state: State, asked: frozenset[str], waiting: Collection[int] = ()
) -> Run | None:
    """One run from ``state`` to where it is stuck: what is put lands, and one process after the
    other goes on as far as it can.

    None if the run ends otherwise, if one of those ``waiting`` can go on, if a property of
    ``asked`` breaks or if it is too long to tell.
    """
    run: Run = []
    straight = _Straight(system, state, waiting)
    try:
        while len(run) < MOST_STEPS:
            steps = straight.next_steps()
            if steps is None:
                return run if straight.ends_stuck() else None
            for _, each in steps:
                if any(f.property in asked and f.property != "quiescent" for f in each.failures):
                    return None
            step = steps[-1][1].step
            if step.kind == "process" and step.process in waiting:
                return None
            run += steps
            straight.go_on(steps[-1][1])
    except (Overfull, TooLong, Unresolved, UserError):
        pass
    return None


def stays_waiting(system: System, state: State, waiting: Collection[int]) -> bool:
    """Whether those ``waiting`` cannot go on when all that is in flight has landed."""
    straight = _Straight(system, state)
    try:
        for _ in range(MOST_STEPS):
            landing = straight.next_landing()
            if landing is None:
                return all(straight.alone(process).steps is None for process in waiting)
            straight.go_on(landing)
    except (Overfull, TooLong, Unresolved, UserError):
        pass
    return False


class _Straight:
    """A run that goes straight on; whoever cannot is asked again when what it looks at changes."""

    def __init__(self, system: System, state: State, first: Collection[int] = ()) -> None:
        self.system, self.state = system, state
        self._first = list(first)
        self._others = [each for each in range(system.processes) if each not in first]
        self._asleep: dict[int, tuple[Alone, Callable[[State], Any] | None, Any]] = {}
        """What each can do, what it looks at, and what was there."""
        features = system.features
        self._is_plain = not (features.views or features.caches or features.twins or features.locks)

    def next_steps(self) -> Run | None:
        """A landing, or the steps of one process up to one that is more than a read; None if there
        is neither."""
        landing = self.next_landing()
        if landing is not None:
            return [(self.state, landing)]
        for process in (*self._first, *self._others):
            if process not in self._asleep:
                found = self.alone(process)
                if found.steps is not None:
                    return found.steps
                look = itemgetter(*found.looks) if found.looks else None
                self._asleep[process] = found, look, look and look(self.state)
        return None

    def next_landing(self) -> Transition | None:
        """What the fabric may deliver first."""
        system, state = self.system, self.state
        for owner in range(system.first_cache - system.first_outbox):
            if state[system.first_outbox + owner]:
                for each in system.landings(state, owner):
                    return each
        return None

    def go_on(self, taken: Transition) -> None:
        """Take the last of the steps found; its process is asked first the next time."""
        self.state = taken.state
        for process, (_, look, saw) in list(self._asleep.items()):
            if look is None or look(self.state) != saw:
                del self._asleep[process]
        if taken.step.kind == "process" and taken.step.process in self._others:
            at = self._others.index(taken.step.process)
            self._others = self._others[at:] + self._others[:at]

    def ends_stuck(self) -> bool:
        """Whether nobody can take more than reads, and one of them never ends by these."""
        if self.next_steps() is not None:
            return False
        return not all(each.may_end for each, _, _ in self._asleep.values())

    def alone(self, process: int) -> Alone:
        """What a process can do by itself."""
        system, start = self.system, self.state
        came: dict[int, tuple[State, Transition] | None] = {start[process]: None}
        work = deque([start])
        looks: set[int] = set()
        is_told = self._is_plain
        while work:
            here = work.popleft()
            node = system.node(here, process)
            if node.state == "done":
                return Alone(None, True, frozenset(looks) if is_told else None)
            if here is not start and any(each.kind is ActionKind.SYNC for each in node.actions):
                return Alone(_way(came, here, process), False, None)
            is_told = is_told and all(each.kind is not ActionKind.SYNC for each in node.actions)
            looks.update(system.first_cell + cell for a in node.actions for cell in a.cells)
            for each in system.process_transitions(here, process):
                after = each.state
                if not _only_moves(here, after, process) or each.failures:
                    steps = [*_way(came, here, process), (here, each)]
                    return Alone(steps, False, None)
                if after[process] not in came:
                    came[after[process]] = (here, each)
                    work.append(after)
        looks.add(system.first_outbox + process)
        return Alone(None, False, frozenset(looks) if is_told else None)


def _only_moves(here: State, after: State, process: int) -> bool:
    """Whether two states differ at most in where a process stands."""
    behind = process + 1
    return here[:process] == after[:process] and here[behind:] == after[behind:]


def _way(came: dict[int, tuple[State, Transition] | None], state: State, process: int) -> Run:
    steps: Run = []
    while (before := came[state[process]]) is not None:
        steps.insert(0, before)
        state = before[0]
    return steps
