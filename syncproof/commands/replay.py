"""``check-protocol replay``: walk a recorded trace through the protocol as it is now."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TypeVar

from rich.text import Text

from syncproof.checkers.explicit.replay import replay
from syncproof.commands.show import read_trace
from syncproof.models.instance import Instance
from syncproof.models.verdict import Trace
from syncproof.registry import blaming, find, is_file
from syncproof.reports.terminal import console_on
from syncproof.reports.text import printable
from syncproof.request import asked_again

Done = TypeVar("Done")

REPRODUCED, NOT_REPRODUCED = 1, 0


def run(path: str) -> int:
    """Replay a trace file; 1 if it breaks the property as it did, 0 if it does not."""
    replayed = _with_instance(path, replay)
    _say(path, replayed.reproduced, replayed.message)
    return REPRODUCED if replayed.reproduced else NOT_REPRODUCED


def run_emulated(path: str) -> int:
    """Force a trace on the emulator; 1 if it fails there as it did, 0 if it does not."""
    from syncproof.checkers.emulator.forced import force
    from syncproof.commands.run import print_waiting, print_wrong

    forced = _with_instance(path, force)
    console = console_on(sys.stdout)
    print_wrong(console, forced.wrong)
    if forced.blocked:
        print_waiting(console, "nobody can go on", forced.blocked, forced.in_flight)
    _say(path, forced.reproduced, f"{forced.steps} steps forced on the emulator: {forced.message}")
    return REPRODUCED if forced.reproduced else NOT_REPRODUCED


def _with_instance(path: str, do: Callable[[Trace, Instance], Done]) -> Done:
    """Do something with a trace and the instance that it is of, as that is now."""
    trace = read_trace(path)
    name = trace.question.protocol
    if is_file(name):
        print(f"imports {printable(name)}", file=sys.stderr)
    with redirect_stdout(sys.stderr):
        subject = find(name)
        asked = asked_again(trace.question, subject)
        with blaming(subject, innermost=True):
            return do(trace, asked.instance)


def _say(path: str, reproduced: bool, message: str) -> None:
    name = read_trace(path).question.protocol
    said = "reproduced" if reproduced else "not reproduced"
    text = Text(f"{printable(name)}: {said}: {printable(message)}")
    console_on(sys.stdout).print(text, soft_wrap=True)
