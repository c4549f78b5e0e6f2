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
import typing
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum, EnumMeta
from functools import cached_property
from itertools import chain
from typing import Any

from syncproof.models.identity_classes import (
    TELLS_VALUES,
    classes_of_package,
    closed_over,
    feigns,
    hides_state,
    image,
    is_generated,
    is_named_tuple,
    is_set,
    is_written,
    plain,
    probed,
    probes_of,
    resolves,
    shown,
    slots_of,
)
from syncproof.models.identity_names import WatchedNames, with_its_own
from syncproof.models.identity_scan import (
    ALIASES,
    BETWEEN,
    DESCRIPTORS,
    FORBIDDEN,
    LEAVES,
    MISSING,
    PACKAGE,
    PURE,
    REFLECTIVE,
    UNREAD,
    Refused,
    Scan,
    is_piece,
    place_of,
    refuse_aliases,
    scan,
    singletons,
    trusted,
    trusted_space,
)
from syncproof.models.sealed import SealedDict, SealedList, SealedSet

SEALED = (SealedList, SealedDict, SealedSet)
IN_ORDER = (list, set, deque)
"""Containers of which the collector tells what they hold, in their order."""
NAMES_OF_MODULES = ("__getattr__", "__name__", "__doc__")
DICTS = (Counter, OrderedDict, defaultdict)


class Environment:
    """Everything a role reaches without a frame; each object has a position and must not change.

    What is met later is taken as it is then: equal fingerprints need it unchanged in both.
    ``compares``: code that compares by identity is refused, as equal values may be two objects.
    """

    def __init__(self, shared: Sequence[object], compares: bool = True) -> None:
        self._compares = compares
        self.positions: dict[int, int] = {}
        self.trouble = ""
        self._kept: list[object] = []
        self._watched: list[object] = []
        self._dicts: list[dict[Any, object]] = []
        self._lengths: list[int] = []
        self._names = WatchedNames()
        self._probes: list[tuple[str, Callable[[], object], object]] = []
        self._baseline = b""
        self._held: tuple[object, ...] = ()
        self._modules: list[dict[str, object]] = []
        self._stores: list[Mapping[str, object]] = []
        self._attributes: set[str] = set()
        self._stored: set[str] = set()
        self._codes: set[tuple[int, int]] = set()
        self._bare: set[int] = set()  # globals of which only some names are watched
        self._ours: list[Mapping[str, object]] = []
        self._computes = self._pieces = False  # names of attributes
        self._shapes: dict[tuple[int, ...], int] = {}
        for each in singletons():
            self._place(each)
        self.adopt(*shared)

    def beside(self, *objects: object) -> Environment:
        """Another one that has all of this one, and these objects; a `Refused` if this one is no
        longer as it was."""
        made = with_its_own(self)
        made._names = self._names.copy()
        made.adopt(*objects)
        return made

    def names_built_in(self, name: str) -> bool:
        """Whether code names this built-in function."""
        return self._names.has(vars(builtins), name)

    # Whether it changed

    def _now(self) -> tuple[object, ...]:
        """All that is held; a `KeyError` if there is no longer anything under some name."""
        found = gc.get_referents(*self._watched, *self._dicts)  # of a dict perhaps no keys
        found += chain.from_iterable(self._dicts)
        if not TELLS_VALUES:
            found += chain.from_iterable(map(dict.values, self._dicts))
        found += self._names.held()
        return tuple(found)

    def changed(self) -> str:
        """What is no longer as it was at the start; empty if nothing is."""
        if self.trouble:
            return self.trouble
        try:
            is_same = image(self._now()) == self._baseline
        except KeyError:
            is_same = False
        if not is_same or [*map(len, self._dicts)] != self._lengths or not self._names.are_absent():
            return self._which()
        for name, probe, before in self._probes:
            if probe() != before:
                return f"{name} changed"
        return ""

    def _which(self) -> str:
        if changed := self._names.changed():
            return changed
        for new, old in zip(self._now(), self._held, strict=False):
            if new is BETWEEN[0] or old is BETWEEN[0]:
                break  # something holds more or less than it did
            if new is not old:
                return f"{shown(old)} became {shown(new)} in what all runs share"
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
            self._names.settle()
            self._held = self._now()
            self._baseline = image(self._held)
            self._lengths = [*map(len, self._dicts)]

    def _place(self, each: object) -> None:
        if id(each) not in self.positions:
            self.positions[id(each)] = ~len(self.positions)
            self._kept.append(each)

    def _reach(self, objects: Iterable[object]) -> None:
        waiting = list(objects)
        refuse_aliases(waiting)
        while waiting:
            each = waiting.pop()
            if id(each) in self.positions and id(each) not in self._bare:
                continue
            self._bare.discard(id(each))
            self._place(each)
            inside = tuple(self._inside(each))
            refuse_aliases(() if isinstance(each, type) else inside)
            waiting += inside

    def _watch(self, each: object) -> None:
        self._watched += (each, BETWEEN)

    def _name(self, space: Mapping[str, object], names: Iterable[str]) -> None:
        """Watch names of a namespace, absent ones too."""
        holder: Any = gc.get_referents(space)[0] if type(space) is types.MappingProxyType else space
        self._names.add(holder, names)

    def _inside(self, each: object) -> Iterable[object]:
        """What an object reaches, after it is put under watch."""
        kind = type(each)
        if feigns(kind) or (isinstance(each, type) and feigns(each)):
            raise Refused(f"{shown(each)} is of a class that says itself what it equals")
        self._probes += probes_of(each)
        if kind in DESCRIPTORS and getattr(each, "__name__", "") in REFLECTIVE:
            raise Refused(f"{getattr(each, '__qualname__', '')} may reach anything")
        if kind in LEAVES:
            self._note_names(False, isinstance(each, str) and is_piece(each))
            return ()
        if kind in ALIASES:
            return gc.get_referents(each)
        if isinstance(each, tuple | frozenset) and kind in (tuple, frozenset):
            return tuple(each)
        if isinstance(each, slice):
            return (each.start, each.stop, each.step)
        if kind in IN_ORDER:
            self._watch(each)
            return tuple(each)  # type: ignore[arg-type]
        if kind in SEALED or kind in DICTS:
            return self._sealed(each)
        if kind is dict or kind is types.MappingProxyType:
            items: Any = each if kind is dict else gc.get_referents(each)[0]
            if type(items) is not dict:
                raise Refused(f"a view of {type(items).__qualname__}")
            self._dicts.append(items)
            return (*items.keys(), *items.values())
        if kind is bytearray:
            return ()
        if isinstance(each, types.ModuleType):
            return self._module(each)
        if isinstance(each, type):
            return self._class(each)
        if kind.__module__ == "typing" and trusted_space(vars(typing)):
            return self._of_typing(each)
        return self._callable(each, kind)

    def _of_typing(self, each: object) -> Iterable[object]:
        """What annotations are made of; most of it passes attributes on to what it stands for."""
        inside = getattr(each, "__dict__", None)
        self._dicts += [inside] if isinstance(inside, dict) else []
        self._watch(each)
        held = [one for one in gc.get_referents(each) if one is not inside]
        return [*held, *(inside or {}).values()]

    def _sealed(self, each: Any) -> Iterable[object]:
        """A list, dict or set of the protocol, or a dict of a class of Python's: what it holds, and
        attributes that it may get."""
        attributes = getattr(each, "__dict__", {})
        self._watch(each)
        self._dicts.append(attributes)
        if isinstance(each, dict):
            self._dicts.append(each)
            made = (each.default_factory,) if type(each) is defaultdict else ()
            return (*each.keys(), *each.values(), *attributes.values(), *made)
        return (*each, *attributes.values())

    def _callable(self, each: Any, kind: type) -> Iterable[object]:
        if kind is types.FunctionType:
            return self._function(each)
        if kind is types.CellType:
            self._watch(each)
            return gc.get_referents(each)
        if kind is types.MethodType:
            return (each.__func__, each.__self__)
        if kind in (staticmethod, classmethod):
            self._watch(each)
            self._dicts.append(vars(each))
            return (each.__func__, *vars(each).values())
        if kind is property:
            self._watch(each)
            return (each.fget, each.fset, each.fdel)
        if kind is cached_property:
            return self._cached_property(each)
        if kind is types.BuiltinMethodType:
            return self._builtin(each)
        if kind is ContextVar:
            value: Callable[[], int] = lambda: id(each.get(MISSING))  # noqa: E731
            self._probes.append((f"the context variable {each.name}", value, value()))
            return (each.get(None),)
        return self._instance(each, kind)

    def _stores_into(self, space: Mapping[str, object]) -> None:
        """Watch all names that code stores anywhere."""
        self._stores.append(space)
        self._name(space, sorted(self._stored))

    def _cached_property(self, each: Any) -> Iterable[object]:
        inside = vars(each)
        self._dicts.append(inside)
        lock = inside.get("lock")  # Python 3.11: it shows whether it is held, and nothing else
        if lock is not None:
            self._probes.append(("the lock of a property", lambda: repr(lock), repr(lock)))
        return [value for value in inside.values() if value is not lock]

    def _builtin(self, each: Any) -> Iterable[object]:
        if each is getattr or each.__name__ in REFLECTIVE:
            raise Refused(f"{each.__qualname__} may reach anything")
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
        if trusted_space(space):
            self._place(each.__code__)
            return self._trusted_function(each, space["__name__"])
        _ = each.__dict__, each.__annotations__  # made on first use: not a change
        self._watch(each)
        self._reach_code(each.__code__, space, is_generated(each))
        self._stores_into(each.__dict__)
        return (
            each.__defaults__,
            each.__kwdefaults__,
            *(each.__closure__ or ()),
            *each.__dict__.values(),
        )

    def _trusted_function(self, each: types.FunctionType, module: str) -> Iterable[object]:
        """A function of Python's or of this package: pure, or made for what it closes over."""
        self._stores_into(each.__dict__)
        if module.startswith(PACKAGE):
            return [] if "<locals>" not in each.__qualname__ else closed_over(each)
        if "." not in each.__qualname__ and f"{module}.{each.__qualname__}" not in PURE:
            raise Refused(f"{module}.{each.__qualname__} may change or keep more than it returns")
        if "<locals>" not in each.__qualname__:
            return ()
        self._watch(each)
        self._dicts.append(each.__dict__)
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
        if not trusted_space(space):
            if not generated:
                self._check_instructions(code, space)
            self._reach_names(code, space, ("hash",) if generated else ())
        for each in code.co_consts:
            if type(each) is types.CodeType:
                self._reach_code(each, space)

    def _check_instructions(self, code: types.CodeType, space: dict[str, Any]) -> None:
        found = scan(code)
        if found.problem:
            raise Refused(found.problem).placed(f"{code.co_filename}:{code.co_firstlineno}")
        self._note_names(found.computes, found.pieces)
        for line, path in found.compared if self._compares else ():
            self._check_compared(code, line, path, space)

    def _note_names(self, computes: bool, pieces: bool) -> None:
        """Refuse code that may ask for any attribute by a name that it makes."""
        self._computes |= computes
        self._pieces |= pieces
        if self._computes and (self._modules or self._pieces):
            raise Refused("getattr beside modules or pieces of names: what it asks for is unknown")

    def _reach_names(
        self, code: types.CodeType, space: dict[str, Any], without: tuple[str, ...]
    ) -> None:
        found, names = scan(code), vars(builtins)
        if space.get("__builtins__", names) not in (builtins, names):
            raise Refused("the built-in names were replaced")
        self._more_attributes(found, space)
        self._name(space, found.read)
        self._name(names, [name for name in found.read if name not in space])
        for name in found.read:
            if name == "getattr" and space.get(name, getattr) is getattr:
                continue  # what it asks for is known
            if name not in without and (name in space or name in names):
                try:
                    self._reach((space[name] if name in space else names[name],))
                except Refused as refused:
                    raise refused.placed(f"{place_of(code)} refers to {name}") from None

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

    def _more_attributes(self, found: Scan, space: dict[str, Any]) -> None:
        self._name(space, sorted(found.bound))
        more = found.attributes - self._attributes
        self._attributes |= more
        for module in self._modules:
            self._attributes_of(module, sorted(more))
        stored = (found.stored | found.bound) - self._stored
        self._stored |= stored
        if stored and not self._ours:
            self._ours = [vars(each) for each in classes_of_package()]
            self._stores += self._ours
        for each in (*self._stores, *self._modules) if stored else ():
            self._name(each, sorted(stored))

    def _attributes_of(self, module: dict[str, object], names: Sequence[str]) -> None:
        self._note_names(False, False)
        self._name(module, names)
        self._reach([module[name] for name in names if name in module])

    def _module(self, each: types.ModuleType) -> Iterable[object]:
        if type(each) is not types.ModuleType:
            raise Refused(f"an object of {type(each).__qualname__}, which stands for a module")
        name = each.__name__
        own = hasattr(each, "__file__") and name.partition(".")[0] not in sys.stdlib_module_names
        if name == "random" or trusted_space(vars(each)) or own:
            self._modules.append(vars(each))
            self._attributes_of(vars(each), sorted(self._attributes))
            self._name(vars(each), (*NAMES_OF_MODULES, *sorted(self._stored)))
            return (vars(each).get("__getattr__"),)
        raise Refused(f"the module {name} may keep state that cannot be seen")

    def _match(self, name: str) -> None:
        """A pattern may ask anything for an attribute of this name."""
        if name not in self._attributes:
            self._attributes.add(name)
            for module in self._modules:
                self._attributes_of(module, (name,))

    def _class(self, each: type) -> Iterable[object]:
        if each.__qualname__ in FORBIDDEN and trusted(each.__module__):
            raise Refused(f"{each.__module__}.{each.__qualname__} may depend on more than values")
        if not each.__flags__ & (1 << 9):  # not a heap type: built in, immutable
            if not trusted(each.__module__) and each.__module__ != "builtins":
                raise Refused(f"the class {each.__qualname__} may keep state that cannot be seen")
            return ()
        self._stores_into(each.__dict__)
        if trusted(each.__module__) and resolves(each):
            for function in vars(each).values():
                if type(function) is types.FunctionType:
                    self._stores_into(function.__dict__)
            return each.__mro__[1:-1]
        if hides_state(each):
            raise Refused(f"the class {each.__qualname__} may keep state that cannot be seen")
        for name in vars(each).get("__match_args__", ()):
            if name in REFLECTIVE:
                raise Refused(f"a pattern of {each.__qualname__} asks for {name}")
            self._match(name)
        left_out = {*UNREAD, *(("__new__",) if is_named_tuple(each) else ())}
        inside = [value for name, value in vars(each).items() if name not in left_out]
        refuse_aliases(v for k, v in vars(each).items() if k != getattr(v, "__name__", k))
        return (*each.__mro__[1:-1], type(each), *inside)

    def _instance(self, each: Any, kind: type) -> Iterable[object]:
        slots = slots_of(kind)
        if slots is not None:
            self._probes.append((f"an object of {kind.__qualname__}", *probed(each, slots)))
            return (kind, *[slot.__get__(each, kind) for slot in slots if is_set(slot, each)])
        if isinstance(each, tuple) and not kind.__dictoffset__ and is_written(kind):
            return (kind, *each)
        if isinstance(kind, EnumMeta) and isinstance(each, Enum):
            if kind.__members__.get(each.name) is not each:
                raise Refused(f"{kind.__qualname__} value that is no member")
        elif why := plain(kind):
            raise Refused(f"an object of {kind.__module__}.{kind.__qualname__}, which {why}")
        inside = vars(each)
        self._watch(each)
        self._dicts.append(inside)
        return (kind, *inside.keys(), *inside.values())
