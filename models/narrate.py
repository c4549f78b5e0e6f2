"""A run in words: each step with its lane, its source line and what it changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from syncproof.models.lowering import Action, ActionKind
from syncproof.models.nodes import Node
from syncproof.models.operations import Kind, Operation
from syncproof.models.system import System
from syncproof.models.transitions import State, Step, Transition
from syncproof.models.values import together, token_text
from syncproof.models.verdict import Change, Line, TraceStep


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
            for packet in _action(system, state, step).packets:
                cells = tuple(cell for cell, _, _ in packet.writes)
                issued.setdefault(step.process, []).append((number, cells))
        elif step.kind == "land":
            mine = issued.get(step.process, [])
            match = next((each for each in mine if each[1] == step.what), None)
            if match is not None:
                put = match[0]
                mine.remove(match)
        told.append(_told(system, state, transition, put))
    return tuple(told)


def _action(system: System, state: State, step: Step) -> Action:
    return system.node(state, step.process).actions[step.what[0]]


def _told(system: System, state: State, transition: Transition, put: int) -> TraceStep:
    step = transition.step
    is_process = step.kind == "process"
    line = line_of(system.node(state, step.process)) if step.process < system.processes else None
    joined: tuple[str, ...] = ()
    if is_process:
        joined = tuple(
            str(system.automata[p].process) for p in _action(system, state, step).members
        )
    return TraceStep(
        step.kind,
        step.process,
        (*step.what, step.variant),
        str(system.automata[step.process].process) if is_process else "fabric",
        describe(system, state, transition),
        line if is_process else None,
        _changes(system, state, transition.state),
        put,
        joined,
    )


def _changes(system: System, before: State, after: State) -> tuple[Change, ...]:
    found = []
    for number, cell in enumerate(system.cells):
        old, new = system.value(before, number), system.value(after, number)
        if old != new:
            values = system.values
            found.append(Change(str(cell.slot), cell.field, str(values[old]), str(values[new])))
    return tuple(found)


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
