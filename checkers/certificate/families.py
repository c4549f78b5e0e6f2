"""What is known of functions of a protocol: which are the same, and which leave no trace."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

from syncproof.models.values import Mark, typed


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


CANNOT_CHANGE = frozenset((int, bool, str, float, types.NoneType, Mark))
"""Types of values that nobody can change."""


def leaves_no_trace(function: Any) -> bool:
    """Whether a call surely changes no variable that the function shares with its role.

    It only looks at them, and what they hold cannot change.
    """
    if not isinstance(function, types.FunctionType) or not _only_reads(function.__code__):
        return False
    try:
        return all(type(c.cell_contents) in CANNOT_CHANGE for c in function.__closure__ or ())
    except ValueError:
        return False


@cache
def _only_reads(code: types.CodeType) -> bool:
    """Whether the code binds no shared variable, by itself or by a function that it makes."""
    if any(isinstance(each, types.CodeType) for each in code.co_consts):
        return False
    bound = {each.opname for each in dis.get_instructions(code)}
    return bound.isdisjoint(("STORE_DEREF", "DELETE_DEREF", "MAKE_FUNCTION"))
