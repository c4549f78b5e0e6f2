"""What surely precedes what, and the judgement of each read and write.

Events are numbers in the order of the run, what precedes an event is a set of bits. Places are
cells of memory and keys of ghosts. The rules are those of docs/certificate.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from syncproof.checkers.certificate.contents import (
    MOST_CONTENTS,
    Content,
    History,
    TooMany,
    Write,
    all_commute,
    possible,
)
from syncproof.checkers.certificate.roles import LiveRoles, NotCertified
from syncproof.checkers.certificate.sweeps import Sweep
from syncproof.models.nodes import plain

Evaluate = Callable[[tuple[int, ...]], Any]
"""What a read does with the values in its places; `BLOCKED` if it waits on."""
BLOCKED = object()


def bits(events: int) -> Iterator[int]:
    """The numbers of some events."""
    while events:
        event = events & -events
        yield event.bit_length() - 1
        events ^= event


@dataclass
class Read:
    """A read that was judged, for when a later write turns out not to be ordered after it.

    ``groups`` are the places read together, one group after the other in any order; ``known`` is
    what preceded it before it taught anything, ``surely`` what it taught; ``own`` are events whose
    writes it does not see; ``position`` says where its process was in what it was fed; ``dropped``
    that its role throws the value away.
    """

    event: int
    process: int
    position: int
    groups: Collection[tuple[int, ...]]
    known: int
    own: int
    exempt: bool
    dropped: bool
    evaluate: Evaluate
    result: Any
    sweep: Sweep | None = None
    surely: int = 0

    @property
    def places(self) -> set[int]:
        """All the places that it may read."""
        return {place for group in self.groups for place in group}


def no_value(_: tuple[int, ...]) -> Any:
    """Stands for the value of a sweep, which is judged as a whole."""
    raise AssertionError("a sweep has no value of its own")


class Relation:
    """Events, what precedes them, and what they do to memory."""

    def __init__(self, roles: LiveRoles, initial: list[int]) -> None:
        self.roles = roles
        self.pasts: list[int] = [1]
        self.names: list[str] = ["start"]
        self.histories = [History(value) for value in initial]
        self._reads: dict[int, list[Read]] = {}
        self._readers: dict[int, int] = {}
        self._alike: dict[tuple[int, Hashable], tuple[Read, Any]] = {}
        self._doubtful: set[int] = set()

    def add_event(self, process: int, past: int, what: str) -> int:
        """A new event after those in ``past``."""
        event = len(self.pasts)
        self.pasts.append(past | 1 << event)
        self.names.append(f"{self.roles.names[process]}'s {what}")
        return event

    def add_write(self, place: int, write: Write) -> None:
        """A write happens: earlier ones precede it or commute, and reads that do not, bear it."""
        history, past = self.histories[place], self.pasts[write.event]
        missing = history.before[-1] & ~past
        if missing:
            self._check_unordered(history, write, past)
        history.append(write)
        readers = self._readers.get(place)
        if readers is not None:
            for event in bits(readers & ~past):
                if any(not r.exempt and place in r.places for r in self._reads[event]):
                    late, early = self.names[write.event], self.names[event]
                    raise NotCertified(f"nothing orders {late} after {early}")
                self._doubtful.add(event)
            if write.absolute:
                self._readers[place] = readers & ~past  # what comes later, comes after the others

    def _check_unordered(self, history: History, write: Write, past: int) -> None:
        for other in history.writes[history.unknown_since(past) :]:
            if past >> other.event & 1 or other.event == write.event:
                continue
            if write.absolute or other.absolute:
                late, early = self.names[write.event], self.names[other.event]
                raise NotCertified(f"nothing orders {late} after {early}")
            history.mixed |= write.family is None or write.family != other.family

    def add_read(self, read: Read) -> None:
        """A read happens: it is judged, and comes after what it has surely seen."""
        read.surely = self._judge(read, 0)
        self.pasts[read.event] |= read.surely
        self._reads.setdefault(read.event, []).append(read)
        for place in read.places:
            self._readers[place] = self._readers.get(place, 0) | 1 << read.event

    def _judge(self, read: Read, after: int) -> int:
        """Check a read on all that it may see; gives what has surely happened when it passes.

        ``after`` are the events that come after it.
        """
        if read.sweep is not None:
            return read.known | self.with_pasts(read.sweep.judge(after) & ~read.known)
        now, surely = read.event, -1
        contents = self.contents(read.groups, read.known, now, after | read.own)
        several = max(map(len, contents)) > 1
        if several and not read.exempt:
            raise NotCertified(f"nothing orders {self._unknown(read)} before {self.names[now]}")
        seen = 0
        for chosen in product(*contents):
            seen += 1
            if seen > MOST_CONTENTS:
                raise TooMany
            result = read.evaluate(tuple(value for each in chosen for value in each.values))
            if result is BLOCKED:
                if all(each.complete for each in chosen):
                    raise NotCertified(f"{self.names[now]} may wait in vain")
                continue
            union = 0
            for each in chosen:
                union |= each.surely
            surely &= union
            self._note_result(read, result)
        return read.known | self.with_pasts(surely & ~read.known if surely != -1 else 0)

    def _unknown(self, read: Read) -> str:
        """A put that may come before a read or after it, in words."""
        for place in sorted(read.places):
            history = self.histories[place]
            for write in history.writes[history.unknown_since(read.known) :]:
                if not read.known >> write.event & 1:
                    return self.names[write.event]
        return "a put"

    def contents(
        self, groups: Collection[tuple[int, ...]], known: int, now: int, after: int
    ) -> list[list[Content]]:
        """What each of some groups of places may hold."""
        histories = self.histories
        return [
            possible([histories[place] for place in group], self.pasts, known, now, after)
            for group in groups
        ]

    def with_pasts(self, events: int) -> int:
        """Some events with all that precedes them."""
        found = 0
        for event in bits(events):
            found |= self.pasts[event]
        return found

    def _note_result(self, read: Read, result: Any) -> None:
        """A read may also give this: if it is not the same, its role must not care."""
        key = plain(result)
        if not read.dropped and key != plain(read.result):
            self._alike[read.event, key] = read, result

    def _judge_again(self, read: Read) -> None:
        """Later writes are not ordered after a read, so the read may see them."""
        after = 0
        for place in read.places:
            for write in self.histories[place].writes:
                if self.pasts[write.event] >> read.event & 1:
                    after |= 1 << write.event
        if read.surely & ~self._judge(read, after & ~self.pasts[read.event]):
            raise NotCertified(f"{self.names[read.event]} may pass before what it waited for")

    def settle(self) -> None:
        """What can be said only when the run is over; `NotCertified` if it is not so."""
        for event in sorted(self._doubtful):
            for read in self._reads[event]:
                self._judge_again(read)
        for history in self.histories:
            if history.mixed and not all_commute(history, self.pasts):
                raise NotCertified("atomics that nothing orders do not commute")
        for read, result in self._alike.values():
            if not self.roles.goes_on_alike(read.process, read.position, read.result, result):
                raise NotCertified(f"{self.names[read.event]} may give several values")

    def reads_in(self, event: int, place: int) -> bool:
        """Whether an event has read a place."""
        return bool(self._readers.get(place, 0) >> event & 1)
