"""Conditions of waits and updates of atomics: functions of the value alone, or refused.

An engine asks a function when it likes and as often as it likes, and keeps what it said. So it must
not keep anything from one asking to the next, as a counter of polls would, and what it looks at has
to be as it was when the role came to the operation.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

from syncproof.models.errors import UserError
from syncproof.models.identity_scan import FORBIDDEN
from syncproof.models.protocol import Protocol
from syncproof.models.traces import STANDING, cannot_change, is_of_package, is_ours, trace, traced

BINDING = ("STORE_", "DELETE_", "YIELD", "IMPORT")
"""How the names of instructions begin that leave something behind; ``STORE_FAST`` does not."""


def watched(function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """The function, refused by a `UserError` when it is asked after what it refers to changed."""
    if function is None or leaves_no_trace(function):
        return function
    before, inner = trace(function), function

    @wraps(inner, assigned=("__name__", "__qualname__"), updated=())
    def asked(value: Any) -> Any:
        now, hidden = traced(inner)
        if now != before:
            raise UserError(
                "a condition looks at something that the role has changed since it waits",
                expected="a variable of the role that holds a plain value",
            )
        result = inner(value)
        if traced(inner) != (before, hidden):
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
    kind: type | None = None
    plain = function
    if type(function) is types.MethodType and isinstance(function.__self__, Protocol):
        if not _is_held_still(function.__self__):
            return False
        kind, plain = type(function.__self__), function.__func__
    if not _is_told_by_text(plain, kind):
        return _Reach().stands(function)
    key = id(plain.__code__), id(plain.__globals__), kind
    known = _TOLD.get(key)
    if known is None:
        known = _TOLD[key] = plain, _Reach().stands(function)
    return known[1]


_TOLD: dict[tuple[int, int, type | None], tuple[types.FunctionType, bool]] = {}
"""Of functions of one text whose text tells it, one of them, and whether they all stand."""


def _is_told_by_text(function: Any, kind: type | None) -> bool:
    """Whether all that a function can get hold of beside its text and values that nobody can change
    is this package, whose modules and classes stay as they are; ``kind`` is whose method it is."""
    if type(function) is not types.FunctionType or not _is_of_package(function):
        return False
    return _is_bare(function) and (kind is None or _is_kind_of_package(kind))


def _is_bare(function: types.FunctionType) -> bool:
    """Whether all that a function has beside its text are values that nobody can change."""
    if function.__defaults__ or function.__kwdefaults__:
        return False
    try:
        return all([cannot_change(type(c.cell_contents)) for c in function.__closure__ or ()])
    except ValueError:
        return False


def _is_of_package(function: types.FunctionType) -> bool:
    return is_of_package(function.__globals__.get("__name__", ""))


def _is_class_of_package(kind: type) -> bool:
    return kind is object or is_of_package(kind.__module__)


def _is_kind_of_package(kind: type) -> bool:
    """Whether a class and all from which it derives are of this package."""
    return all(map(_is_class_of_package, kind.__mro__))


def _is_held_still(protocol: Protocol) -> bool:
    """Whether a protocol's attributes, which are sealed, hold no objects of the user's."""
    found = _HELD_STILL.get(protocol)
    if found is None:
        _HELD_STILL[protocol] = False  # while it is looked at: something in it may refer to it
        found = _HELD_STILL[protocol] = all(map(_is_sealed, vars(protocol).values()))
    return found


_HELD_STILL: WeakKeyDictionary[Protocol, bool] = WeakKeyDictionary()


class _Reach:
    """What functions can get hold of: values, and what they ask of the protocols among them.

    Which protocol is asked for which attribute is not told apart: each may be asked for each.
    """

    def __init__(self) -> None:
        self._met: dict[int, types.FunctionType] = {}
        self._attributes: set[str] = set()
        self._kinds: set[type] = set()
        self._given: set[tuple[type, str]] = set()

    def stands(self, value: Any) -> bool:
        """Whether a value, and all that can be got hold of by it, stays as it is."""
        work = [value]
        while work:
            while work:
                if not self._takes(work.pop(), work):
                    return False
            work = list(self._asked())
        return True

    def _takes(self, value: Any, work: list[Any]) -> bool:
        """Whether a value stands by itself; what it refers to is added to ``work``."""
        kind = type(value)
        if cannot_change(kind):
            return True
        if kind is types.FunctionType:
            return id(value) in self._met or self._takes_function(value, work)
        if kind is types.MethodType:
            work += (value.__self__, value.__func__)
            return True
        if kind is tuple:
            work += value
            return True
        self._kinds.add(kind)
        return isinstance(value, Protocol) and _is_held_still(value)

    def _takes_function(self, function: types.FunctionType, work: list[Any]) -> bool:
        self._met[id(function)] = function
        looked_at = _met(function.__code__)
        if looked_at is None or function.__kwdefaults__:
            return False
        try:
            work += [cell.cell_contents for cell in function.__closure__ or ()]
        except ValueError:
            return False
        work += function.__defaults__ or ()
        names, attributes = looked_at
        self._attributes.update(attributes)
        outside = [function.__globals__[name] for name in names if name in function.__globals__]
        work += outside
        # Whoever declares a name global may bind it anew
        return not outside or _is_of_package(function)

    def _asked(self) -> Iterator[Any]:
        """What else the classes of the protocols give for the attributes."""
        for kind, name in product(self._kinds, self._attributes):
            if (kind, name) not in self._given:
                self._given.add((kind, name))
                found = getattr(kind, name, None)
                found = found.fget if isinstance(found, property) else found
                if not is_ours(type(found)) and not isinstance(found, STANDING):
                    yield found


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
    return _Reach().stands(value) or isinstance(value, STANDING) or is_ours(type(value))
