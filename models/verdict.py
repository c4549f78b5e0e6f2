"""Verdicts and traces as plain data, with a versioned JSON form that round-trips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from syncproof.models.errors import UserError

SCHEMA = 1
SPARSE: Mapping[str, Any] = {"sparse": True}
"""Metadata of a field that JSON leaves out while it holds its default."""


class Answer(Enum):
    """What a check can say about one property."""

    PROVED = "proved"
    VIOLATED = "violated"
    UNDECIDED = "not decided"
    BROKEN = "error"


@dataclass(frozen=True)
class Line:
    """A line of source: the protocol's, and the kernel's where the protocol names it."""

    file: str
    line: int
    text: str
    at: str = ""


@dataclass(frozen=True)
class Change:
    """A cell before and after a step; ``block`` as the protocol names it."""

    block: str
    field: str
    before: str
    after: str


@dataclass(frozen=True)
class MemoryCell:
    """A part of memory that a run touches: a field, or the part of it in the atom at ``byte``.

    ``number`` is what the steps call it; ``initial`` is what it holds before the first step.
    """

    number: int
    block: str
    field: str
    byte: int
    initial: str


@dataclass(frozen=True)
class TraceStep:
    """One step of a run, with what it does in words.

    ``kind``, ``process`` and ``what`` identify it for replay; ``actor`` is the lane it belongs to;
    ``put`` numbers the step that issued what lands here, counted from 0, or -1. ``reads`` are the
    cells that it reads, ``writes`` those of ``changes``, one for one; ``issues`` counts the
    landings that it sets off; ``after`` are the steps that it depends on, but for those that
    another of them implies.
    """

    kind: str
    process: int
    what: tuple[int, ...]
    actor: str
    text: str
    line: Line | None = None
    changes: tuple[Change, ...] = ()
    put: int = -1
    joined: tuple[str, ...] = ()
    reads: tuple[int, ...] = field(default=(), metadata=SPARSE)
    writes: tuple[int, ...] = field(default=(), metadata=SPARSE)
    issues: int = field(default=0, metadata=SPARSE)
    after: tuple[int, ...] = field(default=(), metadata=SPARSE)


@dataclass(frozen=True)
class Waiting:
    """A row of the wait-for table: who is blocked where, on what, and why nobody can help."""

    process: str
    line: Line | None
    operation: str
    sees: str
    helpers: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Question:
    """What a verdict is an answer to: enough to ask it again."""

    protocol: str
    bounds: Mapping[str, Any]
    fabric: Mapping[str, Any]
    settings: Mapping[str, Any]
    dropped: tuple[str, ...] = ()
    mutant: str = ""
    properties: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trace:
    """A run that breaks a property.

    ``shown`` are the numbers of the steps that explain it (its causal past); ``fewest`` says that
    no run with fewer steps breaks a property, otherwise no single step can be left out.
    ``unordered`` are two steps of which the first, or what it puts, should come first and nothing
    orders them; ``memory`` are the cells that the run touches.
    """

    question: Question
    property: str
    message: str
    choices: tuple[tuple[str, str], ...]
    processes: tuple[str, ...]
    steps: tuple[TraceStep, ...]
    shown: tuple[int, ...]
    fewest: bool
    missing_edge: str = ""
    waiting: tuple[Waiting, ...] = ()
    routing: str = ""
    unordered: tuple[int, ...] = field(default=(), metadata=SPARSE)
    memory: tuple[MemoryCell, ...] = field(default=(), metadata=SPARSE)


@dataclass(frozen=True)
class Event:
    """Something that happens in every complete run: who does it, what, and at which line.

    The line of a landing is its put's. ``step`` counts the operations of that process from 1.
    """

    actor: str
    text: str
    line: Line | None = None
    step: int = 0


@dataclass(frozen=True)
class Order:
    """Why the ``second`` of two events comes after the ``first``: ``second`` ``why`` ``first``."""

    first: int
    second: int
    why: str


@dataclass(frozen=True)
class Carried:
    """What carries a token from its put to where it is consumed.

    ``events`` are in an order in which they happen; ``chain`` are those that the data comes by.
    The others, and the ``orders`` between all of them, are what a proof needs besides that nothing
    else can be consumed there. All are empty where some run consumes something else.
    """

    token: str
    consumer: str
    line: Line | None = None
    events: tuple[Event, ...] = ()
    orders: tuple[Order, ...] = ()
    chain: tuple[int, ...] = ()


@dataclass(frozen=True)
class Chains:
    """The consumes of a run that are explained, out of how many; ``missing`` says why none is."""

    carried: tuple[Carried, ...] = ()
    consumes: int = 0
    missing: str = ""


@dataclass(frozen=True)
class PropertyVerdict:
    """The answer for one property, and how it is known."""

    property: str
    answer: Answer
    detail: str = ""


@dataclass(frozen=True)
class Verdict:
    """The answer to a question, with its bounds, assumptions and what was searched."""

    question: Question
    engine: str
    properties: tuple[PropertyVerdict, ...]
    states: int
    transitions: int
    depth: int
    assumptions: Mapping[str, str] = field(default_factory=dict)
    persists: tuple[str, ...] = ()
    routing: str = ""
    notes: tuple[str, ...] = ()
    trace: Trace | None = None
    chains: Chains | None = field(default=None, metadata=SPARSE)
    work: tuple[tuple[str, int], ...] = field(default=(), metadata=SPARSE)
    """What an engine without states did, by name: the events and queries of a formula."""

    @property
    def answer(self) -> Answer:
        """The answer as a whole: broken before violated before undecided before proved."""
        given = {each.answer for each in self.properties}
        for worst in (Answer.BROKEN, Answer.VIOLATED, Answer.UNDECIDED):
            if worst in given:
                return worst
        return Answer.PROVED if given else Answer.UNDECIDED


def without_proof(verdict: Verdict, reason: str) -> Verdict:
    """The same verdict with nothing proved, for a reason; what is violated stays so."""
    properties = [
        replace(each, answer=Answer.UNDECIDED, detail=reason)
        if each.answer is Answer.PROVED
        else each
        for each in verdict.properties
    ]
    return replace(verdict, properties=tuple(properties))


EXIT_CODES = {Answer.PROVED: 0, Answer.VIOLATED: 1, Answer.UNDECIDED: 3, Answer.BROKEN: 4}


# JSON


def to_data(thing: Any) -> Any:
    """Plain data for JSON, with its schema number and kind at the top."""
    return {"schema": SCHEMA, "kind": type(thing).__name__.lower(), **_plain(thing)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        given = {each: getattr(value, each.name) for each in fields(value)}
        return {
            each.name: _plain(now)
            for each, now in given.items()
            if not (each.metadata.get("sparse") and now == each.default)
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value


def from_data(kind: type[Any], data: Any, where: str) -> Any:
    """A `Trace` or `Verdict` from its JSON form; a `UserError` when it is something else."""
    if not isinstance(data, dict):
        raise UserError("not a JSON object", where=where, expected=f"a {kind.__name__.lower()}")
    if data.get("schema") != SCHEMA:
        raise UserError(f"schema {data.get('schema')!r}", where=where, expected=f"schema {SCHEMA}")
    if data.get("kind") != kind.__name__.lower():
        raise UserError(
            f"a {data.get('kind')!r}", where=where, expected=f"a {kind.__name__.lower()}"
        )
    return _build(kind, {k: v for k, v in data.items() if k not in ("schema", "kind")}, where)


def _build(kind: Any, data: Any, where: str) -> Any:
    origin = get_origin(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return _build_object(kind, data, where)
    if origin is tuple:
        if not isinstance(data, list):
            raise UserError(f"{data!r:.40} is not a list", where=where)
        kinds = get_args(kind)
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            return tuple(_build(kinds[0], each, where) for each in data)
        if len(kinds) != len(data):
            raise UserError(f"{len(data)} items", where=where, expected=f"{len(kinds)}")
        return tuple(_build(k, each, where) for k, each in zip(kinds, data, strict=True))
    if origin is not None and type(None) in get_args(kind):
        inner = next(k for k in get_args(kind) if k is not type(None))
        return None if data is None else _build(inner, data, where)
    if origin is not None and not isinstance(data, Mapping):
        raise UserError(f"{data!r:.40} is not an object", where=where)
    if origin is not None or kind is Any:
        return data
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError:
            raise UserError(f"{data!r} is no {kind.__name__.lower()}", where=where) from None
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise UserError(f"{data!r:.40} is not {kind.__name__}", where=where)
    return data


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of a class's fields, which take long to work out and never change."""
    return get_type_hints(kind)


def _build_object(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise UserError(f"{data!r:.40} is not an object", where=where)
    hints = _hints(kind)
    known = {each.name for each in fields(kind)}
    for key in data:
        if key not in known:
            raise UserError(f"unknown key {key!r}", where=where, expected=", ".join(sorted(known)))
    try:
        return kind(**{k: _build(hints[k], v, f"{where}, {k}") for k, v in data.items()})
    except TypeError as error:
        raise UserError(str(error), where=where) from None
