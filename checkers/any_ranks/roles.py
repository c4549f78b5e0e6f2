"""A role of the pair among any number of ranks, run on demand: its points and what follows them.

Beside the values that it reads a role is told the turns of its loops and, where it asks about
other ranks, any answer that there may be. So its points are those of the role in every system of
two or more ranks, seen from the pair.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CoroutineType, FrameType
from typing import Any

from syncproof.checkers.any_ranks.language import check_language
from syncproof.checkers.any_ranks.loops import ANOTHER, RankIdentity, Ranks, Turns
from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.models import core
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.identity import Refusal, discard
from syncproof.models.identity_scan import Refused
from syncproof.models.instance import Choices, Instance, Mutation
from syncproof.models.lowering import frozen
from syncproof.models.nodes import Process, plain
from syncproof.models.operations import Kind, Operation, Reached, Statement
from syncproof.models.protocol import Protocol
from syncproof.models.ranks import (
    OutsideRanks,
    RankBounds,
    RankCore,
    Refuse,
    numbered,
    opaque,
)
from syncproof.models.round_core import aside
from syncproof.models.values import typed

MOST_ANSWERS, MOST_WAYS = 40, 4000
"""A role that is told so much between two operations, or in so many ways, is not gone through."""

LONGEST, LONGER = 100, 20
"""A role that has so many local states behind it, and so many more for each that it has among two
ranks, and still comes to new ones, is taken to keep count of the ranks."""


@dataclass(frozen=True)
class Told:
    """What a role is told on its way: a value that it read, or an answer to a question."""

    value: Any
    is_read: bool


Way = tuple[Told, ...]


class Fork(BaseException):
    """A role asks what its way does not answer yet; ``head`` is the head of a loop."""

    def __init__(self, options: tuple[Any, ...], head: tuple[Any, ...] | None) -> None:
        super().__init__()
        self.options, self.head = options, head


@dataclass(eq=False)
class Point:
    """Where a role stands: before ``operation``, or at its end (None).

    ``lines`` are its lines from the outermost in, ``round`` is the round that it began last, and
    ``in_sweep`` says whether it polls.
    """

    number: int
    operation: Operation | None
    lines: tuple[tuple[str, int], ...]
    round: int
    in_sweep: bool
    way: Way
    after: dict[Any, list[Turn]] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.lines:
            return "the end"
        file, line = self.lines[-1]
        return f"{Path(file).name}:{line}"


@dataclass(frozen=True, eq=False)
class Turn:
    """What may follow a step of a role: what it says, and the point that it comes to.

    ``is_next`` says whether a loop through all ranks went on to another rank on the way.
    """

    statements: tuple[Statement, ...]
    point: Point
    is_next: bool = False


class Role:
    """The points of one process, under all assignments that answer what it asked alike.

    ``asked`` are the choices of the pair that it has asked for so far.
    """

    def __init__(
        self,
        instance: Instance,
        process: Process,
        choices: Choices,
        nodes: int,
        forms: dict[Hashable, Hashable],
    ) -> None:
        """``nodes``: how many local states the role has among two ranks. ``forms`` are the names of
        choices that all roles have asked for, each with what of it is a rank."""
        self._longest = LONGEST + LONGER * nodes
        self.process, self.mutation, self.choices = process, instance.mutation, choices
        self.asked: dict[Hashable, Hashable] = {}
        self._forms = forms
        self.points: list[Point] = []
        self._known: dict[tuple[bytes, int], Point] = {}
        self._said: list[Statement] = []
        self._trouble: list[OutsideRanks] = []
        self._way: Iterator[Told] = iter(())
        self._loops, self._round = 0, -1
        self._asks = self._sweeps = False
        self._empty_sweeps = 0
        self._root: FrameType | None = None
        refuse = aside(self._trouble.append)
        protocol = protocol_of_any(instance, refuse)
        if self._trouble:
            raise NotCovered(_text(self._trouble[0]))
        self.core = own = RankCore(
            process.role,
            process.rank,
            process.instance,
            process.count,
            protocol.bounds,
            {},
            {},
            self._said.append,
            own=process.rank,
            ask=aside(self._ask),
            chosen=aside(self._chosen),
            refuse=refuse,
            loop=aside(lambda core: Ranks(core, self)),
            begun=aside(self._begun),
        )
        self.identity = RankIdentity((protocol, own), Operation)
        function = next(each for each in protocol.roles() if each.name == process.role)
        if function.on is not None:
            raise NotCovered(f"the role {process.role} does not run on every rank")
        self._start: Callable[[], Any] = lambda: function.function(protocol, own)
        self.first = self._settle(())

    def serves(self, choices: Choices) -> bool:
        """Whether all that was found holds under another assignment too; from now on it is that."""
        same = all(choices.get(name, _NONE) == value for name, value in self.asked.items())
        if same:
            self.choices = choices
        return same

    def after(self, point: Point, value: Any) -> list[Turn]:
        """All that the role may do once its operation has given ``value``."""
        key = _key(value)
        if key not in point.after:
            point.after[key] = self._settle((*point.way, Told(value, True)))
        return point.after[key]

    # What a role asks

    def new_loop(self) -> int:
        """A number for a loop, the same whenever the role is run the same way."""
        self._loops += 1
        return self._loops

    def next_turn(self, options: tuple[Any, ...], turns: Turns, frame: FrameType) -> Any:
        """What comes next in a loop through all ranks."""
        answer = self._answer()
        if answer is not None:
            return answer.value
        assert self._root is not None
        head = self.identity.head(turns, frame, self._root)
        self._asks = True
        raise Fork(options, (head, tuple(self._said)))

    def _ask(self, options: tuple[Any, ...]) -> Any:
        answer = self._answer()
        if answer is None:
            self._asks = True
            raise Fork(options, None)
        return answer.value

    def _chosen(self, name: Hashable, options: tuple[Any, ...], form: Hashable) -> Any:
        if self._forms.setdefault(name, form) != form:
            raise OutsideRanks(
                f"the choice {name} is that of a rank and of a number",
                expected="names in which ranks and numbers stand at different places",
            )
        if name not in self.choices:
            raise Unresolved(name, options)
        self.asked[name] = self.choices[name]
        return self.choices[name]

    def _answer(self) -> Told | None:
        answer = next(self._way, None)
        assert answer is None or not answer.is_read, "a role asks the same again"
        return answer

    def _begun(self, round: int) -> None:
        self._round = round

    # Running

    def _settle(self, way: Way) -> list[Turn]:
        """Where the role may come to behind ``way``, whatever it is told on from there."""
        pending: list[tuple[Way, frozenset[Any]]] = [(way, frozenset())]
        found: dict[Any, Turn] = {}
        ways = 0
        while pending:
            here, heads = pending.pop()
            ways += 1
            if len(here) - len(way) > MOST_ANSWERS or ways > MOST_WAYS:
                raise NotCovered(f"the role {self.process.role} loops without an operation")
            try:
                turn = self._run(here)
            except Fork as fork:
                if fork.head is not None:
                    if fork.head in heads:
                        continue
                    heads |= {fork.head}
                pending += [((*here, Told(each, False)), heads) for each in fork.options]
                continue
            is_next = any(not each.is_read and each.value is ANOTHER for each in here[len(way) :])
            key = (turn.point.number, turn.statements, is_next)
            found.setdefault(key, replace(turn, is_next=is_next))
        return list(found.values())

    def _run(self, way: Way) -> Turn:
        """Run the role along ``way``."""
        self._trouble.clear()
        self._said.clear()
        self._way, self._loops, self._round = iter(way), 0, -1
        self._asks = self._sweeps = False
        self._empty_sweeps = 0
        coroutine = self._start()
        assert isinstance(coroutine, CoroutineType)
        self._root = coroutine.cr_frame
        try:
            operation = self._to_the_end_of_the_way(coroutine)
            if self._trouble:
                raise self._trouble[0]
            if self._asks:
                raise NotCovered(f"the role {self.process.role} asks of ranks within an async with")
            return self._turn(coroutine, None if operation is None else _kept(operation), way)
        except NotCovered:
            raise
        except (UserError, Refused) as error:
            raise NotCovered(f"{_text(error)}{_line_of(error)}") from None
        except Unresolved as choice:
            raise NotCovered(
                f"the role {self.process.role} makes a choice that it does not make among two "
                f"ranks: {choice.name!r}"
            ) from None
        except Exception as error:
            raise NotCovered(
                f"the role {self.process.role} raised {type(error).__name__}: {error}"
                + _line_of(error)
            ) from None
        finally:
            self._root = None
            discard(coroutine)

    def _to_the_end_of_the_way(self, coroutine: CoroutineType[Any, Any, Any]) -> Operation | None:
        value = None
        while True:
            operation = self._next(coroutine, value)
            told = next(self._way, None)
            if told is None or operation is None:
                assert told is None, "a role that was run again ended earlier"
                return operation
            assert told.is_read, "a role that was run again asks less"
            self._said.clear()
            value = told.value

    def _next(self, coroutine: CoroutineType[Any, Any, Any], value: Any) -> Operation | None:
        """The next operation that is a step; None when the role has returned."""
        while True:
            try:
                operation = coroutine.send(value)
            except StopIteration:
                return None
            if not isinstance(operation, Operation):
                raise UserError(f"a role awaits {type(operation).__name__}, not an operation")
            value = None
            if operation.kind in (Kind.SWEEP_BEGIN, Kind.SWEEP_END):
                self._empty_sweeps = self._empty_sweeps + 1 if self._sweeps else 0
                if self._empty_sweeps > 1 and operation.kind is Kind.SWEEP_BEGIN:
                    raise NotCovered(f"a sweep of {self.process.role} without an operation")
                self._sweeps = operation.kind is Kind.SWEEP_BEGIN
            else:
                self._empty_sweeps = 0
                kept = _mutated(self.mutation, coroutine, operation)
                if kept is not None:
                    return kept

    def _turn(
        self, coroutine: CoroutineType[Any, Any, Any], operation: Operation | None, way: Way
    ) -> Turn:
        said = tuple(each for each in self._said if not isinstance(each, Reached))
        if operation is None:
            return Turn(said, self._point(b"", None, (), way))
        fingerprint = self.identity.fingerprint(coroutine)
        if isinstance(fingerprint, Refusal):
            raise NotCovered(f"{fingerprint.reason} (at {fingerprint.where})")
        return Turn(said, self._point(fingerprint, operation, _lines(coroutine), way))

    def _point(
        self,
        fingerprint: bytes,
        operation: Operation | None,
        lines: tuple[tuple[str, int], ...],
        way: Way,
    ) -> Point:
        key = (fingerprint, self._round)
        point = self._known.get(key)
        if point is None:
            if len(way) > self._longest:
                raise NotCovered(f"the role {self.process.role} keeps count of the ranks")
            number = len(self.points)
            point = Point(number, operation, lines, self._round, self._sweeps, way)
            self._known[key] = point
            self.points.append(point)
        return point


_NONE = object()
CORE = core.__file__


def protocol_of_any(instance: Instance, refuse: Refuse) -> Protocol:
    """The protocol as roles see it that know of no number of ranks."""
    try:
        bounds = RankBounds.of(instance.bounds, refuse)
        protocol = opaque(instance.kind(bounds, **instance.settings), refuse)
    except Exception as error:
        raise NotCovered(f"{_text(error)}{_line_of(error)}") from None
    check_language(protocol)
    return protocol


def _key(value: Any) -> Any:
    """What tells apart two values that a role is given; ranks of others are all alike."""
    return plain(numbered(value, 0)) if value is not None else typed(None)


def _mutated(
    mutation: Mutation | None, coroutine: CoroutineType[Any, Any, Any], operation: Operation
) -> Operation | None:
    if mutation is None:
        return operation
    return mutation(operation, *own_line(_lines(coroutine)))


def _kept(operation: Operation) -> Operation:
    """The operation apart from what the role may still change."""
    value = dict(operation.value) if type(operation.value) is dict else operation.value
    return replace(frozen(operation), value=value)


def own_line(lines: tuple[tuple[str, int], ...]) -> tuple[str, int]:
    """The innermost of some lines that is the protocol's own."""
    own = [line for line in lines if not Path(line[0]).samefile(CORE)]
    return (own or lines)[-1]


def _lines(coroutine: CoroutineType[Any, Any, Any]) -> tuple[tuple[str, int], ...]:
    """The lines at which a suspended role stands, from the outermost in."""
    found = []
    inner: Any = coroutine
    while isinstance(inner, CoroutineType) and inner.cr_frame is not None:
        found.append((inner.cr_frame.f_code.co_filename, inner.cr_frame.f_lineno))
        inner = inner.cr_await
    return tuple(found)


def _text(error: Exception) -> str:
    if isinstance(error, UserError):
        return error.what + (f" (expected: {error.expected})" if error.expected else "")
    return str(error)


def _line_of(error: BaseException) -> str:
    """The innermost line of a protocol's file in the traceback."""
    found, trace = "", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.parent.name not in ("models", "any_ranks", "unbounded"):
            found = f", at {file.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
