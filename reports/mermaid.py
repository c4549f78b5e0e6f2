"""A run as a Mermaid sequence diagram, to be pasted into an issue."""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncproof.models.verdict import Trace, TraceStep
from syncproof.reports.happens_before import Edge, Why, graph_of
from syncproof.reports.page_data import last_step, missing_edge_text
from syncproof.reports.swimlanes import FABRIC, lanes_with_waiting
from syncproof.reports.text import many, printable

LONGEST = 48_000
"""Characters: Mermaid refuses a diagram of more than 50,000."""
UNSAFE = re.compile(r"[^\w .,:()\[\]{}|+*/=@?!'-]")
"""What Mermaid or HTML might take for syntax is written as an entity."""


def mermaid_of(trace: Trace) -> str:
    """The steps that a trace shows; where they are too many, the last ones."""
    participants = _Participants(trace)
    steps = [_step(trace, number, participants) for number in trace.shown]
    head = ["sequenceDiagram", *participants.lines()]
    end = list(_end(trace, participants))
    room = LONGEST - sum(len(line) + 1 for line in (*head, *end)) - 200
    kept: list[str] = []
    for text in reversed(steps):
        room -= len(text) + 1
        if room < 0:
            break
        kept.insert(0, text)
    left_out = len(steps) - len(kept)
    if left_out:
        kept.insert(0, participants.note(f"{many(left_out, 'step')} before this left out"))
    return "\n".join([*head, *kept, *end]) + "\n"


class _Participants:
    """The lanes by the short names that Mermaid knows them by."""

    def __init__(self, trace: Trace) -> None:
        steps = [trace.steps[number] for number in trace.shown]
        self.lanes = lanes_with_waiting(trace, steps) or ["nobody"]
        self.causes = _messages(trace)

    def __getitem__(self, lane: str) -> str:
        return f"p{self.lanes.index(lane)}"

    def lines(self) -> list[str]:
        """A declaration each, in the order of the lanes."""
        return [f"    participant {self[lane]} as {_text(lane)}" for lane in self.lanes]

    def note(self, text: str) -> str:
        """A note across all lanes."""
        ends = dict.fromkeys((self[self.lanes[0]], self[self.lanes[-1]]))
        return f"    Note over {','.join(ends)}: {_text(text)}"


def _messages(trace: Trace) -> dict[int, Edge]:
    """For each step the last landing that it reads."""
    return {each.second: each for each in graph_of(trace).edges if each.why is Why.READ}


def _step(trace: Trace, number: int, participants: _Participants) -> str:
    step = trace.steps[number]
    text = f"{number + 1}. {step.text}"
    here = participants[step.actor]
    if step.line is not None and step.line.at:
        text += f" [{step.line.at}]"
    if step.issues:
        return f"    {here}-){participants[FABRIC]}: {_text(text)}"
    if number in participants.causes:
        return f"    {participants[FABRIC]}-->>{here}: {_text(text)}"
    if step.put >= 0:
        text += f" (put of step {step.put + 1})"
    members = _members(step, participants)
    return f"    Note over {','.join(members)}: {_text(text)}"


def _members(step: TraceStep, participants: _Participants) -> list[str]:
    """The lane of a step, or the outermost two of those that take it together."""
    lanes = {step.actor, *step.joined} & set(participants.lanes)
    ordered = [participants[lane] for lane in participants.lanes if lane in lanes]
    return ordered if len(ordered) == 1 else [ordered[0], ordered[-1]]


def _end(trace: Trace, participants: _Participants) -> Iterator[str]:
    yield "    rect rgba(200, 40, 40, 0.15)"
    text = f"{trace.property}: {trace.message}"
    number = last_step(trace)
    if number >= 0:
        yield f"    Note over {participants[trace.steps[number].actor]}: {_text(text)}"
    else:
        yield participants.note(text)
    edge = missing_edge_text(trace)
    ends = [participants[trace.steps[number].actor] for number in trace.unordered]
    if edge and len(set(ends)) == 2:
        yield f"    {ends[0]}--x{ends[1]}: {_text(edge)}"
    elif edge:
        yield participants.note(edge)
    for each in trace.waiting:
        words = f"blocked in {each.operation}, but {each.reason}"
        yield f"    Note over {participants[each.process]}: {_text(words)}"
    yield "    end"


def _text(text: str) -> str:
    return UNSAFE.sub(lambda found: f"#{ord(found[0])};", printable(text))
