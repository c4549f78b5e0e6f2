"""A run in words: each step with its lane, its source line and what it changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, takewhile
from pathlib import Path

from syncproof.models.lowering import Action, ActionKind
from syncproof.models.nodes import Node
from syncproof.models.operations import Kind, Operation
from syncproof.models.outbox import Packet
from syncproof.models.system import System
from syncproof.models.transitions import State, Step, Transition, differences
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
    issue_of = origins(system, taken)
    return tuple(
        _told(system, state, transition, issue_of[number][0] if number in issue_of else -1)
        for number, (state, transition) in enumerate(taken)
    )


def origins(
    system: System, taken: Sequence[tuple[State, Transition]]
) -> dict[int, tuple[int, int]]:
    """For each landing the step that issued it, and which of the packets of that step it is."""
    in_flight: dict[int, dict[tuple[int, int], Packet]] = {}
    found = {}
    for number, (state, transition) in enumerate(taken):
        step = transition.step
        mine = in_flight.setdefault(step.process, {})
        if step.kind == "process":
            packets = enumerate(_action(system, state, step).packets)
            mine.update({(number, place): each for place, each in packets if not each.is_fence})
        elif step.kind == "land":
            origin = _origin(delivered(system, state, step), mine)
            if origin is not None:
                found[number] = origin
                del mine[origin]
    return found


def _origin(packet: Packet, issued: Mapping[tuple[int, int], Packet]) -> tuple[int, int] | None:
    """The first issue of what lands: the same values, or the same cells if they were read since."""
    cells = [cell for cell, _, _ in packet.writes]
    same = [key for key, each in issued.items() if [cell for cell, _, _ in each.writes] == cells]
    exact = [key for key in same if issued[key].writes == packet.writes]
    return next(iter(exact or same), None)


def puts_of(action: Action) -> list[Packet]:
    """What an action issues, each a landing of its own."""
    return [packet for packet in action.packets if not packet.is_fence]


def delivered(system: System, state: State, step: Step) -> Packet:
    """What lands in a step."""
    outbox = state[system.first_outbox + step.process]
    alike = [
        each
        for each in system.deliveries(step.process, outbox)
        if each.step == step._replace(variant=0)
    ]
    return alike[step.variant].packet


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
        tuple(cell for cell in action.cells if cell < len(system.cells)),
        changed,
        len(puts_of(action)),
    )


def _changed(system: System, before: State, after: State) -> tuple[int, ...]:
    first, end = system.first_cell, system.first_cell + len(system.cells)
    return tuple([cell for cell, _ in differences(before[first:end], after[first:end])])


def _change(system: System, number: int, before: State, after: State) -> Change:
    cell, values = system.cells[number], system.values
    old, new = (values[system.value(state, number)] for state in (before, after))
    return Change(str(cell.slot), cell.field, str(old), str(new))


def describe(system: System, state: State, transition: Transition) -> str:
    """One step in words, such as ``wait_until window[1][0, 0, 0] passes on lead of 0->1 ...``."""
    step = transition.step
    if step.kind == "process":
        return _describe_process(system, state, step, transition.state)
    cells = [c % len(system.cells) for c in step.what]  # what others see of a cell stands behind
    names = ", ".join(dict.fromkeys(str(system.cells[c].slot) for c in cells))
    if step.kind in ("land", "propagate"):
        values = together(system.values[system.value(transition.state, c)] for c in step.what)
        word = "lands at" if step.kind == "land" else "becomes visible to others at"
        atom = _atom_text(system, cells)
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
    before, after = reversed(system.cells[: cells[0]]), system.cells[cells[0] :]
    block = [takewhile(lambda each: each.slot == cell.slot, side) for side in (before, after)]
    is_whole = all(each.atom == cell.atom for each in chain(*block))
    return "" if is_whole else f" (atom at byte {cell.first_byte})"


def _describe_process(system: System, state: State, step: Step, after: State) -> str:
    node = system.node(state, step.process)
    operation, action = node.operation, node.actions[step.what[0]]
    assert operation is not None
    if action.kind in (ActionKind.ISSUE, ActionKind.WRITE):
        return _describe_store(operation)
    if action.kind is ActionKind.READ:
        read = _values_read(system, state, step, action, after)
        values = together(system.values[value] for value in read)
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


def _values_read(
    system: System, state: State, step: Step, action: Action, after: State
) -> tuple[int, ...]:
    """The values that a read was served with: not the newest where it may be served late."""
    process, automaton = step.process, system.automata[step.process]
    node, place = system.node(state, process), system.views.place(process)
    for values, view in system.readable(state, process, action.cells):
        edge = automaton.edge(node, step.what[0], values)
        served = view is None or after[place] == view
        if edge is not None and edge.target.number == after[process] and served:
            return values
    return tuple(system.value(state, cell) for cell in action.cells)


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
