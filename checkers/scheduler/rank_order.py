"""Rank-aware reordering (HyperParallel-MoE, figure 6) for every number of ranks, by z3.

Rank r serves destination (r + s) mod N in step s. With 0 <= r, s < N that is r + s or r + s - N, so
every claim is a formula of linear arithmetic with N free: its unsatisfiable negation is a proof
for all N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import z3

Order = Callable[[z3.ArithRef, z3.ArithRef, z3.ArithRef], z3.ArithRef]


def rotated(rank: z3.ArithRef, step: z3.ArithRef, ranks: z3.ArithRef) -> z3.ArithRef:
    """(rank + step) mod ranks."""
    return z3.If(rank + step < ranks, rank + step, rank + step - ranks)


def naive(rank: z3.ArithRef, step: z3.ArithRef, ranks: z3.ArithRef) -> z3.ArithRef:
    """Every rank serves destination 0 first."""
    return step


@dataclass(frozen=True)
class RankOrder:
    """What holds of an order for every number of ranks.

    ``permutation``: a rank never serves a destination twice, and all are destinations; N different
    ones in N steps are all of them. ``distinct_starts``: no two ranks begin alike. ``one_sender``:
    in each step no two ranks serve one destination, so that (N ranks, N destinations) each has
    exactly one.
    """

    permutation: bool
    distinct_starts: bool
    one_sender: bool


def _holds(claim: z3.BoolRef, *given: z3.BoolRef) -> bool:
    solver = z3.Solver()
    solver.add(*given, z3.Not(claim))
    answer = solver.check()
    if answer == z3.unknown:
        raise RuntimeError(f"z3 does not decide: {solver.reason_unknown()}")
    return bool(answer == z3.unsat)


def rank_order(order: Order = rotated) -> RankOrder:
    """Prove or refute the three claims, when all destinations of a step take equally long."""
    n, rank, other, step, later = z3.Ints("ranks rank other step later")

    def inside(*terms: z3.ArithRef) -> list[z3.BoolRef]:
        return [n >= 1, *(z3.And(term >= 0, term < n) for term in terms)]

    destination = order(rank, step, n)
    ranged = _holds(z3.And(destination >= 0, destination < n), *inside(rank, step))
    once = _holds(destination != order(rank, later, n), *inside(rank, step, later), step != later)
    apart = _holds(destination != order(other, step, n), *inside(rank, other, step), rank != other)
    starts = _holds(
        order(rank, z3.IntVal(0), n) != order(other, z3.IntVal(0), n),
        *inside(rank, other),
        rank != other,
    )
    return RankOrder(ranged and once, starts, ranged and apart)


def senders_bound(ranks: int, fewest: int, most: int) -> int:
    """At most so many ranks send to one destination at a time when tile counts differ.

    Each (source, destination) has between ``fewest`` and ``most`` tiles of one unit of time, and
    ranks do not wait for each other: N - floor(fewest (N - 1) / most). One sender if the counts
    are equal, no bound but N if some are zero. It is reached for all N, fewest and most
    (``reaching_tiles``).
    """
    return ranks - fewest * (ranks - 1) // most if most else 0


def senders_bound_holds() -> bool:
    """Prove ``senders_bound`` for every number of ranks and all tile counts.

    The rank at distance k before a destination sends to it from some time S(k) on, for less than
    ``most``, and k fewest <= S(k), S(k + 1) <= (k + 1) most. If distances i <= k both send at one
    time, k fewest < (i + 1) most. Those that send lie between the least and the greatest such i
    and k, hence are at most k - i + 1. With e = N - 1 - k and f = floor(fewest (N - 1) / most):
    were k - i + 1 > N - f, then (i + 1) most <= (f - e) most <= fewest (N - 1) - e most.
    """
    k, i, e, f = z3.Ints("k i e f")
    fewest, most = z3.Ints("fewest most")
    given = [fewest >= 0, fewest <= most, most >= 1, i >= 0, i <= k, e >= 0]
    given += [f * most <= fewest * (k + e), k * fewest < (i + 1) * most]
    # The two products that z3 need not find: (f - e - i - 1) most >= 0 and e (most - fewest) >= 0.
    hints = [z3.Implies(f - e - i - 1 >= 0, (f - e - i - 1) * most >= 0), e * (most - fewest) >= 0]
    return _holds(k - i + 1 <= k + e + 1 - f, *given, *hints)


def reaching_tiles(ranks: int, fewest: int, most: int) -> list[list[int]]:
    """Tile counts between ``fewest`` and ``most`` for which destination 0 has as many senders.

    All ranks that can are made to reach destination 0 at time fewest (N - 1): the rank at
    distance k has that many tiles in its first k steps, or k most where that is less.
    """
    tiles = [[most] * ranks for _ in range(ranks)]
    for rank in range(ranks):
        distance = -rank % ranks
        left = min(distance * most, fewest * (ranks - 1)) - distance * fewest
        for step in range(distance):
            extra = min(left, most - fewest)
            tiles[rank][(rank + step) % ranks] = fewest + extra
            left -= extra
    return tiles
