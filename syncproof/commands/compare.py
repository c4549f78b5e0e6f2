"""``check-protocol compare``: a protocol and its TLA+ module side by side."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from rich.console import Console
from rich.text import Text

from syncproof.budget import default_memory, parse_size
from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.tla.compare import Comparison, Side, compare
from syncproof.checkers.tla.tlc import Limits
from syncproof.commands.check import ask
from syncproof.engines import OUTSIDE, REFERENCE, combined
from syncproof.models.errors import UserError
from syncproof.models.verdict import EXIT_CODES, Answer
from syncproof.outside import tools_here
from syncproof.registry import blaming, find
from syncproof.reports.beside import print_beside
from syncproof.reports.columns import print_columns
from syncproof.reports.terminal import console_on, print_answers
from syncproof.reports.text import many, printable
from syncproof.request import Request, resolve

DISAGREE = EXIT_CODES[Answer.BROKEN]


def run(request: Request, with_states: bool) -> int:
    """Ask `reference` and TLC, show both runs, and with ``with_states`` compare all states.

    The exit code is that of the answer, and 4 where the two differ.
    """
    if request.unbounded:
        raise UserError("TLC is asked about bounded runs", where="--rounds", expected="a number")
    memory = parse_size(request.memory) if request.memory else default_memory()
    budget = Budget(request.budget_states, request.budget_seconds, memory)
    tools_here().for_tlc()
    comparison = None
    with redirect_stdout(sys.stderr):
        asked = resolve(request, find(request.protocol))
        answered = ask(asked, [REFERENCE, OUTSIDE["tla"]], budget)
        if with_states and not answered.interrupted:
            with blaming(asked.subject, innermost=True):
                limits = Limits(budget.memory, budget.seconds)
                comparison = compare(asked.instance, tools_here(), limits)
    console = console_on(sys.stdout)
    ours, theirs = answered.verdicts[0], answered.verdicts[-1]
    print_beside(console, ours, theirs)
    console.print()
    properties = combined(answered.verdicts)
    print_answers(console, properties)
    if comparison is not None:
        show_states(console, comparison)
    if comparison is not None and not comparison.is_equal:
        return DISAGREE
    answers = [each.answer for each in properties]
    worst = (Answer.BROKEN, Answer.VIOLATED, Answer.UNDECIDED)
    return EXIT_CODES[next((each for each in worst if each in answers), Answer.PROVED)]


def show_states(console: Console, comparison: Comparison) -> None:
    """The numbers of states, and the shortest run that one has and the other lacks."""
    console.print()
    print_columns(
        console,
        [_counts("our model", comparison.ours), _counts("TLA+ module", comparison.theirs)],
    )
    for name, side in (("our model", comparison.ours), ("the TLA+ module", comparison.theirs)):
        if side.only_here:
            console.print(Text(f"\na shortest run that only {name} has"))
            for number, step in enumerate(side.shortest):
                console.print(Text(f"  {number:3}  {printable(step)}"), soft_wrap=True)


def _counts(name: str, side: Side) -> tuple[str, str]:
    return name, (
        f"{many(side.states, 'state')}, {many(side.steps, 'step')}, {side.observable} of them "
        f"observably different, {side.only_here} only here"
    )
