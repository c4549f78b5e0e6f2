"""``check-protocol run``: run a protocol on the emulator, with real bytes and a hostile fabric."""

from __future__ import annotations

import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from syncproof.budget import default_memory
from syncproof.checkers.emulator.content import Content
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.logs import Names, choice_line, event_line, header
from syncproof.checkers.emulator.machine import Machine, RoleRaised, Wrong
from syncproof.checkers.emulator.results import Blocked, Result, place_text
from syncproof.checkers.emulator.run import Options
from syncproof.checkers.emulator.run import run as run_once
from syncproof.checkers.emulator.soak import EVERY_ADVERSARY, soak
from syncproof.checkers.emulator.virtual import Timed, simulate
from syncproof.models.errors import UserError
from syncproof.registry import blaming, find
from syncproof.reports.columns import print_columns
from syncproof.reports.files import STANDARD_OUTPUT, check_writable, read_json, write_text
from syncproof.reports.progress import Progress
from syncproof.reports.terminal import console_on
from syncproof.reports.text import many, printable
from syncproof.request import Asked, Request, resolve

EXIT_CODES = {"complete": 0, "wrong": 1, "stuck": 1, "not finished": 3, "not conforming": 4}
MOST_SHOWN = 16
LONGEST = 160
BYTES_OF_A_CELL = 600


@dataclass(frozen=True)
class Output:
    """Where what is seen of a run goes; ``runs`` is how many there are, 0 for as time allows, and
    ``bytes_from`` the file whose bytes tokens have."""

    log: str = ""
    quiet: bool = False
    runs: int = 1
    bytes_from: str = ""


def run(request: Request, options: Options, output: Output) -> int:
    """Run once; 0 complete, 1 wrong or stuck, 3 not finished, 4 not as the model has it."""
    if output.log and output.bytes_from:
        raise UserError("a log of bytes that it does not name", where="--log")
    if output.log:
        check_writable(output.log, "--log")
    if output.runs != 1 or options.adversary == EVERY_ADVERSARY:
        return run_series(request, options, output)
    with redirect_stdout(sys.stderr):
        asked, options = _asked(request, options, output)
        lines: list[str] = []
        result = _run(asked, options, lines if output.log else None)
    console = console_on(sys.stderr if output.log == STANDARD_OUTPUT else sys.stdout)
    report(console, request, options, result, output)
    if output.log:
        first = header(
            asked.question,
            seed=options.seed,
            schedule=options.schedule,
            adversary=options.adversary,
            payload=options.payload,
        )
        choices = [choice_line(name, value) for name, value in result.choices.items()]
        write_text(output.log, "\n".join([first, *choices, *lines, ""]))
    return EXIT_CODES[result.outcome]


def run_series(request: Request, options: Options, output: Output) -> int:
    """Run with one seed after the other, until a run does not complete."""
    if output.log:
        raise UserError("a log of several runs", where="--log", expected="one run")
    if not output.runs and not options.seconds:
        raise UserError("--runs 0 without an end", where="--runs", expected="--seconds S")
    with redirect_stdout(sys.stderr):
        asked, options = _asked(request, options, output)
        _check_size(asked)
        try:
            with Progress(sys.stderr) as progress, blaming(asked.subject, innermost=True):
                found = soak(
                    asked.instance, options, output.runs, lambda machine: _show(progress, machine)
                )
        except RoleRaised as error:
            raise UserError(str(error)) from error
    console = console_on(sys.stdout)
    report(console, request, found.options, found.last, output)
    rate = found.blocks / found.seconds if found.seconds else 0.0
    console.print(
        Text(
            f"{many(found.runs, 'run')}, {many(found.steps, 'step')} ({found.walked:,} of them "
            f"walked through the model), {many(found.blocks, 'block')}, {rate:,.0f} blocks/s, "
            f"{found.seconds:.0f} s, at most {found.peak} MiB ({found.first_peak} in the first run)"
        ),
        soft_wrap=True,
    )
    return EXIT_CODES[found.last.outcome]


def _asked(request: Request, options: Options, output: Output) -> tuple[Asked, Options]:
    """What is run and how, with the bytes of a file if one is named."""
    asked = resolve(request, find(request.protocol))
    if output.bytes_from:
        from syncproof.checkers.emulator.twins import crafted, with_bytes

        found = crafted(read_json(output.bytes_from))
        instance, options = with_bytes(asked.instance, options, found)
        asked = replace(asked, instance=instance)
    return asked, options


def _show(progress: Progress, machine: Machine) -> None:
    progress.report(machine.steps, len(machine.fabric.in_flight), machine.blocks)


def run_in_virtual_time(
    request: Request, options: Options, cores: int, *, quiet: bool = False
) -> int:
    """Run in virtual time and print where it goes, with every number that it rests on."""
    with redirect_stdout(sys.stderr):
        asked = resolve(request, find(request.protocol))
        _check_size(asked)
        try:
            with blaming(asked.subject, innermost=True):
                timed = simulate(asked.instance, lanes=cores, seed=options.seed)
        except RoleRaised as error:
            raise UserError(str(error)) from error
    console = console_on(sys.stdout)
    if not quiet:
        _print_times(console, timed)
    outcome = "wrong" if timed.wrong else "stuck" if timed.blocked else "complete"
    line = (
        f"{request.protocol}: {outcome} latency={timed.latency / 1000:.3f}us "
        f"end={timed.end / 1000:.3f}us steps={timed.steps} blocks={timed.blocks} "
        f"cores={timed.cores}"
    )
    console.print(Text(printable(line)), soft_wrap=True)
    return EXIT_CODES[outcome]


def _print_times(console: Console, timed: Timed) -> None:
    """Where the time goes, with every number that it rests on, and what went wrong."""
    table = Table(box=None, pad_edge=False)
    for title in ("role", "phase", "operation", "times", "mean ns", "longest ns"):
        table.add_column(title, justify="right" if "ns" in title or title == "times" else "left")
    for (role, function, operation), phase in sorted(timed.phases.items()):
        mean = phase.total / phase.times
        longest = f"{phase.longest:,.0f}"
        table.add_row(role, function, operation, str(phase.times), f"{mean:,.0f}", longest)
    console.print(table)
    console.print()
    print_columns(console, [(n, f"{value}  ({origin})") for n, value, origin in timed.parameters])
    for text in timed.wrong[:MOST_SHOWN]:
        console.print(Text(printable(text)), soft_wrap=True)
    if len(timed.wrong) > MOST_SHOWN:
        console.print(Text(f"  and {len(timed.wrong) - MOST_SHOWN} more"))
    if timed.blocked:
        print_waiting(console, "nobody can go on", timed.blocked, ())
    console.print()


def _run(asked: Asked, options: Options, lines: list[str] | None) -> Result:
    _check_size(asked)
    seen: list[tuple[Names, Content]] = []

    def begun(machine: Machine) -> None:
        parts = machine.instance.parts(machine.choices)
        seen.append((Names(machine.instance, parts), machine.content))

    def tell(event: Event) -> None:
        assert lines is not None
        lines.append(event_line(event, *seen[0]))

    with Progress(sys.stderr) as progress:
        try:
            with blaming(asked.subject, innermost=True):
                return run_once(
                    asked.instance,
                    options,
                    None if lines is None else tell,
                    lambda machine: _show(progress, machine),
                    None if lines is None else begun,
                )
        except RoleRaised as error:
            raise UserError(str(error)) from error


def _check_size(asked: Asked) -> None:
    """Refuse what this machine cannot hold, and say what it would take."""
    regions = asked.instance.protocol().regions.values()
    atomicity = asked.instance.profile.finest_atomicity
    size = sum(
        len(each.owners())
        * each.blocks
        * (each.block + BYTES_OF_A_CELL * (len(each.fields) + each.block // atomicity))
        for each in regions
    )
    limit = default_memory()
    if limit and size > limit:
        raise UserError(
            f"the emulated memory takes about {size / 2**30:.1f} GiB",
            where="--ranks",
            expected=f"at most {limit / 2**30:.1f} GiB here: fewer ranks, tokens or experts",
        )


# In words


def report(
    console: Console, request: Request, options: Options, result: Result, output: Output
) -> None:
    """Print what a run came to, why, and the command that repeats it."""
    if not output.quiet:
        _explain(console, result)
    rate = result.blocks / result.seconds if result.seconds else 0.0
    walked = f"walked={result.walked} " if result.walked else ""
    broken = "".join(f"property={each} " for each in result.properties)
    summary = (
        f"{request.protocol}: {result.outcome} {broken}steps={result.steps} blocks={result.blocks} "
        f"{walked}seed={options.seed} schedule={options.schedule} adversary={options.adversary}"
    )
    lines = [summary, f"{rate:,.0f} blocks/s", again(request, options, output.bytes_from)]
    if output.quiet:
        lines = [summary]
    for line in lines:
        console.print(Text(printable(line)), soft_wrap=True)


def again(request: Request, options: Options, bytes_from: str = "") -> str:
    """The command that runs the same again."""
    words = request.command().split(" --engine ")[0].replace("check-protocol check", "run", 1)
    said = [f"again: check-protocol {words} --seed {options.seed} --schedule {options.schedule}"]
    defaults = Options()
    for name in ("adversary",) if bytes_from else ("adversary", "payload", "domain"):
        if getattr(options, name) != getattr(defaults, name):
            said.append(f"--{name} {getattr(options, name)}")
    if bytes_from:
        said.append(f"--bytes-from {shlex.quote(bytes_from)}")
    return " ".join(said)


def _explain(console: Console, result: Result) -> None:
    if result.refused is not None:
        console.print(Text("the run is not one of the model's", style="bold"))
        console.print(Text(printable(result.refused)), soft_wrap=True)
    print_wrong(console, result.wrong)
    if result.outcome in ("stuck", "not finished"):
        title = "nobody can go on" if result.outcome == "stuck" else "not over yet"
        print_waiting(console, title, result.blocked, result.in_flight)
    if result.outcome != "complete":
        console.print()


def print_wrong(console: Console, wrong: tuple[Wrong, ...]) -> None:
    """What is broken, where, and the bytes."""
    for each in wrong[:MOST_SHOWN]:
        who = f"{each.process}: " if each.process else ""
        console.print(Text(f"{each.property} is broken", style="bold"))
        console.print(Text(f"  {who}{printable(shortened(each.message))}"), soft_wrap=True)
        if each.place is not None:
            console.print(Text(f"  {printable(place_text(each.place))}"), soft_wrap=True)
        if each.difference:
            console.print(Text(each.difference), soft_wrap=True)


def print_waiting(
    console: Console, title: str, blocked: tuple[Blocked, ...], in_flight: tuple[str, ...]
) -> None:
    """Who waits for what, and what is on its way."""
    console.print(Text(title, style="bold"))
    rows = [
        (each.process, printable(each.waits_for), printable(shortened(f"sees {each.sees}")))
        for each in blocked[:MOST_SHOWN]
    ]
    print_columns(console, rows)
    if len(blocked) > MOST_SHOWN:
        console.print(Text(f"  and {len(blocked) - MOST_SHOWN} more"))
    for each in blocked[:1]:
        if each.place is not None:
            console.print(Text(f"  the first at {printable(place_text(each.place))}"))
    console.print(Text(f"  in flight: {many(len(in_flight), 'put')}"))
    for text in in_flight[:MOST_SHOWN]:
        console.print(Text(f"    {printable(shortened(text))}"), soft_wrap=True)


def shortened(text: str) -> str:
    """A text that a block of many atoms has made long, cut."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def with_properties(options: Options, request: Request) -> Options:
    """The options with the properties that a request asks for."""
    return replace(options, properties=tuple(request.properties))


def options_from(asked: dict[str, Any]) -> Options:
    """The options that the command line names, taken out of ``asked``."""
    names = ("seed", "schedule", "adversary", "payload", "domain", "conform", "seconds", "patience")
    return Options(**{name: asked.pop(name) for name in names})
