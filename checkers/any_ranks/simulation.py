"""Whether a role among any number of ranks does to its peer only what it does among two.

Weak simulation, step by step: what concerns another rank is left out, a quiet or fence that the
role of two ranks does not make is left out as well (it only orders more), and everything else must
be the very step that the role of two ranks takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from syncproof.checkers.any_ranks.memory import Memory, concerns, ranks_of
from syncproof.checkers.any_ranks.roles import Fork, Point, Role
from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.models.automaton import Automaton
from syncproof.models.core import Unresolved
from syncproof.models.memory import Slot
from syncproof.models.nodes import Node
from syncproof.models.operations import Consumed, Failed, Kind, Operation, Sent, Statement
from syncproof.models.ranks import OTHER, OutsideRanks, Rank, numbered, ranked
from syncproof.models.values import Block, Opaque, typed

ORDERING = (Kind.QUIET, Kind.FENCE)
CACHED = (Kind.LOAD_CACHED, Kind.STORE_CACHED, Kind.CLEAN_AND_INVALIDATE)
MOST_OWED = 64

Word = tuple[str, Any]
Owed = tuple[tuple[Word, ...], tuple[Word, ...]]
"""What the role of two ranks has said and the other one has not yet; and the other way round."""


@dataclass
class Simulation:
    """A role of any number of ranks beside the table of the same role of two."""

    role: Role
    automaton: Automaton
    memory: Memory
    at: dict[int, set[int]] = field(default_factory=dict)
    """For each node of two ranks the points at which the other role may stand meanwhile."""

    def __post_init__(self) -> None:
        self.own = self.role.process.rank
        self._done: set[tuple[int, int, Owed]] = set()
        self._work: list[tuple[Point, Node, Owed]] = []
        self._same: dict[tuple[int, int], bool] = {}
        self._alone: nx.DiGraph[int] = nx.DiGraph()

    def run(self) -> None:
        """Go through all pairs; `NotCovered` if the role does something else."""
        said = _words(self.automaton.first_statements)
        for turn in self.role.first:
            owed = self._owed(((), ()), said, _words(turn.statements), turn.point)
            self._add(turn.point, self.automaton.first, owed)
        try:
            while self._work:
                self._step(*self._work.pop())
        except OutsideRanks as error:
            raise NotCovered(f"{error.what} ({self.role.process.role})") from None
        if not nx.is_directed_acyclic_graph(self._alone):
            raise NotCovered(f"{self.role.process.role} may go on for ever without the pair")

    def _add(self, point: Point, node: Node, owed: Owed) -> None:
        key = (point.number, node.number, owed)
        if node.state != "error" and key not in self._done:
            self._done.add(key)
            self.at.setdefault(node.number, set()).add(point.number)
            self._work.append((point, node, owed))

    def _step(self, point: Point, node: Node, owed: Owed) -> None:
        operation = point.operation
        if operation is None:
            if node.state != "done" or any(owed):
                raise self._differs(point, node)
            return
        if point.in_sweep and operation.kind not in (Kind.LOAD, Kind.GET):
            raise NotCovered(f"a sweep that does more than load, at {point}")
        if operation.kind in CACHED:
            raise NotCovered("write-back caches hold blocks of several ranks")
        if concerns(operation) == OTHER:
            for value in self._told_by_another(operation):
                self._leave_out(point, value, node, owed)
        elif operation.kind in ORDERING and not self._is(point, node):
            self._leave_out(point, None, node, owed)
        elif self._is(point, node):
            ranks = self._ranks(self.role.core.peer_)
            for value, edge in self.automaton.seen(node):
                self._go(point, ranked(value, ranks), edge.target, owed, edge.statements)
        else:
            raise self._differs(point, node)

    def _go(
        self, point: Point, value: Any, node: Node, owed: Owed, said: Iterable[Statement]
    ) -> None:
        words = _words(said)
        for turn in self.role.after(point, value):
            after = self._owed(owed, words, _words(turn.statements), point)
            self._add(turn.point, node, after)

    def _leave_out(self, point: Point, value: Any, node: Node, owed: Owed) -> None:
        """A step that the role of two ranks does not take."""
        self._go(point, value, node, owed, ())
        for turn in self.role.after(point, value):
            if not (turn.is_next or point.in_sweep):
                self._alone.add_edge(point.number, turn.point.number)

    def _owed(
        self, owed: Owed, said: tuple[Word, ...], other: tuple[Word, ...], point: Point
    ) -> Owed:
        """What is left to say when what both have said is taken away."""
        of_two, of_any = owed[0] + said, owed[1] + other
        common = min(len(of_two), len(of_any))
        left = of_two[common:] + of_any[common:]
        wrong = of_two[:common] != of_any[:common] or len(left) > MOST_OWED
        if wrong or any(each[0] == "wrong" for each in left):
            raise NotCovered(
                f"{self.role.process.role} sends or consumes other tokens of the pair than among "
                f"two ranks, at {point}"
            )
        return of_two[common:], of_any[common:]

    def _differs(self, point: Point, node: Node) -> NotCovered:
        there = (
            "its end" if node.operation is None else f"{node.operation.kind.value} at {node.place}"
        )
        here = "its end" if point.operation is None else f"{point.operation.kind.value} at {point}"
        return NotCovered(
            f"among more than two ranks {self.role.process.role} comes to {here} where among two "
            f"it comes to {there}"
        )

    def _ranks(self, other: Rank) -> tuple[Rank, Rank]:
        """The ranks of the numbers 0 and 1."""
        this = self.role.core.rank
        return (this, other) if self.own == 0 else (other, this)

    # What others may say

    def _told_by_another(self, operation: Operation) -> Iterator[Any]:
        if operation.kind not in (Kind.LOAD, Kind.GET, Kind.ATOMIC, Kind.WAIT_UNTIL):
            yield None
            return
        slot = operation.slot
        assert slot is not None
        other = next(each for each in ranks_of(slot) if each.which_ == OTHER)
        for value in self.memory.results(self.memory.slot(slot, self.own)):
            seen = ranked(value, self._ranks(other))
            if operation.predicate is None or _outcome(operation.predicate, seen, True) == (True,):
                yield seen

    # The same step

    def _is(self, point: Point, node: Node) -> bool:
        """Whether the operation at a point is that of a node."""
        key = (point.number, node.number)
        if key not in self._same:
            assert point.operation is not None
            same = node.state == "run" and not node.progress
            self._same[key] = same and self._equal(point.operation, node.operation)
        return self._same[key]

    def _equal(self, one: Operation, other: Operation | None) -> bool:
        assert other is not None
        return self._form(one) == _form_of_two(other) and self._act_alike(one, other)

    def _form(self, each: Operation) -> tuple[Any, ...]:
        slots = [self._plain(slot) for slot in (each.slot, each.source, each.signal)]
        values = [_content(numbered(v, self.own)) for v in (each.value, each.signal_value)]
        target: Any = each.target
        target = None if target is None else (self.own if target.which_ != "peer" else 1 - self.own)
        names = {"rank": f"rank {self.own}", "role": f"{self.role.process.role} of rank {self.own}"}
        group = names.get(each.group, each.group)
        return (each.kind, slots, values, each.signal_adds, target, group, each.queue, each.ordered)

    def _plain(self, slot: Slot | None) -> Any:
        return None if slot is None else _described(self.memory.slot(slot, self.own))

    def _act_alike(self, one: Operation, other: Operation) -> bool:
        """Whether conditions and updates agree on all values that the block may hold."""
        pairs = [(one.predicate, other.predicate), (one.update, other.update)]
        if all(left is None and right is None for left, right in pairs):
            return True
        if any((left is None) is not (right is None) for left, right in pairs):
            return False
        assert one.slot is not None
        ranks = self._ranks(self.role.core.peer_)
        for value in self.memory.results(self.memory.slot(one.slot, self.own)):
            seen = ranked(value, ranks)
            for left, right in pairs:
                if left is None or right is None:
                    continue
                is_condition = right is other.predicate
                given = [_outcome(f, v, is_condition) for f, v in ((left, seen), (right, value))]
                if _content(numbered(given[0], self.own)) != _content(given[1]):
                    return False
        return True


def _outcome(function: Any, value: Any, is_condition: bool) -> tuple[Any, ...]:
    """What a condition or update gives; empty where it raises.

    The values that it is asked about are more than it may meet. Where it meets one for which it
    raises, so does the role of two ranks.
    """
    try:
        found = function(value)
        return (bool(found) if is_condition else found,)
    except OutsideRanks:
        raise
    except (Fork, Unresolved):
        raise NotCovered(
            "a condition asks about another rank: ask before the operation, in a variable"
        ) from None
    except Exception:
        return ()


def _form_of_two(each: Operation) -> tuple[Any, ...]:
    slots = [slot and _described(slot) for slot in (each.slot, each.source, each.signal)]
    values = [_content(value) for value in (each.value, each.signal_value)]
    return (
        each.kind,
        slots,
        values,
        each.signal_adds,
        each.target,
        each.group,
        each.queue,
        each.ordered,
    )


def _described(slot: Slot) -> tuple[Any, ...]:
    return (slot.region.name, slot.rank, slot.place, slot.names)


def _content(value: Any) -> Any:
    """What a put of a value writes, to be compared."""
    if isinstance(value, Block):
        value = vars(value)
    if isinstance(value, Opaque):
        return _content(value.value)
    if isinstance(value, dict):
        return {name: _content(each) for name, each in value.items()}
    return typed(value)


def _words(statements: Iterable[Statement]) -> tuple[Word, ...]:
    """What statements say of tokens and conditions."""
    found: list[Word] = []
    for each in statements:
        if isinstance(each, Sent):
            found.append(("sent", typed(each.key)))
        elif isinstance(each, Consumed):
            found.append(("wrong" if each.failure else "consumed", typed(each.key)))
        elif isinstance(each, Failed):
            found.append(("wrong", each.message))
    return tuple(found)
