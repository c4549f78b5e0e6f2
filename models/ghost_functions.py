"""Functions of ghost state: of their arguments alone, or refused.

An engine asks them when it likes and in whatever order it goes through states.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from functools import cache
from sys import stdlib_module_names
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from syncproof.models.errors import UserError
from syncproof.models.values import refuse_changeable

FUNCTIONS = (
    FunctionType,
    MethodType,
    BuiltinFunctionType,
    MethodDescriptorType,
    WrapperDescriptorType,
    type,
)
"""What may be a ghost function; other objects that can be called may keep something."""


def function_of_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; a `UserError` if it can be told by anything but its arguments."""
    if getattr(function, "__closure__", None):
        raise UserError(
            f"the ghost function {getattr(function, '__name__', function)} closes over variables",
            expected="a function of its arguments alone",
        )
    if not isinstance(function, FUNCTIONS):
        raise UserError(
            f"a ghost function is a {type(function).__name__}, which may keep something",
            expected="a function of its arguments alone",
        )
    bound = getattr(function, "__self__", None)
    if not isinstance(bound, ModuleType):
        refuse_changeable(bound, "what a ghost function is a method of")
    _refuse_what_it_keeps(function, set())
    return function


def _refuse_what_it_keeps(function: Any, met: set[CodeType]) -> None:
    """Refuse a ghost function that is told, or tells itself, anything beside its arguments."""
    code = getattr(function, "__code__", None)
    if code is None or code in met:
        return
    met.add(code)
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    refuse_changeable(defaults, "a default value of a ghost function")
    names, binds = _outside(code)
    if binds:
        raise UserError(
            f"the ghost function {function.__name__} binds a name of its module",
            expected="a function of its arguments alone",
        )
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType):
            if value.__module__.partition(".")[0] not in stdlib_module_names:
                _refuse_what_it_keeps(value, met)
        elif not isinstance(value, (*FUNCTIONS, ModuleType)):
            refuse_changeable(value, f"{name}, at which a ghost function looks,")


@cache
def _outside(code: CodeType) -> tuple[tuple[str, ...], bool]:
    """The names that code looks up in its module, and whether it binds one of them."""
    names, binds = list[str](), False
    for each in dis.get_instructions(code):
        names += [each.argval] if each.opname == "LOAD_GLOBAL" else []
        binds |= each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more, also = _outside(inner)
            names, binds = [*names, *more], binds or also
    return tuple(names), binds
