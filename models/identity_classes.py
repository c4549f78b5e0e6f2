"""What the objects of a class hold, and whether all of it can be seen."""

from __future__ import annotations

import gc
import sys
import types
import typing
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from syncproof.models.identity_scan import OF_SUBCLASSES

PACKAGE = __name__.rpartition(".")[0]
ROOT = PACKAGE.partition(".")[0]
ENGINES = f"{ROOT}.checkers"
FOLDERS = {Path(__file__).resolve().parents[1] / name for name in ("models", "protocols")}
WORD = 8
TUPLE_HEAD = 3 * WORD
MISSING = object()
GIVING = frozenset(
    f"{PACKAGE}.{name}"
    for name in (
        *("bounds", "core", "errors", "memory", "operations", "per_rank", "protocol", "ranks"),
        *("round_core", "rounds", "values"),
    )
)
"""Modules of this package with classes of objects that roles get hold of."""
BUILT_IN = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
"""What a class has of its own if it is not written in Python."""


def resolves(kind: type) -> bool:
    """Whether a class is the one that its module and qualified name say."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind


class _Plain:
    """A class without slots, for the size of its objects."""


def _tells_values() -> bool:
    alive = _Plain()
    vars(alive)["held"] = alive
    return bool(gc.get_referents(vars(alive)))


TELLS_VALUES = _tells_values()
"""Whether the collector tells what is in the ``__dict__`` of an object: since CPython 3.13 it does
not, as long as the values lie in the object."""


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


def feigns(kind: type) -> bool:
    """Whether a class says itself what it equals, so that it is found among others."""
    equals: Any = type(kind).__eq__
    return equals is not type.__eq__


def slots_of(kind: type) -> tuple[types.MemberDescriptorType, ...] | None:
    """The slots of a class, if they are all that its objects hold; None if they may hold more."""
    found: list[types.MemberDescriptorType] = []
    for each in kind.__mro__[:-1]:
        if "__slots__" not in vars(each) or "__del__" in vars(each):
            return None
        found += [v for v in vars(each).values() if type(v) is types.MemberDescriptorType]
    size = object.__basicsize__ + WORD * len(found)
    is_all = (kind.__basicsize__, kind.__itemsize__, kind.__dictoffset__) == (size, 0, 0)
    return tuple(found) if is_all else None


def is_built_in(kind: type) -> bool:
    """Whether a class is not written in Python, so that nobody sees what it keeps."""
    if not kind.__flags__ & (1 << 9):  # not a heap type
        return True
    return any(
        (isinstance(each, BUILT_IN) and each.__objclass__ is kind)
        or (isinstance(each, types.BuiltinMethodType) and each.__self__ is kind)
        for each in vars(kind).values()
    )


def hides_state(kind: type) -> bool:
    """Whether a class may keep what nobody sees: it is not written in Python, or says itself what
    is below it, and `abc` keeps the answers."""
    hooks = [vars(kind).get(name) for name in OF_SUBCLASSES]
    functions = [getattr(each, "__func__", each) for each in hooks if each is not None]
    is_own = any(getattr(each, "__globals__", None) is not vars(typing) for each in functions)
    return is_own or is_built_in(kind)


def is_of_package(kind: type) -> bool:
    """Whether a class says that it is one of this package's, and all that it does is."""
    files = {Path(each.__code__.co_filename).resolve().parent for each in functions_of(kind)}
    return kind.__module__.startswith(f"{ROOT}.") and files <= FOLDERS


def functions_of(kind: type) -> Iterator[types.FunctionType]:
    """The functions of a class itself, those of its roles and properties among them."""
    for value in vars(kind).values():
        function = getattr(value, "function", None) or getattr(value, "fget", None) or value
        if isinstance(function, types.FunctionType):
            yield function


def is_named_tuple(kind: type) -> bool:
    """Whether `collections` or `typing` made this class, with a ``__new__`` of no globals."""
    made = vars(kind).get("__new__")
    function = made.__func__ if isinstance(made, staticmethod) else made
    return (
        issubclass(kind, tuple)
        and isinstance(function, types.FunctionType)
        and {*function.__globals__} == {"_tuple_new", "__builtins__", "__name__"}
        and function.__globals__["_tuple_new"] == tuple.__new__
        and function.__globals__["__builtins__"] == {}
    )


def is_written(kind: type) -> bool:
    """Whether a class and all that it derives from but ``tuple`` are written in Python."""
    return not any(is_built_in(each) for each in kind.__mro__ if each not in (tuple, object))


def is_set(slot: types.MemberDescriptorType, each: object) -> bool:
    return _slot(slot, each) is not MISSING


def _slot(slot: types.MemberDescriptorType, each: object) -> object:
    try:
        return slot.__get__(each, type(each))
    except AttributeError:
        return MISSING


def probed(
    each: object, slots: tuple[types.MemberDescriptorType, ...]
) -> tuple[Callable[[], object], object]:
    """What tells whether slots hold the same objects, and what it tells now."""
    before = [_slot(slot, each) for slot in slots]

    def is_same() -> bool:
        return all(_slot(slot, each) is old for slot, old in zip(slots, before, strict=True))

    return is_same, True


def is_generated(function: types.FunctionType) -> bool:
    """Whether `dataclasses` wrote this method, which then depends on its closure alone."""
    code = function.__code__
    return code.co_filename == "<string>" and code.co_name.startswith("__")


@cache
def _string_at() -> Callable[[int, int], bytes]:
    from ctypes import string_at

    return string_at


def image(objects: tuple[object, ...]) -> bytes:
    """The identities of the objects in a tuple: its items lie behind its head of three words."""
    return _string_at()(id(objects) + TUPLE_HEAD, WORD * len(objects))


def probes_of(each: object) -> list[tuple[str, Callable[[], object], object]]:
    """What tells whether a container was changed, also where all that it holds is as before.

    A set that held more, a deque that turned once, or a dict whose keys were put in anew, shows it
    to who goes through it meanwhile or adds to it; a bytearray shows that somebody looks at it.
    """
    if not isinstance(each, KEEPING):
        return []
    kind = next(k for k in type(each).__mro__ if k in (OrderedDict, *KEEPING))
    head = object.__basicsize__
    # The words of the container itself, behind the count of references and the type
    body = partial(_string_at(), id(each) + head, kind.__basicsize__ - head)
    probe: Callable[[], object] = body
    if isinstance(each, set):
        probe = partial(table_of, each)
    elif isinstance(each, bytearray):
        probe = lambda: (body(), bytes(each))  # noqa: E731
    return [(f"what a {type(each).__name__} keeps", probe, probe())]


KEEPING = (dict, set, deque, bytearray)


def table_of(numbers: set[Any]) -> tuple[bytes, bytes]:
    """Where the members of a set stand, and where ``pop`` looks for the next one."""
    filled, used, mask, table, _, finger = range(6)
    head = object.__basicsize__
    words = _string_at()(id(numbers) + head, WORD * 6)
    parts = [words[WORD * each : WORD * (each + 1)] for each in range(6)]
    place, last = (int.from_bytes(parts[each], "little") for each in (table, mask))
    told = b"".join(parts[each] for each in (filled, used, mask, finger))
    return told, _string_at()(place, 2 * WORD * (last + 1))


def probe_containers() -> str:
    """Whether containers show that they were changed; empty if all do."""
    made = {1}, {1: 2, 3: 4}, OrderedDict({1: 2}), deque([1]), bytearray(1)
    probes = [probe for each in made for _, probe, _ in probes_of(each)]
    numbers, table, ordered, queue, array = made
    before = [probe() for probe in probes]
    same = before == [probe() for probe in probes]
    numbers.add(2)
    numbers.discard(2)
    table[1] = table.pop(1)
    table[3] = table.pop(3)
    ordered[2] = 0
    del ordered[2]
    queue.rotate()
    queue.append(1)
    queue.pop()
    look = memoryview(array)
    is_seen = all(now() != old for now, old in zip(probes, before, strict=True))
    return "" if same and is_seen and len(look) else "containers"


def closed_over(function: types.FunctionType) -> list[object]:
    """What a function that this package made for somebody closes over, but for functions and
    methods of engines."""
    contents = [value for each in function.__closure__ or () for value in _content(each)]
    return [each for each in contents if not _is_of_engine(each)]


def _is_of_engine(value: object) -> bool:
    if isinstance(value, types.MethodType):
        return _is_of_engine(type(value.__self__))
    if not isinstance(value, types.FunctionType | type):
        return False
    return any(value.__module__.startswith(f"{each}.") for each in (PACKAGE, ENGINES))


def _content(cell: types.CellType) -> list[object]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def classes_of_package() -> tuple[type, ...]:
    """The classes of what a role is given or makes by this package, whether or not it names them:
    whoever has an object may set an attribute of its class."""
    found = (
        each
        for name, module in sorted(sys.modules.copy().items())  # a warning may import more
        if name in GIVING
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == name
    )
    return tuple(found)


def shown(each: object) -> str:
    """An object in words."""
    try:
        return repr(each)[:60]
    except Exception:
        return f"an object of {type(each).__qualname__}"
