"""What code names, and which types and modules can be taken at their word."""

from __future__ import annotations

import dis
import sys
import types
from dataclasses import dataclass
from functools import cache
from typing import Any

PACKAGE = __name__.rpartition(".")[0]
STATELESS = frozenset(
    (
        "builtins",
        "math",
        "cmath",
        "operator",
        "_operator",
        "itertools",
        "functools",
        "_functools",
        "dataclasses",
        "enum",
        "typing",
        "collections",
        "_collections",
        "collections.abc",
        "_collections_abc",
        "abc",
        "_abc",
        "copy",
        "heapq",
        "_heapq",
        "bisect",
        "_bisect",
        "types",
        "numbers",
        "fractions",
        "zlib",
        "binascii",
        "string",
        "reprlib",
        "__future__",
    )
)
FORBIDDEN = frozenset(
    (
        "id",
        "hash",
        "locals",
        "globals",
        "vars",
        "dir",
        "eval",
        "exec",
        "compile",
        "setattr",
        "delattr",
        "open",
        "input",
        "__import__",
        "breakpoint",
        "is_",
        "is_not",
        "attrgetter",
        "methodcaller",
    )
)
REFLECTIVE = frozenset(
    (
        "__self__",
        "__dict__",
        "__setattr__",
        "__delattr__",
        "__closure__",
        "__globals__",
        "__code__",
        "__annotations__",
        "__dataclass_fields__",
        "__sizeof__",
        "__reduce__",
        "__reduce_ex__",
        "__getstate__",
        "__subclasses__",
        "__weakref__",
        "cr_frame",
        "cr_await",
        "gi_frame",
        "f_locals",
        "f_back",
        "cell_contents",
    )
)
REBINDING = frozenset(("__dict__", "__class__", "__code__", "__bases__"))
ATOMS = (bool, int, float, str, bytes, type(None), type(Ellipsis), complex)
LEAVES: tuple[type, ...] = (
    *ATOMS,
    range,
    type(NotImplemented),
    types.CodeType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.GenericAlias,
    types.UnionType,
)
UNREAD = frozenset(
    (
        "__dict__",
        "__weakref__",
        "__doc__",
        "__annotations__",
        "__abstractmethods__",
        "_abc_impl",
        "__dataclass_fields__",
        "__dataclass_params__",
    )
)
MISSING = object()
BETWEEN = (object(),)


class Refused(Exception):
    """This cannot be captured: the message says what and why."""


NULL = object()
"""Stands for an unbound local or an empty place of a value stack."""


@dataclass(frozen=True)
class Scan:
    """What the instructions of one code object name."""

    read: tuple[str, ...]
    attributes: frozenset[str]
    stored: frozenset[str]
    compared: tuple[tuple[int, tuple[str, ...]], ...]
    problem: str


@cache
def scan(code: types.CodeType) -> Scan:
    """The globals read, the attributes named and stored, and the operands of ``is``."""
    read: dict[str, None] = {}
    attributes, stored, problem = set(), set(), ""
    compared: list[tuple[int, tuple[str, ...]]] = []
    path: tuple[str, ...] | None = None
    line = code.co_firstlineno
    for each in dis.get_instructions(code):
        line = each.starts_line if type(each.starts_line) is int else line
        if sys.version_info >= (3, 13):
            line = each.line_number or line
        name = each.opname
        if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            read[each.argval] = None
            path = (each.argval,)
        elif name in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            attributes.add(each.argval)
            path = (*path, each.argval) if path else None
        elif name == "LOAD_CONST":
            single = each.argval is None or each.argval is Ellipsis or type(each.argval) is bool
            path = () if single else None
        elif name == "IS_OP":
            compared.append((line, ("",) if path is None else path))
            path = None
        elif name != "EXTENDED_ARG":
            path = None
            if name in ("STORE_ATTR", "DELETE_ATTR"):
                stored.add(each.argval)
            elif name in ("IMPORT_NAME", "IMPORT_FROM"):
                problem = f"{code.co_qualname} imports while it runs"
    bad = sorted((attributes & REFLECTIVE) | (stored & REBINDING))
    if bad:
        problem = f"{code.co_qualname} uses {bad[0]}"
    return Scan(tuple(read), frozenset(attributes), frozenset(stored), tuple(compared), problem)


def trusted(module: object) -> bool:
    """Whether code of this module is known to keep no state of its own."""
    return isinstance(module, str) and (
        module in STATELESS or module == PACKAGE or module.startswith(PACKAGE + ".")
    )


def resolves(kind: type) -> bool:
    """Whether a class is the one that its module and qualified name say."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind


class _Plain:
    """A class without slots, for the size of its objects."""


@cache
def plain(kind: type) -> str:
    """Why the objects of a class may hide state beside their ``__dict__``; empty if they do not."""
    same = (kind.__basicsize__, kind.__itemsize__) == (_Plain.__basicsize__, 0)
    if not same or not kind.__dictoffset__:
        return "has slots or a built-in base"
    for name in ("__reduce_ex__", "__reduce__", "__getstate__"):
        if getattr(kind, name) is not getattr(object, name):
            return f"has its own {name}"
    for each in kind.__mro__[:-1]:
        own = vars(each).get("__dict__")
        if own is not None and type(own) is not types.GetSetDescriptorType:
            return "has its own __dict__"
        if any(type(value) is types.MemberDescriptorType for value in vars(each).values()):
            return "has slots"
        if "__del__" in vars(each):
            return "has a __del__"
    return ""


def singletons() -> list[object]:
    """The objects of which the interpreter keeps one each, so that the value is the identity."""
    found: list[object] = [NULL, None, True, False, Ellipsis, NotImplemented, (), "", b""]
    found += range(-5, 257)
    found += map(chr, range(256))
    found += [bytes((i,)) for i in range(256)]
    return found
