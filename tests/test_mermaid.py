"""Mermaid diagrams: each line is one that Mermaid takes, and the run is all there."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from syncproof.models.verdict import Trace, Verdict
from syncproof.reports.mermaid import mermaid_of
from tests import page_examples
from tests.page_examples import VIOLATIONS, long_run, trace_of

TEXT = r"(?P<text>(?:[^#;%<>\"`\\~^$&\n]|#\d+;)+)"
"""Nothing that Mermaid or HTML reads as syntax, but for entities of one character."""
LINES = {
    "participant": re.compile(rf"    participant (?P<one>p\d+) as {TEXT}"),
    "message": re.compile(rf"    (?P<one>p\d+)(-\)|-->>|--x)(?P<other>p\d+): {TEXT}"),
    "note": re.compile(rf"    Note over (?P<one>p\d+)(,(?P<other>p\d+))?: {TEXT}"),
    "frame": re.compile(r"    (rect rgba\([\d., ]+\)|end)"),
}
MOST_CHARACTERS = 50_000
"""Mermaid's own limit (maxTextSize)."""


def read(diagram: str) -> list[tuple[str, str, str, str]]:
    """Kind, ends and text of each line; an error where a line is none of Mermaid's."""
    first, *lines = diagram.splitlines()
    assert first == "sequenceDiagram"
    assert diagram.endswith("\n") and len(diagram) < MOST_CHARACTERS
    found = []
    for line in lines:
        kind, match = next(
            ((k, m) for k, rule in LINES.items() if (m := rule.fullmatch(line))), ("", None)
        )
        assert match, f"not Mermaid: {line!r}"
        parts = match.groupdict()
        text = re.sub(r"#(\d+);", r"&#\1;", parts.get("text") or "")
        one, other = parts.get("one") or "", parts.get("other") or ""
        found.append((kind, one, other, html.unescape(text)))
    names = [one for kind, one, _, _ in found if kind == "participant"]
    assert len(set(names)) == len(names)
    used = {end for _, one, other, _ in found for end in (one, other) if end}
    assert used <= set(names)
    return found


@pytest.mark.parametrize("example", VIOLATIONS, ids=lambda each: each.__name__)
def test_the_diagram_has_the_run(example: Callable[[], Verdict]) -> None:
    """Every step shown is a line at its lane, in order; then what is wrong and who waits."""
    trace = trace_of(example())
    lines = read(mermaid_of(trace))
    lanes = {one: text for kind, one, _, text in lines if kind == "participant"}
    told = [line for line in lines if re.match(r"\d+\. ", line[3])]
    assert [int(text.split(".")[0]) - 1 for *_, text in told] == list(trace.shown)
    for number, (_, one, other, text) in zip(trace.shown, told, strict=True):
        step = trace.steps[number]
        assert step.text in text
        assert step.actor in {lanes[one], lanes.get(other)}
    everything = "\n".join(text for *_, text in lines)
    assert f"{trace.property}: {trace.message}" in everything
    assert trace.missing_edge in everything
    for waiting in trace.waiting:
        assert f"blocked in {waiting.operation}, but {waiting.reason}" in everything


def test_puts_go_to_the_fabric_and_reads_come_from_it() -> None:
    """An issue is an arrow to the fabric, a read of what landed one back, the rest are notes."""
    lines = read(mermaid_of(trace_of(page_examples.torn())))
    steps = [(kind, one, other) for kind, one, other, text in lines if text[:1].isdigit()]
    assert steps == [
        ("message", "p0", "p2"),
        ("message", "p0", "p2"),
        ("note", "p2", ""),
        ("message", "p2", "p1"),
        ("message", "p1", "p2"),
        ("note", "p2", ""),
        ("message", "p2", "p1"),
        ("note", "p1", ""),
    ]
    assert any(kind == "message" and text.startswith("nothing orders") for kind, *_, text in lines)


def test_a_long_run_keeps_its_end() -> None:
    """What would be too long for Mermaid loses its beginning, and says so."""
    trace = long_run(1_000)
    lines = read(mermaid_of(trace))
    numbers = [int(m[1]) for *_, text in lines if (m := re.match(r"(\d+)\. ", text))]
    assert numbers == list(range(numbers[0], len(trace.steps) + 1))
    assert any(f"{numbers[0] - 1:,} steps before this left out" in text for *_, text in lines)
    assert 200 < len(numbers) < 2_000


EVIL = 'end; %%{init: {}}%% <b>&lt;</b> #35; "x" `y` \\ p0->>p1: z\nNote over p0: no \u202e é 中'


def test_markup_stays_text() -> None:
    """Names and messages that hold Mermaid's or HTML's syntax are shown as they are."""
    trace = trace_of(page_examples.hang())
    names = {name: f"{name} {EVIL}" for name in trace.processes}
    evil: Trace = replace(
        trace,
        message=EVIL,
        processes=tuple(names.values()),
        steps=tuple(
            replace(step, actor=names.get(step.actor, step.actor), text=EVIL)
            for step in trace.steps
        ),
        waiting=tuple(
            replace(each, process=names[each.process], operation=EVIL) for each in trace.waiting
        ),
    )
    plain = EVIL.replace("\n", "\\n").replace("\u202e", "\\u202e")
    texts = [text for _, _, _, text in read(mermaid_of(evil))]
    assert sum(plain in text for text in texts) >= len(trace.steps) + 4


@pytest.mark.parametrize("line", ["    p0->>p9: x", "    Note over p0: a;b", "    loop x", "p0"])
def test_the_rules_notice(line: str) -> None:
    """A line that is not Mermaid's, or an end that was not declared, is refused."""
    diagram = mermaid_of(trace_of(page_examples.torn()))
    read(diagram)
    with pytest.raises(AssertionError):
        read(f"{diagram}{line}\n")
