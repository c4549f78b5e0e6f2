"""Many runs, one after the other: each with the next seed, all adversaries in turn."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import count

from syncproof.checkers.emulator.machine import Machine
from syncproof.checkers.emulator.results import Result
from syncproof.checkers.emulator.run import Options, run
from syncproof.checkers.emulator.schedule import ADVERSARIES
from syncproof.models.instance import Instance

EVERY_ADVERSARY = "all"
WALKED_EVERY = 8
"""Of many runs every so many-th is walked through the model."""


@dataclass(frozen=True)
class Series:
    """What several runs came to; ``last`` is the first that did not complete, or the last of all.

    ``options`` are those of ``last``, which repeat it. ``first_peak`` and ``peak`` are the most
    MiB that the program ever had, when the first run was over and at the end.
    """

    runs: int
    steps: int
    blocks: int
    walked: int
    seconds: float
    last: Result
    options: Options
    first_peak: int = 0
    peak: int = 0


def soak(
    instance: Instance,
    options: Options,
    runs: int = 0,
    report: Callable[[Machine], None] | None = None,
    walked_every: int = WALKED_EVERY,
) -> Series:
    """Run until one run does not complete, ``runs`` are over or ``options.seconds`` have passed.

    With the adversary ``all`` each run has the next one.
    """
    began = time.monotonic()
    names = list(ADVERSARIES)
    numbers: Iterable[int] = range(runs) if runs else count()
    found = Series(0, 0, 0, 0, 0.0, Result("complete", 0, 0, 0.0), options)
    for number in numbers:
        spent = time.monotonic() - began
        if options.seconds and spent >= options.seconds and number:
            break
        chosen = replace(
            options,
            seed=options.seed + number,
            adversary=_adversary(options, names, number),
            conform=options.conform and number % walked_every == 0,
            seconds=max(options.seconds - spent, 0.001) if options.seconds else 0.0,
        )
        result = run(instance, chosen, report=report)
        if result.outcome == "not finished" and options.seconds and number:
            break  # cut off by the end of the time: it says nothing
        found = Series(
            number + 1,
            found.steps + result.steps,
            found.blocks + result.blocks,
            found.walked + result.walked,
            time.monotonic() - began,
            result,
            chosen,
            found.first_peak or most_memory(),
            most_memory(),
        )
        if result.outcome != "complete":
            break
    return found


def _adversary(options: Options, names: list[str], number: int) -> str:
    if options.adversary != EVERY_ADVERSARY:
        return options.adversary
    return names[number % len(names)]


def most_memory() -> int:
    """The most MiB that this program has ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
