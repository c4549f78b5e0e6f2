"""A TLA+ module from the same tables, for TLC: one action is one step of the tables.

A variable for each process, each cell that changes and each queue of puts: what TLC is quickest at.
It covers what `promela` covers and the systems of the benchmarks use: puts on an unordered fabric,
waits, atomics, immediate stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from syncproof.checkers.promela_state import Queue, queues_of, reachable, refuse_uncovered
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.outbox import SET
from syncproof.models.tables import Tables

COVERED = (
    ActionKind.ISSUE,
    ActionKind.READ,
    ActionKind.UPDATE,
    ActionKind.WRITE,
    ActionKind.FENCE,
)


@dataclass(frozen=True)
class Step:
    """What must hold, and the new contents of variables."""

    guards: tuple[str, ...]
    changes: dict[str, str]


def tla(tables: Tables, name: str) -> str:
    """The module ``name`` with ``Init`` and ``Next``."""
    refuse_uncovered(tables)
    queues = queues_of(tables, declared=False)
    steps = [*_process_steps(tables, queues), *_landings(queues)]
    changing = dict.fromkeys(each for step in steps for each in step.changes)
    first = {f"n{p}": str(table.first) for p, table in enumerate(tables.processes)}
    first |= {f"c{cell}": str(value) for cell, value in enumerate(tables.initial)}
    first |= {queue.name: "<<>>" for queue in queues}
    kept = [each for each in first if each not in changing]
    return "\n".join(
        [
            f"---- MODULE {name} ----",
            "EXTENDS Integers, Sequences",
            f"VARIABLES {', '.join(changing)}",
            *(f"{each} == {first[each]}" for each in kept),
            "Init ==",
            *(f"  /\\ {each} = {first[each]}" for each in changing),
            "Next ==",
            *(_action(step, list(changing)) for step in steps),
            "====",
            "",
        ]
    )


def _action(step: Step, variables: Sequence[str]) -> str:
    same = ", ".join(each for each in variables if each not in step.changes)
    parts = [*step.guards, *(f"{name}' = {new}" for name, new in step.changes.items())]
    parts += [f"UNCHANGED <<{same}>>"] if same else []
    return "  \\/ " + " /\\ ".join(f"({each})" for each in parts)


def _process_steps(tables: Tables, queues: Sequence[Queue]) -> Iterator[Step]:
    for process, table in enumerate(tables.processes):
        for number in reachable(table):
            node = table.nodes[number]
            for position, action in enumerate(node.actions):
                if action.kind not in COVERED or (action.ordered and queues):
                    raise ValueError(f"no words for {action.kind.value}")
                groups: dict[tuple[tuple[tuple[int, int], ...], int], list[tuple[int, ...]]] = {}
                for (which, values), edge in node.edges.items():
                    if which == position and edge is not None:
                        groups.setdefault((edge.writes, edge.target), []).append(values)
                for (writes, target), values in groups.items():
                    changes = {f"n{process}": str(target)}
                    changes |= {f"c{cell}": str(value) for cell, value in writes}
                    changes |= _effects(process, action, queues)
                    guards = (f"n{process} = {number}", *_read(action, values))
                    yield Step(guards, changes)


def _read(action: Action, values: Sequence[tuple[int, ...]]) -> Iterator[str]:
    if len(action.cells) == 1:
        yield f"c{action.cells[0]} \\in {{{', '.join(str(each[0]) for each in values)}}}"
    elif action.cells:
        read = ", ".join(f"c{cell}" for cell in action.cells)
        tuples = (f"<<{', '.join(map(str, each))}>>" for each in values)
        yield f"<<{read}>> \\in {{{', '.join(tuples)}}}"


def _effects(process: int, action: Action, queues: Sequence[Queue]) -> dict[str, str]:
    changes = {f"c{cell}": str(value) for cell, value, _ in action.writes}
    for packet in action.packets if action.kind is ActionKind.ISSUE else ():
        for queue in queues:
            if queue.owner == process and {w[0] for w in packet.writes} <= queue.cells:
                number = [p.writes for p in queue.packets].index(packet.writes)
                changes[queue.name] = f"Append({queue.name}, {number})"
    return changes


def _landings(queues: Sequence[Queue]) -> Iterator[Step]:
    for queue in queues:
        for number, packet in enumerate(queue.packets):
            assert all(mode == SET for _, _, mode in packet.writes)
            changes = {queue.name: f"Tail({queue.name})"}
            changes |= {f"c{cell}": str(value) for cell, value, _ in packet.writes}
            yield Step((f"{queue.name} # <<>>", f"Head({queue.name}) = {number}"), changes)
