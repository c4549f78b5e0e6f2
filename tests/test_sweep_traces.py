"""What a sweep may leave behind where few look: nothing that another turn can tell by is proved.

The certificate tries a sweep on coroutines of their own, which share the core of their process.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from syncproof.models.errors import UserError
from syncproof.models.verdict import Answer
from syncproof.registry import find
from tests.small import instance
from tests.test_unwatched import ALL, HEAD, verdict_by

FILE = """
class Marked(Protocol):
    def memory(self):
        self.word = Region(owner=1, block=8)

    @role(on=[0])
    async def writer(self, core: Core):
        for value in (1, 2, 1):
            await core.put(self.word[1], value)
            await core.quiet()

    @role(on=[1])
    async def reader(self, core: Core):
        {start}

        async def sweep():
            word = await core.load(self.word[1])
            if word == 1:
                {mark}
                return 1
            return None if word == 0 or {marked} else 2

        try:
            found = await core.poll_until(sweep)
        finally:
            {end}
        core.check(found in (1,), "two")
"""
WAYS = {
    "an attribute that it has": ("pass", "core.count = 5", "core.count == 5", "core.count = 1"),
    "an attribute that it gets": (
        "core.mark = 0",
        "core.mark = 1",
        "core.mark",
        "core.mark = 0\n            del core.mark",
    ),
}


ONE_WORD = """
    def memory(self):
        self.word = Region(owner=1, block=8)

    @role(on=[0])
    async def writer(self, core: Core):
        await core.put(self.word[1], 1)
        await core.quiet()

    @role(on=[1])
    async def reader(self, core: Core):
"""
LONGER = (
    f"\nclass Longer(Protocol):{ONE_WORD}"
    + """
        held = bytearray(8)

        async def sweep():
            if await core.load(self.word[1]):
                return 1
            held.append(0)
            held.pop()
            return None

        await core.quiet()
        room = held.__alloc__()
        await core.poll_until(sweep)
        core.check({right}, "it was longer")
"""
)


def answer(way: tuple[str, str, str, str], folder: Path, engine: str) -> Answer | None:
    start, mark, marked, end = way
    text = FILE.format(start=start, mark=mark, marked=marked, end=end)
    return answer_to(text, "Marked", folder, engine)


def answer_to(text: str, name: str, folder: Path, engine: str) -> Answer | None:
    file = folder / "traces.py"
    file.write_text(HEAD + text, encoding="utf-8")
    found = verdict_by(ALL[engine], instance(find(f"{file}:{name}").kind, ranks=2))
    return None if isinstance(found, UserError) else found.answer


@pytest.mark.parametrize("engine", ["certificate", "auto", "reference"])
@pytest.mark.parametrize("way", WAYS)
def test_a_mark_on_the_core_is_not_proved(way: str, engine: str, tmp_path: Path) -> None:
    """A sweep that finds 2 passes with it, but not beside one that marked the core before."""
    assert answer(WAYS[way], tmp_path, engine) is not Answer.PROVED


def test_the_same_without_a_mark_is_proved(tmp_path: Path) -> None:
    """The tests above can fail: a sweep that does not write to its core is tried."""
    plain = ("pass", "pass", "word == 2", "pass")
    assert answer(plain, tmp_path, "certificate") is Answer.PROVED


@pytest.mark.parametrize("engine", ["certificate", "auto", "reduced", "fast"])
def test_what_a_bytearray_has_room_for_is_not_asked(engine: str, tmp_path: Path) -> None:
    """It holds what it held, and keeps more memory than it did."""
    asks = LONGER.format(right="held.__alloc__() == room")
    assert answer_to(asks, "Longer", tmp_path, engine) is not Answer.PROVED
    plain = LONGER.replace("held.__alloc__()", "8").format(right="len(held) == room")
    assert answer_to(plain, "Longer", tmp_path, engine) is Answer.PROVED


FEIGNING = """
HASH = hash({kind})

class Feigned(type):
    def __hash__(cls): return HASH
    def __eq__(cls, other): return True

class Feigning(metaclass={metaclass}):
    start = stop = step = 0
    def __len__(self): return 0
    def __iter__(self): return iter(())
    def values(self): return ()

class Noted(Protocol):{word}
        held = Feigning()
        held.count = 0

        async def sweep():
            if await core.load(self.word[1]):
                return 1
            held.count = {left}
            return None

        await core.poll_until(sweep)
        core.check(held.count == 0, "a turn failed")
"""


@pytest.mark.parametrize("engine", ["certificate", "auto", "reduced", "fast"])
@pytest.mark.parametrize("kind", ["int", "tuple", "dict", "range"])
def test_an_object_of_a_class_that_equals_another_is_looked_into(
    kind: str, engine: str, tmp_path: Path
) -> None:
    """It is no tuple, and what it holds is not what a tuple holds."""
    feigning = FEIGNING.format(kind=kind, metaclass="Feigned", left=1, word=ONE_WORD)
    assert answer_to(feigning, "Noted", tmp_path, engine) is not Answer.PROVED
    plain = FEIGNING.format(kind=kind, metaclass="type", left=0, word=ONE_WORD)
    assert answer_to(plain, "Noted", tmp_path, engine) is Answer.PROVED
