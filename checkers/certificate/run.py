"""Run the roles once, every put landing at once, and check that no other run can differ.

Each rule that fails raises `NotCertified` with the pair that nothing orders; then a general
engine has to decide. Nothing here says that a protocol is wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CoroutineType
from typing import Any

import numpy

from syncproof.checkers.certificate.knowledge import Known, Landing, learn
from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.identity import discard
from syncproof.models.instance import Parts
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.nodes import LONGEST_HISTORY, same
from syncproof.models.operations import (
    Consumed,
    Failed,
    GhostCheck,
    GhostUpdate,
    Kind,
    Operation,
    Reached,
    Sent,
)
from syncproof.models.outbox import ADD, Packet, Write, must_precede

LONGEST_CHAIN = 6
MOST_RUN_TWICE = 32
"""With more processes than this, only those of rank 0 are run a second time."""
STEPS_BETWEEN_LOOKS = 64
LEFT_TO_GENERAL = (
    Kind.SWEEP_BEGIN,
    Kind.PUT_NBI,
    Kind.GET_NBI,
    Kind.LOAD_CACHED,
    Kind.STORE_CACHED,
    Kind.CLEAN_AND_INVALIDATE,
)


class NotCertified(Exception):
    """This run is not shown to be the only one; the message names what is not ordered."""


@dataclass
class _Process:
    number: int
    coroutine: CoroutineType[Any, Any, Any]
    known: Known
    operation: Operation | None = None
    progress: tuple[tuple[int, int], ...] = ()
    fence_at: int = 0
    fences_to: dict[int, int] = field(default_factory=dict)
    unproved: list[Landing] = field(default_factory=list)
    fed: list[tuple[Any, Operation]] | None = None
    done: bool = False


class SingleRun:
    """The canonical run of one instance under one assignment of its choices."""

    def __init__(self, parts: Parts, meter: Meter | None = None) -> None:
        self.parts, self.profile = parts, parts.lowering.profile
        self.meter = meter or Meter(Budget())
        self.values = [parts.values.number(value) for value in parts.initial]
        self.initial = list(self.values)
        self.last: list[Landing | None] = [None] * len(self.values)
        self.readers: list[list[tuple[int, int]]] = [[] for _ in self.values]
        count = len(parts.processes)
        zero = numpy.zeros(count, dtype=numpy.int32)
        self.processes = [
            _Process(i, role.start(), Known(i, zero, zero, {}))
            for i, role in enumerate(parts.roles)
        ]
        for process in self.processes:
            if count <= MOST_RUN_TWICE or parts.processes[process.number].rank == 0:
                process.fed = []
        self.waiting: dict[int, list[int]] = {}
        self.arrived: dict[str, set[int]] = {}
        self.steps = 0
        self.reached: set[str] = set()
        self.sent: dict[object, int] = {}
        self.consumed: dict[object, int] = {}

    def run(self) -> None:
        """Run to the end; `NotCertified` if it does not end well or might have gone otherwise."""
        try:
            self._run()
            for process in self.processes:
                self._run_again(process)
        finally:
            for process in self.processes:
                discard(process.coroutine)

    def _run(self) -> None:
        ready = deque(range(len(self.processes)))
        for process in self.processes:
            self._resume(process, None)
        while ready:
            process = self.processes[ready.popleft()]
            while not process.done and self._step(process, ready):
                pass
        blocked = [p for p in self.processes if not p.done]
        if blocked:
            first = blocked[0]
            raise NotCertified(f"{self._name(first)} is blocked at {self._text(first)}")
        self._judge_end()

    # Roles

    def _resume(self, process: _Process, value: Any) -> None:
        said = self.parts.roles[process.number].said
        said.clear()
        process.progress = ()
        try:
            operation = process.coroutine.send(value)
        except StopIteration:
            process.done, process.operation = True, None
        except Exception as error:
            raise NotCertified(f"{self._name(process)} raised {error}") from error
        else:
            if not isinstance(operation, Operation) or operation.kind in LEFT_TO_GENERAL:
                what = operation.kind.value if isinstance(operation, Operation) else operation
                raise NotCertified(f"{self._name(process)} uses {what}")
            process.operation = operation
            if process.fed is not None:
                process.fed.append((value, operation))
        for each in said:
            self._hear(process, each)
        if process.done:
            self._judge_return(process)

    def _run_again(self, process: _Process) -> None:
        """Feed a second coroutine what the first was fed: it has to do the same."""
        if process.fed is None:
            return
        role = self.parts.roles[process.number]
        again = role.start()
        try:
            for value, operation in process.fed:
                if not same(again.send(value), operation):
                    break
            else:
                return
        except StopIteration:
            pass
        finally:
            discard(again)
            role.said.clear()
        code = process.coroutine.cr_code
        raise UserError(
            f"the role {self.parts.processes[process.number].role} is not deterministic: the same "
            "values read gave another operation",
            where=f"{code.co_filename}:{code.co_firstlineno}",
            expected="a role depends only on what it reads and chooses",
        )

    def _hear(self, process: _Process, statement: object) -> None:
        if isinstance(statement, Sent):
            self.sent[statement.key] = 1
        elif isinstance(statement, Consumed):
            if statement.failure:
                raise NotCertified(f"{self._name(process)}: {statement.failure}")
            self.consumed[statement.key] = self.consumed.get(statement.key, 0) + 1
        elif isinstance(statement, Reached):
            self.reached.add(statement.name)
        elif isinstance(statement, Failed):
            raise NotCertified(f"{self._name(process)}: {statement.message}")
        elif isinstance(statement, (GhostUpdate, GhostCheck)):
            raise NotCertified(f"{self._name(process)} uses the ghost {statement.ghost}")

    def _name(self, process: _Process) -> str:
        return str(self.parts.processes[process.number])

    def _text(self, process: _Process) -> str:
        operation = process.operation
        return f"{operation.kind.value} {operation.slot or operation.group}" if operation else "end"

    # Steps

    def _step(self, process: _Process, ready: deque[int]) -> bool:
        """Take one step of ``process``; False if it is blocked."""
        operation = process.operation
        assert operation is not None
        rank = self.parts.processes[process.number].rank
        try:
            action = self.parts.lowering.actions(operation, process.progress, rank)[0]
        except UserError as error:
            raise NotCertified(str(error)) from error
        kind = action.kind
        if kind is ActionKind.READ:
            return self._read(process, action)
        if kind is ActionKind.SYNC:
            return self._sync(process, action, ready)
        if kind is ActionKind.ISSUE:
            self._issue(process, action, ready)
        elif kind is ActionKind.WRITE:
            self._write(process, action, ready)
        elif kind is ActionKind.QUIET:
            self._quiet(process, action)
        elif kind is ActionKind.FENCE:
            self._fence(process, action)
        else:
            raise NotCertified(f"{self._name(process)} uses {kind.value}: {self._text(process)}")
        self._advance(process)
        self._resume(process, None)
        return True

    def _advance(self, process: _Process) -> None:
        process.known.step += 1
        self.steps += 1
        if self.steps % STEPS_BETWEEN_LOOKS == 0:
            self.meter.states, self.meter.depth = self.steps, self.steps
            limit = self.meter.exceeded(0)
            if limit:
                raise NotCertified(f"the run met {limit}")
        if process.known.step > LONGEST_HISTORY:
            raise NotCertified(f"{self._name(process)} takes more than {LONGEST_HISTORY} steps")

    def _quiet(self, process: _Process, action: Action) -> None:
        if self.profile.quiet == "target":
            raise NotCertified("quiet completes towards the target only")
        if self.profile.quiet == "local":
            return
        if action.target >= 0:
            process.fences_to[action.target] = process.known.step
            link = (process.number, action.target, -1)
            process.known.links = {**process.known.links, link: process.known.step}
            return
        process.known.complete = process.known.step
        process.unproved.clear()

    def _fence(self, process: _Process, action: Action) -> None:
        for packet in action.packets:
            if packet.target < 0:
                process.fence_at = process.known.step
            else:
                process.fences_to[packet.target] = process.known.step

    def _sync(self, process: _Process, action: Action, ready: deque[int]) -> bool:
        here = self.arrived.setdefault(action.group, set())
        here.add(process.number)
        if len(here) < len(action.members):
            return False
        self.arrived[action.group] = set()
        members = [self.processes[m] for m in action.members]
        steps, landed = self._merged(members)
        links = {k: v for m in members for k, v in m.known.links.items()}
        for member in members:
            for link, step in member.known.links.items():
                links[link] = max(links[link], step)
        for member in members:
            member.known.steps, member.known.landed = steps, landed
            member.known.links = links
            member.known.step += 1
        self.steps += 1
        for member in members:
            self._resume(member, None)
            if member is not process and not member.done:
                ready.append(member.number)
        return True

    def _merged(self, members: Sequence[_Process]) -> tuple[Any, Any]:
        """What the members of a sync know together, the step itself included."""
        steps = numpy.maximum.reduce([m.known.steps for m in members])
        landed = numpy.maximum.reduce([m.known.landed for m in members])
        for member in members:
            steps[member.number] = member.known.step + 1
            landed[member.number] = max(landed[member.number], member.known.complete)
        return steps, landed

    # Reads

    def _read(self, process: _Process, action: Action) -> bool:
        operation = process.operation
        assert operation is not None
        values = tuple(self.values[cell] for cell in action.cells)
        outcome = self.parts.lowering.outcome(operation, process.progress, action, values)
        if outcome.error is not None:
            raise NotCertified(f"{self._name(process)}: {outcome.error}")
        if outcome.blocked:
            for cell in action.cells:
                self.waiting.setdefault(cell, []).append(process.number)
            return False
        if outcome.again:
            raise NotCertified(f"{self._name(process)} polls atom by atom: {self._text(process)}")
        self._check_read(process, action)
        step = process.known.step
        for cell in action.cells:
            landing = self.last[cell]
            self.readers[cell].append((process.number, step))
            if landing is not None and (process.number, step) not in landing.witnesses:
                self._witness(process, landing)
        self._advance(process)
        if outcome.progress is not None:
            process.progress = outcome.progress
        else:
            self._resume(process, outcome.result)
        return True

    def _witness(self, process: _Process, landing: Landing) -> None:
        learn(process.known, landing)
        for each in (landing, *landing.companions):
            each.witnesses.append((process.number, process.known.step))

    def _check_read(self, process: _Process, action: Action) -> None:
        """The landings read surely precede, or the wait fails on everything older."""
        known = process.known
        unsure = [c for c in action.cells if not self._has(known, self.last[c])]
        if not unsure:
            return
        landing = self.last[unsure[0]]
        assert landing is not None
        name = self._name(process)
        if not action.waits or any(self.last[cell] is not landing for cell in unsure):
            put, read = self._said_by(landing), self._text(process)
            raise NotCertified(f"nothing orders {put} before {name}'s {read}")
        current = {cell: self.values[cell] for cell in action.cells}
        for _ in range(LONGEST_CHAIN):
            assert landing is not None
            current |= {cell: landing.old_values[cell] for cell in unsure}
            values = tuple(current[cell] for cell in action.cells)
            outcome = self.parts.lowering.outcome(process.operation, (), action, values)
            if not outcome.blocked:
                put, wait = self._said_by(landing), self._text(process)
                raise NotCertified(f"{name}'s {wait} may pass before {put}")
            older = {id(landing.before[cell]): landing.before[cell] for cell in unsure}
            if len(older) != 1:
                raise NotCertified(f"{name}'s {self._text(process)} may see several older values")
            landing = next(iter(older.values()))
            if self._has(known, landing):
                return
        raise NotCertified(f"{name}'s {self._text(process)} may see too many older values")

    @staticmethod
    def _has(known: Known, landing: Landing | None) -> bool:
        return landing is None or known.has_landed(landing)

    # Writes

    def _issue(self, process: _Process, action: Action, ready: deque[int]) -> None:
        made: list[tuple[Packet, Landing]] = []
        for packet, profile in zip(action.packets, action.profiles, strict=True):
            landing = self._landing(process, packet, profile)
            landing.companions = tuple(
                earlier for other, earlier in made if must_precede(other, packet, profile)
            )
            made.append((packet, landing))
            self._arrive(process, landing, packet.writes)
            self.steps += 1
        process.unproved += [landing for _, landing in made]
        self._wake([cell for p, _ in made for cell, _, _ in p.writes], ready)

    def _write(self, process: _Process, action: Action, ready: deque[int]) -> None:
        landing = self._landing(process, None, self.profile, action.writes)
        self._arrive(process, landing, action.writes)
        self._wake(landing.cells, ready)

    def _landing(
        self,
        process: _Process,
        packet: Packet | None,
        profile: Profile,
        writes: tuple[Write, ...] = (),
    ) -> Landing:
        """The landing of a packet, or of immediate writes where there is none."""
        known, links = process.known, process.known.links
        target, queue = (-1, 0) if packet is None else (packet.target, packet.queue)
        if target in process.fences_to:
            links = {**links, (process.number, target, -1): process.fences_to[target]}
        in_order = packet is not None and (
            profile.ordering != "none" or (packet.is_signal and profile.signal == "prior")
        )
        return Landing(
            process.number,
            known.step,
            target,
            queue,
            packet is None,
            tuple(cell for cell, _, _ in (writes if packet is None else packet.writes)),
            known.steps,
            known.landed,
            links,
            known.complete,
            process.fence_at,
            in_order,
            process.operation,
        )

    def _said_by(self, landing: Landing) -> str:
        """The put that a landing belongs to, in words."""
        operation = landing.operation
        assert isinstance(operation, Operation)
        name = self.parts.processes[landing.source]
        return f"{name}'s {operation.kind.value} {operation.slot}"

    def _arrive(
        self, process: _Process, landing: Landing, writes: tuple[tuple[int, int, int], ...]
    ) -> None:
        for cell, value, mode in writes:
            if mode == ADD:
                raise NotCertified(f"{self._said_by(landing)} adds")
            self._check_write(process, landing, cell)
            landing.before[cell] = self.last[cell]
            landing.old_values[cell] = self.values[cell]
            self.last[cell], self.values[cell] = landing, value
            self.readers[cell] = []
            self._forget(landing, cell)

    def _check_write(self, process: _Process, landing: Landing, cell: int) -> None:
        """The landing before, and all who read it, surely precede this one."""
        before, known = self.last[cell], process.known
        for reader, step in self.readers[cell]:
            if not known.has_step(reader, step):
                name = self.parts.processes[reader]
                put = self._said_by(landing)
                raise NotCertified(f"nothing orders {put} after a read of {name}")
        if before is None or known.has_landed(before):
            return
        same = before.source == landing.source and before.immediate == landing.immediate
        if not (same and (landing.immediate or self.profile.same_address_order)):
            late, early = self._said_by(landing), self._said_by(before)
            raise NotCertified(f"nothing orders {late} after {early}")
        pending, older = 1, before.before.get(cell)
        while older is not None and not known.has_landed(older):
            pending += older.source == landing.source
            older = older.before.get(cell)
        if not landing.immediate and pending >= self.profile.in_flight:
            raise NotCertified(f"{self._said_by(landing)} may meet the in-flight bound")

    def _forget(self, landing: Landing, cell: int) -> None:
        """Keep as many older landings as a check can come to, which is less than is kept."""
        older: Landing | None = landing
        for _ in range(LONGEST_CHAIN + self.profile.in_flight):
            if older is None:
                return
            older = older.before.get(cell)
        if older is not None:
            older.before[cell] = None
            older.old_values[cell] = -1

    def _wake(self, cells: Sequence[int], ready: deque[int]) -> None:
        for cell in cells:
            ready.extend(self.waiting.pop(cell, ()))

    # Ends

    def _judge_return(self, process: _Process) -> None:
        for landing in process.unproved:
            if not process.known.has_landed(landing):
                put = self._said_by(landing)
                raise NotCertified(f"{self._name(process)} may return before {put} lands")

    def _judge_end(self) -> None:
        for key in self.sent.keys() | self.consumed.keys():
            if self.consumed.get(key, 0) != 1 or key not in self.sent:
                raise NotCertified(f"token {key} is consumed {self.consumed.get(key, 0)} times")
        for number, cell in enumerate(self.parts.layout.cells):
            if cell.slot.region.clean and self.values[number] != self.initial[number]:
                raise NotCertified(f"{cell} does not end as it began")

    def persisting(self) -> set[str]:
        """The regions that do not end as they began."""
        return {
            cell.slot.region.name
            for number, cell in enumerate(self.parts.layout.cells)
            if self.values[number] != self.initial[number]
        }
