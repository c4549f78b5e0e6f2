"""Which values cells may hold together, whatever the order of the writes: an over-approximation.

The formula is built over edges on these values; which of them a run can meet is the solver's
question. A value that no run writes costs a branch that is never taken, never a wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from syncproof.checkers.smt.uncovered import Uncovered

Cells = tuple[int, ...]
Numbers = tuple[int, ...]
Change = Callable[[Numbers], Numbers | None]
"""What a read-modify-write makes of the values in its cells; None where it does not act."""

MOST_TUPLES = 2_000


class Contents:
    """Grows by the writes that are told to it; ``stamp`` says whether an answer may have grown."""

    def __init__(self, initial: Callable[[int], int]) -> None:
        self._initial = initial
        self._sets: dict[int, dict[tuple[tuple[int, int], ...], None]] = {}
        self._changes: dict[Hashable, tuple[Cells, Change]] = {}
        self._changing: dict[int, dict[Hashable, None]] = {}
        self._most: dict[int, int] = {}
        self._stamps: dict[int, int] = {}
        self._kept: dict[Cells, tuple[int, tuple[Numbers, ...]]] = {}

    def stamp(self, cells: Sequence[int]) -> int:
        """Grows whenever what the cells may hold may have grown."""
        return sum(self._stamps.get(cell, 0) for cell in cells)

    def _touch(self, cells: Sequence[int]) -> None:
        for cell in cells:
            self._stamps[cell] = self._stamps.get(cell, 0) + 1

    def write(self, writes: Sequence[tuple[int, int]]) -> None:
        """Some step stores these values into these cells at once."""
        pattern = tuple(sorted(writes))
        if pattern and pattern not in self._sets.get(pattern[0][0], {}):
            for cell, _ in pattern:
                self._sets.setdefault(cell, {})[pattern] = None
            self._touch([cell for cell, _ in pattern])

    def change(self, name: Hashable, cells: Cells, function: Change) -> None:
        """Some step, named ``name``, reads these cells and writes them in one."""
        if name not in self._changes:
            self._changes[name] = (cells, function)
            for cell in cells:
                self._changing.setdefault(cell, {})[name] = None
            self._touch(cells)

    def allow(self, cell: int, most: int) -> bool:
        """No run changes ``cell`` by more than ``most`` read-modify-writes; True if that is new."""
        if most <= self._most.get(cell, 0):
            return False
        self._most[cell] = most
        self._touch([cell])
        return True

    def possible(self, cells: Cells) -> tuple[Numbers, ...]:
        """Every combination of values that the cells may hold at one moment."""
        stamp = self.stamp(cells)
        kept = self._kept.get(cells)
        if kept is None or kept[0] != stamp:
            kept = self._kept[cells] = (stamp, tuple(self._closure(cells)))
        return kept[1]

    def _closure(self, cells: Cells) -> dict[Numbers, int]:
        place = {cell: i for i, cell in enumerate(cells)}
        patterns: dict[tuple[tuple[int, int], ...], None] = {}
        for cell in cells:
            for pattern in self._sets.get(cell, ()):
                shown = tuple((place[c], value) for c, value in pattern if c in place)
                patterns[shown] = None
        names = dict.fromkeys(name for cell in cells for name in self._changing.get(cell, ()))
        most = sum(self._most.get(cell, 0) for cell in cells)
        start = tuple(self._initial(cell) for cell in cells)
        level = {start: 0}
        work = [start]
        while work:
            values = work.pop(0)
            after: list[tuple[Numbers, int]] = []
            for pattern in patterns:
                changed = list(values)
                for i, value in pattern:
                    changed[i] = value
                after.append((tuple(changed), 0))
            if level[values] < most:
                after += [(v, level[values] + 1) for v in self._changed(names, place, values)]
            for found, its_level in after:
                if its_level < level.get(found, most + 1):
                    level[found] = its_level
                    work.append(found)
            if len(level) > MOST_TUPLES:
                raise Uncovered("memory that may hold too many different values", "")
        return level

    def _changed(
        self, names: Sequence[Hashable] | dict[Hashable, None], place: dict[int, int], old: Numbers
    ) -> list[Numbers]:
        found = []
        for name in names:
            cells, function = self._changes[name]
            inside = [place[cell] for cell in cells if cell in place]
            if len(inside) == len(cells):
                options = [tuple(old[i] for i in inside)]
            else:
                options = [
                    each
                    for each in self.possible(cells)
                    if all(each[i] == old[place[c]] for i, c in enumerate(cells) if c in place)
                ]
            for option in options:
                new = function(option)
                if new is not None:
                    values = list(old)
                    for cell, value in zip(cells, new, strict=True):
                        if cell in place:
                            values[place[cell]] = value
                    found.append(tuple(values))
        return found
