"""UBEP's program (1): the least, over assignments, of the greatest completion time of a core.

A token is (l, rtt); a core with tokens M takes sum of l + greatest rtt; no core may have more
than ceil(m / n) tokens (1b). A core without tokens takes no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import z3

from syncproof.checkers.scheduler.question import Hop, RoutingLike, Scheduler


class Token(NamedTuple):
    """Transmission latency and round-trip time, in one unit."""

    latency: int
    rtt: int


def cost(tokens: Sequence[Token], cores: Sequence[int]) -> int:
    """The objective of program (1) where token i goes to ``cores[i]``."""
    mine: dict[int, list[Token]] = {}
    for token, core in zip(tokens, cores, strict=True):
        mine.setdefault(core, []).append(token)
    times = (sum(t.latency for t in some) + max(t.rtt for t in some) for some in mine.values())
    return max(times, default=0)


def placed(
    scheduler: Scheduler, routing: RoutingLike, latency: int, rtt: Mapping[Hop, int]
) -> tuple[list[Token], list[int]]:
    """The tokens of a routing, all of one latency, and the core to which the scheduler gives each.

    Taken from core 0's order and each core's slices, which must partition the tokens.
    """
    order = scheduler.view(0, routing).order
    tokens = [Token(latency, rtt[routing.hops[e]]) for e in order for _ in range(routing.counts[e])]
    owner = {
        target: core
        for core in range(routing.cores)
        for piece in scheduler.view(core, routing).slices
        for target in piece
    }
    return tokens, [owner[target] for target in range(len(tokens))]


def assignments(tokens: int, cores: int) -> Iterator[tuple[int, ...]]:
    """All assignments within (1b), one of each set that differ in the cores' names only."""
    most = -(-tokens // cores)

    def extend(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(chosen) == tokens:
            yield chosen
            return
        for core in range(min(cores, max(chosen, default=-1) + 2)):
            if chosen.count(core) < most:
                yield from extend((*chosen, core))

    yield from extend(())


def optimum(tokens: Sequence[Token], cores: int) -> int:
    """The exact optimum, by trying all assignments (up to some ten tokens)."""
    return min(cost(tokens, chosen) for chosen in assignments(len(tokens), cores))


def optimum_by_z3(tokens: Sequence[Token], cores: int) -> int:
    """The exact optimum by z3's optimiser, written apart from ``optimum``."""
    count, worst = len(tokens), z3.Int("worst")
    takes = [[z3.Bool(f"x_{i}_{j}") for j in range(cores)] for i in range(count)]
    solver = z3.Optimize()
    for row in takes:
        solver.add(z3.PbEq([(cell, 1) for cell in row], 1))
    for core in range(cores):
        column = [row[core] for row in takes]
        solver.add(z3.PbLe([(cell, 1) for cell in column], -(-count // cores)))
        load = z3.Sum([z3.If(cell, t.latency, 0) for cell, t in zip(column, tokens, strict=True)])
        solver.add(worst >= 0)
        for cell, token in zip(column, tokens, strict=True):
            solver.add(z3.Implies(cell, worst >= load + token.rtt))
    solver.minimize(worst)
    if solver.check() != z3.sat:
        raise RuntimeError("z3 does not decide program (1)")
    return int(solver.model().eval(worst, model_completion=True).as_long())


def equal_latency_gap(tokens: int, cores: int, latency: int) -> int:
    """How far any assignment within (1b) can be from the optimum if all tokens have one latency.

    With c = ceil(m / n) no core takes longer than c l + greatest rtt. The core with a token of
    that rtt has at least one token, and at least c - (n c - m), as the others hold at most c
    each. So the gap is at most min(c - 1, n c - m) l; it is zero wherever n divides m: there
    *every* assignment is optimal, and homogenising changes nothing.
    """
    most = -(-tokens // cores)
    return max(0, min(most - 1, cores * most - tokens)) * latency
