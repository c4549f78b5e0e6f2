"""What surely precedes an event: vector clocks of steps and of landings.

``steps[q]`` is how many steps of process q surely come before; ``landed[q]`` says that all puts
that q issued before that step have surely landed. Arrays are never changed in place, so a put
keeps its issuer's by reference. The rules are those of docs/certificate.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy
from numpy.typing import NDArray

Clock = NDArray[numpy.int32]
Link = tuple[int, int, int]
"""(source process, target rank, queue); queue -1 stands for a fence towards the target."""


@dataclass
class Known:
    """What one process surely knows; its own step count is kept apart from the arrays."""

    process: int
    steps: Clock
    landed: Clock
    links: Mapping[Link, int]
    step: int = 0
    complete: int = 0

    def has_step(self, process: int, step: int) -> bool:
        """Whether step number ``step`` of ``process`` surely precedes."""
        if process == self.process:
            return step < self.step
        return bool(self.steps[process] > step)

    def has_landed(self, landing: Landing) -> bool:
        """Whether the landing surely precedes."""
        if landing.immediate:
            return self.has_step(landing.source, landing.step)
        complete = self.complete if landing.source == self.process else self.landed[landing.source]
        if complete > landing.step:
            return True
        if any(self.has_step(p, s) for p, s in landing.witnesses):
            return True
        for queue in (landing.queue, -1):
            if self.links.get((landing.source, landing.target, queue), 0) > landing.step:
                return True
        return False

    def joined(self, steps: Clock, landed: Clock, links: Mapping[Link, int]) -> None:
        """Add what another knew."""
        if steps is not self.steps:
            self.steps = numpy.maximum(self.steps, steps)
        if landed is not self.landed:
            self.landed = numpy.maximum(self.landed, landed)
        if links is not self.links and links:
            merged = dict(self.links)
            for link, step in links.items():
                if merged.get(link, 0) < step:
                    merged[link] = step
            self.links = merged


@dataclass(eq=False, slots=True)
class Landing:
    """A put's arrival in some cells: who issued it at which step, and what they knew then.

    ``covers`` says that all puts that the source issued before that step land before this one.
    ``in_order`` says that earlier puts of its link (target and queue) land before it.
    ``witnesses`` are steps that surely come after it; ``companions`` surely land before it.
    ``before`` maps each cell to the landing there that this one followed, a few of them back.
    """

    source: int
    step: int
    target: int
    queue: int
    immediate: bool
    cells: tuple[int, ...]
    steps: Clock
    landed: Clock
    links: Mapping[Link, int]
    complete: int
    covers: int
    in_order: bool
    operation: object
    before: dict[int, Landing | None] = field(default_factory=dict)
    old_values: dict[int, int] = field(default_factory=dict)
    witnesses: list[tuple[int, int]] = field(default_factory=list)
    companions: tuple[Landing, ...] = ()


def learn(known: Known, landing: Landing) -> None:
    """``known``'s process has read what ``landing`` brought, so that surely precedes."""
    known.joined(landing.steps, landing.landed, landing.links)
    source = landing.source
    if source != known.process:
        steps, landed = known.steps, known.landed
        if steps[source] <= landing.step:
            steps = steps.copy()
            steps[source] = landing.step + 1
            known.steps = steps
        complete = max(landing.complete, landing.covers)
        if landed[source] < complete:
            landed = landed.copy()
            landed[source] = complete
            known.landed = landed
    if landing.in_order:
        link = (source, landing.target, landing.queue)
        if known.links.get(link, 0) <= landing.step:
            known.links = {**known.links, link: landing.step + 1}
