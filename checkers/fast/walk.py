"""Random runs of a system, so that most of what a search will meet has a code before it begins."""

from __future__ import annotations

import random
from collections.abc import Callable

from syncproof.checkers.fast.strides import Strides
from syncproof.models.errors import UserError
from syncproof.models.nodes import TooLong
from syncproof.models.transitions import Overfull, State

RUNS = 4
LONGEST = 2_000
LONGEST_WITHOUT_NEWS = 64


def walk(strides: Strides, meet: Callable[[State], bool]) -> None:
    """Let ``meet`` see the states of a few runs; it says whether it learned anything.

    In some runs the fabric is slow, in some it is fast: which they are matters to nothing but
    speed. A run that goes wrong ends: the search will meet that too, if it does not end before.
    """
    draw = random.Random(0)
    for run in range(RUNS):
        haste = (0.0, 1.0, 0.1, 0.9)[run % 4]
        state = strides.start().state
        idle = 0
        for _ in range(LONGEST):
            idle = 0 if meet(state) else idle + 1
            if idle > LONGEST_WITHOUT_NEWS:
                break
            try:
                enabled = strides.system.transitions(state)
            except (Overfull, TooLong, UserError):
                break
            own = [each for each in enabled if each.step.kind == "process"]
            fabric = [each for each in enabled if each.step.kind != "process"]
            first, second = (own, fabric) if draw.random() >= haste else (fabric, own)
            if not (first or second):
                break
            state = strides.along(state, draw.choice(first or second)).state
