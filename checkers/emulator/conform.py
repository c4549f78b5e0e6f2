"""Conformance: the steps of a run, walked through the model one by one as they are taken."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, MutableMapping
from dataclasses import dataclass, replace
from typing import cast

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.content import Content
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.in_place import InPlace, suits
from syncproof.checkers.emulator.live import LiveAutomaton, live_system, renumbered
from syncproof.checkers.emulator.matching import Matching, shapes_of
from syncproof.checkers.emulator.processes import place_of
from syncproof.models.identity import discard
from syncproof.models.instance import Instance
from syncproof.models.transitions import Failure, State

UNBOUNDED = 1 << 30
"""The in-flight bound of the walked model: the bound is one of searches, not of machines."""

STEPS_REMEMBERED = 5_000
"""Steps after which a walk forgets the values that are no longer anywhere."""


@dataclass(frozen=True)
class NotAllowed:
    """The first step that the model does not allow, and what it would have allowed there."""

    position: int
    step: str
    expected: tuple[str, ...]

    def __str__(self) -> str:
        expected = "; ".join(self.expected) or "nothing: all is over"
        return f"step {self.position}, {self.step}, is not allowed; the model expects {expected}"


class Walk:
    """Follows a run through the model; ``refused`` is the first step that was not allowed.

    ``failures`` is what the model says is broken by the steps so far.
    """

    def __init__(
        self, instance: Instance, choices: MutableMapping[Hashable, Hashable], content: Content
    ) -> None:
        profile = replace(instance.profile, in_flight=UNBOUNDED)
        self.instance = replace(instance, profile=profile)
        self.content = content
        self.system, self.layout = live_system(self.instance, choices)
        shapes = shapes_of(self.layout, profile.finest_atomicity)
        self._matching = Matching(self.system, shapes, content)
        first = self.system.initial_transition()
        self.failures: list[Failure] = list(first.failures)
        self._states: tuple[State, ...] = ()
        self._in_place: InPlace | None = None
        self._go_on(first.state)
        self.position = 0
        self.refused: NotAllowed | None = None

    @property
    def states(self) -> tuple[State, ...]:
        """Where the model can be after the steps so far."""
        return self._states if self._in_place is None else (self._in_place.state(),)

    @property
    def is_in_place(self) -> bool:
        """Whether no step so far needed more than changing the state in place."""
        return self._in_place is not None

    def _go_on(self, state: State) -> None:
        """Follow the run from one state on: in place where that can be."""
        self._states, self._in_place = (state,), None
        if suits(self.system):
            self._in_place = InPlace(self.system, state, self._matching.bytes_of)
            self._in_place.failures = self.failures

    @property
    def broken(self) -> tuple[str, ...]:
        """The properties that the steps so far break in the model."""
        return tuple(sorted({each.property for each in self.failures}))

    def unseen(self, asked: Collection[str]) -> NotAllowed | None:
        """What breaks an asked property in the model, of a run in which nothing was seen wrong."""
        broken = [f"{e.property}: {e.message}" for e in self.failures if e.property in asked]
        step = "after which nothing was seen to go wrong"
        return NotAllowed(self.position, step, tuple(dict.fromkeys(broken))) if broken else None

    def close(self) -> None:
        """Throw the coroutines away."""
        for each in self.system.automata:
            discard(cast(LiveAutomaton, each).coroutine)

    def take(self, event: Event) -> None:
        """Go along with one step."""
        if self.refused is not None or event.do == events.CONSUME:
            return
        if self._in_place is None or not self._in_place.take(event):
            self._states, self._in_place = self.states, None
            if not self._take_any(event):
                return
        self.position += 1
        if self.position % STEPS_REMEMBERED == 0:
            self._forget()

    def difference(self, read: Callable[[int], bytes]) -> NotAllowed | None:
        """Where memory is not what the model has after the steps so far, though nobody read it."""
        system, what = self.system, "the memory that is left"
        (first, *others) = self.states
        for cell in range(len(system.cells)):
            held = {state[system.first_cell + cell] for state in (first, *others)}
            if all(self._matching.bytes_of(cell, value) != read(cell) for value in held):
                found = self.content.decode(read(cell), self._matching.shapes[cell])
                expected = " or ".join(str(system.values[value]) for value in sorted(held))
                named = f"{what} ({system.cells[cell]} = {found})"
                return NotAllowed(self.position, named, (expected,))
        return None

    def _take_any(self, event: Event) -> bool:
        """Go along with one step wherever the model can be; False if it is nowhere allowed."""
        found = {
            each.state: each
            for state in self._states
            for each in self._matching.allowed(state, event)
        }
        if not found:
            expected = tuple(self.expected(event))
            self.refused = NotAllowed(self.position, self.describe(event), expected)
            return False
        self._states = tuple(found)
        self.failures += next(iter(found.values())).failures
        return True

    def _forget(self) -> None:
        """Forget the values that are no longer anywhere."""
        if len(self.states) == 1:
            (state,) = self.states
            self.system, state = renumbered(self.system, state, self.layout, self.instance.profile)
            self._matching = Matching(self.system, self._matching.shapes, self.content)
            self._go_on(state)

    # In words

    def describe(self, event: Event) -> str:
        """A step in words."""
        system = self.system
        fabric = event.process >= system.processes
        who = "the fabric" if fabric else str(system.automata[event.process].process)
        cells = [system.cells[cell] for cell in event.cells]
        where = ", ".join(dict.fromkeys(map(str, cells)))
        found = ", ".join(
            str(self.content.decode(data, self._matching.shapes[cell]))
            for cell, data in zip(event.cells, event.data, strict=False)
        )
        if event.do in events.OF_THE_FABRIC and not fabric:
            who = f"the fabric for {who}"
        return " ".join(filter(None, (f"{who}:", event.do, where, found and f"= {found}")))

    def expected(self, event: Event) -> Iterator[str]:
        """What the model allows instead, of the same process or its puts."""
        system, state = self.system, self.states[0]
        if event.process >= system.processes or event.do in events.OF_THE_FABRIC:
            for each in system.landings(state, event.process):
                cells = [system.cells[cell % len(system.cells)] for cell in each.step.what]
                yield f"{each.step.kind} {', '.join(map(str, cells))}"
            return
        node = system.node(state, event.process)
        if node.operation is None:
            yield "that it has returned"
            return
        coroutine = cast(LiveAutomaton, system.automata[event.process]).coroutine
        place = place_of(coroutine, node.operation.at)
        at = f" ({place})" if place else ""
        for action in node.actions:
            values = ", ".join(
                f"{system.cells[cell]} = {system.values[system.value(state, cell)]}"
                for cell in action.cells
                if cell < len(system.cells)
            )
            slot = node.operation.slot or node.operation.group
            what = f"{node.operation.kind.value} {slot}".strip()
            yield f"{what}{at}{f' with {values}' if values else ''}"
