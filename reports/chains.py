"""What carries each block, in rows: who does what, where, and after what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from rich.console import Console
from rich.text import Text

from syncproof.models.verdict import Carried, Chains, Event, Line
from syncproof.reports.columns import print_columns
from syncproof.reports.text import printable

NOTHING = "nothing carries it: some run consumes something else"


def print_chains(console: Console, chains: Chains) -> None:
    """Every chain, or why there is none."""
    console.print()
    if chains.missing:
        print_columns(console, [(f"not computed: {printable(chains.missing)}",)], indent=0)
    for each in chains.carried:
        print_carried(console, each)


def print_carried(console: Console, each: Carried) -> None:
    """One consume: the chain, marked, among all that is needed."""
    title = Text(printable(each.token), style="bold")
    title.append(f" is consumed by {printable(each.consumer)}", style="not bold")
    if each.line is not None:
        title.append(f" at {printable(short(each.line))}", style="not bold")
    print_columns(console, [(title,)], indent=0)
    if not each.events:
        print_columns(console, [(NOTHING,)])
    print_columns(console, (_row(each, number) for number in range(len(each.events))))
    console.print()


def _row(each: Carried, number: int) -> tuple[str, str, Text, Text, str]:
    event = each.events[number]
    text = "; ".join([event.text, *reasons(each, number)])
    mark = "->" if number in each.chain else ""
    actor, where = Text(printable(event.actor), style="bold"), Text(place(event), style="dim")
    return mark, str(number + 1), actor, where, printable(text)


def reasons(each: Carried, number: int) -> Iterator[str]:
    """Why an event comes when it does: ``reads 2``, by the places of the others from 1 on."""
    for order in each.orders:
        if order.second == number:
            yield f"{order.why} {order.first + 1}"


def place(event: Event) -> str:
    """File, line and step of an event: ``sp.py:96, step 5``."""
    return "" if event.line is None else printable(f"{short(event.line)}, step {event.step}")


def short(line: Line) -> str:
    """A line as ``sp.py:96``."""
    return f"{PurePath(line.file).name}:{line.line}"
