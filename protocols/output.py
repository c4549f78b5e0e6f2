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
    lead_bytes: int = parameter(0, "bytes of its lead, if it is compared", (0, 32))

    def memory(self) -> None:
        most = max(1, (self.bounds.ranks - 1) * self.bounds.tokens_per_pair)
        fields = {"payload": self.token_bytes}
        if self.lead_bytes:
            fields = {"lead": self.lead_bytes, "rest": self.token_bytes - self.lead_bytes}
        self.tokens = Region(
            index=(most, HALVES), block=self.token_bytes, fields=fields, compared=()
        )

    async def place(self, core: Core, position: int, data: Any, round: int, at: str = "") -> None:
        """Store a token at its place."""
        await core.put(self.tokens[core.rank][position, round % HALVES], data, at=at)

    def share(
        self, core: Core, number: int, cores: int, round: int
    ) -> list[tuple[int, tuple[int, int]]]:
        """What core ``number`` of ``cores`` takes in the next kernel: place, (source, token).

        As the routing has it; placed so that another core has written it.
        """
        order = [
            (source, token)
            for source in range(core.ranks)
            if source != core.rank
            for token in core.tokens_from(source, round)
        ]
        return [each for each in enumerate(order) if each[0] % cores == number]

    async def take(self, core: Core, position: int, round: int) -> Any:
        """Read the token at a place."""
        return await core.load(self.tokens[core.rank][position, round % HALVES])

    async def read(self, core: Core, number: int, cores: int, round: int) -> None:
        """The next kernel: core ``number`` of ``cores`` takes its share."""
        for position, (source, token) in self.share(core, number, cores, round):
            data = await self.take(core, position, round)
            core.consume(data, source, token, round)


def offsets_of(counts: dict[int, int]) -> dict[int, int]:
    """The exclusive prefix sum: where the tokens of each source begin."""
    found, total = {}, 0
    for source in sorted(counts):
        found[source] = total
        total += counts[source]
    return found
