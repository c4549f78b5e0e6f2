"""A process of a run: its coroutine, where it stands, and the core that its role sees."""

from __future__ import annotations

import linecache
import sys
from collections import deque
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import dataclass, field
from types import CoroutineType
from typing import Any, TypeVar

from syncproof.checkers.emulator.flights import Fence, Flight
from syncproof.models.core import Core, is_token
from syncproof.models.memory import Slot
from syncproof.models.nodes import Place, Process
from syncproof.models.operations import Consumed, Operation, Statement
from syncproof.models.values import Block, Opaque, Payload, uncover

T = TypeVar("T")
MOST_READS_KEPT = 8
"""Reads of which a process keeps the bytes, to show them if a token turns out to be wrong."""


def _last_reads() -> deque[tuple[Any, Slot, dict[int, bytes]]]:
    return deque(maxlen=MOST_READS_KEPT)


@dataclass
class CacheLine:
    """A line in the cache of a core: the bytes of its cells, and whether they are newer."""

    data: list[bytes]
    dirty: bool = False


@dataclass(eq=False)
class Emulated:
    """One process while it runs.

    ``progress`` are the bytes read so far by an operation of several reads, ``looked`` the version
    of each rank's memory when its wait over several atoms began, ``swept`` when its sweep first
    looked there. ``between`` is what a local atomic in two steps has read. ``to_cell`` are its
    ``flights`` by the cells that they go to.
    """

    process: Process
    said: list[Statement]
    coroutine: CoroutineType[Any, Any, Any]
    core: EmulatedCore
    operation: Operation | None = None
    is_done: bool = False
    progress: dict[int, bytes] = field(default_factory=dict)
    looked: dict[int, int] = field(default_factory=dict)
    in_sweep: bool = False
    swept: dict[int, int] = field(default_factory=dict)
    between: bytes | None = None
    flights: set[Flight] = field(default_factory=set)
    to_cell: dict[int, list[Flight]] = field(default_factory=dict)
    fences: list[Fence] = field(default_factory=list)
    cache: dict[int, CacheLine] = field(default_factory=dict)
    reads: deque[tuple[Any, Slot, dict[int, bytes]]] = field(default_factory=_last_reads)
    steps: int = 0

    def __post_init__(self) -> None:
        self.number, self.rank = self.process.number, self.process.rank

    def keep_read(self, result: Any, slot: Slot, data: dict[int, bytes]) -> None:
        """Remember the bytes behind what the role was given."""
        self.reads.append((result, slot, data))


class EmulatedCore(Core):
    """A core whose choices are drawn when they are asked for, and which trusts only bytes."""

    def __init__(
        self,
        *arguments: Any,
        drawn: MutableMapping[Hashable, Hashable],
        draw: Callable[[Hashable, Sequence[Any]], Any],
        same: Callable[[Any, Any], bool],
        share: tuple[int, int] = (0, 1),
    ) -> None:
        super().__init__(*arguments)
        self._share = share
        self._drawn, self._draw, self._same = drawn, draw, same
        self.trusted: tuple[Any, Payload, Place] | None = None

    def choose(self, name: Hashable, values: Sequence[T]) -> T:
        """A choice made by the seed, the same for all who ask by this name."""
        if len(values) > 1 and name not in self._drawn:
            self._drawn[name] = self._draw(name, values)
        return super().choose(name, values)

    def destinations(self) -> tuple[int, ...]:
        """The peers that this core serves, of a role that is spread over several."""
        lane, lanes = self._share
        return super().destinations()[lane::lanes]

    def sources(self) -> tuple[int, ...]:
        """The peers whose tokens this core takes."""
        lane, lanes = self._share
        return super().sources()[lane::lanes]

    def consume(
        self,
        data: Any,
        source: int,
        token: Hashable,
        round: int,
        *,
        owner: int | None = None,
        **content: Any,
    ) -> None:
        """Trust data if each of its bytes is the token's."""
        here = self.rank if owner is None else owner
        if not content and type(round) is int and is_token(data, (source, here, token, round)):
            self._say(Consumed((source, here, token, round)))
            return
        expected = Payload(source, here, token, round).with_content(**content)
        caller = sys._getframe(1)
        file, line = caller.f_code.co_filename, caller.f_lineno
        self.trusted = (data, expected, Place(file, line, ""))
        taken = self._recognised(data, expected)
        super().consume(taken, source, token, round, owner=owner, **content)

    def _recognised(self, data: Any, expected: Payload) -> Any:
        """The data, each value that has the bytes expected as the value that is expected."""
        if isinstance(data, Block):
            return Block({n: self._as(v, n, expected) for n, v in vars(data).items()})
        name = getattr(uncover(data), "field", "payload")
        return self._as(data, name, expected)

    def _as(self, found: Any, name: str, expected: Payload) -> Any:
        value, wanted = uncover(found), expected.field(name)
        if not self._same(value, wanted):
            return found
        return Opaque(wanted) if isinstance(found, Opaque) else wanted


def is_of_core(file: str) -> bool:
    """Whether code is not the role's own, but that of the core it awaits."""
    return file.endswith(("/core.py", "\\core.py"))


def place_of(coroutine: CoroutineType[Any, Any, Any], at: str = "") -> Place | None:
    """The innermost line of the role's own code at which it is suspended, or None at its end."""
    found: tuple[str, int] | None = None
    inner: Any = coroutine
    while isinstance(inner, CoroutineType) and inner.cr_frame is not None:
        file = inner.cr_frame.f_code.co_filename
        if found is None or not is_of_core(file):
            found = file, inner.cr_frame.f_lineno
        inner = inner.cr_await
    if found is None:
        return None
    return Place(*found, linecache.getline(*found).strip(), at)
