"""What a load of a sweep gives is found out once only where its slot alone decides it."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncproof.models.errors import UserError
from syncproof.models.verdict import Answer
from syncproof.registry import find
from tests.small import instance
from tests.test_unwatched import ALL, HEAD, verdict_by

FILE = """
from dataclasses import replace

class Swept(Protocol):
    def memory(self):
        self.word = Region(owner=1, block=8, index=[1])

    @role(on=[0])
    async def writer(self, core: Core):
        for value in (1, 0, 1):
            await core.put(self.word[1][0], value)
            await core.quiet()

    @role(on=[1])
    async def reader(self, core: Core):
        {setup}

        async def sweep():
            first = await {first}
            second = await {second}
            if type(first) is not int or type(second) is not int or not first:
                return None
            return {result}

        found = await core.poll_until(sweep)
        core.check(found == 2, "the second is another")
"""
WORD = "core.load(self.word[1][0])"
OTHER = """other = Region(owner=1, block=8, index=[1], compared=())
        other.place("word", 2, (1,))"""
WAYS = {
    "a condition": (
        "",
        f"replace({WORD}, predicate=lambda word: word == 1)",
        WORD,
        "1 + second",
    ),
    "another region of its name": (OTHER, WORD, "core.load(other[1][0])", "2"),
    "no block": ("", "core.load(self.word[1])", WORD, "2"),
}


def answer(way: tuple[str, str, str, str], folder: Path, engine: str) -> Answer | None:
    setup, first, second, result = way
    text = FILE.format(setup=setup, first=first, second=second, result=result)
    file = folder / "swept.py"
    file.write_text(HEAD + text, encoding="utf-8")
    found = verdict_by(ALL[engine], instance(find(f"{file}:Swept").kind, ranks=2))
    return None if isinstance(found, UserError) else found.answer


@pytest.mark.parametrize("way", WAYS)
def test_loads_that_are_not_alike_are_not_proved(way: str, tmp_path: Path) -> None:
    """The second load may find 0, or cannot be told, and in no case is it an error of ours."""
    assert answer(WAYS[way], tmp_path, "certificate") is Answer.UNDECIDED
    assert answer(WAYS[way], tmp_path, "reference") is not Answer.PROVED


def test_loads_that_are_alike_are_proved(tmp_path: Path) -> None:
    """The test above can fail: two loads of one word, the second of which is thrown away."""
    alike = "", WORD, f"{WORD}\n            second = 1", "1 + second"
    assert answer(alike, tmp_path, "certificate") is Answer.PROVED


FORGED = """
class Forged(Protocol):
    def memory(self):
        self.word = Region(owner=1, block=8)

    @role(on=[0])
    async def writer(self, core: Core):
        await core.put(self.word[1], 1)
        await core.quiet()

    @role(on=[1])
    async def reader(self, core: Core):
        other = Region(owner=1, block=8)
        other.place("word", 2, ())
        await {}
"""
REFUSING = ("certificate", "auto", "reference", "reduced", "fast", "smt")


@pytest.mark.parametrize("engine", REFUSING)
@pytest.mark.parametrize(
    "operation", ["core.wait_until(other[1], lambda word: word == 1)", "core.put(other[1], 1)"]
)
def test_a_region_that_the_role_made_is_refused(
    operation: str, engine: str, tmp_path: Path
) -> None:
    """It has the name of the protocol's own, and is none of its memory."""
    file = tmp_path / "forged.py"
    file.write_text(HEAD + FORGED.format(operation), encoding="utf-8")
    found = verdict_by(ALL[engine], instance(find(f"{file}:Forged").kind, ranks=2))
    if isinstance(found, UserError):
        assert "in a region that the protocol does not hold" in str(found)
    else:
        assert found.answer is Answer.UNDECIDED
