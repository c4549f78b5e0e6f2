"""What each step of a run depends on and what it sets, as places of the state."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from typing import NamedTuple

from syncproof.checkers.explicit.boxes import Boxes, Joined, is_plain
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.narrate import delivered
from syncproof.models.nodes import TooLong
from syncproof.models.operations import GhostCheck, GhostUpdate
from syncproof.models.outbox import ADD
from syncproof.models.system import System
from syncproof.models.transitions import (
    Failure,
    Overfull,
    State,
    Step,
    Transition,
    differences,
)


class Move(NamedTuple):
    """A step of a run as a change of some places of the state.

    ``looks`` are the places on which it depends, None for all; besides these it depends on all that
    the processes ``minds`` have in flight. ``writes`` are (place, value before, value after) of all
    that it sets. ``issues`` are the cells of each put that it issues; ``drains`` says that it waits
    for the puts of its process.
    """

    step: Step
    looks: frozenset[int] | None
    writes: tuple[tuple[int, int, int], ...]
    failures: tuple[Failure, ...]
    issues: tuple[tuple[int, ...], ...] = ()
    drains: bool = False
    minds: tuple[int, ...] = ()


class Ends(NamedTuple):
    """What of the end of a run shows the failure: its last step, or what the places ``last`` hold
    and how those of ``ever`` came to hold what they do."""

    last: Collection[int] = ()
    ever: Collection[int] = ()


class _Footprint(NamedTuple):
    """What an action of a node always looks at and sets; ``boxes`` are the places of the puts in
    flight that matter to it, ``minds_all`` says that all of its process do; ``drains`` and
    ``issues`` as in a move."""

    members: tuple[int, ...]
    looks: tuple[int, ...]
    places: tuple[int, ...]
    boxes: tuple[int, ...]
    minds_all: bool
    issues: tuple[tuple[int, ...], ...]
    drains: bool


class _Outcome(NamedTuple):
    """What a step does: the places that it sets, the outbox of its process, what it says, the
    processes that it ends, and whether it depends on what ghosts hold."""

    sets: tuple[tuple[int, int], ...]
    outbox: int
    failures: tuple[Failure, ...]
    ended: tuple[int, ...]
    on_ghosts: bool


class Footprints:
    """What the steps of a system depend on and what they set, as places of the state and, behind
    these, of what is in flight.

    Equal questions are asked of the system once.
    """

    def __init__(self, system: System) -> None:
        self.system, self.boxes = system, Boxes(system)
        self._width = self.boxes.width
        self._is_plain = is_plain(system)
        self._ghosts = (system.ghosts.at,) if system.features.ghosts else ()
        self._actions: dict[tuple[int, int, int], _Footprint] = {}
        self._outcomes: dict[tuple[Hashable, ...], _Outcome | None] = {}

    def first(self) -> list[int]:
        """The places before the first step."""
        start = self.system.initial_transition().state
        return [*start, *[0] * (self.boxes.width - len(start))]

    def meet(self, steps: Sequence[tuple[State, Step]]) -> None:
        """See which puts belong together before the steps of a run are told."""
        for state, step in steps:
            if step.kind == "process":
                with suppress(Joined):
                    self._of_action(state, step)
        self.forget()

    def forget(self) -> None:
        """Forget which puts were apart."""
        self._actions.clear()

    def move(self, here: list[int], step: Step) -> Move | None:
        """A step that is taken, or None if it cannot be; raises `Joined`.

        ``here`` is made longer where a place is new.
        """
        if not self._is_plain:
            state = tuple(here)
            found = self._transition(state, step)
            if found is None:
                return None
            changed = differences(state, found.state)
            writes = tuple([(place, state[place], new) for place, new in changed])
            return Move(step, None, writes, found.failures)
        move = self._of_fabric if step.kind != "process" else self._of_process
        return move(here, step)

    def _transition(self, state: State, step: Step) -> Transition | None:
        try:
            for each in self.system.step_transitions(state, step):
                if each.step == step:
                    each.state  # noqa: B018 - what the fabric delivers may be too much
                    return each
        except (Overfull, TooLong, Unresolved, UserError):
            pass
        return None

    def minded(self, move: Move, changed: set[int]) -> bool:
        """Whether a step depends on puts in flight some of which have changed."""
        return any(not changed.isdisjoint(self.boxes.all_of(each)) for each in move.minds)

    # Steps of processes

    def _of_process(self, here: list[int], step: Step) -> Move | None:
        process = step.process
        node = self.system.automata[process].nodes[here[process]]
        if node.state != "run" or step.what[0] >= len(node.actions):
            return None
        found = self._of_action(here, step)
        here += [0] * (self.boxes.width - len(here))
        boxes = self.boxes.all_of(process) if found.minds_all else found.boxes
        in_flight = dict.fromkeys(found.members, 0)
        in_flight[process] = self.boxes.outbox(here, boxes)
        minds = (process,) if found.minds_all else ()
        outcome = self._outcome(here, step, found, in_flight)
        if outcome is None:
            return None
        sets, failures = list(outcome.sets), outcome.failures
        if outcome.outbox != in_flight[process]:
            (box,) = boxes
            sets.append((box, outcome.outbox))
        if outcome.ended:
            minds = tuple({*minds, *outcome.ended})
            for each in outcome.ended:
                in_flight[each] = self.boxes.outbox(here, self.boxes.all_of(each))
            with_all = self._outcome(here, step, found, in_flight)
            assert with_all is not None
            failures = with_all.failures
        return Move(
            step,
            frozenset((*found.looks, *found.boxes, *(self._ghosts if outcome.on_ghosts else ()))),
            tuple([(place, here[place], new) for place, new in sets]),
            failures,
            found.issues,
            found.drains,
            minds,
        )

    def _outcome(
        self, here: list[int], step: Step, found: _Footprint, in_flight: dict[int, int]
    ) -> _Outcome | None:
        looks = [here[place] for place in (*found.looks, *self._ghosts)]
        key = (step, here[step.process], *looks, *in_flight.values())
        if key not in self._outcomes:
            self._outcomes[key] = self._ask(here, step, found, in_flight)
        return self._outcomes[key]

    def _ask(
        self, here: list[int], step: Step, found: _Footprint, in_flight: dict[int, int]
    ) -> _Outcome | None:
        system, work = self.system, here[: self._width]
        for owner, number in in_flight.items():
            work[system.first_outbox + owner] = number
        taken = self._transition(tuple(work), step)
        if taken is None:
            return None
        on_ghosts = bool(self._ghosts) and self._speaks_of_ghosts(tuple(work), step)
        places = (*found.places, *(self._ghosts if on_ghosts else ()))
        return _Outcome(
            tuple([(place, taken.state[place]) for place in places]),
            taken.state[system.first_outbox + step.process],
            taken.failures,
            tuple([m for m in found.members if system.node(taken.state, m).state == "done"]),
            on_ghosts,
        )

    def _of_action(self, here: Sequence[int], step: Step) -> _Footprint:
        key = (step.process, here[step.process], step.what[0])
        found = self._actions.get(key)
        if found is None:
            node = self.system.automata[step.process].nodes[here[step.process]]
            found = self._actions[key] = self._find(step.process, node.actions[step.what[0]])
        return found

    def _find(self, process: int, action: Action) -> _Footprint:
        first, kind = self.system.first_cell, action.kind
        members = action.members or (process,)
        read = [first + cell for cell in action.cells]
        added = [first + cell for cell, _, mode in action.writes if mode == ADD]
        written = [first + cell for cell, _, _ in action.writes]
        written += read if kind is ActionKind.UPDATE else []
        boxes: tuple[int, ...] = ()
        if kind is ActionKind.ISSUE:
            boxes = (self.boxes.of_packets(process, action.packets),)
        elif action.packets:
            self.boxes.of_packets(process, action.packets)
        elif action.ordered:
            boxes = tuple({self.boxes.of_cells(process, (cell,)) for cell in action.cells})
        return _Footprint(
            members,
            tuple(dict.fromkeys((*members, *read, *added))),
            tuple(dict.fromkeys((*members, *written))),
            boxes,
            kind in (ActionKind.QUIET, ActionKind.FENCE),
            tuple([tuple([cell for cell, _, _ in each.writes]) for each in action.packets]),
            action.ordered or kind in (ActionKind.QUIET, ActionKind.FENCE),
        )

    def _speaks_of_ghosts(self, state: State, step: Step) -> bool:
        node = self.system.node(state, step.process)
        action = node.actions[step.what[0]]
        if action.members:
            return True
        values = tuple(self.system.value(state, cell) for cell in action.cells)
        edge = self.system.automata[step.process].edge(node, step.what[0], values)
        said = () if edge is None else edge.statements
        return any(isinstance(each, GhostUpdate | GhostCheck) for each in said)

    # Steps of the fabric

    def _of_fabric(self, here: list[int], step: Step) -> Move | None:
        system, first = self.system, self.system.first_cell
        box = self.boxes.of_cells(step.process, step.what)
        here += [0] * (self.boxes.width - len(here))
        cells = [first + cell for cell in step.what]
        key = (step, here[box])
        if key not in self._outcomes:
            at = system.first_outbox + step.process
            work = here[: self._width]
            work[at] = here[box]
            state = tuple(work)
            taken = self._transition(state, step)
            if taken is None:
                self._outcomes[key] = None
                return None
            after, reads = taken.state, set(cells)
            if step.kind == "land":
                writes = delivered(system, state, step).writes
                reads = {first + cell for cell, _, mode in writes if mode == ADD}
            sets = [(place, after[place]) for place in cells if step.kind == "land"]
            outcome = _Outcome(tuple(sets), after[at], taken.failures, (), False)
            if reads:  # what comes out depends on what is there
                return self._landed(here, step, box, outcome, reads)
            self._outcomes[key] = outcome
        found = self._outcomes[key]
        return None if found is None else self._landed(here, step, box, found, set())

    def _landed(
        self, here: list[int], step: Step, box: int, outcome: _Outcome, reads: set[int]
    ) -> Move:
        sets = ((box, outcome.outbox), *outcome.sets)
        writes = tuple([(place, here[place], new) for place, new in sets])
        return Move(step, frozenset((box, *reads)), writes, outcome.failures)


def past_of(system: System, moves: Sequence[Move], ends: Ends | None) -> set[int]:
    """The numbers of the steps on which the end of a run depends; its last step if no more is
    said. Nothing is left out where steps may depend on all there is."""
    if any(each.looks is None for each in moves):
        return set(range(len(moves)))
    found = _Past(system)
    before = [found.before(number, move) for number, move in enumerate(moves)]
    if ends is None:
        wanted = [len(moves) - 1] if moves else []
    else:
        wanted = [found.write_of[place] for place in ends.last if place in found.write_of]
        ever = {*ends.ever}
        wanted += [n for n, move in enumerate(moves) if any(w[0] in ever for w in move.writes)]
    past: set[int] = set()
    while wanted:
        number = wanted.pop()
        if number not in past:
            past.add(number)
            wanted += before[number]
    return past


class _Past:
    """For each step of a run those that it depends on directly, the steps told in order."""

    def __init__(self, system: System) -> None:
        self._outboxes = range(system.first_outbox, system.first_cache)
        self._width = len(system.initial_transition().state)
        profile = system.automata[0].profile
        self._in_order = (
            profile.ordering != "none" or profile.fence == "orders" or bool(profile.hops)
        )
        self.write_of: dict[int, int] = {}
        self._landing_of: dict[tuple[int, int], int] = {}
        self._issues: dict[tuple[int, tuple[int, ...]], deque[int]] = {}
        self._by_fabric: dict[int, list[int]] = {}

    def before(self, number: int, move: Move) -> set[int]:
        """What the next step depends on."""
        step = move.step
        in_state = [place for place in move.looks or () if place < self._width]
        looks = [place for place in in_state if place not in self._outboxes]
        needs = {self.write_of[place] for place in looks if place in self.write_of}
        if step.kind == "process":
            if move.drains:
                needs |= {*self._by_fabric.get(step.process, ())}
            for cells in move.issues:
                self._issues.setdefault((step.process, cells), deque()).append(number)
        else:
            needs |= self._of_fabric(number, step)
        self.write_of.update(dict.fromkeys([place for place, _, _ in move.writes], number))
        return needs

    def _of_fabric(self, number: int, step: Step) -> set[int]:
        owner, needs = step.process, set[int]()
        if step.kind != "land" or self._in_order:
            needs |= {*self._by_fabric.get(owner, ())}
        if step.kind != "land" and owner in self.write_of:
            needs.add(self.write_of[owner])
        if step.kind == "land":
            issued = self._issues.get((owner, step.what))
            if issued:
                needs.add(issued.popleft())
            for cell in step.what:
                if (owner, cell) in self._landing_of:
                    needs.add(self._landing_of[owner, cell])
                self._landing_of[owner, cell] = number
        self._by_fabric.setdefault(owner, []).append(number)
        return needs
