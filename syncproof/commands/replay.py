"""``check-protocol replay``: walk a recorded trace through the protocol as it is now."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from rich.text import Text

from syncproof.checkers.explicit.replay import replay
from syncproof.commands.show import read_trace
from syncproof.registry import blaming, find, is_file
from syncproof.reports.terminal import console_on
from syncproof.reports.text import printable
from syncproof.request import asked_again

REPRODUCED, NOT_REPRODUCED = 1, 0


def run(path: str) -> int:
    """Replay a trace file; 1 if it breaks the property as it did, 0 if it does not."""
    trace = read_trace(path)
    name = trace.question.protocol
    if is_file(name):
        print(f"imports {printable(name)}", file=sys.stderr)
    with redirect_stdout(sys.stderr):
        subject = find(name)
        asked = asked_again(trace.question, subject)
        with blaming(subject, innermost=True):
            replayed = replay(trace, asked.instance)
    said = "reproduced" if replayed.reproduced else "not reproduced"
    text = Text(f"{printable(name)}: {said}: {printable(replayed.message)}")
    console_on(sys.stdout).print(text, soft_wrap=True)
    return REPRODUCED if replayed.reproduced else NOT_REPRODUCED
