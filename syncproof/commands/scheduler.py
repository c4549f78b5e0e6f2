"""``check-protocol scheduler``: UBEP's token scheduler, contract by contract."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from syncproof.checkers.scheduler import Finding, SchedulerQuestion, check
from syncproof.models.errors import UserError
from syncproof.models.verdict import EXIT_CODES, Answer, PropertyVerdict, Question, Verdict, to_data
from syncproof.protocols.token_scheduler import (
    Routing,
    Scheduler,
    hop_classes,
    hop_table,
    scheduler,
)
from syncproof.reports.columns import print_columns
from syncproof.reports.files import to_json, write_text
from syncproof.reports.terminal import STYLES, console_on
from syncproof.reports.text import printable

ANSWERS = {
    "proved": Answer.PROVED,
    "violated": Answer.VIOLATED,
    "undecided": Answer.UNDECIDED,
}
MOST_ROWS = 64


@dataclass(frozen=True)
class Asked:
    """One command line."""

    experts: int
    cores: int
    tokens: int
    hops: str
    settings: Sequence[str]
    json: str
    quiet: bool


def run(asked: Asked) -> int:
    """Check the contracts, print them and a picture; gives the exit code."""
    algorithm = scheduler(_algorithm(asked.settings))
    hops = hop_classes(asked.hops, asked.experts) if asked.hops else ()
    question = SchedulerQuestion(algorithm, asked.experts, asked.cores, asked.tokens, hops)
    findings = check(question)
    verdict = _verdict(asked, algorithm, findings)
    if asked.json:
        write_text(asked.json, to_json(to_data(verdict)))
    if asked.json != "-":
        _print(asked, question, verdict, findings)
    return EXIT_CODES[verdict.answer]


def _algorithm(settings: Sequence[str]) -> str:
    name = "corrected"
    for setting in settings:
        key, _, name = setting.partition("=")
        if key != "algorithm":
            raise UserError(f"no setting {key!r}", where="--set", expected="algorithm=NAME")
    return name


def _verdict(asked: Asked, algorithm: Scheduler, findings: Sequence[Finding]) -> Verdict:
    sizes = {
        "experts": asked.experts,
        "cores": asked.cores,
        "tokens": asked.tokens,
        "hops": asked.hops or "one class",
    }
    settings = {"algorithm": algorithm.name}
    contracts = tuple(each.contract for each in findings)
    return Verdict(
        Question("scheduler", sizes, {}, settings, properties=contracts),
        "scheduler",
        tuple(PropertyVerdict(f.contract, ANSWERS[f.verdict], _detail(f)) for f in findings),
        0,
        0,
        0,
        notes=tuple(f"{f.contract}: {f.counterexample}" for f in findings if f.counterexample),
    )


def _detail(finding: Finding) -> str:
    why = finding.explanation if finding.verdict != "proved" else finding.method
    return f"{why} ({finding.scope})"


def _print(
    asked: Asked, question: SchedulerQuestion, verdict: Verdict, findings: Sequence[Finding]
) -> None:
    console = console_on(sys.stdout)
    if not asked.quiet:
        rows = [
            (
                Text(each.answer.value, style=STYLES[each.answer]),
                each.property,
                printable(each.detail),
            )
            for each in verdict.properties
        ]
        print_columns(console, rows, gap=3)
        for finding in findings:
            if finding.counterexample:
                data = ", ".join(f"{k}={v}" for k, v in finding.counterexample.items())
                console.print()
                console.print(printable(f"{finding.contract} fails on: {data}"))
        console.print()
        console.print("Tokens by core and hop class, tokens spread evenly over the experts")
        console.print("(! marks a core above the bound)")
        print_columns(console, _picture(asked, question), gap=2)
        console.print()
    sizes = ",".join(f"{k}:{v}" for k, v in verdict.question.bounds.items() if k != "hops")
    text = f"scheduler: {verdict.answer.value} algorithm={question.scheduler.name} bounds={sizes}"
    console.print(printable(text), soft_wrap=True)


def _picture(asked: Asked, question: SchedulerQuestion) -> list[list[str]]:
    share, rest = divmod(asked.tokens, asked.experts)
    counts = tuple(share + (expert < rest) for expert in range(asked.experts))
    table = hop_table(
        scheduler(question.scheduler.name), Routing(counts, question.classes, asked.cores)
    )
    if len(table) > MOST_ROWS:
        left = len(table) - MOST_ROWS
        table = [*table[: MOST_ROWS - 3], [f"... {left} more cores"], *table[-3:]]
    return table
