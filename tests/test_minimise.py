"""Minimised tables: the same behaviour by brute force, and faults in the merging are caught."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace

import pytest

from syncproof.models import minimise as module
from syncproof.models.core import Core
from syncproof.models.memory import Region
from syncproof.models.minimise import coarsest, content, minimise
from syncproof.models.protocol import Protocol, role
from syncproof.models.system import System
from syncproof.models.tables import TableNode, Tables, TableSystem, Unmet, freeze
from tests.bisimulation import Different, compare
from tests.small import instance
from tests.test_tables import everything, random_systems


def sizes(tables: Tables) -> list[int]:
    """The number of nodes of each process."""
    return [len(each.nodes) for each in tables.processes]


def by_moore(contents: Sequence[Hashable], targets: Sequence[Sequence[int]]) -> list[int]:
    """The same partition by looking at every node until nothing changes (Moore, 1956)."""
    names: dict[Hashable, int] = {}
    classes = [names.setdefault(each, len(names)) for each in contents]
    while True:
        finer: dict[Hashable, int] = {}
        keys = [(classes[n], *(classes[t] for t in targets[n])) for n in range(len(classes))]
        after = [finer.setdefault(key, len(finer)) for key in keys]
        if len(set(after)) == len(set(classes)):
            return after
        classes = after


class Forgetful(Protocol):
    """One value is read and forgotten, another decides about a check and a token much later."""

    def memory(self) -> None:
        self.flag = Region(owner=0, index=(3,), block=8)

    @role(on=(0,))
    async def reader(self, core: Core) -> None:
        await core.load(self.flag[0][0])
        kept = await core.load(self.flag[0][1])
        await core.load(self.flag[0][2])
        core.check(kept == 0, "the flag was up")
        await core.quiet()

    @role(on=(1,))
    async def writer(self, core: Core) -> None:
        for place in range(3):
            await core.put(self.flag[0][place], 1)
        await core.quiet()


class TwoTokens(Protocol):
    """A slot that is used twice: the receiver takes whichever token the block names."""

    def memory(self) -> None:
        self.slot = Region(owner=0, block=8, initial=0)

    @role(on=(1,))
    async def source(self, core: Core) -> None:
        for token in (1, 2):
            await core.put(self.slot[0], core.payload(0, token, 0))
        await core.quiet()

    @role(on=(0,))
    async def receiver(self, core: Core) -> None:
        block = await core.wait_until(self.slot[0], lambda block: block != 0)
        core.consume(block, block.source, block.token, 0)
        del block
        await core.quiet()


class Lines(Protocol):
    """Two branches that do the same on different lines."""

    def memory(self) -> None:
        self.flag = Region(owner=0, index=(2,), block=8)

    @role(on=(0,))
    async def reader(self, core: Core) -> None:
        if await core.load(self.flag[0][0]):
            await core.put(self.flag[0][1], 1)
        else:
            await core.put(self.flag[0][1], 1)
        await core.quiet()

    @role(on=(1,))
    async def writer(self, core: Core) -> None:
        await core.put(self.flag[0][0], 1)
        await core.quiet()


def searched(kind: type[Protocol]) -> System:
    """The system of a protocol, each history its own node, with all of its tables filled."""
    system = replace(instance(kind), merge=False).system({})
    assert not everything(system).stopped
    return system


class TestPartition:
    """`coarsest` alone."""

    def test_equals_brute_force(self) -> None:
        """On random graphs, loops included, the partition is the one that Moore's rounds give."""
        draw = random.Random(1)
        for _ in range(500):
            size = draw.randrange(1, 25)
            contents = [draw.randrange(3) for _ in range(size)]
            targets = [[draw.randrange(size) for _ in range(c)] for c in contents]
            mine, expected = coarsest(contents, targets), by_moore(contents, targets)
            pairs = set(zip(mine, expected, strict=True))
            assert len(pairs) == len(set(mine)) == len(set(expected))

    def test_long_chains(self) -> None:
        """A chain of 20,000 equal steps is split; a round for each would take minutes."""
        size = 20_000
        steps = [[min(n + 1, size - 1)] for n in range(size)]
        found = coarsest([n == size - 1 for n in range(size)], steps)
        assert len(set(found)) == size


class TestMinimise:
    """`minimise` on tables of protocols."""

    @pytest.mark.parametrize("lines", [False, True], ids=["plain", "cached"])
    def test_same_behaviour(self, lines: bool) -> None:
        """On random protocols every state and its image agree in all that can be seen."""
        merged = 0
        for system in random_systems(100, 140, lines):
            tables = freeze(system)
            smaller = minimise(tables)
            compare(system, TableSystem(smaller))
            assert minimise(smaller) == smaller
            merged += sizes(smaller) != sizes(tables)
        assert merged > 0

    def test_what_is_forgotten_is_merged(self) -> None:
        """Of the histories that differ only in a value that is never used again one is kept."""
        system = searched(Forgetful)
        before, after = freeze(system), minimise(freeze(system))
        assert sizes(after)[0] < sizes(before)[0]
        compare(system, TableSystem(after))
        assert len(everything(TableSystem(after)).parents) < len(everything(system).parents)

    def test_lines_stay_apart(self) -> None:
        """Equal steps on different lines are merged only when lines are not asked for."""
        system = searched(Lines)
        kept, dropped = minimise(freeze(system)), minimise(freeze(system), keep_lines=False)
        assert sizes(kept)[0] == sizes(dropped)[0] + 1
        compare(system, TableSystem(kept))

    def test_no_edge_is_lent_to_a_node_that_did_not_meet_it(self) -> None:
        """A node robbed of an edge stays apart, and asking it for that edge is raised."""
        system = searched(Forgetful)
        tables = freeze(system)
        reader, *others = tables.processes
        robbed = max(n for n, node in enumerate(reader.nodes) if len(node.edges) > 1)
        nodes = list(reader.nodes)
        nodes[robbed] = replace(nodes[robbed], edges=dict(list(nodes[robbed].edges.items())[:1]))
        partial = replace(tables, processes=(replace(reader, nodes=tuple(nodes)), *others))
        assert sizes(minimise(partial))[0] > sizes(minimise(tables))[0]
        with pytest.raises(Unmet):
            compare(system, TableSystem(minimise(partial)))


def without_outputs(node: TableNode, keep_lines: bool) -> Hashable:
    """The fault of comparing targets alone."""
    edges = {k: e and replace(e, statements=0) for k, e in node.edges.items()}
    return content(replace(node, edges=edges), keep_lines)


def without_ledger(node: TableNode, keep_lines: bool) -> Hashable:
    """The fault of taking all ends of a role for one."""
    return content(replace(node, ledger=0), keep_lines)


def without_blocking(node: TableNode, keep_lines: bool) -> Hashable:
    """The fault of merging a wait that passes with one that blocks."""
    return content(replace(node, edges={k: None for k in node.edges}), keep_lines)


def without_actions(node: TableNode, keep_lines: bool) -> Hashable:
    """The fault of comparing what is said and where it leads, but not what is done."""
    return content(replace(node, actions=()), keep_lines=False)


def without_targets(contents: Sequence[Hashable], _: Sequence[Sequence[int]]) -> list[int]:
    """The fault of stopping before the partition is stable."""
    names: dict[Hashable, int] = {}
    return [names.setdefault(each, len(names)) for each in contents]


FAULTS: list[tuple[str, Callable[..., object]]] = [
    ("content", without_outputs),
    ("content", without_ledger),
    ("content", without_blocking),
    ("content", without_actions),
    ("coarsest", without_targets),
]


def systems() -> Iterator[System]:
    """Those on which the faults show, found among protocols written for it and random ones."""
    yield searched(Forgetful)
    yield searched(TwoTokens)
    yield from random_systems(100, 130)


@pytest.mark.parametrize(("name", "fault"), FAULTS, ids=[f.__name__ for _, f in FAULTS])
def test_planted_faults_are_caught(
    name: str, fault: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way of comparing too little merges nodes that brute force tells apart."""
    monkeypatch.setattr(module, name, fault)
    caught = 0
    for system in systems():
        try:
            compare(system, TableSystem(minimise(freeze(system))))
        except (Different, Unmet, IndexError):
            caught += 1
    assert caught > 0


def test_faults_show_where_they_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is caught without a fault; outputs lose the check, the ledger the token."""
    for system in systems():
        compare(system, TableSystem(minimise(freeze(system))))
    monkeypatch.setattr(module, "content", without_outputs)
    system = searched(Forgetful)
    with pytest.raises(Different, match="outputs"):
        compare(system, TableSystem(minimise(freeze(system))))
    monkeypatch.setattr(module, "content", without_ledger)
    system = searched(TwoTokens)
    with pytest.raises(Different, match="exactly-once"):
        compare(system, TableSystem(minimise(freeze(system))))
