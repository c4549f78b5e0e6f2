"""A run as the plain data that the page's script draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from syncproof.models.verdict import Line, MemoryCell, Trace, TraceStep
from syncproof.reports.happens_before import Why, graph_of
from syncproof.reports.swimlanes import AT_LAST_STEP, lanes_with_waiting
from syncproof.reports.text import printable

Numbers = dict[int, int]
"""The place of a memory cell in the list, by the number that steps call it."""


def run_data(trace: Trace) -> dict[str, Any]:
    """Everything about a run that is drawn: lanes, steps, memory, graph and failure."""
    lanes = lanes_with_waiting(trace, trace.steps)
    cells, steps = with_cells(trace)
    numbers = {cell.number: place for place, cell in enumerate(cells)}
    lines: dict[Line, int] = {}
    told = [_step(step, lanes, numbers, lines) for step in steps]
    return {
        "lanes": [printable(lane) for lane in lanes],
        "steps": told,
        "shown": list(trace.shown),
        "lines": [_line(each) for each in lines],
        "cells": _cells(cells),
        "graph": _graph(trace, lanes),
        "failure": {
            "property": printable(trace.property),
            "message": printable(trace.message),
            "edge": printable(missing_edge_text(trace)),
            "step": last_step(trace),
            "blocked": [lanes.index(each.process) for each in trace.waiting],
            "unordered": list(trace.unordered),
        },
    }


def missing_edge_text(trace: Trace) -> str:
    """What nothing orders, unless the message says it already."""
    return "" if trace.missing_edge == trace.message else trace.missing_edge


def last_step(trace: Trace) -> int:
    """The step that breaks the property, or -1 where the state that the run ends in does."""
    return len(trace.steps) - 1 if trace.property in AT_LAST_STEP else -1


def with_cells(trace: Trace) -> tuple[tuple[MemoryCell, ...], tuple[TraceStep, ...]]:
    """The memory of a run and its steps; traces that do not name their cells are given numbers."""
    if trace.memory or not any(step.changes for step in trace.steps):
        return trace.memory, trace.steps
    found: dict[tuple[str, str, int], MemoryCell] = {}
    steps = []
    for step in trace.steps:
        writes = []
        for key, before in _named(step):
            cell = found.setdefault(key, MemoryCell(len(found), key[0], key[1], 0, before))
            writes.append(cell.number)
        steps.append(replace(step, writes=tuple(writes)))
    return tuple(found.values()), tuple(steps)


def _named(step: TraceStep) -> Iterator[tuple[tuple[str, str, int], str]]:
    """The changes of a step by block, field and how many of that name came before."""
    times: dict[tuple[str, str], int] = {}
    for change in step.changes:
        name = (change.block, change.field)
        times[name] = times.get(name, -1) + 1
        yield (*name, times[name]), change.before


def _step(
    step: TraceStep, lanes: Sequence[str], numbers: Numbers, lines: dict[Line, int]
) -> dict[str, Any]:
    landed = step.what[:-1] if step.kind == "land" else ()
    return {
        "lane": lanes.index(step.actor),
        "text": printable(step.text),
        "line": -1 if step.line is None else lines.setdefault(step.line, len(lines)),
        "put": step.put,
        "issues": step.issues,
        "joined": [lanes.index(each) for each in step.joined if each in lanes],
        "after": list(step.after),
        "reads": [numbers[cell] for cell in step.reads if cell in numbers],
        "lands": [numbers[cell] for cell in landed if cell in numbers],
        "writes": [
            [numbers[cell], printable(change.after)]
            for cell, change in zip(step.writes, step.changes, strict=False)
            if cell in numbers
        ],
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "file": printable(line.file),
        "line": line.line,
        "text": printable(line.text),
        "at": printable(line.at),
    }


def _cells(cells: Sequence[MemoryCell]) -> list[dict[str, Any]]:
    """The cells; the byte is told where a block has the field in several atoms."""
    bytes_of: dict[tuple[str, str], set[int]] = {}
    for cell in cells:
        bytes_of.setdefault((cell.block, cell.field), set()).add(cell.byte)
    return [
        {
            "block": printable(cell.block),
            "field": printable(cell.field),
            "byte": cell.byte if len(bytes_of[cell.block, cell.field]) > 1 else -1,
            "initial": printable(cell.initial),
        }
        for cell in cells
    ]


def _graph(trace: Trace, lanes: Sequence[str]) -> Mapping[str, Any]:
    graph = graph_of(trace)
    return {
        "nodes": [
            [each.step, lanes.index(each.lane), each.layer, each.column] for each in graph.nodes
        ],
        "edges": [[each.first, each.second, each.why.name.lower()] for each in graph.edges],
        "words": {why.name.lower(): why.value for why in Why},
        "widths": [graph.widths.get(lane, 0) for lane in lanes],
        "depth": graph.depth,
    }
