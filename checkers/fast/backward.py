"""Compiled loops that look back from a state: to its predecessors, and to all that reach an end."""

from __future__ import annotations

import numpy as np

from syncproof.checkers.fast.arrays import FIRST_LEAF, MOST_MOVES
from syncproof.checkers.fast.kernels import find, inlined, is_less, is_same, leaf_of, sort_members


@inlined
def step_to(to, log, state, moves, move, width):
    """Write the state behind a move."""
    for i in range(width):
        at = move * width + i
        to[i] = (log[state + i] & moves[0, at]) | moves[1, at]


def predecessor(
    begin, end, width, heads, members, target, buffer, program, roots, spans, moves, log
):
    """The least of some rows that has a step to ``target``; -1 if none has."""
    best = -1
    for row in range(begin, end):
        if best >= 0 and not is_less(log, row * width, log, best * width, width):
            continue
        for agent in range(roots.shape[0]):
            child, _ = leaf_of(program, np.int64(roots[agent]), log, row * width)
            if child > FIRST_LEAF:
                continue
            span = spans[FIRST_LEAF - child]
            for move in range(span >> 20, (span >> 20) + ((span >> 1) & MOST_MOVES)):
                step_to(buffer, log, row * width, moves, move, width)
                sort_members(buffer, 0, heads, members)
                if is_same(buffer, 0, target, 0, width):
                    best = row
    return best


def spread_alive(
    count, width, heads, members, alive, buffer, program, roots, spans, moves, log, slots
):
    """Mark, latest first, the states with a step to a marked one; how many.

    A place of ``alive`` stands for a slot of the table.
    """
    marked = 0
    for row in range(count - 1, -1, -1):
        here = find(log, row * width, width, log, slots)
        if alive[here]:
            continue
        for agent in range(roots.shape[0]):
            child, _ = leaf_of(program, np.int64(roots[agent]), log, row * width)
            if child > FIRST_LEAF:
                continue
            span = spans[FIRST_LEAF - child]
            for move in range(span >> 20, (span >> 20) + ((span >> 1) & MOST_MOVES)):
                step_to(buffer, log, row * width, moves, move, width)
                sort_members(buffer, 0, heads, members)
                if alive[find(buffer, 0, width, log, slots)]:
                    alive[here] = 1
            if alive[here]:
                marked += 1
                break
    return marked


def mark(rows, width, log, slots, alive):
    """Mark some rows."""
    for i in range(rows.shape[0]):
        alive[find(log, rows[i] * width, width, log, slots)] = 1
    return rows.shape[0]


def least_unmarked(first, end, width, log, slots, alive):
    """The least of some rows that is not marked; -1 if all are."""
    best = -1
    for row in range(first, end):
        if not alive[find(log, row * width, width, log, slots)] and (
            best < 0 or is_less(log, row * width, log, best * width, width)
        ):
            best = row
    return best
