"""A walk over what a role reaches without a frame, and the watch that none of it changes.

Unchanged it is a constant, and each object of it stands for itself: globals that code names,
classes, defaults, attributes of functions, context variables, the random state, what is shared.
"""

from __future__ import annotations

import builtins
import gc
import random
import sys
import types
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum, EnumMeta
from functools import cache
from itertools import chain
from operator import call, itemgetter
from typing import Any

from syncproof.models.identity_scan import (
    BETWEEN,
    FORBIDDEN,
    LEAVES,
    MISSING,
    REFLECTIVE,
    UNREAD,
    Refused,
    Scan,
    plain,
    resolves,
    scan,
    singletons,
    trusted,
)
from syncproof.models.sealed import SealedDict, SealedList, SealedSet

SEALED = (SealedList, SealedDict, SealedSet)
WORD = 8
TUPLE_HEAD = 3 * WORD
_are_apart: Any = type({}.keys()).isdisjoint


@cache
def _string_at() -> Callable[[int, int], bytes]:
    from ctypes import string_at

    return string_at


def image(objects: tuple[object, ...]) -> bytes:
    """The identities of the objects in a tuple: its items lie behind its head of three words."""
    return _string_at()(id(objects) + TUPLE_HEAD, WORD * len(objects))


class Environment:
    """Everything a role reaches without a frame; each object has a position and must not change.

    What is met later is taken as it is then: equal fingerprints need it unchanged in both.
    """

    def __init__(self, shared: Sequence[object]) -> None:
        self.positions: dict[int, int] = {}
        self.trouble = ""
        self._kept: list[object] = []
        self._watched: list[object] = []
        self._dicts: list[dict[Any, object]] = []
        self._lengths: list[int] = []
        self._spaces: list[dict[str, object]] = []
        self._names: list[str] = []
        self._known_names: set[tuple[int, str]] = set()
        self._probes: list[tuple[str, Callable[[], object], object]] = []
        self._baseline = b""
        self._held: tuple[object, ...] = ()
        self._named: list[object] = []
        self._by_space: dict[int, tuple[dict[str, object], list[str], set[str]]] = {}
        self._getters: list[Callable[[dict[str, object]], tuple[object, ...]]] = []
        self._filled: list[dict[str, object]] = []
        self._empty: list[dict[str, object]] = []  # these spaces come first in the next two
        self._views: list[KeysView[str]] = []
        self._absent: list[set[str]] = []
        self._modules: list[dict[str, object]] = []
        self._stores: list[Mapping[str, object]] = []
        self._attributes: set[str] = set()
        self._stored: set[str] = set()
        self._codes: set[tuple[int, int]] = set()
        self._bare: set[int] = set()  # globals of which only some names are watched
        self._dynamic = False
        self._shapes: dict[tuple[int, ...], int] = {}
        for each in singletons():
            self._place(each)
        self.adopt(*shared)

    def names_built_in(self, name: str) -> bool:
        """Whether code names this built-in function."""
        return (id(vars(builtins)), name) in self._known_names

    # Whether it changed

    def _now(self) -> tuple[object, ...]:
        """All that is held; a `KeyError` if there is no longer anything under some name."""
        found = gc.get_referents(*self._watched, *self._dicts)  # of a dict perhaps no keys
        found += chain.from_iterable(self._dicts)
        found += chain.from_iterable(map(call, self._getters, self._filled))
        return tuple(found)

    def changed(self) -> str:
        """What is no longer as it was at the start; empty if nothing is."""
        if self.trouble:
            return self.trouble
        try:
            is_same = image(self._now()) == self._baseline
        except KeyError:
            is_same = False
        if not is_same or [*map(len, self._dicts)] != self._lengths or not self._is_absent():
            return self._which()
        for name, probe, before in self._probes:
            if probe() != before:
                return f"{name} changed"
        return ""

    def _is_absent(self) -> bool:
        """Whether there is still nothing under the names under which there was nothing."""
        first = 0 if any(self._empty) else len(self._empty)
        return all(map(_are_apart, self._views[first:], self._absent[first:]))

    def _which(self) -> str:
        for space, name, old in zip(self._spaces, self._names, self._named, strict=True):
            if space.get(name, MISSING) is not old:
                where = space.get("__name__", space.get("__module__", "a function"))
                return f"{name} of {where} changed"
        for new, old in zip(self._now(), self._held, strict=False):
            if new is BETWEEN[0] or old is BETWEEN[0]:
                break  # something holds more or less than it did
            if new is not old:
                return f"{_named(old)} became {_named(new)} in what all runs share"
        return "what all runs share changed"

    # What belongs to it

    def adopt(self, *objects: object) -> None:
        """Let these objects, and all that they reach, stand for themselves."""
        self._grow(lambda: self._reach(objects))

    def adopt_code(self, code: types.CodeType, space: dict[str, Any]) -> None:
        """Let a code object, its constants and the globals that it names stand for themselves."""
        if (id(code), id(space)) not in self._codes:
            self._grow(lambda: self._reach_code(code, space))

    def shape(self, inside: dict[str, object]) -> int:
        """A number for the attribute names of an object, in their order."""
        key = tuple(map(id, inside))
        found = self._shapes.get(key)
        if found is None:
            for name in inside:
                self._place(name)  # kept alive, so that its identity stays its own
            found = self._shapes[key] = len(self._shapes)
        return found

    def _grow(self, reach: Callable[[], None]) -> None:
        if self._held and (trouble := self.changed()):
            raise Refused(trouble)
        try:
            reach()
        except Refused as refused:
            self.trouble = str(refused)
            raise
        finally:
            self._sort_names()
            self._held = self._now()
            self._baseline = image(self._held)
            self._lengths = [*map(len, self._dicts)]

    def _sort_names(self) -> None:
        """Put new names with the others of their space, by whether there is anything under them."""
        known = len(self._named)
        for space, name in zip(self._spaces[known:], self._names[known:], strict=True):
            held = space.get(name, MISSING)
            self._named.append(held)
            _, there, absent = self._by_space.setdefault(id(space), (space, [], set()))
            absent.add(name) if held is MISSING else there.append(name)
        if known == len(self._named):
            return
        filled = [(space, names) for space, names, _ in self._by_space.values() if names]
        self._filled = [space for space, _ in filled]
        self._getters = [itemgetter(names[0], *names) for _, names in filled]
        lacking = [(space, names) for space, _, names in self._by_space.values() if names]
        lacking.sort(key=lambda each: len(each[0]))
        self._empty = [space for space, _ in lacking if not space]
        self._views = [space.keys() for space, _ in lacking]
        self._absent = [names for _, names in lacking]

    def _place(self, each: object) -> None:
        if id(each) not in self.positions:
            self.positions[id(each)] = ~len(self.positions)
            self._kept.append(each)

    def _reach(self, objects: Iterable[object]) -> None:
        waiting = list(objects)
        while waiting:
            each = waiting.pop()
            if id(each) in self.positions and id(each) not in self._bare:
                continue
            self._bare.discard(id(each))
            self._place(each)
            waiting.extend(self._inside(each))

    def _watch(self, each: object) -> None:
        self._watched += (each, BETWEEN)

    def _name(self, space: Mapping[str, object], names: Iterable[str]) -> None:
        """Watch names of a namespace, absent ones too."""
        holder: Any = gc.get_referents(space)[0] if type(space) is types.MappingProxyType else space
        for name in names:
            if (id(holder), name) not in self._known_names:
                self._known_names.add((id(holder), name))
                self._spaces.append(holder)
                self._names.append(name)

    def _inside(self, each: object) -> Iterable[object]:
        """What an object reaches, after it is put under watch."""
        kind = type(each)
        if kind in LEAVES or kind.__module__ == "typing":
            return ()
        if isinstance(each, tuple | frozenset) and kind in (tuple, frozenset):
            return tuple(each)
        if isinstance(each, slice):
            return (each.start, each.stop, each.step)
        if kind is list:
            self._watch(each)
            return tuple(each)  # type: ignore[arg-type]
        if kind in SEALED:
            return self._sealed(each)
        if kind is dict or kind is types.MappingProxyType:
            items: Any = each if kind is dict else gc.get_referents(each)[0]
            if type(items) is not dict:
                raise Refused(f"a view of {type(items).__qualname__}")
            self._dicts.append(items)
            return (*items.keys(), *items.values())
        if kind is bytearray:
            array: Any = each
            self._probes.append(("a bytearray", lambda: bytes(array), bytes(array)))
            return ()
        if isinstance(each, types.ModuleType):
            return self._module(each)
        if isinstance(each, type):
            return self._class(each)
        return self._callable(each, kind)

    def _sealed(self, each: Any) -> Iterable[object]:
        """A list, dict or set of the protocol: what it holds, and attributes that it may get."""
        self._watch(each)
        self._dicts.append(vars(each))
        if isinstance(each, dict):
            self._dicts.append(each)
            return (*each.keys(), *each.values(), *vars(each).values())
        return (*each, *vars(each).values())

    def _callable(self, each: Any, kind: type) -> Iterable[object]:
        if kind is types.FunctionType:
            return self._function(each)
        if kind is types.CellType:
            self._watch(each)
            return gc.get_referents(each)
        if kind is types.MethodType:
            return (each.__func__, each.__self__)
        if kind in (staticmethod, classmethod):
            return (each.__func__,)
        if kind is property:
            return (each.fget, each.fset, each.fdel)
        if kind is types.BuiltinMethodType:
            return self._builtin(each)
        if kind is ContextVar:
            value: Callable[[], int] = lambda: id(each.get(MISSING))  # noqa: E731
            self._probes.append((f"the context variable {each.name}", value, value()))
            return (each.get(None),)
        return self._instance(each, kind)

    def _builtin(self, each: Any) -> Iterable[object]:
        if isinstance(each.__self__, random.Random):
            if each.__self__ is not getattr(random, "_inst", None):
                raise Refused("a random generator of its own cannot be captured")
            self._probes.append(("the global random state", random.getstate, random.getstate()))
            return ()
        if isinstance(each.__self__, types.ModuleType) or each.__self__ is None:
            if not trusted(each.__module__) or each.__name__ in FORBIDDEN:
                raise Refused(f"{each.__module__}.{each.__name__} may depend on more than values")
            return ()
        if type(each.__self__) is list and each.__name__ == "append":
            return ()  # it can only write, and nothing else that is watched may read it
        return (each.__self__,)

    def _function(self, each: types.FunctionType) -> Iterable[object]:
        space = each.__globals__
        if trusted(space.get("__name__")):
            self._place(each.__code__)
            return ()
        _ = each.__dict__, each.__annotations__  # made on first use: not a change
        self._watch(each)
        self._reach_code(each.__code__, space, _generated(each))
        self._stores.append(each.__dict__)
        self._name(each.__dict__, sorted(self._stored))
        return (
            each.__defaults__,
            each.__kwdefaults__,
            *(each.__closure__ or ()),
            *each.__dict__.values(),
        )

    def _reach_code(
        self, code: types.CodeType, space: dict[str, Any], generated: bool = False
    ) -> None:
        if (id(code), id(space)) in self._codes:
            return
        self._codes.add((id(code), id(space)))
        self._place(code)
        if id(space) not in self.positions:
            self._bare.add(id(space))
            self._place(space)
        self._reach(each for each in code.co_consts if type(each) is not types.CodeType)
        if not trusted(space.get("__name__")):
            if not generated:
                self._check_instructions(code, space)
            self._reach_names(scan(code), space, ("hash",) if generated else ())
        for each in code.co_consts:
            if type(each) is types.CodeType:
                self._reach_code(each, space)

    def _check_instructions(self, code: types.CodeType, space: dict[str, Any]) -> None:
        found = scan(code)
        if found.problem:
            raise Refused(found.problem)
        if "getattr" in found.read:
            self._dynamic = True
            if self._modules or REFLECTIVE & {c for c in code.co_consts if type(c) is str}:
                raise Refused("getattr beside a module object: which of its names is not known")
        for line, path in found.compared:
            self._check_compared(code, line, path, space)

    def _reach_names(self, found: Scan, space: dict[str, Any], without: tuple[str, ...]) -> None:
        names = vars(builtins)
        if space.get("__builtins__", names) not in (builtins, names):
            raise Refused("the built-in names were replaced")
        self._more_attributes(found)
        self._name(space, found.read)
        self._name(names, [name for name in found.read if name not in space])
        self._reach(
            space[name] if name in space else names[name]
            for name in found.read
            if name not in without and (name in space or name in names)
        )

    def _check_compared(
        self, code: types.CodeType, line: int, path: tuple[str, ...], space: dict[str, Any]
    ) -> None:
        """``is`` is asked only about an object that stands for itself."""
        if not path:
            return
        value = space.get(path[0], vars(builtins).get(path[0], MISSING))
        for name in path[1:]:
            value = getattr(value, name, MISSING)
        if value is MISSING or type(value) in (int, float, str, bytes, tuple, complex):
            raise Refused(f"{code.co_qualname} compares by identity in line {line}")

    def _more_attributes(self, found: Scan) -> None:
        more = found.attributes - self._attributes
        self._attributes |= more
        for module in self._modules:
            self._attributes_of(module, sorted(more))
        stored = found.stored - self._stored
        self._stored |= stored
        for space in self._stores:
            self._name(space, sorted(stored))

    def _attributes_of(self, module: dict[str, object], names: Sequence[str]) -> None:
        if self._dynamic:
            raise Refused("getattr beside a module object: which of its names is not known")
        self._name(module, names)
        self._reach([module[name] for name in names if name in module])

    def _module(self, each: types.ModuleType) -> Iterable[object]:
        name = each.__name__
        own = hasattr(each, "__file__") and name.partition(".")[0] not in sys.stdlib_module_names
        if name == "random" or trusted(name) or own:
            self._modules.append(vars(each))
            self._attributes_of(vars(each), sorted(self._attributes))
            return ()
        raise Refused(f"the module {name} may keep state that cannot be seen")

    def _class(self, each: type) -> Iterable[object]:
        if not each.__flags__ & (1 << 9):  # not a heap type: built in, immutable
            if not trusted(each.__module__) and each.__module__ != "builtins":
                raise Refused(f"the class {each.__qualname__} may keep state that cannot be seen")
            return ()
        self._stores.append(each.__dict__)
        self._name(each.__dict__, sorted(self._stored))
        if trusted(each.__module__) and resolves(each):
            return each.__mro__[1:-1]
        inside = [value for name, value in vars(each).items() if name not in UNREAD]
        return (*each.__mro__[1:-1], type(each), *inside)

    def _instance(self, each: Any, kind: type) -> Iterable[object]:
        if isinstance(kind, EnumMeta) and isinstance(each, Enum):
            if kind.__members__.get(each.name) is not each:
                raise Refused(f"{kind.__qualname__} value that is no member")
        elif why := plain(kind):
            raise Refused(f"an object of {kind.__module__}.{kind.__qualname__}, which {why}")
        inside = vars(each)
        self._watch(each)
        self._dicts.append(inside)
        return (kind, *inside.keys(), *inside.values())


def _generated(function: types.FunctionType) -> bool:
    """Whether `dataclasses` wrote this method, which then depends on its closure alone."""
    code = function.__code__
    return code.co_filename == "<string>" and code.co_name.startswith("__")


def _named(each: object) -> str:
    try:
        return repr(each)[:60]
    except Exception:
        return f"an object of {type(each).__qualname__}"
