"""What becomes of each round in a step, and the tests that the step depends on.

A state is read as a *control state* and the rounds in it, each at its *place*. Where the rounds
behind a step come from is taken from the operation itself, not from their values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from syncproof.checkers.unbounded.channel import Needed, NotCovered
from syncproof.checkers.unbounded.frames import Framed, HomeEdge, moved_statement
from syncproof.checkers.unbounded.search import Graph
from syncproof.checkers.unbounded.system import RoundSystem
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.outbox import Element
from syncproof.models.rounds import Old, Round, mapped
from syncproof.models.transitions import State, Step, Transition
from syncproof.models.values import typed

Place = tuple[Any, ...]
"""Where a round stands: ("round", process), ("cell", cell, place), ..."""

Term = tuple[Place | None, int]
"""A round of the state before a step, and what is added to it; None for a plain number."""

COVERED = (
    ActionKind.READ,
    ActionKind.ISSUE,
    ActionKind.QUIET,
    ActionKind.FENCE,
    ActionKind.SYNC,
)


@dataclass(frozen=True)
class Reading:
    """A state as control and rounds."""

    control: Hashable
    rounds: dict[Place, int]


class Reader:
    """Reads states; the same control state always has the same places."""

    def __init__(self, system: RoundSystem) -> None:
        self.system, self.values = system, system.round_values
        self._read: dict[int, tuple[Hashable, tuple[int, ...]]] = {}

    def value(self, number: int) -> tuple[Hashable, tuple[int, ...]]:
        """A value without its rounds, and these in order."""
        if number not in self._read:
            found: list[int] = []

            def without(each: Round) -> Hashable:
                if type(each) is Old:
                    return ("old", each.least_)
                found.append(each.number_)
                return ("round", each.least_)

            shape = typed(mapped(self.values.plain(number), without))
            self._read[number] = (shape, tuple(found))
        return self._read[number]

    def elements(self, outbox: tuple[Element, ...]) -> list[tuple[Hashable, Element]]:
        """The puts in flight in an order that does not depend on their rounds alone."""
        shapes = [
            (
                each.packet._replace(writes=()),
                tuple(
                    (c, None if v < 0 else self.value(v)[0], m) for c, v, m in each.packet.writes
                ),
                tuple(sorted(repr(outbox[i].packet[1:]) for i in each.after)),
                len(each.read_after),
            )
            for each in outbox
        ]
        numbers = [tuple(self.value(v)[1] for _, v, _ in e.packet.writes if v >= 0) for e in outbox]
        order = sorted(range(len(outbox)), key=lambda i: (repr(shapes[i]), numbers[i]))
        return [(repr(shapes[i]), outbox[i]) for i in order]

    def read(self, state: State) -> Reading:
        """A state as control and rounds."""
        system, rounds = self.system, dict[Place, int]()
        control: list[Hashable] = []
        for process in range(system.processes):
            node = system.node_of(state, process)
            assert node.home is not None
            control.append(node.home.number)
            if node.round is not None:
                rounds["round", process] = node.round
        for cell in range(len(system.cells)):
            control.append(self._note(rounds, ("cell", cell), system.value(state, cell)))
        for owner in range(system.processes):
            shapes = []
            for i, (shape, each) in enumerate(self.elements(system.outbox(state, owner))):
                shapes.append(shape)
                for k, (_, number, _) in enumerate(each.packet.writes):
                    if number >= 0:
                        self._note(rounds, ("flight", owner, i, k), number)
            control.append(tuple(shapes))
        control.append(tuple(self._note_beside(rounds, state)))
        return Reading(tuple(control), rounds)

    def beside(self, state: State) -> list[tuple[int, int]]:
        """Choices, tokens and ghosts in an order of their own."""
        pairs = self.system.beside.pairs(self.system.beside_of(state))
        return sorted(pairs, key=lambda p: (repr(self.value(p[0])[0]), self.value(p[0])[1]))

    def _note_beside(self, rounds: dict[Place, int], state: State) -> Iterator[Hashable]:
        for i, (name, value) in enumerate(self.beside(state)):
            yield self._note(rounds, ("name", i), name), self._note(rounds, ("about", i), value)

    def _note(self, rounds: dict[Place, int], place: Place, number: int) -> Hashable:
        shape, found = self.value(number)
        for j, value in enumerate(found):
            rounds[(*place, j)] = value
        return shape


class Stepper:
    """Where the rounds of the state behind a step come from, and the tests that led to it."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.system = graph, graph.system
        self.reader = Reader(graph.system)
        self.lookback = graph.quotient.lookback

    def tests(self, state: State, transition: Transition) -> list[Any]:
        """The tests of a step: (test, term, term or number, how it came out, process)."""
        found: list[Any] = []
        for process, edge, node, action in self._edges(state, transition.step, transition.state):
            found += self._tests(state, process, edge, node, action)
        return found

    def waiting(self, state: State) -> list[Any]:
        """The tests by which processes do not go on."""
        system, found = self.system, list[Any]()
        system.channel.answers = system.beside.answers(system.beside_of(state))
        for process in range(system.processes):
            node = system.node_of(state, process)
            for number, action in enumerate(node.actions):
                if action.kind is ActionKind.READ:
                    values = tuple(system.value(state, cell) for cell in action.cells)
                    try:
                        edge = system.framed[process].home_edge(node, number, values)
                    except Needed:
                        continue  # it goes on, one way or another
                    if edge.edge is None:
                        found += self._tests(state, process, edge, node, action)
        return found

    def aged(
        self, after: State, target: State
    ) -> tuple[dict[Place, Place], list[tuple[Place, list[int]]]]:
        """Where each place of ``target`` was before it was moved, and the places that are
        forgotten, each with the processes that must have passed it."""
        system, quotient = self.system, self.graph.quotient
        kept: dict[Place, Place] = {}
        forgotten: list[tuple[Place, list[int]]] = []
        rounds = quotient.rounds(after)
        running = [p for p, each in enumerate(rounds) if each is not None]
        by, horizon = quotient.moves(after)
        for process in range(system.processes):
            if system.node_of(target, process).round is not None:
                kept["round", process] = ("round", process)

        def follow(number: int, was: Place, now: Place) -> None:
            place = 0
            for j, value in enumerate(self.reader.value(number)[1]):
                if value - by >= horizon:
                    kept[(*now, place)] = (*was, j)
                    place += 1
                else:
                    forgotten.append(((*was, j), running))

        for cell in range(len(system.cells)):
            follow(system.value(after, cell), ("cell", cell), ("cell", cell))
        for owner in range(system.processes):
            later = [e for _, e in self.reader.elements(system.outbox(target, owner))]
            for i, (_, each) in enumerate(self.reader.elements(system.outbox(after, owner))):
                packet = quotient.packet(each.packet, by, horizon)
                at = next(n for n, e in enumerate(later) if e.packet == packet)
                later[at] = Element(packet._replace(target=-2), (), ())
                for k, (_, number, _) in enumerate(each.packet.writes):
                    if number >= 0:
                        follow(number, ("flight", owner, i, k), ("flight", owner, at, k))
        self._aged_beside(after, target, by, horizon, kept, forgotten)
        return kept, forgotten

    def _aged_beside(
        self,
        after: State,
        target: State,
        by: int,
        horizon: int,
        kept: dict[Place, Place],
        forgotten: list[tuple[Place, list[int]]],
    ) -> None:
        quotient, values = self.graph.quotient, self.system.round_values
        rounds = quotient.rounds(after)
        later = {name: i for i, (name, _) in enumerate(self.reader.beside(target))}
        names = quotient.names(after, by, horizon)
        for i, (name, _) in enumerate(self.reader.beside(after)):
            now = names[name]
            if now is not None and len(self.reader.value(now)[1]) != len(
                self.reader.value(name)[1]
            ):
                raise NotCovered("the invariant does not cover tokens that are lost")
            key = values.plain(name)
            assert isinstance(key, tuple)
            about = mapped(key[1], lambda r: "r")
            askers = quotient.askers.get(about, set()) if key[0] == "choice" else None
            for j in range(len(self.reader.value(name)[1])):
                if now is not None:
                    kept["name", later[now], j] = ("name", i, j)
                    continue
                passed = [
                    p
                    for p, each in enumerate(rounds)
                    if each is not None and (askers is None or p in askers)
                ]
                forgotten.append((("name", i, j), passed))

    def _edges(
        self, state: State, step: Step, after: State
    ) -> Iterator[tuple[int, HomeEdge, Framed, Action]]:
        if step.kind == "land":
            return
        if step.kind != "process":
            raise NotCovered(f"the invariant does not cover the step {step.kind}")
        system = self.system
        system.channel.answers = {
            **system.beside.answers(system.beside_of(state)),
            **system.beside.answers(system.beside_of(after)),
        }
        action = system.node(state, step.process).actions[step.what[0]]
        if action.kind not in COVERED:
            raise NotCovered(f"the invariant does not cover a step that is an {action.kind.value}")
        for member in action.members or (step.process,):
            node = system.node_of(state, member)
            number = 0 if action.members else step.what[0]
            values = tuple(system.value(state, cell) for cell in node.actions[number].cells)
            edge = system.framed[member].home_edge(node, number, values)
            yield member, edge, node, node.actions[number]

    def _tests(
        self, state: State, process: int, edge: HomeEdge, node: Framed, action: Action
    ) -> Iterator[Any]:
        own = ("round", process)
        sources = self._sources(state, process, node, action)
        for test, one, other, result in edge.tests:
            for left in self._places(one, own, node, sources):
                for right in self._places(other, own, node, sources):
                    if test != "old" and "unknown" in (left, right):
                        raise NotCovered("the invariant does not cover a test of a round long past")
                    yield test, left, right, result, process
        for origin in edge.kept:
            for place, value in sources.get(origin, ()):
                yield "-", (place, 0), (own, 0), value - (node.round or 0), process

    def _sources(
        self, state: State, process: int, node: Framed, action: Action
    ) -> dict[Hashable, list[tuple[Place, int]]]:
        """The places of the state that a round read by the role may have come from."""
        system, found = self.system, dict[Hashable, list[tuple[Place, int]]]()
        assert node.home is not None
        base = system.framed[process].home.base(node.home)
        bound = None if base is None else base - 1 - self.lookback
        for cell in action.cells:
            number = system.value(state, cell)
            fed = system.round_values.fed(number, -node.shift, bound)
            held: list[Round] = []
            mapped(system.round_values.plain(number), held.append)
            place = 0
            for j, each in enumerate(held):
                if type(each) is not Old:
                    found.setdefault((fed, j), []).append((("cell", cell, place), each.number_))
                    place += 1
        return found

    def _places(
        self, term: Any, own: Place, node: Framed, sources: dict[Hashable, list[tuple[Place, int]]]
    ) -> list[Any]:
        origin, value = term
        if origin == "number":
            return [value]
        if origin is None and node.round is None:
            return [value + node.shift]
        if origin is None:
            return [(own, value + node.shift - (node.round or 0))]
        known = sources.get(origin)
        return [(place, value + node.shift - was) for place, was in known] if known else ["unknown"]

    # What becomes of each round

    def terms(self, state: State, transition: Transition) -> dict[Place, Term]:
        """For each place of the state behind a step, before it is moved, where it comes from."""
        after, step = transition.state, transition.step
        found: dict[Place, Term] = {}
        for process in range(self.system.processes):
            old = self.system.node_of(state, process).round
            new = self.system.node_of(after, process).round
            if new is not None:
                found["round", process] = (
                    (None, new) if old is None else (("round", process), new - old)
                )
        self._cells(state, after, step, found)
        for owner in range(self.system.processes):
            self._flight(state, after, owner, found)
        # What is said behind the very first step has rounds that are what they are.
        self._beside(state, after, step, found)
        return found

    def _cells(self, state: State, after: State, step: Step, found: dict[Place, Term]) -> None:
        for cell in range(len(self.system.cells)):
            same = self.system.value(state, cell) == self.system.value(after, cell)
            if not same and step.kind != "land":
                raise NotCovered("the invariant does not cover a write at once")
            for j, _ in enumerate(self.reader.value(self.system.value(after, cell))[1]):
                if step.kind == "land" and cell in step.what:
                    i, k = self._delivered(state, step, cell)
                    found["cell", cell, j] = (("flight", step.process, i, k, j), 0)
                else:
                    found["cell", cell, j] = (("cell", cell, j), 0)

    def _delivered(self, state: State, step: Step, cell: int) -> tuple[int, int]:
        """The put in flight that lands, and which of its writes goes to the cell."""
        outbox = self.system.outbox(state, step.process)
        number = state[self.system.first_outbox + step.process]
        packets = [d.packet for d in self.system.deliveries(step.process, number) if d.step == step]
        if len(packets) != 1:
            raise NotCovered("the invariant does not cover two puts that may land alike")
        for i, (_, each) in enumerate(self.reader.elements(outbox)):
            if each.packet == packets[0] and not each.after:
                return i, [c for c, _, _ in each.packet.writes].index(cell)
        raise AssertionError("the put that lands is in flight")

    def _flight(self, state: State, after: State, owner: int, found: dict[Place, Term]) -> None:
        """Puts that stay keep their rounds; those that are issued have the role's own."""
        before = [e for _, e in self.reader.elements(self.system.outbox(state, owner))]
        round_now = self.system.node_of(state, owner).round
        for i, (_, each) in enumerate(self.reader.elements(self.system.outbox(after, owner))):
            at = next((n for n, b in enumerate(before) if b and b.packet == each.packet), None)
            if at is not None:
                before[at] = Element(each.packet._replace(target=-2), (), ())
            for k, (_, number, _) in enumerate(each.packet.writes):
                for j, value in enumerate(self.reader.value(number)[1] if number >= 0 else ()):
                    place = ("flight", owner, i, k, j)
                    if at is not None:
                        found[place] = (("flight", owner, at, k, j), 0)
                    elif round_now is None:
                        found[place] = (None, value)
                    else:
                        found[place] = (("round", owner), value - round_now)

    def _beside(self, state: State, after: State, step: Step, found: dict[Place, Term]) -> None:
        before = {name: i for i, (name, _) in enumerate(self.reader.beside(state))}
        for i, (name, value) in enumerate(self.reader.beside(after)):
            if self.reader.value(value)[1]:
                raise NotCovered("the invariant does not cover ghosts that hold rounds")
            for j, was in enumerate(self.reader.value(name)[1]):
                if name in before:
                    found["name", i, j] = (("name", before[name], j), 0)
                else:
                    process = self._who(state, step, after, name)
                    base = self.system.node_of(state, process).round
                    found["name", i, j] = (
                        (None, was) if base is None else (("round", process), was - base)
                    )

    def _who(self, state: State, step: Step, after: State, name: int) -> int:
        """The process that made a choice or said something in a step."""
        values = self.system.round_values
        about = values.plain(name)
        for process, edge, node, _ in self._edges(state, step, after):
            if any(values.moved(own, node.shift) == name for own, _ in edge.used):
                return process
            for said in edge.edge.statements if edge.edge else ():
                key = getattr(moved_statement(said, node.shift), "key", None)
                assert isinstance(about, tuple)
                if about[0] != "choice" and values.number((about[0], key)) == name:
                    return process
        raise NotCovered("the invariant does not know who said something")
