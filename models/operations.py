"""The closed set of operations that a role can await, and what it says to the proof alone."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Never

from syncproof.models.errors import UserError
from syncproof.models.memory import Slot


class Kind(Enum):
    """Every operation; each interpreter (tabulator, emulator, printer) handles every one."""

    PUT = "put"
    PUT_NBI = "put_nbi"
    PUT_WITH_SIGNAL = "put_with_signal"
    GET = "get"
    GET_NBI = "get_nbi"
    LOAD = "load"
    STORE_CACHED = "store_cached"
    LOAD_CACHED = "load_cached"
    CLEAN_AND_INVALIDATE = "clean_and_invalidate"
    ADD = "add"
    ATOMIC = "atomic"
    WAIT_UNTIL = "wait_until"
    SWEEP_BEGIN = "sweep_begin"
    SWEEP_END = "sweep_end"
    FENCE = "fence"
    QUIET = "quiet"
    SYNC = "sync"

    __hash__ = object.__hash__  # there is one object for each, and it is asked for at each step


@dataclass(unsafe_hash=True)
class Operation:
    """One awaited operation; which attributes matter depends on ``kind``. It is never changed.

    It is not frozen because a role makes one at each step, and freezing costs most of that.

    ``at`` is the line of the real kernel. ``queue`` names the queue pair or pipe it is issued on.
    """

    kind: Kind
    slot: Slot | None = None
    value: Any = None
    source: Slot | None = None
    predicate: Callable[[Any], Any] | None = None
    update: Callable[[Any], Any] | None = None
    signal: Slot | None = None
    signal_value: Any = None
    signal_adds: bool = False
    target: int | None = None
    group: str = ""
    members: tuple[int, ...] = ()
    queue: int = 0
    ordered: bool = False
    at: str = ""

    def __await__(self) -> Generator[Operation, Any, Any]:
        value = yield self
        return value

    def __bool__(self) -> Never:
        raise UserError(
            f"the operation {self.kind.value} is used as a value, and it is not awaited",
            expected="await, which gives the value",
        )

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        if type(other) is not Operation:
            return bool(self)
        return all(getattr(self, each.name) == getattr(other, each.name) for each in fields(self))


@dataclass(unsafe_hash=True)
class Consumed:
    """The kernel trusts this data: ``failure`` says what is wrong with it, if anything is, and
    ``expected`` what the first wrong field should have been."""

    key: tuple[Hashable, ...]
    failure: str = ""
    expected: str = ""


@dataclass(unsafe_hash=True)
class Sent:
    """A token that has to be consumed exactly once."""

    key: tuple[Hashable, ...]


@dataclass(frozen=True)
class Failed:
    """A ``core.check`` that did not hold."""

    message: str


@dataclass(frozen=True)
class Reached:
    """A place that some run must get to."""

    name: str


@dataclass(frozen=True)
class GhostUpdate:
    """A change of state that only the proof sees: ``function(old, *arguments)``."""

    ghost: str
    key: Hashable
    function: Callable[..., Hashable]
    arguments: tuple[Hashable, ...]


@dataclass(frozen=True)
class GhostCheck:
    """A condition on ghost state: ``predicate(value, *arguments)`` must hold here."""

    ghost: str
    key: Hashable
    predicate: Callable[..., bool]
    arguments: tuple[Hashable, ...]
    message: str


@dataclass(frozen=True)
class Hidden:
    """The error of a choice that is not made yet: a role that goes on has caught what ends it."""

    error: BaseException


Statement = Consumed | Sent | Failed | Reached | GhostUpdate | GhostCheck | Hidden
"""What a role says between two operations: part of the step before, never a step itself."""
