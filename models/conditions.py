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
from weakref import WeakKeyDictionary

from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.identity_scan import FORBIDDEN
from syncproof.models.protocol import Protocol
from syncproof.models.values import Mark

CANNOT_CHANGE = frozenset((int, bool, str, float, types.NoneType, Mark))
"""Types of values that nobody can change."""
STANDING = (type, types.ModuleType, types.CodeType)
"""What is as it is while roles run; so is all that this package makes, but the core."""
PACKAGE = __name__.rpartition(".")[0]
ROOT = __name__.partition(".")[0]
BINDING = ("STORE_", "DELETE_", "YIELD", "IMPORT")
"""How the names of instructions begin that leave something behind; ``STORE_FAST`` does not."""
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

    It binds nothing, and all that it can get hold of are values that nobody can change and
    functions of which the same is true.
    """
    return _stands(function, set())


def _stands(value: Any, met: set[int]) -> bool:
    """``met`` are the functions that are being looked at."""
    kind = type(value)
    if kind in CANNOT_CHANGE:
        return True
    if kind is types.FunctionType:
        return _function_stands(value, met)
    if kind is types.MethodType:
        return _stands(value.__self__, met) and _stands(value.__func__, met)
    if kind is tuple:
        return all([_stands(each, met) for each in value])
    if not isinstance(value, Protocol):
        return False
    found = _HOLDING.get(value)
    if found is None:  # its attributes are sealed, but for objects of the user's in them
        found = _HOLDING[value] = all(map(_is_sealed, vars(value).values()))
    return found


def _function_stands(function: types.FunctionType, met: set[int]) -> bool:
    if met or not _is_bare(function):
        return id(function) in met or _is_standing(function, met)
    key = id(function.__code__), id(function.__globals__)
    known = _BARE.get(key)
    if known is None:
        is_told = _is_of_package(function) and not (_met(function.__code__) or ((), ()))[1]
        known = _BARE[key] = function, _is_standing(function, met) if is_told else None
    return _is_standing(function, met) if known[1] is None else known[1]


_BARE: dict[tuple[int, int], tuple[types.FunctionType, bool | None]] = {}
"""Of bare functions of one text, one of them, and whether they all stand; None if that is not told
by the text, as a user's module may bind its names anew, and a subclass what a method asks for."""


def _is_bare(function: types.FunctionType) -> bool:
    """Whether all that a function has beside its text are values that nobody can change."""
    if function.__defaults__ or function.__kwdefaults__:
        return False
    try:
        for cell in function.__closure__ or ():
            if type(cell.cell_contents) not in CANNOT_CHANGE:
                return False
    except ValueError:
        return False
    return True


def _is_of_package(function: types.FunctionType) -> bool:
    name: str = function.__globals__.get("__name__", "")
    return name.partition(".")[0] == ROOT


def _is_standing(function: types.FunctionType, met: set[int]) -> bool:
    met.add(id(function))
    looked_at = _met(function.__code__)
    if looked_at is None or function.__kwdefaults__:
        return False
    names, attributes = looked_at
    try:
        inside = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:
        return False
    inside += function.__defaults__ or ()
    bound = len(inside)
    outside = function.__globals__
    inside += [outside[name] for name in names if name in outside]
    if len(inside) > bound and not _is_of_package(function):
        return False  # whoever declares it global may bind it anew
    if not all([_stands(each, met) for each in inside]):
        return False
    return not attributes or all(_stands(each, met) for each in _methods(function, attributes))


def _methods(function: types.FunctionType, attributes: tuple[str, ...]) -> list[Any]:
    """What the function may call of a protocol whose method it is, or over which it closes.

    It may be the method of any subclass.
    """
    owners = [cell.cell_contents for cell in function.__closure__ or ()]
    kinds = {type(each) for each in owners if isinstance(each, Protocol)}
    owner = function.__globals__.get(function.__qualname__.partition(".")[0])
    if isinstance(owner, type) and issubclass(owner, Protocol):
        kinds |= _family(owner)
    found = [getattr(kind, name, None) for kind in kinds for name in attributes]
    got = (each.fget if isinstance(each, property) else each for each in found)
    return [each for each in got if isinstance(each, types.FunctionType)]


def _family(kind: type) -> set[type]:
    """A class and all that derive from it."""
    return {kind}.union(*map(_family, type.__subclasses__(kind)))


LookedAt = tuple[tuple[str, ...], tuple[str, ...]]
_MET: dict[int, tuple[types.CodeType, LookedAt | None]] = {}


def _met(code: types.CodeType) -> LookedAt | None:
    """`_looked_at`, once for each code: to hash it takes as long as all the rest."""
    known = _MET.get(id(code))
    if known is None:
        known = _MET[id(code)] = code, _looked_at(code)
    return known[1]


def _looked_at(code: types.CodeType) -> LookedAt | None:
    """What code looks up outside, and which attributes it asks for; None if it binds something."""
    names, attributes = list[str](), list[str]()
    for each in dis.get_instructions(code):
        if each.opname.startswith(BINDING) and not each.opname.startswith("STORE_FAST"):
            return None
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.append(each.argval)
        elif each.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.append(each.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found = _looked_at(inner)
            if found is None:
                return None
            names += found[0]
            attributes += found[1]
    return None if FORBIDDEN.intersection(names) else (tuple(names), tuple(attributes))


def _is_sealed(value: Any) -> bool:
    """Whether a protocol's attribute is as it is while roles run."""
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_is_sealed, value))
    if isinstance(value, dict):
        return all(map(_is_sealed, (*value, *value.values())))
    return _stands(value, set()) or isinstance(value, STANDING) or _is_ours(type(value))


_HOLDING: WeakKeyDictionary[Protocol, bool] = WeakKeyDictionary()


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
    if isinstance(value, Protocol) and _stands(value, set()):
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
