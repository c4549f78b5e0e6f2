"""Which local variables of a suspended frame may still be read: the others make no difference.

Backwards over the instructions of a code object. Whatever names a variable and is not a plain store
counts as a use of it, and every instruction that may do so goes on to the next one as well; so
nothing that may be read is ever left out.
"""

from __future__ import annotations

import dis
from functools import cache
from types import CodeType, CoroutineType
from typing import Any

from syncproof.models.identity import Identity
from syncproof.models.identity_scan import NULL, Refused

NEVER_ON = (
    "JUMP_FORWARD",
    "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
    "RETURN_VALUE",
    "RETURN_CONST",
    "RERAISE",
    "RAISE_VARARGS",
)
"""What never goes on to the next instruction (CPython 3.11 to 3.13)."""

LOOKING_INSIDE = ("type", "hasattr")
"""What tells an opaque value from a number."""


class LiveIdentity(Identity):
    """Fingerprints without the variables that are not read any more, for opaque values."""

    def _chain(self, coroutine: CoroutineType[Any, Any, Any]) -> Any:
        """The frames, without the variables that are not read any more."""
        frames = super()._chain(coroutine)
        for _, code, frame, found in frames[:-1]:  # the last holds the operation itself
            live = live_at(code, frame.f_lasti)
            for i, name in enumerate(code.co_varnames):
                if name not in live and name not in code.co_cellvars:
                    found[i] = NULL
        return frames

    def refuse_looking_inside(self) -> None:
        """A role that can ask what such a value is made of would see that it is no number."""
        for name in LOOKING_INSIDE:
            if self._environment.names_built_in(name):
                raise Refused(f"{name}() of a value may be asked for")


@cache
def live_at(code: CodeType, instruction: int) -> frozenset[str]:
    """The local variables that may be read once the frame goes on behind ``instruction``."""
    live, after = _solved(code)
    if instruction not in after:
        raise Refused("the frame is at no known instruction")
    return frozenset().union(*(live[each] for each in after[instruction]))


@cache
def _solved(code: CodeType) -> tuple[dict[int, frozenset[str]], dict[int, tuple[int, ...]]]:
    """Per instruction, by offset: what is live before it, and where it may go on."""
    instructions = [*dis.get_instructions(code)]
    after = _successors(code, instructions)
    effects = {each.offset: _effect(each) for each in instructions}
    live: dict[int, frozenset[str]] = {each.offset: frozenset() for each in instructions}
    changed = True
    while changed:
        changed = False
        for offset in reversed(live):
            used, stored = effects[offset]
            out = frozenset().union(*(live[each] for each in after[offset]))
            now = used | (out - stored)
            if now != live[offset]:
                live[offset], changed = now, True
    return live, after


def _successors(code: CodeType, instructions: list[dis.Instruction]) -> dict[int, tuple[int, ...]]:
    handlers = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    offsets = [each.offset for each in instructions]
    after: dict[int, tuple[int, ...]] = {}
    for i, each in enumerate(instructions):
        found = set() if each.opname in NEVER_ON else set(offsets[i + 1 : i + 2])
        if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            found.add(each.argval)
        found |= {entry.target for entry in handlers if entry.start <= each.offset < entry.end}
        after[each.offset] = tuple(found)
    return after


def _effect(each: dis.Instruction) -> tuple[frozenset[str], frozenset[str]]:
    """What an instruction reads and what it surely overwrites."""
    if each.opname == "STORE_FAST":
        return frozenset(), frozenset((each.argval,))
    if "FAST" not in each.opname and each.opcode not in (*dis.haslocal, *dis.hasfree):
        return frozenset(), frozenset()
    names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
    return frozenset(name for name in names if isinstance(name, str)), frozenset()
