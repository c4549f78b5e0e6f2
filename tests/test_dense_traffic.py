"""Dense traffic: which routings are left when every rank sends every other one a token."""

from __future__ import annotations

from typing import Any

import pytest

from syncproof.checkers.explicit.check import check, question_of
from syncproof.models.bounds import Bounds
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Setting
from syncproof.protocols.sp import SentinelPolling


class OpenChoice(Exception):
    """A choice that has no answer yet."""


def routings(bounds: Bounds, source: int, dense: bool) -> set[tuple[int, ...]]:
    """What one rank may send to the experts of the others: every answer to every choice."""
    experts = [e for e in range(bounds.experts_in_all) if bounds.home(e) != source]
    found: set[tuple[int, ...]] = set()
    pending: list[dict[Any, int]] = [{}]
    while pending:
        chosen = pending.pop()

        def choose(name: Any, values: Any, chosen: dict[Any, int] = chosen) -> int:
            if name not in chosen:
                pending.extend({**chosen, name: value} for value in values)
                raise OpenChoice
            return chosen[name]

        try:
            found.add(tuple(bounds.routed(source, e, 0, choose, dense) for e in experts))
        except OpenChoice:
            continue
    return found


@pytest.mark.parametrize(
    ("ranks", "tokens", "experts", "topk"),
    [(2, 1, 2, 0), (2, 2, 4, 2), (3, 1, 3, 2), (3, 2, 6, 1), (3, 2, 6, 3), (4, 3, 4, 1)],
)
def test_dense_routings_are_those_without_an_empty_pair(
    ranks: int, tokens: int, experts: int, topk: int
) -> None:
    """Dense traffic leaves exactly the routings that send every other rank at least one token."""
    bounds = Bounds(ranks, tokens, 1, experts, topk, "all")
    for source in range(ranks):
        homes = [bounds.home(e) for e in range(experts) if bounds.home(e) != source]
        expected = {
            sent
            for sent in routings(bounds, source, dense=False)
            if {home for home, n in zip(homes, sent, strict=True) if n} == set(homes)
        }
        assert expected and routings(bounds, source, dense=True) == expected


def sentinel_polling(bounds: Bounds, **settings: Setting) -> Instance:
    return Instance(SentinelPolling, bounds, load_profile("cm384"), settings)


def test_an_empty_pair_contradicts_dense_traffic() -> None:
    """A given routing with an empty pair, or too few tokens for all, is refused in one line."""
    one_way = Bounds(2, 1, 1, routing=(((0, 1), (0, 0)),))
    made = sentinel_polling(one_way, counts=False)
    with pytest.raises(UserError, match="sends nothing from rank 1 to rank 0 in round 0"):
        check(made, question_of(made, "sp"))
    with pytest.raises(UserError, match="do not reach every other rank"):
        routings(Bounds(4, 1, 1, 4, 2, "all"), 0, dense=True)


def test_dense_traffic_is_assumed_only_without_counts() -> None:
    """A verdict with counts does not list an assumption that it does not use."""
    with_counts = sentinel_polling(Bounds()).protocol().assumptions()
    without = sentinel_polling(Bounds(), counts=False).protocol().assumptions()
    assert set(with_counts) == {"reserved_sentinel"}
    assert set(without) == {"reserved_sentinel", "dense_traffic"}
