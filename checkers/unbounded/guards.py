"""The tests on rounds that a step depends on, as claims about the integers of a state.

A claim is a text of SMT-LIB, which z3 reads faster than Python builds its terms. In it ``later``
is by how much all rounds of the state are later than they were found.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from syncproof.checkers.unbounded.channel import Needed, NotCovered
from syncproof.checkers.unbounded.frames import Framed, HomeEdge
from syncproof.checkers.unbounded.system import RoundSystem
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.rounds import Old, rounds_in
from syncproof.models.transitions import State, Step

Term = str

COVERED = (
    ActionKind.READ,
    ActionKind.ISSUE,
    ActionKind.QUIET,
    ActionKind.FENCE,
    ActionKind.SYNC,
)


def number(value: int) -> Term:
    """A number."""
    return str(value) if value >= 0 else f"(- {-value})"


def plus(term: Term, more: int) -> Term:
    """A number more than a term."""
    return f"(+ {term} {number(more)})" if more else term


def variable(found: int) -> Term:
    """A round of the state, whatever it is later than it was found."""
    return plus("later", found)


class Taken(NamedTuple):
    """What one process does in a step: the way that its role takes from a node."""

    process: int
    edge: HomeEdge
    node: Framed
    action: Action
    values: tuple[int, ...]


class Guards:
    """The tests that lead to a step, or that hold a process back."""

    def __init__(self, system: RoundSystem, lookback: int) -> None:
        self.system, self.lookback = system, lookback
        self._answers: dict[tuple[int, int], dict[int, int]] = {}
        self._claims: dict[tuple[int, ...], tuple[Term, ...]] = {}
        self._waiting: dict[tuple[int, ...], tuple[Term, ...]] = {}

    def taken(self, state: State, step: Step, after: State) -> list[Taken]:
        """The ways that roles take in a step."""
        if step.kind == "land":
            return []
        if step.kind != "process":
            raise NotCovered(f"the invariant does not cover the step {step.kind}")
        system = self.system
        system.channel.answers = self._choices(state, after)
        action = system.node(state, step.process).actions[step.what[0]]
        if action.kind not in COVERED:
            raise NotCovered(f"the invariant does not cover a step that is an {action.kind.value}")
        found = []
        for member in action.members or (step.process,):
            node = system.node_of(state, member)
            at = 0 if action.members else step.what[0]
            values = tuple([system.value(state, cell) for cell in node.actions[at].cells])
            edge = system.framed[member].home_edge(node, at, values)
            found.append(Taken(member, edge, node, node.actions[at], values))
        return found

    def _choices(self, state: State, after: State) -> dict[int, int]:
        beside, system = self.system.beside, self.system
        key = system.beside_of(state), system.beside_of(after)
        known = self._answers.get(key)
        if known is None:
            known = self._answers[key] = {**beside.answers(key[0]), **beside.answers(key[1])}
        return known

    def of(self, taken: Taken) -> tuple[Term, ...]:
        """The claims that a way is taken on all integers that the state stands for."""
        # An edge is kept by its node for good, so that its identity tells it from all others.
        key = (taken.process, id(taken.edge), taken.node.number, *taken.values)
        known = self._claims.get(key)
        if known is None:
            known = self._claims[key] = tuple(self._tests(taken))
        return known

    def waiting(self, state: State, process: int) -> tuple[Term, ...]:
        """The claims that a process that does not go on does not."""
        system = self.system
        node, beside = system.node_of(state, process), system.beside_of(state)
        cells = [c for each in node.actions if each.kind is ActionKind.READ for c in each.cells]
        if not cells:
            return ()
        key = (process, node.number, beside, *[system.value(state, cell) for cell in cells])
        known = self._waiting.get(key)
        if known is None:
            known = self._waiting[key] = tuple(self._held_back(state, process, node))
        return known

    def _held_back(self, state: State, process: int, node: Framed) -> Iterator[Term]:
        system = self.system
        system.channel.answers = system.beside.answers(system.beside_of(state))
        for at, action in enumerate(node.actions):
            if action.kind is ActionKind.READ:
                values = tuple(system.value(state, cell) for cell in action.cells)
                try:
                    edge = system.framed[process].home_edge(node, at, values)
                except Needed:
                    continue  # it goes on, one way or another
                if edge.edge is None:
                    yield from self.of(Taken(process, edge, node, action, values))

    def _tests(self, taken: Taken) -> Iterator[Term]:
        node, sources = taken.node, self._sources(taken)
        for test, one, other, result in taken.edge.tests:
            for left in _terms(one, node, sources):
                for right in _terms(other, node, sources):
                    yield self._claim(test, left, right, result, node)
        for origin in taken.edge.kept:
            for value in sources.get(origin, ()):
                own = variable(_own(node))
                yield f"(= (- {variable(value)} {own}) {number(value - _own(node))})"

    def _claim(
        self, test: str, left: Term | None, right: Term | None, result: Any, node: Framed
    ) -> Term:
        if right is None or (left is None and test != "old"):
            raise NotCovered("the invariant does not cover a test of a round long past")
        if test == "old":
            return f"(>= {right} {plus(variable(_own(node)), -1 - self.lookback)})"
        if test in ("-", "%"):
            return f"(= ({'-' if test == '-' else 'mod'} {left} {right}) {number(result)})"
        claim = f"({'=' if test == '==' else '<'} {left} {right})"
        return claim if result else f"(not {claim})"

    def _sources(self, taken: Taken) -> dict[Hashable, list[int]]:
        """The rounds of the state that a round read by the role may have come from."""
        system, found = self.system, dict[Hashable, list[int]]()
        node = taken.node
        assert node.home is not None
        base = system.framed[taken.process].home.base(node.home)
        bound = None if base is None else base - 1 - self.lookback
        for value in taken.values:
            fed = system.round_values.fed(value, -node.shift, bound)
            for j, each in enumerate(rounds_in(system.round_values.plain(value))):
                if type(each) is not Old:
                    found.setdefault((fed, j), []).append(each.number_)
        return found


def _own(node: Framed) -> int:
    if node.round is None:
        raise NotCovered("the invariant does not cover a test before a role counts its rounds")
    return node.round


def _terms(
    term: tuple[Hashable, int], node: Framed, sources: dict[Hashable, list[int]]
) -> list[Term | None]:
    """What a round or a number that a role tests may be; None for a round long past."""
    origin, value = term
    if origin == "number":
        return [number(value)]
    if origin is None and node.round is None:
        return [number(value + node.shift)]
    if origin is None:
        return [plus(variable(node.round or 0), value + node.shift - (node.round or 0))]
    known = sources.get(origin)
    if not known:
        return [None]
    return [plus(variable(was), value + node.shift - was) for was in known]
