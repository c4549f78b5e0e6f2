"""UBEP's appendix A: how many AIVs count and how many send.

T_count = beta N / c + b_count and T_token = alpha K B / (n - c) + b_token run side by side; the
greater is to be least, over c = 1 .. n - 1. All numbers are exact (fractions), in units of alpha.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from syncproof.checkers.scheduler.figure14 import BATCHES, EXTRA_US, RANKS, best_sizes
from syncproof.models.errors import UserError

AIVS = 48
"""AIVs of one NPU (UBEP, section 5.3 and figure 9)."""
TOP_K = 8
"""UBEP, table 3 and section 5.4; figure 14 does not state its own."""


@dataclass(frozen=True)
class Split:
    """One question: ``ratio`` is beta / alpha, ``overhead`` is (b_count - b_token) / alpha.

    Raises ``UserError`` for fewer than two AIVs, or no expert, token or top-k.
    """

    experts: int
    batch: int
    ratio: Fraction
    top_k: int = TOP_K
    aivs: int = AIVS
    overhead: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.aivs < 2:
            raise UserError(f"{self.aivs} AIVs", where="aivs", expected="2 or more to split")
        if min(self.experts, self.batch, self.top_k) < 1 or self.ratio <= 0:
            raise UserError("nothing to count or send", expected="experts, batch, top-k, ratio > 0")

    def time(self, counting: int) -> Fraction:
        """The greater of the two times, without the part of the overheads that both have."""
        nothing = Fraction(0)
        count = self.ratio * self.experts / counting + max(self.overhead, nothing)
        token = Fraction(self.top_k * self.batch, self.aivs - counting)
        token += max(-self.overhead, nothing)
        return max(count, token)

    @property
    def relative_load(self) -> Fraction:
        """x = (beta N) / (alpha K B): the work of counting, over that of sending."""
        return self.ratio * self.experts / (self.top_k * self.batch)

    @property
    def closed_form(self) -> Fraction:
        """Equation (8): n x; it is n or more, no core being left to send, as soon as x >= 1."""
        return self.aivs * self.relative_load

    @property
    def balanced(self) -> Fraction:
        """Equation (5) solved without assumption (6), overheads zero: n x / (1 + x).

        So the closed form is too large by the factor 1 + x, exactly.
        """
        return self.aivs * self.relative_load / (1 + self.relative_load)

    def exact(self) -> int:
        """The best whole number of counting AIVs (the smallest, if several are best)."""
        return min(range(1, self.aivs), key=lambda counting: (self.time(counting), counting))


def clipped(size: Fraction | int) -> int:
    """A size as figure 14 could show it: rounded (halves up), within 1 .. 16."""
    return min(16, max(1, int(Fraction(size) + Fraction(1, 2))))


@dataclass(frozen=True)
class Row:
    """One row of a table: best sizes of the figure, of equation (8), and of the integer search.

    ``closed_extra`` and ``exact_extra`` are what the figure says each of the two costs (us).
    """

    batch: int
    figure: tuple[int, ...]
    closed_form: Fraction
    exact: int
    closed_extra: float
    exact_extra: float

    @property
    def closed_difference(self) -> int:
        """Equation (8), clipped, minus the figure's nearest best size."""
        return _nearest(clipped(self.closed_form), self.figure)

    @property
    def exact_difference(self) -> int:
        """Integer optimum, clipped, minus the figure's nearest best size."""
        return _nearest(clipped(self.exact), self.figure)


def _nearest(size: int, best: tuple[int, ...]) -> int:
    return min((size - other for other in best), key=abs)


def table(ranks: int, ratio: Fraction) -> list[Row]:
    """The comparison for one of figure 14's maps (one expert a rank)."""
    rows = []
    for batch in BATCHES:
        split = Split(ranks, batch, ratio)
        extra = EXTRA_US[ranks][batch]
        closed, exact = clipped(split.closed_form), clipped(split.exact())
        rows.append(
            Row(
                batch,
                best_sizes(ranks, batch),
                split.closed_form,
                split.exact(),
                extra[closed - 1],
                extra[exact - 1],
            )
        )
    return rows


def fitted_ratio(exact: bool) -> Fraction:
    """The beta / alpha (in fiftieths, up to 1) whose sizes cost least in figure 14, in all.

    For equation (8), or for the integer optimum; the smallest, if several are best.
    """

    def cost(ratio: Fraction) -> float:
        extra = 0.0
        for ranks in RANKS:
            for batch in BATCHES:
                split = Split(ranks, batch, ratio)
                size = clipped(split.exact() if exact else split.closed_form)
                extra += EXTRA_US[ranks][batch][size - 1]
        return round(extra, 1)

    return min((Fraction(part, 50) for part in range(1, 51)), key=lambda r: (cost(r), r))


def exceptions_to_trends() -> list[str]:
    """Where figure 14 goes against appendix C.3: best sizes fall with the batch, rise with ranks.

    Only what holds for each reading of a rounded tie is named.
    """
    found = []
    for ranks in RANKS:
        for small, large in pairwise(BATCHES):
            low, high = best_sizes(ranks, small), best_sizes(ranks, large)
            if min(high) > max(low):
                found.append(f"{ranks} ranks: batch {small} -> {large}, best {low} -> {high}")
    for batch in BATCHES:
        for few, many in pairwise(RANKS):
            low, high = best_sizes(few, batch), best_sizes(many, batch)
            if max(high) < min(low):
                found.append(f"batch {batch}: {few} -> {many} ranks, best {low} -> {high}")
    return found


def tables_text(closed_ratio: Fraction, exact_ratio: Fraction) -> str:
    """Three tables of differences as Markdown, one for each number of ranks."""
    lines = []
    for ranks in RANKS:
        lines += [
            f"**{ranks} ranks**",
            "",
            "| batch | figure | closed form (8) | difference | extra us "
            "| exact optimum | difference | extra us |",
            "|---|---|---|---|---|---|---|---|",
        ]
        pairs = zip(table(ranks, closed_ratio), table(ranks, exact_ratio), strict=True)
        for closed, exact in pairs:
            best = " or ".join(map(str, closed.figure))
            lines.append(
                f"| {closed.batch} | {best} | {float(closed.closed_form):.1f} "
                f"| {closed.closed_difference:+d} | {closed.closed_extra:.1f} "
                f"| {exact.exact} | {exact.exact_difference:+d} | {exact.exact_extra:.1f} |"
            )
        lines.append("")
    return "\n".join(lines)
