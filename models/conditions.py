"""Conditions of waits and updates of atomics: functions of the value alone, or refused.

An engine asks a function when it likes and as often as it likes, and keeps what it said. So it must
not keep anything from one asking to the next, as a counter of polls would, and what it looks at has
to be as it was when the role came to the operation.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial, wraps
from typing import Any

from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.protocol import Protocol
from syncproof.models.values import Mark

CANNOT_CHANGE = frozenset((int, bool, str, float, types.NoneType, Mark))
"""Types of values that nobody can change."""
STANDING = (type, types.ModuleType, types.CodeType)
"""What is as it is while roles run; so is all that this package makes, but the core."""
PACKAGE = __name__.rpartition(".")[0]
ACTING = (
    "CALL",
    "STORE_",
    "DELETE_",
    "YIELD",
    "MAKE_FUN",
    "GET_ITER",
    "CONTAINS",
    "UNPACK",
    "LIST_E",
)
"""How the names of instructions begin that might change something; ``STORE_FAST`` does not."""
DEEPEST = 8
OURS = frozenset(vars(Core("", 0, 0, 1, Bounds(), {}, {}, lambda _: None)))


def watched(function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """The function, refused by a `UserError` when it is asked after what it refers to changed."""
    if function is None or leaves_no_trace(function):
        return function
    before, inner = trace(function), function

    @wraps(inner, assigned=("__name__", "__qualname__"), updated=())
    def asked(value: Any) -> Any:
        if trace(inner) != before:
            raise UserError(
                "a condition looks at something that the role has changed since it waits",
                expected="a variable of the role that holds a plain value",
            )
        result = inner(value)
        if trace(inner) != before:
            raise UserError(
                "a condition keeps something from one asking to the next",
                expected="a function of the value read alone: it is asked any number of times",
            )
        return result

    return asked


def leaves_no_trace(function: Any) -> bool:
    """Whether what a function refers to surely stays as it is, whoever calls it.

    It only looks at it, and it cannot change.
    """
    if not isinstance(function, types.FunctionType) or function.__kwdefaults__:
        return False
    if not _only_looks(function.__code__):
        return False
    outside = (function.__globals__.get(name) for name in function.__code__.co_names)
    try:
        inside = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:
        return False
    return all(map(_stands, (*inside, *(function.__defaults__ or ()), *outside)))


def _stands(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_stands, value))
    return type(value) in CANNOT_CHANGE


@cache
def _only_looks(code: types.CodeType) -> bool:
    """Whether the code calls nothing, and binds nothing but its own variables."""
    return not any(
        each.opname.startswith(ACTING) and not each.opname.startswith("STORE_FAST")
        for each in dis.get_instructions(code)
    )


def trace(value: Any) -> Any:
    """What can be told of a value and of all that it refers to: equal while nothing changes."""
    return _trace(value, DEEPEST, {})


def _trace(value: Any, depth: int, met: dict[int, tuple[int, Any]]) -> Any:
    """``met`` are the objects that were met before: their number, and they themselves."""
    kind = type(value)
    if kind in CANNOT_CHANGE or kind in (bytes, complex):
        return (kind, value.hex() if kind is float else value)
    if isinstance(value, STANDING) or (_is_ours(kind) and not isinstance(value, Core)):
        return id(value)
    if id(value) in met:
        return met[id(value)][0]
    met[id(value)] = len(met), value
    if not depth:
        return id(kind)
    return (id(kind), *[_trace(each, depth - 1, met) for each in _inside(value)])


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith(PACKAGE) and kind.__module__ != f"{PACKAGE}.sealed"


def _inside(value: Any) -> Iterable[Any]:
    """What a value refers to, as far as it might change."""
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, types.MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, partial):
        return (value.func, value.args, value.keywords)
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, dict):
        return (*value, *value.values())
    if isinstance(value, set | frozenset):
        return sorted(map(id, value))
    if isinstance(value, Core):
        added = (name for name in vars(value) if name not in OURS and not name.startswith("_"))
        return [vars(value)[name] for name in added]
    if isinstance(value, Protocol):
        return vars(value).values()
    if isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        return (None,) if frame is None else (frame.f_lasti, dict(frame.f_locals))
    return _of_object(value)


def _of_function(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            yield None
    yield from (function.__code__.co_consts, function.__defaults__, function.__kwdefaults__)
    yield function.__dict__
    for name in _names(function.__code__):
        yield function.__globals__.get(name)


@cache
def _names(code: types.CodeType) -> tuple[str, ...]:
    """The names that code and the functions that it makes may look up outside."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return (*code.co_names, *(name for each in inner for name in _names(each)))


def _of_object(value: Any) -> Iterable[Any]:
    """The state of an object, as it would be copied; of one that cannot be, only which it is."""
    try:
        parts = value.__reduce_ex__(4)
    except Exception:
        return (id(value),)
    if isinstance(parts, str):
        return (id(value),)
    items = (tuple(each) for each in parts[3:5] if each is not None)
    return (*parts[1:3], *items)
