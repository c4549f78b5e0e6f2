"""UBEP's hierarchical token-level scheduler (section 3.3): which core sends which token.

Every core computes its own share, without talking, from what all of them know: how many tokens go
to each expert, and how many hops away each expert is. A ``Scheduler`` names the choices that the
paper leaves to the reader; ``scheduler(name)`` gives those that are checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, Protocol

from syncproof.models.errors import UserError
from syncproof.protocols.token_scheduler_search import (
    CORRECTED,
    PRINTED,
    PRINTED_FLOOR,
    Place,
    QuaternarySearch,
)

Hop = int | str


def transposed_order(experts: int, cores: int) -> tuple[int, ...]:
    """Experts written row by row into a matrix with one row a core and read column by column.

    The last rows are short, or empty, where the cores do not divide the experts.
    """
    columns = -(-experts // cores)
    return tuple(expert for column in range(columns) for expert in range(column, experts, columns))


def hop_sorted_order(hops: Sequence[Hop]) -> tuple[int, ...]:
    """Experts of one hop class beside each other, classes in the order of their first expert."""
    classes = {hop: number for number, hop in enumerate(dict.fromkeys(hops))}
    return tuple(sorted(range(len(hops)), key=lambda expert: classes[hops[expert]]))


def dealt_before(core: int, cores: int, position: int) -> int:
    """How many of the first ``position`` cards go to players below ``core``, dealt in turn."""
    turns, rest = divmod(position, cores)
    return turns * core + min(rest, core)


def staggered_slices(core: int, cores: int, blocks: Sequence[int]) -> tuple[range, ...]:
    """The core's contiguous slice of each block of tokens that stand one after the other.

    A core gets as many tokens of a block as if all tokens were dealt in turn, so the odd tokens
    of one block start where those of the block before ended. With one block these are the
    contiguous slices of equal size of section 3.3, the odd tokens going to the first cores.
    """
    slices = []
    start = 0
    for size in blocks:
        first, last = (
            dealt_before(edge, cores, start + size) - dealt_before(edge, cores, start)
            for edge in (core, core + 1)
        )
        slices.append(range(start + first, start + last))
        start += size
    return tuple(slices)


def rounded_up_slice(core: int, cores: int, tokens: int) -> range:
    """The other reading of "slices of equal size": ceil(m / n) tokens each, while there are any."""
    size = -(-tokens // cores)
    return range(min(core * size, tokens), min((core + 1) * size, tokens))


class RoutingData(Protocol):
    """Tokens per expert, hop class per expert, cores: ``Routing``, or one that a checker made."""

    @property
    def counts(self) -> tuple[int, ...]: ...
    @property
    def hops(self) -> tuple[Hop, ...]: ...
    @property
    def cores(self) -> int: ...
    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True)
class Routing:
    """What all cores know: tokens per expert, hop class per expert (as this rank sees it), cores.

    Raises ``UserError`` for no expert, no core, a negative count, or hop classes that do not cover
    the experts. No token at all, and more cores than tokens, are fine: some cores send nothing.
    """

    counts: tuple[int, ...]
    hops: tuple[Hop, ...]
    cores: int

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise UserError(f"{self.cores} cores", where="cores", expected="at least 1")
        if not self.counts:
            raise UserError("no experts", where="experts", expected="at least 1")
        for expert, count in enumerate(self.counts):
            if count < 0:
                raise UserError(
                    f"expert {expert} gets {count} tokens", where="tokens", expected="0 or more"
                )
        if len(self.hops) != len(self.counts):
            raise UserError(
                f"hop classes for {len(self.hops)} ranks, but {len(self.counts)} experts",
                where="hops",
                expected="one hop class for each expert's rank",
            )

    @property
    def tokens(self) -> int:
        """All tokens that this rank sends."""
        return sum(self.counts)


def routing_of(tokens: Sequence[int], experts: int, hops: Sequence[Hop], cores: int) -> Routing:
    """The routing of a list that holds each token's expert, in any order."""
    counts = [0] * experts
    for position, expert in enumerate(tokens):
        if not 0 <= expert < experts:
            raise UserError(
                f"token {position} goes to expert {expert}", expected=f"0 <= expert < {experts}"
            )
        counts[expert] += 1
    return Routing(tuple(counts), tuple(hops), cores)


@dataclass(frozen=True)
class CoreView:
    """What one core works out alone: the experts in sending order and its slices of the tokens."""

    order: tuple[int, ...]
    slices: tuple[range, ...]

    @property
    def targets(self) -> tuple[int, ...]:
        """The core's tokens, as positions in the sequence of all tokens in sending order."""
        return tuple(target for piece in self.slices for target in piece)


@dataclass(frozen=True)
class Scheduler:
    """A search and a way to order the experts and cut their tokens into the cores' slices.

    ``transposed``: the remapping as printed, one contiguous slice each; ``rounded-up``: the same
    with slices of ceil(m / n) tokens; ``rotated``: each core reads the matrix from its own row on
    ("a remapped expert sequence for each AIV", taken by the word); ``staggered``: experts sorted
    by hop class, each class cut by itself (the one that keeps the per-hop bound).
    """

    name: str
    search: QuaternarySearch
    placement: Literal["transposed", "rounded-up", "rotated", "staggered"]

    def order(self, core: int, routing: RoutingData) -> tuple[int, ...]:
        """The experts in the order in which ``core`` believes their tokens to stand."""
        if self.placement == "staggered":
            return hop_sorted_order(routing.hops)
        order = transposed_order(len(routing.counts), routing.cores)
        turn = core % len(order) if self.placement == "rotated" else 0
        return order[turn:] + order[:turn]

    def view(self, core: int, routing: RoutingData) -> CoreView:
        """The core's own computation; it uses nothing but ``routing`` and its number."""
        order = self.order(core, routing)
        if self.placement == "rounded-up":
            return CoreView(order, (rounded_up_slice(core, routing.cores, routing.tokens),))
        blocks: Sequence[int] = (routing.tokens,)
        if self.placement == "staggered":
            sizes = dict.fromkeys((routing.hops[expert] for expert in order), 0)
            for expert in order:
                sizes[routing.hops[expert]] += routing.counts[expert]
            blocks = tuple(sizes.values())
        return CoreView(order, staggered_slices(core, routing.cores, blocks))

    def sends(self, core: int, routing: RoutingData) -> tuple[Place | None, ...]:
        """The tokens that ``core`` sends, each as (expert, offset among the expert's tokens).

        One search a token, as the kernel would do it; None for one that never ends.
        """
        view = self.view(core, routing)
        before = (0, *accumulate(routing.counts[expert] for expert in view.order))
        experts = len(view.order)
        places = []
        for target in view.targets:
            found = self.search.find(lambda pivot: before[min(pivot, experts)], target, experts)
            places.append(found and Place(view.order[found.expert], found.offset))
        return tuple(places)


SCHEDULERS = (
    Scheduler("corrected", CORRECTED, "staggered"),
    Scheduler("printed", PRINTED, "transposed"),
    Scheduler("printed-floor", PRINTED_FLOOR, "transposed"),
    Scheduler("search-only", CORRECTED, "transposed"),
    Scheduler("rounded-up", CORRECTED, "rounded-up"),
    Scheduler("rotated", CORRECTED, "rotated"),
)


def scheduler(name: str) -> Scheduler:
    """The scheduler of that name; ``corrected`` is the one to use, the others are readings.

    ``search-only`` has the corrected search and the remapping as printed. Raises ``UserError``.
    """
    for candidate in SCHEDULERS:
        if candidate.name == name:
            return candidate
    names = ", ".join(candidate.name for candidate in SCHEDULERS)
    raise UserError(f"no algorithm {name!r}", where="algorithm", expected=f"one of {names}")


def hop_classes(text: str, experts: int) -> tuple[str, ...]:
    """Hop classes written as ``NAME:COUNT,NAME:COUNT``, experts in order; they must cover all.

    >>> hop_classes("one:2,two:1", 3)
    ('one', 'one', 'two')
    """
    hops: list[str] = []
    for part in text.split(","):
        name, _, count = part.strip().partition(":")
        if not name or not (count.isascii() and count.isdigit()):
            raise UserError(
                f"cannot read {part!r}", where="hops", expected="NAME:COUNT,NAME:COUNT ..."
            )
        if len(hops) + int(count) > experts:
            raise UserError(
                f"hop classes for more than the {experts} experts",
                where="hops",
                expected=f"counts that add up to {experts}",
            )
        hops.extend([name] * int(count))
    if len(hops) != experts:
        raise UserError(
            f"hop classes cover {len(hops)} of {experts} experts",
            where="hops",
            expected=f"counts that add up to {experts}",
        )
    return tuple(hops)


def hop_table(scheduler: Scheduler, routing: RoutingData) -> list[list[str]]:
    """Tokens by core and hop class as rows of text: a header, one row a core, totals, the bound.

    A count above the bound ceil(V_h / n) is marked with ``!``. Uses the slices, not the search.
    """
    classes = list(dict.fromkeys(routing.hops))
    totals = {hop: 0 for hop in classes}
    for hop, count in zip(routing.hops, routing.counts, strict=True):
        totals[hop] += count
    bounds = {hop: -(-total // routing.cores) for hop, total in totals.items()}
    rows = [["core", *map(str, classes), "all"]]
    for core in range(routing.cores):
        view = scheduler.view(core, routing)
        sequence = [routing.hops[e] for e in view.order for _ in range(routing.counts[e])]
        mine = [sequence[target] for target in view.targets]
        cells = [(mine.count(hop), bounds[hop]) for hop in classes]
        rows.append(
            [
                str(core),
                *(f"{count}{'!' * (count > bound)}" for count, bound in cells),
                str(len(mine)),
            ]
        )
    rows.append(["all", *(str(totals[hop]) for hop in classes), str(routing.tokens)])
    rows.append(
        ["bound", *(str(bounds[hop]) for hop in classes), str(-(-routing.tokens // routing.cores))]
    )
    return rows
