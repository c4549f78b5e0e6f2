"""A counterexample as a pytest file: it fails for as long as the run is possible."""

from __future__ import annotations

import json

from syncproof.models.verdict import Trace, to_data
from syncproof.reports.text import printable

WIDTH = 88


def saved_test(trace: Trace) -> str:
    """The source of a test module that holds the trace and needs nothing beside syncproof."""
    text = json.dumps(to_data(trace), separators=(",", ":"))
    pieces = [text[at : at + WIDTH] for at in range(0, len(text), WIDTH)]
    lines = "\n".join(f"    {_literal(piece)}" for piece in pieces)
    title = printable(f"{trace.question.protocol}: {trace.property} was violated")
    return f'''# {title}
# in {len(trace.steps)} steps: {printable(trace.message)}
# Written by check-protocol --save-test.

from pathlib import Path

from syncproof.asserts import assert_property_holds, assert_run_is_gone

HERE = Path(__file__).parent
TRACE = (
{lines}
)


def test_run_is_not_possible_any_more() -> None:
    """The run cannot be walked any more, or it breaks nothing."""
    assert_run_is_gone(TRACE, HERE)


def test_property_is_proved() -> None:
    """The same question, asked again, has another answer."""
    assert_property_holds(TRACE, HERE)
'''


def _literal(text: str) -> str:
    return ascii(text)
