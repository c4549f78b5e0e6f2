"""Words in columns: all but the last as wide as they are, the last one wrapped below itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

LEAST_WIDTH = 24

Row = Sequence[Text | str]


def print_columns(console: Console, rows: Iterable[Row], *, indent: int = 2, gap: int = 2) -> None:
    """Print rows of equal length; no line ends in spaces."""
    texts = [[_text(each) for each in row] for row in rows]
    if not texts:
        return
    widths = [max(cell.cell_len for cell in column) for column in zip(*texts, strict=True)][:-1]
    before = indent + sum(width + gap for width in widths)
    room = max(console.width - before, LEAST_WIDTH)
    for *first, last in texts:
        line = Text(" " * indent)
        for cell, width in zip(first, widths, strict=True):
            line.append_text(cell).append(" " * (width - cell.cell_len + gap))
        for part in last.wrap(console, room) or [Text()]:
            line.append_text(part).rstrip()
            console.print(line, soft_wrap=True)
            line = Text(" " * before)


def _text(cell: Text | str) -> Text:
    return cell.copy() if isinstance(cell, Text) else Text(cell)
