"""Whether two suspended coroutines surely have the same future: capture everything, or refuse.

The whole await chain is written down at once: code and instruction of each frame, its locals by
place, its value stack, and every object reached from there. What is reached without a frame must
be as it was. Rules: the project's soundness notes, C8 and C9.
"""

from __future__ import annotations

import dis
import gc
import marshal
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import EnumMeta
from functools import cache
from itertools import chain, islice
from typing import Any, TypeAlias, TypeVar

from syncproof.models.identity_classes import WORD, feigns, image, plain, probe_containers, resolves
from syncproof.models.identity_scan import NULL, Refused, trusted
from syncproof.models.identity_walk import Environment

STANDING = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.ModuleType,
)
LONGEST_CLOSE = 1000
T = TypeVar("T")
Suspended: TypeAlias = "types.CoroutineType[Any, Any, Any] | types.GeneratorType[Any, Any, Any]"


@dataclass(frozen=True)
class Refusal:
    """This coroutine cannot be captured: why, and at which ``file:line`` it is suspended.

    ``is_change``: because what all runs share is not as it was when they began.
    """

    reason: str
    where: str
    is_change: bool = False


@cache
def _places(code: types.CodeType) -> int:
    """How many places a frame has: locals, cells, free variables, value stack."""
    names = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    return len(names) + code.co_stacksize


@cache
def _words(count: int) -> Any:
    from ctypes import c_size_t

    return c_size_t * count


def slots(suspended: Suspended, code: types.CodeType) -> list[Any]:
    """The locals and the value stack of a suspended frame, ``NULL`` where there is nothing.

    The frame lies behind the coroutine's own fields, its places last, the height of the stack in
    the word before them (CPython 3.11 to 3.13, ``_PyInterpreterFrame``). The addresses only say
    which places are empty: they must be those of the objects that the collector reports.
    """
    places = _places(code)
    start = id(suspended) + type(suspended).__basicsize__ - WORD
    words = _words(places + 1).from_address(start)[:]
    height = words[0] & 0xFFFFFFFF
    if height > places:
        raise Refused("the frame cannot be read")
    addresses = words[1 : height + 1]
    filled = [address for address in addresses if address]
    referents = gc.get_referents(suspended)
    begin = len(referents) - len(filled)
    if [*map(id, referents[begin:])] != filled:
        begin -= 1
        if begin < 0 or [*map(id, referents[begin:-1])] != filled:
            raise Refused("the frame cannot be read")
        if referents[-1] is not None:
            raise Refused("an exception is being handled")
    for each in referents[:begin]:
        if type(each) is dict:
            raise Refused("locals() or the frame's locals were used")
    objects = iter(referents[begin:])
    return [next(objects) if address else NULL for address in addresses]


def as_bytes(tokens: list[Any]) -> bytes:
    """Tokens as bytes: equal ones of equal types."""
    return marshal.dumps(tokens, 2)  # version 2: no references, so only values count


class Walk:
    """Numbers for all objects reached from frames, and the tokens that write them down."""

    def __init__(self, environment: Environment, writers: Writers) -> None:
        self.environment, self._positions = environment, environment.positions
        self._writers = writers
        self.numbers: dict[int, int] = {}
        self.objects: list[Any] = []
        self.tokens: list[Any] = []

    def number(self, each: object) -> int:
        """The number of an object: below 0 if it stands for itself."""
        key = id(each)
        found = self._positions.get(key)
        if found is None:
            found = self.numbers.get(key)
            if found is None:
                found = self.numbers[key] = len(self.numbers)
                self.objects.append(each)
        return found

    def write(self, objects: Iterable[object]) -> None:
        """Write the numbers of some objects."""
        positions, numbers, found = self._positions, self.numbers, self.objects
        append = self.tokens.append
        for each in objects:
            key = id(each)
            number = positions.get(key)
            if number is None:
                number = numbers.get(key)
                if number is None:
                    number = numbers[key] = len(found)
                    found.append(each)
            append(number)

    def finish(self, first: int) -> list[Any]:
        """Write the contents of all objects from number ``first`` on, and give all tokens."""
        self.write_again(islice(self.objects, first, None))  # which grows meanwhile
        return self.tokens

    def write_again(self, objects: Iterable[Any]) -> None:
        """Write the contents of objects, by the numbers that all have."""
        for each in objects:
            kind = type(each)
            writer = self._writers.get(kind) if type(kind) is type else None
            if writer is None:
                self._object(each, kind)
            else:
                writer(self, each)

    def function(self, each: types.FunctionType) -> None:
        """A function that the run made: what it does, and what it closes over."""
        self.environment.adopt_code(each.__code__, each.__globals__)
        if getattr(each, "__type_params__", ()):
            raise Refused(f"the generic function {each.__qualname__}")
        closure = each.__closure__ or ()
        self.tokens += ("function", len(closure))
        self.write(
            (
                each.__code__,
                each.__globals__,
                each.__defaults__,
                each.__kwdefaults__,
                each.__name__,
                each.__qualname__,
                each.__doc__,
                each.__module__,
            )
        )
        self.write(closure)
        for inside in (each.__dict__, each.__annotations__):
            self.tokens.append(len(inside))
            self.write(chain.from_iterable(inside.items()))

    def _object(self, each: Any, kind: type) -> None:
        if feigns(kind):
            raise Refused(f"an object of {kind.__qualname__}, which says itself what it equals")
        if isinstance(each, type):
            self._class(each)
            self._standing(each)
            return
        if isinstance(kind, EnumMeta) or kind in STANDING:
            self._standing(each)
            return
        if kind is types.BuiltinMethodType:
            self._builtin(each)
            return
        if id(kind) not in self._positions:
            self._class(kind)
        if why := plain(kind):
            raise Refused(f"an object of {kind.__module__}.{kind.__qualname__}, which {why}")
        inside = each.__dict__
        self.tokens += ("object", self.number(kind), self.environment.shape(inside))
        self.write(inside.values())

    def _class(self, kind: type) -> None:
        if id(kind) not in self._positions:
            if not resolves(kind):
                raise Refused(f"the class {kind.__qualname__} was made while the role runs")
            if plain(kind) and not isinstance(kind, EnumMeta) and kind.__flags__ & (1 << 9):
                raise Refused(f"an object of {kind.__qualname__}, which {plain(kind)}")
            if not kind.__flags__ & (1 << 9) and not trusted(kind.__module__):
                raise Refused(f"an object of {kind.__module__}.{kind.__qualname__}")
            self.environment.adopt(kind)

    def _standing(self, each: Any) -> None:
        """An object of which there is one, by qualified identity."""
        self.environment.adopt(each)

    def _builtin(self, each: Any) -> None:
        owner = each.__self__
        if owner is None or isinstance(owner, types.ModuleType | type):
            self._standing(each)
            return
        if type(owner) not in WRITERS:
            raise Refused(f"a bound method of {type(owner).__qualname__}")
        self.tokens += ("builtin", each.__name__, self.number(owner))


def _atom(walk: Walk, each: Any) -> None:
    walk.tokens += ("atom", each)


def _sequence(walk: Walk, each: Any) -> None:
    walk.tokens += (type(each).__name__, len(each))
    walk.write(each)


def _dict(walk: Walk, each: Any) -> None:
    walk.tokens += ("dict", len(each))
    walk.write(each)
    walk.write(each.values())


def _bytearray(walk: Walk, each: Any) -> None:
    walk.tokens += ("bytearray", bytes(each))


def _range(walk: Walk, each: Any) -> None:
    walk.tokens.append(type(each).__name__)
    walk.write((each.start, each.stop, each.step))


def _range_iterator(walk: Walk, each: Any) -> None:
    _, (rest,), index = each.__reduce__()
    walk.tokens += ("range_iterator", rest.start, rest.stop, rest.step, index)


def _iterator(walk: Walk, each: Any) -> None:
    """An iterator over a sequence; one that is exhausted has let go of it."""
    reduced = each.__reduce__()
    if len(reduced) != 3:
        walk.tokens += (type(each).__name__, 0)
        return
    walk.tokens += (type(each).__name__, 1, walk.number(reduced[1][0]), reduced[2])


def _enumerate(walk: Walk, each: Any) -> None:
    _, (inner, count) = each.__reduce__()
    walk.tokens += ("enumerate", walk.number(inner), count)


def _zip(walk: Walk, each: Any) -> None:
    reduced = each.__reduce__()
    inner = reduced[1] if len(reduced) > 1 else ()
    walk.tokens += ("zip", len(inner), len(reduced) > 2)
    walk.write(inner)


def _cell(walk: Walk, each: Any) -> None:
    inside = gc.get_referents(each)
    walk.tokens += ("cell", len(inside))
    walk.write(inside)


def _method(walk: Walk, each: Any) -> None:
    walk.tokens += ("method", walk.number(each.__func__), walk.number(each.__self__))


Writers: TypeAlias = Mapping[type, Callable[[Walk, Any], None]]
"""How objects of a type are written down."""

WRITERS: Writers = {
    **dict.fromkeys((int, float, str, bytes), _atom),
    tuple: _sequence,
    list: _sequence,
    dict: _dict,
    bytearray: _bytearray,
    range: _range,
    slice: _range,
    type(iter(range(0))): _range_iterator,
    type(iter(())): _iterator,
    type(iter([])): _iterator,
    type(iter("a")): _iterator,
    type(iter("\u0101")): _iterator,
    type(reversed([])): _iterator,
    reversed: _iterator,
    enumerate: _enumerate,
    zip: _zip,
    types.CellType: _cell,
    types.MethodType: _method,
    types.FunctionType: Walk.function,
}


class Identity:
    """Fingerprints of the coroutines of one role.

    ``shared`` (the protocol, the core) and all that they reach stand for themselves; ``leaf`` is
    the type of what the innermost coroutine awaits, which yields once and returns what it is sent.
    """

    def __init__(self, shared: Sequence[object], leaf: type, writers: Writers = WRITERS) -> None:
        self._leaf, self._writers = leaf, writers
        self._leaf_code: types.CodeType | None = None
        self._trouble = self_test() or self._check_leaf()
        if not self._trouble:
            try:
                self._environment = Environment(shared)
            except Refused as refused:
                self._trouble = str(refused)

    def beside(self, *objects: object) -> Identity:
        """The same for a role to which these objects belong too, without another walk over all
        that it shares with others."""
        made = copy(self)
        if not self._trouble:
            try:
                made._environment = self._environment.beside(*objects)
            except Refused as refused:
                made._trouble = str(refused)
        return made

    def _check_leaf(self) -> str:
        function = getattr(self._leaf, "__await__", None)
        if type(function) is not types.FunctionType:
            return f"{self._leaf.__qualname__} has no __await__ of its own"
        self._leaf_code = function.__code__
        names = [each.opname for each in dis.get_instructions(function)]
        if names.count("YIELD_VALUE") != 1 or any("BACKWARD" in name for name in names):
            return f"{self._leaf.__qualname__} may yield more than once"
        return ""

    def fingerprint(self, coroutine: types.CoroutineType[Any, Any, Any]) -> bytes | Refusal:
        """Equal bytes only for coroutines that nothing can tell apart; or why there are none."""
        found = self._stable(coroutine, self._tokens)
        return found if isinstance(found, Refusal) else as_bytes(found)

    def captured(self, coroutine: types.CoroutineType[Any, Any, Any]) -> Walk | Refusal:
        """The walk from a coroutine that its fingerprint is made of."""
        return self._stable(coroutine, self._walk)

    def _stable(
        self,
        coroutine: types.CoroutineType[Any, Any, Any],
        take: Callable[[types.CoroutineType[Any, Any, Any]], T],
    ) -> T | Refusal:
        """What is taken of a coroutine without the environment changing or growing meanwhile."""
        if self._trouble:
            return Refusal(self._trouble, _where(coroutine))
        positions = self._environment.positions
        try:
            before = -1
            while before < len(positions):
                before = len(positions)
                found = take(coroutine)
        except Refused as refused:
            return self._refusal(str(refused), coroutine)
        if changed := self._environment.changed():
            return self._refusal(changed, coroutine)
        return found

    def _refusal(self, reason: str, coroutine: types.CoroutineType[Any, Any, Any]) -> Refusal:
        is_change = not self._environment.trouble and bool(self._environment.changed())
        return Refusal(reason, _where(coroutine), is_change)

    def _tokens(self, coroutine: types.CoroutineType[Any, Any, Any]) -> list[Any]:
        return self._walk(coroutine).tokens

    def _walk(self, coroutine: types.CoroutineType[Any, Any, Any]) -> Walk:
        frames = self._chain(coroutine)
        walk = Walk(self._environment, self._writers)
        for each, _, _, _ in frames:
            walk.number(each)
        for _, code, frame, found in frames:
            self._environment.adopt_code(code, frame.f_globals)
            walk.tokens += (walk.number(code), frame.f_lasti, len(found))
            walk.write(found)
        walk.finish(len(frames))
        return walk

    def _chain(
        self, coroutine: types.CoroutineType[Any, Any, Any]
    ) -> list[tuple[Suspended, types.CodeType, types.FrameType, list[Any]]]:
        found: list[tuple[Suspended, types.CodeType, types.FrameType, list[Any]]] = []
        inner: Any = coroutine
        while type(inner) is types.CoroutineType:
            frame = inner.cr_frame
            if frame is None:
                raise Refused("the coroutine is not suspended")
            found.append((inner, frame.f_code, frame, slots(inner, frame.f_code)))
            inner = inner.cr_await
        if type(inner) is not types.GeneratorType or inner.gi_code is not self._leaf_code:
            raise Refused(f"it awaits {type(inner).__qualname__}, not an operation of its core")
        assert inner.gi_frame is not None
        leaf = slots(inner, inner.gi_code)
        if type(leaf[0]) is not self._leaf:
            raise Refused(f"it awaits {type(leaf[0]).__qualname__}, not an operation of its core")
        found.append((inner, inner.gi_code, inner.gi_frame, leaf))
        return found


def _where(coroutine: types.CoroutineType[Any, Any, Any]) -> str:
    """The innermost line that is suspended."""
    where = ""
    inner: Any = coroutine
    while type(inner) is types.CoroutineType and inner.cr_frame is not None:
        where = f"{inner.cr_frame.f_code.co_filename}:{inner.cr_frame.f_lineno}"
        inner = inner.cr_await
    return where


def discard(coroutine: types.CoroutineType[Any, Any, Any]) -> None:
    """End a suspended coroutine quietly, even one whose ``finally`` awaits."""
    for _ in range(LONGEST_CLOSE):
        try:
            coroutine.close()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            if coroutine.cr_frame is None:
                return
        else:
            return
    from ctypes import py_object, pythonapi

    pythonapi.Py_IncRef(py_object(coroutine))  # it never ends: never finalised, never reported


class _Once:
    def __await__(self) -> Any:
        return (yield self)


def _probe_frames() -> str:
    """A frame with unbound locals, a cell, operands and a NULL reads back exactly."""

    async def role(a: Any, b: Any, given: list[Any]) -> None:
        if given:
            late = 7  # noqa: F841
        inner = lambda: a  # noqa: E731
        given.append((b, inner, await _Once()))

    for given in ([], [1]):
        one, two = object(), object()
        coroutine: Any = role(one, two, given)
        coroutine.send(None)
        found = slots(coroutine, coroutine.cr_code)
        names = [*coroutine.cr_code.co_varnames]
        if [found[names.index("b")], found[names.index("given")]] != [two, given]:
            return "locals"
        if (found[names.index("late")] is NULL) is bool(given):
            return "unbound locals"
        if found[-1] is not coroutine.cr_await or not any(x is given for x in found[len(names) :]):
            return "operands"
        coroutine.close()
    return ""


def _probe_objects() -> str:
    """Identities lie in tuples, and cells and iterators show what they hold."""
    held: list[Any] = [object(), [1]]
    three = (held, held[0], 3)
    if image(three) != b"".join(id(each).to_bytes(WORD, sys.byteorder) for each in three):
        return "tuples"
    if gc.get_referents(types.CellType(held)) != [held] or gc.get_referents(types.CellType()):
        return "cells"
    if {*map(id, gc.get_referents(held))} != {*map(id, held)}:
        return "lists"
    for each in (iter(held), iter(three), iter("ab"), iter("\u0101"), reversed(held)):
        rest: Any = each.__reduce__()
        if len(rest) != 3 or type(rest[2]) is not int:
            return f"{type(each).__name__}"
        if len([*each]) and len(each.__reduce__()) == 3:
            return f"exhausted {type(each).__name__}"
    if marshal.dumps([True, 1, 1.0, -0.0], 2) == marshal.dumps([1, True, 1.0, 0.0], 2):
        return "marshal"
    return ""


@cache
def self_test() -> str:
    """What of the interpreter is not as relied on; empty if all is."""
    if sys.implementation.name != "cpython" or not (3, 11) <= sys.version_info[:2] <= (3, 13):
        return "this interpreter's frames are not known"
    if sys.maxsize != 2**63 - 1 or sys.byteorder != "little":
        return "this machine's words are not known"
    try:
        trouble = _probe_frames() or _probe_objects() or probe_containers()
    except Exception as error:
        trouble = str(error)
    return f"this interpreter keeps {trouble} in another way" if trouble else ""
