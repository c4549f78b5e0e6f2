"""What each step of a run depends on and what it sets, as places of the state."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import NamedTuple

from syncproof.models.lowering import Action, ActionKind
from syncproof.models.narrate import delivered
from syncproof.models.operations import GhostCheck, GhostUpdate
from syncproof.models.outbox import ADD
from syncproof.models.system import System
from syncproof.models.transitions import Failure, State, Step, Transition, differences


class Move(NamedTuple):
    """A step of a run as a change of some places of the state.

    ``looks`` are the places on which it depends, None for all; ``writes`` are (place, value
    before, value after) of all that it sets. ``issues`` are the cells of each put that it issues;
    ``drains`` says that it waits for the puts of its process.
    """

    step: Step
    looks: frozenset[int] | None
    writes: tuple[tuple[int, int, int], ...]
    failures: tuple[Failure, ...]
    issues: tuple[tuple[int, ...], ...] = ()
    drains: bool = False


class Ends(NamedTuple):
    """What of the end of a run shows the failure: its last step, or what the places ``last`` hold
    and how those of ``ever`` came to hold what they do."""

    last: Collection[int] = ()
    ever: Collection[int] = ()


class _Footprint(NamedTuple):
    """What an action of a node always looks at and sets, outboxes left out; ``drains`` and
    ``issues`` as in a move."""

    members: tuple[int, ...]
    looks: frozenset[int]
    places: tuple[int, ...]
    minds_outbox: bool
    issues: tuple[tuple[int, ...], ...]
    drains: bool


class Footprints:
    """What the steps of a system depend on and what they set, as places of the state."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._is_plain = is_plain(system)
        self._actions: dict[tuple[int, int, int], _Footprint] = {}
        self._added: dict[tuple[int, Step], frozenset[int]] = {}

    def move(self, state: State, transition: Transition) -> Move:
        """A step that is taken from a state."""
        step, after, failures = transition.step, transition.state, transition.failures
        if not self._is_plain:
            changed = differences(state, after)
            writes = tuple([(place, state[place], new) for place, new in changed])
            return Move(step, None, writes, failures)
        if step.kind != "process":
            looks, places = self._of_fabric(state, step)
            writes = tuple([(place, state[place], after[place]) for place in places])
            return Move(step, looks, writes, failures)
        found = self._of_action(state, step)
        looks, places = found.looks, list(found.places)
        for member in found.members:
            outbox = self.system.first_outbox + member
            if found.minds_outbox or self.system.node(after, member).state == "done":
                looks |= {outbox}
            if state[outbox] != after[outbox]:
                places.append(outbox)
        if self.system.features.ghosts and self._speaks_of_ghosts(state, step):
            looks |= {self.system.ghosts.at}
            places.append(self.system.ghosts.at)
        writes = tuple([(place, state[place], after[place]) for place in places])
        return Move(step, looks, writes, failures, found.issues, found.drains)

    def _of_action(self, state: State, step: Step) -> _Footprint:
        key = (step.process, state[step.process], step.what[0])
        found = self._actions.get(key)
        if found is None:
            action = self.system.node(state, step.process).actions[step.what[0]]
            found = self._actions[key] = self._find(step.process, action)
        return found

    def _find(self, process: int, action: Action) -> _Footprint:
        first, kind = self.system.first_cell, action.kind
        members = action.members or (process,)
        read = [first + cell for cell in action.cells]
        added = [first + cell for cell, _, mode in action.writes if mode == ADD]
        written = [first + cell for cell, _, _ in action.writes]
        written += read if kind is ActionKind.UPDATE else []
        return _Footprint(
            members,
            frozenset((*members, *read, *added)),
            tuple(dict.fromkeys((*members, *written))),
            action.ordered or kind in (ActionKind.ISSUE, ActionKind.FENCE, ActionKind.QUIET),
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

    def _of_fabric(self, state: State, step: Step) -> tuple[frozenset[int], list[int]]:
        first = self.system.first_cell
        outbox = self.system.first_outbox + step.process
        cells = [first + cell for cell in step.what]
        if step.kind != "land":
            return frozenset((outbox, *cells)), [outbox]
        key = (state[outbox], step)
        added = self._added.get(key)
        if added is None:
            writes = delivered(self.system, state, step).writes
            added = frozenset([first + cell for cell, _, mode in writes if mode == ADD])
            self._added[key] = added
        return added | {outbox}, [outbox, *cells]


def is_plain(system: System) -> bool:
    """Whether a state is no more than nodes, cells, outboxes and ghosts."""
    features = system.features
    return not (features.views or features.caches or features.twins or features.locks)


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
        looks = [place for place in move.looks or () if place not in self._outboxes]
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
