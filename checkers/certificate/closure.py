"""Run live roles once with the full relation of what surely precedes what, and judge each read.

Slower than a record with clocks, and it knows more: every order that the fabric keeps, atomics,
events, ghosts, sweeps, and reads that may see several values but do the same with each. Events
are numbers, what precedes an event is a set of bits. The rules are those of docs/certificate.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from syncproof.checkers.certificate.contents import MOST_CONTENTS, History, TooMany, Write
from syncproof.checkers.certificate.execution import look
from syncproof.checkers.certificate.families import family_of, family_with
from syncproof.checkers.certificate.relation import BLOCKED, Evaluate, Read, Relation, no_value
from syncproof.checkers.certificate.roles import LiveRoles, NotCertified
from syncproof.checkers.certificate.sending import Outgoing
from syncproof.checkers.certificate.sweeps import SWEPT, Found, Sweep
from syncproof.checkers.explicit.search import Meter
from syncproof.models.errors import UserError
from syncproof.models.instance import Parts
from syncproof.models.lowering import Action, ActionKind, frozen
from syncproof.models.memory import Slot
from syncproof.models.operations import GhostCheck, GhostUpdate, Kind, Operation
from syncproof.models.outbox import ADD

MOST_STEPS = 20_000
"""The sets of longer runs would not fit."""
MOST_AT_A_TIME = 4_000
"""A process that takes more steps than this without waiting is likely never to end."""
STEPS_BETWEEN_LOOKS = 64
LEFT_TO_GENERAL = (
    Kind.PUT_NBI,
    Kind.GET_NBI,
    Kind.LOAD_CACHED,
    Kind.STORE_CACHED,
    Kind.CLEAN_AND_INVALIDATE,
)
START = 0
"""The event before all others, with what roles say before their first step."""


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of the protocol gives; `NotCertified` if it raises."""
    try:
        return function(*arguments)
    except Exception as error:
        raise NotCertified(
            f"{getattr(function, '__name__', 'a function')} raised {error}"
        ) from error


class Closure:
    """The straight run of one instance under one assignment of its choices."""

    def __init__(self, parts: Parts, meter: Meter) -> None:
        self.parts, self.meter = parts, meter
        self.profile, self.values = parts.lowering.profile, parts.values
        self.roles = LiveRoles(parts, keep_all=True)
        self.relation = Relation(self.roles, [self.values.number(v) for v in parts.initial])
        self.histories = self.relation.histories
        self.steps = 0
        count = len(parts.processes)
        self._last = [1] * count
        self._sending = [Outgoing() for _ in range(count)]
        self._ghosts: dict[tuple[str, Hashable], int] = {}
        self._waiting: dict[int, list[int]] = {}
        self._arrived: dict[str, set[int]] = {}
        self._ready: deque[int] = deque()
        self._loads: dict[Hashable, tuple[Evaluate, tuple[tuple[int, ...], ...]]] = {}

    # The run

    def run(self) -> None:
        """Run to the end; `NotCertified` if it does not end well or might have gone otherwise."""
        try:
            self._run()
        except TooMany:
            raise NotCertified("memory may hold too many different things") from None
        finally:
            self.roles.discard()

    def _run(self) -> None:
        processes = range(len(self.parts.processes))
        for process in processes:
            self._resume(process, None, START)
        self._ready.extend(processes)
        while self._ready:
            process = self._ready.popleft()
            before = self.steps
            while self.roles.operations[process] is not None and self._step(process):
                if self.steps - before > MOST_AT_A_TIME:
                    raise NotCertified(f"{self.roles.names[process]} goes on and on")
        for process in processes:
            operation = self.roles.operations[process]
            if operation is not None:
                where = operation.slot or operation.group
                name = self.roles.names[process]
                raise NotCertified(f"{name} is blocked at {operation.kind.value} {where}")
        self.roles.judge_end()
        self.relation.settle()

    def _resume(self, process: int, value: Any, event: int) -> None:
        """Feed a process what it read at an event, and hear what it says."""
        self._last[process] |= self.relation.pasts[event]
        self.roles.resume(process, value)
        for each in self.roles.on_ghosts(process):
            self._hear(process, each, event)
        if self.roles.operations[process] is None and self._sending[process].open(
            self._last[process]
        ):
            raise NotCertified(
                f"{self.roles.names[process]} may return while its puts are on the way"
            )

    def _count(self, steps: int) -> None:
        before = self.steps // STEPS_BETWEEN_LOOKS
        self.steps += steps
        if self.steps // STEPS_BETWEEN_LOOKS > before:
            look(self.meter, self.steps)
        if self.steps > MOST_STEPS:
            raise NotCertified(f"the run takes more than {MOST_STEPS} steps")

    def _step(self, process: int) -> bool:
        """Take one step of a process; False if it is blocked."""
        operation = self.roles.operations[process]
        assert operation is not None
        if operation.kind in LEFT_TO_GENERAL:
            raise NotCertified(f"{self.roles.names[process]} uses {operation.kind.value}")
        if operation.kind is Kind.SWEEP_BEGIN:
            return self._sweep(process)
        try:
            actions = self.parts.lowering.actions(operation, (), self._rank(process))
        except UserError as error:
            raise NotCertified(str(error)) from error
        kind = actions[0].kind
        if kind in (ActionKind.READ, ActionKind.UPDATE):
            return self._read(process, operation, actions)
        if kind is ActionKind.SYNC:
            return self._sync(process, actions[0])
        what = f"{operation.kind.value} {operation.slot or ''}"
        event = self.relation.add_event(process, self._last[process], what)
        self._count(1)
        if kind is ActionKind.ISSUE:
            self._issue(process, actions[0], event, what)
        elif kind is ActionKind.WRITE:
            for cell, value, mode in actions[0].writes:
                self._change(cell, self._written(event, value, mode))
        elif kind is ActionKind.QUIET:
            self._quiet(process, actions[0], event)
        else:
            assert kind is ActionKind.FENCE, kind
            for packet in actions[0].packets:
                self._sending[process].fence(packet, self.profile)
        self._resume(process, None, event)
        return True

    def _rank(self, process: int) -> int:
        return self.parts.processes[process].rank

    # Stores

    def _issue(self, process: int, action: Action, event: int, what: str) -> None:
        """A put is issued, and its packets land at once, as late as the fabric allows."""
        sending, known = self._sending[process], self.relation.pasts[event]
        sending.forget(known)
        for packet, profile in zip(action.packets, action.profiles, strict=True):
            if sending.overfull(packet, profile.in_flight):
                raise NotCertified(f"{self.relation.names[event]} may meet the in-flight bound")
            past = known | sending.before(packet, profile)
            landing = self.relation.add_event(process, past, what)
            sending.add(packet, self.relation.pasts[landing])
            for cell, value, mode in packet.writes:
                self._change(cell, self._written(landing, value, mode))
            self._count(1)
        sending.settle()

    def _written(self, event: int, value: int, mode: int) -> Write:
        if mode != ADD:
            return Write(event, lambda _: value, True)
        values = self.values

        def add(old: int) -> int:
            held, more = values[old], values[value]
            if not (isinstance(held, int) and isinstance(more, int)):
                raise NotCertified(f"an add to {held}")
            return values.number(held + more)

        return Write(event, add, False, "add")

    def _change(self, place: int, write: Write) -> None:
        """A write happens, and wakes those who wait for one."""
        self.relation.add_write(place, write)
        if place in self._waiting:
            self._ready.extend(self._waiting.pop(place))

    def _quiet(self, process: int, action: Action, event: int) -> None:
        if self.profile.quiet == "all":
            done = self._sending[process].landed(action.target)
            self.relation.pasts[event] |= done

    # Reads

    def _read(self, process: int, operation: Operation, actions: Sequence[Action]) -> bool:
        """A load, wait or atomic: what it reads in this run, and all that it may read in others."""
        groups = self._groups(operation, process, actions)
        cells = tuple(cell for group in groups for cell in group)
        first = actions[0]
        is_update = first.kind is ActionKind.UPDATE
        if is_update and len(cells) > 1:
            raise NotCertified("an atomic that excludes no others from the network")
        evaluate = self._evaluation(operation, first, cells)
        result = evaluate(tuple(self.histories[cell].current for cell in cells))
        if result is BLOCKED:
            for cell in cells:
                self._waiting.setdefault(cell, []).append(process)
            return False
        known = self._last[process]
        if first.ordered:
            profile = self.profile.between(self._rank(process), first.target)
            known |= self._sending[process].ahead_of(first, groups, profile)
        event = self.relation.add_event(process, known, f"{operation.kind.value} {operation.slot}")
        self._count(len(groups))
        read = Read(
            event,
            process,
            self.roles.position(process),
            groups,
            known,
            1 << event,
            first.synchronizing,
            self.roles.drops_result(process),
            evaluate,
            result,
        )
        self.relation.add_read(read)
        if is_update:
            self._update(event, operation, cells[0])
        self._resume(process, result, event)
        return True

    def _groups(
        self, operation: Operation, process: int, actions: Sequence[Action]
    ) -> tuple[tuple[int, ...], ...]:
        """The places that an operation reads, those of one step together."""
        groups: list[tuple[int, ...]] = []
        rank = self._rank(process)
        while actions and actions[0].cells not in groups:
            groups += [action.cells for action in actions]
            done = tuple((group[0], 0) for group in groups)
            if actions[0].kind is ActionKind.READ:
                actions = self.parts.lowering.actions(operation, done, rank)
        return tuple(groups)

    def _evaluation(self, operation: Operation, action: Action, cells: tuple[int, ...]) -> Evaluate:
        """What an operation gives on the values in all its cells."""
        lowering, kept = self.parts.lowering, frozen(operation)
        is_whole = action.waits and action.cells == cells
        whole = action if is_whole else replace(action, cells=cells, waits=True)

        def evaluate(values: tuple[int, ...]) -> Any:
            outcome = lowering.outcome(kept, (), whole, values)
            if outcome.error is not None:
                raise NotCertified(str(outcome.error))
            return BLOCKED if outcome.blocked else outcome.result

        return evaluate

    def _update(self, event: int, operation: Operation, cell: int) -> None:
        update, values = frozen(operation).update, self.values
        assert update is not None

        def change(old: int) -> int:
            return values.number(_called(update, values[old]))

        self._change(cell, Write(event, change, False, family_of(update)))

    # Syncs

    def _sync(self, process: int, action: Action) -> bool:
        here = self._arrived.setdefault(action.group, set())
        here.add(process)
        if len(here) < len(action.members):
            return False
        self._arrived[action.group] = set()
        past = 0
        for member in action.members:
            past |= self._last[member]
        event = self.relation.add_event(process, past, f"sync {action.group}")
        self._count(1)
        for member in action.members:
            self._resume(member, None, event)
            if member != process:
                self._ready.append(member)
        return True

    # Ghosts

    def _hear(self, process: int, statement: GhostUpdate | GhostCheck, event: int) -> None:
        place = self._ghost_place(statement.ghost, statement.key)
        values, arguments = self.values, statement.arguments
        if isinstance(statement, GhostUpdate):
            function = statement.function
            if self.relation.reads_in(event, place):
                raise NotCertified("a ghost is checked and changed in one step")

            def change(old: int) -> int:
                return values.number(_called(function, values[old], *arguments))

            self._change(place, Write(event, change, False, family_with(function, arguments)))
            return
        predicate, message = statement.predicate, statement.message

        def holds(held: tuple[int, ...]) -> Any:
            if not _called(predicate, values[held[0]], *arguments):
                raise NotCertified(f"{self.roles.names[process]}: {message}")
            return True

        self.relation.add_read(
            Read(
                event,
                process,
                0,
                ((place,),),
                self.relation.pasts[event],
                0,
                True,
                True,
                holds,
                True,
            )
        )

    def _ghost_place(self, name: str, key: Hashable) -> int:
        place = self._ghosts.get((name, key))
        if place is None:
            place = self._ghosts[name, key] = len(self.histories)
            initial = self.parts.protocol.ghosts[name].initial
            self.histories.append(History(self.values.number(initial)))
        return place

    # Sweeps

    def _sweep(self, process: int) -> bool:
        """Run a sweep on what memory holds; if it fails the process waits for another look."""
        position, values, before = self.roles.position(process), list[Any](), self.steps
        groups: dict[tuple[int, ...], None] = {}
        operation = self._in_sweep(process, None)
        while operation.kind not in (Kind.SWEEP_BEGIN, Kind.SWEEP_END):
            evaluate, found = self._load_in_sweep(process, operation)
            groups |= dict.fromkeys(found)
            values.append(evaluate(tuple(self.histories[c].current for g in found for c in g)))
            self._count(len(found))
            operation = self._in_sweep(process, values[-1])
        if operation.kind is Kind.SWEEP_BEGIN:
            self.steps = before
            self.roles.rewind(process, position)
            for cell in {cell for group in groups for cell in group}:
                self._waiting.setdefault(cell, []).append(process)
            return False
        known = self._last[process]
        event = self.relation.add_event(process, known, "sweep")

        def alternatives(operation: Operation, known: int, after: int) -> list[Found]:
            evaluate, found = self._load_in_sweep(process, operation)
            groups.update(dict.fromkeys(found))
            return self._may_find(evaluate, found, known, event, after)

        sweep = Sweep(self.roles, process, position, known, tuple(values), alternatives)
        read = Read(event, process, position, groups, known, 0, True, True, no_value, None, sweep)
        self.relation.add_read(read)
        self._resume(process, None, event)
        return True

    def _in_sweep(self, process: int, value: Any) -> Operation:
        self.roles.resume(process, value)
        operation = self.roles.operations[process]
        if operation is None or operation.kind not in SWEPT:
            raise NotCertified(f"a sweep of {self.roles.names[process]} is more than loads")
        if self.parts.roles[process].said:
            raise NotCertified(f"a sweep of {self.roles.names[process]} makes a statement")
        return operation

    def _load_in_sweep(
        self, process: int, operation: Operation
    ) -> tuple[Evaluate, tuple[tuple[int, ...], ...]]:
        """What a load gives and the places that it reads, which its slot alone decides if it has
        no condition and the region is the protocol's."""
        slot, key = operation.slot, None
        is_plain = operation.predicate is None and operation.source is None
        if isinstance(slot, Slot) and is_plain and slot.region in self.parts.layout.regions:
            key = process, operation.kind, slot.region, slot.rank, slot.number, slot.names
        found = self._loads.get(key)
        if found is None:
            try:
                actions = self.parts.lowering.actions(operation, (), self._rank(process))
            except UserError as error:
                raise NotCertified(str(error)) from error
            groups = self._groups(operation, process, actions)
            cells = tuple(cell for group in groups for cell in group)
            found = self._evaluation(operation, actions[0], cells), groups
            if key is not None:
                self._loads[key] = found
        return found

    def _may_find(
        self,
        evaluate: Evaluate,
        groups: tuple[tuple[int, ...], ...],
        known: int,
        now: int,
        after: int,
    ) -> list[Found]:
        """All that a load of a sweep may find."""
        found: list[Found] = []
        for chosen in product(*self.relation.contents(groups, known, now, after)):
            if len(found) > MOST_CONTENTS:
                raise TooMany
            surely = known
            for each in chosen:
                surely |= self.relation.with_pasts(each.surely & ~known)
            value = evaluate(tuple(value for each in chosen for value in each.values))
            found.append(Found(value, surely, all(each.complete for each in chosen)))
        return found

    # The end

    def persisting(self) -> set[str]:
        """The regions that do not end as they began; `NotCertified` if one of them had to."""
        found: set[str] = set()
        for cell, history in zip(self.parts.layout.cells, self.histories, strict=False):
            if history.current != history.initial:
                if cell.slot.region.clean:
                    raise NotCertified(f"{cell} does not end as it began")
                found.add(cell.slot.region.name)
        return found
