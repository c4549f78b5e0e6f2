"""Schedules from Python: the same parts as in a file, checked when the schedule is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from syncproof.models.errors import UserError
from syncproof.models.taskflow.schedule import (
    COUNTER,
    Event,
    Launches,
    Pool,
    Queue,
    Schedule,
    Task,
    Tensor,
    Tiles,
)
from syncproof.models.taskflow.validation import validate

T = TypeVar("T")
Access = Iterable[tuple[str, int, int]]


class Builder:
    """Collects the parts of a schedule; ``build`` gives it, or a `UserError` that names a part.

    >>> b = Builder(ranks=1)
    >>> b.tensor("x", 0, 1)
    >>> b.queue("aiv0", 0); b.queue("aic0", 0, core="aic")
    >>> b.event("ready", 0)
    >>> b.task("load", "aiv0", writes=[("x", 0, 1)], triggers={"ready": 1})
    >>> b.task("gemm", "aic0", waits={"ready": 1}, reads=[("x", 0, 1)])
    >>> schedule = b.build()
    """

    def __init__(
        self, ranks: int, name: str = "schedule", launches: Launches | None = None
    ) -> None:
        self.ranks, self.name = ranks, name
        self.launches = launches or Launches()
        self._tensors: dict[str, Tensor] = {}
        self._queues: dict[str, Queue] = {}
        self._events: dict[str, Event] = {}
        self._pools: dict[str, Pool] = {}
        self._tasks: list[Task] = []

    def tensor(self, name: str, rank: int, tiles: int, *, is_input: bool = False) -> None:
        """A tensor of ``tiles`` tiles in the memory of ``rank``."""
        self._add(self._tensors, "tensor", name, Tensor(name, rank, tiles, is_input))

    def queue(self, name: str, rank: int, *, core: str = "aiv", pool: str = "") -> None:
        """A queue of ``rank``; ``core`` is ``aic``, ``aiv`` or ``pipe``."""
        self._add(self._queues, "queue", name, Queue(name, rank, core, pool))

    def pool(self, name: str, rank: int, size: int) -> None:
        """A pool of ``size`` cores that queues hold while they run."""
        self._add(self._pools, "pool", name, Pool(name, rank, size))

    def event(
        self,
        name: str,
        rank: int = 0,
        *,
        kind: str = COUNTER,
        id: int | None = None,
        mode: int = 2,
        cores: Iterable[str] = (),
        arrivals: int = 1,
        epochs: bool = False,
    ) -> None:
        """An event; see `Event`."""
        made = Event(name, kind, rank, id, mode, tuple(cores), arrivals, epochs)
        self._add(self._events, "event", name, made)

    def task(
        self,
        name: str,
        queue: str,
        *,
        reads: Access = (),
        writes: Access = (),
        waits: Mapping[str, int] | None = None,
        triggers: Mapping[str, int] | None = None,
        duration: float = 0.0,
        operator: str = "",
        quiet: bool = True,
    ) -> None:
        """A task at the end of its queue; see `Task`."""
        self._tasks.append(
            Task(
                name,
                queue,
                tuple(Tiles(*each) for each in reads),
                tuple(Tiles(*each) for each in writes),
                tuple((waits or {}).items()),
                tuple((triggers or {}).items()),
                duration,
                operator,
                quiet,
            )
        )

    def build(self) -> Schedule:
        """The schedule, validated."""
        made = Schedule(
            self.name,
            self.ranks,
            self._tensors,
            self._queues,
            self._events,
            tuple(self._tasks),
            self._pools,
            self.launches,
        )
        validate(made)
        return made

    def _add(self, parts: dict[str, T], what: str, name: str, part: T) -> None:
        if name in parts:
            raise UserError(f"a second {what} {name!r}", where=self.name, expected="another name")
        parts[name] = part
