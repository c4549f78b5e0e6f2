"""Why a consume gets its whole block: the edges without which z3 could not prove it.

The query "this consume gets anything else" is unsatisfiable. Of the edges that an unsatisfiable
core names, each is left out in turn if the rest will do; what stays is needed. A run is over where
a consume goes wrong, so that what another process does later may itself be the reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
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
from syncproof.models.operations import Consumed
from syncproof.models.system import System
from syncproof.models.values import together, token_text

Event = Point | Landing | Mark
Edge = tuple[Event, Event, str]


@dataclass(frozen=True)
class Explained:
    """One consume: what is consumed and where, the chain that carries it, what else is needed.

    ``chain`` is empty where the consume is not proved: some run gets something else.
    """

    token: str
    place: str
    chain: tuple[str, ...]
    needed: tuple[tuple[str, str, str], ...]
    graph: Any
    """The needed edges, a `networkx.DiGraph` over the texts of the events."""


def explain(instance: Instance) -> tuple[Explained, ...]:
    """Every consume of a complete run under one assignment, that with the last of all values.

    Raises `Uncovered` where the encoding does not cover the protocol.
    """
    choices: dict[Hashable, Hashable] = {
        name: values[-1] for name, values in instance.initial_choices().items()
    }
    while True:
        try:
            system = instance.system(choices)
            return _explain(system)
        except Unresolved as choice:
            choices[choice.name] = choice.values[-1]


def _explain(system: System) -> tuple[Explained, ...]:
    asked = frozenset(("happens-before",))
    encoding = Encoding(Unrolling(system, asked))
    queries = Queries(encoding, asked)
    prover = _Prover(encoding)
    complete = prover.model(queries.maximal, queries.goes_on, queries.all_done)
    if complete is None:
        raise UserError("no run is complete, so that no consume is explained", where="--why")
    found = []
    for point in encoding.unrolling.all_points():
        for arc in point.arcs:
            for said in arc.edge.statements:
                if not isinstance(said, Consumed) or said.failure:
                    continue
                if complete.holds(encoding.taken[arc]):
                    found.append(_explained(prover, complete, arc, said))
    return tuple(found)


class _Prover:
    """The constraints of an encoding, those with a label under an assumption each."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self._names: dict[object, Term] = {}
        self._label: dict[Term, object] = {}
        constraints = []
        for constraint, label in zip(encoding.constraints, encoding.labels, strict=True):
            group = _group(label)
            named = constraint if group is None else implies(self._name(group), constraint)
            constraints.append(named)
        self._solver = Solver(encoding, constraints)

    def _name(self, group: object) -> Term:
        if group not in self._names:
            name = self._names[group] = self.encoding.proposition("because")
            self._label[name] = group
        return self._names[group]

    def model(self, *conditions: Term) -> Model | None:
        """A run under all constraints that meets the conditions, or None."""
        answer = self._solver.answer((*self._names.values(), *conditions))
        return self._solver.model() if answer == z3.sat else None

    def holds_without(self, condition: Term, needed: Iterable[object]) -> bool:
        """Whether ``condition`` cannot be met under the labels alone that are ``needed``."""
        names = (self._names[each] for each in needed)
        return bool(self._solver.answer((*names, condition)) == z3.unsat)

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


def _explained(prover: _Prover, complete: Model, arc: Arc, said: Consumed) -> Explained:
    process = prover.encoding.system.automata[arc.source.process].process
    token, place = token_text(said.key), f"{process} {arc.source.node.place}"
    wrong = [
        prover.encoding.taken[other]
        for other in arc.source.arcs
        if other.action == arc.action and other.failures
    ]
    needed = prover.needed_against(any_of(wrong)) if wrong else []
    if needed is None:
        return Explained(token, place, (), (), networkx.DiGraph())
    graph = networkx.DiGraph()
    for label in needed:
        for source, target, why in _edges(prover.encoding, complete, label):
            graph.add_edge(source, target, why=why)
    data = _data_edges(prover.encoding, complete, arc)
    chain = _chain(graph, data, arc.source)
    texts = {event: _text(prover.encoding, event) for event in graph}
    rows = _contracted(graph)
    named = networkx.DiGraph()
    for source, target, why in rows:
        named.add_edge(texts[source], texts[target], why=why)
    return Explained(
        token,
        place,
        tuple(_text(prover.encoding, event) for event in chain),
        tuple((texts[a], why, texts[b]) for a, b, why in rows),
        named,
    )


def _edges(encoding: Encoding, complete: Model, label: object) -> list[Edge]:
    """The edges that a label stands for, in the complete run."""
    assert isinstance(label, tuple)
    kind = label[0]
    if kind == "program":
        return [(label[1].source, label[1].target, "then")]
    if kind == "landing":
        return [(label[1].point, label[1], "lands")]
    if kind == "quiet":
        return [(label[1], label[2], "before the quiet ends")]
    if kind == "behind":
        return [(label[1], label[2], "is not overtaken by")]
    if kind in ("order", "fence", "fenced"):
        return [(label[1], label[2], "lands before")]
    if kind == "sync":
        return []
    name = label[1]
    reader = name[1] if name[0] == "step" else None
    if not isinstance(reader, Point):
        return []
    return [
        (write.landing, reader, "is read by")
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
            found.append((write.landing.point, write.landing, "lands"))
            found.append((write.landing, arc.source, "is consumed by"))
    return found


def _chain(graph: Any, data: list[Edge], consume: Point) -> list[Event]:
    """From the put to the consume: by way of the wait that stands between, if one does."""
    if not data:
        return [consume]
    put, landing = data[0][0], data[0][1]
    through = graph.copy()
    through.add_edge(put, landing, why="lands")
    if through.has_edge(landing, consume):
        through.remove_edge(landing, consume)
    if consume in through and networkx.has_path(through, put, consume):
        path = list(networkx.shortest_path(through, put, consume))
        between = [e for e in path if not isinstance(e, Point) or _is_edge_of_reads(through, e)]
        return [put, *[e for e in between if e not in (put, consume)], consume]
    return [put, landing, consume]


def _is_edge_of_reads(graph: Any, event: Event) -> bool:
    return any(
        "then" not in graph.edges[before, event]["why"] for before in graph.predecessors(event)
    )


def _contracted(graph: Any) -> list[Edge]:
    """The edges with runs of program order of one process drawn as one."""
    small = graph.copy()
    for event in list(small):
        before, after = list(small.predecessors(event)), list(small.successors(event))
        if len(before) == len(after) == 1:
            ways = {small.edges[before[0], event]["why"], small.edges[event, after[0]]["why"]}
            if ways == {"then"} and not small.has_edge(before[0], after[0]):
                small.remove_node(event)
                small.add_edge(before[0], after[0], why="then")
    order = {event: i for i, event in enumerate(networkx.topological_sort(graph))}
    edges = sorted(small.edges(data="why"), key=lambda each: (order[each[0]], order[each[1]]))
    return [(a, b, why) for a, b, why in edges]


# In words


def _text(encoding: Encoding, event: Event) -> str:
    """An event by name; steps have numbers, as a line is passed in every round."""
    system = encoding.system
    if isinstance(event, Landing):
        writes = event.packet.writes
        slots = dict.fromkeys(str(system.cells[cell].slot) for cell, _, _ in writes)
        values = (
            "a copy" if event.packet.reads else together(system.values[v] for _, v, _ in writes)
        )
        where = f"{event.point.node.place}, step {event.point.number}"
        return f"{values} lands at {', '.join(slots)} (put at {where})"
    point = event.point if isinstance(event, Mark) else event
    process, operation = system.automata[point.process].process, point.node.operation
    if operation is None:
        return f"{process} returns"
    about = f" {operation.slot or operation.group}" if operation.slot or operation.group else ""
    where = f"{point.node.place}, step {point.number}"
    return f"{process} {operation.kind.value}{about} ({where})"


__all__ = ["Encoding", "Explained", "Queries", "Uncovered", "Unrolling", "explain"]
