"""``check-protocol show``: a protocol's variants and parts, or a recorded trace or verdict."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.commands.drawings import Drawings
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.protocol import Assumption, Parameter, Protocol, Role
from syncproof.models.verdict import Trace, Verdict, from_data
from syncproof.registry import Subject, blaming, find
from syncproof.reports.columns import Row, print_columns
from syncproof.reports.files import read_json
from syncproof.reports.terminal import (
    console_on,
    print_trace,
    print_verdict,
    size_text,
    summary_line,
)
from syncproof.reports.text import many, printable
from syncproof.request import Request, resolve


def run(request: Request, verbose: bool, drawings: Drawings) -> int:
    """Show what ``request.protocol`` names; a recorded file is shown without its protocol."""
    drawings.check()
    console = console_on(sys.stderr if drawings.to_standard_output else sys.stdout)
    if is_recorded(request.protocol):
        recorded = show_recorded(console, request.protocol, verbose)
        if drawings.files:
            _draw(recorded, drawings)
    elif drawings.files:
        raise UserError("is a protocol", where=request.protocol, expected="a trace or verdict file")
    else:
        show_protocol(console, request)
    return 0


def is_recorded(name: str) -> bool:
    """Whether a name means a file that a check wrote."""
    return name.endswith(".json")


def show_recorded(console: Console, path: str, verbose: bool) -> Trace | tuple[Verdict, ...]:
    """Print a trace or a verdict from its JSON file, or the verdicts of several engines."""
    data = read_json(path)
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind not in ("comparison", "verdict"):
        trace = read_trace(path, data)
        print_trace(console, trace, verbose=verbose)
        return trace
    given = [data] if kind == "verdict" else data.get("verdicts")
    if not isinstance(given, list) or not given:
        raise UserError("is a comparison without verdicts", where=path)
    verdicts = tuple(from_data(Verdict, each, path) for each in given)
    for each in verdicts:
        if each.trace is not None:
            _check_steps(each.trace, path)
        _show_verdict(console, each, verbose)
    return verdicts


def _draw(recorded: Trace | tuple[Verdict, ...], drawings: Drawings) -> None:
    if isinstance(recorded, Trace):
        drawings.write(recorded)
        return
    from syncproof.commands.check import Answered  # brings the engines along

    drawings.write(Answered(recorded).verdict, engines=recorded)


def read_trace(path: str, data: Any = None) -> Trace:
    """The trace that a JSON file holds."""
    trace: Trace = from_data(Trace, read_json(path) if data is None else data, path)
    _check_steps(trace, path)
    return trace


def _check_steps(trace: Trace, path: str) -> None:
    """Refuse a trace whose steps say too little, or name steps that are not there or not before."""
    if any(not 0 <= number < len(trace.steps) for number in (*trace.shown, *trace.unordered)):
        raise UserError("shows a step that it does not have", where=path)
    for number, step in enumerate(trace.steps):
        if not step.what:
            raise UserError(f"step {number} does not say what it is", where=path)
        if step.put >= number or any(not 0 <= cause < number for cause in step.after):
            raise UserError(f"step {number} comes after one that is not before it", where=path)


def _show_verdict(console: Console, verdict: Verdict, verbose: bool) -> None:
    print_verdict(console, verdict, verbose=verbose)
    console.print()
    console.print(Text(summary_line(verdict)), soft_wrap=True)


# A protocol


def show_protocol(console: Console, request: Request) -> None:
    """Print what a protocol is made of and how it can be varied."""
    subject = find(request.protocol)
    asked = resolve(request, subject, unbounded=True)
    kind = subject.kind
    with blaming(subject):
        protocol = asked.instance.protocol()
    console.print(Text(request.protocol, style="bold").append(f"  {_origin(subject)}", "not bold"))
    for paragraph in (inspect.getdoc(kind) or "").split("\n\n"):
        console.print()
        print_columns(console, [(printable(" ".join(paragraph.split())),)])
    known = kind.parameters()
    settings = [each for each in known.values() if not isinstance(each, Assumption)]
    _section(console, "settings (--set NAME=VALUE)", (_setting(protocol, p) for p in settings))
    _section(console, "assumptions (--drop NAME)", _assumptions(protocol))
    _section(console, "roles", (_role(protocol, role) for role in kind.roles()))
    size = size_text(asked.question.bounds)
    regions = protocol.regions.values()
    _section(console, f"memory at {size}", (_region(region) for region in regions))
    _section(console, "mutants (--mutant NAME)", _mutants(asked.instance))


def _origin(subject: Subject) -> str:
    file = inspect.getsourcefile(subject.kind)
    return f"{subject.kind.__name__} in {Path(file).name if file else 'no file'}"


def _section(console: Console, title: str, rows: Iterable[tuple[str, ...]]) -> None:
    texts: list[Row] = [
        (Text(printable(first), style="bold"), *(printable(each) for each in rest))
        for first, *rest in rows
    ]
    if texts:
        console.print()
        console.print(Text(title, style="dim"))
        print_columns(console, texts)


def _setting(protocol: Protocol, each: Parameter) -> tuple[str, str, str]:
    value = getattr(protocol, each.name)
    now = _spelled(each.default)
    if value != each.default:
        now = f"{_spelled(value)} (default {now})"
    return each.name, now, f"{each.text} ({_possible(each)})"


def _possible(each: Parameter) -> str:
    if each.values:
        return " or ".join(_spelled(value) for value in each.values)
    if isinstance(each.default, bool):
        return "yes or no"
    return "a whole number from 1" if isinstance(each.default, int) else "any text"


def _spelled(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _assumptions(protocol: Protocol) -> Iterable[tuple[str, str]]:
    held = protocol.assumptions()
    for name, each in protocol.parameters().items():
        if isinstance(each, Assumption):
            is_made = bool(getattr(protocol, name))
            why = "not made with these settings" if is_made else "dropped"
            yield name, each.text if name in held else f"{each.text} ({why})"
    yield from ((name, text) for name, text in held.items() if "." in name)


def _role(protocol: Protocol, role: Role) -> tuple[str, str, str]:
    ranks = protocol.ranks_of(role)
    everywhere = ranks == list(range(protocol.bounds.ranks))
    where = "on every rank" if everywhere else f"on {', '.join(f'rank {r}' for r in ranks)}"
    text = (role.function.__doc__ or "").strip().partition("\n")[0]
    return role.name, f"{many(protocol.count(role), 'core')} {where}", text


def _region(region: Region) -> tuple[str, str, str]:
    index = ", ".join(map(str, region.extents))
    owner = "rank" if len(region.owners()) > 1 else str(region.owners()[0])
    fields = ", ".join(f"{name} {size}" for name, size in region.fields.items())
    properties = ["on chip"] if region.on_chip else []
    properties += [f"cached in lines of {region.line} B"] if region.line else []
    properties += ["must end as it began"] if region.clean else []
    initial = getattr(region.initial, "values", None)
    starts = f"any of {', '.join(map(str, initial))}" if initial else str(region.initial)
    name = f"{region.name}[{owner}]" + (f"[{index}]" if index else "")
    return name, f"{region.block} B: {fields}", ", ".join([f"starts as {starts}", *properties])


def _mutants(instance: Instance) -> Iterable[tuple[str, str]]:
    reasons = dict(instance.kind.not_needed)
    for mutant in find_mutants(instance):
        reason = reasons.get(mutant.name, "")
        yield mutant.name, f"{mutant.text} (not needed: {reason})" if reason else mutant.text
