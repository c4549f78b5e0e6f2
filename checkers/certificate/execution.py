"""Run live roles once, every put landing at once, and write down what each step did.

Only what a record can hold is run: puts, signals, loads, waits for one place, fences, quiets and
syncs. All else raises `Beyond`, and the closure decides (closure.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from syncproof.checkers.certificate.places import (
    Access,
    Divided,
    Places,
    assembled,
    captured,
    coarsest,
    field_of,
    held_at_first,
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

Content = tuple[Any, int, Any]
"""What a place holds, the number of the landing that brought it, and the content before it."""


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
        self.roles = LiveRoles(parts)
        self.record = Record(
            len(parts.processes),
            places.count,
            profile.in_flight,
            profile.same_address_order,
            profile.immediate,
        )
        self._write = self.record.instructions.extend
        self.contents: list[Content | None] = [None] * places.count
        self._taken = [0] * len(parts.processes)
        self._waiting: dict[int, list[int]] = {}
        self._arrived: dict[str, set[int]] = {}
        self._ready: deque[int] = deque()
        self._atoms: dict[Access, list[tuple[int, ...]]] = {}

    # The run

    def run(self) -> None:
        """Run every process until it waits or ends, until all have ended."""
        operations, ready = self.roles.operations, self._ready
        for process in range(len(operations)):
            self._resume(process, None)
        ready.extend(range(len(operations)))
        while ready:
            process = ready.popleft()
            while True:
                operation = operations[process]
                if operation is None or not self._step(process, operation):
                    break
        for process, operation in enumerate(operations):
            if operation is not None:
                where = operation.slot or operation.group
                name = self.roles.names[process]
                raise NotCertified(f"{name} is blocked at {operation.kind.value} {where}")
        self.roles.judge_end()

    def _step(self, process: int, operation: Operation) -> bool:
        """Take one step of a process; False if it is blocked."""
        try:
            return STEPS.get(operation.kind, _beyond)(self, process, operation)
        except UserError as error:
            raise NotCertified(str(error)) from error

    def _resume(self, process: int, value: Any) -> None:
        self.roles.resume(process, value)
        if self.roles.operations[process] is None:
            self._write((RETURN, process))

    def _advance(self, process: int, value: Any = None) -> bool:
        record = self.record
        record.steps += 1
        if not record.steps % STEPS_BETWEEN_LOOKS:
            look(self.meter, record.steps)
        self._taken[process] += 1
        if self._taken[process] > LONGEST_HISTORY:
            name = self.roles.names[process]
            raise NotCertified(f"{name} takes more than {LONGEST_HISTORY} steps")
        self._resume(process, value)
        return True

    # Stores

    def put(self, process: int, operation: Operation) -> bool:
        """A put is issued, and its atoms land one after the other."""
        slot = _slot(operation)
        written = self._written(slot, operation.value)
        if self.profile.immediate or slot.region.on_chip:
            self._store(process, [written])
        else:
            self._issue(process, self._landings(*written))
        return self._advance(process)

    def put_with_signal(self, process: int, operation: Operation) -> bool:
        """A put and a signal that lands behind it."""
        slot, signal = _slot(operation), operation.signal
        if operation.signal_adds or signal is None:
            raise Beyond("adds")
        data = self._written(slot, operation.value)
        told = self._written(signal, operation.signal_value)
        if self.profile.immediate or (slot.region.on_chip and signal.region.on_chip):
            self._store(process, [data, told])
            return self._advance(process)
        if slot.region.on_chip or signal.region.on_chip:
            raise Beyond("a put that reaches on-chip memory atom by atom")
        landings = self._landings(*data)
        signals = self._landings(*told)
        first = self.record.landings + len(landings)
        self.record.signals.extend(range(first, first + len(signals)))
        self._issue(process, [*landings, *signals])
        return self._advance(process)

    def _written(self, slot: Slot, value: Any) -> tuple[Slot, Access, Any]:
        names, held = captured(slot, value)
        return slot, self.places.access(slot.region, names), held

    def _landings(self, slot: Slot, access: Access, held: Any) -> list[tuple[Any, list[int]]]:
        first = self.places.first_of(slot)
        if len(access.places) == 1:
            return [(held, [first + access.places[0]])]
        atoms = self._atoms.get(access)
        if atoms is None:
            atoms = self._atoms[access] = self.places.atoms(slot.region, access)
        return [(held, [first + place for place in atom]) for atom in atoms]

    def _issue(self, process: int, landings: Sequence[tuple[Any, list[int]]]) -> None:
        self._write((PUT, process, len(landings)))
        for held, places in landings:
            self._write((len(places), *places))
            self._land(held, places)
        self.record.steps += len(landings)

    def _store(self, process: int, writes: list[tuple[Slot, Access, Any]]) -> None:
        """Stores that are in memory at once, as one landing."""
        found = [(held, self._numbers(slot, access)) for slot, access, held in writes]
        places = [place for _, numbers in found for place in numbers]
        self._write((STORE, process, len(places), *places))
        for held, numbers in found:
            self._land(held, numbers)
            self.record.landings -= 1
        self.record.landings += 1

    def _numbers(self, slot: Slot, access: Access) -> list[int]:
        first = self.places.first_of(slot)
        return [first + place for place in access.places]

    def _land(self, held: Any, places: list[int]) -> None:
        number, contents, waiting = self.record.landings, self.contents, self._waiting
        self.record.landings += 1
        for place in places:
            contents[place] = (held, number, contents[place])
            if waiting and place in waiting:
                self._ready.extend(waiting.pop(place))

    # Reads

    def load(self, process: int, operation: Operation) -> bool:
        """A load; several atoms are read each at its own step."""
        slot = _slot(operation)
        access = self.places.access(slot.region, slot.names)
        numbers = self._numbers(slot, access)
        if len(numbers) == 1 or slot.region.on_chip:
            self._write((READ, process, len(numbers), *numbers))
        else:
            first = numbers[0] - access.places[0]
            for atom in self.places.atoms(slot.region, access):
                self._write((READ, process, len(atom), *(first + place for place in atom)))
                self.record.steps += 1
            self.record.steps -= 1
        held = tuple(self._held(slot, place) for place in numbers)
        return self._advance(process, assembled(slot, access, held))

    def _held(self, slot: Slot, place: int) -> Any:
        content = self.contents[place]
        return held_at_first(slot, self.parts.choices) if content is None else content[0]

    def wait(self, process: int, operation: Operation) -> bool:
        """A wait for one place: how far back it would have failed is written down."""
        slot, predicate = _slot(operation), _test(operation)
        if operation.update is not None or predicate is None:
            raise Beyond("atomics")
        access = self.places.access(slot.region, slot.names)
        if len(access.places) > 1:
            raise Beyond("a wait over several atoms")
        place = self.places.first_of(slot) + access.places[0]
        result = assembled(slot, access, (self._held(slot, place),))
        try:
            passes = predicate(result)
        except Exception as error:
            raise NotCertified(f"{self.roles.names[process]}: the wait raised {error}") from error
        if not passes:
            self._waiting.setdefault(place, []).append(process)
            return False
        known = self._failing_since(slot, access, predicate, self.contents[place])
        self._write((WAIT, process, place, known))
        return self._advance(process, result)

    def _failing_since(
        self, slot: Slot, access: Access, predicate: Callable[[Any], Any], content: Content | None
    ) -> int:
        """The earliest landing since which the wait fails on all but what it read now."""
        if content is None:
            return -1
        since = content[1]
        for _ in range(LONGEST_CHAIN):
            content = content[2]
            held = held_at_first(slot, self.parts.choices) if content is None else content[0]
            try:
                if predicate(assembled(slot, access, (held,))):
                    return since
            except Exception:
                return since
            if content is None:
                return -1
            since = content[1]
        return since

    # Order

    def fence(self, process: int, operation: Operation) -> bool:
        """A fence over all targets; the others order too little to be written down."""
        profile, everywhere = self.profile, operation.target is None
        kind = STEP
        if everywhere and profile.fence == "drains":
            kind = self._quiet_kind()
        elif everywhere and profile.fence == "orders" and profile.fence_scope == "all":
            kind = FENCE
        self._write((kind, process))
        return self._advance(process)

    def quiet(self, process: int, operation: Operation) -> bool:
        """A quiet; a local one completes nothing."""
        self._write((self._quiet_kind(), process))
        return self._advance(process)

    def _quiet_kind(self) -> int:
        return QUIET if self.profile.quiet == "all" else STEP

    def sync(self, process: int, operation: Operation) -> bool:
        """A sync, once the last of its members is here."""
        here = self._arrived.setdefault(operation.group, set())
        here.add(process)
        if len(here) < len(operation.members):
            return False
        self._arrived[operation.group] = set()
        self._write((SYNC, len(operation.members), *operation.members))
        self.record.steps += 1
        for member in operation.members:
            self._resume(member, None)
            if member != process:
                self._ready.append(member)
        return True

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
        contents, initial, choices = self.contents, region.initial, self.parts.choices
        for fields, numbers in self.places.of_region(region):
            for place in numbers:
                content = contents[place]
                if content is None or content[0] is initial:
                    continue
                first = initial
                if isinstance(initial, AnyOf | Mapping):
                    first = held_at_first(self.places.slot_at(place), choices)
                for name in fields:
                    if typed(field_of(content[0], name)) != typed(field_of(first, name)):
                        return place
        return None


def look(meter: Meter, steps: int) -> None:
    """Tell how far the run is; `NotCertified` when a limit is met."""
    meter.states, meter.depth = steps, steps
    limit = meter.exceeded(0)
    if limit:
        raise NotCertified(f"the run met {limit}")


def _slot(operation: Operation) -> Slot:
    if not isinstance(operation.slot, Slot):
        raise UserError(f"{operation.kind.value} on {type(operation.slot).__name__}")
    return operation.slot


def _test(operation: Operation) -> Callable[[Any], Any] | None:
    """What a wait asks; what it does to variables of the role is lost, as in all engines."""
    function = operation.predicate
    return frozen(operation).predicate if getattr(function, "__closure__", None) else function


def _beyond(execution: Execution, process: int, operation: Operation) -> bool:
    raise Beyond(f"{execution.roles.names[process]} uses {operation.kind.value}")


STEPS: dict[Kind, Callable[[Execution, int, Operation], bool]] = {
    Kind.PUT: Execution.put,
    Kind.PUT_WITH_SIGNAL: Execution.put_with_signal,
    Kind.LOAD: Execution.load,
    Kind.GET: Execution.load,
    Kind.WAIT_UNTIL: Execution.wait,
    Kind.FENCE: Execution.fence,
    Kind.QUIET: Execution.quiet,
    Kind.SYNC: Execution.sync,
}
