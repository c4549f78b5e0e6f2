"""Ghost state as cells with negative numbers: what a step does to it, on every value."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from syncproof.checkers.smt.contents import Contents, Numbers
from syncproof.checkers.smt.uncovered import Uncovered
from syncproof.models.operations import GhostCheck, GhostUpdate, Statement
from syncproof.models.system import System
from syncproof.models.transitions import Interned
from syncproof.models.values import typed

Key = tuple[str, Hashable]


class GhostCells:
    """A cell for each ghost and key that a step names; values are numbered apart from memory's."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._first = system.initial_transition().state
        self._values = Interned(None)  # each with what tells 1 from True
        self._cells: dict[Key, int] = {}
        self._keys: list[Key] = []
        self.contents = Contents(self.initial)

    def cell(self, key: Key) -> int:
        """The number, below 0, of a ghost under a key."""
        if key not in self._cells:
            self._keys.append(key)
            self._cells[key] = -len(self._keys)
        return self._cells[key]

    def initial(self, cell: int) -> int:
        """The number of what it holds once all roles have said what they say before they begin."""
        return self._number(self._system.ghosts.value(self._first, *self._keys[-cell - 1]))

    def _number(self, value: Hashable) -> int:
        return self._values.number((typed(value), value))

    def touched(self, statements: Sequence[Statement]) -> tuple[int, ...]:
        """The ghosts that a step looks at or changes."""
        keys = [(s.ghost, s.key) for s in statements if isinstance(s, GhostUpdate | GhostCheck)]
        return tuple(dict.fromkeys(map(self.cell, keys)))

    def updated(self, statements: Sequence[Statement]) -> tuple[int, ...]:
        """The ghosts that a step changes."""
        keys = [(s.ghost, s.key) for s in statements if isinstance(s, GhostUpdate)]
        return tuple(dict.fromkeys(map(self.cell, keys)))

    def after(self, statements: Sequence[Statement], cell: int, old: int) -> tuple[int, bool]:
        """What a ghost holds after a step that met ``old``, and whether every check of it held."""
        known: tuple[Hashable, Hashable] = self._values.known[old]  # type: ignore[assignment]
        value, holds = known[1], True
        try:
            for each in statements:
                if isinstance(each, GhostUpdate) and self.cell((each.ghost, each.key)) == cell:
                    value = each.function(value, *each.arguments)
                elif isinstance(each, GhostCheck) and self.cell((each.ghost, each.key)) == cell:
                    holds = holds and bool(each.predicate(value, *each.arguments))
        except Exception as error:
            what = f"a function of the ghost {self._keys[-cell - 1][0]} that takes not every value"
            raise Uncovered(what, f"{type(error).__name__}: {error}") from error
        return self._number(value), holds

    def note(self, name: Hashable, statements: Sequence[Statement]) -> None:
        """Tell which values a step may leave behind."""
        for cell in self.updated(statements):

            def change(old: Numbers, cell: int = cell) -> Numbers:
                return (self.after(statements, cell, old[0])[0],)

            self.contents.change((name, cell), (cell,), change)
