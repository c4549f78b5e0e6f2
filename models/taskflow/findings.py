"""What a check of a schedule says: findings with the tasks they are about, and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from syncproof.models.verdict import Answer, PropertyVerdict, to_data

HANG, ORDER, INITIALISED, THRESHOLDS, PENDING, QUIESCENT, RESET = (
    "deadlock-free",
    "ordered",
    "initialised",
    "thresholds",
    "ids",
    "quiescent",
    "reset",
)
CHECKED = {
    HANG: "every task of every queue gets to run",
    ORDER: "two accesses to a tile, one of them a write, are ordered by queues and events",
    INITIALISED: "what is read was written before, or is an input",
    THRESHOLDS: "each wait is met by one set of triggers, whatever the interleaving",
    PENDING: "no more sets are pending than the hardware counts, no id means two things at once",
    QUIESCENT: "nothing is pending at the end, so that the next launch starts clean",
    RESET: "zeroing between launches erases no trigger",
}
SHOWN = 20
"""Findings of one property that are kept; the others are counted."""


@dataclass(frozen=True)
class Finding:
    """One fault: ``tasks`` are the offending ones by name, ``edges`` what to draw, as pairs of
    task numbers (from, to); ``waits`` are the numbers of tasks that wait for ever."""

    property: str
    message: str
    tasks: tuple[str, ...]
    edges: tuple[tuple[int, int], ...] = ()
    waits: tuple[int, ...] = ()


@dataclass(frozen=True)
class Cost:
    """A simulated run, in microseconds.

    ``by_operator`` is the makespan of the same tasks run operator by operator with a barrier after
    each; ``without_implied`` that of the schedule without the waits that others imply;
    ``contention`` the most ranks that send to one rank at once, by destination.
    """

    makespan: float
    critical_path: float
    busiest_queue: float
    by_operator: float
    without_implied: float
    idle: Mapping[str, float]
    contention: Mapping[int, int]

    @property
    def bound(self) -> float:
        """What no schedule of these tasks on these queues can beat."""
        return max(self.critical_path, self.busiest_queue)


@dataclass(frozen=True)
class Checked:
    """The answer for each property, with its findings.

    ``implied`` are (task, event) whose waits can go without changing what precedes what;
    ``persists`` the counters that are not zero at the end, with their values.
    """

    name: str
    tasks: int
    dependencies: int
    properties: tuple[PropertyVerdict, ...]
    findings: tuple[Finding, ...]
    implied: tuple[tuple[str, str], ...] = ()
    implied_events: tuple[str, ...] = ()
    persists: Mapping[str, int] = field(default_factory=dict)
    cost: Cost | None = None
    notes: tuple[str, ...] = ()

    @property
    def answer(self) -> Answer:
        """Violated before undecided before proved."""
        given = {each.answer for each in self.properties}
        for worst in (Answer.BROKEN, Answer.VIOLATED, Answer.UNDECIDED):
            if worst in given:
                return worst
        return Answer.PROVED

    def of(self, name: str) -> Answer:
        """The answer for one property."""
        return next(each.answer for each in self.properties if each.property == name)

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**to_data(self), "kind": "taskflow", "answer": self.answer.value}
