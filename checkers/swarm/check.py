"""Many searches through any executor, and the one verdict that they come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass, field
from typing import Any

from syncproof.checkers.explicit.check import Interrupted
from syncproof.checkers.swarm.dive import Dive
from syncproof.models.instance import Instance
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Trace, Verdict, from_data

Search = Callable[[int], Mapping[str, Any]]
"""Makes the search of one seed, in whatever process, and gives `Dive.as_data`."""


@dataclass
class Swarm:
    """What has come back so far from ``wanted`` searches, and why others did not."""

    wanted: int
    dives: list[Dive] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    @property
    def states(self) -> int:
        return sum(each.states for each in self.dives)

    @property
    def depth(self) -> int:
        return max((each.depth for each in self.dives), default=0)


def check(
    instance: Instance,
    question: Question,
    executor: Executor,
    search: Search,
    wanted: int,
    losses: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError, OSError),
    report: Callable[[int, int, int], None] | None = None,
) -> Verdict:
    """Make ``wanted`` searches, seeds 0, 1, ...; the least seed that finds a violation ends it.

    A search that ends with one of ``losses`` was lost with its worker: that is said, and what the
    others saw is kept. Raises `Interrupted` on Ctrl-C.
    """
    swarm = Swarm(wanted)
    futures: list[Future[Mapping[str, Any]]] = []
    try:
        for seed in range(wanted):
            try:
                futures.append(executor.submit(search, seed))
            except losses as error:
                swarm.lost.append(_words(error))
        for future in futures:
            try:
                swarm.dives.append(Dive(**future.result()))
            except losses as error:
                swarm.lost.append(_words(error))
            if report is not None:
                report(swarm.states, len(futures) - len(swarm.dives), swarm.depth)
            if swarm.dives and swarm.dives[-1].trace:
                break
    except KeyboardInterrupt:
        raise Interrupted(_verdict(instance, question, swarm, "interrupted")) from None
    finally:
        for future in futures:
            future.cancel()
    return _verdict(instance, question, swarm, "")


def _words(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")[:120]


def _verdict(instance: Instance, question: Question, swarm: Swarm, ended: str) -> Verdict:
    found = next((each.trace for each in swarm.dives if each.trace), None)
    trace: Trace | None = None if found is None else from_data(Trace, found, "a search")
    if ended:
        reason = ended
    elif trace is not None:
        reason = "the searches stopped at the first failure"
    else:
        reason = f"no violation found by {len(swarm.dives)} searches: no proof"
    properties = tuple(
        PropertyVerdict(name, Answer.VIOLATED, trace.message)
        if trace is not None and trace.property == name
        else PropertyVerdict(name, Answer.UNDECIDED, reason)
        for name in question.properties
    )
    return Verdict(
        question,
        "swarm",
        properties,
        swarm.states,
        sum(each.transitions for each in swarm.dives),
        swarm.depth,
        instance.protocol().assumptions(),
        notes=tuple(_notes(swarm)),
        trace=trace,
    )


def _notes(swarm: Swarm) -> Iterator[str]:
    """What was covered, so that "nothing found" can be weighed."""
    dives = swarm.dives
    if dives:
        drawn = sum(each.assignments for each in dives)
        yield (
            f"{len(dives)} of {swarm.wanted} searches, {drawn} assignments of the free choices "
            f"drawn, filters at most {max(each.load for each in dives):.1%} full; states that "
            "several searches saw are counted once for each"
        )
    for reason in dict.fromkeys(each.stopped for each in dives if each.stopped):
        count = sum(each.stopped == reason for each in dives)
        yield f"{count} stopped at {reason}"
    if any(each.cut for each in dives):
        yield f"{sum(each.cut for each in dives)} left runs at their bound on the length"
    if swarm.lost:
        yield f"partial: {len(swarm.lost)} of {swarm.wanted} searches were lost ({swarm.lost[0]})"
