"""Mealy minimisation of tables: nodes from which a process does and says the same are merged.

Histories of values read are a sound identity of local states, but a large one: what a role has
read and forgotten keeps two nodes apart. Partition refinement merges them again, over tables with
loops too.

**What is compared.** Two nodes stay together only if they agree on (a) their state, actions and
whether they are inside a sweep, so that enabledness, fabric, races and step names are the same;
(b) the set of edges that were met, and for each of them whether it blocks, the cells it writes and
the statements it makes: outputs, not only targets, or "A was lost" would become "B was consumed";
(c) at the end of a role its ledger, by which exactly-once is judged (on the way there the ledger
need not be equal: it is determined by the one at the end, or nobody ever looks at it); (d) the
source line; (e) the class that each edge leads to.

**Why this is sound.** Map each state of the product to the one in which every node is replaced by
its class. By (a), (b) and (e) a state and its image have the same steps under the same names, with
the same writes, failures, reached places and ghost updates, and lead to states that are again
images: the map is a strong bisimulation that respects outputs. So verdicts, stuck states, races
and hangs are the same, and each run of the minimised tables is, step for step, a run of the
original.

**Edges that were not met.** A search meets edges on demand, so of two nodes one may know what it
does with a value and the other may not. Such nodes are *not* merged: the unknown edge might differ,
and a merged node would lend one node's edge to the other. With equal sets of edges met no edge is
ever lent, so this holds without assuming that the search was complete; what neither node met stays
`Unmet` and is raised.

**Counterexamples.** As lines are compared, the line and operation shown for a merged node are those
of each node in it; with ``keep_lines=False`` nodes of different lines may merge and one line
stands for all of them: then replay the steps on the original system to show lines, which is always
possible, because steps keep their names.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from syncproof.models.tables import EdgeKey, ProcessTable, TableEdge, TableNode, Tables


def minimise(tables: Tables, *, keep_lines: bool = True) -> Tables:
    """The tables with equal nodes of each process merged; each keeps its lowest-numbered one."""
    return replace(tables, processes=tuple(_minimised(p, keep_lines) for p in tables.processes))


def content(node: TableNode, keep_lines: bool) -> Hashable:
    """All that can be seen of a node and of its next step, but for where that step leads."""
    return (
        node.state,
        node.actions,
        node.in_sweep,
        str(node.error),
        node.ledger if node.state == "done" else None,
        (node.place, None if node.operation is None else node.operation.kind)
        if keep_lines
        else None,
        tuple((key, _output(node.edges[key])) for key in sorted(node.edges)),
    )


def _output(edge: TableEdge | None) -> Hashable:
    return None if edge is None else (edge.writes, edge.statements)


def _minimised(table: ProcessTable, keep_lines: bool) -> ProcessTable:
    nodes = table.nodes
    classes = coarsest([content(n, keep_lines) for n in nodes], [_targets(n) for n in nodes])
    number: dict[int, int] = {}
    kept: list[TableNode] = []
    for node, its_class in zip(nodes, classes, strict=True):
        if its_class not in number:
            number[its_class] = len(kept)
            kept.append(node)
    to = [number[each] for each in classes]
    merged = [replace(n, edges={k: _moved(e, to) for k, e in n.edges.items()}) for n in kept]
    return replace(table, nodes=tuple(merged), first=to[table.first])


def _moved(edge: TableEdge | None, to: Sequence[int]) -> TableEdge | None:
    return None if edge is None else replace(edge, target=to[edge.target])


def _targets(node: TableNode) -> list[int]:
    """Where the edges lead, in the order in which `content` lists them."""
    keys: list[EdgeKey] = sorted(node.edges)
    return [edge.target for edge in map(node.edges.__getitem__, keys) if edge is not None]


def coarsest(contents: Sequence[Hashable], targets: Sequence[Sequence[int]]) -> list[int]:
    """The class of each node in the coarsest partition that is stable.

    Stable: nodes of one class have equal ``contents`` and their targets are, one by one, in equal
    classes. When a class splits its largest part keeps the name and only predecessors of the others
    are looked at again, so n nodes with m edges take O(m log n) steps (Hopcroft, "An n log n
    algorithm for minimizing states in a finite automaton", 1971).
    """
    names: dict[Hashable, int] = {}
    class_of = [names.setdefault(each, len(names)) for each in contents]
    members: list[set[int]] = [set() for _ in names]
    before: list[list[int]] = [[] for _ in contents]
    for node, its_class in enumerate(class_of):
        members[its_class].add(node)
        for target in targets[node]:
            before[target].append(node)
    doubtful = {its_class: set(nodes) for its_class, nodes in enumerate(members)}
    while doubtful:
        its_class, nodes = doubtful.popitem()
        parts = _leaving(members[its_class], nodes, targets, class_of)
        for part in parts:
            members[its_class] -= part
            for node in part:
                class_of[node] = len(members)
            members.append(part)
        for each in (each for part in parts for node in part for each in before[node]):
            doubtful.setdefault(class_of[each], set()).add(each)
    return class_of


def _leaving(
    members: set[int],
    doubtful: set[int],
    targets: Sequence[Sequence[int]],
    class_of: Sequence[int],
) -> list[set[int]]:
    """The parts into which a class falls but its largest; nodes not doubtful all lead alike."""

    def leads_to(node: int) -> tuple[int, ...]:
        return tuple(class_of[target] for target in targets[node])

    parts: dict[tuple[int, ...], set[int]] = {}
    for node in doubtful:
        parts.setdefault(leads_to(node), set()).add(node)
    if len(doubtful) < len(members):
        alike = leads_to(next(node for node in members if node not in doubtful))
        if 2 * len(doubtful) < len(members):
            parts.pop(alike, None)
            return list(parts.values())
        parts.setdefault(alike, set()).update(members - doubtful)
    return sorted(parts.values(), key=len)[:-1]
