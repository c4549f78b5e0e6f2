"""``check-protocol show NAME --why``: for each consume, the edges that carry its block."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

from syncproof.checkers.smt.uncovered import Uncovered
from syncproof.checkers.smt.why import Explained, explain
from syncproof.models.errors import UserError
from syncproof.registry import find
from syncproof.reports.terminal import console_on
from syncproof.reports.text import printable
from syncproof.request import Request, resolve


def run(request: Request) -> int:
    """Explain every consume; 1 if one of them is not proved."""
    asked = resolve(request, find(request.protocol))
    try:
        explained = explain(asked.instance)
    except Uncovered as why:
        raise UserError(str(why), where="--why") from None
    console = console_on(sys.stdout)
    for each in explained:
        _tell(console, each)
    return 1 if any(not each.chain for each in explained) else 0


def _tell(console: Console, each: Explained) -> None:
    console.print(Text(printable(each.token), style="bold").append(f"  {each.place}", "not bold"))
    if not each.chain:
        console.print(Text("  nothing carries it: some run gets something else"))
    for number, event in enumerate(each.chain):
        console.print(Text(f"  {'-> ' if number else '   '}{printable(event)}"), soft_wrap=True)
    if each.needed:
        console.print(Text("  needed, and enough:", style="dim"))
    for source, why, target in each.needed:
        console.print(Text(f"     {printable(f'{source} | {why} | {target}')}"), soft_wrap=True)
    console.print()
