"""Apalache: its command line, its exit codes and its counterexamples (ITF).

Sources: apalache-mc.org, "Running the Tool"; ADR-015; at.forsyte.apalache.infra.ExitCodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from syncproof.checkers.tla.model import RUN, Model, check_constants, specs_folder
from syncproof.checkers.tla.tlc import LEAST_HEAP, SPARE, Found, Limits
from syncproof.checkers.tla.tools import Ended, Tools, run, said
from syncproof.checkers.tla.values import Unreadable, from_itf
from syncproof.models.errors import UserError

LENGTH = 40
"""Steps of the runs that are searched, unless something is found sooner."""

OK, COUNTEREXAMPLE, NOT_EVALUATED, NOT_TYPED, NOT_PARSED = 0, 12, 75, 120, 150
ADVICE = {
    NOT_EVALUATED: "a formula within the fragment that Apalache supports",
    NOT_TYPED: "type annotations that fit; run apalache-mc typecheck in specs/tla",
    NOT_PARSED: "a module that parses",
}


def check(
    model: Model,
    tools: Tools,
    folder: Path,
    limits: Limits,
    invariants: Sequence[str],
    deadlock: bool,
) -> Found:
    """Ask Apalache for invariants, in an empty ``folder`` and in runs of up to `LENGTH` steps."""
    check_constants(model)
    (folder / f"{RUN}.tla").write_text(model.text, encoding="utf-8")
    (folder / f"{RUN}.cfg").write_text(model.configuration((), ()), encoding="utf-8")
    # Its own statement of a module comes last, and replaces the one with recursion
    for module in (*specs_folder().glob("*.tla"), *specs_folder().glob("apalache/*.tla")):
        (folder / module.name).write_text(module.read_text(encoding="utf-8"), encoding="utf-8")
    environment = dict(tools.environment)
    if limits.memory:
        heap = max(LEAST_HEAP, min(limits.memory - SPARE, limits.memory * 3 // 4))
        environment["JVM_ARGS"] = f"-Xmx{heap // 2**20}m"
    command = command_line(tools, folder, invariants, deadlock)
    ended = run(command, folder, limits.seconds, environment)
    return found_in(ended, folder, tools, invariants)


def command_line(
    tools: Tools, folder: Path, invariants: Sequence[str], deadlock: bool
) -> list[str]:
    """Apalache's command."""
    return [
        tools.for_apalache(),
        "check",
        f"--config={RUN}.cfg",
        f"--inv={','.join(invariants)}",
        f"--length={LENGTH}",
        *([] if deadlock else ["--no-deadlock=1", "--discard-disabled=false"]),
        f"--run-dir={folder / 'out'}",
        f"{RUN}.tla",
    ]


def found_in(ended: Ended, folder: Path, tools: Tools, invariants: Sequence[str]) -> Found:
    """What a run of Apalache found; a `UserError` with its own words if it could not work."""
    if not ended.in_time:
        return Found(undecided="Apalache ran out of time: raise --budget-seconds")
    if ended.code == OK:
        return Found(undecided=f"Apalache found nothing in runs of up to {LENGTH} steps")
    if "OutOfMemoryError" in ended.output:
        return Found(undecided="Java ran out of memory: raise --memory")
    if ended.code != COUNTEREXAMPLE:
        raise UserError(
            f"Apalache ended with code {ended.code}: {said(ended.output)}",
            where=tools.apalache,
            expected=ADVICE.get(ended.code, "see the message; the modules are in specs/tla"),
        )
    file = folder / "out" / "violation1.itf.json"
    try:
        states, back_to = states_in(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(file)) from None
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"is no ITF trace: {error}", where=file.name, expected="a trace of ADR-015"
        ) from None
    violated = violated_in(ended.output, invariants)
    if not violated:
        raise UserError(
            f"Apalache does not say what is violated: {said(ended.output)}", where=tools.apalache
        )
    return Found(violated, states, back_to, len(states), len(states), len(states) - 1)


def violated_in(output: str, invariants: Sequence[str]) -> str:
    """The formula that Apalache says is violated, or ``deadlock``.

    It names an invariant by its number among those asked for, in newer versions by name too.
    """
    if re.search(r"The outcome is: Deadlock", output):
        return "deadlock"
    found = re.search(r"state invariant (\d+)(?: \[(\w+)\])? violated", output)
    if found is None:
        return ""
    return found[2] or invariants[min(int(found[1]), len(invariants) - 1)]


def states_in(data: Any) -> tuple[tuple[dict[str, Any], ...], int]:
    """The states of an ITF trace, and the number of the one that its loop begins with, or -1."""
    if not isinstance(data, dict) or not isinstance(data.get("states"), list):
        raise Unreadable("it has no states")
    states = []
    for number, each in enumerate(data["states"]):
        if not isinstance(each, dict):
            raise Unreadable(f"state {number} is no object")
        missing = [name for name in data.get("vars", []) if name not in each]
        if missing:
            raise Unreadable(f"state {number} has no {missing[0]}")
        states.append({name: from_itf(v) for name, v in each.items() if name != "#meta"})
    loop = data.get("loop", -1)
    if not isinstance(loop, int):
        loop = from_itf(loop)
    return tuple(states), int(loop)
