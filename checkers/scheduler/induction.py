"""The search for any number of experts, tokens and routings: loop invariant and variant, by z3.

With c(p) for "tokens before expert p" (c never falls, c(N) = m) and a target T with 0 <= T < m, the
invariant of the window [L, R] is c(L) <= T < c(R). It implies L < R and L < N. Each condition is
the unsatisfiability of a formula over unbounded integers; c is a set of terms, one for each
position named, with "c never falls" stated for each pair (weaker than for all, hence sound).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import z3

from syncproof.checkers.scheduler.question import Search

Condition = Callable[["Turn"], z3.BoolRef]


@dataclass(frozen=True)
class Turn:
    """The terms of one turn of the loop, for one quadrant, and what is assumed of them."""

    left: z3.ArithRef
    right: z3.ArithRef
    gap: z3.ArithRef
    new_left: z3.ArithRef
    new_right: z3.ArithRef
    experts: z3.ArithRef
    target: z3.ArithRef
    count: Callable[[z3.ArithRef], z3.ArithRef]
    axioms: z3.BoolRef
    running: z3.BoolRef
    taken: z3.BoolRef

    def inside(self, left: z3.ArithRef, right: z3.ArithRef) -> z3.BoolRef:
        """The invariant for a window."""
        return z3.And(self.count(left) <= self.target, self.target < self.count(right))


def turn(search: Search, quadrant: int) -> Turn:
    """One turn in which line 10 or 11 picks ``quadrant``."""
    left, right, gap, experts, target = z3.Ints("left right gap experts target")
    before = z3.Function("before", z3.IntSort(), z3.IntSort())
    pivots = (left, left + gap, left + 2 * gap, left + 3 * gap, right)
    named = (z3.IntVal(0), *pivots, left + 1, experts)
    rises = [z3.Implies(p <= q, before(p) <= before(q)) for p, q in permutations(named, 2)]
    over = right - left
    rounded = (
        z3.And(4 * (gap - 1) < over, over <= 4 * gap)
        if search.rounding == "ceiling"
        else z3.And(4 * gap <= over, over < 4 * (gap + 1))
    )
    ends = [z3.Implies(p >= experts, before(p) == before(experts)) for p in named]
    sane = z3.And(experts >= 1, before(0) == 0, target >= 0, target < before(experts))
    passed = [target >= before(p) for p in pivots[1:quadrant]]
    taken = [target < before(pivots[quadrant])] if quadrant < 4 else []
    return Turn(
        left,
        right,
        gap,
        pivots[quadrant - 1],
        pivots[quadrant],
        experts,
        target,
        before,
        z3.And(*rises, *ends, rounded, sane),
        gap >= 1 if search.stop == "gap" else over > 1,
        z3.And(*passed, *taken),
    )


def _holds(turns: Sequence[Turn], claim: Condition) -> bool:
    """Whether the claim holds for each quadrant; raises ``RuntimeError`` if z3 does not know."""
    for at in turns:
        solver = z3.Solver()
        solver.add(at.axioms, z3.Not(claim(at)))
        answer = solver.check()
        if answer == z3.unknown:
            raise RuntimeError(f"z3 does not decide: {solver.reason_unknown()}")
        if answer == z3.sat:
            return False
    return True


def _starts(at: Turn) -> z3.BoolRef:
    return at.inside(z3.IntVal(0), at.experts)


def _keeps(at: Turn) -> z3.BoolRef:
    before = z3.And(at.inside(at.left, at.right), at.running, at.taken)
    return z3.Implies(before, at.inside(at.new_left, at.new_right))


def _shrinks(at: Turn) -> z3.BoolRef:
    before = z3.And(at.inside(at.left, at.right), at.running, at.taken)
    smaller = at.new_right - at.new_left < at.right - at.left
    return z3.Implies(before, z3.And(at.right > at.left, smaller))


def _returns_right(at: Turn) -> z3.BoolRef:
    before = z3.And(at.inside(at.left, at.right), z3.Not(at.running))
    right_one = z3.And(at.left < at.experts, at.inside(at.left, at.left + 1))
    return z3.Implies(before, right_one)


def _never_stops(at: Turn) -> z3.BoolRef:
    return z3.Implies(at.inside(at.left, at.right), at.running)


def _quarters(at: Turn) -> z3.BoolRef:
    quarter = z3.Int("quarter")
    before = z3.And(at.inside(at.left, at.right), at.running, at.taken)
    fits = z3.And(quarter >= 1, at.right - at.left <= 4 * quarter)
    return z3.Implies(z3.And(before, fits), at.new_right - at.new_left <= quarter)


@dataclass(frozen=True)
class Induction:
    """Which conditions hold for every number of experts and tokens and for every routing.

    ``quarters``: a window of at most 4 q experts becomes one of at most q (q >= 1), so the loop
    turns at most ceil(log4 N) times.
    """

    starts: bool
    keeps: bool
    shrinks: bool
    returns_right: bool
    never_stops: bool
    quarters: bool

    @property
    def terminates(self) -> bool:
        """The window holds the target and gets smaller with every turn."""
        return self.starts and self.keeps and self.shrinks

    @property
    def never_terminates(self) -> bool:
        """The window always holds the target, and as long as it does the loop goes on."""
        return self.starts and self.keeps and self.never_stops

    @property
    def right(self) -> bool:
        """It ends, and what it returns is what the prefix sums define."""
        return self.terminates and self.returns_right


def induction(search: Search) -> Induction:
    """Ask z3 for each condition (some 24 queries, well under a second)."""
    conditions = (_starts, _keeps, _shrinks, _returns_right, _never_stops, _quarters)
    turns = [turn(search, quadrant) for quadrant in (1, 2, 3, 4)]
    return Induction(*(_holds(turns, condition) for condition in conditions))
