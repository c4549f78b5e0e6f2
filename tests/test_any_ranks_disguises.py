"""Files for ``--ranks any`` that tell ranks apart: right at two ranks, wrong at three."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from syncproof.checkers.any_ranks.argument import proved_for_many
from syncproof.checkers.any_ranks.check import check
from syncproof.checkers.any_ranks.grammar import check_written
from syncproof.checkers.explicit.check import check as explicit
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.models.bounds import Bounds
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol
from syncproof.models.verdict import Answer
from syncproof.registry import find

FILE = """from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, role


class Disguised(Protocol):
    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=32, fields={"FIELD": 32}, initial=0)

    def format(self, text: Any) -> Any:
        return text

    @role
    async def sender(self, core: Core) -> None:
        for peer in core.destinations():
            await core.put(self.flag[peer][core.rank], 1)
        await core.quiet()
        # here
"""

CHOICES = """a = core.choose(("x", core.rank), (0, 1))
        b = core.choose(("x", 0), (0, 1)) == a or core.choose(("x", 1), (0, 1)) == a
        core.check(b, "none of two")"""
IN_ROUNDS = """a = core.choose(("x", core.rank), (0, 1))
        same = False
        for number in range(2):
            same = same or core.choose(("x", number), (0, 1)) == a
        core.check(same, "none of two")"""
BY_WORDS = """for peer in core.destinations():
            a = len(core.tokens_to(peer, 0))
            b = core.choose(("tokens", 0, 1, 0), (0, 1)) == a
            core.check(b or core.choose(("tokens", 1, 0, 0), (0, 1)) == a, "none of two")"""

DISGUISES = {
    "a choice named by a number": ("count", CHOICES),
    "a choice named by a number in a loop": ("count", IN_ROUNDS),
    "a choice with the name of the routing's": ("count", BY_WORDS),
    "a method named format": ("count", 'core.check(len("{0._groups}".format(core)) < 140, "x")'),
    "a field named format_map": (
        "format_map",
        'core.check(len("{c._groups}".format_map({"c": core})) < 140, "x")',
    ),
    "a field named members": (
        "members",
        'core.check(len(core.sync("all").members) < 3 or not core.sync("all").members, "x")',
    ),
    "a field named group": ("group", 'core.check(core.sync("rank").group != "rank 2", "x")'),
    "the text of an operation": (
        "count",
        """made = core.sync("all")
        core.check("1, 2" not in f"{made}", "x")""",
    ),
}


def made(source: str, folder: Path, ranks: int) -> Instance:
    file = folder / "disguised.py"
    file.write_text(source)
    bounds = Bounds(ranks, 1, 1, routing="all")
    return Instance(find(str(file)).kind, bounds, load_profile("cm384"), {})


def is_covered(protocol: Protocol) -> bool:
    try:
        check_written(protocol)
    except NotCovered:
        return False
    return True


@pytest.mark.parametrize("which", DISGUISES)
def test_what_is_wrong_at_three_ranks_is_not_proved_for_any(which: str, tmp_path: Path) -> None:
    """Right at two ranks and wrong at three: refused as a file, or not proved for any number."""
    field, text = DISGUISES[which]
    source = FILE.replace("FIELD", field).replace("# here", text)
    two, three = (made(source, tmp_path, ranks) for ranks in (2, 3))
    assert explicit(two, question_of(two, "file"), "reduced").answer is Answer.PROVED
    assert explicit(three, question_of(three, "file"), "reduced").answer is Answer.VIOLATED
    assert proved_for_many(three, question_of(three, "file"), Budget(), None) is None
    if is_covered(two.protocol()):
        assert check(two, question_of(two, "file")).answer is Answer.UNDECIDED


def test_choices_in_which_ranks_and_numbers_stand_apart_are_covered(tmp_path: Path) -> None:
    """The rule about names of choices costs nothing where they are told by a rank and a number."""
    text = """a = core.choose(("x", core.rank, 0), (0, 1)) + core.choose(("y", 1), (0, 1))
        core.check(a < 3, "never")"""
    two = made(FILE.replace("FIELD", "count").replace("# here", text), tmp_path, 2)
    assert is_covered(two.protocol())
    assert check(two, question_of(two, "file")).answer is Answer.PROVED


HIDDEN = """# coding: utf-7
# +AAo-def rung(count, round): return [*map(abs, (count,))] == [1]
"""


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    """What Python reads in a comment may be a statement, and none that is gone through here."""
    two = made(HIDDEN + FILE.replace("FIELD", "count"), tmp_path, 2)
    with pytest.raises(NotCovered, match="another encoding"):
        check_written(two.protocol())


HELPED = """
NUMBER = 1

def helper(core: Any) -> int:
    return 1
"""


@pytest.mark.parametrize("name", ["helper", "NUMBER", "RANK"])
def test_names_that_were_given_another_value_are_refused(name: str, tmp_path: Path) -> None:
    """A function, a constant or an import of the file that somebody has replaced."""
    two = made(FILE.replace("FIELD", "count") + HELPED, tmp_path, 2)
    protocol = two.protocol()
    check_written(protocol)
    setattr(sys.modules[type(protocol).__module__], name, lambda *_: 1)
    with pytest.raises(NotCovered, match=f"{name}, which is not what is written"):
        check_written(protocol)
