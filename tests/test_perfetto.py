"""The Perfetto trace against the rules of the Trace Event Format."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from syncproof.models.verdict import Verdict
from syncproof.reports.perfetto import perfetto_of
from tests import page_examples
from tests.page_examples import ALL, VIOLATIONS, long_run, trace_of

Event = dict[str, Any]
KEYS = {
    "M": {"name", "pid", "tid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
    "i": {"name", "pid", "tid", "ts", "s"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
}
"""The phases that we use, and what the format asks of each: Trace Event Format, "Event Types"."""
METADATA = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}


def faults(text: str) -> list[str]:
    """What is against the format in a trace; written from its description, not from our code."""
    data = json.loads(text)
    if not isinstance(data.get("traceEvents"), list):
        return ["no traceEvents"]
    if data.get("displayTimeUnit") not in ("ms", "ns"):
        return ["displayTimeUnit"]
    found = [fault for event in data["traceEvents"] for fault in event_faults(event)]
    if not found:
        found = slice_faults(data["traceEvents"]) + flow_faults(data["traceEvents"])
    return found


def event_faults(event: Event) -> list[str]:
    """Missing keys and wrong types of one event."""
    phase = event.get("ph")
    if phase not in KEYS:
        return [f"phase {phase!r}"]
    found = [f"{phase} without {key}" for key in KEYS[phase] - event.keys()]
    for key in ("pid", "tid", "ts", "dur"):
        if key in event and (type(event[key]) not in (int, float) or event[key] < 0):
            found.append(f"{key} {event[key]!r}")
    if phase == "M" and METADATA.get(event.get("name", "")) not in event.get("args", {}):
        found.append(f"metadata {event.get('name')!r}")
    if phase == "i" and event.get("s") not in ("g", "p", "t"):
        found.append(f"scope {event.get('s')!r}")
    if phase == "f" and event.get("bp") != "e":
        found.append("a flow that ends at the next slice, not in its own")
    if "args" in event and not isinstance(event["args"], dict):
        found.append("args")
    return found


def slice_faults(events: list[Event]) -> list[str]:
    """Slices of one thread may nest but not overlap; every thread has a name."""
    found = []
    named = {each["tid"] for each in events if each["name"] == "thread_name"}
    ends: dict[int, float] = {}
    for each in (event for event in events if event["ph"] == "X"):
        if each["ts"] < ends.get(each["tid"], 0):
            found.append(f"slices overlap at {each['ts']}")
        ends[each["tid"]] = each["ts"] + each["dur"]
    used = {each["tid"] for each in events if each["ph"] != "M"}
    return found + [f"thread {each} has no name" for each in sorted(used - named)]


def flow_faults(events: list[Event]) -> list[str]:
    """Each flow has one begin and one later end of its name, in a slice each."""
    found = []
    flows: dict[tuple[str, str, int], list[Event]] = {}
    for each in events:
        if each["ph"] in "sf":
            flows.setdefault((each["cat"], each["name"], each["id"]), []).append(each)
            if not any(
                other["ph"] == "X"
                and other["tid"] == each["tid"]
                and other["ts"] <= each["ts"] <= other["ts"] + other["dur"]
                for other in events
            ):
                found.append(f"flow {each['id']} is in no slice")
    for key, pair in flows.items():
        if [each["ph"] for each in pair] != ["s", "f"] or pair[0]["ts"] >= pair[1]["ts"]:
            found.append(f"flow {key} is no pair")
    return found


@pytest.mark.parametrize("example", ALL, ids=lambda each: each.__name__)
def test_every_answer_is_a_trace(example: Callable[[], Verdict]) -> None:
    """A proof, violations, an undecided run and an error of ours all keep to the format."""
    verdict = example()
    text = perfetto_of(verdict)
    assert faults(text) == []
    data = json.loads(text)
    assert data["otherData"]["protocol"] == verdict.question.protocol
    instants = [each["name"] for each in data["traceEvents"] if each["ph"] == "i"]
    if verdict.trace is None:
        assert len(instants) == 1
        answer = verdict.answer.value.replace("not decided", "undecided")
        assert instants[0].startswith(f"{verdict.question.protocol}: {answer} ")
    else:
        assert instants == [f"{verdict.trace.property}: {verdict.trace.message}"]


@pytest.mark.parametrize("example", VIOLATIONS, ids=lambda each: each.__name__)
def test_steps_and_puts_are_those_of_the_run(example: Callable[[], Verdict]) -> None:
    """Each step is a slice on the thread of each that takes it, each landing ends a flow."""
    trace = trace_of(example())
    events = json.loads(perfetto_of(trace))["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [
        (each["args"]["step"] - 1, names[each["tid"]], each["name"])
        for each in events
        if each["ph"] == "X" and each["cat"] != "blocked"
    ]
    assert sorted(slices) == sorted(
        (number, lane, step.text)
        for number, step in enumerate(trace.steps)
        for lane in {step.actor, *step.joined}
    )
    begins = {each["id"]: each for each in events if each["ph"] == "s"}
    ends = {each["id"]: each for each in events if each["ph"] == "f"}
    starts = {
        each["ts"]: each["args"]["step"] - 1
        for each in events
        if "dur" in each and "step" in each["args"]
    }

    def step_at(event: Event) -> int:
        return max((ts, step) for ts, step in starts.items() if ts <= event["ts"])[1]

    assert sorted((step_at(begins[key]), step_at(end)) for key, end in ends.items()) == sorted(
        (step.put, number) for number, step in enumerate(trace.steps) if step.put >= 0
    )
    blocked = [names[each["tid"]] for each in events if each.get("cat") == "blocked"]
    assert blocked == [each.process for each in trace.waiting]


def test_a_torn_block_has_an_arrow_for_each_atom() -> None:
    """Several landings of one put are several flows from the same issue, with ids of their own."""
    trace = trace_of(page_examples.torn())
    again = replace(trace.steps[5], text="another atom")
    more = replace(trace, steps=(*trace.steps[:6], again, *trace.steps[6:]))
    text = perfetto_of(more)
    assert faults(text) == []
    begins = [each for each in json.loads(text)["traceEvents"] if each["ph"] == "s"]
    assert len(begins) == 3 and len({each["id"] for each in begins}) == 3
    assert len({each["ts"] for each in begins}) == 2


def test_a_long_run_keeps_to_the_format() -> None:
    """Also 1,000 steps."""
    assert faults(perfetto_of(long_run(250))) == []


def _without(key: str, phase: str) -> Callable[[list[Event]], object]:
    return lambda events: next(e for e in events if e["ph"] == phase).pop(key)


def _drop(phase: str) -> Callable[[list[Event]], object]:
    return lambda events: events.remove(next(e for e in events if e["ph"] == phase))


def _set(phase: str, **values: object) -> Callable[[list[Event]], object]:
    return lambda events: next(e for e in events if e["ph"] == phase).update(values)


def _drop_names(events: list[Event]) -> None:
    events[:] = [each for each in events if each["name"] != "thread_name"]


@pytest.mark.parametrize(
    "spoil",
    [
        *[_without(key, phase) for phase, keys in KEYS.items() for key in sorted(keys)],
        _drop("s"),
        _drop("f"),
        _set("X", ph="Y"),
        _set("X", ts=-1),
        _set("X", ts="0"),
        _set("X", dur=15),
        _set("f", ts=0),
        _set("f", id=999),
        _set("f", bp="x"),
        _set("s", ts=9),
        _set("i", s="x"),
        _set("M", name="nothing"),
        _drop_names,
    ],
)
def test_the_rules_notice(spoil: Callable[[list[Event]], object]) -> None:
    """Each kind of breach is seen by the check above."""
    data = json.loads(perfetto_of(page_examples.torn()))
    assert faults(json.dumps(data)) == []
    spoil(data["traceEvents"])
    assert faults(json.dumps(data))
