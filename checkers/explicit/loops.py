"""Whether a role can go round for ever by itself, other than by a sweep that fails."""

from __future__ import annotations

from syncproof.models.automaton import Automaton


def has_loop(automaton: Automaton) -> bool:
    """Whether the tables of a process, as far as they are filled, have a cycle.

    A wait that does not pass and a sweep that fails start anew without effect and do not count.
    Where a cycle exists, that every state can finish does not exclude a weakly fair endless run.
    """
    after = {
        node.number: [
            edge.target.number
            for edge in node.edges.values()
            if edge is not None and not edge.again
        ]
        for node in automaton.nodes
    }
    incoming = dict.fromkeys(after, 0)
    for targets in after.values():
        for target in targets:
            incoming[target] += 1
    free = [number for number, count in incoming.items() if not count]
    removed = 0
    while free:
        removed += 1
        for target in after[free.pop()]:
            incoming[target] -= 1
            if not incoming[target]:
                free.append(target)
    return removed < len(after)
