"""A run in the Trace Event Format, for ui.perfetto.dev and chrome://tracing.

Lanes are threads of one process, each step takes a microsecond of made-up time, puts are flow
arrows from issue to landing, and what breaks is an instant. A verdict without a run has one
instant that says it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from syncproof.models.verdict import Trace, TraceStep, Verdict
from syncproof.reports.page_data import last_step, missing_edge_text
from syncproof.reports.swimlanes import lanes_with_waiting
from syncproof.reports.terminal import scope, summary_line, trace_scope
from syncproof.reports.text import printable

Event = dict[str, Any]
PROCESS = 1
STEP, MIDDLE = 10, 4
"""Microseconds from one step to the next, and from its begin to where arrows meet it."""


def perfetto_of(thing: Verdict | Trace) -> str:
    """The JSON of a verdict or a run: equal input, equal bytes."""
    trace = thing if isinstance(thing, Trace) else thing.trace
    facts = trace_scope(thing) if isinstance(thing, Trace) else scope(thing)
    name = printable(thing.question.protocol)
    events = [_named("process_name", 0, name)]
    if trace is not None:
        events += _run(trace)
    elif isinstance(thing, Verdict):
        events += [_named("thread_name", 1, "verdict"), _instant(1, 0, summary_line(thing), {})]
    data = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"protocol": name, **_facts(facts)},
    }
    return json.dumps(data, indent=1) + "\n"


def _facts(facts: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Facts by name; those that share one are joined."""
    joined: dict[str, list[str]] = {}
    last = ""
    for name, value in facts:
        last = name or last
        joined.setdefault(last, []).append(printable(value))
    return {name: "; ".join(values) for name, values in joined.items()}


def _run(trace: Trace) -> Iterator[Event]:
    lanes = lanes_with_waiting(trace, trace.steps)
    threads = {lane: number for number, lane in enumerate(lanes, 1)}
    for lane, thread in threads.items():
        yield _named("thread_name", thread, printable(lane))
        yield _meta("thread_sort_index", thread, {"sort_index": thread})
    for number, step in enumerate(trace.steps):
        for lane in dict.fromkeys((step.actor, *step.joined)):
            yield _step(number, step, threads[lane])
        if step.put >= 0:
            flow = {"name": "put", "cat": "put", "id": number + 1, "pid": PROCESS}
            issuer = threads[trace.steps[step.put].actor]
            yield {"ph": "s", **flow, "tid": issuer, "ts": step.put * STEP + MIDDLE}
            landing = {"tid": threads[step.actor], "ts": number * STEP + MIDDLE}
            yield {"ph": "f", "bp": "e", **flow, **landing}
    yield from _end(trace, threads)


def _step(number: int, step: TraceStep, thread: int) -> Event:
    told: dict[str, Any] = {"step": number + 1}
    if step.line is not None:
        told["source"] = printable(f"{step.line.file}:{step.line.line} {step.line.text}")
        if step.line.at:
            told["kernel"] = printable(step.line.at)
    if step.changes:
        told["changes"] = [
            printable(f"{each.block}.{each.field}: {each.before} becomes {each.after}")
            for each in step.changes
        ]
    return {
        "ph": "X",
        "name": printable(step.text),
        "cat": printable(step.kind),
        "pid": PROCESS,
        "tid": thread,
        "ts": number * STEP,
        "dur": STEP - 2,
        "args": told,
    }


def _end(trace: Trace, threads: dict[str, int]) -> Iterator[Event]:
    """What is broken, on the step that broke it or behind the last, and who is blocked."""
    end = len(trace.steps) * STEP
    for each in trace.waiting:
        yield {
            "ph": "X",
            "name": printable(f"blocked in {each.operation}"),
            "cat": "blocked",
            "pid": PROCESS,
            "tid": threads[each.process],
            "ts": end,
            "dur": STEP - 2,
            "args": {"sees": printable(each.sees), "but": printable(each.reason)},
        }
    text = printable(f"{trace.property}: {trace.message}")
    told = {"missing": printable(missing_edge_text(trace))}
    number = last_step(trace)
    if number >= 0:
        yield _instant(threads[trace.steps[number].actor], number * STEP + MIDDLE, text, told)
    else:
        yield {**_instant(1, end, text, told), "s": "g"}


def _instant(thread: int, time: int, text: str, told: dict[str, Any]) -> Event:
    common = {"cat": "answer", "pid": PROCESS, "tid": thread, "ts": time, "args": told}
    return {"ph": "i", "s": "t", "name": text, **common}


def _named(kind: str, thread: int, name: str) -> Event:
    return _meta(kind, thread, {"name": name})


def _meta(kind: str, thread: int, told: dict[str, Any]) -> Event:
    return {"ph": "M", "name": kind, "pid": PROCESS, "tid": thread, "args": told}
