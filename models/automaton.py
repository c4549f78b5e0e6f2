"""From coroutine to automaton: each role run once per history, on demand, and merged where safe.

A node is a suspended role. Its edges are found by feeding it the values that the explorer meets;
two histories share a node only if `identity` shows that nothing tells them apart.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CoroutineType
from typing import Any

from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.identity import Identity, Refusal, discard
from syncproof.models.lowering import Action, Lowering, Progress, frozen
from syncproof.models.nodes import (
    LONGEST_HISTORY,
    Edge,
    Ledger,
    Node,
    Place,
    Process,
    TooLong,
    Way,
    history_of,
    plain,
    same,
)
from syncproof.models.operations import Hidden, Kind, Operation, Statement
from syncproof.models.shared import Shared


@dataclass
class _Live:
    """A coroutine suspended at a node, with the sweep that it is in."""

    coroutine: CoroutineType[Any, Any, Any]
    sweep: _Sweep | None


@dataclass
class _Sweep:
    fingerprint: bytes | Refusal
    first: Node | None = None


class Automaton:
    """The tables of one process, filled as they are asked for."""

    def __init__(
        self,
        process: Process,
        start: Callable[[], CoroutineType[Any, Any, Any]],
        said: list[Statement],
        lowering: Lowering,
        identity: Identity | None,
        ledger: Ledger,
        mutation: Callable[[Operation, str, int], Operation | None] | None,
        shared: Shared | None = None,
    ) -> None:
        self.process, self._shared = process, shared
        self.nodes: list[Node] = []
        self._start, self._said, self._lowering = start, said, lowering
        self._identity, self._ledger, self._mutation = identity, ledger, mutation
        self._known: dict[Hashable, Node] = {}
        self._live: dict[int, _Live] = {}
        self._verified = False
        begun = self._begin()
        self.first, self.first_statements = begun.target, begun.statements

    @property
    def profile(self) -> Profile:
        """The fabric profile that this process runs under."""
        return self._lowering.profile

    @property
    def quiet_is_local(self) -> bool:
        """Whether a quiet only says that sources may be used again."""
        return self.profile.quiet == "local"

    def profile_to(self, rank: int) -> Profile:
        """The profile from this process to memory of ``rank``."""
        return self.profile.between(self.process.rank, rank)

    # The explorer's side

    def edge(self, node: Node, action: int, values: tuple[int, ...]) -> Edge | None:
        """The step of ``node`` by its ``action``, with ``values`` in the cells it reads.

        None if the action blocks on these values.
        """
        key = (action, values)
        if key not in node.edges:
            node.edges[key] = self._make_edge(node, node.actions[action], values)
        return node.edges[key]

    def ways(self, node: Node, action: int, values: tuple[int, ...]) -> tuple[Way, ...]:
        """The step under each answer to the choices that it makes: here all are made already."""
        return (((), self.edge(node, action, values)),)

    def seen(self, node: Node) -> Iterator[tuple[Any, Edge]]:
        """What the operation of a node was seen to give, each with the step that follows it."""
        for (number, values), edge in node.edges.items():
            if edge is None:
                continue
            action = node.actions[number]
            outcome = self._lowering.outcome(node.operation, node.progress, action, values)
            if outcome.progress is not None:
                yield from self.seen(edge.target)
            elif not outcome.again:
                yield outcome.result, edge

    def _make_edge(self, node: Node, action: Action, values: tuple[int, ...]) -> Edge | None:
        outcome = self._lowering.outcome(node.operation, node.progress, action, values)
        if outcome.blocked:
            return None
        if outcome.error is not None:
            return Edge(self._new(("error", str(outcome.error)), node, error=outcome.error))
        if outcome.progress is not None:
            return Edge(self._partial(node, outcome.progress), (), outcome.writes)
        if outcome.again:
            return Edge(node.base or node, again=True)
        after = self._resume(node.base or node, outcome.result)
        return Edge(after.target, after.statements, outcome.writes, after.again)

    def _partial(self, node: Node, progress: Progress) -> Node:
        base = node.base or node
        key = ("partial", base.number, progress)
        if key not in self._known:
            made = self._new(key, base, progress=progress)
            made.base = base
        return self._known[key]

    # Running the role

    def _begin(self) -> Edge:
        live = _Live(self._start(), None)
        return self._settle(live, None, None, 0)

    def _resume(self, node: Node, value: Any) -> Edge:
        live = self._live.pop(node.number, None) or self._replay(node)
        return self._settle(live, node, value, node.ledger)

    def _replay(self, node: Node) -> _Live:
        """A new coroutine, run along the node's history up to the node."""
        live = _Live(self._start(), None)
        self._said.clear()
        operation = self._next_operation(live, None)
        for value in history_of(node):
            if not isinstance(operation, Operation):
                raise self._not_deterministic(node)
            operation = self._next_operation(live, value)
        self._said.clear()
        if not isinstance(operation, Operation) or not same(operation, node.operation):
            raise self._not_deterministic(node)
        if live.sweep is not None:
            live.sweep.first = node.sweep_first or node
        return live

    def _not_deterministic(self, node: Node) -> UserError:
        place = node.place
        return UserError(
            f"the role {self.process.role} is not deterministic: the same values read gave another "
            "operation",
            where=f"{place.file}:{place.line}" if place else self.process.role,
            expected="a role depends only on what it reads and chooses",
        )

    def _next_operation(self, live: _Live, value: Any) -> Any:
        """Run the role to its next operation that is a step; ``_End`` when it returned."""
        try:
            while True:
                operation = live.coroutine.send(value)
                if not isinstance(operation, Operation):
                    raise UserError(
                        f"a role awaits {type(operation).__name__}, not an operation of its core",
                        where=self._where(live),
                    )
                if operation.kind is Kind.SWEEP_END:
                    live.sweep = None
                elif operation.kind is Kind.SWEEP_BEGIN:
                    if live.sweep is not None and live.sweep.first is not None:
                        return self._sweep_again(live)
                    if live.sweep is not None:
                        return _Broken(_empty_sweep(), self._where(live))
                    live.sweep = _Sweep(self._fingerprint(live))
                else:
                    kept = self._mutated(live, operation)
                    if kept is not None:
                        return kept
                value = None
        except StopIteration:
            return _END
        except MemoryError:
            discard(live.coroutine)
            raise
        except Unresolved:
            discard(live.coroutine)
            self._refuse_change()  # all later runs would begin with it
            raise
        except Exception as error:
            return _Broken(error, _line_of(error, self._start))

    def _mutated(self, live: _Live, operation: Operation) -> Operation | None:
        return self._mutation(operation, *self._location(live)) if self._mutation else operation

    def _sweep_again(self, live: _Live) -> Any:
        assert live.sweep is not None
        now, before = self._fingerprint(live), live.sweep.fingerprint
        refusal = now if isinstance(now, Refusal) else before
        if isinstance(refusal, Refusal) or now != before:
            why = refusal.reason if isinstance(refusal, Refusal) else "a variable changed"
            return _Broken(
                UserError(
                    f"a sweep that failed must leave no trace: {why}",
                    where=self._where(live),
                    expected="poll_until's function keeps its findings in local variables",
                ),
                None,
            )
        return live.sweep

    def _fingerprint(self, live: _Live) -> bytes | Refusal:
        if self._identity is None:
            return Refusal("identity is the history", "")
        return self._identity.fingerprint(live.coroutine)

    def _refuse_change(self) -> None:
        """Refuse a role that changes what all share, where no fingerprint of it is taken."""
        if self._shared is not None:
            self._shared.refuse_change()

    def _settle(self, live: _Live, before: Node | None, value: Any, ledger: int) -> Edge:
        """Feed ``value``; where the role suspends then, and what it said on the way."""
        self._said.clear()
        found = self._next_operation(live, value)
        statements = tuple(self._said)
        for each in statements:
            if type(each) is Hidden:
                self._refuse_change()
                raise each.error
        after = self._ledger.after(ledger, statements)
        if isinstance(found, _Sweep):
            assert found.first is not None
            self._keep(live, found.first)
            if statements:
                error = UserError("a sweep that failed made a statement", where=self.process.role)
                return Edge(self._new(("error", str(error)), before, error=error))
            return Edge(found.first, again=True)
        if found is _END:
            self._refuse_change()
            node = self._new(("done", after), before, ledger=after)
            fed = () if before is None else (*history_of(before), value)
            self._verify_once(fed)
            return Edge(node, statements)
        if isinstance(found, _Broken):
            self._refuse_change()
            broken = self._explained(found)
            return Edge(self._new(("error", str(broken)), before, error=broken), statements)
        return Edge(self._suspended(live, before, value, found, after), statements)

    def _keep(self, live: _Live, node: Node) -> None:
        """Keep a coroutine behind a failed sweep for the next one, whose first load is ``node``."""
        if node.number not in self._live:
            operation = self._next_operation(live, None)
            self._said.clear()
            if isinstance(operation, Operation) and same(operation, node.operation):
                self._live[node.number] = live
                return
        discard(live.coroutine)

    def _suspended(
        self,
        live: _Live,
        before: Node | None,
        value: Any,
        operation: Operation,
        ledger: int,
    ) -> Node:
        fingerprint = self._fingerprint(live)
        key: Hashable = ("run", fingerprint, ledger)
        if isinstance(fingerprint, Refusal):
            if fingerprint.is_change:
                raise UserError(
                    f"the role {self.process.role} changes what other roles and runs see: "
                    f"{fingerprint.reason}",
                    where=fingerprint.where,
                    expected="a role keeps what it changes in its own local variables",
                )
            self._refuse_change()
            key = ("history", before.number if before else -1, plain(value))
        node = self._known.get(key)
        if node is None:
            place = self._place(live, operation)
            operation = frozen(operation)
            node = Node(len(self.nodes), "run", operation, place, (), ledger, before, value)
            node.length = before.length + 1 if before else 0
            if node.length > LONGEST_HISTORY:
                raise TooLong(
                    f"the role {self.process.role} takes more than {LONGEST_HISTORY} operations"
                    + (f" ({fingerprint.reason})" if isinstance(fingerprint, Refusal) else "")
                )
            node.in_sweep = live.sweep is not None
            node.sweep_first = live.sweep.first if live.sweep is not None else None
            try:
                self._check_member(operation)
                node.actions = self._lowering.actions(operation, (), self.process.rank)
            except UserError as error:
                node.state = "error"
                where = f"{place.file}:{place.line}"
                node.error = type(error)(error.what, where=where, expected=error.expected)
            self._remember(key, node)
        if live.sweep is not None and live.sweep.first is None:
            live.sweep.first = node
        if node.number in self._live:
            discard(live.coroutine)
        else:
            self._live[node.number] = live
        return node

    def _check_member(self, operation: Operation) -> None:
        if operation.kind is Kind.SYNC and self.process.number not in operation.members:
            raise UserError(
                f"{self.process} comes to a sync of the group {operation.group!r}, which it is "
                "not in",
                expected="a group with it among its members",
            )

    def _new(
        self,
        key: Hashable,
        before: Node | None,
        *,
        ledger: int = 0,
        progress: Progress = (),
        error: BaseException | None = None,
    ) -> Node:
        if key in self._known:
            return self._known[key]
        partial = bool(progress)
        node = Node(
            len(self.nodes),
            "run" if partial else "error" if error is not None else "done",
            before.operation if partial and before else None,
            before.place if before else None,
            (),
            before.ledger if partial and before else ledger,
            progress=progress,
            error=error,
        )
        if partial and before:
            node.in_sweep = before.in_sweep
            node.actions = self._lowering.actions(before.operation, progress, self.process.rank)
        self._remember(key, node)
        return node

    def _remember(self, key: Hashable, node: Node) -> None:
        self._known[key] = node
        self.nodes.append(node)

    def _verify_once(self, history: tuple[Any, ...]) -> None:
        """Run the first complete history again: a role must be a function of what it reads."""
        if self._verified:
            return
        self._verified = True
        live = _Live(self._start(), None)
        last: Operation | None = None
        for value in (None, *history):
            operation = self._next_operation(live, value)
            if operation is _END:
                break
            last = operation if isinstance(operation, Operation) else None
        else:
            raise self._not_deterministic_at(live, last)
        self._said.clear()
        self._refuse_change()

    def _not_deterministic_at(self, live: _Live, operation: Operation | None) -> UserError:
        code = live.coroutine.cr_code
        return UserError(
            f"the role {self.process.role} is not deterministic: run again it goes on with "
            f"{'an error' if operation is None else operation.kind.value}",
            where=f"{code.co_filename}:{code.co_firstlineno}",
            expected="a role depends only on what it reads and chooses",
        )

    # Source lines

    def _location(self, live: _Live) -> tuple[str, int]:
        """The innermost line of the role's own code."""
        frame = live.coroutine.cr_frame
        assert frame is not None, "a suspended coroutine has a frame"
        file, line = frame.f_code.co_filename, frame.f_lineno
        inner: Any = live.coroutine.cr_await
        while isinstance(inner, CoroutineType) and inner.cr_frame is not None:
            if Path(inner.cr_frame.f_code.co_filename).name != "core.py":
                file, line = inner.cr_frame.f_code.co_filename, inner.cr_frame.f_lineno
            inner = inner.cr_await
        return file, line

    def _place(self, live: _Live, operation: Operation) -> Place:
        file, line = self._location(live)
        return Place(file, line, linecache.getline(file, line).strip(), operation.at)

    def _where(self, live: _Live) -> str:
        frame = live.coroutine.cr_frame
        if frame is None:
            return self.process.role
        return f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def _explained(self, broken: _Broken) -> BaseException:
        error = broken.error
        if isinstance(error, UserError):
            where = error.where or (broken.line or self.process.role)
            return type(error)(error.what, where=where, expected=error.expected)
        return UserError(
            f"the role {self.process.role} raised {type(error).__name__}: {error}",
            where=broken.line or self.process.role,
        )


def _empty_sweep() -> UserError:
    return UserError(
        "a sweep failed without an operation, so it fails for ever",
        expected="poll_until's function loads what it waits for",
    )


@dataclass(frozen=True)
class _Broken:
    error: Exception
    line: str | None


_END = object()


def _line_of(error: BaseException, start: Callable[..., Any]) -> str | None:
    """The innermost line of the user's files in the traceback."""
    found, trace = None, error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "models" not in Path(file).parent.parts[-1:]:
            found = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
