"""In which order a rank serves the others (HyperParallel-MoE, figure 6: rank-aware reordering)."""

from __future__ import annotations

from collections.abc import Sequence

from syncproof.models.errors import UserError


def rank_aware_order(rank: int, ranks: int) -> tuple[int, ...]:
    """Destinations of ``rank`` in turn, its own first: each rank's order is rotated by its number.

    Raises ``UserError`` for a rank that does not exist.
    """
    if not 0 <= rank < ranks:
        raise UserError(f"rank {rank} of {ranks}", where="ranks", expected=f"0 <= rank < {ranks}")
    return tuple((rank + step) % ranks for step in range(ranks))


def naive_order(rank: int, ranks: int) -> tuple[int, ...]:
    """The order before the reordering: all ranks start with destination 0."""
    rank_aware_order(rank, ranks)
    return tuple(range(ranks))


def most_senders_at_once(tiles: Sequence[Sequence[int]], rotated: bool = True) -> int:
    """The most ranks that ever send to one destination at one time, without waiting for each other.

    ``tiles[source][destination]`` tiles take one unit of time each; a rank sends without a pause.
    """
    ranks = len(tiles)
    order = rank_aware_order if rotated else naive_order
    busy: dict[tuple[int, int], int] = {}
    for rank, row in enumerate(tiles):
        if len(row) != ranks:
            raise UserError(
                f"rank {rank} has tiles for {len(row)} of {ranks} ranks",
                where="tiles",
                expected="one count for each destination",
            )
        time = 0
        for destination in order(rank, ranks):
            for _ in range(row[destination]):
                busy[destination, time] = busy.get((destination, time), 0) + 1
                time += 1
    return max(busy.values(), default=0)
