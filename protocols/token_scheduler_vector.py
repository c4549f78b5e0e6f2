"""The token scheduler with numpy: all tokens' searches in step, all cores' slices at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from syncproof.protocols.token_scheduler import RoutingData, Scheduler
from syncproof.protocols.token_scheduler_search import QuaternarySearch

Ints = npt.NDArray[np.int64]


class Sends(NamedTuple):
    """One entry a token sent: by which core, to which expert, which of the expert's tokens.

    Expert and offset are -1 for a search that never ends.
    """

    core: Ints
    expert: Ints
    offset: Ints


def find_all(search: QuaternarySearch, counts: Ints, targets: Ints) -> tuple[Ints, Ints]:
    """The searches of all ``targets`` in lockstep; returns experts (sending order) and offsets.

    A lane whose window is narrowed to itself never ends and gets -1 for both. (The next window
    depends on nothing but the window and the target; windows never grow, so one that comes back
    at all comes back at once.)
    """
    experts = len(counts)
    before = np.concatenate(([0], np.cumsum(counts)))
    left, right = np.zeros_like(targets), np.full_like(targets, experts)
    stuck = np.zeros(targets.size, dtype=np.bool_)
    while (lanes := np.flatnonzero(_running(search, left, right) & ~stuck)).size:
        low, high, wanted = left[lanes], right[lanes], targets[lanes]
        gap = _gap(search, high - low)
        pivots = np.stack([low, low + gap, low + 2 * gap, low + 3 * gap, high])
        inside = before[np.minimum(pivots[1:4], experts)] > wanted
        quadrant = np.where(inside.any(axis=0), inside.argmax(axis=0), 3)
        column = np.arange(lanes.size)
        left[lanes], right[lanes] = pivots[quadrant, column], pivots[quadrant + 1, column]
        stuck[lanes] = (left[lanes] == low) & (right[lanes] == high)
    offset = targets - before[np.minimum(left, experts)]
    return np.where(stuck, -1, left), np.where(stuck, -1, offset)


def _gap(search: QuaternarySearch, width: Ints) -> Ints:
    return -(-width // 4) if search.rounding == "ceiling" else width // 4


def _running(search: QuaternarySearch, left: Ints, right: Ints) -> npt.NDArray[np.bool_]:
    return _gap(search, right - left) >= 1 if search.stop == "gap" else right - left > 1


def all_sends(scheduler: Scheduler, routing: RoutingData) -> Sends:
    """What every core sends, each from its own view: its own order, slices and searches."""
    counts = np.array(routing.counts, dtype=np.int64)
    cores, experts, offsets = [], [], []
    for core in range(routing.cores):
        view = scheduler.view(core, routing)
        order = np.array(view.order, dtype=np.int64)
        targets = np.concatenate(
            [np.arange(piece.start, piece.stop, dtype=np.int64) for piece in view.slices]
        )
        found, offset = find_all(scheduler.search, counts[order], targets)
        cores.append(np.full(targets.size, core, dtype=np.int64))
        experts.append(np.where(found < 0, -1, order[found]))
        offsets.append(offset)
    return Sends(np.concatenate(cores), np.concatenate(experts), np.concatenate(offsets))
