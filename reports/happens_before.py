"""What a run's steps depend on, as a graph in layers: the lanes side by side, causes above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from syncproof.models.verdict import Trace, TraceStep


class Why(Enum):
    """Why one step comes after another."""

    PROGRAM = "next in its program"
    PUT = "lands what it put"
    READ = "reads what landed"
    WRITE = "reads what was written"
    COMPLETION = "waits for this landing"
    ORDER = "lands in this order"
    MISSING = "nothing orders them"


@dataclass(frozen=True)
class Edge:
    """``second`` comes after ``first``, both numbers of steps."""

    first: int
    second: int
    why: Why


@dataclass(frozen=True)
class Node:
    """A step, ``layer`` deep in causes, in ``column`` of its lane."""

    step: int
    lane: str
    layer: int
    column: int


@dataclass(frozen=True)
class Graph:
    """The steps that explain a failure; ``widths`` are the columns that each lane needs."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    widths: Mapping[str, int]

    @property
    def depth(self) -> int:
        """The number of layers."""
        return max((node.layer + 1 for node in self.nodes), default=0)


def graph_of(trace: Trace) -> Graph:
    """The graph of the steps that a trace shows, with the order that is missing."""
    shown = set(trace.shown)
    layers: dict[int, int] = {}
    taken: dict[tuple[str, int], int] = {}
    nodes: list[Node] = []
    edges: list[Edge] = []
    for number in sorted(shown):
        step = trace.steps[number]
        causes = [cause for cause in step.after if cause in shown]
        layer = 1 + max((layers[cause] for cause in causes), default=-1)
        layers[number] = layer
        column = taken.get((step.actor, layer), 0)
        taken[step.actor, layer] = column + 1
        nodes.append(Node(number, step.actor, layer, column))
        edges += [Edge(cause, number, _why(trace.steps, cause, number)) for cause in causes]
    if len(trace.unordered) == 2 and shown.issuperset(trace.unordered):
        edges.append(Edge(*trace.unordered, Why.MISSING))
    widths: dict[str, int] = {}
    for (lane, _), count in taken.items():
        widths[lane] = max(count, widths.get(lane, 0))
    return Graph(tuple(nodes), tuple(edges), widths)


def _why(steps: Sequence[TraceStep], cause: int, number: int) -> Why:
    early, late = steps[cause], steps[number]
    if late.put == cause:
        return Why.PUT
    if late.kind != "process":
        return Why.ORDER
    if {early.actor, *early.joined} & {late.actor, *late.joined}:
        return Why.PROGRAM
    landed = early.what[:-1] if early.kind == "land" else early.writes
    if set(landed) & set(late.reads):
        return Why.READ if early.kind == "land" else Why.WRITE
    return Why.COMPLETION
