"""Virtual time: the same roles and bytes, but each step takes as long as a table of costs says.

A discrete-event run: nothing is random but the choices, and no clock of the machine is looked at.
Steps are not walked through the model, as roles may be spread over more cores than it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from heapq import heappop, heappush
from itertools import count
from types import CoroutineType
from typing import Any

from syncproof.checkers.emulator.content import Content
from syncproof.checkers.emulator.flights import Flight
from syncproof.checkers.emulator.machine import Machine
from syncproof.checkers.emulator.operations import SENDING, step
from syncproof.checkers.emulator.processes import Emulated, is_of_core, place_of
from syncproof.checkers.emulator.results import Blocked, blocked_in
from syncproof.models.errors import UserError
from syncproof.models.fabric import HOPS, Profile
from syncproof.models.instance import Instance
from syncproof.models.operations import Kind, Operation

PAPER = "UBEP, table 2"
ASSUMED = "assumed"


@dataclass(frozen=True)
class Costs:
    """What a step takes, in nanoseconds; the latencies are those of the fabric profile.

    A put occupies its core for ``issue`` and its bytes, and lands a latency later; a quiet passes
    when all has landed, so that a latency is one of the whole access. A read takes the latency to
    the memory it reads, and its bytes; it sees what is there when it begins. A poll that fails
    costs nothing, the one that succeeds is a read. A loop over blocks of ``slot`` bytes at most,
    in the core's own rank, is one strided copy: only its first turn takes the latency or the
    issue. ``sync`` is what it takes from the last core's arrival until all go on.
    """

    issue: float = 50.0
    bytes_per_ns: float = 16.0
    slot: float = 32
    loop: int = 4
    sync: float = 1000.0


WHERE_FROM = {
    "issue": "assumed: a core hands a DataCopy to its engine",
    "bytes_per_ns": "assumed: bytes per ns of one core",
    "slot": "CANN's kernels poll 32 B slots by strided copies; bytes of such a slot",
    "loop": "assumed: operations between the turns of a strided copy",
    "sync": "assumed: SyncAll of one rank (the paper: about 15 % of a dispatch)",
}


@dataclass
class Phase:
    """Time that cores spend in one operation of one function: how often, in all, at most once."""

    times: int = 0
    total: float = 0.0
    longest: float = 0.0


@dataclass(frozen=True)
class Timed:
    """A run in virtual time; all times in nanoseconds.

    ``latency`` is when the last token was trusted, ``end`` when the last role returned. ``phases``
    are by (role, function, operation), ``parameters`` every number with where it is from.
    """

    latency: float
    end: float
    steps: int
    blocks: int
    cores: int
    phases: Mapping[tuple[str, str, str], Phase] = field(default_factory=dict)
    parameters: tuple[tuple[str, str, str], ...] = ()
    wrong: tuple[str, ...] = ()
    blocked: tuple[Blocked, ...] = ()


def simulate(
    instance: Instance, costs: Costs | None = None, lanes: int = 1, seed: int = 0
) -> Timed:
    """Run an instance in virtual time.

    ``lanes`` spreads each role over so many cores, each of which serves a share of the peers.
    """
    costs = costs or Costs()
    _check(instance.profile)
    if lanes > 1:
        _check_lanes(instance)
    machine = Machine(replace(instance, whole_atoms=True), seed, Content(), lanes=lanes)
    try:
        run = _Run(machine, costs)
        run.run()
        if machine.is_over:
            machine.judge_end()
        cores = max(
            sum(each.rank == rank for each in machine.processes)
            for rank in range(instance.bounds.ranks)
        )
        return Timed(
            run.last_trust,
            run.end,
            machine.steps,
            machine.blocks,
            cores,
            run.phases,
            parameters(instance.profile, costs, cores),
            tuple(f"{each.property}: {each.message}" for each in machine.wrong),
            blocked_in(machine),
        )
    finally:
        machine.close()


def parameters(profile: Profile, costs: Costs, cores: int) -> tuple[tuple[str, str, str], ...]:
    """Every number of a run, as (name, value, where it is from)."""
    known = [
        (f"latency {hop}", f"{profile.latency_ns[hop]:g} ns", _origin(profile)) for hop in HOPS
    ]
    span = profile.ranks_per_switch
    known.append(("ranks per switch", str(span or "all"), _origin(profile)))
    for each in fields(costs):
        known.append((each.name, f"{getattr(costs, each.name):g}", WHERE_FROM[each.name]))
    return (*known, ("cores per rank", str(cores), "asked for"))


def _origin(profile: Profile) -> str:
    return f"fabric {profile.name}" + (f" ({PAPER})" if profile.name == "cm384" else "")


def _check(profile: Profile) -> None:
    missing = [hop for hop in HOPS if hop not in profile.latency_ns]
    if missing:
        raise UserError(
            f"the fabric {profile.name} gives no latency_ns for {', '.join(missing)}",
            where="--time virtual",
            expected="a profile with latencies, such as cm384",
        )


def _check_lanes(instance: Instance) -> None:
    """Refuse to spread a role that shares out its work itself: each share would be done often."""
    for each in instance.protocol().roles():
        if each.instances != 1:
            name = each.instances if isinstance(each.instances, str) else "its number of cores"
            raise UserError(
                f"the role {each.name} shares its work out among its own cores",
                where="--cores",
                expected=f"--set {name}=N" if isinstance(each.instances, str) else name,
            )


class _Run:
    def __init__(self, machine: Machine, costs: Costs) -> None:
        self.machine, self.costs = machine, costs
        self.now = self.last_trust = self.end = 0.0
        self.phases: dict[tuple[str, str, str], Phase] = {}
        self._events: list[tuple[float, int, Emulated | Flight]] = []
        self._order = count()
        self._planned: set[Emulated | Flight] = set()
        self._since: dict[Emulated, float] = {}
        self._busy_until: dict[Emulated, float] = {}
        self._turns: dict[Emulated, deque[tuple[str, int, str]]] = {
            each: deque(maxlen=costs.loop) for each in machine.processes
        }

    def run(self) -> None:
        """Until nothing is planned any more."""
        machine = self.machine
        machine.start()
        for process in list(machine.fabric.ready):
            self._plan(process, 0.0)
        while self._events and not machine.wrong:
            self.now, _, what = heappop(self._events)
            self._planned.discard(what)
            machine.fabric.woken.clear()
            if isinstance(what, Flight):
                if what in machine.fabric.free:
                    machine.fabric.deliver(what)
            elif self._busy_until.get(what, 0.0) > self.now:
                self._plan(what, self._busy_until[what])
            elif what in machine.fabric.ready:
                self._step(what)
            self._follow()

    def _plan(self, what: Emulated | Flight, when: float) -> None:
        if what not in self._planned:
            self._planned.add(what)
            heappush(self._events, (when, next(self._order), what))

    def _follow(self) -> None:
        """Plan for whoever can go on because of what has happened."""
        fabric = self.machine.fabric
        for process in fabric.woken:
            if process in fabric.ready:
                self._plan(process, self.now)
        for flight in fabric.freed:
            self._plan(flight, max(flight.due, self.now))
        fabric.freed.clear()

    def _step(self, process: Emulated) -> None:
        operation = process.operation
        assert operation is not None
        began = self._since.setdefault(process, self.now)
        key = (process.process.role, function_of(process.coroutine), operation.kind.value)
        place = place_of(process.coroutine)
        turn = (place.file, place.line, str(operation.slot)) if place else ("", 0, "")
        members = [self.machine.processes[number] for number in operation.members]
        blocks = self.machine.blocks
        if not step(self.machine, process):
            return
        end = self.now + self._cost(process, operation, self._is_again(process, turn))
        for flight in process.flights:
            if not flight.due:
                flight.due = end + self._latency(process, flight.target)
        if self.machine.blocks > blocks:
            self.last_trust = max(self.last_trust, end)
        self.end = max(self.end, end)
        for each in members or [process]:
            self._busy_until[each] = end
            self._note(key, end - self._since.pop(each, began))
            if not each.is_done:
                self._since[each] = end
                self._plan(each, end)
        self.machine.fabric.woken.clear()

    def _note(self, key: tuple[str, str, str], time: float) -> None:
        phase = self.phases.setdefault(key, Phase())
        phase.times += 1
        phase.total += time
        phase.longest = max(phase.longest, time)

    def _is_again(self, process: Emulated, turn: tuple[str, int, str]) -> bool:
        """Whether the step taken is a further turn of a loop: the same line, at another block."""
        file, line, slot = turn
        turns = self._turns[process]
        is_again = any(each[:2] == (file, line) and each[2] != slot for each in turns)
        turns.append(turn)
        return is_again

    def _cost(self, process: Emulated, operation: Operation, is_again: bool) -> float:
        """How long the operation keeps its core."""
        costs, kind = self.costs, operation.kind
        if kind is Kind.SYNC:
            return costs.sync
        if operation.slot is None:
            return 0.0
        sizes = operation.slot.region.fields
        size = sum(sizes[name] for name in operation.slot.names) / costs.bytes_per_ns
        if operation.slot.region.on_chip:
            return 0.0
        own = operation.slot.rank == process.rank
        if is_again and own and operation.slot.region.block <= costs.slot:
            return size
        if kind in SENDING or kind is Kind.STORE_CACHED:
            return costs.issue + size
        return self._latency(process, operation.slot.rank) + size

    def _latency(self, process: Emulated, target: int) -> float:
        profile = self.machine.profile
        return float(profile.latency_ns[profile.hop(process.rank, max(target, 0))])


def function_of(coroutine: CoroutineType[Any, Any, Any]) -> str:
    """The function of the protocol that a role is in: a phase of it, if it is written so."""
    name = coroutine.cr_code.co_name
    inner: Any = coroutine
    while isinstance(inner, CoroutineType) and inner.cr_frame is not None:
        code = inner.cr_frame.f_code
        if not is_of_core(code.co_filename):
            name = code.co_name
        inner = inner.cr_await
    return name
