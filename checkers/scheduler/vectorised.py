"""The contracts on one large routing with numpy, from what the cores say that they send."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from syncproof.checkers.scheduler.question import RoutingLike


class SendsLike(Protocol):
    """One entry a token sent: by which core, to which expert, which of the expert's tokens."""

    @property
    def core(self) -> npt.NDArray[np.int64]: ...
    @property
    def expert(self) -> npt.NDArray[np.int64]: ...
    @property
    def offset(self) -> npt.NDArray[np.int64]: ...


def broken_contracts(sends: SendsLike, routing: RoutingLike) -> list[str]:
    """What is wrong with the sends: tokens lost or sent twice, loads, per-hop bounds."""
    counts = np.array(routing.counts, dtype=np.int64)
    inside = (sends.expert >= 0) & (sends.expert < len(counts)) & (sends.offset >= 0)
    inside &= sends.offset < counts[np.where(inside, sends.expert, 0)]
    if not inside.all():
        return [f"{int((~inside).sum())} sends of tokens that do not exist"]
    wrong = []
    starts = np.cumsum(counts) - counts
    sent = np.bincount(starts[sends.expert] + sends.offset, minlength=routing.tokens)
    if (sent != 1).any():
        wrong.append(f"{int((sent == 0).sum())} tokens lost, {int((sent > 1).sum())} sent twice")
    loads = np.bincount(sends.core, minlength=routing.cores)
    if loads.max() - loads.min() > 1:
        wrong.append(f"loads from {loads.min()} to {loads.max()}")
    return wrong + _over_the_bound(sends, routing, counts)


def _over_the_bound(
    sends: SendsLike, routing: RoutingLike, counts: npt.NDArray[np.int64]
) -> list[str]:
    names = list(dict.fromkeys(routing.hops))
    hop = np.array([names.index(name) for name in routing.hops], dtype=np.int64)
    totals = np.bincount(hop, weights=counts, minlength=len(names)).astype(np.int64)
    table = np.zeros((routing.cores, len(names)), dtype=np.int64)
    np.add.at(table, (sends.core, hop[sends.expert]), 1)
    over = np.argwhere(table > -(-totals // routing.cores))
    return [
        f"core {core} has {table[core, kind]} tokens of class {names[kind]!r}, "
        f"more than {-(-totals[kind] // routing.cores)}"
        for core, kind in over.tolist()
    ]
