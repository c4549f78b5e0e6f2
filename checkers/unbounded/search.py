"""The quotient of a system explored to its end, and whether every round can always be ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from syncproof.checkers.explicit.search import Meter, race_pairs
from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.checkers.unbounded.frames import MOST_ROUNDS
from syncproof.checkers.unbounded.reduction import QuotientSets, Reduction, free_steps
from syncproof.checkers.unbounded.system import UNKNOWN, Quotient, RoundSystem
from syncproof.models.transitions import Failure, Overfull, State, Step, Transition
from syncproof.models.values import token_text

MANY_STATES = 500

REFUTED = "the search stopped at the first failure"


@dataclass(frozen=True)
class Arc:
    """A step of the quotient: ``by`` is how far its rounds were moved, ``ended`` the processes
    that end a round or return with it."""

    step: Step
    target: State
    by: int
    ended: tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """A failure, the state before it or in which it shows, and the one behind its step."""

    failure: Failure
    state: State
    after: State | None = None


@dataclass
class Graph:
    """What was explored, and what was left out."""

    system: RoundSystem
    quotient: Quotient
    first: State
    reduction: Reduction = Reduction.NONE
    arcs: dict[State, list[Arc]] = field(default_factory=dict)
    parents: dict[State, tuple[State | None, Step | None, int]] = field(default_factory=dict)
    shifted: dict[State, int] = field(default_factory=dict)
    findings: list[Found] = field(default_factory=list)
    races: dict[tuple[int, bool], tuple[State, str]] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    persists: set[str] = field(default_factory=set)
    stopped: str = ""
    skew: int = 0

    def rounds_of(self, state: State) -> int:
        """How many rounds a bounded run needs to come to a state."""
        known = [self.system.node_of(state, p).round or 0 for p in range(self.system.processes)]
        return max(1, self.shifted[state] + max(known))


class Restart(Exception):
    """A process was seen to ask for a choice that may have been forgotten too early."""


def explore(
    system: RoundSystem,
    asked: frozenset[str],
    meter: Meter,
    *,
    reduction: Reduction = Reduction.SETS,
    stop_at_first: bool = True,
    is_refuted: Callable[[], bool] = lambda: False,
) -> Graph:
    """Explore the quotient breadth-first, again whenever more turns out to be needed of choices.

    Once it has `MANY_STATES`, ``is_refuted`` is asked whether there is no need to go on.
    """
    while True:
        states, transitions = meter.states, meter.transitions
        try:
            search = _Search(system, asked, meter, reduction, stop_at_first)
            return search.run(is_refuted)
        except Restart:
            meter.states, meter.transitions = states, transitions


class _Search:
    def __init__(
        self,
        system: RoundSystem,
        asked: frozenset[str],
        meter: Meter,
        reduction: Reduction,
        stop_at_first: bool,
    ) -> None:
        self.system, self.asked, self.meter = system, asked, meter
        self.stop_at_first = stop_at_first
        self.quotient = Quotient(system)
        features = system.features
        plain = not (features.caches or features.views or features.twins or system.ghosts.initial)
        self.reduction = reduction if plain else Reduction.NONE
        if features.locks and self.reduction is Reduction.SETS:
            self.reduction = Reduction.FREE
        self.sets = QuotientSets(system, asked)
        self.frontier: deque[State] = deque()

    def run(self, is_refuted: Callable[[], bool]) -> Graph:
        system = self.system
        system.channel.grew = False
        start = system.initial_transition()
        first, by = self.quotient.least(start.state)
        graph = self.graph = Graph(system, self.quotient, first, self.reduction)
        graph.parents[first] = (None, None, 0)
        graph.shifted[first] = by
        self._note(start, first)
        self.frontier.append(first)
        self.meter.states += 1
        while self.frontier and not (self.stop_at_first and graph.findings):
            graph.stopped = self.meter.exceeded(len(self.frontier))
            if graph.stopped:
                break
            try:
                self._expand(self.frontier.popleft())
            except Overfull:
                graph.stopped = "in_flight"
                break
            if system.channel.grew:
                raise Restart
            if len(graph.arcs) == MANY_STATES and is_refuted():
                graph.stopped = REFUTED
                break
        return graph

    def _note(self, transition: Transition, before: State) -> None:
        self.graph.reached.update(transition.reached)
        for each in transition.failures:
            if each.property in self.asked:
                self.graph.findings.append(Found(each, before, transition.state))

    def _expand(self, state: State) -> None:
        graph, system = self.graph, self.system
        enabled = system.transitions(state)
        if "race-free" in self.asked:
            for cell, certain, one, other in race_pairs(system, state, enabled):
                what = f"{one.step.kind} and {other.step.kind} on {system.cells[cell]}"
                graph.races.setdefault((cell, certain), (state, what))
        if not any(each.fair for each in enabled):
            self._ended(state)
        arcs: list[Arc] = graph.arcs.setdefault(state, [])
        before = self.quotient.frame(state).rounds
        depth = graph.parents[state][2]
        for each in self._chosen(state, enabled):
            self.meter.transitions += 1
            self._note(each, state)
            if any(f.property in self.asked and f.property != "quiescent" for f in each.failures):
                continue
            after = self.quotient.frame(each.state).rounds
            target, by = self.quotient.least(each.state)
            ended = tuple(
                p
                for p, (old, new) in enumerate(zip(before, after, strict=True))
                if old is not None and (new is None or new > old)
            )
            if each.fair:
                arcs.append(Arc(each.step, target, by, ended))
            if target not in graph.parents:
                self._new(target, state, each.step, depth + 1, graph.shifted[state] + by, after)

    def _new(
        self,
        target: State,
        state: State,
        step: Step,
        depth: int,
        shifted: int,
        rounds: tuple[int | None, ...],
    ) -> None:
        graph = self.graph
        running = [each for each in rounds if each is not None]
        if running:
            graph.skew = max(graph.skew, max(running) - min(running))
        if shifted > MOST_ROUNDS:
            raise NotCovered(self._what_grows())
        graph.parents[target] = (state, step, depth)
        graph.shifted[target] = shifted
        self.frontier.append(target)
        self.meter.states += 1
        self.meter.depth = max(self.meter.depth, depth)

    def _what_grows(self) -> str:
        first, cells = self.system.first_cell, self.system.cells
        held = [{state[first + n] for state in self.graph.parents} for n in range(len(cells))]
        most = max(range(len(cells)), key=lambda n: len(held[n]), default=0)
        what = f"; {cells[most]} holds {len(held[most])} different values" if cells else ""
        return f"states go on and on after {MOST_ROUNDS} rounds: something grows with them{what}"

    def _chosen(self, state: State, enabled: list[Transition]) -> list[Transition]:
        if self.reduction is Reduction.NONE:
            return enabled
        if self.reduction is Reduction.FREE:
            return free_steps(self.system, state, enabled)
        return self.sets.choose(state, enabled)

    # Ends

    def _ended(self, state: State) -> None:
        graph, system = self.graph, self.system
        if not system.all_done(state):
            if "deadlock-free" in self.asked:
                failure = Failure("deadlock-free", "no process can go on", -1)
                graph.findings.append(Found(failure, state))
            return
        for number, cell in enumerate(system.cells):
            if system.value(state, number) != self._initially(number):
                graph.persists.add(cell.slot.region.name)
        for each in self._wrong_at_end(state):
            if each.property in self.asked:
                graph.findings.append(Found(each, state))

    def _initially(self, cell: int) -> int:
        """The value that a cell begins with, as it is held in states that are over."""
        values = self.system.round_values
        return values.aged(self.system.initial_value(cell), UNKNOWN)

    def _wrong_at_end(self, state: State) -> list[Failure]:
        system = self.system
        found: list[Failure] = []
        values = system.round_values
        pairs = system.beside.answers(system.beside_of(state))
        tokens: dict[int, tuple[bool, int]] = {}
        for name, value in pairs.items():
            key = values.plain(name)
            assert isinstance(key, tuple)
            if key[0] == "lost":
                message = f"{token_text(key[1])}, long past, is not consumed once"
                found.append(Failure("exactly-once", message, -1))
            elif key[0] in ("sent", "consumed"):
                about = values.number(key[1])
                sent, count = tokens.get(about, (False, 0))
                held = values.plain(value)
                assert isinstance(held, int)
                tokens[about] = (True, count) if key[0] == "sent" else (sent, held)
        for about, (sent, count) in tokens.items():
            if not sent or count != 1:
                named = values.plain(about)
                assert isinstance(named, tuple)
                how = f"is consumed {count} times" if sent else "is consumed but never sent"
                found.append(Failure("exactly-once", f"{token_text(named)} {how}", -1))
                break
        if not system.nothing_in_flight_of_all(state):
            message = "puts are in flight when all processes have returned"
            return [*found, Failure("quiescent", message, -1)]
        for number, cell in enumerate(system.cells):
            if cell.slot.region.clean and system.value(state, number) != self._initially(number):
                found.append(Failure("quiescent", f"{cell} does not end as it began", -1))
                break
        return found


def cannot_end(graph: Graph, *, whatever_is_chosen: bool = False) -> dict[int, list[State]]:
    """For each process the states from which it may be that it never ends its round or returns.

    A step that makes a choice counts as leading there only if all of its answers do, so the
    choices may be made by an adversary, as late as they come; ``whatever_is_chosen`` asks for the
    states from which it never does, choices made as they would have to be.
    """
    return {
        process: found
        for process in range(graph.system.processes)
        if (found := _cannot_end(graph, process, whatever_is_chosen))
    }


def _cannot_end(graph: Graph, process: int, whatever_is_chosen: bool) -> list[State]:
    waiting: dict[tuple[State, Step | Arc], int] = {}
    backward: dict[State, list[tuple[State, Step | Arc]]] = {}
    good: set[State] = set()
    for state, arcs in graph.arcs.items():
        if graph.system.node(state, process).state == "done":
            good.add(state)
        for arc in arcs:
            key = (state, arc if whatever_is_chosen else arc.step)
            waiting[key] = waiting.get(key, 0) + 1
            if process in arc.ended:
                waiting[key] -= 1
            else:
                backward.setdefault(arc.target, []).append(key)
    good |= {state for (state, _), count in waiting.items() if count == 0}
    work = list(good)
    while work:
        for key in backward.get(work.pop(), ()):
            waiting[key] -= 1
            if not waiting[key] and key[0] not in good:
                good.add(key[0])
                work.append(key[0])
    return [state for state in graph.arcs if state not in good]
