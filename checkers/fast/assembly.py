"""From decision trees to the arrays of the compiled loops, added to as the trees grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from syncproof.checkers.fast.arrays import AT_ONCE, FIRST_LEAF, UNKNOWN, Steps
from syncproof.checkers.fast.tabulation import Decision, Leaf, Tabulation
from syncproof.models.transitions import Access

FULL_WORD = 0xFFFFFFFFFFFFFFFF


class Assembly:
    """The arrays for one layout; another layout needs a new one."""

    def __init__(self, tabulation: Tabulation) -> None:
        self._tabulation = tabulation
        self._words = tabulation.layout.words
        self._program: Any = np.zeros(1024, np.int32)
        self._used = 1
        self._at: dict[Decision, int] = {}
        self._spans: Any = np.zeros(64, np.int64)
        self._table: Any = np.zeros((2, 64, self._words), np.uint64)
        self._leaves = self._moves = 0
        self._races = Races(tabulation)
        roots = [self._write(root) for root in tabulation.roots]
        self._roots: Any = np.array(roots, np.int32)
        tabulation.fresh.clear()

    def steps(self) -> Steps:
        """The arrays, brought up to date."""
        for decision, code in self._tabulation.fresh:
            if decision in self._at:
                child = self._child(decision.children[code])
                self._program[self._at[decision] + 1 + code] = child
        self._tabulation.fresh.clear()
        for leaf in self._tabulation.leaves[self._leaves :]:
            self._add(leaf)
        return Steps(
            self._program,
            self._roots,
            self._spans,
            self._table.reshape(2, -1),
            *self._races.masks(),
        )

    def _child(self, child: Decision | int) -> int:
        if isinstance(child, int):
            return FIRST_LEAF - child
        return self._at[child] if child in self._at else self._write(child)

    def _write(self, decision: Decision) -> int:
        """Write a decision and all below it; where it begins."""
        place, at = decision.place, self._used
        size = 1 + (1 << place.bits)
        self._used += size
        self._program = _with_room(self._program, self._used)
        self._program[at] = place.bits | place.shift << 6 | place.word << 12
        self._program[at + 1 : at + size] = UNKNOWN
        self._at[decision] = at
        for code, child in decision.children.items():
            self._program[at + 1 + code] = self._child(child)
        return at

    def _add(self, leaf: Leaf) -> None:
        fails = any(move.fails for move in leaf.moves)
        self._spans = _with_room(self._spans, self._leaves + 1)
        self._spans[self._leaves] = self._moves << 20 | len(leaf.moves) << 1 | fails
        self._leaves += 1
        self._make_room(self._moves + len(leaf.moves) + AT_ONCE)
        for move in leaf.moves:
            keep, bits = [FULL_WORD] * self._words, [0] * self._words
            for place, code in move.changes:
                keep[place.word] &= ~(((1 << place.bits) - 1) << place.shift)
                bits[place.word] |= code << place.shift
            self._table[:, self._moves] = keep, bits
            self._moves += 1

    def _make_room(self, moves: int) -> None:
        rows = _with_room(self._table[0], moves), _with_room(self._table[1], moves)
        if len(rows[0]) > self._table.shape[1]:
            self._table = np.stack(rows)

    @property
    def races(self) -> list[tuple[int, bool]]:
        """The possible races, as `Notes.raced` counts them."""
        return self._races.known


class Races:
    """What each leaf does to the cells on which a race can be at all, as bits.

    A race is of a plain load and a write, or of two puts to a cell for which, as far as is known,
    nobody waits: (cell, whether it is certain). One that becomes possible later was in none of the
    states before: a leaf that takes part in it was missing.
    """

    def __init__(self, tabulation: Tabulation) -> None:
        self._tabulation = tabulation
        self._is_asked = "race-free" in tabulation.strides.asked
        self.known: list[tuple[int, bool]] = []
        self._number: dict[tuple[int, bool], int] = {}
        self._accessed: dict[int, list[tuple[int, int, Access]]] = {}
        self._seen = 0
        self._masks: Any = np.zeros((4, 64, 0), np.uint64)

    def masks(self) -> tuple[Any, Any, Any, Any]:
        """Reads, writes, puts and races within, for each leaf."""
        leaves = self._tabulation.leaves
        touched: set[int] = set()
        if self._is_asked:
            for number in range(self._seen, len(leaves)):
                for move, access in leaves[number].accesses:
                    self._accessed.setdefault(access.cell, []).append((number, move, access))
                    touched.add(access.cell)
        self._seen = len(leaves)
        for cell in sorted(touched):
            for certain in (True, False):
                if (cell, certain) not in self._number and self._is_possible(cell, certain):
                    self._number[cell, certain] = len(self.known)
                    self.known.append((cell, certain))
        self._make_room(len(leaves))
        for cell in touched:
            for certain in (True, False):
                if (cell, certain) in self._number:
                    self._mark(cell, certain)
        reads, writes, puts, own = self._masks
        return reads, writes, puts, own

    def _is_possible(self, cell: int, certain: bool) -> bool:
        accesses = [access for _, _, access in self._accessed[cell]]
        if certain:
            is_read = any(not access.synchronizing for access in accesses)
            return is_read and any(access.writes for access in accesses)
        puts = [access for access in accesses if access.is_put]
        return len(puts) > 1 and cell not in self._tabulation.system.polled

    def _make_room(self, leaves: int) -> None:
        words, old = -(-len(self.known) // 64), self._masks
        if old.shape[1] < leaves or old.shape[2] < words:
            size = max(2 * leaves, old.shape[1])
            self._masks = np.zeros((4, size, max(words, old.shape[2])), np.uint64)
            self._masks[:, : old.shape[1], : old.shape[2]] = old

    def _mark(self, cell: int, certain: bool) -> None:
        word, bit = divmod(self._number[cell, certain], 64)
        mask = np.uint64(1 << bit)
        reads, writes, puts, own = self._masks
        by_leaf: dict[int, list[tuple[int, Access]]] = {}
        for leaf, move, access in self._accessed[cell]:
            by_leaf.setdefault(leaf, []).append((move, access))
            if certain and not access.synchronizing:
                reads[leaf, word] |= mask
            if certain and access.writes:
                writes[leaf, word] |= mask
            if not certain and access.is_put:
                puts[leaf, word] |= mask
        for leaf, found in by_leaf.items():
            is_fabric = not self._tabulation.leaves[leaf].is_process
            if is_fabric and _races_within(found, certain):
                own[leaf, word] |= mask


def _races_within(accesses: list[tuple[int, Access]], certain: bool) -> bool:
    """Whether two steps of the fabric at one outbox race on a cell."""
    for one, first in accesses:
        for other, second in accesses:
            if one != other and (first.writes or second.writes):
                is_plain = not (first.synchronizing and second.synchronizing)
                if is_plain if certain else first.is_put and second.is_put:
                    return True
    return False


def _with_room(array: Any, rows: int) -> Any:
    """The array, or a longer one with the same beginning."""
    if len(array) >= rows:
        return array
    longer = np.zeros((max(rows, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
