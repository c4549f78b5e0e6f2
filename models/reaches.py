"""The places that a protocol's roles name with ``core.reach("...")``."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from syncproof.models.protocol import Protocol


def declared_reaches(kind: type[Protocol]) -> tuple[str, ...]:
    """Every literal name in a call of ``reach`` by a role, or by what a role may call: methods of
    the protocol, functions of its modules, and functions within these."""
    found: dict[str, None] = {}
    met = set[CodeType]()
    work: list[tuple[CodeType, dict[str, Any]]] = []
    for role in kind.roles():
        function: Any = role.function
        work.append((function.__code__, function.__globals__))
    while work:
        code, space = work.pop(0)
        if code in met:
            continue
        met.add(code)
        found.update(dict.fromkeys(_named(code)))
        work += [(each, space) for each in code.co_consts if isinstance(each, CodeType)]
        called = [f for name in code.co_names for f in _functions(kind, name, code, space)]
        work += [(each.__code__, each.__globals__) for each in called]
    return tuple(found)


def _named(code: CodeType) -> Iterator[str]:
    """The names of which code calls ``reach`` itself."""
    is_call = False
    for each in dis.get_instructions(code):
        if is_call and each.opname == "LOAD_CONST" and isinstance(each.argval, str):
            yield each.argval
        if each.opname not in ("EXTENDED_ARG", "CACHE", "PUSH_NULL"):
            is_call = each.opname in ("LOAD_ATTR", "LOAD_METHOD") and each.argval == "reach"


def _functions(
    kind: type[Protocol], name: str, code: CodeType, space: dict[str, Any]
) -> Iterator[FunctionType]:
    """What code may call by a name: a method of the protocol, or a function of its module."""
    named = [vars(each)[name] for each in kind.__mro__[:-1] if name in vars(each)]
    overridden = [] if "super" in code.co_names else named[1:]
    for each in (*named, space.get(name)):
        function = each.fget if isinstance(each, property) else getattr(each, "__func__", each)
        if isinstance(function, FunctionType) and each not in overridden:
            yield function
