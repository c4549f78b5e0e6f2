"""Verdicts and traces on a terminal: what is so, of what, and the run that shows it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from syncproof.models.verdict import Answer, PropertyVerdict, Question, Trace, Verdict
from syncproof.reports.columns import print_columns
from syncproof.reports.swimlanes import draw
from syncproof.reports.text import many, printable, violation_text
from syncproof.reports.waitfor import wait_for_rows

STYLES = {
    Answer.PROVED: "bold green",
    Answer.VIOLATED: "bold red",
    Answer.UNDECIDED: "bold yellow",
    Answer.BROKEN: "bold magenta",
}
Facts = Iterable[tuple[str, str]]
LINES_AT_A_TIME = 50
"""Of a long drawing: printed one by one each takes as long as it takes to draw it."""


def console_on(file: IO[str]) -> Console:
    """A console that shows text as it is: nothing in it is markup, an emoji or a number to colour.

    ``NO_COLOR``, ``TERM`` and ``COLUMNS`` are heeded; away from a terminal lines have 80 columns.
    """
    return _Console(file=file, highlight=False, markup=False, emoji=False)


class _Console(Console):
    """Goes quiet when nobody reads any more: the exit code still tells the answer."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


# A verdict


def print_verdict(console: Console, verdict: Verdict, *, verbose: bool = False) -> None:
    """The answer for each property, what it is an answer to, and the run that breaks one."""
    print_answers(console, verdict.properties)
    console.print()
    print_facts(console, scope(verdict, verbose=verbose))
    if verdict.trace is not None:
        console.print()
        print_trace(console, verdict.trace, verbose=verbose, with_question=False)


def print_answers(console: Console, answers: Sequence[PropertyVerdict]) -> None:
    """One line a property; a reason that several share is given once."""
    rows = []
    previous = ""
    for each in answers:
        detail = "" if each.detail == previous else each.detail
        previous = each.detail
        answer = Text(each.answer.value, style=STYLES[each.answer])
        rows.append((answer, printable(each.property), printable(detail)))
    print_columns(console, rows, gap=3)


def print_facts(console: Console, facts: Facts) -> None:
    """Named facts, a line each."""
    print_columns(console, ((Text(name, style="dim"), printable(value)) for name, value in facts))


def scope(verdict: Verdict, *, verbose: bool = False) -> list[tuple[str, str]]:
    """What a verdict is a verdict of, as named facts."""
    question = verdict.question
    assumed = [f"{name}: {text}" for name, text in verdict.assumptions.items()]
    facts = [
        ("size", size_text(question.bounds)),
        ("routing", _routing_text(verdict.routing or question.bounds.get("routing", ""))),
        ("fabric", fabric_text(question.fabric)),
        *([("", _keys_text(question.fabric))] if verbose else []),
        ("settings", settings_text(question) or "none"),
        *([("mutant", question.mutant)] if question.mutant else []),
        *[("assuming" if not i else "", text) for i, text in enumerate(assumed or ["nothing"])],
        *[("dropped", name) for name in question.dropped],
        ("persists", ", ".join(verdict.persists) or "no region: all end as they began"),
        ("searched", search_text(verdict)),
        *[("note", text) for text in verdict.notes],
    ]
    if verdict.answer is not Answer.PROVED and not verdict.persists:
        facts = [each for each in facts if each[0] != "persists"]
    return facts


def size_text(bounds: Mapping[str, Any]) -> str:
    """The size of an instance in words."""
    ranks, experts = bounds.get("ranks", 0), bounds.get("experts", 0)
    said = [many(ranks, "rank")]
    if "cores" in bounds:
        said.append(f"{many(bounds['cores'], 'core')} each")
    said += [many(bounds.get("tokens", 0), "token"), many(bounds.get("rounds", 0), "round")]
    if experts != ranks or bounds.get("topk") != experts:
        said += [many(experts, "expert"), f"top {bounds.get('topk')}"]
    return ", ".join(said)


def _routing_text(routing: object) -> str:
    words = {
        "all": "all: every number of tokens from each source to each expert in each round",
        "balanced": "balanced: tokens spread evenly over the experts, the same in each round",
    }
    return words.get(routing, str(routing)) if isinstance(routing, str) else "as given"


def fabric_text(fabric: Mapping[str, Any]) -> str:
    """The fabric in words: how stores land, and the in-flight bound."""
    name = str(fabric.get("name", ""))
    if fabric.get("immediate"):
        return f"{name}: every put lands at once"
    ordering = {
        "none": "nothing in order",
        "per_pair": "in order between two ranks",
        "per_queue": "in order within a queue",
    }.get(str(fabric.get("ordering")), "")
    bound = f"at most {fabric.get('in_flight')} in flight per source and atom"
    return f"{name}: puts land in {fabric.get('store_atomicity')} B atoms, {ordering}, {bound}"


def _keys_text(fabric: Mapping[str, Any]) -> str:
    return " ".join(f"{k}={_spelled(v)}" for k, v in fabric.items() if k != "name" and v != {})


def settings_text(question: Question) -> str:
    """The parameters as ``--set`` spells them."""
    return " ".join(f"{name}={_spelled(value)}" for name, value in question.settings.items())


def _spelled(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def search_text(verdict: Verdict) -> str:
    """How far the engine went."""
    extent = {
        Answer.PROVED: "every run covered",
        Answer.VIOLATED: "until the first failure",
        Answer.UNDECIDED: "not all runs covered",
        Answer.BROKEN: "",
    }[verdict.answer]
    done = ", ".join(each for each in (work_text(verdict), extent) if each)
    return f"{done} (engine {verdict.engine})"


def work_text(verdict: Verdict) -> str:
    """How much was searched, or asked of a solver; empty where nothing was."""
    if verdict.states:
        states = many(verdict.states, "state")
        return f"{states}, {many(verdict.transitions, 'transition')}, depth {verdict.depth}"
    return ", ".join(f"{count:,} {name}" for name, count in verdict.work)


# One line for grep


def summary_line(verdict: Verdict) -> str:
    """The line that scripts look for: ``sp: proved states=561 transitions=560 depth=... ...``."""
    question, bounds = verdict.question, verdict.question.bounds
    violated = [each.property for each in verdict.properties if each.answer is Answer.VIOLATED]
    words: dict[str, int | str] = {
        "states": verdict.states,
        "transitions": verdict.transitions,
        "depth": verdict.depth,
    }
    if verdict.work and not verdict.states:
        words = dict(verdict.work)
    words["engine"] = verdict.engine
    if violated:
        words["property"] = ",".join(violated)
    if verdict.trace is not None:
        words["steps"] = len(verdict.trace.steps)
    routing = bounds.get("routing", "")
    within = [f"{k}:{v}" for k, v in bounds.items() if k != "routing"]
    within += [
        f"routing:{routing if isinstance(routing, str) else 'given'}",
        f"fabric:{question.fabric.get('name', '')}",
        f"in_flight:{question.fabric.get('in_flight', '')}",
    ]
    words["bounds"] = ",".join(within)
    said = " ".join(f"{name}={value}" for name, value in words.items())
    answer = "undecided" if verdict.answer is Answer.UNDECIDED else verdict.answer.value
    return printable(f"{shlex.quote(question.protocol)}: {answer} {said}")


# A trace


def print_trace(
    console: Console, trace: Trace, *, verbose: bool = False, with_question: bool = True
) -> None:
    """The run that breaks a property as swim-lanes, and the wait-for table of a hang."""
    if with_question:
        print_facts(console, trace_scope(trace))
        console.print()
    chosen = ", ".join(f"{name} = {value}" for name, value in trace.choices)
    under = [(Text(printable(f"where {chosen}"), style="dim"),)] if chosen else []
    print_columns(console, [(_title(trace, verbose),), *under], indent=0)
    console.print()
    numbers = range(len(trace.steps)) if verbose else trace.shown
    lines = list(draw(console, trace, numbers, verbose=verbose))
    for first in range(0, len(lines), LINES_AT_A_TIME):
        some = Text("\n").join(lines[first : first + LINES_AT_A_TIME])
        console.print(some, no_wrap=True, overflow="ignore", crop=False)
    if trace.waiting:
        console.print()
        print_columns(console, wait_for_rows(trace.waiting))


def trace_scope(trace: Trace) -> list[tuple[str, str]]:
    """What a trace is a run of, as named facts."""
    question = trace.question
    return [
        ("protocol", question.protocol),
        ("size", size_text(question.bounds)),
        ("fabric", fabric_text(question.fabric)),
        ("settings", settings_text(question) or "none"),
        *([("mutant", question.mutant)] if question.mutant else []),
        *[("dropped", name) for name in question.dropped],
    ]


def _title(trace: Trace, verbose: bool) -> Text:
    title = Text(printable(trace.property), style=STYLES[Answer.VIOLATED])
    title.append(f" {violation_text(trace)}", style="default not bold")
    hidden = len(trace.steps) - len(trace.shown)
    if hidden and not verbose:
        what = "that do not matter are" if trace.fewest else "behind them, to where all stands, are"
        title.append(f"; {hidden} {what} left out (-v)", style="default not bold")
    return title
