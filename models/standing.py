"""Whether a coroutine that went on has come back to where it stood, told soon.

Equal fingerprints (`identity`) say so too. But most of what they write down cannot have changed:
a coroutine that still awaits the same other one has not run meanwhile, and an object of which
nothing can be changed is what it was. So the innermost coroutine is written down again, and what
may have changed.
"""

from __future__ import annotations

import types
from typing import Any

from syncproof.models.identity import Walk, as_bytes, slots
from syncproof.models.identity_scan import Refused

UNCHANGING = frozenset((int, float, str, bytes, tuple, range, slice, types.MethodType))
LEAF = ("what the innermost coroutine awaits, which is another object each time",)


class Standing:
    """A suspended coroutine as it stands, and all that a walk from it has met: kept alive, so that
    nothing else can be taken for it later."""

    def __init__(self, coroutine: types.CoroutineType[Any, Any, Any], walk: Walk) -> None:
        self.fingerprint = as_bytes(walk.tokens)
        self._walk, self._chain = walk, [coroutine]
        while type(inner := self._chain[-1].cr_await) is types.CoroutineType:
            self._chain.append(inner)
        assert isinstance(inner, types.GeneratorType)
        self._awaited = type(slots(inner, inner.gi_code)[0])
        met = walk.objects[len(self._chain) + 1 :]
        self._changing = [each for each in met if type(each) not in UNCHANGING]
        self._before = self._now()

    def is_as_it_was(
        self, coroutine: types.CoroutineType[Any, Any, Any], looks_around: bool = True
    ) -> bool:
        """Whether this is the coroutine, and surely stands as it did; False says nothing.

        ``looks_around``: so does what it shares with others.
        """
        awaits: Any = coroutine
        for each in self._chain:
            if awaits is not each:
                return False
            awaits = each.cr_await
        try:
            if looks_around and self._walk.environment.changed():
                return False
            return self._now() == self._before
        except Refused:
            return False

    def _now(self) -> bytes:
        """What may have changed, written down; a `Refused` if it cannot be."""
        walk = self._walk
        inner: Any = self._chain[-1]
        leaf = inner.cr_await
        if type(leaf) is not types.GeneratorType or leaf.gi_frame is None:
            raise Refused("it awaits something else")
        awaited, *others = slots(leaf, leaf.gi_code)
        if type(awaited) is not self._awaited:
            raise Refused("it awaits something else")
        inside = awaited.__dict__
        walk.tokens = [inner.cr_frame.f_lasti, leaf.gi_frame.f_lasti, len(inside)]
        walk.write([LEAF if each is leaf else each for each in slots(inner, inner.cr_code)])
        walk.write((leaf.gi_code, type(awaited), *others, *inside, *inside.values()))
        walk.write_again(self._changing)
        return as_bytes(walk.tokens)
