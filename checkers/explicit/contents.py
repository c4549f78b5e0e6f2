"""What atoms of memory may hold during an abstract run: sets of contents that only grow.

A store may come at any time and any number of times. An add or an update, which would lead on and
on from its own result, comes at most as often as there are places that make it: each content
carries which of them have surely led to it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import product
from math import prod

from syncproof.models.outbox import ADD, SET, Write
from syncproof.models.system import System
from syncproof.models.transitions import State

MOST_CONTENTS = 32
MOST_WRITES = 20_000
"""Of one abstract run, each on all that an atom may hold."""


class GiveUp(Exception):
    """The over-approximation has grown too large to be worth it."""


Contents = tuple[int, ...]
"""The values of the cells of one atom."""

Effect = tuple[Hashable, ...]
"""An add (by its writes) or an update (by the action that makes it)."""

Usage = frozenset[tuple[Effect, int]]
"""Which effects have led to some contents; equal adds are used in the order of their numbers."""

UNUSED: Usage = frozenset()


class Atoms:
    """The cells of a system that change together: their atom, and their index in it.

    Each hidden lock is an atom by itself.
    """

    def __init__(self, system: System) -> None:
        numbers: dict[object, list[int]] = {}
        for cell, each in enumerate(system.cells):
            numbers.setdefault((str(each.slot), each.atom), []).append(cell)
        if system.features.locks:
            for cell in range(len(system.cells), 2 * len(system.cells)):
                numbers[cell] = [cell]
        self.cells = tuple(map(tuple, numbers.values()))
        where = {c: (a, i) for a, group in enumerate(self.cells) for i, c in enumerate(group)}
        self.atom_of = tuple(where[cell][0] for cell in sorted(where))
        self.index_in = tuple(where[cell][1] for cell in sorted(where))
        self._split: dict[tuple[Write, ...], tuple[tuple[int, tuple[Write, ...]], ...]] = {}

    def split(self, writes: tuple[Write, ...]) -> tuple[tuple[int, tuple[Write, ...]], ...]:
        """The writes of one step by the atom that they go to."""
        found = self._split.get(writes)
        if found is None:
            by_atom: dict[int, list[Write]] = {}
            for write in writes:
                by_atom.setdefault(self.atom_of[write[0]], []).append(write)
            found = tuple((atom, tuple(group)) for atom, group in by_atom.items())
            self._split[writes] = found
        return found


class AbstractMemory:
    """The contents of all atoms from ``state`` on; ``grown`` is told of each atom that gains some.

    Raises `GiveUp` when an atom has more than `MOST_CONTENTS`, or after `MOST_WRITES`.
    """

    def __init__(
        self, system: System, atoms: Atoms, state: State, grown: Callable[[int], None]
    ) -> None:
        self.system, self.atoms, self.state, self._grown = system, atoms, state, grown
        self._held: dict[int, dict[Contents, list[Usage]]] = {}
        self._stores: dict[int, dict[tuple[Write, ...], None]] = {}
        self._copies: dict[int, dict[int, None]] = {}
        self._effects: dict[int, dict[Effect, int]] = {}
        self._instances: set[tuple[int, Hashable]] = set()
        self._updates: dict[Effect, tuple[int, dict[tuple[int | None, int], None]]] = {}
        self._written = 0

    # Reading

    def contents(self, atom: int) -> dict[Contents, list[Usage]]:
        """What an atom may hold, and the effects that have led to it."""
        found = self._held.get(atom)
        if found is None:
            found = self._held[atom] = {self._now(self.state, atom): [UNUSED]}
        return found

    def contents_from(self, state: State, atom: int) -> set[Contents]:
        """What an atom may hold from ``state`` on, a state that the run covers."""
        first = (self._now(state, atom), UNUSED)
        seen, work = {first}, [first]
        while work:
            held, usage = work.pop()
            for after in self._next(atom, held, usage):
                if after not in seen:
                    if len(seen) >= MOST_CONTENTS:
                        raise GiveUp
                    seen.add(after)
                    work.append(after)
        return {held for held, _ in seen}

    def _now(self, state: State, atom: int) -> Contents:
        first = self.system.first_cell
        return tuple([state[first + cell] for cell in self.atoms.cells[atom]])

    def combinations(
        self,
        cells: tuple[int, ...],
        state: State | None = None,
        without: Effect | None = None,
    ) -> Iterator[tuple[int, ...]]:
        """What a read of ``cells`` may give: any contents of one atom with any of another.

        From ``state`` on, if it is given; not what the effect ``without`` has surely led to.
        """
        atom_of, index_in = self.atoms.atom_of, self.atoms.index_in
        atoms = list(dict.fromkeys([atom_of[cell] for cell in cells]))
        places = [(atoms.index(atom_of[cell]), index_in[cell]) for cell in cells]
        sets = [sorted(self._readable(atom, state, without)) for atom in atoms]
        if prod(map(len, sets)) > MOST_CONTENTS:
            raise GiveUp
        seen = [tuple([each[a][i] for a, i in places]) for each in product(*sets)]
        return iter(dict.fromkeys(seen))

    def _readable(
        self, atom: int, state: State | None, without: Effect | None
    ) -> Iterable[Contents]:
        if state is not None:
            return self.contents_from(state, atom)
        found = self.contents(atom)
        if without is None:
            return found
        return [held for held, usages in found.items() if any(_free(without, u) for u in usages)]

    # Writing

    def store(self, writes: tuple[Write, ...], instance: Hashable) -> None:
        """Writes of one step, at any time from now on; ``instance`` tells equal adds apart."""
        for atom, group in self.atoms.split(writes):
            if any(mode == ADD for _, _, mode in group):
                self._count(atom, ("add", group), instance)
            elif group not in self._stores.setdefault(atom, {}):
                self._stores[atom][group] = None
                for held, usages in tuple(self.contents(atom).items()):
                    for usage in tuple(usages):
                        self._may_hold(atom, self.applied(held, group), usage)

    def _count(self, atom: int, effect: Effect, instance: Hashable) -> None:
        if (atom, instance) not in self._instances:
            self._instances.add((atom, instance))
            effects = self._effects.setdefault(atom, {})
            effects[effect] = effects.get(effect, 0) + 1
            self._again(atom)

    def copy(self, source: int, target: int) -> None:
        """A copy from cell to cell, at any time from now on."""
        self._copies.setdefault(source, {})[target] = None
        for (value,) in tuple(self.combinations((source,))):
            self.store(((target, value, SET),), None)

    def update(self, effect: Effect, cell: int, old: int | None, new: int) -> None:
        """An action that writes ``new`` where it reads ``old`` (None: anywhere), at most once."""
        atom = self.atoms.atom_of[cell]
        _, table = self._updates.setdefault(effect, (self.atoms.index_in[cell], {}))
        if (old, new) not in table:
            table[old, new] = None
            self._effects.setdefault(atom, {})[effect] = 1
            self._again(atom)

    def _again(self, atom: int) -> None:
        for held, usages in tuple(self.contents(atom).items()):
            for usage in tuple(usages):
                for after, used in self._next(atom, held, usage):
                    self._may_hold(atom, after, used)

    def _next(self, atom: int, held: Contents, usage: Usage) -> Iterator[tuple[Contents, Usage]]:
        """What one write makes of some contents."""
        for store in tuple(self._stores.get(atom, ())):
            yield self.applied(held, store), usage
        for effect, count in tuple(self._effects.get(atom, {}).items()):
            number = sum(used == effect for used, _ in usage)
            if number < count:
                for after in self._affected(effect, held):
                    yield after, usage | {(effect, number)}

    def _affected(self, effect: Effect, held: Contents) -> Iterator[Contents]:
        if effect not in self._updates:
            writes: tuple[Write, ...] = effect[1]  # type: ignore[assignment]
            yield self.applied(held, writes)
            return
        index, table = self._updates[effect]
        for old, new in tuple(table):
            if old is None or old == held[index]:
                yield (*held[:index], new, *held[index + 1 :])

    def _may_hold(self, atom: int, held: Contents, usage: Usage) -> None:
        self._written += 1
        if self._written > MOST_WRITES:
            raise GiveUp
        known = self.contents(atom)
        usages = known.get(held, [])
        if any(each <= usage for each in usages):
            return
        if sum(map(len, known.values())) >= MOST_CONTENTS:
            raise GiveUp
        known[held] = [each for each in usages if not usage <= each] + [usage]
        for after, used in tuple(self._next(atom, held, usage)):
            self._may_hold(atom, after, used)
        if not usages:
            for cell, value in zip(self.atoms.cells[atom], held, strict=True):
                for target in tuple(self._copies.get(cell, ())):
                    self.store(((target, value, SET),), None)
        self._grown(atom)

    def applied(self, held: Contents, writes: Iterable[Write]) -> Contents:
        """The contents of an atom after some writes to it."""
        after = list(held)
        for cell, value, mode in writes:
            index = self.atoms.index_in[cell]
            after[index] = self.sum(after[index], value) if mode == ADD else value
        return tuple(after)

    def sum(self, one: int, other: int) -> int:
        """The number of the sum of two numbered values."""
        a, b = self.system.values[one], self.system.values[other]
        if not (isinstance(a, int) and isinstance(b, int)):
            raise GiveUp
        return self.system.values.number(a + b)


def _free(effect: Effect, usage: Usage) -> bool:
    return all(used != effect for used, _ in usage)
