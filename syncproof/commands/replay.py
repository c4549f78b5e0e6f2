"""``check-protocol replay``: walk a recorded trace through the protocol as it is now."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from syncproof.checkers.explicit.replay import replay
from syncproof.commands.drawings import Drawings
from syncproof.commands.show import read_trace
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.verdict import Trace
from syncproof.registry import blaming, find, is_file
from syncproof.reports.terminal import console_on
from syncproof.reports.text import printable
from syncproof.request import asked_again

Done = TypeVar("Done")

REPRODUCED, NOT_REPRODUCED = 1, 0


def run(path: str, drawings: Drawings) -> int:
    """Replay a trace file; 1 if it breaks the property as it did, 0 if it does not.

    What is drawn is the run as the protocol takes it now, if it is reproduced.
    """
    drawings.check()
    trace = read_trace(path)
    replayed = _with_instance(trace, replay)
    file = sys.stderr if drawings.to_standard_output else sys.stdout
    _say(console_on(file), trace, replayed.reproduced, replayed.message)
    if replayed.trace is not None:
        drawings.write(replayed.trace)
    elif drawings.files:
        print("nothing is drawn: the run is not reproduced", file=sys.stderr)
    return REPRODUCED if replayed.reproduced else NOT_REPRODUCED


def run_emulated(path: str, drawings: Drawings) -> int:
    """Force a trace on the emulator; 1 if it fails there as it did, 0 if it does not."""
    for option, _ in drawings.files:
        raise UserError("draws nothing", where="--emulate", expected=f"{option} without it")
    from syncproof.checkers.emulator.forced import force
    from syncproof.commands.run import print_waiting, print_wrong

    trace = read_trace(path)
    forced = _with_instance(trace, force)
    console = console_on(sys.stdout)
    print_wrong(console, forced.wrong)
    if forced.blocked:
        print_waiting(console, "nobody can go on", forced.blocked, forced.in_flight)
    message = f"{forced.steps} steps forced on the emulator: {forced.message}"
    _say(console, trace, forced.reproduced, message)
    return REPRODUCED if forced.reproduced else NOT_REPRODUCED


def _with_instance(trace: Trace, do: Callable[[Trace, Instance], Done]) -> Done:
    """Do something with a trace and the instance that it is of, as that is now."""
    name = trace.question.protocol
    if is_file(name):
        print(f"imports {printable(name)}", file=sys.stderr)
    with redirect_stdout(sys.stderr):
        subject = find(name)
        asked = asked_again(trace.question, subject)
        with blaming(subject, innermost=True):
            return do(trace, asked.instance)


def _say(console: Console, trace: Trace, reproduced: bool, message: str) -> None:
    said = "reproduced" if reproduced else "not reproduced"
    text = Text(f"{printable(trace.question.protocol)}: {said}: {printable(message)}")
    console.print(text, soft_wrap=True)
