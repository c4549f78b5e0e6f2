"""The state of a Promela model: memory cells and queues of puts in flight, as variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from syncproof.models.errors import UserError
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.operations import GhostCheck, GhostUpdate
from syncproof.models.outbox import ADD, Packet, Write
from syncproof.models.tables import ProcessTable, Tables
from syncproof.models.values import typed

WRONG = "assert(false)"


def spoken(thing: object) -> str:
    """Text for a comment; nothing in it can end the comment or mean something to C."""
    return re.sub(r"[^\w\[\]().,:@+ -]", "?", str(thing), flags=re.ASCII)


def any_of(conditions: Sequence[str]) -> str:
    """One condition that holds if any does."""
    if len(conditions) == 1:
        return conditions[0]
    return "(" + " || ".join(f"({each})" for each in conditions) + ")" if conditions else "false"


def unsigned(name: str, most: int, initial: int = 0) -> str:
    """The declaration of a variable that counts up to ``most``."""
    return f"unsigned {name} : {max(1, most.bit_length())} = {initial};"


def reachable(table: ProcessTable) -> list[int]:
    """The nodes that the edges of a process lead to, in the order of their numbers."""
    found, work = {table.first}, [table.first]
    while work:
        for edge in table.nodes[work.pop()].edges.values():
            if edge is not None and edge.target not in found:
                found.add(edge.target)
                work.append(edge.target)
    return sorted(found)


def actions_of(table: ProcessTable) -> list[Action]:
    """The actions of all nodes that can be reached."""
    return [action for node in reachable(table) for action in table.nodes[node].actions]


class Cells:
    """Each cell as a variable that counts the values that may ever be in it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._number = {typed(value): n for n, value in enumerate(tables.values)}
        held: list[set[int]] = [{value} for value in tables.initial]
        adds: set[tuple[int, int]] = set()
        for cell, value, mode in _writes(tables):
            if mode == ADD:
                adds.add((cell, value))
            else:
                held[cell].add(value)
        self._close(held, adds)
        self._code = [{value: i for i, value in enumerate(sorted(each))} for each in held]

    def _close(self, held: list[set[int]], adds: set[tuple[int, int]]) -> None:
        growing = True
        while growing:
            growing = False
            for cell, more in adds:
                sums = {self._sum(old, more) for old in held[cell]} - {None} - held[cell]
                held[cell].update(each for each in sums if each is not None)
                growing = growing or bool(sums)

    def _sum(self, old: int, more: int) -> int | None:
        one, other = self._tables.values[old], self._tables.values[more]
        if not (isinstance(one, int) and isinstance(other, int)):
            return None
        return self._number.get(typed(one + other))

    def declarations(self) -> list[str]:
        """A variable for each cell that does not keep its value for ever."""
        return [
            f"{unsigned(f'c{n}', len(code) - 1, code[self._tables.initial[n]])} "
            f"/* {spoken(self._tables.cells[n])} */"
            for n, code in enumerate(self._code)
            if len(code) > 1
        ]

    def holds(self, cells: Sequence[int], values: Sequence[int]) -> str | None:
        """The condition that the cells hold these values; None if they never do."""
        tests = []
        for cell, value in zip(cells, values, strict=True):
            code = self._code[cell]
            if value not in code:
                return None
            if len(code) > 1:
                tests.append(f"c{cell} == {code[value]}")
        return " && ".join(tests) or "true"

    def combinations(self, cells: Sequence[int]) -> int:
        """How many combinations of values the cells can hold."""
        return prod(len(self._code[cell]) for cell in cells)

    def written(self, writes: Iterable[Write]) -> list[str]:
        """The statements that carry out immediate writes, or a landing."""
        return [self._written(*each) for each in writes if len(self._code[each[0]]) > 1]

    def _written(self, cell: int, value: int, mode: int) -> str:
        code = self._code[cell]
        if mode != ADD:
            return f"c{cell} = {code[value]}"
        sums = {old: self._sum(old, value) for old in code}
        ways = [
            f":: c{cell} == {code[old]} -> c{cell} = {code[new]}"
            for old, new in sums.items()
            if new is not None
        ]
        return f"if {' '.join(ways)} :: else -> {WRONG} fi"


def _writes(tables: Tables) -> Iterable[Write]:
    """Every write that a step or a landing may do."""
    for table in tables.processes:
        for action in actions_of(table):
            yield from action.writes
            for packet in action.packets:
                yield from packet.writes
        for node in reachable(table):
            for edge in table.nodes[node].edges.values():
                for cell, value in edge.writes if edge is not None else ():
                    yield cell, value, -1


@dataclass(frozen=True)
class Queue:
    """Puts of one process that overlap in a cell: they land in the order of their issue."""

    name: str
    owner: int
    cells: frozenset[int]
    packets: tuple[Packet, ...]
    depth: int
    declared: bool

    def declaration(self) -> str:
        if self.declared:
            return f"chan {self.name} = [{self.depth}] of {{ short }};"
        places = [unsigned(f"{self.name}_{i}", len(self.packets)) for i in range(self.depth)]
        return " ".join(places)

    def empty(self) -> str:
        """The condition that nothing is in flight here."""
        return f"empty({self.name})" if self.declared else f"{self.name}_0 == 0"

    def issued(self, packet: Packet) -> str:
        """The statement that puts ``packet`` behind the others; beyond the bound it fails."""
        number = self.packets.index(settled(packet)) + 1
        if self.declared:
            return f"assert(nfull({self.name})); {self.name}!{number}"
        ways = [f":: {self.name}_0 == 0 -> {self.name}_0 = {number}"]
        for i in range(1, self.depth):
            last, free = f"{self.name}_{i - 1}", f"{self.name}_{i}"
            ways.append(f":: {last} != 0 && {free} == 0 -> {free} = {number}")
        return f"if {' '.join(ways)} :: else -> {WRONG} fi"

    def landings(self, cells: Cells) -> list[str]:
        """The steps in which the first of the queue lands."""
        shift = (
            []
            if self.declared
            else [
                f"{self.name}_{i} = {f'{self.name}_{i + 1}' if i + 1 < self.depth else 0}"
                for i in range(self.depth)
            ]
        )
        found = []
        for number, packet in enumerate(self.packets, 1):
            first = f"{self.name}?{number}" if self.declared else f"{self.name}_0 == {number}"
            effects = "; ".join([*cells.written(packet.writes), *shift])
            found.append(f"d_step {{ {first} -> {effects or 'skip'} }}")
        return found


def settled(packet: Packet) -> Packet:
    """A packet without what only orders it within its own put."""
    return packet._replace(own_put=False, place=0, is_signal=False)


def queues_of(tables: Tables, declared: bool) -> list[Queue]:
    """The queues of all processes; a `UserError` where puts are not ordered by address alone."""
    found: list[Queue] = []
    for owner, table in enumerate(tables.processes):
        packets = dict.fromkeys(
            settled(packet)
            for action in actions_of(table)
            for packet in action.packets
            if not packet.is_fence
        )
        for group in _overlapping(list(packets)):
            common = frozenset.intersection(*map(cells_of, group))
            if not common:
                raise uncovered("puts of one process that overlap without a common cell")
            cells = frozenset.union(*map(cells_of, group))
            name = f"q{owner}_{min(cells)}"
            depth = tables.profile.in_flight
            found.append(Queue(name, owner, cells, tuple(group), depth, declared))
    return found


def cells_of(packet: Packet) -> frozenset[int]:
    """The cells that a packet lands in."""
    return frozenset(cell for cell, _, _ in packet.writes)


def _overlapping(packets: Sequence[Packet]) -> list[list[Packet]]:
    groups: list[list[Packet]] = []
    for packet in packets:
        near = [g for g in groups if any(cells_of(each) & cells_of(packet) for each in g)]
        groups = [g for g in groups if g not in near]
        groups.append([*(each for g in near for each in g), packet])
    return groups


def refuse_uncovered(tables: Tables) -> None:
    """Raise a `UserError` that names the first thing that the model has no words for."""
    features = tables.features
    ghostly = any(
        isinstance(each, (GhostUpdate, GhostCheck)) for said in tables.statements for each in said
    )
    for there, what in (
        (features.caches, "write-back caches"),
        (features.views, "loads served out of order (load_order: none)"),
        (features.twins, "a quiet for its own caller only (quiet: target)"),
        (ghostly, "ghosts"),
    ):
        if there:
            raise uncovered(what)
    profile = tables.profile
    hops = [profile, *(replace(profile, hops={}, **keys) for keys in profile.hops.values())]
    for table in tables.processes:
        actions = actions_of(table)
        if any(a.kind is ActionKind.UPDATE and len(a.cells) > 1 for a in actions):
            raise uncovered("local atomics that the NIC's do not exclude (atomics: nic_only)")
        puts = [a for a in actions if a.kind is ActionKind.ISSUE]
        if puts and any(each.ordering != "none" for each in hops):
            raise uncovered("ordered links (ordering: per_pair or per_queue)")
        if puts and not profile.same_address_order:
            raise uncovered("puts that overtake each other on one address")
        if puts and any(a.kind is ActionKind.FENCE and a.packets for a in actions):
            raise uncovered("fences that order puts")
        for action in puts:
            _refuse_put(action)


def _refuse_put(action: Action) -> None:
    if any(packet.reads or packet.is_get for packet in action.packets):
        raise uncovered("copies that read their source later (put_nbi, get_nbi)")
    if any(packet.is_signal for packet in action.packets):
        raise uncovered("put_with_signal")
    if len(action.packets) > 1 and any(p.in_block_order != "any" for p in action.profiles):
        raise uncovered("blocks that land in ascending order")


def uncovered(what: str) -> UserError:
    """The error for a system that has no Promela model."""
    return UserError(
        f"{what}: not in the Promela model",
        where="Promela",
        expected="puts, loads, waits, atomics, syncs and quiets on unordered or immediate fabrics",
    )
