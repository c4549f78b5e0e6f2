"""What code may consist of, so that it cannot tell how many ranks there are.

The opaque types refuse what they are asked. Some ways of asking do not reach them (what type is
this? has it this name?), or hide that they refused (a handler of exceptions), and a ``while`` may
go on for ever with other ranks. No protocol needs any of that, so all of it is refused.
"""

from __future__ import annotations

import dis
import gc
import sys
import types
from collections.abc import Iterable, Iterator
from functools import cache

from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.models.protocol import Protocol

ASKING = frozenset(
    (
        "type", "issubclass", "hasattr", "setattr", "delattr", "callable", "vars", "dir", "id",
        "hash", "repr", "locals", "globals", "eval", "exec", "object",
    )
)  # fmt: skip
"""Built-in names that ask what something is, and not what it does."""

OWN = frozenset(("_groups", "_choices", "_say", "_own", "_ask_", "_chosen", "_loop", "_begun"))
"""What a core keeps for itself."""

FIXED = ("ranks_of", "count", "roles", "groups", "parameters", "settings", "include")
"""Methods of `Protocol` that say which processes there are."""


def check_language(protocol: Protocol) -> None:
    """Refuse a protocol whose code is not covered, with the line."""
    kind = type(protocol)
    for name in FIXED:
        if getattr(kind, name).__qualname__ != getattr(Protocol, name).__qualname__:
            raise NotCovered(f"{kind.__name__} has its own {name}()")
    for role in protocol.roles():
        if callable(role.instances):
            raise NotCovered(f"how many {role.name} there are is computed")
    own = frozenset(name for name in (*dir(kind), *vars(protocol)) if name not in OWN)
    for code in _codes(protocol):
        _check(code, own)


def _codes(protocol: Protocol) -> Iterator[types.CodeType]:
    """All code that the protocol may run, apart from what is ours or Python's own."""
    seen: set[int] = set()
    work: list[object] = [type(protocol), *vars(protocol).values()]
    while work:
        each = work.pop()
        if id(each) in seen or _is_known(each):
            continue
        seen.add(id(each))
        if isinstance(each, types.CodeType):
            yield each
            work += each.co_consts
        else:
            work += _inside(each)


def _inside(each: object) -> Iterable[object]:
    if isinstance(each, types.FunctionType):
        cells = (cell.cell_contents for cell in each.__closure__ or () if _is_filled(cell))
        named = (each.__globals__.get(name) for name in _names(each.__code__))
        return (each.__code__, *(each.__defaults__ or ()), *cells, *named)
    if isinstance(each, types.MethodType):
        return (each.__func__,)
    if isinstance(each, types.ModuleType):
        return tuple(
            v for v in vars(each).values() if getattr(v, "__module__", "") == each.__name__
        )
    if isinstance(each, type):
        return (*each.__mro__[1:], *vars(each).values())
    if isinstance(each, staticmethod | classmethod):
        return (each.__func__,)
    if isinstance(each, property):
        return (each.fget, each.fset)
    return (type(each), *gc.get_referents(each))


@cache
def _names(code: types.CodeType) -> tuple[str, ...]:
    """The global names of a code object and of those inside it."""
    inside = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    own = (i.argval for i in dis.get_instructions(code) if "GLOBAL" in i.opname)
    return (*own, *(name for each in inside for name in _names(each)))


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _is_known(each: object) -> bool:
    """Whether something is ours, or comes with Python."""
    if isinstance(each, types.CodeType):
        return False
    module = each.__name__ if isinstance(each, types.ModuleType) else None
    if module is None and isinstance(each, type | types.FunctionType):
        module = each.__module__
    if not isinstance(module, str):
        return each is None or isinstance(each, int | float | str | bytes)
    first, _, rest = module.partition(".")
    return first in STANDARD or (first == "syncproof" and not rest.startswith("protocols"))


STANDARD = sys.stdlib_module_names | {"builtins"}


def _check(code: types.CodeType, own: frozenset[str]) -> None:
    handlers = managers = 0
    instructions = [*dis.get_instructions(code)]
    at = {each.offset: each for each in instructions}
    line = code.co_firstlineno
    for each in instructions:
        line = each.positions.lineno if each.positions and each.positions.lineno else line
        where = f"{code.co_filename}:{line}"
        handlers += each.opname == "PUSH_EXC_INFO"
        managers += each.opname == "BEFORE_ASYNC_WITH"
        if handlers > managers:
            raise NotCovered(f"a handler of exceptions, or a with, at {where}")
        if each.opname.startswith("MATCH_") or each.opname in ("GET_ANEXT", "IMPORT_NAME"):
            raise NotCovered(f"{each.opname.lower()} at {where}")
        if _is_while(each, at):
            raise NotCovered(f"a loop that is no for, at {where}")
        name = each.argval if isinstance(each.argval, str) else ""
        if "ATTR" in each.opname or "METHOD" in each.opname:
            _check_attribute(name, own, where)
        elif name in ASKING and ("GLOBAL" in each.opname or "NAME" in each.opname):
            raise NotCovered(f"{name}() at {where}")
        elif name == "getattr":
            for text in (word for word in code.co_consts if isinstance(word, str)):
                _check_attribute(text, own, where)
    if code.co_name in ("__exit__", "__aexit__", "__getattr__", "__getattribute__", "__next__"):
        raise NotCovered(f"{code.co_name} at {code.co_filename}:{code.co_firstlineno}")


def _is_while(each: dis.Instruction, at: dict[int, dis.Instruction]) -> bool:
    """Whether this jumps back to anything but the head of a ``for``; an await does not count."""
    if "JUMP" not in each.opname or "NO_INTERRUPT" in each.opname:
        return False
    target = each.argval
    if not isinstance(target, int) or target > each.offset:
        return False
    while at[target].opname == "EXTENDED_ARG":
        target += 2
    before = each.offset - 2
    while before in at and at[before].opname == "EXTENDED_ARG":
        before -= 2
    if at[target].opname == "END_SEND" and before in at and at[before].opname == "CLEANUP_THROW":
        return False  # an await whose coroutine was closed: CPython 3.12
    return at[target].opname != "FOR_ITER"


def _check_attribute(name: str, own: frozenset[str], where: str) -> None:
    private = name.startswith("_") and (name.startswith("__") or name not in own)
    if private or name.endswith("_") or name in OWN:
        raise NotCovered(f"the attribute {name} at {where}")
