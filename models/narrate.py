"""A run in words: each step with its lane, its source line and what it changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from syncproof.models.lowering import Action, ActionKind
from syncproof.models.nodes import Node
from syncproof.models.operations import Kind, Operation
from syncproof.models.system import System
from syncproof.models.transitions import State, Step, Transition
from syncproof.models.values import together, token_text
from syncproof.models.verdict import Change, Line, MemoryCell, TraceStep


class NotEnabled(Exception):
    """A step of a recorded run that the system does not allow there."""

    def __init__(self, position: int, step: Step) -> None:
        super().__init__(f"step {position} ({step.kind} {step.process}) is not enabled")
        self.position, self.step = position, step


def follow(
    system: System, steps: Sequence[Step], start: State | None = None
) -> list[tuple[State, Transition]]:
    """The states before each step and the transitions taken; `NotEnabled` if one is not there."""
    state = system.initial() if start is None else start
    taken = []
    if start is None:
        state = system.initial_transition().state
    for position, step in enumerate(steps):
        transition = next(
            (each for each in system.step_transitions(state, step) if each.step == step), None
        )
        if transition is None:
            raise NotEnabled(position, step)
        taken.append((state, transition))
        state = transition.state
    return taken


def line_of(node: Node) -> Line | None:
    """The source line that a node is suspended at."""
    place = node.place
    return None if place is None else Line(_shown(place.file), place.line, place.text, place.at)


def _shown(file: str) -> str:
    """A file of this package by its place in it, so that reports are the same everywhere."""
    root = Path(__file__).absolute().parents[1]
    path = Path(file)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file


def narrate(system: System, taken: Sequence[tuple[State, Transition]]) -> tuple[TraceStep, ...]:
    """The steps of a run for people, with the put that each landing belongs to."""
    issued: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    told = []
    for number, (state, transition) in enumerate(taken):
        step = transition.step
        put = -1
        if step.kind == "process":
            for cells in landings_of(_action(system, state, step)):
                issued.setdefault(step.process, []).append((number, cells))
        elif step.kind == "land":
            mine = issued.get(step.process, [])
            match = next((each for each in mine if each[1] == step.what), None)
            if match is not None:
                put = match[0]
                mine.remove(match)
        told.append(_told(system, state, transition, put))
    return tuple(told)


def landings_of(action: Action) -> list[tuple[int, ...]]:
    """The cells of each landing that an action sets off."""
    packets = (packet for packet in action.packets if not packet.is_fence)
    return [tuple(cell for cell, _, _ in packet.writes) for packet in packets]


def touched(
    system: System, steps: Sequence[TraceStep], awaited: Collection[int] = ()
) -> tuple[MemoryCell, ...]:
    """The cells that ``steps`` read, write or land on, and those ``awaited``, as they start."""
    numbers = {cell for step in steps for cell in (*step.reads, *step.writes)} | {*awaited}
    numbers |= {cell for step in steps if step.kind == "land" for cell in step.what[:-1]}
    start = system.initial_transition().state
    return tuple(
        MemoryCell(
            number,
            str(system.cells[number].slot),
            system.cells[number].field,
            system.cells[number].first_byte,
            str(system.values[system.value(start, number)]),
        )
        for number in sorted(numbers)
    )


def _action(system: System, state: State, step: Step) -> Action:
    return system.node(state, step.process).actions[step.what[0]]


def _told(system: System, state: State, transition: Transition, put: int) -> TraceStep:
    step = transition.step
    changed = _changed(system, state, transition.state)
    changes = tuple(_change(system, cell, state, transition.state) for cell in changed)
    if step.kind != "process":
        what, reads = (*step.what, step.variant), step.what if step.kind == "read source" else ()
        text = describe(system, state, transition)
        return TraceStep(
            step.kind, step.process, what, "fabric", text, None, changes, put, (), reads, changed
        )
    action = _action(system, state, step)
    return TraceStep(
        step.kind,
        step.process,
        (*step.what, step.variant),
        str(system.automata[step.process].process),
        describe(system, state, transition),
        line_of(system.node(state, step.process)),
        changes,
        put,
        tuple(str(system.automata[p].process) for p in action.members),
        action.cells,
        changed,
        len(landings_of(action)),
    )


def _changed(system: System, before: State, after: State) -> tuple[int, ...]:
    cells = range(len(system.cells))
    return tuple(c for c in cells if system.value(before, c) != system.value(after, c))


def _change(system: System, number: int, before: State, after: State) -> Change:
    cell, values = system.cells[number], system.values
    old, new = (values[system.value(state, number)] for state in (before, after))
    return Change(str(cell.slot), cell.field, str(old), str(new))


def describe(system: System, state: State, transition: Transition) -> str:
    """One step in words, such as ``wait_until window[1][0, 0, 0] passes on lead of 0->1 ...``."""
    step = transition.step
    if step.kind == "process":
        return _describe_process(system, state, step, transition.state)
    names = ", ".join(dict.fromkeys(str(system.cells[c].slot) for c in step.what))
    if step.kind in ("land", "propagate"):
        values = together(system.values[system.value(transition.state, c)] for c in step.what)
        word = "lands at" if step.kind == "land" else "becomes visible to others at"
        atom = _atom_text(system, step.what)
        return f"{values} {word} {names}{atom}"
    word = {
        "read source": "the fabric reads",
        "write back": "a dirty line is written back:",
        "evict": "a clean line is evicted:",
        "fetch": "a line is fetched:",
    }[step.kind]
    return f"{word} {names}"


def _atom_text(system: System, cells: Sequence[int]) -> str:
    """Which part of the block, where a put lands in several steps."""
    cell = system.cells[cells[0]]
    whole = len({each.atom for each in system.cells if each.slot == cell.slot}) == 1
    return "" if whole else f" (atom at byte {cell.first_byte})"


def _describe_process(system: System, state: State, step: Step, after: State) -> str:
    node = system.node(state, step.process)
    operation, action = node.operation, node.actions[step.what[0]]
    assert operation is not None
    if action.kind in (ActionKind.ISSUE, ActionKind.WRITE):
        return _describe_store(operation)
    if action.kind is ActionKind.READ:
        values = together(system.values[system.value(state, c)] for c in action.cells)
        verb = operation.kind.value if operation.source is None else "read source of copy"
        atom = _atom_text(system, action.cells)
        return f"{verb} {operation.slot}{atom} reads {values}"
    if action.kind is ActionKind.UPDATE:
        cell = action.cells[0]
        old, new = system.value(state, cell), system.value(after, cell)
        change = f"{system.values[old]} becomes {system.values[new]}"
        return f"{operation.kind.value} {operation.slot}: {change}"
    if action.kind is ActionKind.SYNC:
        return f"sync of {operation.group}"
    target = f" to rank {operation.target}" if operation.target is not None else ""
    slot = f" {operation.slot}" if operation.slot is not None else ""
    return f"{operation.kind.value}{slot}{target}"


def _describe_store(operation: Operation) -> str:
    if operation.source is not None:
        return f"{operation.kind.value} {operation.slot} from {operation.source}"
    verb = "add to" if operation.kind is Kind.ADD else operation.kind.value
    text = f"{verb} {operation.slot}: {shown(operation.value)}"
    if operation.signal is not None:
        word = "add to" if operation.signal_adds else "signal"
        text += f", {word} {operation.signal}: {shown(operation.signal_value)}"
    return text


def shown(value: object) -> str:
    """A value as a reader would write it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {shown(part)}" for name, part in value.items()) + "}"
    key = getattr(value, "key", None)
    if isinstance(key, tuple) and len(key) == 4:
        return token_text(key)
    return str(value)
