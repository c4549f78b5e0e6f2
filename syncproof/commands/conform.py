"""``check-protocol conform``: is a log a run of the protocol's model?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from syncproof.checkers.emulator.accept import Accepted, Undecided, accept
from syncproof.checkers.emulator.logs import Entry, Log, read_log
from syncproof.models.errors import UserError
from syncproof.models.verdict import Question
from syncproof.registry import blaming, find
from syncproof.reports.terminal import console_on
from syncproof.reports.text import printable
from syncproof.request import asked_again

CONFORMS, UNDECIDED, NOT_CONFORMING = 0, 3, 4


def run(protocol: str, path: str) -> int:
    """Hold a log against the model; 0 if it can be a run, 4 if not, 3 if that is not decided."""
    log = read_log(_lines(path), path)
    _check_is_of(log.question, protocol, path)
    console = console_on(sys.stdout)
    with redirect_stdout(sys.stderr):
        subject = find(protocol)
        asked = asked_again(log.question, subject)
        _check_same_settings(log.question, asked.question, path)
        try:
            with blaming(subject, innermost=True):
                found = accept(log, asked.instance)
        except Undecided as reason:
            text = Text(f"{printable(protocol)}: not decided: {reason}")
            console.print(text, soft_wrap=True)
            return UNDECIDED
    _report(console, protocol, log, found)
    return CONFORMS if found.is_whole else NOT_CONFORMING


def _lines(path: str) -> Iterator[str]:
    try:
        with Path(path).open(encoding="utf-8") as file:
            yield from file
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=path) from None
    except UnicodeDecodeError:
        raise UserError("is no text", where=path, expected="a log in UTF-8") from None


def _check_is_of(question: Question, protocol: str, path: str) -> None:
    if Path(question.protocol).name != Path(protocol).name:
        raise UserError(
            f"the log is of {question.protocol!r:.60}, not of {protocol!r:.60}",
            where=path,
            expected=f"check-protocol conform {question.protocol:.60}",
        )


def _check_same_settings(recorded: Question, now: Question, path: str) -> None:
    for name, value in recorded.settings.items():
        if now.settings.get(name, value) != value:
            raise UserError(f"the protocol's {name} is another now", where=path)


def _report(console: Console, protocol: str, log: Log, found: Accepted) -> None:
    if found.is_whole:
        what = f"conforms: all {found.total} steps"
    else:
        what = f"does not conform: {found.length} of {found.total} steps are accepted"
    console.print(Text(f"{printable(protocol)}: {what}"), soft_wrap=True)
    if found.entry is None:
        return
    before = log.entries[max(0, found.length - 3) : found.length]
    for each in before:
        console.print(Text(f"   accepted  line {each.line}: {_entry_text(each)}"), soft_wrap=True)
    line = f"    refused  line {found.entry.line}: {_entry_text(found.entry)}"
    console.print(Text(line), soft_wrap=True)
    for text in found.expected or ("that nothing more happens",):
        console.print(Text(f"   expected  {printable(text)}"), soft_wrap=True)


def _entry_text(entry: Entry) -> str:
    told = {**asdict(entry), "fields": ""}
    values = ", ".join(f"{name}: {value}" for name, value in entry.fields)
    parts = [told["process"], told["what"], told["slot"], values and f"= {values}"]
    return printable(" ".join(filter(None, parts)))[:200]
