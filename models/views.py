"""Which older values a load may still be served with, where loads are not in program order.

A view maps an atom to what it held since the process last ordered its loads, oldest first; the
current value is not in it. It is one number in a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncproof.models.memory import Cell
from syncproof.models.transitions import Interned

Atom = tuple[int, int]
"""(first cell of the block, atom of the block)."""
History = tuple[tuple[int, ...], ...]


class Views:
    """The views of all processes; ``at`` is where they begin in a state."""

    def __init__(self, cells: Sequence[Cell], first_cell: int, at: int) -> None:
        self._first_cell, self.at = first_cell, at
        self.known = Interned(())
        self._cells: dict[Atom, list[int]] = {}
        self._atom_of: list[Atom] = []
        first = 0
        for number, cell in enumerate(cells):
            if cell.slot != cells[first].slot:
                first = number
            atom = (first, cell.atom)
            self._cells.setdefault(atom, []).append(number)
            self._atom_of.append(atom)

    def place(self, process: int) -> int:
        """Where the view of a process stands in a state."""
        return self.at + process

    def _of(self, state: Sequence[int], process: int) -> dict[Atom, History]:
        found: tuple[tuple[Atom, History], ...] = self.known.known[state[self.at + process]]  # type: ignore[assignment]
        return dict(found)

    def _number(self, view: dict[Atom, History]) -> int:
        return self.known.number(tuple(sorted(view.items())))

    def older(
        self, state: Sequence[int], process: int, cells: tuple[int, ...]
    ) -> Iterator[tuple[dict[int, int], int]]:
        """Older values that a read of ``cells`` may give, each with the view after it."""
        view = self._of(state, process)
        for atom in dict.fromkeys(self._atom_of[cell] for cell in cells):
            for index, values in enumerate(view.get(atom, ())):
                old = zip(self._cells[atom], values, strict=True)
                given = {cell: value for cell, value in old if cell in cells}
                yield given, self.after(state, process, cells, (atom, index))

    def after(
        self,
        state: Sequence[int],
        process: int,
        cells: tuple[int, ...],
        used: tuple[Atom, int] | None = None,
    ) -> int:
        """The view after a read: nothing older of an atom than what was read can be read again."""
        view = self._of(state, process)
        for atom in {self._atom_of[cell] for cell in cells}:
            if used is not None and atom == used[0]:
                view[atom] = view[atom][used[1] :]
            else:
                view.pop(atom, None)
        return self._number(view)

    def remember(self, work: list[int], process: int, written: Sequence[int]) -> None:
        """Keep what is about to be overwritten for the loads of a process."""
        view = self._of(work, process)
        for atom in dict.fromkeys(self._atom_of[cell] for cell in written):
            old = tuple(work[self._first_cell + cell] for cell in self._cells[atom])
            kept = view.get(atom, ())
            if not kept or kept[-1] != old:
                view[atom] = (*kept, old)
        work[self.at + process] = self._number(view)
