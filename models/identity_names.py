"""Names of modules, classes and functions, watched with what is under them, also if that is
nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, KeysView
from copy import copy
from itertools import chain
from operator import call, itemgetter
from typing import Any, TypeVar

from syncproof.models.identity_scan import MISSING

T = TypeVar("T")
Space = dict[str, object]
_are_apart: Any = type({}.keys()).isdisjoint


def with_its_own(each: T) -> T:
    """A copy of an object, with lists, sets and dicts of its own that hold the same."""
    made = copy(each)
    for name, value in vars(each).items():
        if type(value) in (list, set, dict):
            setattr(made, name, value.copy())
    return made


class WatchedNames:
    """Names in spaces. They are asked for often, so those of one space are kept together."""

    def __init__(self) -> None:
        self._known: set[tuple[int, str]] = set()
        self._watched: list[tuple[Space, str]] = []
        self._at_first: list[object] = []
        self._by_space: dict[int, tuple[Space, list[str], set[str]]] = {}
        self._getters: list[Callable[[Space], tuple[object, ...]]] = []
        self._filled: list[Space] = []
        self._empty: list[Space] = []  # these spaces come first in the next two
        self._views: list[KeysView[str]] = []
        self._absent: list[set[str]] = []

    def copy(self) -> WatchedNames:
        """The same names under watch, to which others can be added."""
        made = with_its_own(self)
        made._by_space = {
            number: (space, [*there], {*absent})
            for number, (space, there, absent) in self._by_space.items()
        }
        made._arrange()
        return made

    def add(self, space: Space, names: Iterable[str]) -> None:
        """Watch names from when they are settled."""
        for name in names:
            if (id(space), name) not in self._known:
                self._known.add((id(space), name))
                self._watched.append((space, name))

    def has(self, space: Space, name: str) -> bool:
        """Whether a name is watched."""
        return (id(space), name) in self._known

    def settle(self) -> None:
        """See what is under the names that were added."""
        added = self._watched[len(self._at_first) :]
        for space, name in added:
            held = space.get(name, MISSING)
            self._at_first.append(held)
            _, there, absent = self._by_space.setdefault(id(space), (space, [], set()))
            absent.add(name) if held is MISSING else there.append(name)
        if added:
            self._arrange()

    def _arrange(self) -> None:
        """Put together what is asked of each space."""
        filled = [(space, names) for space, names, _ in self._by_space.values() if names]
        self._filled = [space for space, _ in filled]
        self._getters = [itemgetter(names[0], *names) for _, names in filled]
        lacking = [(space, names) for space, _, names in self._by_space.values() if names]
        lacking.sort(key=lambda each: len(each[0]))
        self._empty = [space for space, _ in lacking if not space]
        self._views = [space.keys() for space, _ in lacking]
        self._absent = [names for _, names in lacking]

    def held(self) -> Iterator[object]:
        """What is under the names that had something; a `KeyError` if one has nothing now."""
        return chain.from_iterable(map(call, self._getters, self._filled))

    def are_absent(self) -> bool:
        """Whether there is still nothing under the names under which there was nothing."""
        first = 0 if any(self._empty) else len(self._empty)
        return all(map(_are_apart, self._views[first:], self._absent[first:]))

    def changed(self) -> str:
        """A name under which there is something else than there was; empty if there is none."""
        for (space, name), old in zip(self._watched, self._at_first, strict=True):
            if space.get(name, MISSING) is not old:
                where = space.get("__name__", space.get("__module__", "a function"))
                return f"{name} of {where} changed"
        return ""
