"""The search for one number of experts and every routing of any number of tokens, by z3.

The windows that a reading of algorithm 1 meets depend on the routing only through comparisons
"target < count before p". So for a fixed number of experts it is a finite tree of windows; z3
asks for prefix sums c_0 <= .. <= c_N (unbounded integers) and a target that reach a wrong leaf.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import z3

from syncproof.checkers.scheduler.contracts import difference
from syncproof.checkers.scheduler.question import Search

Comparison = tuple[int, bool]
"""(p, True) stands for target < count before p, (p, False) for the opposite."""


@dataclass(frozen=True)
class Leaf:
    """An end of the tree: the comparisons that lead there and what happens there."""

    path: tuple[Comparison, ...]
    left: int
    right: int
    end: Literal["returns", "repeats", "impossible"]


def leaves(search: Search, experts: int) -> Iterator[Leaf]:
    """All ends of the search over ``experts`` experts.

    A branch that contradicts the comparisons before it (counts do not fall) is cut off as
    ``impossible``; the query asks z3 to confirm each such cut.
    """
    todo: list[tuple[tuple[Comparison, ...], tuple[tuple[int, int], ...]]] = [((), ((0, experts),))]
    while todo:
        path, windows = todo.pop()
        left, right = windows[-1]
        if _contradicts(path, experts):
            yield Leaf(path, left, right, "impossible")
        elif not search.running(left, right):
            yield Leaf(path, left, right, "returns")
        elif windows[-1] in windows[:-1]:
            yield Leaf(path, left, right, "repeats")
        else:
            pivots = search.boundaries(left, right)
            for quadrant in (1, 2, 3, 4):
                passed = tuple((pivot, False) for pivot in pivots[1:quadrant])
                taken = ((pivots[quadrant], True),) if quadrant < 4 else ()
                window = pivots[quadrant - 1], pivots[quadrant]
                todo.append((path + passed + taken, (*windows, window)))


def _contradicts(path: tuple[Comparison, ...], experts: int) -> bool:
    at_least = max((p for p, below in path if not below), default=0)
    below = min((p for p, below in path if below), default=experts)
    return max(at_least, 0) >= min(below, experts)


@dataclass(frozen=True)
class SearchVerdict:
    """Unsatisfiable (``counts`` is None), or a routing and a target that break the search."""

    counts: tuple[int, ...] | None
    target: int
    wrong: str

    @property
    def endless(self) -> bool:
        """Whether what is wrong is that the search never ends."""
        return self.wrong.endswith("never ends")


def check_search(search: Search, experts: int) -> SearchVerdict:
    """Does the search end and return what the prefix sums define, for every routing?

    Raises ``RuntimeError`` if z3 gives no answer, or one that the search itself does not confirm.
    """
    before = [z3.IntVal(0), *(z3.Int(f"before_{p}") for p in range(1, experts + 1))]
    target = z3.Int("target")
    solver = z3.Solver()
    solver.add([low <= high for low, high in pairwise(before)])
    solver.add(target >= 0, target < before[-1])
    if solver.check() != z3.sat:
        raise RuntimeError("the search's inputs contradict each other: nothing would be proved")
    solver.add(z3.Or([_wrong(leaf, before, target) for leaf in leaves(search, experts)]))
    if solver.check() == z3.unsat:
        return SearchVerdict(None, 0, "")
    return _smallest(search, solver, before, target)


def _wrong(leaf: Leaf, before: list[z3.ArithRef], target: z3.ArithRef) -> z3.BoolRef:
    def count(pivot: int) -> z3.ArithRef:
        return before[min(max(pivot, 0), len(before) - 1)]

    reached = [target < count(p) if below else target >= count(p) for p, below in leaf.path]
    if leaf.end != "returns":
        return z3.And(reached)
    if not 0 <= leaf.left < len(before) - 1:
        return z3.And(reached)
    right_one = z3.And(count(leaf.left) <= target, target < count(leaf.left + 1))
    return z3.And(*reached, z3.Not(right_one))


def _smallest(
    search: Search, solver: z3.Solver, before: list[z3.ArithRef], target: z3.ArithRef
) -> SearchVerdict:
    """The counterexample with the fewest tokens, at the first experts, confirmed by a run."""
    tokens = 1
    while solver.check(before[-1] == tokens) == z3.unsat:
        tokens += 1
    solver.add(before[-1] == tokens)
    sums = [0]
    for term in before[1:]:
        sums.append(_greatest(solver, term, tokens))
    wanted = next(value for value in range(tokens) if solver.check(target == value) == z3.sat)
    counts = tuple(high - low for low, high in pairwise(sums))
    return SearchVerdict(counts, wanted, run(search, counts, wanted))


def _greatest(solver: z3.Solver, term: z3.ArithRef, most: int) -> int:
    """The greatest possible value of a prefix sum, which it then has: tokens as early as can be."""
    for value in range(most, -1, -1):
        if solver.check(term == value) == z3.sat:
            solver.add(term == value)
            return value
    raise RuntimeError(f"z3 does not decide: {solver.reason_unknown()}")


def run(search: Search, counts: tuple[int, ...], target: int) -> str:
    """What the search itself does wrong; ``RuntimeError`` if that is nothing."""
    token = [(e, offset) for e, count in enumerate(counts) for offset in range(count)][target]
    found = search.find(lambda p: sum(counts[:p]), target, len(counts))
    if found is not None and tuple(found) == token:
        raise RuntimeError(f"z3 and the search disagree: {search.name} {counts} target {target}")
    return difference(target, found, token)
