"""One depth-first search in a random order, which remembers states by bits of a filter.

A state whose bits are all set already is taken as seen: memory is fixed, and a state may be missed.
So a search tells what it found, and nothing about what it did not (G. Holzmann, "An analysis of
bitstate hashing"; Holzmann, Joshi, Groce, "Swarm verification").
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any

from syncproof.checkers.explicit.counterexample import build_trace
from syncproof.checkers.explicit.search import (
    Budget,
    Exploration,
    Finding,
    Meter,
    judge_end,
    race_pairs,
)
from syncproof.models.core import Unresolved
from syncproof.models.instance import Instance
from syncproof.models.narrate import describe
from syncproof.models.nodes import TooLong
from syncproof.models.system import System
from syncproof.models.transitions import Failure, Overfull, State, Step, Transition
from syncproof.models.verdict import Question, to_data

FILTER_BITS = 1 << 26
HASHES = 3
DEPTHS = (25_000, 200, 5_000, 1_000)
"""Bounds on the length of runs, taken in turn: a search with a short one sees more beginnings."""
REPEATS = 8
"""A search ends after drawing so many assignments in a row that it has searched already."""


@dataclass
class Dive:
    """What one search saw, as plain data; ``load`` is the largest share of filter bits set.

    ``trace`` is that of a violation, empty if there is none. ``stopped`` names the budget that
    ended the search; ``cut`` says that some runs were left at the bound on their length.
    """

    seed: int
    states: int = 0
    transitions: int = 0
    depth: int = 0
    assignments: int = 0
    load: float = 0.0
    cut: bool = False
    stopped: str = ""
    trace: dict[str, Any] | None = None

    def as_data(self) -> dict[str, Any]:
        """Itself as a dictionary that any executor can carry."""
        return asdict(self)


class Filter:
    """A set of states that may take a new one for known, never a known one for new."""

    def __init__(self, seed: int, bits: int = FILTER_BITS) -> None:
        self.seed, self.mask = seed, bits - 1
        self.table = bytearray(bits // 8)
        self.used = 0

    def add(self, state: State) -> bool:
        """Whether ``state`` is new."""
        first, second = hash((self.seed, state)), hash((state, self.seed)) | 1
        before = self.used
        for i in range(HASHES):
            place = (first + i * second) & self.mask
            bit = 1 << (place & 7)
            if not self.table[place >> 3] & bit:
                self.table[place >> 3] |= bit
                self.used += 1
        return self.used > before

    @property
    def load(self) -> float:
        """The share of bits that are set."""
        return self.used / (self.mask + 1)


def dive(instance: Instance, question: Question, seed: int, budget: Budget) -> Dive:
    """Draw an assignment of the free choices, search it, and again until the budget is used.

    The first violation ends it. Equal arguments give an equal result, but for a budget of time.
    """
    found, draw, meter = Dive(seed), random.Random(seed), Meter(budget)
    searched: set[str] = set()
    repeats = 0
    while repeats < REPEATS and not found.stopped and found.trace is None:
        choices: dict[Hashable, Hashable] = {
            name: draw.choice(values) for name, values in instance.initial_choices().items()
        }
        before = (meter.states, meter.transitions)
        while True:
            try:
                _Search(instance.system(choices), question, choices, draw, meter, found).run()
                break
            except Unresolved as choice:
                choices[choice.name] = draw.choice(choice.values)
                meter.states, meter.transitions = before
        key = repr(sorted(map(repr, choices.items())))
        repeats = repeats + 1 if key in searched else 0
        searched.add(key)
    found.assignments = len(searched)
    found.states, found.transitions, found.depth = meter.states, meter.transitions, meter.depth
    return found


class _Search:
    """The search of one assignment."""

    def __init__(
        self,
        system: System,
        question: Question,
        choices: dict[Hashable, Hashable],
        draw: random.Random,
        meter: Meter,
        found: Dive,
    ) -> None:
        self.system, self.question, self.choices = system, question, choices
        self.draw, self.meter, self.found = draw, meter, found
        self.asked = frozenset(question.properties)
        self.deepest = DEPTHS[found.seed % len(DEPTHS)]
        self.filter = Filter(found.seed)
        self.run_of: list[tuple[State, Step | None]] = []
        self.left: list[list[Transition]] = []

    def run(self) -> None:
        """Dive until nothing is left, something is wrong or a budget is used."""
        start = self.system.initial_transition()
        if self._is_wrong(None, start):
            return
        self.filter.add(start.state)
        self._enter(start.state, None)
        while self.left and self.found.trace is None and not self.found.stopped:
            if not self.left[-1]:
                self.left.pop()
                self.run_of.pop()
                continue
            each = self.left[-1].pop()
            self.meter.transitions += 1
            if not self._is_wrong(self.run_of[-1][0], each) and self.filter.add(each.state):
                self._enter(each.state, each.step)
        self.found.load = max(self.found.load, self.filter.load)

    def _enter(self, state: State, step: Step | None) -> None:
        """Stand in a new state, with what may be done there in a random order."""
        self.run_of.append((state, step))
        self.left.append([])
        self.meter.states += 1
        self.meter.depth = max(self.meter.depth, len(self.run_of) - 1)
        self.found.stopped = self.meter.exceeded(len(self.left))
        try:
            enabled = self.system.transitions(state)
        except Overfull:
            self.found.stopped = "the in-flight bound: raise it with --fabric NAME,in_flight=N"
            return
        except TooLong as reason:
            self.found.stopped = str(reason)
            return
        if self._ends_wrong(state, enabled):
            return
        if len(self.run_of) > self.deepest:
            self.found.cut = True
        else:
            self.left[-1] = self.draw.sample(enabled, len(enabled))

    def _is_wrong(self, before: State | None, transition: Transition) -> bool:
        """Whether a step breaks a property; then the search is over."""
        for failure in transition.failures:
            if failure.property in self.asked:
                if before is None:
                    self.run_of.append((transition.state, None))
                last = None if before is None else transition
                self._report(Finding(failure, before or transition.state, last))
                return True
        return False

    def _ends_wrong(self, state: State, enabled: list[Transition]) -> bool:
        """Whether a state is a race, a hang or a bad end; a race of polled cells is left out."""
        if "race-free" in self.asked:
            for cell, certain, one, other in race_pairs(self.system, state, enabled):
                if certain:
                    names = [describe(self.system, state, each) for each in (one, other)]
                    message = f"{' and '.join(names)} are not ordered on {self.system.cells[cell]}"
                    failure = Failure("race-free", message, one.step.process)
                    self._report(Finding(failure, state, None, cell))
                    return True
        if any(each.fair for each in enabled):
            return False
        if not self.system.all_done(state):
            wrong = [Failure("deadlock-free", "no process can go on", -1)]
        else:
            wrong = judge_end(self.system, state)
        for failure in wrong:
            if failure.property in self.asked:
                self._report(Finding(failure, state, None))
                return True
        return False

    def _report(self, finding: Finding) -> None:
        parents: dict[State, tuple[State | None, Step | None, int]] = {}
        before: State | None = None
        for depth, (state, step) in enumerate(self.run_of):
            parents[state] = (before, step, depth)
            before = state
        exploration = Exploration(self.system, parents)
        trace = build_trace(self.question, finding, exploration, self.choices, fewest=False)
        self.found.trace = dict(to_data(trace))
