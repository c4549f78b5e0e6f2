"""The command line: what can be asked, and the exit codes. What is done is in ``commands``.

Commands import what they need when they run: ``--help`` answers without a solver.
"""

from __future__ import annotations

import difflib
import io
import os
import platform
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from syncproof.cli_gate import gate
from syncproof.options import DRAWINGS, INSTANCE, OUTPUT, SEARCH

BAD_INPUT, BROKEN, INTERRUPTED, TERMINATED = 2, 4, 130, 143


class _Commands(click.Group):
    """Commands and protocols share one namespace: what is no command is checked."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = args or ["--help"]
        if args[0] not in self.commands and args[0] not in ("--help", "--version"):
            near = difflib.get_close_matches(args[0], self.commands, n=2)
            if near and len(args) > 1 and not args[1].startswith("-"):
                raise click.UsageError(f"no command {args[0]!r} (perhaps {' or '.join(near)})")
            ctx.obj = tuple(self.commands)
            args = ["check", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Commands, options_metavar="", subcommand_metavar="COMMAND|PROTOCOL [OPTIONS]")
@click.version_option(package_name="syncproof", prog_name="check-protocol")
def cli() -> None:
    """Prove or break the synchronization of accelerator communication kernels.

    \b
      check-protocol sp --ranks 8             a protocol that ships with us
      check-protocol my_kernel.py             your own, in a Python file
      check-protocol list                     what there is

    Exit codes: 0 proved, 1 violated, 2 bad input, 3 not decided within the budget, 4 an error of
    ours, 130 and 143 interrupted.
    """


@cli.command()
@click.argument("protocol", metavar="NAME|FILE.py[:CLASS]")
@INSTANCE
@SEARCH
@OUTPUT
@DRAWINGS
@click.pass_context
def check(
    ctx: click.Context,
    /,
    full: bool,
    engine: str,
    tool: str,
    json_file: str,
    trace: str,
    quiet: bool,
    verbose: bool,
    timings: bool,
    is_why: bool,
    threads: int | None,
    html: str,
    text: str,
    perfetto: str,
    mermaid: str,
    save_test: str,
    budget_states: int | None,
    budget_seconds: float | None,
    **asked: Any,
) -> int:
    """Check a protocol, as does NAME alone."""
    from syncproof.commands.check import Output, run
    from syncproof.commands.drawings import Drawings
    from syncproof.engines import engine_asked
    from syncproof.request import Request

    request = Request(
        **asked,
        engine=engine_asked(engine, full, tool),
        threads=threads or 0,
        budget_states=budget_states or 0,
        budget_seconds=budget_seconds or 0.0,
    )
    drawings = Drawings(html, text, perfetto, mermaid, save_test)
    output = Output(json_file, trace, quiet, verbose, timings, drawings, is_why)
    return run(request, output, ctx.obj or ())


@cli.command("list")
@click.option("--long", "is_long", is_flag=True, help="With settings, assumptions and roles.")
def list_protocols(is_long: bool) -> int:
    """List the protocols that can be checked by name."""
    from syncproof.commands.listing import run

    return run(is_long)


@cli.command()
@click.argument("protocol", metavar="NAME|FILE.py[:CLASS]|TRACE.json")
@INSTANCE
@click.option("-v", "--verbose", is_flag=True, help="All steps of a trace, and all changes.")
@click.option("--why", "is_why", is_flag=True, help="For each consume, what carries its block.")
@DRAWINGS
def show(
    verbose: bool,
    is_why: bool,
    html: str,
    text: str,
    perfetto: str,
    mermaid: str,
    **asked: Any,
) -> int:
    """Show what a protocol is made of, or a recorded trace.

    Settings, assumptions, roles, memory and mutants of a protocol. A trace or verdict file is shown
    without importing the protocol that it is of.
    """
    from syncproof.commands import show as showing
    from syncproof.commands.drawings import Drawings
    from syncproof.request import Request

    if is_why:
        from syncproof.commands import why

        return why.run(Request(**asked))
    return showing.run(Request(**asked), verbose, Drawings(html, text, perfetto, mermaid))


@cli.command()
@click.argument("trace", metavar="TRACE.json")
@click.option("--emulate", is_flag=True, help="Force the run on the emulator, with real bytes.")
@DRAWINGS
def replay(trace: str, emulate: bool, **files: str) -> int:
    """Walk a trace through its protocol as it is now.

    The protocol is imported. Exit code 1 if the property is broken as it was, 0 if it is not.
    """
    from syncproof.commands.drawings import Drawings
    from syncproof.commands.replay import run, run_emulated

    drawings = Drawings(**files)
    return run_emulated(trace, drawings) if emulate else run(trace, drawings)


@cli.command("run")
@click.argument("protocol", metavar="NAME|FILE.py[:CLASS]")
@INSTANCE
@click.option("--property", "properties", multiple=True, metavar="NAME", help="Judge only this.")
@click.option("--mutant", default="", metavar="NAME", help="Leave one operation out (see show).")
@click.option("--seed", default=0, show_default=True, help="What order, delays and choices are.")
@click.option(
    "--schedule",
    default="free",
    show_default=True,
    metavar="free|deterministic",
    help="Real threads; or one step after the other, the same for the same seed.",
)
@click.option(
    "--adversary",
    default="random",
    show_default=True,
    metavar="NAME",
    help="random, starve-link, hold-last-atom, newest-first, stop-rank; all: in turn.",
)
@click.option(
    "--runs", default=1, show_default=True, help="Runs, each with the next seed; 0: many."
)
@click.option(
    "--time",
    "clock",
    default="real",
    show_default=True,
    type=click.Choice(["real", "virtual"]),
    help="virtual: what each operation costs by the profile's latencies.",
)
@click.option(
    "--cores", default=1, show_default=True, help="Cores that share each role, in virtual time."
)
@click.option("--payload", default="bf16", show_default=True, help="bf16, fp16, fp8 or int8.")
@click.option(
    "--domain", default=0, metavar="N", help="Tokens have only N contents, one the sentinel's."
)
@click.option(
    "--bytes-from", default="", metavar="FILE", help="Tokens with the bytes that bits --json found."
)
@click.option("--conform/--no-conform", default=True, help="Walk each step through the model.")
@click.option("--seconds", default=0.0, metavar="S", help="Stop after so long.  [default: never]")
@click.option(
    "--patience", default=10.0, metavar="S", help="How long a role may stay away from its core."
)
@click.option("--log", default="", metavar="FILE", help="Every step as JSON, for conform.")
@click.option("-q", "--quiet", is_flag=True, help="One line.")
def run_protocol(
    log: str, quiet: bool, runs: int, clock: str, cores: int, bytes_from: str, **asked: Any
) -> int:
    """Run a protocol on real bytes, under a fabric that delays, reorders and tears.

    Exit codes: 0 complete, 1 wrong bytes or stuck, 3 not finished in time, 4 a step that the model
    does not allow.
    """
    from syncproof.commands.run import (
        Output,
        options_from,
        run,
        run_in_virtual_time,
        with_properties,
    )
    from syncproof.request import Request

    _refuse_given(_ONLY_VIRTUAL if clock == "real" else _ONLY_REAL, f"--time {clock}")
    options = options_from(asked)
    request = Request(**asked)
    if clock == "virtual":
        return run_in_virtual_time(request, options, cores, quiet=quiet)
    return run(request, with_properties(options, request), Output(log, quiet, runs, bytes_from))


_ONLY_VIRTUAL = ("cores",)
_ONLY_REAL = (
    "schedule",
    "adversary",
    "payload",
    "domain",
    "bytes_from",
    "conform",
    "seconds",
    "patience",
    "log",
    "runs",
    "properties",
)


def _refuse_given(names: Sequence[str], beside: str) -> None:
    """Refuse options that were typed and would not be looked at."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in names and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} says nothing together with {beside}")


@cli.command()
@click.argument("protocol", metavar="NAME|FILE.py[:CLASS]")
@click.argument("log", metavar="LOG.jsonl")
def conform(protocol: str, log: str) -> int:
    """Hold a log, of ours or of a real kernel, against the model.

    docs/emulator.md describes the format. Exit codes: 0 it can be a run of the protocol, 4 it
    cannot (with what was expected), 3 not decided.
    """
    from syncproof.commands.conform import run

    return run(protocol, log)


@cli.command()
@click.argument("protocol", metavar="NAME")
@INSTANCE
@click.option("--property", "properties", multiple=True, metavar="NAME", help="Only this one.")
@click.option("--mutant", default="", metavar="NAME", help="Leave one operation out (see show).")
@click.option("--states", "with_states", is_flag=True, help="Also compare all reachable states.")
@click.option("--memory", default="", metavar="SIZE", help="Such as 4G.")
@click.option("--budget-seconds", type=float, default=0.0, metavar="S", help="Seconds at most.")
def compare(with_states: bool, **asked: Any) -> int:
    """Compare a protocol with its TLA+ module.

    Asks our reference engine and TLC and shows their runs side by side. Exit code 4 if they differ.
    """
    from syncproof.commands.compare import run
    from syncproof.request import Request

    return run(Request(**asked), with_states)


@cli.command()
@click.argument("file", metavar="FILE.py")
def init(file: str) -> int:
    """Write a commented protocol to start from."""
    from syncproof.commands.init import run

    return run(file)


@cli.command()
@click.argument("file", metavar="[FILE]", default="")
@click.option("--ranks", default=2, show_default=True, help="Ranks of a generated schedule.")
@click.option("--experts", default=0, help="Experts in all.  [default: two a rank]")
@click.option("--tiles", default=1, show_default=True, help="Row tiles per source and expert.")
@click.option("--columns", default=2, show_default=True, help="Column tiles of a product.")
@click.option("--aic", default=24, show_default=True, help="Matrix cores of a rank.")
@click.option("--aiv", default=48, show_default=True, help="Vector cores of a rank.")
@click.option("--links", default=0, help="AIVs that make transfers.  [default: a third at most]")
@click.option(
    "--direction",
    default="both",
    type=click.Choice(["forward", "backward", "both"]),
    help="Which pass.  [default: both]",
)
@click.option(
    "--routing",
    default="balanced",
    type=click.Choice(["balanced", "skewed"]),
    help="How tokens spread; skewed leaves an expert without any.",
)
@click.option("--reorder/--no-reorder", default=True, help="Rank-aware order of transfers.")
@click.option("--launches", default=1, show_default=True, help="Launches in a row.")
@click.option("--wait-cost", default=0.0, help="Microseconds that a wait costs.")
@click.option("--trigger-cost", default=0.0, help="Microseconds that a trigger costs.")
@click.option("--barrier-cost", default=0.0, help="Microseconds that a barrier costs.")
@click.option("--explore", is_flag=True, help="Every interleaving as well: --engine auto.")
@click.option("--engine", default="", metavar="NAME", help="The same by NAME: smt, reference, all.")
@click.option("--fabric", default="cm384", show_default=True, help="The fabric of --engine.")
@click.option("--json", default="", metavar="FILE", help="What was found; - is stdout.")
@click.option("--svg", default="", metavar="FILE", help="Gantt chart.")
@click.option("--perfetto", default="", metavar="FILE", help="For ui.perfetto.dev.")
@click.option("--write", default="", metavar="FILE.json", help="The schedule itself.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of FILE, and stop.")
@click.option("-q", "--quiet", is_flag=True, help="One line.")
def taskflow(schema: bool, **asked: Any) -> int:
    """Prove a static schedule of AIC and AIV tile tasks, or name its faults.

    FILE is YAML or JSON (docs/taskflow.md). Without it the schedules of a mixture-of-experts
    layer are generated and proved.
    """
    from syncproof.commands.taskflow import asked_of, print_schema, run

    return print_schema() if schema else run(asked_of(asked))


@cli.command()
@click.option("--experts", default=256, show_default=True, help="Experts in all.")
@click.option("--cores", default=48, show_default=True, help="Cores that send.")
@click.option("--tokens", default=128, show_default=True, help="Tokens times experts per token.")
@click.option("--hops", default="", metavar="NAME:COUNT,...", help="Hop class of the experts.")
@click.option("--set", "settings", multiple=True, metavar="algorithm=NAME", help="Which reading.")
@click.option("--json", default="", metavar="FILE", help="The verdict; - is stdout.")
@click.option("-q", "--quiet", is_flag=True, help="One line.")
def scheduler(**asked: Any) -> int:
    """Prove UBEP's token scheduler, contract by contract, or show where it fails.

    Algorithms: corrected (the default), printed, printed-floor, search-only, rounded-up, rotated.
    """
    from syncproof.commands.scheduler import Asked, run

    return run(Asked(**asked))


@cli.command()
@click.option("--format", default="", metavar="bf16|fp16|fp8-e5m2|fp8-e4m3|int8", help="Encoding.")
@click.option("--sentinel", default="", metavar="0x7fc1", help="The bits of one element.")
@click.option("--checksum", default="", metavar="sum|xor|crc32|fletcher", help="Of the leads.")
@click.option("--markers", default=2, show_default=True, help="Blocks in a batch.")
@click.option("--json", default="", metavar="FILE", help="The answers with bytes; - is stdout.")
def bits(**asked: Any) -> int:
    """Say which sentinels a payload can equal, and which bytes fool a checksum."""
    from syncproof.commands.bits import Asked, run

    return run(Asked(**asked))


@cli.command()
def doctor() -> int:
    """List the programs and packages that are here."""
    from syncproof.commands.doctor import run

    return run()


cli.add_command(gate)


# From here on: what every command has in common


class Terminated(KeyboardInterrupt):
    """SIGTERM; handled like Ctrl-C but for the exit code."""


def main() -> NoReturn:
    """The program: run the command that was typed and exit with its code."""
    # Beside the modules, what numba keeps would stay behind when the package is replaced
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    os.environ.setdefault("NUMBA_CACHE_DIR", os.path.join(caches, "syncproof", "numba"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; gives the exit code, with every error told on standard error."""
    received: list[int] = []

    def terminate(number: int, frame: object) -> NoReturn:
        received.append(number)
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        code = _code_of(arguments)
    finally:
        signal.signal(signal.SIGTERM, before)
    return TERMINATED if received and code == INTERRUPTED else code


def _code_of(arguments: Sequence[str]) -> int:
    from syncproof.models.errors import UserError

    try:
        with cli.make_context("check-protocol", list(arguments)) as context:
            code = cli.invoke(context)
        sys.stdout.flush()
        return int(code)
    except click.exceptions.Exit as end:
        return end.exit_code
    except (UserError, click.ClickException) as error:
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        _tell(" ".join(text.split()))
        return BAD_INPUT
    except KeyboardInterrupt:
        _tell("interrupted before anything was covered")
        return INTERRUPTED
    except BrokenPipeError:
        return _without_reader()
    except BaseException:
        return _our_error(arguments)


def _our_error(arguments: Sequence[str]) -> int:
    traceback.print_exc()
    command = shlex.join(["check-protocol", *arguments])
    _tell(
        "an error of syncproof, not of your protocol; please report the lines above and: "
        f"{command} ({_versions()})"
    )
    return BROKEN


def _tell(text: str) -> None:
    print(f"check-protocol: {text}", file=sys.stderr)


def _without_reader() -> int:
    """Nobody reads the output any more: say nothing else, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 128 + signal.SIGPIPE


def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        ours = version("syncproof")
    except PackageNotFoundError:
        ours = "not installed"
    return f"syncproof {ours}, Python {platform.python_version()}, {platform.platform()}"
