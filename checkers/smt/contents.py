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

MOST_TUPLES = 500


class Contents:
    """Grows by the writes that are told to it; ``stamp`` says whether an answer may have grown.

    Without a bound a counter would never stop. So each combination has a *level*, how many
    read-modify-writes lie behind it at least, in any run; no run has more than ``most``.
    """

    def __init__(self, initial: Callable[[int], int]) -> None:
        self.most = 0
        self._initial = initial
        self._sets: dict[int, dict[tuple[tuple[int, int], ...], int]] = {}
        self._changes: dict[Hashable, tuple[Cells, Change, int]] = {}
        self._changing: dict[int, dict[Hashable, None]] = {}
        self._stamps: dict[int, int] = {}
        self._raised = 0
        self._open: set[Cells] = set()
        self._kept: dict[Cells, tuple[int, dict[Numbers, int]]] = {}

    def stamp(self, cells: Sequence[int]) -> int:
        """Grows whenever what the cells may hold may have grown."""
        return sum(self._stamps.get(cell, 0) for cell in self._connected(cells)) + self._raised

    def _connected(self, cells: Sequence[int]) -> dict[int, None]:
        """The cells, and those that read-modify-writes change or look at together with them."""
        found, work = dict.fromkeys(cells), list(cells)
        while work:
            for name in self._changing.get(work.pop(), ()):
                new = [cell for cell in self._changes[name][0] if cell not in found]
                found |= dict.fromkeys(new)
                work += new
        return found

    def _touch(self, cells: Sequence[int]) -> None:
        for cell in cells:
            self._stamps[cell] = self._stamps.get(cell, 0) + 1

    def write(self, writes: Sequence[tuple[int, int]], level: int = 0) -> None:
        """Some step stores these values into these cells at once."""
        pattern = tuple(sorted(writes))
        if not pattern or self._sets.get(pattern[0][0], {}).get(pattern, level + 1) <= level:
            return
        for cell, _ in pattern:
            self._sets.setdefault(cell, {})[pattern] = level
        self._touch([cell for cell, _ in pattern])

    def change(self, name: Hashable, cells: Cells, function: Change, level: int = 0) -> None:
        """Some step, named ``name``, reads these cells and writes them in one."""
        known = self._changes.get(name)
        if known is None or level < known[2]:
            self._changes[name] = (cells, function, level)
            for cell in cells:
                self._changing.setdefault(cell, {})[name] = None
            self._touch(cells)

    def exchange(self, cells: Cells, old: Numbers, new: Numbers, level: int = 0) -> None:
        """Some step replaces ``old`` by ``new`` in these cells, in one."""
        name = ("exchange", cells, old, new)
        self.change(name, cells, lambda held: new if held == old else None, level)

    def allow(self, most: int) -> bool:
        """No run has more than ``most`` read-modify-writes; True if that is more than before."""
        if most <= self.most:
            return False
        self.most = most
        self._raised += 1
        return True

    def possible(self, cells: Cells) -> tuple[Numbers, ...]:
        """Every combination of values that the cells may hold at one moment."""
        return tuple(self.levels(cells))

    def levels(self, cells: Cells) -> dict[Numbers, int]:
        """Every combination of values, with its level."""
        stamp = self.stamp(cells)
        kept = self._kept.get(cells)
        if kept is None or kept[0] != stamp:
            if cells in self._open:
                raise Uncovered("read-modify-writes of blocks that overlap", "")
            self._open.add(cells)
            kept = self._kept[cells] = (stamp, self._closure(cells))
            self._open.remove(cells)
        return kept[1]

    def _closure(self, cells: Cells) -> dict[Numbers, int]:
        place = {cell: i for i, cell in enumerate(cells)}
        patterns: dict[tuple[tuple[int, int], ...], int] = {}
        for cell in cells:
            for pattern, its_level in self._sets.get(cell, {}).items():
                shown = tuple((place[c], value) for c, value in pattern if c in place)
                patterns[shown] = min(its_level, patterns.get(shown, its_level))
        names = dict.fromkeys(name for cell in cells for name in self._changing.get(cell, ()))
        start = tuple(self._initial(cell) for cell in cells)
        level = {start: 0}
        work = [start]
        while work:
            values = work.pop(0)
            after = self._changed(names, place, values, level[values])
            for pattern, its_level in patterns.items():
                stored = list(values)
                for i, value in pattern:
                    stored[i] = value
                after.append((tuple(stored), max(level[values], its_level)))
            for found, its_level in after:
                if its_level <= self.most and its_level < level.get(found, self.most + 1):
                    level[found] = its_level
                    work.append(found)
            if len(level) > MOST_TUPLES:
                raise Uncovered("memory that may hold too many different values", "")
        return level

    def _changed(
        self, names: dict[Hashable, None], place: dict[int, int], old: Numbers, level: int
    ) -> list[tuple[Numbers, int]]:
        found = []
        for name in names:
            cells, function, its_level = self._changes[name]
            inside = [place[cell] for cell in cells if cell in place]
            if len(inside) == len(cells):
                options = {tuple(old[i] for i in inside): level}
            else:
                options = self.levels(cells)
            for option, at_least in options.items():
                if any(option[i] != old[place[c]] for i, c in enumerate(cells) if c in place):
                    continue
                new = function(option)
                if new is not None:
                    values = list(old)
                    for cell, value in zip(cells, new, strict=True):
                        if cell in place:
                            values[place[cell]] = value
                    found.append((tuple(values), max(level, its_level, at_least) + 1))
        return found
