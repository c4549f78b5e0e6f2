"""What a run does, step by step: the words of its log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

ISSUE, READ, WAIT, UPDATE, STORE = "issue", "read", "wait", "update", "store"
QUIET, FENCE, SYNC, CONSUME = "quiet", "fence", "sync", "consume"
FETCH, CLEAN, STORE_CACHED, READ_CACHED = "fetch", "clean", "store cached", "read cached"
LAND, READ_SOURCE, PROPAGATE = "land", "read source", "propagate"
WRITE_BACK, EVICT = "write back", "evict"

OF_THE_FABRIC = (LAND, READ_SOURCE, PROPAGATE, WRITE_BACK, EVICT)
"""Steps that no process takes: the fabric delivers, a cache gives up a line."""

OF_A_CACHE = (FETCH, CLEAN, STORE_CACHED, READ_CACHED, WRITE_BACK, EVICT)


class Event(NamedTuple):
    """One step: what it is, the process that takes it (or whose put or cache it is about), the
    cells it touches and the bytes in them.

    The bytes are those read (read, wait, read cached), those before (update) or those there
    afterwards (land, propagate). ``token`` is what a consume takes, ``members`` are those who meet
    in a sync.
    """

    do: str
    process: int
    cells: tuple[int, ...] = ()
    data: tuple[bytes, ...] = ()
    token: tuple[Any, ...] = ()
    members: tuple[int, ...] = ()


class Recorder:
    """Counts steps, and passes them on to ``listen`` once the roles have made their choices."""

    def __init__(self, listen: Callable[[Event], None] | None = None) -> None:
        self.steps = 0
        self._listen = listen
        self._told: list[Event] = []

    def tell(self, event: Event) -> None:
        """Note a step."""
        if self._listen is not None:
            self._told.append(event)

    def tell_all(self) -> None:
        """Pass on what was noted."""
        if self._told and self._listen is not None:
            told, self._told = self._told, []
            for event in told:
                self._listen(event)
