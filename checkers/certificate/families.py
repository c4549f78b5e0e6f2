"""What is known of functions of a protocol: which are the same."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable
from typing import Any

from syncproof.models.traces import CANNOT_CHANGE
from syncproof.models.values import Part, Payload, typed

BY_IDENTITY: Any = object.__eq__


def family_of(function: Callable[..., Any]) -> Hashable:
    """A key that is equal only for functions that do the same; None if none is known.

    Functions of one text are one function if all that they refer to from outside is equal, and
    nothing of it can change.
    """
    if not isinstance(function, types.FunctionType) or function.__kwdefaults__:
        return None
    try:
        inner = tuple(cell.cell_contents for cell in function.__closure__ or ())
        defaults = function.__defaults__
        key = (function.__code__, id(function.__globals__), typed(inner), typed(defaults))
        hash(key)
    except (TypeError, ValueError):
        return None
    return key if _equal_is_the_same((inner, defaults)) else None


def family_with(function: Callable[..., Any], arguments: tuple[Hashable, ...]) -> Hashable:
    """The same for a function that is called with these arguments behind the old value."""
    family = family_of(function)
    alike = family is not None and _equal_is_the_same(arguments)
    return (family, typed(arguments)) if alike else None


def _equal_is_the_same(value: Any) -> bool:
    """Whether only the same, or a value that does the same, is equal to this one by type."""
    if type(value) is tuple:
        return all(map(_equal_is_the_same, value))
    kind = type(value)
    return kind in CANNOT_CHANGE or kind in (Part, Payload) or kind.__eq__ is BY_IDENTITY
