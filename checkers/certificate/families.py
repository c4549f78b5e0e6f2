"""Which functions are surely the same, so that it does not matter which comes first."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable
from typing import Any

from syncproof.models.values import typed


def family_of(function: Callable[..., Any]) -> Hashable:
    """A key that is equal only for functions that do the same; None if none is known.

    Functions of one text are one function if all that they refer to from outside is equal, and
    nothing of it can change.
    """
    if not isinstance(function, types.FunctionType) or function.__kwdefaults__:
        return None
    try:
        inner = tuple(typed(cell.cell_contents) for cell in function.__closure__ or ())
        key = (function.__code__, id(function.__globals__), inner, typed(function.__defaults__))
        hash(key)
    except (TypeError, ValueError):
        return None
    return key
