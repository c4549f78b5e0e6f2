"""Two counterexamples of one question, side by side."""

from __future__ import annotations

from itertools import zip_longest

from rich.console import Console
from rich.table import Table

from syncproof.models.verdict import Trace, TraceStep, Verdict
from syncproof.reports.text import many, printable


def print_beside(console: Console, one: Verdict, other: Verdict) -> None:
    """What two engines say, and their runs step by step; ``=`` stands for the same step."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("step", justify="right", style="dim")
    for each in (one, other):
        table.add_column(f"{each.engine}: {outcome(each)}", ratio=1, overflow="fold")
    mine, theirs = one.trace, other.trace
    steps = zip_longest(_steps(mine), _steps(theirs))
    for number, (here, there) in enumerate(steps):
        right = "=" if here and there and _told(here) == _told(there) else _text(there)
        table.add_row(str(number + 1), _text(here), right)
    console.print(table)


def outcome(verdict: Verdict) -> str:
    """The answer in a few words: ``happens-before violated in 19 steps``."""
    if verdict.trace is None:
        return verdict.answer.value
    return f"{verdict.trace.property} violated in {many(len(verdict.trace.steps), 'step')}"


def _steps(trace: Trace | None) -> tuple[TraceStep, ...]:
    return trace.steps if trace is not None else ()


def _told(step: TraceStep) -> tuple[str, str]:
    return (step.actor, step.text)


def _text(step: TraceStep | None) -> str:
    return "" if step is None else printable(f"{step.actor}: {step.text}")
