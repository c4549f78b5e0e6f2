"""Protocols in a test suite of your own: checked, and held to what was expected.

    from syncproof.asserts import check_protocol

    def test_my_kernel():
        check_protocol("my_kernel.py", ranks=3)

With pytest the fixture ``check_protocol`` is the same, files relative to the test's own folder.
"""

from __future__ import annotations

import inspect
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from syncproof.budget import default_memory, parse_size
from syncproof.checkers.explicit.replay import replay
from syncproof.checkers.explicit.search import Budget
from syncproof.commands.check import ask, engines_of
from syncproof.engines import AUTOMATIC
from syncproof.gate.obligations import spelled
from syncproof.models.gate import ALL, Obligation, Standing, judge
from syncproof.models.protocol import Protocol, Setting
from syncproof.models.verdict import Answer, Trace, Verdict, from_data
from syncproof.registry import Subject, blaming, find
from syncproof.reports.terminal import print_verdict
from syncproof.request import Request, asked_again, resolve

PAGE = 100
"""Columns of a report in a failed test."""


def check_protocol(
    protocol: str | type[Protocol],
    *,
    expect: str | Mapping[str, str] = "proved",
    at: str = "",
    settings: Mapping[str, Setting] | None = None,
    folder: Path | None = None,
    **asked: Any,
) -> Verdict:
    """Check a protocol and fail the test, with the run that shows why, unless it is as expected.

    ``protocol`` is a class, a name or a file relative to ``folder`` (default: the current one).
    ``expect`` is proved, violated, not decided, or a mapping of properties to these; ``at`` a piece
    of the line at which a violation has to show. Other arguments are those of the command line:
    ``ranks``, ``tokens``, ``rounds``, ``experts``, ``topk``, ``routing``, ``fabric``, ``dropped``,
    ``properties``, ``mutant``, ``engine``, ``memory``, ``budget_states``, ``budget_seconds``.

    Raises `AssertionError`, and `UserError` for a question that cannot be asked.
    """
    name = protocol if isinstance(protocol, str) else protocol.__name__
    given = tuple(f"{key}={spelled(value)}" for key, value in (settings or {}).items())
    words: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in asked.items()
    }
    request = replace(Request(name, settings=given), **words)
    with working_in(folder):
        subject = find(protocol) if isinstance(protocol, str) else _subject(protocol)
        resolved = resolve(request, subject, unbounded=True)
        memory = parse_size(request.memory) if request.memory else default_memory()
        budget = Budget(request.budget_states, request.budget_seconds, memory)
        verdict = ask(resolved, engines_of(request), budget).verdict
    expected = {ALL: expect} if isinstance(expect, str) else dict(expect)
    obligation = Obligation(name, name, request.command(), expected, at)
    standing, message = judge(obligation, verdict)
    if standing is not Standing.HELD:
        raise AssertionError(f"{message}\n\n{report_of(verdict)}\nagain: {obligation.command}")
    return verdict


def _subject(kind: type[Protocol]) -> Subject:
    return Subject(kind.__name__, kind, inspect.getfile(kind))


def report_of(verdict: Verdict) -> str:
    """A verdict with its run, as the command line prints it."""
    file = io.StringIO()
    console = Console(file=file, width=PAGE, highlight=False, markup=False, emoji=False)
    print_verdict(console, verdict)
    return file.getvalue()


@contextmanager
def working_in(folder: Path | None) -> Iterator[None]:
    """Within, relative paths start at ``folder``."""
    before = os.getcwd()
    os.chdir(folder or before)
    try:
        yield
    finally:
        os.chdir(before)


# A counterexample that was saved as a test


def assert_run_is_gone(trace: str, folder: Path) -> None:
    """Fail while the recorded run can still be walked and breaks its property.

    ``trace`` is its JSON; a protocol in a file is relative to ``folder``.
    """
    recorded = _trace(trace)
    with working_in(folder):
        subject = find(recorded.question.protocol)
        asked = asked_again(recorded.question, subject)
        with blaming(subject, innermost=True):
            replayed = replay(recorded, asked.instance)
    if replayed.reproduced:
        raise AssertionError(f"{recorded.message}: {replayed.message}")


def assert_property_holds(trace: str, folder: Path) -> None:
    """Fail unless the property that the recorded run breaks is now proved of the same question."""
    recorded = _trace(trace)
    with working_in(folder):
        asked = asked_again(recorded.question, find(recorded.question.protocol))
        verdict = ask(asked, [AUTOMATIC], Budget(memory=default_memory())).verdict
    found = {each.property: each.answer for each in verdict.properties}
    is_proved = verdict.answer is Answer.PROVED
    if found.get(recorded.property) is not Answer.PROVED and not is_proved:
        raise AssertionError(report_of(verdict))


def _trace(text: str) -> Trace:
    found: Trace = from_data(Trace, json.loads(text), "the saved trace")
    return found
