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
        if self.topk > self.experts_in_all:
            raise UserError(
                f"{self.topk} experts for a token, of {self.experts_in_all}",
                where="--topk",
                expected=f"at most {self.experts_in_all}",
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

    def extents_(self) -> dict[str, int]:
        """What the index words of regions stand for, but for the number of cores; not for roles."""
        return {
            "RANK": self.ranks,
            "TOKEN": self.tokens_per_pair,
            "EXPERT": self.experts_per_rank,
        }

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
        dense: bool = False,
    ) -> int:
        """How many tokens ``source`` sends to ``expert`` in ``round``.

        ``dense`` leaves out the routings in which some rank sends nothing to some other rank: of
        ``"all"`` those that remain are chosen from, a single routing that is left out is a
        `UserError`.
        """
        if self.routing == "all":
            return self._chosen(source, expert, round, choose, dense)
        if dense:
            self._check_dense(source, self.home(expert), round)
        if isinstance(self.routing, str):
            return self._balanced(source, expert)
        return self.routing[round % len(self.routing)][source][expert]

    def sent(
        self,
        source: int,
        destination: int,
        round: int,
        choose: Callable[[Hashable, Sequence[int]], int],
        dense: bool = False,
    ) -> int:
        """How many tokens ``source`` sends in ``round`` to all experts of ``destination``.

        ``dense`` as in `routed`.
        """
        if self.routing == "balanced" and source != destination and not self.experts:
            # One expert for each rank, and this one is not the source's own
            return self._share if self.topk else self.tokens
        experts = self.experts_of(destination)
        return sum(self.routed(source, expert, round, choose, dense) for expert in experts)

    @property
    def _share(self) -> int:
        """How many of its tokens a balanced source sends to each expert but its own."""
        return min(self.tokens, -(-self.tokens * self._selected // self.experts_in_all))

    @property
    def _selected(self) -> int:
        """To how many experts a token goes."""
        return self.topk or self.experts_in_all

    def _balanced(self, source: int, expert: int) -> int:
        share = self._share
        if (expert - source) % self.experts_in_all:
            return share
        rest = self.tokens * self._selected - share * (self.experts_in_all - 1)
        return max(0, min(share, rest))

    def _chosen(
        self,
        source: int,
        expert: int,
        round: int,
        choose: Callable[[Hashable, Sequence[int]], int],
        dense: bool,
    ) -> int:
        """A free choice among what the experts before this one have left over.

        Where the routing is dense one token is kept for each rank after this one, and the last
        expert of a rank takes one if the others took none.
        """
        left, sent_home, sent = self.tokens * self._selected, 0, 0
        for each in (e for e in range(expert + 1) if e == expert or self.home(e) != source):
            experts = self.experts_of(self.home(each))
            sent_home = 0 if each == experts[0] else sent_home
            least, kept = 0, 0
            if dense and self.home(each) != source:
                kept = sum(rank != source for rank in range(self.home(each) + 1, self.ranks))
                least = int(not sent_home and each == experts[-1])
            most = max(0, min(self.tokens, left - kept))
            if most < least:
                raise UserError(
                    f"{self.tokens * self._selected} tokens do not reach every other rank",
                    where="--topk",
                    expected=f"at least {self.ranks - 1} for dense traffic",
                )
            sent = choose(("tokens", source, each, round), range(least, most + 1))
            left, sent_home = left - sent, sent_home + sent
        return sent

    def _check_dense(self, source: int, destination: int, round: int) -> None:
        if source != destination and not any(
            self.routed(source, expert, round, lambda _, values: values[0])
            for expert in self.experts_of(destination)
        ):
            raise UserError(
                f"the routing sends nothing from rank {source} to rank {destination} in round "
                f"{round}, and the protocol assumes dense traffic",
                where="--routing",
                expected="a token for every pair, or --drop dense_traffic",
            )
