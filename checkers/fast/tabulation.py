"""What each agent does in each of its situations, filled in as the compiled loops ask for it.

An agent is a process or the fabric at one outbox. What it may do next depends on a few places of
the state, looked at one after another: a decision tree. Its leaf says the moves: which places get
which contents. The moves themselves are those of `System`; this module only finds out which places
they depend on, and checks that they change no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from syncproof.checkers.fast.place import Content, Place
from syncproof.checkers.fast.strides import Stride, Strides
from syncproof.checkers.fast.symmetry import Asymmetric, Orbit
from syncproof.models.errors import UserError
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.nodes import TooLong
from syncproof.models.outbox import ADD, Write
from syncproof.models.system import System
from syncproof.models.transitions import Access, Overfull, State, Transition


@dataclass(eq=False)
class Decision:
    """A place to look at, and where each of its codes leads: a decision or the number of a leaf."""

    place: Place
    children: dict[int, Decision | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Move:
    """A stride: the places that it changes with their codes, and whether it breaks a property."""

    changes: tuple[tuple[Place, int], ...]
    fails: bool


@dataclass(frozen=True)
class Leaf:
    """The moves of an agent in one situation, and the cells that they access."""

    moves: tuple[Move, ...]
    accesses: tuple[tuple[int, Access], ...]
    """(number of the move, what it accesses)."""
    is_process: bool


@dataclass(frozen=True)
class _Situation:
    """What an agent does in a state; ``own`` is its place if it is a member of an orbit."""

    agent: int
    state: State
    own: Place | None
    tested: list[Place]
    found: list[Stride]
    changes: list[dict[Place, Content]]
    accesses: tuple[tuple[int, Access], ...]

    def seen(self) -> object:
        """All that others can tell of it."""
        return (
            [None if place is self.own else place for place in self.tested],
            [
                {place: content for place, content in changes.items() if place is not self.own}
                for changes in self.changes
            ],
            [
                ([(f.property, f.expected) for f in each.failures], each.reached)
                for each in self.found
            ],
            self.accesses,
        )

    def held(self, move: int) -> Content:
        """What the member holds behind a move."""
        assert self.own is not None
        return self.changes[move].get(self.own, self.own.of(self.state))


class Tabulation:
    """The decision trees of all agents, first the processes and then their outboxes."""

    def __init__(self, strides: Strides) -> None:
        self.strides, self.system, self.layout = strides, strides.system, strides.layout
        layout = self.layout
        self.roots = [Decision(place) for place in (*layout.nodes, *layout.outboxes)]
        self.leaves: list[Leaf] = [Leaf((), (), True)]
        self.reached: set[str] = set()
        self.most_moves = [0 for _ in self.roots]
        self.fresh: list[tuple[Decision, int]] = []

    # Filling

    def fill(self, agent: int, state: State) -> None:
        """Add what an agent does in a state to its tree; for a member of an orbit, to all of its.

        Raises what `System.transitions` raises, as the situation is one of a state that was
        reached, and `Asymmetric`.
        """
        process = agent % self.system.processes
        if process not in self.layout.member_of:
            self._add(self._situation(agent, state))
            return
        if self._is_known(agent, state):
            return  # filled in when another member asked
        orbit, index = self.layout.member_of[process]
        found = [self._situation(agent, state)]
        for other, its_process in enumerate(orbit.processes):
            if other != index:
                swapped = orbit.swapped(state, index, other)
                try:
                    found.append(self._situation(agent - process + its_process, swapped))
                except (Overfull, TooLong, UserError):
                    raise Asymmetric("one member goes wrong where another does not") from None
        found.sort(key=lambda each: each.agent)
        self._number_in_lock_step(orbit, found)
        for each in found:
            self._add(each)

    def _is_known(self, agent: int, state: State) -> bool:
        here: Decision | int | None = self.roots[agent]
        while isinstance(here, Decision):
            code = here.place.known(here.place.of(state))
            here = None if code is None else here.children.get(code)
        return here is not None

    def _situation(self, agent: int, state: State) -> _Situation:
        process = agent % self.system.processes
        if agent < self.system.processes:
            found = self.system.process_transitions(state, process)
            tests = self._process_tests(state, process, found)
        else:
            found = self.system.told_apart([*self.system.landings(state, process)])
            tests = self._landing_tests(state, process)
        strides = [self.strides.along(state, each) for each in found]
        looked = (place for stride in strides for place in stride.looked)
        tested = list(dict.fromkeys((*tests, *looked)))
        own = self.layout.nodes[process] if process in self.layout.member_of else None
        if any(place in self.layout.members and place is not own for place in tested):
            raise Asymmetric("a step looks at one member of an orbit")
        accesses = tuple(
            (number, access)
            for number, each in enumerate(found)
            for access in self.system.accesses(state, each)
        )
        changes = [self._changes(state, each, tested) for each in strides]
        return _Situation(agent, state, own, tested, strides, changes, accesses)

    def _number_in_lock_step(self, orbit: Orbit, found: list[_Situation]) -> None:
        """Give what the members go on to hold its number; they must do the same."""
        if any(each.seen() != found[0].seen() for each in found):
            raise Asymmetric("members do different things")
        for move in range(len(found[0].found)):
            orbit.number(self.system, [each.held(move) for each in found])

    def _add(self, situation: _Situation) -> None:
        moves = tuple(
            Move(
                tuple((place, place.code(content)) for place, content in changes.items()),
                self._fails(stride),
            )
            for stride, changes in zip(situation.found, situation.changes, strict=True)
        )
        agent = situation.agent
        self.most_moves[agent] = max(self.most_moves[agent], len(moves))
        leaf = len(self.leaves) if moves else 0
        if moves:
            is_process = agent < self.system.processes
            self.leaves.append(Leaf(moves, situation.accesses, is_process))
        self._insert(self.roots[agent], situation.tested, situation.state, leaf)

    def _insert(self, root: Decision, tested: list[Place], state: State, leaf: int) -> None:
        here = root
        for number, place in enumerate(tested):
            assert here.place is place, "which place is looked at depends on those before"
            code = place.code(place.of(state))
            if code not in here.children:
                self.fresh.append((here, code))
            if number == len(tested) - 1:
                assert here.children.setdefault(code, leaf) == leaf, "a situation has one leaf"
                return
            child = here.children.get(code)
            if child is None:
                child = here.children[code] = Decision(tested[number + 1])
            assert isinstance(child, Decision), "a leaf does not depend on more"
            here = child

    def _fails(self, stride: Stride) -> bool:
        """Whether a stride breaks a property that is asked for. What it reaches is noted, as it is
        one of a state that was reached."""
        self.reached.update(stride.reached)
        return any(each.property in self.strides.asked for each in stride.failures)

    # What a step depends on

    def _process_tests(
        self, state: State, process: int, found: list[Transition]
    ) -> Iterator[Place]:
        """The places that the steps of a process depend on, in an order in which each is known to
        matter from those before it."""
        layout, system = self.layout, self.system
        yield layout.nodes[process]
        node = system.node(state, process)
        if node.state == "done":
            return
        movers = [process]
        for action in node.actions:
            if action.kind is ActionKind.SYNC:
                if process != min(action.members):
                    return
                for member in action.members:
                    yield layout.nodes[member]
                    if not found and not _is_at(system, state, member, action.group):
                        return
                movers = list(action.members)
            yield from self._action_tests(process, action)
        ends = any(system.node(t.state, mover).state == "done" for t in found for mover in movers)
        if ends:
            yield from (layout.outboxes[mover] for mover in movers)
        if found:
            yield from layout.ghosts

    def _action_tests(self, process: int, action: Action) -> Iterator[Place]:
        if action.kind in (ActionKind.READ, ActionKind.UPDATE):
            yield from (self.layout.atom_of[cell] for cell in action.cells)
        asks = action.kind in (ActionKind.ISSUE, ActionKind.QUIET, ActionKind.FENCE)
        if asks or action.ordered:
            yield self.layout.outboxes[process]
        yield from self._partly_written(action.writes)

    def _landing_tests(self, state: State, owner: int) -> Iterator[Place]:
        yield self.layout.outboxes[owner]
        number = state[self.system.first_outbox + owner]
        for each in self.system.deliveries(owner, number):
            if each.after < 0:
                yield from (self.layout.atom_of[cell] for cell in each.packet.reads)
            else:
                yield from self._partly_written(each.packet.writes)

    def _partly_written(self, writes: tuple[Write, ...]) -> Iterator[Place]:
        """The places of which something stays or is added to, so that it matters what was there."""
        whole = self._wholly_written(writes)
        for cell, _, _ in writes:
            place = self.layout.atom_of[cell]
            if place not in whole:
                yield place

    def _wholly_written(self, writes: tuple[Write, ...]) -> list[Place]:
        """The places whose whole content is replaced."""
        replaced = {self.system.first_cell + cell for cell, _, mode in writes if mode != ADD}
        places = dict.fromkeys(self.layout.atom_of[cell] for cell, _, _ in writes)
        return [place for place in places if replaced.issuperset(place.positions)]

    def _surely(self, state: State, transition: Transition) -> list[Place]:
        """The places that a step writes whatever was there before."""
        step = transition.step
        if step.kind == "process":
            action = self.system.node(state, step.process).actions[step.what[0]]
            return self._wholly_written(action.writes)
        if step.kind != "land":
            return []
        written = [
            each.packet.writes
            for each in self.system.deliveries(
                step.process, state[self.system.first_outbox + step.process]
            )
            if each.after >= 0 and each.step.what == step.what
        ]
        return self._wholly_written(written[0])

    def _changes(self, state: State, stride: Stride, tested: list[Place]) -> dict[Place, Content]:
        """What the places hold behind a stride; its free steps write nothing."""
        after, surely = stride.state, self._surely(state, stride.steps[0])
        changed = {i for i, (old, new) in enumerate(zip(state, after, strict=True)) if old != new}
        found: dict[Place, Content] = {}
        for place in dict.fromkeys((*tested, *surely)):
            if place in surely or not changed.isdisjoint(place.positions):
                found[place] = place.of(after)
            changed.difference_update(place.positions)
        assert not changed, "a step changes only what it depends on, or what it surely writes"
        return found


def _is_at(system: System, state: State, process: int, group: str) -> bool:
    """Whether a process stands at a sync of a group."""
    actions = system.node(state, process).actions
    return any(each.kind is ActionKind.SYNC and each.group == group for each in actions)
