"""Why a consume gets its whole block: the edges without which z3 could not prove it.

The query "this consume gets anything else" is unsatisfiable. Of the edges that an unsatisfiable
core names, each is left out in turn if the rest will do; what stays is needed. A run is over where
a consume goes wrong, so that what another process does later may itself be the reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import networkx
import z3

from syncproof.checkers.smt.encoding import Encoding
from syncproof.checkers.smt.events import Landing, Mark, Write
from syncproof.checkers.smt.queries import Queries
from syncproof.checkers.smt.solving import Model, Solver
from syncproof.checkers.smt.terms import Term, any_of, implies
from syncproof.checkers.smt.uncovered import Uncovered
from syncproof.checkers.smt.unrolling import Arc, Point, Unrolling
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.lowering import ActionKind
from syncproof.models.narrate import line_of
from syncproof.models.operations import Consumed
from syncproof.models.system import System
from syncproof.models.values import together, token_text
from syncproof.models.verdict import Carried, Order
from syncproof.models.verdict import Event as Told

Event = Point | Landing | Mark
Edge = tuple[Event, Event, str]


COMES_AFTER, READS = "comes after", "reads"


class TooLarge(Exception):
    """More than may be spent on an explanation."""


@dataclass(frozen=True)
class Effort:
    """How much may be spent: points of the unrolled roles, and z3's own steps for all queries.

    Both are counted and not timed, so that equal questions get equal answers. 0 is no limit.
    """

    points: int = 0
    steps: int = 0


def explain(
    instance: Instance, *, effort: Effort = Effort(), is_every: bool = True
) -> tuple[tuple[Carried, ...], int]:
    """The consumes of a complete run under one assignment, that with the last of all values.

    Every one, or the last of each role and line; and how many there are. Raises `Uncovered` where
    the encoding does not cover the protocol, and `TooLarge`.
    """
    choices: dict[Hashable, Hashable] = {
        name: values[-1] for name, values in instance.initial_choices().items()
    }
    while True:
        try:
            system = instance.system(choices)
            return _explain(system, effort, is_every)
        except Unresolved as choice:
            choices[choice.name] = choice.values[-1]


def _explain(system: System, effort: Effort, is_every: bool) -> tuple[tuple[Carried, ...], int]:
    asked = frozenset(("happens-before",))
    unrolling = Unrolling(system, asked)
    points = sum(1 for _ in unrolling.all_points())
    if effort.points and points > effort.points:
        raise TooLarge(f"its roles have {points:,} steps, more than {effort.points:,}")
    encoding = Encoding(unrolling)
    queries = Queries(encoding, asked)
    prover = _Prover(encoding, effort.steps)
    complete = prover.model(queries.maximal, queries.goes_on, queries.all_done)
    if complete is None:
        raise UserError("no run is complete, so that no consume is explained", where="--why")
    found: dict[Hashable, tuple[Arc, Consumed]] = {}
    consumes = 0
    for point in encoding.unrolling.all_points():
        for arc in point.arcs:
            for said in arc.edge.statements:
                if not isinstance(said, Consumed) or said.failure:
                    continue
                if complete.holds(encoding.taken[arc]):
                    consumes += 1
                    role = system.automata[point.process].process.role
                    found[consumes if is_every else (role, point.node.place)] = arc, said
    joint = _joint(encoding, complete)
    told = (_explained(prover, complete, joint, arc, said) for arc, said in found.values())
    return tuple(told), consumes


class _Prover:
    """The constraints of an encoding, those with a label under an assumption each."""

    def __init__(self, encoding: Encoding, steps: int = 0) -> None:
        self.encoding = encoding
        self._names: dict[object, Term] = {}
        self._label: dict[Term, object] = {}
        constraints = []
        for constraint, label in zip(encoding.constraints, encoding.labels, strict=True):
            group = _group(label)
            named = constraint if group is None else implies(self._name(group), constraint)
            constraints.append(named)
        self._solver = Solver(encoding, constraints)
        self._ends = self._solver.spent() + steps if steps else 0

    def _name(self, group: object) -> Term:
        if group not in self._names:
            name = self._names[group] = self.encoding.proposition("because")
            self._label[name] = group
        return self._names[group]

    def model(self, *conditions: Term) -> Model | None:
        """A run under all constraints that meets the conditions, or None."""
        answer = self._answer((*self._names.values(), *conditions))
        return self._solver.model() if answer == z3.sat else None

    def holds_without(self, condition: Term, needed: Iterable[object]) -> bool:
        """Whether ``condition`` cannot be met under the labels alone that are ``needed``."""
        names = (self._names[each] for each in needed)
        return bool(self._answer((*names, condition)) == z3.unsat)

    def _answer(self, conditions: Iterable[Term]) -> z3.CheckSatResult:
        left = max(self._ends - self._solver.spent(), 1) if self._ends else 0
        answer = self._solver.answer(conditions, steps=left)
        if answer == z3.unknown:
            raise TooLarge("z3 needs more steps than may be spent unasked")
        return answer

    def needed_against(self, condition: Term) -> list[object] | None:
        """Labels without any of which ``condition`` could be met; None if it can be met anyway."""
        if not self.holds_without(condition, self._names):
            return None
        core = self._core()
        for label in list(core):
            if label in core and self.holds_without(condition, [e for e in core if e != label]):
                core = self._core()
        return core

    def _core(self) -> list[object]:
        return [self._label[name] for name in self._solver.core() if name in self._label]


def _group(label: object) -> object:
    """What of a label is kept or left out together: a read with all that says it is the last."""
    if isinstance(label, tuple) and label[0] in ("reads", "last"):
        name = label[1] if isinstance(label[1], tuple) else ("step", *label[1:])
        return ("reads", name)
    return label


def _joint(encoding: Encoding, complete: Model) -> dict[Event, Point]:
    """For each point at which a process meets others in the run, one that stands for all."""
    first: dict[tuple[str, int], Point] = {}
    found: dict[Event, Point] = {}
    for point in encoding.unrolling.all_points():
        for number, action in enumerate(point.node.actions):
            if action.kind is ActionKind.SYNC and complete.holds(encoding.step[point, number]):
                meeting = (action.group, point.meeting(action.group))
                found[point] = first.setdefault(meeting, point)
    return found


def _explained(
    prover: _Prover, complete: Model, joint: dict[Event, Point], arc: Arc, said: Consumed
) -> Carried:
    encoding = prover.encoding
    process = str(encoding.system.automata[arc.source.process].process)
    token, line = token_text(said.key), line_of(arc.source.node)
    wrong = [
        encoding.taken[other]
        for other in arc.source.arcs
        if other.action == arc.action and other.failures
    ]
    needed = prover.needed_against(any_of(wrong)) if wrong else []
    if needed is None:
        return Carried(token, process, line)
    graph = networkx.DiGraph()
    for label in needed:
        for source, target, why in _edges(encoding, complete, label):
            first, second = joint.get(source, source), joint.get(target, target)
            if first is not second:
                graph.add_edge(first, second, why=why)
    data = _data_edges(encoding, complete, arc)
    chain = _chain(graph, data, arc.source, set(joint.values()))
    small = _contracted(graph, chain)
    known = {(a, b): why for a, b, why in data}
    for pair in pairwise(chain):
        if pair not in small.edges:
            small.add_edge(*pair, why=known.get(pair, COMES_AFTER))
    small.add_nodes_from(chain)
    order = {event: place for place, event in enumerate(networkx.topological_sort(small))}
    edges = sorted((order[a], order[b], why) for a, b, why in small.edges(data="why"))
    return Carried(
        token,
        process,
        line,
        tuple(_event(encoding, event, event in joint) for event in order),
        tuple(Order(*each) for each in edges),
        tuple(order[event] for event in chain),
    )


def _edges(encoding: Encoding, complete: Model, label: object) -> list[Edge]:
    """The edges that a label stands for, in the complete run."""
    assert isinstance(label, tuple)
    kind = label[0]
    if kind == "program":
        return [(label[1].source, label[1].target, COMES_AFTER)]
    if kind == "landing":
        return [(label[1].point, label[1], "is put by")]
    if kind == "quiet":
        return [(label[1], label[2], "waits for")]
    if kind == "behind":
        return [(label[1], label[2], "does not overtake")]
    if kind in ("order", "fence", "fenced"):
        return [(label[1], label[2], "lands after")]
    if kind == "sync":
        return []
    name = label[1]
    reader = name[1] if name[0] == "step" else None
    if not isinstance(reader, Point):
        return []
    return [
        (write.landing, reader, READS)
        for write in _sources(encoding, complete, name)
        if write.landing is not None
    ]


def _sources(encoding: Encoding, complete: Model, name: object) -> list[Write]:
    reading = encoding.readings[name]
    return [
        write
        for sources in reading.sources.values()
        for write, term in sources
        if complete.holds(term)
    ]


def _data_edges(encoding: Encoding, complete: Model, arc: Arc) -> list[Edge]:
    """From the put whose block is consumed to the consume."""
    name = ("step", arc.source, arc.action)
    found: list[Edge] = []
    for write in _sources(encoding, complete, name):
        if write.landing is not None:
            found.append((write.landing.point, write.landing, "is put by"))
            found.append((write.landing, arc.source, READS))
    return found


def _chain(graph: Any, data: list[Edge], consume: Point, joint: set[Point]) -> list[Event]:
    """From the put to the consume: by way of the waits and syncs between, if there are any."""
    if not data:
        return [consume]
    put, landing = data[0][0], data[0][1]
    through = graph.copy()
    through.add_edge(put, landing, why="is put by")
    if through.has_edge(landing, consume):
        through.remove_edge(landing, consume)
    if consume in networkx.descendants(through, put):
        path = list(networkx.shortest_path(through, put, consume))
        return [
            event
            for event in path
            if event in (put, consume) or event in joint or not _is_on_the_way(through, event)
        ]
    return [put, landing, consume]


def _is_on_the_way(graph: Any, event: Event) -> bool:
    """Whether a process only comes past: all that is before it is its own."""
    ways = (graph.edges[before, event]["why"] for before in graph.predecessors(event))
    return isinstance(event, Point) and all(why == COMES_AFTER for why in ways)


def _contracted(graph: Any, kept: list[Event]) -> Any:
    """The graph with runs of program order of one process drawn as one."""
    small = graph.copy()
    for event in graph:
        before, after = list(small.predecessors(event)), list(small.successors(event))
        if event not in kept and len(before) == len(after) == 1:
            ways = {small.edges[before[0], event]["why"], small.edges[event, after[0]]["why"]}
            if ways == {COMES_AFTER} and not small.has_edge(before[0], after[0]):
                small.remove_node(event)
                small.add_edge(before[0], after[0], why=COMES_AFTER)
    return small


# In words


def _event(encoding: Encoding, event: Event, is_joint: bool) -> Told:
    """An event by name; steps have numbers, as a line is passed in every round."""
    system = encoding.system
    if isinstance(event, Landing):
        writes = event.packet.writes
        slots = dict.fromkeys(str(system.cells[cell].slot) for cell, _, _ in writes)
        values = (
            "a copy" if event.packet.reads else together(system.values[v] for _, v, _ in writes)
        )
        text = f"{values} lands at {', '.join(slots)}"
        return Told("fabric", text, line_of(event.point.node), event.point.number)
    point = event.point if isinstance(event, Mark) else event
    process, operation = system.automata[point.process].process, point.node.operation
    line = line_of(point.node)
    if operation is None:
        return Told(str(process), "returns", line, point.number)
    if is_joint:
        return Told(str(operation.group), operation.kind.value, line, point.number)
    about = f" {operation.slot or operation.group}" if operation.slot or operation.group else ""
    return Told(str(process), f"{operation.kind.value}{about}", line, point.number)


__all__ = ["Encoding", "Queries", "Uncovered", "Unrolling", "explain"]
