"""Files of the user's under ``--ranks any``: the language that is covered, and what is refused."""

from __future__ import annotations

import ast
import copy
import sys
from pathlib import Path
from random import Random

import pytest

from syncproof.checkers.any_ranks.argument import proved_for_many
from syncproof.checkers.any_ranks.grammar import check_written
from syncproof.checkers.explicit.check import check as explicit
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.models.bounds import Bounds
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol
from syncproof.models.verdict import Answer
from syncproof.registry import find

CM384 = load_profile("cm384")
MAILBOX = '''"""Each rank puts tokens into the mailbox of every other."""

from __future__ import annotations

from typing import Any

from syncproof.models.core import Core
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, parameter, role

FIRST, SIZE = 0, 32
# module


def rung(count: int, round: int) -> bool:
    return count == round + 1


class Mailbox(Protocol):
    """A box and a flag for each source."""

    quiet: bool = parameter(True, "the flag is put when the token has landed")
    # class

    def memory(self) -> None:
        self.box = Region(index=(RANK,), initial=0)
        self.flag = Region(index=(RANK,), block=SIZE, fields={"count": SIZE}, initial=FIRST)
        self.taken = Region(index=(RANK,), block=SIZE, fields={"count": SIZE}, initial=FIRST)
        # memory

    @role
    async def sender(self, core: Core) -> None:
        for round in core.rounds():
            for peer in core.destinations():
                await core.wait_until(self.taken[core.rank][peer], lambda count: count == round)
                await core.put(self.box[peer][core.rank], core.payload(peer, 0, round))
                if self.quiet:
                    await core.quiet()
                await core.put(self.flag[peer][core.rank], round + 1)
        await core.quiet()

    @role
    async def receiver(self, core: Core) -> None:
        for round in core.rounds():
            told = core.per_rank()
            for source in core.sources():
                told[source] = await self.take(core, source, round)
            for source in core.sources():
                core.check(told[source] is not None, "nothing was told")
                # role
        await core.quiet()

    async def take(self, core: Core, source: int, round: int) -> Any:
        flag = self.flag[core.rank][source]
        found = await core.wait_until(flag, lambda count: rung(count, round))
        core.consume(await core.load(self.box[core.rank][source]), source, 0, round)
        await core.put(self.taken[source][core.rank], round + 1)
        return found
'''


def written(source: str, folder: Path, name: str = "mailbox") -> type[Protocol]:
    """The protocol in a file with this text."""
    file = folder / f"{name}.py"
    file.write_text(source)
    return find(str(file)).kind


def check_file(source: str, folder: Path) -> None:
    kind = written(source, folder)
    check_written(kind(Bounds(2, 1, 1)))


def proved_from_two(kind: type[Protocol], rounds: int = 1) -> bool:
    made = Instance(kind, Bounds(3, 1, rounds), CM384, {})
    return proved_for_many(made, question_of(made, "file"), Budget(), None) is not None


def test_a_file_in_the_language_is_proved_from_two(tmp_path: Path) -> None:
    """What is proved of the file for any number of ranks holds at three, all interleavings."""
    kind = written(MAILBOX, tmp_path)
    assert proved_from_two(kind, rounds=2)
    at_three = Instance(kind, Bounds(3, 1, 2), CM384, {})
    assert explicit(at_three, question_of(at_three, "file"), "reduced").answer is Answer.PROVED


def test_a_file_built_on_a_protocol_of_ours_is_covered(tmp_path: Path) -> None:
    """`sw` as a file of the user's, on the package's own counts."""
    ours = Path(str(find("sw").kind.memory.__code__.co_filename)).read_text()
    check_file(ours, tmp_path)


REFUSED = {
    "a while": ("# role", "while told: pass"),
    "an exception caught": ("# role", "try: pass\n                except Exception: pass"),
    "an exception raised": ("# role", "raise ValueError"),
    "an assertion": ("# role", "assert told"),
    "a name of Python's": ("# role", "core.check(id(core) > 0, 'x')"),
    "a name of Python's as a value": ("# role", "key = hash"),
    "a name that an inner function binds": (
        "# role",
        "key = vars\n                def inner() -> None:\n                    vars = 1",
    ),
    "an import": ("# module", "import sys"),
    "an import of a module of theirs": ("# module", "from os import path"),
    "an import of all": ("# module", "from syncproof.protocols.sw import *"),
    "an import under another name": ("# module", "from syncproof.models.memory import RANK as R"),
    "what a protocol of ours imports": ("# module", "from syncproof.protocols.sw import RANK"),
    "an import within": ("# role", "import sys"),
    "a list that stays": ("# module", "LIST = []"),
    "a dict that stays": ("# class", "table = {}"),
    "a default that stays": ("# role", "def inner(seen: Any = []) -> None: pass"),
    "a call while it is imported": ("# module", "SEEN = list()"),
    "a metaclass": ("# module", "class Other(Protocol, metaclass=type): pass"),
    "a class of another kind": ("# module", "class Other:\n    def __eq__(self, o): return True"),
    "a decorator": ("# class", "@staticmethod\n    def f() -> int: return 1"),
    "a private method": ("# class", "def _f(self) -> int: return 1"),
    "a method of every protocol": ("# class", "def ranks_of(self, role: Any) -> Any: return [0]"),
    "a name that is ours": ("# module", "def assumption(f: Any) -> Any: return f"),
    "a private attribute": ("# role", "key = core._choices"),
    "an attribute of an opaque type": ("# role", "key = source.which_"),
    "an attribute of a frame": ("# role", "key = core.quiet.__self__"),
    "an attribute of a number": ("# role", "key = source.real"),
    "a format": ("# role", "key = '{}'.format(source)"),
    "a comparison by identity": ("# role", "key = source is core.rank"),
    "a global": ("# role", "global FIRST"),
    "an attribute that is set": ("# role", "self.box = told"),
    "an entry of what is shared": ("# role", "self.flag[0] = told"),
    "a coroutine that is kept": ("# role", "later = self.take(core, source, round)"),
    "a coroutine function as a value": ("# role", "later = self.take"),
    "a variable that is called": ("# role", "f = rung\n                f(1, 1)"),
    "what is called without a name": ("# role", "key = [rung][0](1, 1)"),
    "a function of the object": ("# memory", "self.f = lambda x: x"),
    "a generator": ("# role", "key = lambda: (yield)"),
    "a walrus": ("# role", "core.check((key := 1) == 1, 'x')"),
    "a set": ("# role", "key = {1, 2}"),
    "a star": ("# role", "key = [*told]"),
    "a deletion": ("# role", "del told"),
    "a match": ("# role", "match told:\n                    case _: pass"),
    "a class within": ("# role", "class Inner: pass"),
    "an annotation that is worked out": ("# role", "def inner(x: print(1) = 1) -> None: pass"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_all_else_is_refused_with_its_line(which: str, tmp_path: Path) -> None:
    """The file is as before, with one thing in it that the language does not have."""
    mark, text = REFUSED[which]
    assert MAILBOX.count(mark) == 1
    line = MAILBOX[: MAILBOX.index(mark)].count("\n") + 1
    with pytest.raises(NotCovered) as refused:
        check_file(MAILBOX.replace(mark, text), tmp_path)
    message = str(refused.value)
    near = {f"mailbox.py:{number}" for number in range(line, line + 3)}
    assert any(message.endswith(each) for each in near) or message.startswith(
        ("the name ", "self.")
    ), message


def test_the_same_functions_under_another_text_are_refused(tmp_path: Path) -> None:
    """What runs has to be what is written: a method that somebody has put into the class is not."""
    kind = written(MAILBOX, tmp_path)
    check_written(kind(Bounds(2, 1, 1)))

    async def take(self: Protocol, *_: object) -> None:
        raise UserError("never run")

    kind.take = take  # type: ignore[attr-defined]
    with pytest.raises(NotCovered, match="is not what is written"):
        check_written(kind(Bounds(2, 1, 1)))


@pytest.mark.parametrize("is_there", [False, True])
def test_a_class_that_says_it_is_ours_is_refused(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may say that its class is of a module of this package, and even put it there."""
    file = tmp_path / "mailbox.py"
    file.write_text(MAILBOX.replace("# class", "__module__ = 'syncproof.protocols.sw'"))
    kind = find(f"{file}:Mailbox").kind
    if is_there:
        monkeypatch.setattr(sys.modules[kind.__module__], "Mailbox", kind, raising=False)
    with pytest.raises(NotCovered):
        check_written(kind(Bounds(2, 1, 1)))


def mutated(random: Random) -> str:
    """The mailbox with a few statements of its roles left out, doubled, swapped or moved."""
    tree = ast.parse(MAILBOX)
    roles = [each for each in ast.walk(tree) if isinstance(each, ast.AsyncFunctionDef)]
    bodies = [
        each.body
        for role in roles
        for each in ast.walk(role)
        if isinstance(each, ast.AsyncFunctionDef | ast.For | ast.If)
    ]
    for _ in range(random.randint(1, 2)):
        body, other = random.choice(bodies), random.choice(bodies)
        i = random.randrange(len(body))
        statement = copy.deepcopy(body[i])
        way = random.choice(("left out", "doubled", "swapped", "moved"))
        if way == "left out" and len(body) > 1:
            del body[i]
        elif way == "swapped" and i:
            body[i - 1], body[i] = body[i], body[i - 1]
        elif way in ("doubled", "moved"):
            other.insert(random.randrange(len(other) + 1), statement)
            if way == "moved" and len(body) > 1 and body is not other:
                body.pop(i)
    return ast.unparse(ast.fix_missing_locations(tree))


def campaign(seeds: range, folder: Path) -> tuple[int, list[str]]:
    """How many mutants two ranks prove for all, and those of them that three ranks break."""
    proved, wrong = 0, []
    for seed in seeds:
        source = mutated(Random(seed))
        try:
            kind = written(source, folder, f"mutant{seed}")
            if not proved_from_two(kind):
                continue
        except UserError:
            continue
        proved += 1
        made = Instance(kind, Bounds(3, 1, 1), CM384, {})
        question = question_of(made, "file")
        if explicit(made, question, "reduced", Budget(states=20_000)).answer is Answer.VIOLATED:
            wrong.append(source)
    return proved, wrong


def test_mutants_that_two_ranks_prove_hold_at_three(tmp_path: Path) -> None:
    """Statements of a file are changed at random: what is proved for any number is not broken."""
    proved, wrong = campaign(range(40), tmp_path)
    assert (proved >= 5, wrong) == (True, [])


@pytest.mark.long
def test_many_mutants_that_two_ranks_prove_hold_at_three(tmp_path: Path) -> None:
    """The same, 2,000 of them."""
    proved, wrong = campaign(range(1000, 3000), tmp_path)
    print(f"{proved} files proved for any number of ranks, {len(wrong)} broken at three")
    assert (proved >= 200, wrong) == (True, [])
