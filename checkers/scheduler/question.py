"""What is asked of a token scheduler, what is answered, and what a scheduler must offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from syncproof.models.errors import UserError

Hop = int | str
Verdict = Literal["proved", "violated", "undecided"]


class Search(Protocol):
    """A reading of algorithm 1; see ``protocols.token_scheduler_search``."""

    @property
    def name(self) -> str: ...
    @property
    def rounding(self) -> Literal["ceiling", "floor"]: ...
    @property
    def stop(self) -> Literal["gap", "width"]: ...
    def running(self, left: int, right: int) -> bool: ...
    def boundaries(self, left: int, right: int) -> tuple[int, int, int, int, int]: ...
    def find(
        self, count: Callable[[int], int], target: int, experts: int
    ) -> tuple[int, int] | None: ...


class RoutingLike(Protocol):
    """Tokens per expert, hop class per expert, number of cores."""

    @property
    def counts(self) -> tuple[int, ...]: ...
    @property
    def hops(self) -> tuple[Hop, ...]: ...
    @property
    def cores(self) -> int: ...
    @property
    def tokens(self) -> int: ...


class View(Protocol):
    """What one core works out alone."""

    @property
    def order(self) -> tuple[int, ...]: ...
    @property
    def slices(self) -> tuple[range, ...]: ...


class Scheduler(Protocol):
    """The scheduler under test; the real ones are in ``protocols.token_scheduler``."""

    @property
    def name(self) -> str: ...
    @property
    def search(self) -> Search: ...
    @property
    def placement(self) -> str: ...
    def view(self, core: int, routing: RoutingLike, /) -> View: ...
    def sends(self, core: int, routing: RoutingLike, /) -> Sequence[tuple[int, int] | None]: ...


@dataclass(frozen=True)
class Load:
    """A plain routing, for inputs that a checker makes up."""

    counts: tuple[int, ...]
    hops: tuple[Hop, ...]
    cores: int

    @property
    def tokens(self) -> int:
        """All tokens."""
        return sum(self.counts)


@dataclass(frozen=True)
class SchedulerQuestion:
    """Does ``scheduler`` keep its contracts for these sizes, whatever the routing?

    ``tokens`` is the number of tokens that the rank sends (batch times top-k), ``hops`` the hop
    class of each expert's rank; without it all are of one class. Raises ``UserError``.
    """

    scheduler: Scheduler
    experts: int
    cores: int
    tokens: int
    hops: tuple[Hop, ...] = ()

    def __post_init__(self) -> None:
        for name, value, least in (
            ("experts", self.experts, 1),
            ("cores", self.cores, 1),
            ("tokens", self.tokens, 0),
        ):
            if value < least:
                raise UserError(f"{value} {name}", where=name, expected=f"at least {least}")
        if self.hops and len(self.hops) != self.experts:
            raise UserError(
                f"hop classes for {len(self.hops)} ranks, but {self.experts} experts",
                where="hops",
                expected="one hop class for each expert's rank",
            )

    @property
    def classes(self) -> tuple[Hop, ...]:
        """The hop class of each expert."""
        return self.hops or ("all",) * self.experts

    @property
    def sizes(self) -> str:
        """The sizes as the scope of a verdict names them."""
        kinds = len(set(self.classes))
        return f"experts={self.experts} cores={self.cores} tokens={self.tokens} hop-classes={kinds}"


@dataclass(frozen=True)
class Finding:
    """A verdict on one contract: of what (``scope``), by what (``method``), and why.

    ``counterexample`` is plain data: ``counts``, ``hops``, ``cores``, what went ``wrong``, and the
    ``target`` of a search (whose text numbers experts in sending order). It has the question's
    numbers of experts and cores and, for a search and the hop bound, the fewest tokens.
    """

    contract: str
    verdict: Verdict
    scope: str
    method: str
    explanation: str
    counterexample: Mapping[str, object] | None = None
