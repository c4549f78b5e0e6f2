"""What can be told of objects that a role may change: equal traces while nothing changes.

`trace` is for what a condition looks at: what it cannot look into it refuses. `trace_of_shared` is
for all that the roles of a protocol share, and takes what it cannot look into as it is.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from typing import Any

from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.identity import self_test
from syncproof.models.identity_classes import table_of
from syncproof.models.operations import Hidden
from syncproof.models.per_rank import PerRank
from syncproof.models.protocol import Protocol
from syncproof.models.values import Block, Mark, Opaque, Part, Payload, changeable

CANNOT_CHANGE = frozenset((int, bool, str, float, types.NoneType, Mark))
"""Types of values that nobody can change."""
STANDING = (type, types.ModuleType, types.CodeType)
"""What is as it is while roles run; so is all that this package makes, but for `CHANGING`."""
CHANGING = (Core, PerRank, Block, Payload, Part, Opaque)
"""What of this package's a role might change."""
OURS_ALONE = frozenset(("bounds", "ranks", "_groups", "_choices", "_say"))
"""What of a core no role changes."""
PACKAGE = __name__.rpartition(".")[0]
ROOT = __name__.partition(".")[0]
HOLDING = frozenset(
    ("builtins", "collections", "array", "types", "itertools", "functools", "random", "enum")
)
"""Modules of Python's with objects that hold something; others may keep something by themselves,
as a logger does."""

APART = frozenset(("logging", "threading", "_thread", "io", "_io"))
"""Modules of Python's with objects by which no role tells anything, but for thread locals."""


def cannot_change(kind: type) -> bool:
    """Whether it is one of `CANNOT_CHANGE`, and none whose metaclass says that it equals one."""
    return type(kind) is type and kind in CANNOT_CHANGE


def trace(value: Any) -> Any:
    """What can be told of a value and of all that it refers to: equal while nothing changes.

    A `UserError` if something in it cannot be looked into.
    """
    return traced(value)[0]


def traced(value: Any) -> tuple[Any, int]:
    """`trace`, and how many choices its cores were asked for that have no answer yet."""
    tracer = _Tracer(is_strict=True)
    try:
        return tracer.of(value), tracer.hidden
    except RecursionError:
        raise _cannot_be_told(value) from None


def trace_of_shared(protocol: Protocol, cores: Sequence[Core]) -> Any:
    """What can be told of a protocol, of cores, and of the objects, classes and names of the user's
    modules that roles may get hold of."""
    tracer = _Tracer(is_strict=False)
    try:
        functions = [each.function for each in protocol.roles()]
        return [tracer.of(each) for each in (protocol, *cores, *functions)]
    except RecursionError:
        return None


def is_of_package(module: str) -> bool:
    """Whether a module is one of this package's."""
    return module.partition(".")[0] == ROOT


def is_ours(kind: type) -> bool:
    """Whether a class is one of the model's, whose objects no role changes."""
    return kind.__module__.startswith(PACKAGE) and kind.__module__ != f"{PACKAGE}.sealed"


@cache
def _is_of_user(module: str) -> bool:
    """Whether a module is the user's own: neither this package's, nor Python's, nor installed."""
    if is_of_package(module) or module.partition(".")[0] in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" not in file and "dist-packages" not in file


def _cannot_be_told(value: Any) -> UserError:
    return UserError(
        f"a condition looks at a {type(value).__name__}, and nobody can tell whether it stays as "
        "it is",
        expected="a variable of the role that holds a plain value",
    )


class _Tracer:
    """One walk over objects, each with the number at which it was met first."""

    def __init__(self, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._met: dict[int, tuple[int, Any]] = {}
        self.hidden = 0

    def of(self, value: Any) -> Any:
        """What can be told of a value."""
        kind = type(value)
        if cannot_change(kind) or kind is bytes or kind is complex:
            return (kind, value.hex() if kind is float else value)
        if self._stands(value, kind):
            return id(value)
        met = self._met
        if id(value) in met:
            return met[id(value)][0]
        met[id(value)] = len(met), value
        return (id(kind), *[self.of(each) for each in self._inside(value, kind)])

    def _stands(self, value: Any, kind: type) -> bool:
        """Whether a value is taken as it is."""
        if isinstance(value, STANDING):
            is_user_class = isinstance(value, type) and _is_of_user(value.__module__)
            return not (_is_made_by_a_role(value) or (is_user_class and not self._is_strict))
        if is_ours(kind) and not isinstance(value, CHANGING):
            return self._is_strict and not isinstance(value, Protocol)
        known = kind.__module__.partition(".")[0]
        if self._is_strict:
            return known in APART and not isinstance(value, threading.local)
        return known in sys.stdlib_module_names and known not in HOLDING

    def _inside(self, value: Any, kind: type) -> Iterable[Any]:
        """What a value refers to, as far as it might change."""
        if isinstance(value, types.FunctionType):
            return _of_function(value)
        if isinstance(value, types.MethodType):
            return (value.__func__, value.__self__)
        if isinstance(value, Core):
            self.hidden += _hidden_choices(value)
            return [each for name, each in vars(value).items() if not _is_of_core(name, each)]
        if isinstance(value, PerRank):
            return [each for each in vars(value).values() if type(each) in (dict, list)]
        if isinstance(value, Protocol):
            return _of_protocol(value)
        if isinstance(value, type):
            return [each for base in value.__mro__ for each in _of_class(base)]
        if isinstance(value, property | cached_property):
            return (value.fget,) if isinstance(value, property) else (value.func,)
        if isinstance(value, types.GeneratorType):
            frame = value.gi_frame
            return (None,) if frame is None else (frame.f_lasti, dict(frame.f_locals))
        return (kind, *self._elements(value), *_attributes(value))

    def _elements(self, value: Any) -> Iterable[Any]:
        """What a container holds; the state of another object, as it would be copied."""
        if isinstance(value, partial):
            return (value.func, value.args, value.keywords)
        if isinstance(value, list | tuple):
            return value
        if isinstance(value, dict):
            return (*value, *value.values())
        if isinstance(value, set | frozenset):
            table = table_of(value) if isinstance(value, set) and not self_test() else ()
            return [*table] + [part for each in sorted(value, key=id) for part in (id(each), each)]
        if isinstance(value, (types.ModuleType, *CHANGING)):
            return ()
        return self._state(value)

    def _state(self, value: Any) -> Iterable[Any]:
        try:
            parts = value.__reduce_ex__(4)
        except Exception:
            if self._is_strict:
                raise _cannot_be_told(value) from None
            parts = ""
        if isinstance(parts, str):
            return (id(value),)
        items = (tuple(each) for each in parts[3:5] if each is not None)
        return (*parts[1:3], *items)


def _is_made_by_a_role(value: Any) -> bool:
    """Whether a class or module is none that a module has, or Python knows, by its name."""
    if isinstance(value, types.ModuleType):
        return sys.modules.get(value.__name__) is not value
    return isinstance(value, type) and "<locals>" in value.__qualname__


def _is_of_core(name: str, value: Any) -> bool:
    """Whether a core has an attribute for itself, and no role changes it."""
    is_asked = isinstance(value, types.FunctionType) and is_of_package(value.__module__)
    return name in OURS_ALONE or is_asked


def _hidden_choices(core: Core) -> int:
    """How many choices were asked for that have no answer yet, although somebody caught that."""
    said = getattr(core._say, "__self__", ())
    return sum(type(each) is Hidden for each in said)


def _attributes(value: Any) -> Iterator[Any]:
    """The names and values that an object holds, also those that no copy of it would get."""
    for name, each in dict(getattr(value, "__dict__", ())).items():
        yield from (name, each)
    for kind in type(value).__mro__:
        for name, slot in vars(kind).items():
            if isinstance(slot, types.MemberDescriptorType) and kind.__module__ != "builtins":
                yield getattr(value, name, None)


def _of_function(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            yield None
    yield from (function.__code__.co_consts, function.__defaults__, function.__kwdefaults__)
    yield function.__dict__
    if _is_of_user(function.__module__ or ""):
        names = _names(function.__code__)
        for name in names:
            value = function.__globals__.get(name)
            yield value
            if isinstance(value, types.ModuleType) and _is_of_user(value.__name__):
                yield from [vars(value).get(each) for each in names]


@cache
def _names(code: types.CodeType) -> tuple[str, ...]:
    """The names that code and the functions that it makes may look up outside."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return (*code.co_names, *(name for each in inner for name in _names(each)))


def _of_protocol(protocol: Protocol) -> Iterator[Any]:
    """A protocol's attributes, but for plain ones that are found out when first asked for, and what
    the user's classes among its classes hold."""
    kind = type(protocol)
    for name, value in vars(protocol).items():
        if not isinstance(getattr(kind, name, None), cached_property) or changeable(value):
            yield from (name, value)
    for each in kind.__mro__:
        if each is not object and not is_of_package(each.__module__):
            yield from _of_class(each)


def _of_class(kind: type) -> Iterator[Any]:
    """What a class holds, but for what each class has."""
    if kind is not object:
        for name, value in vars(kind).items():
            if not name.startswith("__") or isinstance(value, types.FunctionType):
                yield value
