"""A log from elsewhere, held against the model: the longest prefix of it that can be a run.

What the log leaves out - landings, the atoms of a read, values - is searched for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.actions import ACTIONS
from syncproof.checkers.emulator.conform import UNBOUNDED
from syncproof.checkers.emulator.logs import Entry, Log, Names
from syncproof.checkers.explicit.counterexample import spoken
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.lowering import ActionKind
from syncproof.models.narrate import describe
from syncproof.models.nodes import Ledger, Node
from syncproof.models.operations import Consumed, Kind, Statement
from syncproof.models.system import System
from syncproof.models.transitions import State, Transition

MOST_STATES = 20_000
MOST_ASSIGNMENTS = 256
SEEN_BY_KERNELS = (events.ISSUE, events.READ, events.WAIT, events.UPDATE, events.CONSUME)
"""What a log records that does not say what it records."""


Said = frozenset[tuple[int, tuple[str, ...]]]
Place = tuple[State, Said]
"""A state, and the tokens that processes trusted with their last step and have not logged yet."""


class NoLedger(Ledger):
    """Who has sent and consumed what is not asked here, and grows with the log."""

    def after(self, number: int, statements: tuple[Statement, ...]) -> int:
        """The same, whatever is said."""
        return number


class Undecided(Exception):
    """The search for what the log leaves out became too large."""


@dataclass(frozen=True)
class Accepted:
    """How much of a log can be a run: ``length`` entries of ``total``, and what was expected
    behind them."""

    length: int
    total: int
    entry: Entry | None
    expected: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        return self.length == self.total


def accept(log: Log, instance: Instance) -> Accepted:
    """The longest prefix of ``log`` that the model allows, over all choices it leaves open.

    Raises `Undecided`, and `UserError` for names that the protocol does not have.
    """
    profile = replace(instance.profile, in_flight=UNBOUNDED)
    instance = replace(instance, profile=profile, whole_atoms=True)
    names: Names | None = None
    best = Accepted(-1, len(log.entries), None, ())
    pending: list[dict[Hashable, Hashable]] = [{}]
    tried = 0
    for name, values in instance.initial_choices().items():
        chosen = _recorded(log, name, values)
        pending = [{**each, name: value} for each in pending for value in chosen]
    while pending and not best.is_whole:
        choices = pending.pop(0)
        if tried > MOST_ASSIGNMENTS:
            raise Undecided(f"more than {MOST_ASSIGNMENTS} assignments of the choices")
        try:
            system = instance.system(choices, NoLedger())
            if names is None:
                names = Names(instance, instance.parts(choices))
                check_names(log, names)
            found = _Acceptance(log, system, names).run()
        except Unresolved as choice:
            possible = _recorded(log, choice.name, choice.values)
            pending[:0] = [{**choices, choice.name: value} for value in possible]
            continue
        tried += 1
        best = max(best, found, key=lambda each: each.length)
    if not tried:
        raise UserError(
            "no run has the choices that the log records", expected="values among which is chosen"
        )
    return best


def _recorded(log: Log, name: Hashable, values: tuple[Hashable, ...]) -> list[Hashable]:
    """The values that a choice can have had: the one that the log records, or any."""
    told = log.choices.get(spoken(name))
    text = told.get("text") if isinstance(told, dict) else told
    return [value for value in values if text is None or str(value) == str(text)]


def check_names(log: Log, names: Names) -> None:
    """Refuse a log with processes or blocks that this instance does not have."""
    for each in log.entries:
        where = f"line {each.line}"
        if each.process not in names.number:
            raise UserError(
                f"no process {each.process!r:.60}", where=where, expected=", ".join(names.processes)
            )
        if each.slot and each.slot not in names.blocks:
            expected = "a block as in " + next(iter(names.blocks), "")
            raise UserError(f"no block {each.slot!r:.60}", where=where, expected=expected)
        if each.slot and not names.cells_in(each):
            raise UserError(f"no such atom or field of {each.slot}", where=where)


class _Acceptance:
    """All states that the model can be in after the entries so far."""

    def __init__(self, log: Log, system: System, names: Names) -> None:
        self.log, self.system, self.names = log, system, names
        recorded = log.recorded or SEEN_BY_KERNELS
        self._recorded = set(events.OF_THE_FABRIC) | set(ACTIONS) if log.complete else set(recorded)
        self._tells_all_of_the_fabric = self._recorded.issuperset(events.OF_THE_FABRIC)
        self._told: dict[tuple[int, int], bool] = {}

    def run(self) -> Accepted:
        """Take entry after entry as long as some state allows it."""
        places: set[Place] = {(self.system.initial_transition().state, frozenset())}
        total = len(self.log.entries)
        for number, entry in enumerate(self.log.entries):
            if entry.what == events.CONSUME:
                before = list(places)
                places = {p for place in before for p in self._trusted(place, entry)}
            else:
                before = self._closed(places)
                places = {p for place in before for p in self._after(place, entry)}
            if not places:
                states = [state for state, _ in before]
                expected = tuple(dict.fromkeys(self._expected(states, entry)))
                return Accepted(number, total, entry, expected)
        return Accepted(total, total, None, ())

    def _trusted(self, place: Place, entry: Entry) -> Iterator[Place]:
        """Whether a process has just come to trust this token."""
        state, said = place
        trusted = (self.names.number[entry.process], entry.token)
        if trusted in said:
            yield state, said - {trusted}

    def _said(self, place: Place, transition: Transition) -> Said:
        """What processes have come to trust with their last step and the log has not told yet."""
        state, said = place
        after = transition.state
        moved = [p for p in range(self.system.processes) if state[p] != after[p]]
        if not moved:
            return said
        found = {each for each in said if each[0] not in moved}
        for process in moved:
            for edge in self.system.node(state, process).edges.values():
                if edge is not None and edge.target.number == after[process]:
                    found |= {
                        (process, tuple(map(str, each.key)))
                        for each in edge.statements
                        if isinstance(each, Consumed)
                    }
        return frozenset(found)

    def _closed(self, places: set[Place]) -> list[Place]:
        """With every state that steps which the log does not record lead to."""
        found, work = dict.fromkeys(places), list(places)
        while work:
            place = work.pop()
            for each in self._silent(place[0]):
                behind = (each.state, self._said(place, each))
                if behind not in found:
                    found[behind] = None
                    work.append(behind)
                    if len(found) > MOST_STATES:
                        raise Undecided(f"more than {MOST_STATES} states explain the log so far")
        return list(found)

    def _silent(self, state: State) -> Iterator[Transition]:
        """Steps that the log does not record; what it does record is not even looked at, as each
        value that a role is given without need is a role to be run again."""
        system = self.system
        for process in range(system.processes):
            if not self._is_told(process, system.node(state, process)):
                for each in system.process_transitions(state, process):
                    if self._word(state, each) not in self._recorded:
                        yield each
        if not self._tells_all_of_the_fabric:
            for each in system.fabric_transitions(state):
                if each.step.kind not in self._recorded:
                    yield each

    def _is_told(self, process: int, node: Node) -> bool:
        """Whether the log records every step that a process at ``node`` can take."""
        key = (process, node.number)
        found = self._told.get(key)
        if found is None:
            words = {self._word_of(node, number) for number in range(len(node.actions))}
            can_fetch = any(each.kind is ActionKind.READ_CACHED for each in node.actions)
            words |= {events.FETCH} if can_fetch else set()
            found = self._told[key] = node.state == "done" or (
                node.state == "run" and words <= self._recorded
            )
        return found

    def _steps(self, state: State, entry: Entry) -> Iterator[Transition]:
        """The steps that an entry can be, by its process and its word."""
        system, number = self.system, self.names.number[entry.process]
        if entry.what in events.OF_THE_FABRIC:
            possible = system.fabric_transitions(state)
        elif number == system.processes:
            return
        else:
            possible = system.process_transitions(state, number)
        for each in possible:
            if self._word(state, each) == entry.what and self._is_by(each, entry):
                yield each

    def _word(self, state: State, transition: Transition) -> str:
        """The word of a log for a step of the model."""
        step = transition.step
        if step.kind != "process":
            return step.kind
        return self._word_of(self.system.node(state, step.process), step.what[0])

    def _word_of(self, node: Node, number: int) -> str:
        """The word of a log for an action of a process."""
        kind = node.actions[number].kind
        if kind is ActionKind.READ:
            assert node.operation is not None
            return events.WAIT if node.operation.kind is Kind.WAIT_UNTIL else events.READ
        return next(word for word, kinds in ACTIONS.items() if kind in kinds)

    def _after(self, place: Place, entry: Entry) -> Iterator[Place]:
        """The states behind an entry; a read that names no atom is all its atoms, one by one."""
        cells = self.names.cells_in(entry) if entry.slot else ()
        work, seen = [(place, frozenset(cells))], set()
        while work:
            here, left = work.pop()
            state = here[0]
            for each in self._steps(state, entry):
                touched = self._touched(state, each)
                if cells and not self._fits(state, each, entry, touched, cells):
                    continue
                rest = left - touched if touched else frozenset()
                behind = (each.state, self._said(here, each))
                if entry.atom >= 0 or not rest or not touched & left:
                    yield behind
                elif (behind, rest) not in seen:
                    seen.add((behind, rest))
                    work.append((behind, rest))

    def _is_by(self, transition: Transition, entry: Entry) -> bool:
        number = transition.step.process
        return self.names.processes[min(number, self.system.processes)] == entry.process

    def _touched(self, state: State, transition: Transition) -> frozenset[int]:
        """The cells that a step reads, or that land."""
        step = transition.step
        if step.kind != "process":
            return frozenset(cell % len(self.system.cells) for cell in step.what)
        action = self.system.node(state, step.process).actions[step.what[0]]
        if action.kind is ActionKind.ISSUE:
            return frozenset()
        return frozenset(cell for cell in action.cells if cell < len(self.system.cells))

    def _fits(
        self,
        state: State,
        transition: Transition,
        entry: Entry,
        touched: frozenset[int],
        cells: tuple[int, ...],
    ) -> bool:
        """Whether a step is at the block that an entry names, and saw what it says."""
        step, system = transition.step, self.system
        if not touched:
            operation = system.node(state, step.process).operation
            return operation is not None and str(operation.slot).startswith(entry.slot)
        if not touched & set(cells):
            return False
        told = dict(entry.fields)
        named = [cell for cell in cells if cell in touched and system.cells[cell].field in told]
        return not named or any(
            all(str(system.values[seen[cell]]) == told[system.cells[cell].field] for cell in named)
            for seen in self._seen(state, transition)
        )

    def _seen(self, state: State, transition: Transition) -> Iterator[dict[int, int]]:
        """What a step can have read, or what it has left where it landed: values by cell."""
        step, system = transition.step, self.system
        if step.kind != "process":
            after = transition.state
            at = {cell % len(system.cells): cell for cell in step.what}
            yield {cell: system.value(after, place) for cell, place in at.items()}
            return
        node = system.node(state, step.process)
        cells = node.actions[step.what[0]].cells
        for (action, values), edge in node.edges.items():
            leads_here = edge is not None and edge.target.number == transition.state[step.process]
            if action == step.what[0] and leads_here:
                yield dict(zip(cells, values, strict=True))

    def _expected(self, states: list[State], entry: Entry) -> Iterator[str]:
        """What the process could have done instead, in some of the states."""
        for state in states[:8]:
            for each in self.system.transitions(state):
                mine = self._is_by(each, entry)
                if mine and self._word(state, each) in self._recorded:
                    yield describe(self.system, state, each)
            number = self.names.number[entry.process]
            if number < self.system.processes:
                yield self._blocked(state, number)

    def _blocked(self, state: State, number: int) -> str:
        node = self.system.node(state, number)
        if node.operation is None:
            return "nothing more: the process has returned"
        values = ", ".join(
            f"{self.system.cells[cell]} = {self.system.values[self.system.value(state, cell)]}"
            for action in node.actions
            for cell in action.cells
            if cell < len(self.system.cells)
        )
        what = f"{node.operation.kind.value} {node.operation.slot or node.operation.group}".strip()
        return f"{what} at {node.place}" + (f" ({values})" if values else "")
