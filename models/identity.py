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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import CodeType, CoroutineType, FrameType, FunctionType, GeneratorType
from typing import Any, TypeAlias

from syncproof.models.identity_walk import NULL, Environment, Refused, Walk

WORD = 8
LONGEST_CLOSE = 1000
Suspended: TypeAlias = "CoroutineType[Any, Any, Any] | GeneratorType[Any, Any, Any]"


@dataclass(frozen=True)
class Refusal:
    """This coroutine cannot be captured: why, and at which ``file:line`` it is suspended."""

    reason: str
    where: str


@cache
def _places(code: CodeType) -> int:
    """How many places a frame has: locals, cells, free variables, value stack."""
    names = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    return len(names) + code.co_stacksize


@cache
def _words(count: int) -> Any:
    from ctypes import c_size_t

    return c_size_t * count


def slots(suspended: Suspended, code: CodeType) -> list[Any]:
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


class Identity:
    """Fingerprints of the coroutines of one role.

    ``shared`` (the protocol, the core) and all that they reach stand for themselves; ``leaf`` is
    the type of what the innermost coroutine awaits, which yields once and returns what it is sent.
    """

    def __init__(self, shared: Sequence[object], leaf: type) -> None:
        self._leaf = leaf
        self._leaf_code: CodeType | None = None
        self._trouble = self_test() or self._check_leaf()
        if not self._trouble:
            try:
                self._environment = Environment(shared)
            except Refused as refused:
                self._trouble = str(refused)

    def _check_leaf(self) -> str:
        function = getattr(self._leaf, "__await__", None)
        if type(function) is not FunctionType:
            return f"{self._leaf.__qualname__} has no __await__ of its own"
        self._leaf_code = function.__code__
        names = [each.opname for each in dis.get_instructions(function)]
        if names.count("YIELD_VALUE") != 1 or any("BACKWARD" in name for name in names):
            return f"{self._leaf.__qualname__} may yield more than once"
        return ""

    def fingerprint(self, coroutine: CoroutineType[Any, Any, Any]) -> bytes | Refusal:
        """Equal bytes only for coroutines that nothing can tell apart; or why there are none."""
        if self._trouble:
            return Refusal(self._trouble, _where(coroutine))
        try:
            tokens = self._stable(coroutine)
        except Refused as refused:
            return Refusal(str(refused), _where(coroutine))
        if changed := self._environment.changed():
            return Refusal(changed, _where(coroutine))
        return marshal.dumps(tokens, 2)  # version 2: no references, so only values count

    def _stable(self, coroutine: CoroutineType[Any, Any, Any]) -> list[Any]:
        """The tokens, written without the environment growing meanwhile."""
        positions = self._environment.positions
        while True:
            before = len(positions)
            tokens = self._tokens(coroutine)
            if len(positions) == before:
                return tokens

    def _tokens(self, coroutine: CoroutineType[Any, Any, Any]) -> list[Any]:
        frames = self._chain(coroutine)
        walk = Walk(self._environment)
        for each, _, _ in frames:
            walk.number(each)
        for each, code, frame in frames:
            self._environment.adopt_code(code, frame.f_globals)
            found = slots(each, code)
            walk.tokens += (walk.number(code), frame.f_lasti, len(found))
            walk.write(found)
        return walk.finish(len(frames))

    def _chain(
        self, coroutine: CoroutineType[Any, Any, Any]
    ) -> list[tuple[Suspended, CodeType, FrameType]]:
        found: list[tuple[Suspended, CodeType, FrameType]] = []
        inner: Any = coroutine
        while type(inner) is CoroutineType:
            if inner.cr_frame is None:
                raise Refused("the coroutine is not suspended")
            found.append((inner, inner.cr_code, inner.cr_frame))
            inner = inner.cr_await
        if type(inner) is not GeneratorType or inner.gi_code is not self._leaf_code:
            raise Refused(f"it awaits {type(inner).__qualname__}, not an operation of its core")
        leaf = slots(inner, inner.gi_code)
        if type(leaf[0]) is not self._leaf:
            raise Refused(f"it awaits {type(leaf[0]).__qualname__}, not an operation of its core")
        found.append((inner, inner.gi_code, inner.gi_frame))
        return found


def _where(coroutine: CoroutineType[Any, Any, Any]) -> str:
    """The innermost line that is suspended."""
    where, inner = "", coroutine
    while type(inner) is CoroutineType and inner.cr_frame is not None:
        where = f"{inner.cr_frame.f_code.co_filename}:{inner.cr_frame.f_lineno}"
        inner = inner.cr_await
    return where


def discard(coroutine: CoroutineType[Any, Any, Any]) -> None:
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
        coroutine = role(one, two, given)
        coroutine.send(None)
        found = slots(coroutine, coroutine.cr_code)
        names = [*coroutine.cr_code.co_varnames]
        if [found[names.index("b")], found[names.index("given")]] != [two, given]:
            return "locals"
        if (found[names.index("late")] is NULL) is bool(given):
            return "unbound locals"
        if not any(each is given for each in found[len(names) :]) or found[-1] is not coroutine.cr_await:
            return "operands"
        coroutine.close()
    return ""


@cache
def self_test() -> str:
    """What of the interpreter is not as relied on; empty if all is."""
    if sys.implementation.name != "cpython" or not (3, 11) <= sys.version_info[:2] <= (3, 13):
        return "this interpreter's frames are not known"
    if sys.maxsize != 2**63 - 1 or sys.byteorder != "little":
        return "this machine's words are not known"
    try:
        trouble = _probe_frames()
    except Exception as error:
        trouble = str(error)
    return f"frames do not read back: {trouble}" if trouble else ""
