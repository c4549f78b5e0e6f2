"""Run live roles once, every put landing at once, and write down what each step did.

Only what a record can hold is run: puts, signals, loads, waits for one place, fences, quiets and
syncs. All else raises `Beyond`, and the closure decides (closure.py).
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from syncproof.checkers.certificate.places import (
    AS_IT_IS,
    Access,
    Divided,
    Places,
    assembled,
    coarsest,
    field_of,
    held_at_first,
    read,
)
from syncproof.checkers.certificate.record import (
    FENCE,
    PUT,
    QUIET,
    READ,
    RETURN,
    STEP,
    STORE,
    SYNC,
    WAIT,
    Record,
)
from syncproof.checkers.certificate.roles import LiveRoles, NotCertified
from syncproof.checkers.explicit.search import Meter
from syncproof.models.conditions import leaves_no_trace
from syncproof.models.errors import UserError
from syncproof.models.instance import Parts
from syncproof.models.lowering import frozen
from syncproof.models.memory import Region, Slot
from syncproof.models.nodes import LONGEST_HISTORY
from syncproof.models.operations import Kind, Operation
from syncproof.models.values import AnyOf, typed

STEPS_BETWEEN_LOOKS = 256
LONGEST_CHAIN = 6
"""How many older contents a wait is tried on."""

BLOCKED = object()
"""What a step gives that was not taken."""


class Beyond(Exception):
    """The run has something that a record cannot hold."""


def run(parts: Callable[[], Parts], meter: Meter) -> Execution:
    """The complete straight run; `NotCertified` if it goes wrong, `Beyond` if it has none."""
    division = None
    while True:
        made = parts()
        division = division or coarsest(made)
        execution = Execution(made, Places(made, division), meter)
        try:
            execution.run()
        except Divided:
            continue
        finally:
            execution.roles.discard()
        return execution


class Execution:
    """One straight run of an instance under one assignment of its choices."""

    def __init__(self, parts: Parts, places: Places, meter: Meter) -> None:
        self.parts, self.places, self.meter = parts, places, meter
        self.profile = profile = parts.lowering.profile
        if profile.hops or profile.load_atomicity not in (0, profile.store_atomicity):
            raise Beyond("accesses of several sizes")
        if parts.protocol.ghosts:
            raise Beyond("ghosts")
        self._stores_at_once = profile.immediate
        self.roles = LiveRoles(parts)
        self.record = Record(
            len(parts.processes),
            places.count,
            profile.in_flight,
            profile.same_address_order,
            profile.immediate,
        )
        self._write = self.record.instructions.extend
        self._last = array("i", [-1]) * places.count
        self._held: list[Any] = []
        self._landing, self._before = array("i"), array("i")
        self._taken = [0] * len(parts.processes)
        self._next_look = 0
        self._waiting: dict[int, list[int]] = {}
        self._arrived: dict[str, set[int]] = {}
        self._ready: deque[int] = deque()

    # The run

    def run(self) -> None:
        """Run every process until it waits or ends, until all have ended."""
        operations, ready = self.roles.operations, self._ready
        for process in range(len(operations)):
            self._resume(process, None)
        ready.extend(range(len(operations)))
        while ready:
            self._go_on(ready.popleft())
        for process, operation in enumerate(operations):
            if operation is not None:
                where = operation.slot or operation.group
                name = self.roles.names[process]
                raise NotCertified(f"{name} is blocked at {operation.kind.value} {where}")
        self.roles.judge_end()

    def _go_on(self, process: int) -> None:
        """Take the steps of a process until it is blocked or has returned."""
        resume, record, taken = self.roles.resume, self.record, self._taken[process]
        operation = self.roles.operations[process]
        while operation is not None:
            try:
                value = STEPS.get(operation.kind, _beyond)(self, process, operation)
            except UserError as error:
                raise NotCertified(str(error)) from error
            if value is BLOCKED:
                break
            record.steps += 1
            taken += 1
            if record.steps > self._next_look:
                self._look(process, taken)
            operation = resume(process, value)
            if operation is None:
                self._write((RETURN, process))
        self._taken[process] = taken

    def _resume(self, process: int, value: Any) -> None:
        if self.roles.resume(process, value) is None:
            self._write((RETURN, process))

    def _look(self, process: int, taken: int) -> None:
        self._next_look = self.record.steps + STEPS_BETWEEN_LOOKS
        look(self.meter, self.record.steps)
        if taken > LONGEST_HISTORY:
            name = self.roles.names[process]
            raise NotCertified(f"{name} takes more than {LONGEST_HISTORY} steps")

    # Stores

    def put(self, process: int, operation: Operation) -> Any:
        """A put is issued, and its atoms land one after the other."""
        slot, held = _slot(operation), operation.value
        names = slot.names
        if type(held) not in AS_IT_IS:
            names, held = self.places.captured(slot, held)
        access, first = self.places.at(slot, names)
        if self._stores_at_once or slot.region.on_chip:
            self._store(process, [(held, _numbers(access, first))])
        elif access.single is None:
            self._issue(process, [(held, atom) for atom in _atoms(access, first)])
        else:
            place, record = first + access.single, self.record
            self._write((PUT, process, 1, 1, place))
            self._land(held, place)
            record.landings += 1
            record.steps += 1

    def put_with_signal(self, process: int, operation: Operation) -> Any:
        """A put and a signal that lands behind it."""
        slot, signal = _slot(operation), operation.signal
        if operation.signal_adds or signal is None:
            raise Beyond("adds")
        writes, landings = [], list[tuple[Any, tuple[int, ...]]]()
        for each, value in ((slot, operation.value), (signal, operation.signal_value)):
            names, held = self.places.captured(each, value)
            access, first = self.places.at(each, names)
            writes.append((held, _numbers(access, first)))
            ends = len(landings)
            landings += [(held, atom) for atom in _atoms(access, first)]
        if self.profile.immediate or (slot.region.on_chip and signal.region.on_chip):
            self._store(process, writes)
            return
        if slot.region.on_chip or signal.region.on_chip:
            raise Beyond("a put that reaches on-chip memory atom by atom")
        begin = self.record.landings
        self.record.signals.extend(range(begin + ends, begin + len(landings)))
        self._issue(process, landings)

    def _issue(self, process: int, landings: Sequence[tuple[Any, tuple[int, ...]]]) -> None:
        self._write((PUT, process, len(landings)))
        for held, places in landings:
            self._write((len(places), *places))
            for place in places:
                self._land(held, place)
            self.record.landings += 1
        self.record.steps += len(landings)

    def _store(self, process: int, writes: Sequence[tuple[Any, tuple[int, ...]]]) -> None:
        """Stores that are in memory at once, as one landing."""
        places = [place for _, numbers in writes for place in numbers]
        self._write((STORE, process, len(places), *places))
        for held, numbers in writes:
            for place in numbers:
                self._land(held, place)
        self.record.landings += 1

    def _land(self, held: Any, place: int) -> None:
        """The landing that comes next brings this to a place."""
        values, last = self._held, self._last
        self._before.append(last[place])
        last[place] = len(values)
        values.append(held)
        self._landing.append(self.record.landings)
        if self._waiting and place in self._waiting:
            self._ready.extend(self._waiting.pop(place))

    # Reads

    def load(self, process: int, operation: Operation) -> Any:
        """A load; several atoms are read each at its own step."""
        slot = _slot(operation)
        access, first = self.places.at(slot, slot.names)
        if access.single is not None:
            self._write((READ, process, 1, first + access.single))
            return read(access, self._held_at(slot, first + access.single))
        numbers = _numbers(access, first)
        if slot.region.on_chip:
            self._write((READ, process, len(numbers), *numbers))
        else:
            for places in _atoms(access, first):
                self._write((READ, process, len(places), *places))
                self.record.steps += 1
            self.record.steps -= 1
        return assembled(access, tuple([self._held_at(slot, place) for place in numbers]))

    def _held_at(self, slot: Slot, place: int) -> Any:
        entry = self._last[place]
        return self._held[entry] if entry >= 0 else held_at_first(slot, self.parts.choices)

    def wait(self, process: int, operation: Operation) -> Any:
        """A wait for one place: how far back it would have failed is written down."""
        slot, predicate = _slot(operation), _test(operation)
        if operation.update is not None or predicate is None:
            raise Beyond("atomics")
        access, first = self.places.at(slot, slot.names)
        if access.single is None:
            raise Beyond("a wait over several atoms")
        place = first + access.single
        result = read(access, self._held_at(slot, place))
        try:
            passes = predicate(result)
        except Exception as error:
            raise NotCertified(f"{self.roles.names[process]}: the wait raised {error}") from error
        if not passes:
            self._waiting.setdefault(place, []).append(process)
            return BLOCKED
        known = self._failing_since(slot, access, predicate, self._last[place])
        self._write((WAIT, process, place, known))
        return result

    def _failing_since(
        self, slot: Slot, access: Access, predicate: Callable[[Any], Any], entry: int
    ) -> int:
        """The earliest landing since which the wait fails on all but what it read now."""
        if entry < 0:
            return -1
        for _ in range(LONGEST_CHAIN):
            since, entry = self._landing[entry], self._before[entry]
            held = self._held[entry] if entry >= 0 else held_at_first(slot, self.parts.choices)
            try:
                if predicate(read(access, held)):
                    return since
            except Exception:
                return since
            if entry < 0:
                return -1
        return self._landing[entry]

    # Order

    def fence(self, process: int, operation: Operation) -> Any:
        """A fence over all targets; the others order too little to be written down."""
        profile, everywhere = self.profile, operation.target is None
        kind = STEP
        if everywhere and profile.fence == "drains":
            kind = self._quiet_kind()
        elif everywhere and profile.fence == "orders" and profile.fence_scope == "all":
            kind = FENCE
        self._write((kind, process))

    def quiet(self, process: int, operation: Operation) -> Any:
        """A quiet; a local one completes nothing."""
        self._write((self._quiet_kind(), process))

    def _quiet_kind(self) -> int:
        return QUIET if self.profile.quiet == "all" else STEP

    def sync(self, process: int, operation: Operation) -> Any:
        """A sync, once the last of its members is here."""
        here = self._arrived.setdefault(operation.group, set())
        here.add(process)
        if len(here) < len(operation.members):
            return BLOCKED
        self._arrived[operation.group] = set()
        self._write((SYNC, len(operation.members), *operation.members))
        for member in operation.members:
            if member != process:
                self._resume(member, None)
                self._ready.append(member)
        return None

    # The end

    def persisting(self) -> set[str]:
        """The regions that do not end as they began; `NotCertified` if one of them had to."""
        found: set[str] = set()
        for region in self.parts.layout.regions:
            changed = self._changed(region)
            if changed is not None:
                if region.clean:
                    raise NotCertified(f"{self.places.slot_at(changed)} does not end as it began")
                found.add(region.name)
        return found

    def _changed(self, region: Region) -> int | None:
        """A place of the region that does not hold what it held at first."""
        initial, choices = region.initial, self.parts.choices
        for fields, numbers in self.places.of_region(region):
            for place in numbers:
                entry = self._last[place]
                if entry < 0 or self._held[entry] is initial:
                    continue
                first = initial
                if isinstance(initial, AnyOf | Mapping):
                    first = held_at_first(self.places.slot_at(place), choices)
                for name in fields:
                    if typed(field_of(self._held[entry], name)) != typed(field_of(first, name)):
                        return place
        return None


def look(meter: Meter, steps: int) -> None:
    """Tell how far the run is; `NotCertified` when a limit is met."""
    meter.states, meter.depth = steps, steps
    limit = meter.exceeded(0)
    if limit:
        raise NotCertified(f"the run met {limit}")


def _numbers(access: Access, first: int) -> tuple[int, ...]:
    return tuple([first + place for place in access.places])


def _atoms(access: Access, first: int) -> list[tuple[int, ...]]:
    return [tuple([first + place for place in atom]) for atom in access.atoms]


def _slot(operation: Operation) -> Slot:
    slot = operation.slot
    if type(slot) is Slot:
        return slot
    raise UserError(f"{operation.kind.value} on {type(slot).__name__}")


def _test(operation: Operation) -> Callable[[Any], Any] | None:
    """What a wait asks; what it does to variables of the role is lost, as in all engines."""
    function = operation.predicate
    return function if leaves_no_trace(function) else frozen(operation).predicate


def _beyond(execution: Execution, process: int, operation: Operation) -> Any:
    raise Beyond(f"{execution.roles.names[process]} uses {operation.kind.value}")


STEPS: dict[Kind, Callable[[Execution, int, Operation], Any]] = {
    Kind.PUT: Execution.put,
    Kind.PUT_WITH_SIGNAL: Execution.put_with_signal,
    Kind.LOAD: Execution.load,
    Kind.GET: Execution.load,
    Kind.WAIT_UNTIL: Execution.wait,
    Kind.FENCE: Execution.fence,
    Kind.QUIET: Execution.quiet,
    Kind.SYNC: Execution.sync,
}
