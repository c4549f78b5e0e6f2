"""Integer tables: the processes of a system as a search met them, without their Python roles.

A search fills the automata of a `System` on demand. `freeze` copies what it met into plain data,
`TableSystem` runs on that data alone. A step that was not met is an error of ours and raised: a
table that silently blocked there would turn a run into a deadlock that does not exist.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, replace
from types import FunctionType

from syncproof.models.automaton import Automaton
from syncproof.models.fabric import Profile
from syncproof.models.lowering import Action
from syncproof.models.memory import Cell
from syncproof.models.nodes import Edge, Ledger, Node, Place, Process, TokenKey
from syncproof.models.operations import Operation, Statement
from syncproof.models.system import System
from syncproof.models.transitions import Features
from syncproof.models.values import Values, typed

EdgeKey = tuple[int, tuple[int, ...]]
"""(action, the value numbers in the cells that it reads)."""

LedgerEntry = tuple[frozenset[TokenKey], frozenset[tuple[TokenKey, int]]]


class Unmet(Exception):
    """A step that the search before `freeze` did not meet: the table says nothing about it."""


@dataclass(frozen=True)
class TableEdge:
    """What one step does: the node it leads to, cells written, statements by their number."""

    target: int
    writes: tuple[tuple[int, int], ...]
    statements: int


@dataclass(frozen=True)
class TableNode:
    """A node: its actions and, for each edge met, what it does (None: it blocks).

    ``state`` is "run", "done" or "error". ``operation`` and ``place`` are for reports; the
    operation's own functions are gone, so nothing can run them.
    """

    state: str
    actions: tuple[Action, ...]
    edges: Mapping[EdgeKey, TableEdge | None]
    ledger: int
    in_sweep: bool
    operation: Operation | None
    place: Place | None
    error: BaseException | None


@dataclass(frozen=True)
class ProcessTable:
    """One process: its nodes by number, the first one, and what it says before its first step."""

    process: Process
    nodes: tuple[TableNode, ...]
    first: int
    first_statements: int


@dataclass(frozen=True)
class Tables:
    """Everything that a product of processes and fabric is made of, as numbers and plain values.

    ``values[n]`` is the value with number n, ``initial[c]`` the number of the value that cell c
    starts with, ``statements[s]`` what a step says, ``ledger[n]`` the tokens sent and consumed.
    """

    processes: tuple[ProcessTable, ...]
    cells: tuple[Cell, ...]
    values: tuple[Hashable, ...]
    initial: tuple[int, ...]
    statements: tuple[tuple[Statement, ...], ...]
    ledger: tuple[LedgerEntry, ...]
    profile: Profile
    features: Features
    lines: tuple[tuple[int, ...], ...]
    ghost_initial: Mapping[str, Hashable]


def freeze(system: System) -> Tables:
    """The tables of a system, complete for what was asked of its automata so far.

    Nodes, values and ledgers keep their numbers, so states of both systems are the same tuples as
    far as these go; outboxes, caches, views and ghosts are numbered as each system meets them.
    """
    statements = _Statements()
    return Tables(
        tuple(_process_table(each, statements) for each in system.automata),
        system.cells,
        tuple(system.values._known),
        tuple(system.initial_value(cell) for cell in range(len(system.cells))),
        tuple(statements.known),
        tuple(system.ledger.contents),
        system.automata[0].profile,
        system.features,
        system.caches.lines,
        dict(system.ghosts.initial),
    )


def _process_table(automaton: Automaton, statements: _Statements) -> ProcessTable:
    return ProcessTable(
        automaton.process,
        tuple(_table_node(node, statements) for node in automaton.nodes),
        automaton.first.number,
        statements.number(automaton.first_statements),
    )


def _table_node(node: Node, statements: _Statements) -> TableNode:
    edges = {
        key: None
        if edge is None
        else TableEdge(edge.target.number, edge.writes, statements.number(edge.statements))
        for key, edge in node.edges.items()
    }
    operation = node.operation
    if operation is not None:
        operation = replace(operation, predicate=None, update=None)
    return TableNode(
        node.state,
        node.actions,
        edges,
        node.ledger,
        node.in_sweep,
        operation,
        node.place,
        node.error,
    )


class _Statements:
    """Numbers for what steps say: equal numbers, equal words and equal effect on ghosts."""

    def __init__(self) -> None:
        self.known: list[tuple[Statement, ...]] = [()]
        self._number: dict[Hashable, int] = {(): 0}

    def number(self, statements: tuple[Statement, ...]) -> int:
        key = tuple(
            (type(each), *(_key(getattr(each, field.name)) for field in fields(each)))
            for each in statements
        )
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self.known)
            self.known.append(statements)
        return found


def _key(value: object) -> Hashable:
    """A key of a statement's attribute; functions that differ only in identity are equal."""
    if not isinstance(value, FunctionType):
        return typed(value)
    if value.__closure__ or value.__defaults__ or value.__kwdefaults__ or value.__dict__:
        return value
    return (FunctionType, value.__code__, id(value.__globals__))


class TableAutomaton(Automaton):
    """A process that follows its table; it has no role to run and makes no node."""

    def __init__(
        self, table: ProcessTable, statements: tuple[tuple[Statement, ...], ...], profile: Profile
    ) -> None:
        self.process = table.process
        self._profile = profile
        self.nodes = [_node(number, each) for number, each in enumerate(table.nodes)]
        for node, each in zip(self.nodes, table.nodes, strict=True):
            for key, edge in each.edges.items():
                node.edges[key] = (
                    None
                    if edge is None
                    else Edge(self.nodes[edge.target], statements[edge.statements], edge.writes)
                )
        self.first = self.nodes[table.first]
        self.first_statements = statements[table.first_statements]

    @property
    def profile(self) -> Profile:
        """The fabric profile that this process runs under."""
        return self._profile

    def edge(self, node: Node, action: int, values: tuple[int, ...]) -> Edge | None:
        """The step of ``node`` by its ``action``; `Unmet` if the table does not have it."""
        try:
            return node.edges[action, values]
        except KeyError:
            raise Unmet(
                f"{self.process}, node {node.number} at {node.place}: "
                f"action {action} on values {values} is not in the table"
            ) from None


def _node(number: int, table: TableNode) -> Node:
    return Node(
        number,
        table.state,
        table.operation,
        table.place,
        table.actions,
        table.ledger,
        error=table.error,
        in_sweep=table.in_sweep,
    )


class TableSystem(System):
    """The product over tables: the same states and steps as the system they were frozen from."""

    def __init__(self, tables: Tables) -> None:
        values, ledger = Values(), Ledger()
        for value in tables.values:
            values.number(value)
        ledger.contents = list(tables.ledger)
        super().__init__(
            [TableAutomaton(each, tables.statements, tables.profile) for each in tables.processes],
            tables.cells,
            values,
            tables.features,
            tables.lines,
            dict(tables.ghost_initial),
            tables.initial,
            ledger,
        )
