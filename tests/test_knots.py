"""Knots of processes that wait for each other, against networkx."""

from __future__ import annotations

import random

import networkx

from syncproof.checkers.explicit.waiting import _knots


def test_knots_are_the_components_that_nobody_leaves() -> None:
    """On random graphs: the strongly connected components without an edge to another one."""
    sizes = set[int]()
    for seed in range(300):
        pick = random.Random(seed)
        count = pick.randrange(1, 9)
        waits = {
            each: {other for other in range(count) if other != each and pick.random() < 0.25}
            for each in pick.sample(range(count), pick.randrange(1, count + 1))
        }
        graph = networkx.DiGraph(waits)
        expected = [
            sorted(knot)
            for knot in networkx.strongly_connected_components(graph)
            if all(after in knot for each in knot for after in graph.successors(each))
        ]
        found = _knots(waits)
        assert sorted(map(tuple, found)) == sorted(tuple(knot) for knot in expected for _ in knot)
        sizes |= {*map(len, found)}
    assert len(sizes) > 3
