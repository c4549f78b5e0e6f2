"""What memory may hold at an event, given what surely precedes it.

Events are numbers in the order of the run, sets of them are the bits of an integer. Each place
(a cell, or a ghost's key) has a history of writes, each a function of what it held before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

MOST_CONTENTS = 4096

Function = Callable[[int], int]
"""From the value number that a place holds to the one that it holds after a write."""


class TooMany(Exception):
    """More contents are possible than are tried."""


@dataclass
class Write:
    """What one event does to one place.

    ``absolute`` writes put a value whatever was there. Writes of one ``family`` commute.
    """

    event: int
    function: Function
    absolute: bool
    family: Hashable = None


@dataclass
class History:
    """The writes to one place in the order of the run; ``before[i]`` are the events of the first i.

    ``mixed`` says that some are unordered and not of one family: they have to be shown to commute.
    """

    initial: int
    writes: list[Write] = field(default_factory=list)
    before: list[int] = field(default_factory=lambda: [0])
    values: list[int] = field(default_factory=list)
    mixed: bool = False

    @property
    def current(self) -> int:
        """What the run has put here last."""
        return self.values[-1] if self.values else self.initial

    def append(self, write: Write) -> None:
        """A write of the run."""
        self.values.append(write.function(self.current))
        self.writes.append(write)
        self.before.append(self.before[-1] | 1 << write.event)

    def unknown_since(self, known: int) -> int:
        """How many of the first writes are all among the events ``known``."""
        number = len(self.writes)
        while number and self.before[number] & ~known:
            number -= 1
            if self.writes[number].absolute and known >> self.writes[number].event & 1:
                return number  # all writes before an absolute one precede it
        return number

    def value_after(self, first: int) -> int:
        """What the place holds after the first writes."""
        return self.values[first - 1] if first else self.initial


@dataclass(frozen=True)
class Content:
    """Values that some places may hold together.

    ``surely`` are the events that have happened in each way that leads here; ``complete`` says that
    none of the events before ``now`` is missing.
    """

    values: tuple[int, ...]
    surely: int
    complete: bool


def possible(
    histories: Sequence[History], pasts: Sequence[int], known: int, now: int, after: int = 0
) -> list[Content]:
    """The contents that some places may have together at an event.

    ``known`` are the events that precede it, ``now`` its number, and ``after`` those that come
    after it, so that they cannot have happened. Every other event may have, in any order that
    respects ``pasts``. Raises `TooMany`.
    """
    starts = [history.unknown_since(known) for history in histories]
    writes: dict[int, list[tuple[int, Write]]] = {}
    for at, (history, start) in enumerate(zip(histories, starts, strict=True)):
        for write in history.writes[start:]:
            if not after >> write.event & 1:
                writes.setdefault(write.event, []).append((at, write))
    open_events = [event for event in sorted(writes) if not known >> event & 1]
    among = sum(1 << event for event in open_events)
    needed = {event: pasts[event] & among & ~(1 << event) for event in open_events}
    followed = 0
    for each in needed.values():
        followed |= each
    first = tuple(h.value_after(s) for h, s in zip(histories, starts, strict=True))
    found: dict[tuple[tuple[int, ...], int, bool], int] = {(first, 0, True): known}
    for event in sorted(writes):
        found = _with(found, event, writes[event], needed.get(event), followed, event < now)
        if len(found) > MOST_CONTENTS:
            raise TooMany
    merged: dict[tuple[tuple[int, ...], bool], int] = {}
    for (values, _, complete), surely in found.items():
        merged[values, complete] = merged.get((values, complete), surely) & surely
    return [Content(values, surely, complete) for (values, complete), surely in merged.items()]


def _with(
    found: dict[tuple[tuple[int, ...], int, bool], int],
    event: int,
    writes: list[tuple[int, Write]],
    needed: int | None,
    followed: int,
    earlier: bool,
) -> dict[tuple[tuple[int, ...], int, bool], int]:
    """The contents with one more event, and, unless it is known to have happened, without."""
    bit, more = 1 << event, dict[tuple[tuple[int, ...], int, bool], int]()
    for (values, included, complete), surely in found.items():
        if needed is None or needed & ~included == 0:
            changed = list(values)
            for at, write in writes:
                changed[at] = write.function(changed[at])
            kept = included | (bit & followed)
            _add(more, (tuple(changed), kept, complete), surely | bit)
        if needed is not None:
            _add(more, (values, included, complete and not earlier), surely)
    return more


def _add(
    found: dict[tuple[tuple[int, ...], int, bool], int],
    key: tuple[tuple[int, ...], int, bool],
    surely: int,
) -> None:
    found[key] = found.get(key, surely) & surely


def all_commute(history: History, pasts: Sequence[int]) -> bool:
    """Whether unordered writes give the same in each order, on all that the place may hold.

    Tried on every set of events that may have happened; Raises `TooMany`.
    """
    events: dict[int, list[Write]] = {}
    for write in history.writes:
        events.setdefault(write.event, []).append(write)
    among = sum(1 << event for event in events)
    held: dict[int, int] = {0: history.initial}
    waiting = [0]
    while waiting:
        done = waiting.pop()
        for event, writes in events.items():
            bit = 1 << event
            if done & bit or pasts[event] & among & ~bit & ~done:
                continue
            value = held[done]
            for write in writes:
                value = write.function(value)
            if done | bit not in held:
                held[done | bit] = value
                waiting.append(done | bit)
                if len(held) > MOST_CONTENTS:
                    raise TooMany
            elif held[done | bit] != value:
                return False
    return True
