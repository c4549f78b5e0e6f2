"""A hang as a table: who waits where, what is seen there, and why nobody can help."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from syncproof.models.verdict import Waiting
from syncproof.reports.text import printable, source_text


def wait_for_table(waiting: Sequence[Waiting]) -> Table:
    """The wait-for table: a row for each blocked process."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True)
    table.add_column("blocked", ratio=3)
    table.add_column("waits for", ratio=3)
    table.add_column("sees", ratio=2)
    table.add_column("who could help, and why not", ratio=4)
    for each in waiting:
        table.add_row(_who(each), Text(printable(each.operation)), Text(printable(each.sees)), _why(each))
    return table


def _who(waiting: Waiting) -> Text:
    who = Text(printable(waiting.process), style="bold")
    if waiting.line is not None:
        who.append("\n" + printable(source_text(waiting.line)), style="not bold dim")
        if waiting.line.at:
            who.append("\n" + printable(f"kernel: {waiting.line.at}"), style="not bold dim")
    return who


def _why(waiting: Waiting) -> Text:
    helpers = ", ".join(waiting.helpers) or "nobody"
    return Text(printable(f"{helpers}: {waiting.reason}"))
