"""Text from protocols and trace files, made safe and short for a line of output."""

from __future__ import annotations

from functools import cache
from pathlib import PurePath

from syncproof.models.verdict import Line, Trace


def printable(text: object) -> str:
    """Text without characters that a terminal would obey."""
    words = str(text)
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)


def source_text(line: Line) -> str:
    """A source line as ``sp.py:27  await core.put(...)``."""
    return f"{_name_of(line.file)}:{line.line}  {line.text}"


@cache
def _name_of(file: str) -> str:
    return PurePath(file).name


def many(number: object, thing: str) -> str:
    """``1 rank``, ``2,000 ranks``."""
    shown = f"{number:,}" if isinstance(number, int) else str(number)
    return f"{shown} {thing}" if number == 1 else f"{shown} {thing}s"


def violation_text(trace: Trace) -> str:
    """In how many steps a property is violated, and what is known of that number."""
    if trace.fewest:
        return f"is violated in {many(len(trace.steps), 'step')}; no run with fewer does"
    return f"is violated in {many(len(trace.shown), 'step')}; no single one can be left out"
