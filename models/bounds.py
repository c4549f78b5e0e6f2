"""How large the checked instance is: ranks, tokens, rounds, experts and the routing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from syncproof.models.errors import UserError

LARGEST = {"ranks": 4096, "tokens": 65536, "rounds": 1_000_000, "experts": 65536, "topk": 65536}

RoutingTable = tuple[tuple[tuple[int, ...], ...], ...]
"""``table[round][source][expert]`` is the number of tokens sent."""


@dataclass(frozen=True)
class Bounds:
    """The instance that a verdict is about.

    ``tokens`` is how many tokens each rank holds in a round; each goes to ``topk`` different
    experts (default: all), experts are spread evenly over the ranks (default: one per rank).
    ``routing`` is ``"all"`` (every number of tokens from 0 to ``tokens`` for each source, expert
    and round), ``"balanced"`` or an explicit table that repeats when the rounds outlast it.
    """

    ranks: int = 2
    tokens: int = 1
    rounds: int = 3
    experts: int = 0
    topk: int = 0
    routing: str | RoutingTable = "balanced"

    def __post_init__(self) -> None:
        for name, largest in LARGEST.items():
            value = getattr(self, name)
            least = 0 if name in ("experts", "topk") else 1
            if not least <= value <= largest:
                raise UserError(
                    f"{name} {value} is out of range",
                    where=f"--{name}",
                    expected=f"{least} to {largest}",
                )
        if self.experts_in_all % self.ranks:
            raise UserError(
                f"{self.experts} experts do not spread evenly over {self.ranks} ranks",
                where="--experts",
                expected=f"a multiple of {self.ranks}",
            )
        if not isinstance(self.routing, str):
            self._check_table(self.routing)

    def _check_table(self, table: RoutingTable) -> None:
        shape = f"[round][source][expert] with {self.ranks} sources, {self.experts_in_all} experts"
        if not table or any(
            len(sources) != self.ranks or any(len(row) != self.experts_in_all for row in sources)
            for sources in table
        ):
            raise UserError("the routing table has the wrong shape", expected=shape)
        if any(not 0 <= n <= self.tokens for round in table for row in round for n in row):
            raise UserError(
                "the routing table sends a number of tokens out of range",
                expected=f"0 to {self.tokens} for each expert",
            )

    @property
    def experts_in_all(self) -> int:
        return self.experts or self.ranks

    @property
    def experts_per_rank(self) -> int:
        return self.experts_in_all // self.ranks

    def experts_of(self, rank: int) -> range:
        """The experts that live on ``rank``."""
        return range(rank * self.experts_per_rank, (rank + 1) * self.experts_per_rank)

    def home(self, expert: int) -> int:
        """The rank that ``expert`` lives on."""
        return expert // self.experts_per_rank

    @property
    def tokens_per_pair(self) -> int:
        """The most tokens that one rank can send to one rank in a round."""
        return self.tokens * self.experts_per_rank

    def routed(
        self,
        source: int,
        expert: int,
        round: int,
        choose: Callable[[Hashable, Sequence[int]], int],
    ) -> int:
        """How many tokens ``source`` sends to ``expert`` in ``round``."""
        if not isinstance(self.routing, str):
            return self.routing[round % len(self.routing)][source][expert]
        selected = self.topk or self.experts_in_all
        share = min(self.tokens, -(-self.tokens * selected // self.experts_in_all))
        if self.routing == "balanced":
            rest = self.tokens * selected - share * (self.experts_in_all - 1)
            return share if (expert - source) % self.experts_in_all else max(0, min(share, rest))
        left = self.tokens * selected
        for earlier in range(expert):
            if self.home(earlier) != source:
                left -= self.routed(source, earlier, round, choose)
        most = max(0, min(self.tokens, left))
        return choose(("tokens", source, expert, round), range(most + 1))
