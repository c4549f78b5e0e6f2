"""Verdicts and runs as plain text for mail: what the terminal shows, without colours."""

from __future__ import annotations

import io

from rich.console import Console

from syncproof.models.verdict import Trace, Verdict
from syncproof.reports.terminal import print_trace, print_verdict, summary_line

WIDTH = 78
"""Columns that survive being quoted in a mail."""


def text_of(thing: Verdict | Trace) -> str:
    """A verdict or a run: what is so, of what, and the run that shows it as swim-lanes."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=WIDTH,
        height=25,
        color_system=None,
        force_terminal=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    if isinstance(thing, Trace):
        print_trace(console, thing)
        return file.getvalue()
    print_verdict(console, thing)
    return f"{file.getvalue()}\n{summary_line(thing)}\n"
