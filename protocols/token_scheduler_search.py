"""Quaternary search for the expert of a token (UBEP section 3.3, algorithm 1) and its readings.

Experts are numbered in the order in which they are sent, 0 .. N-1. ``count(p)`` is the paper's
``VectorCount(E < p)``: how many tokens go to experts before ``p``. It does not ask for a sorted
list. The search looks for the expert whose range of counts covers a target token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from syncproof.models.errors import UserError

Count = Callable[[int], int]


class Place(NamedTuple):
    """Where a token stands: its expert (in sending order) and its offset among that expert's."""

    expert: int
    offset: int


@dataclass(frozen=True)
class QuaternarySearch:
    """One reading of algorithm 1, as data, so that every checker interprets the same two choices.

    ``rounding`` is how lines 2 and 13 round ``(R - L) / 4``. ``stop`` is when the loop ends:
    ``gap`` as printed (lines 3 and 14: no gap is left), ``width`` when one expert is left.
    """

    name: str
    rounding: Literal["ceiling", "floor"]
    stop: Literal["gap", "width"]

    def gap(self, left: int, right: int) -> int:
        """Distance of the pivots (lines 2 and 13)."""
        width = right - left
        return -(-width // 4) if self.rounding == "ceiling" else width // 4

    def running(self, left: int, right: int) -> bool:
        """Whether the loop goes on; a window with R <= L has no gap either (line 14)."""
        return self.gap(left, right) >= 1 if self.stop == "gap" else right - left > 1

    def boundaries(self, left: int, right: int) -> tuple[int, int, int, int, int]:
        """P_0 .. P_4 (lines 5 and 9); P_3 may lie beyond P_4 when the gap is rounded up."""
        gap = self.gap(left, right)
        return left, left + gap, left + 2 * gap, left + 3 * gap, right

    def narrow(self, left: int, right: int, target: int, count: Count) -> tuple[int, int]:
        """One turn of the loop (lines 5 to 12)."""
        pivots = self.boundaries(left, right)
        quadrant = next((q for q in (1, 2, 3) if target < count(pivots[q])), 4)
        return pivots[quadrant - 1], pivots[quadrant]

    def find(self, count: Count, target: int, experts: int) -> Place | None:
        """Run the search; None if it never ends, which is so as soon as a window comes back."""
        left, right = 0, experts
        seen = set()
        while self.running(left, right):
            if (left, right) in seen:
                return None
            seen.add((left, right))
            left, right = self.narrow(left, right, target, count)
        return Place(left, target - count(left))


PRINTED = QuaternarySearch("printed", "ceiling", "gap")
PRINTED_FLOOR = QuaternarySearch("printed-floor", "floor", "gap")
CORRECTED = QuaternarySearch("corrected", "ceiling", "width")


def vector_count(tokens: Sequence[int]) -> Count:
    """``VectorCount`` over a list holding each token's expert, in any order."""
    return lambda pivot: sum(expert < pivot for expert in tokens)


def find_token(
    search: QuaternarySearch, tokens: Sequence[int], target: int, experts: int
) -> Place | None:
    """Algorithm 1 with its own inputs: E, T_target and N_exp; E need not be sorted.

    None if it never ends. Raises ``UserError`` for a target that is no token and for experts out
    of range.
    """
    if not 0 <= target < len(tokens):
        raise UserError(
            f"target token {target} does not exist", expected=f"0 <= target < {len(tokens)}"
        )
    for position, expert in enumerate(tokens):
        if not 0 <= expert < experts:
            raise UserError(
                f"token {position} goes to expert {expert}", expected=f"0 <= expert < {experts}"
            )
    return search.find(vector_count(tokens), target, experts)


def index_of(tokens: Sequence[int], place: Place) -> int:
    """The position in ``tokens`` of the token at ``place``: the offset-th of that expert.

    In an unsorted list the offset counts the expert's tokens in the order in which they stand, so
    every core that holds the same list picks the same token. Raises ``UserError`` if there is none.
    """
    of_expert = [position for position, expert in enumerate(tokens) if expert == place.expert]
    if not 0 <= place.offset < len(of_expert):
        raise UserError(
            f"expert {place.expert} has no token {place.offset}",
            expected=f"0 <= offset < {len(of_expert)}",
        )
    return of_expert[place.offset]
