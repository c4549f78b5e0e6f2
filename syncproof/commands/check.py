"""``check-protocol check``: ask the engines, report, and end with the code of the answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from syncproof.budget import available_cores, default_memory, memory_ceiling, parse_size
from syncproof.checkers.explicit.check import Interrupted
from syncproof.checkers.explicit.search import Budget, resident_bytes
from syncproof.commands.drawings import Drawings
from syncproof.engines import (
    Engine,
    any_ranks_engines_for,
    combined,
    engines_for,
    unbounded_engines_for,
    unfinished,
)
from syncproof.models.errors import UserError
from syncproof.models.verdict import EXIT_CODES, SCHEMA, Answer, Chains, Verdict, to_data
from syncproof.registry import blaming, find
from syncproof.reports.chains import print_chains
from syncproof.reports.columns import print_columns
from syncproof.reports.files import STANDARD_OUTPUT, check_writable, to_json, write_text
from syncproof.reports.progress import Progress
from syncproof.reports.terminal import (
    console_on,
    print_answers,
    print_verdict,
    summary_line,
    work_text,
)
from syncproof.request import Asked, Request, resolve

INTERRUPTED = 130
USING_THREADS = ("fast", "fast-full", "all")
LEAST_BYTES_OF_A_CELL = 200
"""A cell is a Python object with its slot and its value number in a state."""


@dataclass(frozen=True)
class Output:
    """Where the answer goes, and how much of it."""

    json: str = ""
    trace: str = ""
    quiet: bool = False
    verbose: bool = False
    timings: bool = False
    drawings: Drawings = field(default_factory=Drawings)
    is_why: bool = False

    @property
    def to_standard_output(self) -> bool:
        """Whether a file goes to standard output, which the report must then leave alone."""
        return STANDARD_OUTPUT in (self.json, self.trace) or self.drawings.to_standard_output

    def check(self) -> None:
        """Refuse what cannot be written, before the work is done."""
        if self.json and self.json == self.trace:
            raise UserError("--json and --trace are one file", where="--trace", expected="two")
        files = (("--json", self.json), ("--trace", self.trace))
        for option, path in files:
            if path:
                check_writable(path, option)
        self.drawings.check(files)


@dataclass(frozen=True)
class Answered:
    """What the engines said, in the order they were asked; ``interrupted`` if not all could.

    ``chains`` are what carries the blocks of a proof, where that was asked for.
    """

    verdicts: tuple[Verdict, ...]
    interrupted: bool = False
    chains: Chains | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict of all engines together; its counts and trace are those of the first that
        gives the combined answer."""
        properties = combined(self.verdicts)
        whole = replace(self.verdicts[0], properties=properties)
        chosen = next((v for v in self.verdicts if v.answer is whole.answer), self.verdicts[0])
        engines = ",".join(each.engine for each in self.verdicts)
        chains = self.chains or chosen.chains
        return replace(chosen, engine=engines, properties=properties, chains=chains)

    def data(self) -> dict[str, Any]:
        """JSON: the one verdict, or all of them with what they say together."""
        if len(self.verdicts) == 1:
            return dict(to_data(self.verdict))
        together = to_data(self.verdict)["properties"]
        each = [to_data(verdict) for verdict in self.verdicts]
        return {"schema": SCHEMA, "kind": "comparison", "properties": together, "verdicts": each}


def run(request: Request, output: Output, also: Sequence[str] = ()) -> int:
    """Answer a request; gives the exit code."""
    output.check()
    engines = engines_of(request)
    memory = parse_size(request.memory) if request.memory else default_memory()
    threads = request.threads or available_cores()
    budget = Budget(request.budget_states, request.budget_seconds, memory, threads)
    with redirect_stdout(sys.stderr):
        asked = resolve(request, find(request.protocol, also), unbounded=True)
        answered = ask(asked, engines, budget, timings=output.timings)
        answered = explained(answered, asked, request, output)
    console = console_on(sys.stderr if output.to_standard_output else sys.stdout)
    report(console, answered, request, asked, output)
    write(answered, output)
    output.drawings.write(
        answered.verdict,
        about=summary_of(asked),
        again=request.command(),
        engines=answered.verdicts,
    )
    if answered.interrupted:
        print("interrupted: the verdict above is of what was covered until then", file=sys.stderr)
        return INTERRUPTED
    return EXIT_CODES[answered.verdict.answer]


def engines_of(request: Request) -> Sequence[Engine]:
    """The engines that a request asks; `UserError` for options that they would not look at."""
    if request.cluster and not request.swarm:
        raise UserError("--cluster without --swarm", where="--cluster", expected="--swarm N")
    if request.threads and request.engine not in USING_THREADS:
        what = f"--threads with --engine {request.engine}, which uses one"
        raise UserError(what, where="--threads", expected="--engine fast")
    if request.budget_states and request.engine == "smt" and not request.unbounded:
        what = "--budget-states with --engine smt, which visits none"
        raise UserError(what, where="--budget-states", expected="--budget-seconds")
    if request.swarm and request.unbounded:
        raise UserError("--swarm with --rounds unbounded", where="--swarm", expected="--rounds R")
    if request.swarm and request.any_ranks:
        raise UserError("--swarm with --ranks any", where="--swarm", expected="--ranks N")
    if request.any_ranks:
        return any_ranks_engines_for(request.engine)
    if request.unbounded:
        return unbounded_engines_for(request.engine)
    if not request.swarm:
        return engines_for(request.engine)
    from syncproof.swarm import swarm_of  # starts processes: seldom needed

    return [swarm_of(request)]


def ask(
    asked: Asked, engines: Sequence[Engine], budget: Budget, *, timings: bool = False
) -> Answered:
    """Every engine's verdict on one question, until one is interrupted."""
    verdicts: list[Verdict] = []
    for engine in engines:
        started = time.monotonic()
        try:
            verdict, is_over = _ask_one(asked, engine, budget), False
        except Interrupted as error:
            verdict, is_over = error.verdict, True
        if timings:
            spent = f"{engine.name}: {time.monotonic() - started:.2f} s"
            verdict = replace(verdict, notes=(*verdict.notes, spent))
        verdicts.append(verdict)
        if is_over:
            return Answered(tuple(verdicts), interrupted=True)
    return Answered(tuple(verdicts))


def _ask_one(asked: Asked, engine: Engine, budget: Budget) -> Verdict:
    least = least_bytes(asked)
    if budget.memory and least > budget.memory:
        reason = f"its memory alone takes {least / 2**30:.1f} GiB: raise --memory, or ask for less"
        return unfinished(asked.instance, asked.question, engine.name, (0, 0), reason)
    with Progress(sys.stderr, most_states=budget.states, memory=resident_bytes) as progress:
        try:
            with memory_ceiling(budget.memory), blaming(asked.subject, innermost=True):
                return engine.check(asked.instance, asked.question, budget, progress.report)
        except MemoryError:
            reason = "the memory ran out: raise --memory"
            counts = (progress.states, progress.depth)
            return unfinished(asked.instance, asked.question, engine.name, counts, reason)
        except KeyboardInterrupt:
            counts = (progress.states, progress.depth)
            raise Interrupted(
                unfinished(asked.instance, asked.question, engine.name, counts, "interrupted")
            ) from None


def least_bytes(asked: Asked) -> int:
    """What the cells of the modelled memory take at least, known before any work is done."""
    regions = asked.instance.protocol().regions.values()
    cells = sum(len(each.owners()) * each.blocks * len(each.fields) for each in regions)
    return cells * LEAST_BYTES_OF_A_CELL


def explained(answered: Answered, asked: Asked, request: Request, output: Output) -> Answered:
    """The same with the chains that carry a proof, for a page or with ``--why``."""
    is_asked = output.is_why or bool(output.drawings.html)
    if not is_asked or answered.interrupted or answered.verdict.answer is not Answer.PROVED:
        return answered
    from syncproof.commands.why import chains_of  # z3 is seldom needed

    return replace(answered, chains=chains_of(asked, request, output.is_why))


def summary_of(asked: Asked) -> str:
    """What a protocol says of itself in its first line."""
    return (asked.subject.kind.__doc__ or "").strip().partition("\n")[0]


def report(
    console: Console, answered: Answered, request: Request, asked: Asked, output: Output
) -> None:
    """Print the verdict, each engine's where they disagree, and the lines that end every run."""
    verdict = answered.verdict
    if not output.quiet:
        name = Text(request.protocol, style="bold")
        print_columns(console, [(name, summary_of(asked))], indent=0)
        console.print()
        if verdict.answer is Answer.BROKEN:
            print_answers(console, verdict.properties)
            for each in answered.verdicts:
                console.print(Text(f"\nengine {each.engine}\n", style="bold"))
                print_verdict(console, each, verbose=output.verbose)
        else:
            print_verdict(console, verdict, verbose=output.verbose)
            if output.is_why and verdict.chains is not None:
                print_chains(console, verdict.chains)
        if len(answered.verdicts) > 1:
            _print_counts(console, answered.verdicts)
        console.print()
    for line in (summary_line(verdict), *([] if output.quiet else [f"again: {request.command()}"])):
        console.print(Text(line), soft_wrap=True)


def _print_counts(console: Console, verdicts: Sequence[Verdict]) -> None:
    console.print()
    for each in verdicts:
        done = work_text(each) or "nothing searched"
        console.print(Text(f"  {each.engine}: {each.answer.value}, {done}"))


def write(answered: Answered, output: Output) -> None:
    """Write the files that were asked for; no trace is written where nothing is violated."""
    if output.json:
        write_text(output.json, to_json(answered.data()))
    if output.trace:
        trace = answered.verdict.trace
        if trace is None:
            print(f"no trace to write to {output.trace}: nothing is violated", file=sys.stderr)
        else:
            write_text(output.trace, to_json(to_data(trace)))
