"""What a role changes and takes back is seen by who goes on in between, by every engine."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from syncproof.checkers.certificate import roles
from syncproof.checkers.certificate.check import check as certificate
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.search import Budget
from syncproof.models.errors import UserError
from syncproof.models.verdict import Answer, Verdict
from syncproof.registry import built_ins, find
from tests.small import instance
from tests.test_unwatched import ALL, HEAD, verdict_by

FILE = """
{setup}

class TakenBack(Protocol):
    def memory(self):
        self.slot = Region(owner=0, block=8)

    @role(on=[0])
    async def first(self, core: Core):
        await core.quiet()
{first}
        await core.quiet()

    @role(on=[1])
    async def second(self, core: Core):
{second}
        core.check(right, "nobody was there")
"""
GONE_THROUGH = """n = 0
for x in HELD:
    await core.quiet()
    n += 1
right = n == {}"""

CHANNELS = {
    "a list, between two steps": (
        "HELD = [0]",
        "HELD[0] = 1\nawait core.quiet()\nHELD[0] = 0",
        "await core.quiet()\nright = HELD == [0]",
    ),
    "a property that calls another function": (
        "from functools import cached_property\ndef zero(self): return 0\n"
        "def one(self): return 1\nHELD = cached_property(zero)",
        "HELD.func = one\nawait core.quiet()\nHELD.func = zero",
        "await core.quiet()\nright = HELD.func(0) == 0",
    ),
    "a set that held more": (
        "HELD = {1}",
        "for x in (2, 3, 4, 5, 6): HELD.add(x)\nfor x in (2, 3, 4, 5, 6): HELD.discard(x)",
        "await core.quiet()\nHELD.add(8)\nright = list(HELD) == [1, 8]\nHELD.discard(8)",
    ),
    "a set that was looked into": (
        "HELD = {1, 2, 3}",
        "x = HELD.pop()\nHELD.add(x)",
        "await core.quiet()\nx = HELD.pop()\nright = x == 2\nHELD.add(x)",
    ),
    "a deque, gone through": (
        "from collections import deque\nHELD = deque([1, 2, 3])",
        "HELD.append(1)\nHELD.pop()",
        GONE_THROUGH.format(3),
    ),
    "an ordered dict, gone through": (
        "from collections import OrderedDict\nHELD = OrderedDict(a=1, b=2)",
        "HELD['c'] = 1\ndel HELD['c']",
        GONE_THROUGH.format(2),
    ),
    "a dict, gone through": (
        "HELD = {'a': 1, 'b': 2}",
        "HELD['a'] = HELD.pop('a')\nHELD['b'] = HELD.pop('b')",
        GONE_THROUGH.format(2),
    ),
    "a bytearray that is looked at": (
        "HELD = bytearray(1)",
        "look = memoryview(HELD)\nawait core.quiet()\nlook.release()",
        "right = True\ntry:\n    HELD.append(1)\n    del HELD[-1]\n"
        "except BufferError:\n    right = False",
    ),
    "an abstract class that keeps an answer": (
        "from abc import ABC\nMODE = [True]\nclass Asked(ABC):\n"
        "    @classmethod\n    def __subclasshook__(cls, other): return MODE[0]",
        "isinstance(1, Asked)",
        "await core.quiet()\nMODE[0] = False\nright = isinstance(1, Asked)\nMODE[0] = True",
    ),
    "a class below an abstract one": (
        "from abc import ABC\nclass Asked(ABC): pass",
        "class Below(Asked):\n    @classmethod\n    def __subclasshook__(cls, other): return True",
        "await core.quiet()\nright = isinstance(1, Asked)",
    ),
}
LOCAL = (
    "",
    "HELD = {1}\nHELD.add(2)\nHELD.pop()\ntable = {'a': 1}\ntable['a'] = table.pop('a')",
    "HELD = [1]\n" + GONE_THROUGH.format(1),
)


def verdict(channel: tuple[str, str, str], folder: Path, engine: str) -> Verdict | UserError:
    first, second = (indent(each, " " * 8) for each in channel[1:])
    text = FILE.format(setup=channel[0], first=first, second=second)
    file = folder / "taken_back.py"
    file.write_text(HEAD + text, encoding="utf-8")
    return verdict_by(ALL[engine], instance(find(f"{file}:TakenBack").kind, ranks=2))


ENGINES = ("reference", "reduced", "fast", "certificate", "smt", "auto")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("which", CHANNELS)
def test_what_is_taken_back_is_not_proved(which: str, engine: str, tmp_path: Path) -> None:
    """All is as before when the role has done so, and yet another one can tell."""
    found = verdict(CHANNELS[which], tmp_path, engine)
    assert isinstance(found, UserError) or found.answer is not Answer.PROVED


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_role_makes_for_itself_may_change(engine: str, tmp_path: Path) -> None:
    """The tests above can fail: containers of a role's own are its own."""
    found = verdict(LOCAL, tmp_path, engine)
    assert isinstance(found, Verdict) and found.answer is Answer.PROVED


ASKED = """
class Asked(Protocol):
    def memory(self):
        self.data, self.flag = Region(owner=1, block=8), Region(owner=1, block=8)

    @role(on=[0])
    async def first(self, core: Core):
        await core.put(self.data[1], 7)
        await core.quiet()
        await core.put(self.flag[1], 1)
        await core.quiet()

    @role(on=[1])
    async def second(self, core: Core):
        numbers = {1, 2}

        def again(value):
            found = numbers.pop()
            numbers.add(found)
            return found == 2 or value == 1

        await core.wait_until(self.flag[1], again)
        core.check(await core.load(self.data[1]) == 7, "asked twice")
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_condition_that_turns_a_set_is_not_taken_for_a_function(
    engine: str, tmp_path: Path
) -> None:
    """The set holds the same before and behind, and `pop` gives another member."""
    file = tmp_path / "asked.py"
    file.write_text(HEAD + ASKED, encoding="utf-8")
    found = verdict_by(ALL[engine], instance(find(f"{file}:Asked").kind, ranks=2))
    assert isinstance(found, UserError) or found.answer is not Answer.PROVED


@pytest.mark.parametrize("name", sorted(built_ins()))
def test_protocols_of_this_package_take_nothing_back(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the same certificate when all that roles share is looked at behind each step."""
    made = instance(built_ins()[name], ranks=3)
    question = question_of(made, name)
    as_ours = certificate(made, question, "certificate", Budget())
    monkeypatch.setattr(roles, "is_of_package", lambda _: False)
    as_theirs = certificate(made, question, "certificate", Budget())
    assert as_ours.answer is as_theirs.answer is Answer.PROVED
    assert as_ours.transitions == as_theirs.transitions
