"""The machine: processes, memory and fabric of one run, and every step that can be taken.

Who takes the next step is decided elsewhere (`schedule`, `threads`, `forced`, `virtual`).
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.content import Content, Shape, hex_difference
from syncproof.checkers.emulator.events import Event, Recorder
from syncproof.checkers.emulator.fabric import Fabric
from syncproof.checkers.emulator.memory import Memory
from syncproof.checkers.emulator.processes import Emulated, EmulatedCore, place_of
from syncproof.models.errors import UserError
from syncproof.models.identity import discard
from syncproof.models.instance import Instance, groups_of
from syncproof.models.memory import Slot
from syncproof.models.nodes import Place, Process
from syncproof.models.operations import (
    Consumed,
    Failed,
    GhostCheck,
    GhostUpdate,
    Kind,
    Operation,
    Reached,
    Sent,
    Statement,
)
from syncproof.models.saying import ABOUT_GHOSTS
from syncproof.models.transitions import PROPERTIES
from syncproof.models.values import Block, Payload, uncover

MOST_TOKENS = 200_000
SWEEP_BEGIN = Kind.SWEEP_BEGIN
SWEEPS = (SWEEP_BEGIN, Kind.SWEEP_END)
Draw = Callable[[Hashable, Sequence[Any]], Any]
"""What a choice by this name, among these values, is."""


@dataclass(frozen=True)
class Wrong:
    """What went wrong in a run: the property it breaks, who noticed, where, and the bytes."""

    property: str
    message: str
    process: str = ""
    place: Place | None = None
    difference: str = ""


class RoleRaised(Exception):
    """A role raised, or awaited what is no operation of its core: the author's to mend."""

    def __init__(self, process: str, place: str, what: str) -> None:
        super().__init__(f"{process} at {place}: {what}")


class Machine:
    """One run of an instance. ``tell`` is given every step; ``seed`` decides choices and order, or
    ``draw`` the choices. ``lanes`` spreads each role over so many cores, each with its peers."""

    def __init__(
        self,
        instance: Instance,
        seed: int = 0,
        content: Content | None = None,
        tell: Callable[[Event], None] | None = None,
        choices: dict[Hashable, Hashable] | None = None,
        draw: Draw | None = None,
        lanes: int = 1,
    ) -> None:
        self.instance, self.profile = instance, instance.profile
        self.random = random.Random(seed)
        self._draw = draw or (lambda name, values: drawn(seed, name, values))
        self.content = content or Content()
        self.recorder = Recorder(tell)
        self.choices: dict[Hashable, Hashable] = {} if choices is None else choices
        for name, values in instance.initial_choices().items():
            self.choices.setdefault(name, self._draw(name, values))
        parts = instance.parts(self.choices)
        self.protocol, self.layout = parts.protocol, parts.layout
        self.memory = Memory(
            parts.layout,
            instance.profile.finest_atomicity,
            instance.bounds.ranks,
            self.content,
            parts.initial,
        )
        self.asked = frozenset(PROPERTIES)
        self.wrong: list[Wrong] = []
        self.reached: set[str] = set()
        self.blocks = 0
        self.sent: dict[Hashable, list[int]] = {}
        self.ghosts: dict[tuple[str, Hashable], Hashable] = {}
        processes = _spread(parts.processes, lanes)
        self.groups = groups_of(parts.protocol, processes)
        self.processes = [self._process(each, lanes) for each in processes]
        self.fabric = Fabric(
            self.processes, self.memory, instance.profile, self.random, self.recorder
        )
        self.inside: Emulated | None = None

    def start(self) -> None:
        """Run each role to its first operation."""
        for process in self.processes:
            self.resume(process, None)
            if process.is_done:
                self.fabric.ready.discard(process)

    def _process(self, process: Process, lanes: int) -> Emulated:
        said: list[Statement] = []
        function = next(r.function for r in self.protocol.roles() if r.name == process.role)
        core = EmulatedCore(
            process.role,
            process.rank,
            process.instance // lanes,
            process.count // lanes,
            self.instance.bounds,
            self.groups,
            self.choices,
            said.append,
            drawn=self.choices,
            draw=self._draw,
            same=self.content.same,
            share=(process.instance % lanes, lanes),
        )
        made: Any = function(self.protocol, core)
        return Emulated(process, said, made, core)

    def close(self) -> None:
        """Throw the coroutines away."""
        for process in self.processes:
            discard(process.coroutine)

    @property
    def steps(self) -> int:
        """The steps taken so far."""
        return self.recorder.steps

    # Roles

    def resume(self, process: Emulated, value: Any) -> None:
        """Give a role what it waited for and run it to its next operation."""
        process.progress, process.looked = {}, {}
        process.said.clear()
        process.operation = None
        self.inside = process
        try:
            process.operation = self._next_operation(process, value)
        except StopIteration:
            process.is_done = True
        except RoleRaised:
            raise
        except UserError as error:
            raise self._raised(process, error, error.what) from error
        except Exception as error:
            raise self._raised(process, error, f"{type(error).__name__}: {error}") from error
        finally:
            self.inside = None
        if process.said:
            self._hear(process)
        if process.is_done and process.flights:
            self.fail("quiescent", "returns while its puts are in flight", process)

    def _next_operation(self, process: Emulated, value: Any) -> Operation:
        """The next operation that is a step; a sweep that failed and looks again is one, too."""
        while True:
            operation = process.coroutine.send(value)
            if not isinstance(operation, Operation):
                raise UserError(f"awaits {type(operation).__name__}, not an operation of its core")
            if operation.kind not in SWEEPS or (operation.kind is SWEEP_BEGIN and process.in_sweep):
                kept = self._mutated(process, operation)
                if kept is not None:
                    return kept
            else:
                process.in_sweep = operation.kind is SWEEP_BEGIN
                if process.in_sweep:
                    process.swept = {}
            value = None

    def _mutated(self, process: Emulated, operation: Operation) -> Operation | None:
        mutation = self.instance.mutation
        if mutation is None:
            return operation
        place = place_of(process.coroutine)
        return mutation(operation, place.file, place.line) if place else operation

    def raised_at(self, process: Emulated, error: UserError) -> RoleRaised:
        """What is wrong with the operation that a process stands at."""
        place = self.place(process)
        where = f"{place.file}:{place.line}" if place else process.process.role
        return RoleRaised(str(process.process), where, error.what)

    def _raised(self, process: Emulated, error: BaseException, what: str) -> RoleRaised:
        trace, where = error.__traceback__, str(process.process.role)
        while trace is not None:
            module = str(trace.tb_frame.f_globals.get("__name__", ""))
            if not module.startswith(("syncproof.models", "syncproof.checkers")):
                where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
            trace = trace.tb_next
        return RoleRaised(str(process.process), where, what)

    def _hear(self, process: Emulated) -> None:
        for each in process.said:
            if isinstance(each, Sent):
                self._count(each.key)[0] = 1
            elif isinstance(each, Consumed):
                self._count(each.key)[1] += 1
                self.blocks += 1
                self.recorder.tell(Event(events.CONSUME, process.number, token=each.key))
                if each.failure:
                    self._wrong_bytes(process, each.failure)
            elif isinstance(each, Failed):
                self.fail("checks", each.message, process)
            elif isinstance(each, Reached):
                self.reached.add(each.name)
            elif isinstance(each, ABOUT_GHOSTS):
                self._ghost(process, each)

    def _count(self, key: Hashable) -> list[int]:
        if len(self.sent) > MOST_TOKENS:
            settled = [key for key, counts in self.sent.items() if counts == [1, 1]]
            for each in settled[: MOST_TOKENS // 2]:
                del self.sent[each]
        return self.sent.setdefault(key, [0, 0])

    def _ghost(self, process: Emulated, said: GhostUpdate | GhostCheck) -> None:
        initial = self.protocol.ghosts[said.ghost].initial
        old = self.ghosts.get((said.ghost, said.key), initial)
        if isinstance(said, GhostUpdate):
            self.ghosts[said.ghost, said.key] = said.function(old, *said.arguments)
        elif not said.predicate(old, *said.arguments):
            self.fail("checks", said.message, process)

    def fail(self, name: str, message: str, process: Emulated | None) -> None:
        """Note that a property is broken, if it is one that is asked for."""
        who = "" if process is None else str(process.process)
        place = None if process is None else self.place(process)
        self._note(Wrong(name, message, who, place))

    def _note(self, wrong: Wrong) -> None:
        if wrong.property in self.asked:
            self.wrong.append(wrong)

    def place(self, process: Emulated) -> Place | None:
        """The line at which a process stands."""
        return place_of(
            process.coroutine, "" if process.operation is None else process.operation.at
        )

    def _wrong_bytes(self, process: Emulated, message: str) -> None:
        """A process has trusted data that it should not have."""
        assert process.core.trusted is not None
        data, expected, place = process.core.trusted
        place = replace(place, text=linecache.getline(place.file, place.line).strip())
        shown = self._difference(process, data, expected)
        self._note(Wrong("happens-before", message, str(process.process), place, shown))

    def _difference(self, process: Emulated, data: Any, expected: Payload) -> str:
        """Expected and found bytes of the first wrong field."""
        fields = vars(data) if isinstance(data, Block) else {"": data}
        for name, found in fields.items():
            value = uncover(found)
            wanted = expected.field(name or getattr(value, "field", "payload"))
            if self.content.same(value, wanted):
                continue
            read = self._bytes_behind(process, data, name)
            if read is not None:
                right = self.content.encode(wanted, Shape(((0, len(read)),)))
                return hex_difference(right, read)
        return ""

    def _bytes_behind(self, process: Emulated, data: Any, name: str) -> bytes | None:
        for result, slot, read in reversed(process.reads):
            if result is data or any(part is data for part in _parts(result)):
                pieces = [
                    (self.memory.places[cell].shape.ranges, read[cell])
                    for cell, field, _ in self.memory.cells_of(slot)
                    if cell in read and (field == name or not name)
                ]
                return _put_together(pieces)
        return None

    # The end

    def judge_end(self) -> None:
        """What a run that is over must have left behind: nothing in flight, clean memory."""
        for number, (before, cell) in enumerate(
            zip(self.memory.initial, self.layout.cells, strict=True)
        ):
            if cell.slot.region.clean and self.memory.read(number) != before:
                self.fail("quiescent", f"{cell} does not end as it began", None)
        for key, (sent, consumed) in self.sent.items():
            if (sent, consumed) != (1, 1):
                what = f"token {key} is consumed {consumed} times"
                self.fail("exactly-once", what if sent else f"{what} and was not sent", None)

    @property
    def is_over(self) -> bool:
        """Whether every process has returned and nothing is on its way."""
        return all(each.is_done for each in self.processes) and not self.fabric.in_flight

    def remember_less(self) -> None:
        """Keep memory constant in a long run."""
        if not self.content.is_crowded():
            return
        memory = self.memory
        kept = {(place.shape, memory.read(cell)) for cell, place in enumerate(memory.places)}
        for flight in self.fabric.in_flight:
            kept |= {(memory.places[w.cell].shape, w.data) for w in flight.writes}
        for process in self.processes:
            for line, held in process.cache.items():
                cells = memory.lines[line]
                kept |= {
                    (memory.places[c].shape, data) for c, data in zip(cells, held.data, strict=True)
                }
        self.content.forget(kept)


def _spread(processes: Sequence[Process], lanes: int) -> list[Process]:
    """Each process as many times as it has cores."""
    return [
        Process(
            each.number * lanes + lane,
            each.role,
            each.rank,
            each.instance * lanes + lane,
            each.count * lanes,
        )
        for each in processes
        for lane in range(lanes)
    ]


def drawn(seed: int, name: Hashable, values: Sequence[Any]) -> Any:
    """The value that a seed gives to a choice, whoever asks for it first."""
    return random.Random(f"{seed} {name!r}").choice(list(values))


def _parts(result: Any) -> list[Any]:
    return list(vars(result).values()) if isinstance(result, Block) else []


def _put_together(pieces: Sequence[tuple[tuple[tuple[int, int], ...], bytes]]) -> bytes:
    """A field from its cells: each has some of its ranges."""
    found: dict[int, bytes] = {}
    for ranges, data in pieces:
        start = 0
        for offset, length in ranges:
            found[offset] = data[start : start + length]
            start += length
    return b"".join(found[offset] for offset in sorted(found))


def slot_of(operation: Operation) -> Slot:
    """The block that an operation is about."""
    if not isinstance(operation.slot, Slot):
        raise UserError(
            f"{operation.kind.value} on {type(operation.slot).__name__}",
            expected="a block of a region, such as window[rank][index]",
        )
    return operation.slot
