"""Write-back caches: which lines a core holds, what they hold, and whether they are dirty."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from syncproof.models import outbox as boxes
from syncproof.models.transitions import Interned

Held = dict[int, tuple[tuple[int, ...], bool]]
"""By line: the value numbers of its cells, and whether it is dirty."""
WriteBack = Callable[[list[int], Sequence[boxes.Write]], None]


class Caches:
    """The caches of all processes; ``at`` is where they begin in a state."""

    def __init__(self, lines: Sequence[tuple[int, ...]], first_cell: int, at: int) -> None:
        self.lines = tuple(lines)
        self._first_cell, self.at = first_cell, at
        self.known = Interned(())
        self._line_of = {cell: i for i, line in enumerate(lines) for cell in line}

    def of(self, state: Sequence[int], process: int) -> Held:
        """The lines that a process's core holds."""
        known: tuple[tuple[int, tuple[tuple[int, ...], bool]], ...] = self.known.known[
            state[self.at + process]
        ]  # type: ignore[assignment]
        return dict(known)

    def put(self, work: list[int], process: int, held: Held) -> None:
        """Set the lines that a process's core holds."""
        work[self.at + process] = self.known.number(tuple(sorted(held.items())))

    def touched(self, cells: Sequence[int]) -> list[int]:
        """The lines that some cells lie in."""
        return list(dict.fromkeys(self._line_of[cell] for cell in cells))

    def fetch(self, state: Sequence[int], held: Held, cells: Sequence[int]) -> None:
        """Bring in the lines of ``cells`` that are not there."""
        for line in self.touched(cells):
            if line not in held:
                values = tuple(state[self._first_cell + cell] for cell in self.lines[line])
                held[line] = (values, False)

    def write(self, held: Held, writes: Sequence[boxes.Write]) -> None:
        """Change cells in lines that are there, which makes them dirty."""
        for cell, value, _ in writes:
            line = self._line_of[cell]
            values = list(held[line][0])
            values[self.lines[line].index(cell)] = value
            held[line] = (tuple(values), True)

    def read(self, held: Held, cells: Sequence[int]) -> tuple[int, ...]:
        """What lines that are there hold in ``cells``."""
        lines = [self._line_of[cell] for cell in cells]
        return tuple(
            held[line][0][self.lines[line].index(cell)]
            for line, cell in zip(lines, cells, strict=True)
        )

    def drop(self, work: list[int], held: Held, line: int, write_back: WriteBack) -> None:
        """Give a line up; it is written back whole if it is dirty."""
        values, dirty = held.pop(line, ((), False))
        if dirty:
            cells = self.lines[line]
            write_back(work, [(c, v, boxes.SET) for c, v in zip(cells, values, strict=True)])
