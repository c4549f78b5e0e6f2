"""Breadth-first search of one system: what both explicit engines share.

`reference` expands every enabled step, `reduced` a persistent set of them; this module knows only
that something chooses. The verdicts on hangs, and on all else where there is none, are those of
the full graph for any persistent choice (docs/soundness.md, "Persistent sets").
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from syncproof.models.narrate import describe
from syncproof.models.nodes import TooLong
from syncproof.models.system import System
from syncproof.models.transitions import Access, Failure, Overfull, State, Step, Transition
from syncproof.models.values import token_text

Choose = Callable[[State, list[Transition]], list[Transition]]
"""Which of the enabled steps of a state to explore."""


@dataclass(frozen=True)
class Budget:
    """How much a search may use; 0 means no limit. Memory in bytes, of the whole process.

    ``threads`` are those of engines that can use several.
    """

    states: int = 0
    seconds: float = 0.0
    memory: int = 0
    threads: int = 1

    @property
    def time_is_up(self) -> str:
        """What a search says that used all its seconds."""
        return f"--budget-seconds {self.seconds:g}"


LOOK_S = 0.1
"""How often a search looks at its memory and reports, however long a state takes."""


@dataclass
class Meter:
    """What has been used so far, over all systems of one question."""

    budget: Budget
    report: Callable[[int, int, int], None] | None = None
    states: int = 0
    transitions: int = 0
    depth: int = 0
    started: float = field(default_factory=time.monotonic)
    _next: float = 0.0

    def exceeded(self, frontier: int) -> str:
        """The flag of the limit that is reached, or nothing; asked once for each state expanded."""
        if self.budget.states and self.states >= self.budget.states:
            return f"--budget-states {self.budget.states}"
        now = time.monotonic()
        if now < self._next:
            return ""
        self._next = now + LOOK_S
        return self.reached(frontier)

    def reached(self, frontier: int) -> str:
        """The same, asked for many states at once."""
        limit = self.budget
        if limit.states and self.states >= limit.states:
            return f"--budget-states {limit.states}"
        if self.report is not None:
            self.report(self.states, frontier, self.depth)
        if limit.seconds and time.monotonic() - self.started >= limit.seconds:
            return limit.time_is_up
        if limit.memory and resident_bytes() >= limit.memory:
            return f"--memory {limit.memory // 2**20}M"
        return ""


def resident_bytes() -> int:
    """Memory of this process that is in use now, where the system tells it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0


@dataclass(frozen=True)
class Finding:
    """A broken property: the state before the last step, and that step (None: the state itself)."""

    failure: Failure
    state: State
    last: Transition | None
    cell: int = -1


@dataclass
class Exploration:
    """What a search of one system found."""

    system: System
    parents: dict[State, tuple[State | None, Step | None, int]]
    findings: list[Finding] = field(default_factory=list)
    failing_states: set[State] = field(default_factory=set)
    good: list[State] = field(default_factory=list)
    stuck: list[State] = field(default_factory=list)
    backward: dict[State, list[State]] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    races: dict[tuple[int, bool], tuple[State, Transition, Transition]] = field(
        default_factory=dict
    )
    transitions: int = 0
    stopped: str = ""
    whole: bool = False
    """Whether everything was searched and judged, so that findings leave nothing undecided."""

    def path(self, state: State) -> list[Step]:
        """The steps of the run that the search took to ``state``."""
        steps: list[Step] = []
        while True:
            before, step, _ = self.parents[state]
            if before is None or step is None:
                return steps[::-1]
            steps.append(step)
            state = before


def explore(
    system: System,
    choose: Choose | None,
    asked: frozenset[str],
    meter: Meter,
    *,
    stop_at_first: bool = True,
    deepest: int = 0,
) -> Exploration:
    """Search one system breadth-first; ``choose`` None expands everything.

    Stops at the first failure of a property in ``asked`` unless told otherwise. ``deepest`` bounds
    the length of runs (0: no bound), for a search that only looks for a shorter failure.
    """
    start = system.initial_transition()
    found = Exploration(system, {start.state: (None, None, 0)})
    search = _Search(found, choose, asked, meter, stop_at_first)
    if search.arrive(start, None):
        return found
    frontier = deque([start.state])
    meter.states += 1
    while frontier:
        state = frontier.popleft()
        depth = found.parents[state][2]
        if deepest and depth >= deepest:
            found.stopped = "depth"
            break
        found.stopped = meter.exceeded(len(frontier))
        if found.stopped or search.expand(state, depth, frontier):
            break
    return found


class _Search:
    def __init__(
        self,
        found: Exploration,
        choose: Choose | None,
        asked: frozenset[str],
        meter: Meter,
        stop_at_first: bool,
    ) -> None:
        self.found, self.choose, self.asked = found, choose, asked
        self.meter, self.stop_at_first = meter, stop_at_first
        self.system = found.system

    def expand(self, state: State, depth: int, frontier: deque[State]) -> bool:
        """Take the steps of ``state``; True ends the search."""
        try:
            return self._expand(state, depth, frontier)
        except Overfull:  # by a put, or by a landing that others do not see at once
            self.found.stopped = "in_flight"
        except TooLong as reason:
            self.found.stopped = str(reason)
        return True

    def _expand(self, state: State, depth: int, frontier: deque[State]) -> bool:
        found = self.found
        enabled = self.system.transitions(state)
        if "race-free" in self.asked:
            self._races(state, enabled)
        if not any(each.fair for each in enabled) and self._ended(state):
            return True
        for each in self._chosen(state, enabled):
            found.transitions += 1
            self.meter.transitions += 1
            if self.arrive(each, state):
                return True
            if self._absorbed(each):
                found.failing_states.add(state)
                continue
            if each.state not in found.parents:
                found.parents[each.state] = (state, each.step, depth + 1)
                frontier.append(each.state)
                self.meter.states += 1
                self.meter.depth = max(self.meter.depth, depth + 1)
            if each.fair:
                found.backward.setdefault(each.state, []).append(state)
        return False

    def _chosen(self, state: State, enabled: list[Transition]) -> list[Transition]:
        """The steps to explore; all, where looking for fewer leads a role on and on."""
        if self.choose is None:
            return enabled
        try:
            return self.choose(state, enabled)
        except TooLong:
            return enabled

    def _absorbed(self, transition: Transition) -> bool:
        """Whether the run is over because what it did is wrong."""
        return any(
            each.property in self.asked and each.property != "quiescent"
            for each in transition.failures
        )

    def arrive(self, transition: Transition, before: State | None) -> bool:
        """Note what a step says; True ends the search."""
        self.found.reached.update(transition.reached)
        for each in transition.failures:
            if each.property in self.asked:
                origin = transition.state if before is None else before
                last = None if before is None else transition
                self.found.findings.append(Finding(each, origin, last))
        return self.stop_at_first and bool(self.found.findings)

    def _ended(self, state: State) -> bool:
        """Judge a state in which nothing has to happen any more; True ends the search."""
        if not self.system.all_done(state):
            self.found.stuck.append(state)
            if "deadlock-free" in self.asked:
                failure = Failure("deadlock-free", "no process can go on", -1)
                self.found.findings.append(Finding(failure, state, None))
                return self.stop_at_first
            return False
        self.found.good.append(state)
        wrong = [each for each in judge_end(self.system, state) if each.property in self.asked]
        self.found.findings += [Finding(each, state, None) for each in wrong]
        return self.stop_at_first and bool(wrong)

    def _races(self, state: State, enabled: Sequence[Transition]) -> None:
        for cell, certain, one, other in race_pairs(self.system, state, enabled):
            self.found.races.setdefault((cell, certain), (state, one, other))


def race_pairs(
    system: System, state: State, enabled: Sequence[Transition]
) -> Iterator[tuple[int, bool, Transition, Transition]]:
    """Pairs of enabled accesses to one cell that race, or may: (cell, certain, one, other).

    Two accesses race unless both are reads or both synchronize. Whether a put serves a wait is
    known only when all waits are, so pairs of puts are not certain and are judged at the end.
    """
    if _apart(system, state, enabled):
        return
    touched: dict[int, list[tuple[Access, Transition]]] = {}
    for each in enabled:
        for access in system.accesses(state, each):
            touched.setdefault(access.cell, []).append((access, each))
    for cell, accesses in touched.items():
        for i, (one, first) in enumerate(accesses):
            for other, second in accesses[:i]:
                if not (one.writes or other.writes) or _same_process(first, second):
                    continue
                if not (one.synchronizing and other.synchronizing):
                    yield cell, True, first, second
                elif one.is_put and other.is_put:
                    yield cell, False, first, second


def _apart(system: System, state: State, enabled: Sequence[Transition]) -> bool:
    """Whether surely no cell is accessed by two of the enabled steps; quick to tell."""
    seen: set[int] = set()
    for owner in range(system.processes):
        outbox = state[system.first_outbox + owner]
        if outbox:
            cells = system.landing_cells(owner, outbox)
            if cells is None or not seen.isdisjoint(cells):
                return False
            seen |= cells
    for each in enabled:
        if each.step.kind != "process":
            break
        for access in system.accesses(state, each):
            if access.cell in seen:
                return False
            seen.add(access.cell)
    return True


def _same_process(one: Transition, other: Transition) -> bool:
    both = one.step.kind == other.step.kind == "process"
    return both and one.step.process == other.step.process


def racing(system: System, state: State, cell: int) -> bool:
    """Whether two accesses to ``cell`` race in ``state``."""
    return any(
        found == cell and (certain or cell not in system.polled)
        for found, certain, _, _ in race_pairs(system, state, system.transitions(state))
    )


def judge_end(system: System, state: State) -> list[Failure]:
    """What is wrong with a state in which all processes have returned."""
    wrong = []
    sent: set[tuple[Hashable, ...]] = set()
    times: dict[tuple[Hashable, ...], int] = {}
    for process in range(system.processes):
        ledger_sent, consumed = system.ledger.contents[system.node(state, process).ledger]
        sent |= ledger_sent
        for key, count in consumed:
            times[key] = times.get(key, 0) + count
    for key in sorted(sent | times.keys(), key=str):
        count = times.get(key, 0)
        if count != 1 or key not in sent:
            how = f"is consumed {count} times" if key in sent else "is consumed but never sent"
            wrong.append(Failure("exactly-once", f"{token_text(key)} {how}", -1))
            break
    wrong += _not_clean(system, state)
    return wrong


def _not_clean(system: System, state: State) -> list[Failure]:
    if not system.nothing_in_flight(state):
        return [Failure("quiescent", "puts are in flight when all processes have returned", -1)]
    for number, cell in enumerate(system.cells):
        value = system.value(state, number)
        if cell.slot.region.clean and value != system.initial_value(number):
            held = system.values[value]
            return [Failure("quiescent", f"{cell} ends as {held}, not as it began", -1)]
    return []


def judge_races(found: Exploration) -> list[Finding]:
    """The races among the noted pairs, now that it is known which cells are waited for."""
    races = []
    for (cell, certain), (state, one, other) in sorted(
        found.races.items(), key=lambda item: (found.parents[item[1][0]][2], item[0])
    ):
        if certain or cell not in found.system.polled:
            names = [describe(found.system, state, each) for each in (one, other)]
            message = f"{' and '.join(names)} are not ordered on {found.system.cells[cell]}"
            failure = Failure("race-free", message, one.step.process)
            races.append(Finding(failure, state, None, cell))
    return races


def hung_states(found: Exploration) -> list[State]:
    """The visited states from which no run ends, well or with a failure, fewest steps first."""
    alive = set(found.good) | found.failing_states
    work = list(alive)
    while work:
        for before in found.backward.get(work.pop(), ()):
            if before not in alive:
                alive.add(before)
                work.append(before)
    hung = [state for state in found.parents if state not in alive]
    return sorted(hung, key=lambda state: found.parents[state][2])
