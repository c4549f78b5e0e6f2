"""A gate on a terminal: what is being answered now, and at the end what became of each."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from syncproof.models.gate import GateReport, Obligation, Result, Standing
from syncproof.models.verdict import Verdict
from syncproof.reports.columns import print_columns
from syncproof.reports.terminal import print_trace
from syncproof.reports.text import many, printable

STYLES = {
    Standing.HELD: "bold green",
    Standing.UNEXPECTED: "bold red",
    Standing.UNDECIDED: "bold yellow",
    Standing.REFUSED: "bold magenta",
    Standing.BROKEN: "bold magenta",
}
MOST_SHOWN = 12
"""Obligations under way that the live table names."""


class LiveTable:
    """``with LiveTable(console) as table:`` shows the obligations under way, on a terminal only."""

    def __init__(self, console: Console) -> None:
        self._under_way: dict[str, float] = {}
        self._done: dict[Standing, int] = {}
        self._is_shown = console.is_terminal
        self._live = Live(console=console, transient=True, get_renderable=self._table)

    def planned(self, obligation: Obligation) -> None:
        """An obligation is about to be answered."""
        self._under_way[obligation.name] = time.monotonic()

    def done(self, result: Result) -> None:
        """An obligation has its result; what is wrong is said at once."""
        self._under_way.pop(result.obligation.name, None)
        self._done[result.standing] = self._done.get(result.standing, 0) + 1
        if self._is_shown and result.standing is not Standing.HELD:
            self._live.console.print(_row_text(result), soft_wrap=True)

    def __enter__(self) -> LiveTable:
        if self._is_shown:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_shown:
            self._live.stop()

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, show_header=False)
        counts = [f"{number} {standing.value}" for standing, number in self._done.items()]
        waiting = len(self._under_way)
        table.add_row(Text(", ".join([*counts, f"{waiting} to answer"])))
        for name in list(self._under_way)[:MOST_SHOWN]:
            table.add_row(Text(f"  {printable(name)}", style="dim"))
        return table


def print_gate(console: Console, report: GateReport, *, is_quiet: bool = False) -> None:
    """Every obligation with what was expected and found, then what is wrong, then one line."""
    if not is_quiet:
        rows = [(*_row(each),) for each in report.results]
        print_columns(console, rows, indent=0)
        print_failures(console, report.failed)
        console.print()
    for remark in report.remarks:
        style = "bold red" if remark.fails else "bold yellow"
        text = Text(printable(remark.kind), style=style)
        text.append(f": {printable(remark.name)}: {printable(remark.text)}", style="not bold")
        console.print(text, soft_wrap=True)
    console.print(Text(gate_line(report)), soft_wrap=True)


def print_failures(console: Console, failed: Iterable[Result]) -> None:
    """What is not as expected: why, the run that shows it, and the command that repeats it."""
    for result in failed:
        console.print()
        console.print(_row_text(result), soft_wrap=True)
        if result.verdict is not None and result.verdict.trace is not None and result.property:
            console.print()
            print_trace(console, result.verdict.trace, with_question=False)
        console.print()
        console.print(Text(f"again: {printable(result.obligation.command)}"), soft_wrap=True)


def gate_line(report: GateReport) -> str:
    """The line that scripts look for."""
    counts = {
        "obligations": len(report.results),
        "expected": report.count(Standing.HELD),
        "unexpected": report.count(Standing.UNEXPECTED),
        "undecided": report.count(Standing.UNDECIDED),
        "refused": report.count(Standing.REFUSED),
        "errors": report.count(Standing.BROKEN),
    }
    said = " ".join(f"{name}={number}" for name, number in counts.items())
    return printable(f"gate: {report.answer} {said} file={report.file}")


def _row(result: Result) -> tuple[Text, str, str]:
    cost = "" if result.verdict is None else many(result.verdict.states, "state")
    spent = "kept" if result.cached else f"{result.seconds:.1f} s"
    details = ", ".join(each for each in (_found(result.verdict), cost, spent) if each)
    return _mark(result), details, printable(result.obligation.name)


def _found(verdict: Verdict | None) -> str:
    return "" if verdict is None else verdict.answer.value


def _mark(result: Result) -> Text:
    return Text(result.standing.value, style=STYLES[result.standing])


def _row_text(result: Result) -> Text:
    text = _mark(result)
    text.append(f"  {printable(result.obligation.name)}", style="default bold")
    for line in result.message.splitlines():
        text.append(f"\n  {printable(line)}", style="default not bold")
    return text
