"""What a dispatch hands on: the tokens of all sources, one behind the other (a part of others)."""

from __future__ import annotations

from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, parameter

HALVES = 2


class Output(Protocol):
    """The tensor that the next kernel reads: the tokens of the first source, of the second, ...

    Each token has to be at its offset. The next kernel takes token k at place k, so a token that
    is missing, doubled or elsewhere, a gap and two tokens in one place all break *happens-before*
    or *exactly-once* there. Two tensors are used in turn, as an allocator hands them out: the
    kernel of round k has ended on all cores before round k+2 begins on any.
    """

    token_bytes: int = parameter(512, "bytes of a token's block")

    def memory(self) -> None:
        most = max(1, (self.bounds.ranks - 1) * self.bounds.tokens_per_pair)
        self.tokens = Region(
            index=(most, HALVES),
            block=self.token_bytes,
            fields={"payload": self.token_bytes},
            compared=(),
        )

    def order(self, core: Core, round: int) -> list[tuple[int, int]]:
        """The (source, token) at each place, as the routing has them."""
        return [
            (source, token)
            for source in range(core.ranks)
            if source != core.rank
            for token in core.tokens_from(source, round)
        ]

    async def place(self, core: Core, position: int, data: Any, round: int, at: str = "") -> None:
        """Store a token at its place."""
        await core.put(self.tokens[core.rank][position, round % HALVES], data, at=at)

    async def read(self, core: Core, number: int, cores: int, round: int) -> None:
        """The next kernel: core ``number`` of ``cores`` takes its share, which another wrote."""
        for position, (source, token) in enumerate(self.order(core, round)):
            if position % cores == number:
                data = await core.load(self.tokens[core.rank][position, round % HALVES])
                core.consume(data, source, token, round)


def offsets_of(counts: dict[int, int]) -> dict[int, int]:
    """The exclusive prefix sum: where the tokens of each source begin."""
    found, total = {}, 0
    for source in sorted(counts):
        found[source] = total
        total += counts[source]
    return found
