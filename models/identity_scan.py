"""What code names, and which types and modules can be taken at their word."""

from __future__ import annotations

import dis
import re
import sys
import sysconfig
import types
from collections import namedtuple
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = __name__.rpartition(".")[0]
ROOT = __name__.partition(".")[0]
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
        "struct",
        "_struct",
        "__future__",
    )
)
PURE = frozenset(
    (
        *("copy.copy", "copy.deepcopy", "copy.replace", "collections.namedtuple"),
        *("dataclasses.field", "dataclasses.replace", "dataclasses.is_dataclass"),
        *("dataclasses.asdict", "dataclasses.astuple", "abc.abstractmethod", "string.capwords"),
        *("typing.cast", "typing.assert_never", "typing.NamedTuple"),
        *("typing.TypedDict", "functools.reduce", "functools.cmp_to_key"),
        *("dataclasses._dataclass_getstate", "dataclasses._dataclass_setstate"),  # slots: watched
        "dataclasses._replace",  # as `dataclasses.replace`, since CPython 3.13
        *("heapq.merge", "heapq.nlargest", "heapq.nsmallest"),
    )
)
"""Functions written in Python that keep nothing and set no attribute of what they are given."""
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
        "Formatter",
        "get_field",
        "_abc_register",
        "_abc_init",
        "_reset_registry",
        "_reset_caches",
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
        "__alloc__",
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
        "__builtins__",
        "__getattribute__",
        "__dataclass_params__",
        "_abc_impl",
        "__set__",
        "__delete__",
        "__setstate__",
        "__func__",
        "ag_frame",
        "f_builtins",
        "f_globals",
        "tb_frame",
        "register",
    )
)
REBINDING = frozenset(
    (
        *("__dict__", "__class__", "__code__", "__bases__", "__name__", "__qualname__", "__doc__"),
        *("__defaults__", "__kwdefaults__", "__match_args__"),
    )
)
OF_SUBCLASSES = ("__subclasscheck__", "__subclasshook__")
"""What says which classes are below one: asked once, as abstract classes keep the answers."""
ATOMS = (bool, int, float, str, bytes, type(None), type(Ellipsis), complex)
LEAVES: tuple[type, ...] = (
    *ATOMS,
    range,
    type(NotImplemented),
    object,
    re.Pattern,
    type(vars(namedtuple("_", "a"))["a"]),
    types.CodeType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
ALIASES = (types.GenericAlias, types.UnionType)
"""Types of objects that nobody can change, and that refer to others."""
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
LOADS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME")
LONGEST_CALL = 12
MISSING = object()
BETWEEN = (object(),)


class Refused(Exception):
    """This cannot be captured: the message says what and why.

    ``is_placed``: it says as well which code refers to it.
    """

    is_placed = False

    def placed(self, where: str) -> Refused:
        """The same, with the code that refers to it; the innermost is kept."""
        if self.is_placed:
            return self
        found = Refused(f"{where}: {self}")
        found.is_placed = True
        return found


NULL = object()
"""Stands for an unbound local or an empty place of a value stack."""


@dataclass(frozen=True)
class Scan:
    """What the instructions of one code object name.

    ``computes``: it asks `getattr` for what is computed; ``pieces``: it has what the names of an
    object's inside may be made of.
    """

    read: tuple[str, ...]
    attributes: frozenset[str]
    stored: frozenset[str]
    bound: frozenset[str]
    compared: tuple[tuple[int, tuple[str, ...]], ...]
    computes: bool
    pieces: bool
    problem: str


@cache
def scan(code: types.CodeType) -> Scan:
    """The globals read and bound, attributes named and stored, and the operands of ``is``."""
    read: dict[str, None] = {}
    attributes, stored, bound, problem = set(), set(), set(), ""
    compared: list[tuple[int, tuple[str, ...]]] = []
    path: tuple[str, ...] | None = None
    line, before, computes = code.co_firstlineno, None, False
    instructions = [i for i in dis.get_instructions(code) if i.opname != "EXTENDED_ARG"]
    for number, each in enumerate(instructions):
        line = each.starts_line if type(each.starts_line) is int else line
        if sys.version_info >= (3, 13):
            line = each.line_number or line
        name = each.opname
        if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            read[each.argval] = None
            if each.argval == "getattr":
                asked = _literal(instructions[number + 1 : number + LONGEST_CALL])
                computes |= not asked
                if asked == "__init__":
                    problem = f"{code.co_qualname} makes an object anew by __init__"
                attributes.update({asked} - {""})
            path = (each.argval,)
        elif name == "LOAD_SUPER_ATTR" and code.co_name == each.argval == "__init__":
            path = None
        elif name in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            attributes.add(each.argval)
            path = (*path, each.argval) if path else None
            if each.argval == "__init__" and not _is_of_super(code, instructions[:number]):
                problem = f"{code.co_qualname} makes an object anew by __init__"
        elif name == "LOAD_CONST":
            single = each.argval is None or each.argval is Ellipsis or type(each.argval) is bool
            path = () if single else None
        elif name == "IS_OP":
            compared.append((line, ("",) if path is None else path))
            path = None
        else:
            path = None
            if name in ("STORE_ATTR", "DELETE_ATTR"):
                stored.add(each.argval)
            elif name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                bound.add(each.argval)
            elif name == "MATCH_CLASS":
                attributes.update(before.argval if before else ())
                if before and "__init__" in before.argval:
                    problem = f"{code.co_qualname} makes an object anew by __init__"
            elif name == "STORE_NAME" and each.argval in ("__match_args__", *OF_SUBCLASSES):
                problem = f"{code.co_qualname} makes a class with {each.argval}"
            elif name in ("IMPORT_NAME", "IMPORT_FROM"):
                problem = f"{code.co_qualname} imports while it runs"
        before = each
    hooks = {*OF_SUBCLASSES} & ({c for c in code.co_consts if type(c) is str} | stored)
    bad = sorted((attributes & REFLECTIVE) | (stored & REBINDING) | hooks)
    if bad:
        problem = f"{code.co_qualname} uses {bad[0]}"
    return Scan(
        tuple(read),
        frozenset(attributes),
        frozenset(stored),
        frozenset(bound),
        tuple(compared),
        computes,
        "chr" in read or any(type(c) is str and is_piece(c) for c in code.co_consts),
        problem,
    )


def is_piece(text: str) -> bool:
    """Whether the name of an object's inside may be made of a text."""
    if re.fullmatch(r"__\w+__", text):
        return text in REFLECTIVE
    return "__" in text or text == "_" or text in REFLECTIVE


def _is_of_super(code: types.CodeType, before: list[dis.Instruction]) -> bool:
    """Whether what is asked for an attribute is ``super()``, in a method ``__init__``."""
    names = [each.opname for each in before[-4:] if each.opname not in ("PUSH_NULL", "PRECALL")]
    called = [each.argval for each in before[-4:] if each.opname == "LOAD_GLOBAL"]
    is_super = names[-2:] == ["LOAD_GLOBAL", "CALL"] and called[-1:] == ["super"]
    return code.co_name == "__init__" and is_super


def _literal(following: list[dis.Instruction]) -> str:
    """The attribute that a call of ``getattr`` asks for, from what follows the function's name;
    empty if it is not plainly there."""
    rest = [each for each in following if each.opname not in ("PUSH_NULL", "PRECALL", "CACHE")]
    if not rest or rest[0].opname not in LOADS:
        return ""
    del rest[0]
    while rest and rest[0].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        del rest[0]
    if not rest or rest[0].opname != "LOAD_CONST" or type(rest[0].argval) is not str:
        return ""
    given = 2 if len(rest) > 1 and rest[1].opname == "CALL" else 3
    if given == 3 and (len(rest) < 3 or rest[1].opname not in (*LOADS, "LOAD_CONST")):
        return ""
    call = rest[given - 1]
    return str(rest[0].argval) if call.opname == "CALL" and call.argval == given else ""


def refuse_aliases(objects: Iterable[object]) -> None:
    """Refuse methods, by another name, that code must not name by their own."""
    for each in objects:
        if type(each) is types.MethodType:
            refuse_aliases((each.__func__,))
        elif type(each) is types.FunctionType:
            names = {each.__name__, each.__code__.co_name}
            bad = names & REFLECTIVE if trusted_space(each.__globals__) else frozenset[str]()
            if "__init__" in names or bad:
                raise Refused(f"{each.__qualname__} by another name")


def trusted(module: object) -> bool:
    """Whether code of this module is known to keep no state of its own."""
    return isinstance(module, str) and (
        module in STATELESS or module == PACKAGE or module.startswith(PACKAGE + ".")
    )


def trusted_space(space: dict[str, Any]) -> bool:
    """Whether this is the namespace of such a module, and not of one that calls itself so."""
    name = space.get("__name__")
    found = sys.modules.get(str(name)) if trusted(name) else None
    return found is not None and vars(found) is space and _is_in_place(space.get("__file__"))


@cache
def _is_in_place(file: str | None) -> bool:
    """Whether a module's file is Python's or this package's; those built in have none."""
    if file is None:
        return True
    places = [Path(sysconfig.get_path(each)).resolve() for each in ("stdlib", "platstdlib")]
    here = Path(file).resolve()
    ours = Path(__file__).resolve().parents[1]
    installed = any(each in ("site-packages", "dist-packages") for each in here.parts)
    theirs = any(each in here.parents for each in places) and not installed
    return theirs or here.is_relative_to(ours)


def singletons() -> list[object]:
    """The objects of which the interpreter keeps one each, so that the value is the identity."""
    found: list[object] = [NULL, None, True, False, Ellipsis, NotImplemented, (), "", b""]
    found += range(-5, 257)
    found += map(chr, range(256))
    found += [bytes((i,)) for i in range(256)]
    return found


def place_of(code: types.CodeType) -> str:
    """Where code stands, in words."""
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
