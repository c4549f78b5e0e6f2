"""Breadth-first search of one system in compiled loops, level by level.

A pass expands the rows of a level. Rows that meet a step nobody asked for before are set aside, the
step is filled in from the `System`, and the next pass takes them up: so levels, counts and verdicts
are those of `reference`. A pass is always finished, so that what is found does not depend on how
many threads there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from syncproof.checkers.explicit.loops import has_loop
from syncproof.checkers.explicit.search import (
    Exploration,
    Finding,
    Meter,
    judge_end,
    race_pairs,
    resident_bytes,
)
from syncproof.checkers.fast import machine_code
from syncproof.checkers.fast.arrays import (
    AT_ONCE,
    COUNT,
    HAS_FAILED,
    MOST_REQUESTS,
    NEXT,
    PENDING,
    REQUESTS,
    TERMINALS,
    Notes,
    Steps,
    Work,
    empty_words,
)
from syncproof.checkers.fast.assembly import Assembly
from syncproof.checkers.fast.layout import Layout
from syncproof.checkers.fast.states import States
from syncproof.checkers.fast.strides import Strides
from syncproof.checkers.fast.tabulation import Tabulation
from syncproof.checkers.fast.walk import walk
from syncproof.models.automaton import Automaton
from syncproof.models.narrate import describe
from syncproof.models.nodes import TooLong
from syncproof.models.system import System
from syncproof.models.transitions import Failure, Overfull, State, Transition

BUFFER = 1024
MOST_RECENT = 1 << 15
ROWS_A_CALL = 1 << 19
FEWEST_ROWS_FOR_THREADS = 1 << 14


class Stopped(Exception):
    """A limit was reached; the text names it."""


class NeedsAll(Exception):
    """Something is asked of states behind the frontier, which were forgotten."""


class Search:
    """One search; `run` gives what it found in the terms of the explicit engines."""

    def __init__(
        self,
        system: System,
        asked: frozenset[str],
        meter: Meter,
        groups: Sequence[tuple[int, ...]] = (),
        *,
        reduces: bool = False,
    ) -> None:
        self.system, self.asked, self.meter = system, asked, meter
        self.layout = Layout(system, groups)
        self.strides = Strides(system, self.layout, asked, reduces)
        self.start = self.strides.start()
        self.layout.begin(self.start.state)
        walk(self.strides, self.layout.meet)
        self.layout.arrange()
        self.tabulation = Tabulation(self.strides)
        self.assembly = Assembly(self.tabulation)
        self.steps: Steps = self.assembly.steps()
        self.threads = threads = meter.budget.threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._begin(keeps=self.layout.words > 1)

    def _begin(self, keeps: bool) -> None:
        """Nothing is found yet. States of one word need not be kept beside their table, but for
        the frontier; whatever needs the others in their order has all begin again."""
        self.keeps = keeps
        self.found = Exploration(self.system, {})
        self.levels = [0, 1]
        self._depth = 0
        self._states = States(self.layout, keeps, self._ask_for)
        self._notes: list[Notes] = []
        self._counted = 1
        self._races: dict[tuple[int, bool], tuple[int, State]] = {}
        self._good: list[int] = []

    @property
    def count(self) -> int:
        """How many states there are."""
        return self._states.count

    def state(self, row: int) -> State:
        """The state of a row."""
        return self._states.state(row)

    def run(self) -> Exploration:
        """Search until all is explored, a property is broken or a limit is reached."""
        before = self.meter.states, self.meter.transitions, self.meter.depth
        try:
            return self._run()
        except NeedsAll:
            self.meter.states, self.meter.transitions, self.meter.depth = before
            self._begin(keeps=True)
            return self._run()
        finally:
            if self._pool is not None:
                self._pool.shutdown()

    def _run(self) -> Exploration:
        self._enter()
        if self.found.findings:
            return self.found
        self._states.begin(self.start.state)
        self.meter.states += 1
        try:
            while self._level():
                pass
        except Overfull:
            self.found.stopped = "in_flight"
        except (Stopped, TooLong) as reason:
            self.found.stopped = str(reason)
        self.found.reached.update(self.tabulation.reached)
        if not self.found.stopped and not self.found.findings:
            self._judge_whole()
        return self.found

    def _enter(self) -> None:
        """Note what is said on the way into the first state that is kept."""
        first = self.start.steps[0]
        self.found.parents[first.state] = (None, None, 0)
        self.found.reached.update(self.start.reached)
        for failure in first.failures:
            if failure.property in self.asked:
                self.found.findings.append(Finding(failure, first.state, None))
        if not self.found.findings:
            self._take(first.state, self.start.steps[1:])

    # Levels

    def _level(self) -> bool:
        """Expand the rows of the last level; False when the search is over."""
        first, end = self.levels[-2:]
        rows: Any = np.zeros(0, np.int64)
        while True:
            pending = self._pass(first, end, rows)
            if self._judge_pass():
                return False
            if not len(pending):
                break
            self._fill_in(pending)
            rows = pending
        is_over = self._states.rows == end
        self.meter.depth = max(self.meter.depth, self._depth + (not is_over))
        self._depth += 1
        if self.keeps:
            self.levels.append(self._states.rows)
        else:
            self._forget(end)
        return not is_over

    def _forget(self, end: int) -> None:
        """Keep only the frontier, which begins with row ``end``."""
        if not self._is_acyclic():
            raise NeedsAll
        self._states.forget(end)
        self.levels = [0, self._states.rows]

    def _is_acyclic(self) -> bool:
        """Whether hangs can be told without the graph: if asked for, all runs end."""
        return "deadlock-free" not in self.asked or all(map(_is_finite, self.system.automata))

    def _pass(self, first: int, end: int, rows: Any) -> Any:
        """Expand rows ``first`` to ``end``, or those listed; the rows that were set aside."""
        total = len(rows) if len(rows) else end - first
        control = self._states.control
        control[NEXT] = 0 if len(rows) else first
        last = total if len(rows) else end
        control[PENDING] = control[REQUESTS] = control[TERMINALS] = 0
        self._work = Work(
            rows,
            np.empty(total, np.int64),
            np.empty((MOST_REQUESTS, 3), np.int64),
            np.empty(total, np.int64),
        )
        most = max(1, sum(self.tabulation.most_moves))
        block = max(1, BUFFER // most)
        threads = self.threads if total >= FEWEST_ROWS_FOR_THREADS else 1
        self._notes = [self._new_notes(block * most + AT_ONCE, total) for _ in range(threads)]
        while control[NEXT] < last:
            until = min(last, int(control[NEXT]) + ROWS_A_CALL)
            self._expand(until, block, block * most * threads, threads)
            control[NEXT] = min(int(control[NEXT]), until)
            self._count()
            self._look_at_limits(int(control[COUNT]) - end)
        return np.sort(self._work.pending[: control[PENDING]])

    def _expand(self, until: int, block: int, reserve: int, threads: int) -> None:
        """Expand up to ``until`` where there is room, after making some if there is none."""
        if self._states.room() < reserve:
            self._states.grow(reserve)
        room = self._states.room() - reserve
        if self.meter.budget.states:
            room = min(room, self.meter.budget.states - self.meter.states)
        room += self._states.rows

        def call(notes: Notes) -> Callable[[], int]:
            shared = (*self.steps, *self._states.store, *self._work, *notes)
            if self.layout.words == 1:
                return machine_code.prepared(
                    "expand_one", until, room, block, *shared, threads == 1
                )
            several = (self.layout.words, *self.layout.order())
            return machine_code.prepared("expand_many", until, room, block, *several, *shared)

        calls = [call(notes) for notes in self._notes[:threads]]
        if threads == 1 or self._pool is None:
            made = [calls[0]()]
        else:
            made = list(self._pool.map(lambda each: each(), calls))
        self.found.transitions += sum(made)
        self.meter.transitions += sum(made)

    def _new_notes(self, size: int, rows: int) -> Notes:
        races, words = len(self.assembly.races), self.layout.words
        most = MOST_RECENT >> (words - 1).bit_length()
        recent = min(most, max(1 << 10, 1 << rows.bit_length()))
        return Notes(
            np.zeros(1, np.uint8),
            empty_words(words),
            np.zeros(races, np.uint8),
            empty_words(races * words),
            empty_words(size * words),
            empty_words(size),
            np.zeros(len(self.tabulation.roots), np.int32),
            np.tile(self._states.log[:words], recent),
        )

    def _count(self) -> None:
        self.meter.states += self.count - self._counted
        self._counted = self.count

    def _look_at_limits(self, frontier: int) -> None:
        reason = self.meter.reached(frontier)
        if reason:
            raise Stopped(reason)

    def _ask_for(self, size: int) -> None:
        """Stop where ``size`` more bytes are too much."""
        limit = self.meter.budget.memory
        if limit and resident_bytes() + size > limit:
            raise Stopped(f"--memory {limit // 2**20}M")

    # Steps that nobody asked for before

    def _fill_in(self, pending: Any) -> None:
        """Fill in what was asked for, in an order that does not depend on the threads."""
        number = min(int(self._states.control[REQUESTS]), MOST_REQUESTS)
        wanted = {int(r[0]): (int(r[2]), int(r[1])) for r in self._work.requests[:number]}
        for _, (agent, row) in sorted(wanted.items()):
            self.tabulation.fill(agent, self.state(row))
        if not self.layout.fits():
            self._arrange()
        self.steps = self.assembly.steps()

    def _arrange(self) -> None:
        """Another layout, as a code has outgrown its place."""
        spots, words = self.layout.spot(), self.layout.words
        self.layout.arrange()
        if self.layout.words > 1 and not self.keeps:
            self.assembly = Assembly(self.tabulation)
            self.steps = self.assembly.steps()
            raise NeedsAll
        self._states.repack(spots, words)
        self.assembly = Assembly(self.tabulation)

    # Judgement

    def _judge_pass(self) -> bool:
        """Take over what a pass noted; True if a property is broken."""
        for number in range(len(self.assembly.races)):
            raced = [self._row(n.racing, number) for n in self._notes if n.raced[number]]
            if raced:
                self._note_race(number, self.layout.unpack(min(raced)))
        failed = [self._row(n.failed, 0) for n in self._notes if n.flags[HAS_FAILED]]
        if failed:
            self._fail(self.layout.unpack(min(failed)))
            return True
        rows = self._work.terminals[: self._states.control[TERMINALS]].tolist()
        return self._judge_ends(sorted((self.state(row), row) for row in rows))

    def _fail(self, state: State) -> None:
        """The first failing step of a state is a finding."""
        state = self._trace_back(state, self._depth)
        for stride in self.strides.enabled(state):
            if any(each.property in self.asked for each in stride.failures):
                self._take(state, stride.steps)
                return
        raise AssertionError("a step that failed in the tables does not fail in the system")

    def _take(self, state: State, steps: Sequence[Transition]) -> State:
        """Note a run from a state whose own run is noted; its first failure is a finding."""
        for step in steps:
            for failure in step.failures:
                if failure.property in self.asked:
                    self.found.findings.append(Finding(failure, state, step))
                    return state
            depth = self.found.parents[state][2] + 1
            self.found.parents.setdefault(step.state, (state, step.step, depth))
            state = step.state
        return state

    def _judge_ends(self, ends: list[tuple[State, int]]) -> bool:
        for state, row in ends:
            if self.system.all_done(state):
                self.found.good.append(state)
                self._good.append(row)
            else:
                self.found.stuck.append(state)
            if any(each.property in self.asked for each in self._wrong_at_end(state)):
                real = self._trace_back(state, self._depth)
                wrong = [e for e in self._wrong_at_end(real) if e.property in self.asked]
                self.found.findings += [Finding(each, real, None) for each in wrong]
                return True
        return False

    def _wrong_at_end(self, state: State) -> list[Failure]:
        if self.system.all_done(state):
            return judge_end(self.system, state)
        return [Failure("deadlock-free", "no process can go on", -1)]

    def _row(self, words: Any, row: int) -> tuple[int, ...]:
        """A row, so that rows compare as the loops compare them."""
        width = self.layout.words
        return tuple(words[row * width : (row + 1) * width].tolist())

    def _note_race(self, number: int, state: State) -> None:
        """Keep the first state in which a race was seen; of several in one level the least."""
        kind, level = self.assembly.races[number], self._depth
        known = self._races.get(kind)
        if known is None or known[0] > level or (known[0] == level and known[1] > state):
            self._races[kind] = (level, state)

    def _judge_whole(self) -> None:
        """Judge what only a whole search tells: hangs, then races."""
        if "deadlock-free" in self.asked:
            self._judge_hangs()
        if "race-free" in self.asked:
            self._judge_races()
        self.found.whole = True

    def _judge_races(self) -> None:
        for (cell, certain), (level, state) in sorted(
            self._races.items(), key=lambda item: (item[1][0], item[0])
        ):
            if not certain and cell in self.system.polled:
                continue
            state = self._trace_back(state, level)
            enabled = self.system.transitions(state)
            for at, sure, one, other in race_pairs(self.system, state, enabled):
                if (at, sure) == (cell, certain):
                    names = [describe(self.system, state, each) for each in (one, other)]
                    message = f"{' and '.join(names)} are not ordered on {self.system.cells[cell]}"
                    failure = Failure("race-free", message, one.step.process)
                    self.found.findings.append(Finding(failure, state, None, cell))
                    return
            raise AssertionError("a race in the tables is none in the system")

    def _moves(self) -> tuple[Any, ...]:
        steps = self.steps
        return (steps.program, steps.roots, steps.spans, steps.moves)

    def _judge_hangs(self) -> None:
        """Find the first state from which no run ends well, where that is not just being stuck."""
        if self._is_acyclic():
            return
        words, store = self.layout.words, (self._states.log, self._states.slots)
        self._ask_for(len(self._states.slots))
        alive: Any = np.zeros(len(self._states.slots), np.uint8)
        machine_code.run("mark", np.array(self._good, np.int64), words, *store, alive)
        buffer = empty_words(words)
        moves, order = self._moves(), self.layout.order()
        known = (words, *order, alive, buffer, *moves, *store)
        while machine_code.run("spread_alive", self.count, *known):
            self._look_at_limits(0)
        for level, first in enumerate(self.levels[:-1]):
            end = self.levels[level + 1]
            row = machine_code.run("least_unmarked", first, end, words, *store, alive)
            if row >= 0:
                message = "no run from here lets every process finish"
                state = self._trace_back(self.state(row), level)
                failure = Failure("deadlock-free", message, -1)
                self.found.findings.append(Finding(failure, state, None))
                return

    def _trace_back(self, state: State, level: int) -> State:
        """Note a shortest run to a state of a level, as the parents of the states on it.

        Gives the state that the run leads to, which may be the other with members of orbits
        permuted.
        """
        if not self.keeps:
            raise NeedsAll
        words, order, moves = self.layout.words, self.layout.order(), self._moves()
        targets, buffer = [self.layout.pack(state)], empty_words(words)
        for before in range(level - 1, -1, -1):
            rows = self.levels[before], self.levels[before + 1]
            known = (words, *order, targets[-1], buffer, *moves, self._states.log)
            row = machine_code.run("predecessor", *rows, *known)
            targets.append(self._states.words(row).copy())
        here = self.start.state
        for target in reversed(targets[:-1]):
            taken = next(
                each
                for each in self.strides.enabled(here)
                if np.array_equal(self.layout.pack(each.state), target)
            )
            here = self._take(here, taken.steps)
        return here


def _is_finite(automaton: Automaton) -> bool:
    """Whether every run of a process ends: its tables have no cycle, not even a sweep that fails.

    Where all are, so is the graph, and a run that does not end well gets stuck.
    """
    repeats = any(e is not None and e.again for n in automaton.nodes for e in n.edges.values())
    return not repeats and not has_loop(automaton)
