"""A schedule drawn over time: SVG, and the trace format of Perfetto and Chrome.

The edges of the findings are drawn in: a dashed arrow where an order is missing or part of a cycle,
and a frame about each task that waits for ever.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from syncproof.models.taskflow.findings import Finding
from syncproof.models.taskflow.schedule import Schedule
from syncproof.reports.text import printable

ROW, LEFT, TOP, WIDTH, LEAST = 18, 150, 40, 1200, 0.5
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#9c755f", "#bab0ac")
MOST_SENDERS = 8
LARGEST_SVG = 20_000
"""Tasks that an SVG shows; a browser draws no more. Perfetto takes all."""


@dataclass(frozen=True)
class Bar:
    """A task on its queue, in microseconds; ``stuck`` ones have not begun."""

    task: int
    start: float
    end: float
    stuck: bool


@dataclass(frozen=True)
class Gantt:
    """What is drawn: the tasks of one launch, and the findings about them.

    ``senders`` is for each rank how many ranks send to it, as (microsecond from which on, ranks).
    """

    schedule: Schedule
    bars: Mapping[int, Bar]
    findings: Sequence[Finding] = ()
    senders: Mapping[int, Sequence[tuple[float, int]]] = field(default_factory=dict)


def bars_of(schedule: Schedule, start: Sequence[float], end: Sequence[float]) -> dict[int, Bar]:
    """The bars of a run; what never begins is drawn behind all that does, in queue order."""
    last = max((e for e in end if e >= 0), default=0.0)
    found: dict[int, Bar] = {}
    behind: dict[str, float] = {}
    step = max(last / 20, 1.0)
    for number, task in enumerate(schedule.tasks):
        if end[number] >= 0:
            found[number] = Bar(number, start[number], end[number], False)
        else:
            at = behind.get(task.queue, last + step)
            found[number] = Bar(number, at, at + step, True)
            behind[task.queue] = at + step * 1.2
    return found


def to_svg(gantt: Gantt) -> str:
    """The chart as an SVG document; each bar has its task's name as a tooltip."""
    schedule = gantt.schedule
    rows = {name: number for number, name in enumerate(schedule.queues)}
    whole = max((bar.end for bar in gantt.bars.values()), default=1.0) or 1.0
    strips = [rank for rank, levels in gantt.senders.items() if levels]
    height = TOP + ROW * (len(rows) + len(strips)) + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#d62728"/></marker></defs>',
        f'<text x="4" y="16" font-size="14">{_text(schedule.name)}</text>',
    ]
    for name, row in rows.items():
        y = TOP + row * ROW
        lines.append(f'<text x="4" y="{y + 12}">{_text(name)}</text>')
        lines.append(
            f'<line x1="{LEFT}" y1="{y + ROW}" x2="{LEFT + WIDTH}" y2="{y + ROW}" stroke="#ddd"/>'
        )
    scale = WIDTH / whole
    lines += _svg_bars(gantt, rows, scale)
    lines += _svg_edges(gantt, rows, scale)
    for row, rank in enumerate(strips, len(rows)):
        lines += _svg_senders(gantt.senders[rank], rank, TOP + row * ROW, scale)
    y = TOP + ROW * (len(rows) + len(strips)) + 16
    lines.append(f'<text x="{LEFT}" y="{y}">0</text>')
    lines.append(f'<text x="{LEFT + WIDTH}" y="{y}" text-anchor="end">{whole:.1f} us</text></svg>')
    return "\n".join(lines) + "\n"


def _svg_bars(gantt: Gantt, rows: Mapping[str, int], scale: float) -> list[str]:
    operators = list(dict.fromkeys(task.operator for task in gantt.schedule.tasks))
    waiting = {task for finding in gantt.findings for task in finding.waits}
    lines = []
    for number, bar in gantt.bars.items():
        task = gantt.schedule.tasks[number]
        x, y = LEFT + bar.start * scale, TOP + rows[task.queue] * ROW + 2
        width = max((bar.end - bar.start) * scale, LEAST)
        colour = COLOURS[operators.index(task.operator) % len(COLOURS)]
        frame = ' stroke="#d62728" stroke-width="2"' if number in waiting else ""
        faint = ' fill-opacity="0.3" stroke-dasharray="3 2"' if bar.stuck else ""
        when = "never begins" if bar.stuck else f"{bar.start:.2f} to {bar.end:.2f} us"
        lines.append(
            f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 4}" fill="{colour}"'
            f"{frame}{faint}><title>{_text(task.name)}: {when}</title></rect>"
        )
    return lines


def _svg_edges(gantt: Gantt, rows: Mapping[str, int], scale: float) -> list[str]:
    lines = []
    for finding in gantt.findings:
        for one, two in finding.edges:
            first, second = gantt.bars[one], gantt.bars[two]
            y1 = TOP + rows[gantt.schedule.tasks[one].queue] * ROW + ROW / 2
            y2 = TOP + rows[gantt.schedule.tasks[two].queue] * ROW + ROW / 2
            lines.append(
                f'<line x1="{LEFT + first.end * scale:.2f}" y1="{y1}" '
                f'x2="{LEFT + second.start * scale:.2f}" y2="{y2}" stroke="#d62728" '
                f'stroke-width="1.5" stroke-dasharray="5 3" marker-end="url(#tip)">'
                f"<title>{_text(finding.message)}</title></line>"
            )
    return lines


def _svg_senders(
    levels: Sequence[tuple[float, int]], rank: int, top: int, scale: float
) -> list[str]:
    """How many ranks send to one, over time: a box as high as there are senders, of 8 at most."""
    lines = [f'<text x="4" y="{top + 12}">senders to rank {rank}</text>']
    for (start, ranks), (end, _) in pairwise(levels):
        if ranks:
            height = (ROW - 4) * min(ranks, MOST_SENDERS) / MOST_SENDERS
            lines.append(
                f'<rect x="{LEFT + start * scale:.2f}" y="{top + ROW - 2 - height:.2f}" '
                f'width="{(end - start) * scale:.2f}" height="{height:.2f}" fill="#d62728">'
                f"<title>{ranks} from {start:.2f} to {end:.2f} us</title></rect>"
            )
    return lines


def _text(text: str) -> str:
    return escape(printable(text))


def to_perfetto(gantt: Gantt) -> str:
    """The chart in the Trace Event Format: ranks are processes, queues are threads.

    Findings are flow arrows, and instants on the tasks that wait for ever. How many ranks send to a
    rank is a counter of that rank.
    """
    schedule = gantt.schedule
    threads = {name: number for number, name in enumerate(schedule.queues, 1)}
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "args": {"name": f"rank {rank}"}}
        for rank in range(schedule.ranks)
    ]
    for name, queue in schedule.queues.items():
        events.append(
            {
                "ph": "M",
                "name": "thread_name",
                "pid": queue.rank,
                "tid": threads[name],
                "args": {"name": name},
            }
        )

    def on(task: int) -> dict[str, object]:
        queue = schedule.tasks[task].queue
        return {"pid": schedule.queues[queue].rank, "tid": threads[queue]}

    for number, bar in gantt.bars.items():
        task = schedule.tasks[number]
        category = "stuck" if bar.stuck else task.operator or "task"
        events.append(
            {
                "ph": "X",
                "name": task.name,
                "cat": category,
                "ts": bar.start,
                "dur": bar.end - bar.start,
                **on(number),
            }
        )
    arrow = 0
    for finding in gantt.findings:
        for one, two in finding.edges:
            arrow += 1
            common = {"name": finding.property, "cat": "finding", "id": arrow}
            events.append({"ph": "s", "ts": gantt.bars[one].end, **common, **on(one)})
            events.append({"ph": "f", "bp": "e", "ts": gantt.bars[two].start, **common, **on(two)})
        for number in finding.waits:
            events.append(
                {
                    "ph": "i",
                    "s": "t",
                    "name": finding.message,
                    "cat": "finding",
                    "ts": gantt.bars[number].start,
                    **on(number),
                }
            )
    for rank, levels in gantt.senders.items():
        for time, ranks in levels:
            counted = {"ph": "C", "name": "senders", "pid": rank, "ts": time}
            events.append({**counted, "args": {"ranks": ranks}})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}) + "\n"
