"""``check-protocol replay``: walk a recorded trace through the protocol as it is now."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from rich.text import Text

from syncproof.checkers.explicit.replay import replay
from syncproof.commands.drawings import Drawings
from syncproof.commands.show import read_trace
from syncproof.registry import blaming, find, is_file
from syncproof.reports.terminal import console_on
from syncproof.reports.text import printable
from syncproof.request import asked_again

REPRODUCED, NOT_REPRODUCED = 1, 0


def run(path: str, drawings: Drawings) -> int:
    """Replay a trace file; 1 if it breaks the property as it did, 0 if it does not.

    What is drawn is the run as the protocol takes it now, if it is reproduced.
    """
    drawings.check()
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
    file = sys.stderr if drawings.to_standard_output else sys.stdout
    console_on(file).print(text, soft_wrap=True)
    if replayed.trace is not None:
        drawings.write(replayed.trace)
    elif drawings.files:
        print("nothing is drawn: the run is not reproduced", file=sys.stderr)
    return REPRODUCED if replayed.reproduced else NOT_REPRODUCED
