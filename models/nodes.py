"""Nodes and edges of a process's table, and the tokens that a process has sent and consumed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncproof.models.lowering import Action, Progress
from syncproof.models.operations import Consumed, Operation, Sent, Statement
from syncproof.models.values import Block, Opaque, typed

LONGEST_HISTORY = 100_000


class TooLong(Exception):
    """A role goes on and on, and no two of its local states are shown to be the same."""


TokenKey = tuple[Hashable, ...]
"""(source, destination, token, round)."""


@dataclass(frozen=True)
class Place:
    """A line of a role's source, and the kernel line that the operation names."""

    file: str
    line: int
    text: str
    at: str = ""

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


@dataclass(frozen=True)
class Process:
    """One role on one core of one rank."""

    number: int
    role: str
    rank: int
    instance: int
    count: int

    def __str__(self) -> str:
        which = f"[{self.instance}]" if self.count > 1 else ""
        return f"{self.role}{which}@rank{self.rank}"


@dataclass(eq=False)
class Node:
    """A suspended role (``run``), one that returned (``done``) or went wrong (``error``).

    ``before`` is the node that it was first reached from, when ``fed`` was the value read, and
    ``length`` how many operations lie behind it. ``sweep_first`` is where the sweep that it is in
    began, None in its first node and outside.
    """

    number: int
    state: str
    operation: Operation | None
    place: Place | None
    actions: tuple[Action, ...]
    ledger: int
    before: Node | None = None
    fed: Any = None
    length: int = 0
    progress: Progress = ()
    base: Node | None = None
    error: BaseException | None = None
    in_sweep: bool = False
    sweep_first: Node | None = None
    edges: dict[tuple[int, tuple[int, ...]], Edge | None] = field(default_factory=dict)


@dataclass(eq=False)
class Edge:
    """What one step of the process does: statements, cells written, and where it goes.

    ``again`` marks the end of a sweep that failed, which starts anew. It is never changed, and not
    frozen for the reason that an operation is not.
    """

    target: Node
    statements: tuple[Statement, ...] = ()
    writes: tuple[tuple[int, int], ...] = ()
    again: bool = False


Way = tuple[tuple[tuple[int, int], ...], Edge | None]
"""What a step is under some answers to choices, the numbers of choice and answer; None: none."""


class Ledger:
    """Which tokens a process has sent and consumed so far; equal numbers, equal contents."""

    def __init__(self) -> None:
        self.contents: list[tuple[frozenset[TokenKey], frozenset[tuple[TokenKey, int]]]] = [
            (frozenset(), frozenset())
        ]
        self._number = {self.contents[0]: 0}

    def after(self, number: int, statements: tuple[Statement, ...]) -> int:
        """The ledger after these statements."""
        sent, consumed = self.contents[number]
        for each in statements:
            if isinstance(each, Sent):
                sent |= {each.key}
            elif isinstance(each, Consumed):
                count = dict(consumed)
                count[each.key] = count.get(each.key, 0) + 1
                consumed = frozenset(count.items())
        entry = (sent, consumed)
        if entry not in self._number:
            self._number[entry] = len(self.contents)
            self.contents.append(entry)
        return self._number[entry]


def same(one: Operation, other: Operation | None) -> bool:
    """Whether two operations are one, functions compared by their code alone."""
    if other is None:
        return False
    if (one.kind, one.queue, one.group) != (other.kind, other.queue, other.group):
        return False
    pairs = ((one.slot, other.slot), (one.source, other.source), (one.value, other.value))
    return all(mine is its or str(mine) == str(its) for mine, its in pairs)


def history_of(node: Node) -> tuple[Any, ...]:
    """The values that lead a new coroutine to a node."""
    values: list[Any] = []
    while node.before is not None:
        values.append(node.fed)
        node = node.before
    return tuple(reversed(values))


def plain(value: Any) -> Hashable:
    """A hashable key of a value that a role was fed; opaque values and blocks by content."""
    if isinstance(value, Opaque):
        return ("opaque", typed(value.value))
    if isinstance(value, Block):
        return tuple((name, plain(part)) for name, part in vars(value).items())
    return typed(value)
