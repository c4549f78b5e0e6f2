"""A hang as a table: who waits where, what is seen there, and why nobody can help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from syncproof.models.verdict import Waiting
from syncproof.reports.text import printable, source_text


def wait_for_rows(waiting: Sequence[Waiting]) -> Iterator[tuple[Text, Text, str]]:
    """The wait-for table: for each blocked process its name once, then what there is to say."""
    for each in waiting:
        name = printable(each.process)
        for label, text in _said_of(each):
            yield Text(name, style="bold"), Text(label, style="dim"), printable(text)
            name = ""


def _said_of(waiting: Waiting) -> Iterator[tuple[str, str]]:
    yield "is blocked in", waiting.operation
    if waiting.line is not None:
        yield "at", source_text(waiting.line)
        if waiting.line.at:
            yield "kernel", waiting.line.at
    if waiting.sees:
        yield "sees", waiting.sees
    yield "could be helped by", ", ".join(waiting.helpers) or "nobody"
    yield "but", waiting.reason
