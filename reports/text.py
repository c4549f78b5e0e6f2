"""Text from protocols and trace files, made safe and short for a line of output."""

from __future__ import annotations

from pathlib import PurePath

from syncproof.models.verdict import Line


def printable(text: object) -> str:
    """Text without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def source_text(line: Line) -> str:
    """A source line as ``sp.py:27  await core.put(...)``."""
    return f"{PurePath(line.file).name}:{line.line}  {line.text}"


def many(number: object, thing: str) -> str:
    """``1 rank``, ``2,000 ranks``."""
    shown = f"{number:,}" if isinstance(number, int) else str(number)
    return f"{shown} {thing}" if number == 1 else f"{shown} {thing}s"
