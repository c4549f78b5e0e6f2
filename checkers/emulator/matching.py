"""Which steps of the model a step of a run can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.actions import is_at, kinds_of
from syncproof.checkers.emulator.content import Content, Shape
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.live import LiveAutomaton
from syncproof.checkers.emulator.memory import places_of
from syncproof.models.memory import Layout
from syncproof.models.system import System
from syncproof.models.transitions import State, Transition


def shapes_of(layout: Layout, atomicity: int) -> list[Shape]:
    """The bytes that each cell of a layout stands for, within its block."""
    nowhere = dict.fromkeys((region.name for region in layout.regions), 0)
    return [place.shape for place in places_of(layout, atomicity, nowhere)]


class Matching:
    """The steps of a run, which are bytes, against the transitions of one system."""

    def __init__(self, system: System, shapes: Sequence[Shape], content: Content) -> None:
        self.system, self.shapes, self.content = system, shapes, content
        of_shape: dict[Shape, dict[int, bytes]] = {shape: {} for shape in shapes}
        self._bytes = [of_shape[shape] for shape in shapes]

    def allowed(self, state: State, event: Event) -> Iterator[Transition]:
        """The transitions from a state that do what the event did, with the same bytes."""
        system, do, number = self.system, event.do, event.process
        if do in (events.LAND, events.READ_SOURCE, events.PROPAGATE):
            cells = self._places(event)
            for each in system.landings(state, number):
                same = each.step.kind == do and each.step.what == cells
                if same and (do == events.READ_SOURCE or self._holds(each.state, event)):
                    yield each
        elif do in (events.WRITE_BACK, events.EVICT):
            for each in system.fabric_transitions(state):
                step = each.step
                if (step.kind, step.process, step.what) == (do, number, event.cells):
                    yield each
        elif is_at(system.node(state, number), event):
            yield from self._steps(state, event)

    def _steps(self, state: State, event: Event) -> Iterator[Transition]:
        """The steps of the event's process that read what it read."""
        system, number = self.system, event.process
        automaton = system.automata[number]
        actions = system.node(state, number).actions
        kinds = kinds_of(event)
        if isinstance(automaton, LiveAutomaton):
            automaton.accept = lambda values: self._are(values, event)
        for each in system.process_transitions(state, number):
            if event.do == events.FETCH:
                if each.step.kind == "fetch":
                    yield each
                continue
            if each.step.kind != "process":
                continue
            action = actions[each.step.what[0]]
            cells = action.cells[: len(event.cells)]
            if action.kind in kinds and (not event.data or cells == event.cells):
                yield each
        if isinstance(automaton, LiveAutomaton):
            automaton.accept = None

    def _are(self, values: tuple[int, ...], event: Event) -> bool:
        """Whether value numbers have the bytes that were read."""
        if not event.data:
            return True
        return all(
            self.bytes_of(cell, value) == data
            for cell, value, data in zip(event.cells, values, event.data, strict=False)
        )

    def bytes_of(self, cell: int, value: int) -> bytes:
        """The bytes that a value number stands for in a cell."""
        known = self._bytes[cell]
        found = known.get(value)
        if found is None:
            found = self.content.encode(self.system.values[value], self.shapes[cell])
            known[value] = found
        return found

    def _places(self, event: Event) -> tuple[int, ...]:
        """The cells of the event as the model numbers them."""
        twin = self.system.first_twin if event.do == events.PROPAGATE else 0
        return tuple(cell + twin for cell in event.cells)

    def _holds(self, state: State, event: Event) -> bool:
        """Whether the cells hold what landed."""
        places = zip(event.cells, self._places(event), event.data, strict=True)
        return all(
            self.bytes_of(cell, self.system.value(state, place)) == data
            for cell, place, data in places
        )
