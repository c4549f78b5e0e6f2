"""Whether a state is stuck for good, told without a search: nothing lands, and whoever is not done
only reads what nobody changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.lowering import ActionKind
from syncproof.models.nodes import TooLong
from syncproof.models.outbox import SET
from syncproof.models.system import System
from syncproof.models.transitions import Move, Overfull, State, Transition

MOST_STEPS = 20_000
EVERYWHERE = -1
"""Stands for all places of a state."""

Run = list[tuple[State, Transition]]


class Alone(NamedTuple):
    """What a process can do by itself: ``steps`` to the first that is more than a read, or to a
    sync, if there is one; else whether it ``may_end`` by reads, or is done.

    ``looks`` are the places of the state on which that depends besides where the process stands,
    None for all.
    """

    steps: list[Move] | None
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
) -> list[Move] | None:
    """One run from ``state`` to where it is stuck: what is put lands, and one process after the
    other goes on as far as it can.

    None if the run ends otherwise, if one of those ``waiting`` can go on, if a property of
    ``asked`` breaks or if it is too long to tell.
    """
    run: list[Move] = []
    straight = _Straight(system, state, waiting)
    try:
        while len(run) < MOST_STEPS:
            steps = straight.next_steps()
            if steps is None:
                return run if straight.ends_stuck() else None
            for each in steps:
                if any(f.property in asked and f.property != "quiescent" for f in each.failures):
                    return None
            step = steps[-1].step
            if step.kind == "process" and step.process in waiting:
                return None
            run += steps
            straight.go_on(steps)
    except (Overfull, TooLong, Unresolved, UserError):
        pass
    return None


def as_run(state: State, moves: Iterable[Move]) -> Run:
    """Steps from ``state`` on, with the states between them."""
    run: Run = []
    for each in moves:
        run.append((state, each.taken(state)))
        state = run[-1][1].state
    return run


def stays_waiting(system: System, state: State, waiting: Collection[int]) -> bool:
    """Whether those ``waiting`` cannot go on when all that is in flight has landed."""
    straight = _Straight(system, state)
    try:
        for _ in range(MOST_STEPS):
            landing = straight.next_landing()
            if landing is None:
                return all(straight.alone(process).steps is None for process in waiting)
            straight.go_on([landing])
    except (Overfull, TooLong, Unresolved, UserError):
        pass
    return False


class _Straight:
    """A run that goes straight on; whoever cannot is asked again when what it looks at changes."""

    def __init__(self, system: System, state: State, first: Collection[int] = ()) -> None:
        self.system, self.state = system, list(state)
        self._first = list(first)
        self._others = [each for each in range(system.processes) if each not in first]
        self._asleep: dict[int, Alone] = {}
        self._watching: dict[int, list[int]] = {}
        """Who looks at a place."""
        features = system.features
        self._is_plain = not (features.views or features.caches or features.twins or features.locks)

    def next_steps(self) -> list[Move] | None:
        """A landing, or the steps of one process up to one that is more than a read; None if there
        is neither."""
        landing = self.next_landing()
        if landing is not None:
            return [landing]
        for process in (*self._first, *self._others):
            if process not in self._asleep:
                found = self.alone(process)
                if found.steps is not None:
                    return found.steps
                self._asleep[process] = found
                for place in (EVERYWHERE,) if found.looks is None else found.looks:
                    self._watching.setdefault(place, []).append(process)
        return None

    def next_landing(self) -> Move | None:
        """What the fabric may deliver first."""
        for place in range(self.system.first_outbox, self.system.first_cache):
            if self.state[place] and (found := self._landing(place)) is not None:
                return found
        return None

    def _landing(self, outbox: int) -> Move | None:
        """What may be delivered first of one outbox."""
        system, owner = self.system, outbox - self.system.first_outbox
        for each in system.deliveries(owner, self.state[outbox]):
            writes = each.packet.writes
            if self._is_plain and each.after >= 0 and all(mode == SET for _, _, mode in writes):
                cells = [(system.first_cell + cell, value) for cell, value, _ in writes]
                return Move(each.step, ((outbox, each.after), *cells), (), ())
            state = tuple(self.state)
            return next(system.landings(state, owner)).move(state)
        return None

    def go_on(self, steps: Sequence[Move]) -> None:
        """Take the steps found; the process of the last is asked first the next time."""
        for each in steps:
            for place, value in each.changes:
                if self.state[place] != value:
                    self.state[place] = value
                    self._wake(place)
        self._wake(EVERYWHERE)
        last = steps[-1].step
        if last.kind == "process" and last.process in self._others:
            at = self._others.index(last.process)
            self._others = self._others[at:] + self._others[:at]

    def _wake(self, place: int) -> None:
        for process in self._watching.pop(place, ()):
            self._asleep.pop(process, None)

    def ends_stuck(self) -> bool:
        """Whether nobody can take more than reads, and one of them never ends by these."""
        if self.next_steps() is not None:
            return False
        return not all(each.may_end for each in self._asleep.values())

    def alone(self, process: int) -> Alone:
        """What a process can do by itself: as long as it only reads, all but where it stands is as
        it was."""
        system, state = self.system, self.state
        first = state[process]
        came: dict[int, tuple[int, Move] | None] = {first: None}
        work = deque([first])
        looks: set[int] = set()
        is_told = self._is_plain
        try:
            while work:
                here = state[process] = work.popleft()
                node = system.automata[process].nodes[here]
                if node.state == "done":
                    return Alone(None, True, frozenset(looks) if is_told else None)
                if here != first and any(each.kind is ActionKind.SYNC for each in node.actions):
                    return Alone(_way(came, here), False, None)
                is_told = is_told and all(each.kind is not ActionKind.SYNC for each in node.actions)
                looks.add(system.first_outbox + process)
                for action in node.actions:  # a store of what is there already changes nothing
                    cells = (*action.cells, *[cell for cell, _, _ in action.writes])
                    looks.update([system.first_cell + cell for cell in cells])
                for each in system.process_moves(state, process):
                    if each.failures or any(place != process for place, _ in each.changes):
                        return Alone([*_way(came, here), each], False, None)
                    for _, after in each.changes:
                        if after not in came:
                            came[after] = here, each
                            work.append(after)
        finally:
            state[process] = first
        return Alone(None, False, frozenset(looks) if is_told else None)


def _way(came: dict[int, tuple[int, Move] | None], here: int) -> list[Move]:
    steps: list[Move] = []
    while (before := came[here]) is not None:
        here, move = before
        steps.insert(0, move)
    return steps
