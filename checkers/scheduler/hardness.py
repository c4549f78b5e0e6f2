"""UBEP's appendix B: subset sum reduced to program (1), checked on instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement

from syncproof.checkers.scheduler.program import Token, assignments, cost


def has_half(values: Sequence[int]) -> bool:
    """Whether some of the values add up to half of all: the instance of subset sum, by trial."""
    half, odd = divmod(sum(values), 2)
    return not odd and any(
        sum(chosen) == half
        for size in range(len(values) + 1)
        for chosen in combinations(values, size)
    )


def reduced(values: Sequence[int], cores: int) -> tuple[list[Token], int]:
    """Equation (10): the tokens and the bound B; needs two cores or more and an even sum."""
    half, odd = divmod(sum(values), 2)
    if odd or cores < 2 or not values:
        raise ValueError("appendix B is for an even sum, a value or more and two cores or more")
    size = len(values)
    zeros = (size - 1) * (cores - 1) + 1
    tokens = [Token(value, 0) for value in values]
    tokens += [Token(half, 0)] * (cores - 2) + [Token(0, 0)] * zeros
    return tokens, half


def fits(tokens: Sequence[Token], cores: int, bound: int) -> bool:
    """Whether an assignment within (1b) has no core longer than ``bound`` (inequality (11))."""
    return any(cost(tokens, chosen) <= bound for chosen in assignments(len(tokens), cores))


def instances(longest: int, greatest: int) -> Iterator[tuple[int, ...]]:
    """All sorted lists of up to ``longest`` values 0 .. ``greatest`` with an even sum."""
    for length in range(1, longest + 1):
        for values in combinations_with_replacement(range(greatest + 1), length):
            if sum(values) % 2 == 0:
                yield values


def wrongly_reduced(longest: int, greatest: int, cores: int) -> tuple[int, list[tuple[int, ...]]]:
    """How many instances were compared, and those on which the reduction answers wrongly."""
    tried, wrong = 0, []
    for values in instances(longest, greatest):
        tokens, bound = reduced(values, cores)
        tried += 1
        if fits(tokens, cores, bound) != has_half(values):
            wrong.append(values)
    return tried, wrong
