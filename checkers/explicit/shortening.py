"""A run into a failure made shorter: every step that it can do without is left out.

To leave out a step is to walk the rest of the run again. Of that rest most is as it was: only what
looks at something that is now different is asked of the system again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from syncproof.checkers.explicit.boxes import Joined
from syncproof.checkers.explicit.footprints import Ends, Footprints, Move, past_of
from syncproof.models.system import System
from syncproof.models.transitions import Failure, State, Step, Transition

Result = TypeVar("Result")

Taken = Sequence[tuple[State, Transition]]
IsWrong = Callable[[Sequence[Failure], State], bool]
"""Whether a run that ends in a state, its last step with these failures, shows the failure."""
LEAST_PATIENCE, MOST_PATIENCE = 32, 256
"""How many steps are left out before the rest is asked which of it the end still depends on."""


class Shortening:
    """A run that is being made shorter, as long as ``is_wrong`` of how it ends.

    ``ends`` is what of its end shows that, None if its last step does. Where ``is_wrong`` takes
    long, ``seems_wrong`` tells most runs that do not end so.
    """

    def __init__(
        self,
        system: System,
        taken: Taken,
        is_wrong: IsWrong,
        ends: Ends | None = None,
        seems_wrong: IsWrong | None = None,
    ) -> None:
        self.system, self._is_wrong, self._ends = system, is_wrong, ends
        self._seems_wrong = seems_wrong
        self._start = system.initial_transition()
        self._needed = 0
        """How many of the first steps were tried since the last was left out."""
        self._footprints = Footprints(system)
        self._footprints.meet([(state, each.step) for state, each in taken])
        self.moves = self._told([each.step for _, each in taken])

    @property
    def steps(self) -> list[Step]:
        """The steps that are left."""
        return [each.step for each in self.moves]

    def _told(self, steps: Sequence[Step]) -> list[Move]:
        """What the steps of a run that is possible look at and set."""
        while True:
            try:
                here, found = self._footprints.first(), list[Move]()
                for step in steps:
                    move = self._footprints.move(here, step)
                    assert move is not None, step
                    for place, _, new in move.writes:
                        here[place] = new
                    found.append(move)
                return found
            except Joined:
                self._footprints.forget()

    def _until_told(self, change: Callable[[], Result]) -> Result:
        """Make a change; once more each time that the run has to be told again."""
        while True:
            try:
                return change()
            except Joined:
                self._footprints.forget()
                self.moves = self._told(self.steps)

    def keep_only(self, kept: Collection[int]) -> bool:
        """Leave out all but some steps, if the run can do without them."""
        return self._until_told(lambda: self._keep_only(kept))

    def _keep_only(self, kept: Collection[int]) -> bool:
        gone = set(range(len(self.moves))) - set(kept)
        found = self._without(gone, 0, self._footprints.first(), self._is_wrong)
        if found is not None:
            self.moves, self._needed = found, 0
        return found is not None

    def leave_out_loops(self) -> bool:
        """Leave out the reads after which their process stands where it stood before.

        Nothing else sees them, so all the others stay as they are.
        """
        self._fit()
        gone: set[int] = set()
        behind: dict[int, dict[int, list[int]]] = {}
        for number, move in enumerate(self.moves[:-1]):
            process = move.step.process
            if move.step.kind != "process" or {place for place, _, _ in move.writes} != {process}:
                for place, _, _ in move.writes:
                    behind.pop(place, None)
                continue
            ((_, old, new),) = move.writes
            since = behind.setdefault(process, {old: []})
            steps = [*since[old], number]
            if new not in since:
                since[new] = steps
                continue
            looped = steps[len(since[new]) :]
            gone.update(looped)
            for node in [node for node, way in since.items() if set(way) & set(looped)]:
                del since[node]
        self.moves = [each for number, each in enumerate(self.moves) if number not in gone]
        self._needed = 0 if gone else self._needed
        return bool(gone)

    def leave_out_single_steps(self) -> bool:
        """Leave out each step that the run can do without, the latest first, and with it what the
        end no longer depends on."""
        before, seems_wrong = self.steps, self._seems_wrong
        if seems_wrong is not None:
            if self._until_told(lambda: self._leave_out_singles(seems_wrong)):
                return len(self.moves) < len(before)
            self.moves, self._seems_wrong, self._needed = self._told(before), None, 0
        self._until_told(lambda: self._leave_out_singles(self._is_wrong))
        return len(self.moves) < len(before)

    def _leave_out_singles(self, seems_wrong: IsWrong) -> bool:
        """One way through the run from its end, each step left out while the run ``seems_wrong``;
        False if it is then not.

        The first steps that were tried since the last was left out need not be tried again.
        """
        self._fit()
        number, needed = len(self.moves), self._needed
        state = self._state_before(number)
        patience, left_out, last = LEAST_PATIENCE, 0, 0
        while number > needed:
            number -= 1
            for place, old, _ in self.moves[number].writes:
                state[place] = old
            found = self._without({number}, number, state, seems_wrong)
            state += [0] * (self._footprints.boxes.width - len(state))
            if found is None:
                continue
            self.moves = self.moves[:number] + found
            left_out, last, needed, self._needed = left_out + 1, number, 0, 0
            if left_out > patience:
                left_out, kept = 0, self._leave_out_the_unneeded()
                patience = min(2 * patience, MOST_PATIENCE) if kept is None else LEAST_PATIENCE
                if kept is not None:
                    self._fit()
                    last = number = sum(each < number for each in kept)
                    state = self._state_before(number)
        self._needed = last
        return self._without(set(), 0, self._footprints.first(), self._is_wrong) is not None

    def leave_out_the_unneeded(self) -> bool:
        """Leave out what the end does not depend on, if that is all."""
        return self._until_told(self._leave_out_the_unneeded) is not None

    def _leave_out_the_unneeded(self) -> set[int] | None:
        """The numbers that the steps that are left had; None if none could be left out."""
        needed = past_of(self.system, self.moves, self._ends)
        is_shorter = len(needed) < len(self.moves) and self._keep_only(needed)
        return needed if is_shorter else None

    def _state_before(self, number: int) -> list[int]:
        """The state before a step."""
        state = self._footprints.first()
        for move in self.moves[:number]:
            for place, _, new in move.writes:
                state[place] = new
        return state

    def _without(
        self, gone: set[int], first: int, state: Sequence[int], is_wrong: IsWrong
    ) -> list[Move] | None:
        """The steps from ``first`` on, where the run is in ``state``, without those ``gone``; None
        if they cannot be taken or end otherwise. What was there before each is for `_fit` to say.
        """
        footprints, boxes = self._footprints, self._footprints.boxes
        here = [*state, *[0] * (boxes.width - len(state))]
        changed: set[int] = set()
        """The places that may hold something else than in the run as it was."""
        found: list[Move] = []
        for number in range(first, len(self.moves)):
            move = self.moves[number]
            if number in gone:
                changed.update(place for place, _, new in move.writes if here[place] != new)
                continue
            if not changed or (
                move.looks is not None
                and changed.isdisjoint(move.looks)
                and not (move.minds and footprints.minded(move, changed))
            ):
                found.append(move)
                for place, _, new in move.writes:
                    here[place] = new
                    changed.discard(place)
                continue
            again = footprints.move(here, move.step)
            if again is None:
                return None
            found.append(again)
            for place, _, new in again.writes:
                here[place] = new
                changed.add(place)
            for place, _, new in move.writes:
                if here[place] == new:
                    changed.discard(place)
                else:
                    changed.add(place)
        last = found[-1] if found else self.moves[first - 1] if first else self._start
        return found if is_wrong(last.failures, tuple(boxes.state(here))) else None

    def _fit(self) -> None:
        """See what is now there before each step: others were left out."""
        here, found = self._footprints.first(), []
        for move in self.moves:
            writes = tuple([(place, here[place], new) for place, _, new in move.writes])
            found.append(move if writes == move.writes else move._replace(writes=writes))
            for place, _, new in writes:
                here[place] = new
        self.moves = found
