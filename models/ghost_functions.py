"""Functions of ghost state: of their arguments alone, or refused.

An engine asks them when it likes and in whatever order it goes through states.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
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
    names, attributes, binds = _outside(code)
    if binds:
        raise UserError(
            f"the ghost function {function.__name__} binds a name of its module",
            expected="a function of its arguments alone",
        )
    for name, value in _looked_at(function.__globals__, names, attributes):
        if isinstance(value, FunctionType):
            if not _is_known(value.__module__):
                _refuse_what_it_keeps(value, met)
        elif not isinstance(value, (*FUNCTIONS, ModuleType)):
            refuse_changeable(value, f"{name}, at which a ghost function looks,")


def _looked_at(
    space: dict[str, Any], names: tuple[str, ...], attributes: tuple[str, ...]
) -> Iterator[tuple[str, Any]]:
    """What code finds under names of its module, and under attributes of other modules."""
    spaces, met = [(space, names)], set[str]()
    while spaces:
        here, asked = spaces.pop()
        for name in asked:
            value = here.get(name)
            yield name, value
            if isinstance(value, ModuleType) and not _is_known(value.__name__):
                spaces += [] if value.__name__ in met else [(vars(value), attributes)]
                met.add(value.__name__)


def _is_known(module: str) -> bool:
    """Whether a module comes with Python."""
    return module.partition(".")[0] in stdlib_module_names


@cache
def _outside(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """The names that code looks up in its module, the attributes that it asks for, and whether it
    binds a name."""
    names, attributes, binds = list[str](), list[str](), False
    for each in dis.get_instructions(code):
        names += [each.argval] if each.opname == "LOAD_GLOBAL" else []
        attributes += [each.argval] if each.opname in ("LOAD_ATTR", "LOAD_METHOD") else []
        binds |= each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more, asked, also = _outside(inner)
            names, attributes, binds = [*names, *more], [*attributes, *asked], binds or also
    return tuple(names), tuple(attributes), binds
