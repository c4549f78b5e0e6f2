"""What of a run its last step depends on, told from the steps alone.

It spares the model the rest. Where it errs the model refuses what is left, and walks the whole run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.events import Event
from syncproof.models.fabric import Profile

READS = (events.READ, events.WAIT, events.UPDATE)
DRAINS = (events.QUIET, events.FENCE)
UNTOLD = (*events.OF_A_CACHE, events.PROPAGATE)
"""Steps of which the cells do not tell what they depend on."""


def past_of_the_end(told: Sequence[Event], profile: Profile) -> list[Event]:
    """The steps that the last one depends on, in order; all where that is not told."""
    run = [each for each in told if each.do != events.CONSUME]
    if not run or any(each.do in UNTOLD for each in run):
        return run
    before = _Dependencies(profile).all(run)
    past: set[int] = set()
    wanted = [len(run) - 1]
    while wanted:
        number = wanted.pop()
        if number not in past:
            past.add(number)
            wanted += before[number]
    return [run[number] for number in sorted(past)]


class _Dependencies:
    def __init__(self, profile: Profile) -> None:
        self._in_order = profile.ordering != "none" or profile.fence == "orders" or profile.hops
        self._last_of: dict[int, int] = {}
        self._write_of: dict[int, int] = {}
        self._landing_of: dict[tuple[int, int], int] = {}
        self._issues: dict[tuple[int, int], deque[int]] = {}
        self._by_fabric: dict[int, list[int]] = {}
        """What the fabric has done with the puts of each process."""
        self._sources: dict[int, list[int]] = {}

    def all(self, run: Sequence[Event]) -> list[set[int]]:
        """For each step those that it depends on directly."""
        return [self._of(number, event) for number, event in enumerate(run)]

    def _of(self, number: int, event: Event) -> set[int]:
        if event.do == events.LAND:
            return self._of_landing(number, event)
        if event.do == events.READ_SOURCE:
            return self._of_source(number, event)
        return self._of_process(number, event)

    def _of_process(self, number: int, event: Event) -> set[int]:
        process = event.process
        members = event.members or (process,)
        needs = {self._last_of[each] for each in members if each in self._last_of}
        self._last_of.update(dict.fromkeys(members, number))
        if event.do in READS:
            needs |= {self._write_of[cell] for cell in event.cells if cell in self._write_of}
        if event.do in DRAINS or (event.do in READS and self._in_order):
            needs |= {*self._by_fabric.get(process, ())}
        if event.do == events.ISSUE:
            for cell in event.cells:
                self._issues.setdefault((process, cell), deque()).append(number)
        if event.do in (events.STORE, events.UPDATE):
            self._write_of.update(dict.fromkeys(event.cells, number))
        return needs

    def _of_landing(self, number: int, event: Event) -> set[int]:
        owner = event.process
        needs = {*self._sources.get(owner, ())}
        for cell in event.cells:
            key = (owner, cell)
            if self._issues.get(key):
                needs.add(self._issues[key].popleft())
            if key in self._landing_of:
                needs.add(self._landing_of[key])
            self._landing_of[key] = number
        if self._in_order:
            needs |= {*self._by_fabric.get(owner, ())}
        self._write_of.update(dict.fromkeys(event.cells, number))
        self._by_fabric.setdefault(owner, []).append(number)
        return needs

    def _of_source(self, number: int, event: Event) -> set[int]:
        owner = event.process
        needs = {self._write_of[cell] for cell in event.cells if cell in self._write_of}
        needs |= {self._last_of[owner], *self._by_fabric.get(owner, ())}
        self._by_fabric.setdefault(owner, []).append(number)
        self._sources.setdefault(owner, []).append(number)
        return needs
