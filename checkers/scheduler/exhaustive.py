"""Every input up to small sizes, smallest first: a proof, or the smallest counterexample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise

from syncproof.checkers.scheduler.contracts import CONTRACTS
from syncproof.checkers.scheduler.question import Load, Scheduler


@dataclass(frozen=True)
class Sizes:
    """The largest sizes that are tried, each included; cores may outnumber tokens."""

    tokens: int = 4
    experts: int = 3
    cores: int = 3
    classes: int = 2


def routings(tokens: int, experts: int) -> Iterator[tuple[int, ...]]:
    """All ways to give ``tokens`` tokens to ``experts`` experts."""
    for bars in combinations_with_replacement(range(tokens + 1), experts - 1):
        edges = (0, *bars, tokens)
        yield tuple(high - low for low, high in pairwise(edges))


def hop_patterns(experts: int, classes: int) -> Iterator[tuple[int, ...]]:
    """All ways to sort experts into at most ``classes`` classes, up to renaming the classes."""
    patterns: list[tuple[int, ...]] = [()]
    for _ in range(experts):
        patterns = [
            (*pattern, hop)
            for pattern in patterns
            for hop in range(min(classes, max(pattern, default=-1) + 2))
        ]
    yield from patterns


def inputs(sizes: Sizes) -> Iterator[Load]:
    """All inputs within ``sizes``, by tokens, then experts, then cores, zero tokens first."""
    for tokens in range(sizes.tokens + 1):
        for experts in range(1, sizes.experts + 1):
            for cores in range(1, sizes.cores + 1):
                for hops in hop_patterns(experts, sizes.classes):
                    for counts in routings(tokens, experts):
                        yield Load(counts, hops, cores)


@dataclass(frozen=True)
class Search:
    """The outcome: how many inputs were tried, and the first that fails with what is wrong."""

    tried: int
    smallest: Load | None
    wrong: str


def smallest_counterexample(scheduler: Scheduler, contract: str, sizes: Sizes) -> Search:
    """Try all inputs within ``sizes`` in order and stop at the first that breaks ``contract``."""
    broken_by = CONTRACTS[contract]
    tried = 0
    for load in inputs(sizes):
        tried += 1
        if wrong := broken_by(scheduler, load):
            return Search(tried, load, wrong)
    return Search(tried, None, "")
