"""A second check of a record, apart from the clocks and slow: each step with all that precedes it.

Sets of events are the bits of integers. Nothing here is shared with `clocks`, so that each can be
tried on what the other says.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, field

from syncproof.checkers.certificate.knowledge import Known
from syncproof.checkers.certificate.record import (
    FENCE,
    PUT,
    QUIET,
    READ,
    RETURN,
    STORE,
    SYNC,
    WAIT,
    Record,
)


@dataclass
class _Landing:
    process: int
    event: int
    past: int
    at_once: bool


@dataclass
class Replay:
    """What precedes each event of a record; ``wrong`` is the first rule that does not hold."""

    record: Record
    wrong: str = ""
    pasts: list[int] = field(default_factory=list)
    landings: list[_Landing] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = self.record.processes
        self.events: list[list[int]] = [[] for _ in range(count)]
        self._last, self._fenced = [0] * count, [0] * count
        self._issued: list[list[int]] = [[] for _ in range(count)]
        self._history: dict[int, list[int]] = {}
        self._reads: dict[int, int] = {}
        self._signals = frozenset(self.record.signals)

    def run(self) -> Replay:
        """Take the instructions one by one, up to the first that is wrong."""
        for instruction in self.record:
            self._take(instruction)
            if self.wrong:
                break
        return self

    def _take(self, instruction: tuple[int, ...]) -> None:
        kind, process = instruction[0], instruction[1]
        if kind == PUT:
            self._put(process, instruction[2:])
        elif kind == STORE:
            self._store(process, instruction[3:])
        elif kind == READ:
            self._load(process, instruction[3:])
        elif kind == WAIT:
            self._wait(process, instruction[2], instruction[3])
        elif kind == SYNC:
            self._sync(instruction[2:])
        elif kind == RETURN:
            landed = self._all(self._issued[process])
            self._expect(not landed & ~self._last[process], f"process {process} returns early")
        else:
            event = self._step(process)
            if kind == QUIET:
                self._after(process, event, self._all(self._issued[process]))
            elif kind == FENCE:
                self._fenced[process] |= self._all(self._issued[process])

    def _expect(self, holds: bool, what: str) -> None:
        self.wrong = self.wrong or ("" if holds else what)

    def _all(self, landings: list[int]) -> int:
        found = 0
        for each in landings:
            found |= self.landings[each].past
        return found

    def _event(self, past: int) -> int:
        self.pasts.append(past | 1 << len(self.pasts))
        return len(self.pasts) - 1

    def _step(self, process: int) -> int:
        event = self._event(self._last[process])
        self.events[process].append(event)
        self._last[process] = self.pasts[event]
        return event

    def _after(self, process: int, event: int, past: int) -> None:
        self.pasts[event] |= past
        self._last[process] = self.pasts[event]

    def _put(self, process: int, rest: tuple[int, ...]) -> None:
        issue, own, at = self._step(process), list[int](), 1
        for _ in range(rest[0]):
            places = rest[at + 1 : at + 1 + rest[at]]
            at += 1 + rest[at]
            number = len(self.landings)
            past = self.pasts[issue] | self._fenced[process]
            if number in self._signals:
                past |= self._all([each for each in own if each not in self._signals])
            if self.record.same_address_order:
                past |= self._all(self._same_source(process, places))
            self._count_in_flight(process, places, self.pasts[issue])
            event = self._event(past)
            self.landings.append(_Landing(process, event, self.pasts[event], at_once=False))
            self._issued[process].append(number)
            own.append(number)
            self._land(number, places)

    def _same_source(self, process: int, places: tuple[int, ...]) -> list[int]:
        return [
            each
            for place in places
            for each in self._history.get(place, [])
            if self.landings[each].process == process and not self.landings[each].at_once
        ]

    def _count_in_flight(self, process: int, places: tuple[int, ...], known: int) -> None:
        for place in places:
            pending = [
                each
                for each in self._history.get(place, [])
                if self.landings[each].process == process
                and not known >> self.landings[each].event & 1
            ]
            self._expect(len(pending) < self.record.in_flight, f"too many in flight to {place}")

    def _store(self, process: int, places: tuple[int, ...]) -> None:
        event = self._step(process)
        self.landings.append(_Landing(process, event, self.pasts[event], at_once=True))
        self._land(len(self.landings) - 1, places)

    def _land(self, number: int, places: tuple[int, ...]) -> None:
        past = self.landings[number].past
        for place in places:
            before = self._history.setdefault(place, [])
            if before:
                last = self.landings[before[-1]].event
                self._expect(bool(past >> last & 1), f"landing {number} is not after the last")
            readers = self._reads.pop(place, 0)
            self._expect(not readers & ~past, f"landing {number} is not after a read")
            before.append(number)

    def _load(self, process: int, places: tuple[int, ...]) -> None:
        event = self._step(process)
        for place in places:
            before = self._history.get(place, [])
            if before:
                landed = self.landings[before[-1]].event
                self._expect(bool(self.pasts[event] >> landed & 1), f"a load of {place} is early")
            self._reads[place] = self._reads.get(place, 0) | 1 << event

    def _wait(self, process: int, place: int, fails_since: int) -> None:
        event, before = self._step(process), self._history.get(place, [])
        known = self.pasts[event]
        if before:
            allowed = [before[-1], *([fails_since] if fails_since >= 0 else [])]
            sure = any(known >> self.landings[each].event & 1 for each in allowed)
            self._expect(sure or fails_since < 0, f"a wait for {place} may pass early")
            self._after(process, event, self.landings[before[-1]].past)
        self._reads[place] = self._reads.get(place, 0) | 1 << event

    def _sync(self, members: tuple[int, ...]) -> None:
        event = self._event(0)
        for member in members:
            self.pasts[event] |= self._last[member]
            self.events[member].append(event)
        for member in members:
            self._last[member] = self.pasts[event]

    # Clocks

    def knows_too_much(self, known: Known) -> str:
        """What the clocks of a whole record say that does not precede, or nothing."""
        issues: dict[int, list[tuple[int, int]]] = {}
        for landing in self.landings:
            if not landing.at_once:
                step = bisect(self.events[landing.process], landing.event) - 1
                issues.setdefault(landing.process, []).append((step, landing.event))
        for process, last in enumerate(self._last):
            for other, events in enumerate(self.events):
                steps = int(known.steps[process, other])
                if any(not last >> event & 1 for event in events[:steps]):
                    return f"{process} does not know {steps} steps of {other}"
                landed = int(known.landed[process, other])
                for step, event in issues.get(other, []):
                    if step < landed and not last >> event & 1:
                        return f"{process} does not know a landing of {other}'s step {step}"
        return ""
