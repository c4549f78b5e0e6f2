"""Snippets of docs/translate.md and docs/undecided.md give the answers that stand above them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from inspect import iscoroutinefunction
from pathlib import Path

import pytest

from syncproof.budget import parse_size
from syncproof.checkers.explicit.check import Interrupted, check
from syncproof.checkers.explicit.search import Budget
from syncproof.cli import check as check_command
from syncproof.cli import run
from syncproof.engines import engines_for
from syncproof.models.core import Core
from syncproof.models.protocol import Protocol
from syncproof.models.transitions import PROPERTIES
from syncproof.models.verdict import Answer, Verdict
from syncproof.registry import find
from syncproof.request import Request, resolve
from syncproof.swarm import swarm_of

DOCS = Path(__file__).parents[1] / "docs"
TRANSLATE = (DOCS / "translate.md").read_text(encoding="utf-8")
ROWS = "\n".join(re.findall(r"^\|.*$", TRANSLATE, re.MULTILINE))
UNDECIDED = (DOCS / "undecided.md").read_text(encoding="utf-8")

SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^- `([^`]+)`: (proved|violated|not decided)(?:: (.+))?$", re.MULTILINE)
CLASS = re.compile(r"^class (\w+)\(Protocol\):$", re.MULTILINE)
IN_TRANSLATE = ("--rounds", "2")

ENGINES = ("reference", "reduced", "auto")
MEANT = {each.name for each in fields(Request)}


@dataclass(frozen=True)
class Claim:
    """A line of a document: what is asked of which protocol, and the answer that it promises."""

    code: str
    arguments: str
    answer: str
    detail: str

    @property
    def engines(self) -> tuple[str, ...]:
        """Those that the line is asked of: all of `ENGINES`, or the one that it names."""
        words = shlex.split(self.arguments)
        if "--swarm" in words:
            return ("swarm",)
        return (words[words.index("--engine") + 1],) if "--engine" in words else ENGINES


def snippets(text: str) -> list[tuple[str, str]]:
    """Each snippet with the text between it and the one before."""
    found, end = [], 0
    for each in SNIPPET.finditer(text):
        found.append((text[end : each.start()], each[1]))
        end = each.end()
    return found


def in_translate() -> Iterator[tuple[str, Claim]]:
    """Every line of translate.md, which belongs to the snippet behind it."""
    (_, imports), *others = snippets(TRANSLATE)
    for before, code in others:
        name = CLASS.findall(code)[0]
        for arguments, answer, detail in LINE.findall(before):
            yield name, Claim(f"{imports}\n\n{code}", arguments, answer, detail)


def in_undecided() -> Iterator[tuple[str, Claim]]:
    """Every line of undecided.md; its first word names a snippet's file or a protocol of ours."""
    code = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", CLASS.findall(each)[0]).lower() + ".py": each
        for _, each in snippets(UNDECIDED)
    }
    for line, answer, detail in LINE.findall(UNDECIDED):
        name, _, arguments = line.partition(" ")
        yield name, Claim(code.get(name, ""), arguments, answer, detail)


def cases(claims: Iterator[tuple[str, Claim]]) -> list[object]:
    """A test for each claim and engine."""
    return [
        pytest.param(name, claim, engine, id=f"{name} {claim.arguments} by {engine}")
        for name, claim in claims
        for engine in claim.engines
    ]


def request(spec: str, arguments: list[str]) -> Request:
    """What the command line makes of these words."""
    given = check_command.make_context("check", [spec, *arguments]).params
    return Request(**{name: each for name, each in given.items() if name in MEANT and each})


def answered(spec: str, arguments: list[str], engine: str) -> Verdict:
    """The verdict of one engine on a protocol or a file."""
    asked = request(spec, arguments)
    memory = parse_size(asked.memory) if asked.memory else 0
    subject = resolve(asked, find(spec))
    budget = Budget(asked.budget_states, asked.budget_seconds, memory)
    (found,) = (swarm_of(asked),) if engine == "swarm" else engines_for(engine)
    return found.check(subject.instance, subject.question, budget, lambda *_: None)


def assert_holds(claim: Claim, verdict: Verdict) -> None:
    """The verdict is the one that the document gives, for the property or the reason it gives."""
    assert verdict.answer.value == claim.answer
    given = {each.property: each for each in verdict.properties}
    if claim.answer == "violated":
        assert claim.detail in PROPERTIES
        assert given[claim.detail].answer is Answer.VIOLATED
    elif claim.answer == "not decided":
        assert claim.detail
        assert all(each.detail.startswith(claim.detail) for each in given.values())
    else:
        assert not claim.detail


@cache
def file_with(code: str, folder: Path) -> Path:
    """A file with this code, written once."""
    file = folder / f"{CLASS.findall(code)[0]}.py"
    file.write_text(code, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("snippets")


@pytest.mark.parametrize(("name", "claim", "engine"), cases(in_translate()))
def test_a_snippet_gives_the_answer_above_it(
    name: str, claim: Claim, engine: str, folder: Path
) -> None:
    """What translate.md says of a snippet and its misuse is what each engine finds."""
    file = file_with(claim.code, folder)
    arguments = [*IN_TRANSLATE, *shlex.split(claim.arguments)]
    assert_holds(claim, answered(f"{file}:{name}", arguments, engine))


@pytest.mark.parametrize(("name", "claim", "engine"), cases(in_undecided()))
def test_an_example_of_undecided_is_what_it_says(
    name: str, claim: Claim, engine: str, folder: Path
) -> None:
    """What undecided.md says is not decided is not, for that reason, and its remedies decide it."""
    spec = str(file_with(claim.code, folder)) if claim.code else name
    assert_holds(claim, answered(spec, shlex.split(claim.arguments), engine))


def test_every_snippet_has_a_right_use_and_a_misuse() -> None:
    """Each snippet of translate.md is proved in one way and violated in another."""
    answers: dict[str, set[str]] = {CLASS.findall(c)[0]: set() for _, c in snippets(TRANSLATE)[1:]}
    for name, claim in in_translate():
        answers[name].add(claim.answer)
    assert len(answers) > 20
    assert {name for name, given in answers.items() if given != {"proved", "violated"}} == set()


def test_every_line_with_an_answer_is_read() -> None:
    """No line that promises an answer has a form that these tests pass over."""
    promised = re.compile(r"^- .*: (?:proved|violated|not decided)", re.MULTILINE)
    assert len(promised.findall(TRANSLATE)) == len(list(in_translate()))
    assert len(promised.findall(UNDECIDED)) == len(list(in_undecided()))


def test_every_example_file_of_undecided_is_in_it() -> None:
    """A line of undecided.md that names a file names a snippet of the document."""
    missing = [name for name, claim in in_undecided() if name.endswith(".py") and not claim.code]
    assert missing == []


@pytest.mark.parametrize("text", [TRANSLATE, UNDECIDED], ids=["translate", "undecided"])
def test_every_link_leads_to_a_heading(text: str) -> None:
    """Links within a document have a target."""
    headings = re.findall(r"^#+ (.+)$", SNIPPET.sub("", text), re.MULTILINE)
    targets = {heading.lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= targets


def test_every_snippet_is_linked_from_a_table() -> None:
    """A snippet that no row of translate.md names would not be found."""
    linked = set(re.findall(r"\[`(\w+)`\]\(#", ROWS))
    assert linked == {CLASS.findall(code)[0] for _, code in snippets(TRANSLATE)[1:]}


def test_every_operation_has_a_row() -> None:
    """Each operation that a role can await is named in a table of translate.md."""
    operations = [
        name
        for name, each in vars(Core).items()
        if not name.startswith("_")
        and (iscoroutinefunction(each) or gives(each) in ("Operation", "Held"))
    ]
    assert len(operations) > 20
    assert [name for name in operations if not re.search(rf"\b{name}\b", ROWS)] == []


def gives(function: object) -> str:
    """The name of what a method returns."""
    return str(getattr(function, "__annotations__", {}).get("return", ""))


def test_exit_code_3_comes_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """The command line ends with 3 and names the flag to raise."""
    assert run(shlex.split("sp --ranks 3 --engine reference --budget-states 500")) == 3
    printed = " ".join(capsys.readouterr().out.split())
    assert "the search stopped at --budget-states 500" in printed


def test_an_interrupted_search_says_so() -> None:
    """Ctrl-C leaves every property undecided, with that as the reason."""

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    subject = resolve(Request("sp", ranks=3), find("sp"))
    with pytest.raises(Interrupted) as stopped:
        check(subject.instance, subject.question, "reference", report=interrupt)
    verdict = stopped.value.verdict
    assert {each.detail for each in verdict.properties} == {"interrupted"}
    assert verdict.answer is Answer.UNDECIDED


def test_a_first_failure_leaves_the_others_undecided() -> None:
    """A violation says of the other properties that the search stopped there."""
    arguments = shlex.split("--set windows=1 --rounds 2 --routing balanced")
    verdict = answered("sp", arguments, "reduced")
    others = [each for each in verdict.properties if each.answer is not Answer.VIOLATED]
    assert others
    assert {(each.answer, each.detail) for each in others} == {
        (Answer.UNDECIDED, "the search stopped at the first failure")
    }


def test_a_role_that_logs_keeps_its_history(folder: Path) -> None:
    """Without its logging the same poll merges, and is decided within the same budget."""
    claim = next(claim for name, claim in in_undecided() if name == "logged_poll.py")
    silent = claim.code.replace('logging.debug("not yet")', "pass")
    silent = silent.replace("import logging\n\n", "")
    file = folder / "silent_poll.py"
    file.write_text(silent, encoding="utf-8")
    assert "logging" not in silent
    verdict = answered(str(file), shlex.split(claim.arguments), "reference")
    assert verdict.answer is Answer.PROVED


def test_snippets_are_protocols(folder: Path) -> None:
    """Each snippet stands alone: one protocol, found by the name of its file."""
    for name, claim in in_translate():
        kind = find(str(file_with(claim.code, folder))).kind
        assert issubclass(kind, Protocol)
        assert kind.__name__ == name
