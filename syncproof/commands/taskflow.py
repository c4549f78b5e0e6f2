"""``check-protocol taskflow``: prove a static schedule of tile tasks, or name its faults."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from syncproof.checkers.schedule.check import Checking, check
from syncproof.checkers.schedule.cost import contention, contention_over_time, gains, sending
from syncproof.checkers.schedule.execution import Costs, execute
from syncproof.checkers.schedule.program import unroll
from syncproof.engines import engines_for
from syncproof.models.errors import UserError
from syncproof.models.taskflow.collector import collector_paused
from syncproof.models.taskflow.findings import HANG, Cost
from syncproof.models.taskflow.format import json_schema
from syncproof.models.taskflow.moe import BACKWARD, FORWARD, Layer
from syncproof.models.taskflow.reading import read_schedule
from syncproof.models.taskflow.schedule import Schedule
from syncproof.models.taskflow.scheduling import generate
from syncproof.models.taskflow.writing import to_text
from syncproof.models.verdict import EXIT_CODES, SCHEMA, Answer
from syncproof.reports.columns import print_columns
from syncproof.reports.files import STANDARD_OUTPUT, check_writable, to_json, write_text
from syncproof.reports.gantt import LARGEST_SVG, Gantt, bars_of, to_perfetto, to_svg
from syncproof.reports.terminal import console_on, print_answers
from syncproof.reports.text import many, printable

MOST_STATES, MOST_SECONDS = 500_000, 300.0
"""After which an engine that looks at every interleaving gives up."""

MOST_GAINS = 40
"""Implied events whose gains are simulated one by one."""


@dataclass(frozen=True)
class Asked:
    """One command line: a file, or the layer that a schedule is generated for."""

    file: str = ""
    layer: Layer = field(default_factory=Layer)
    direction: str = "both"
    launches: int = 1
    costs: Costs = field(default_factory=Costs)
    engine: str = ""
    fabric: str = "cm384"
    json: str = ""
    svg: str = ""
    perfetto: str = ""
    write: str = ""
    quiet: bool = False


def print_schema() -> int:
    """Print the JSON Schema of a schedule file."""
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
    return 0


def run(asked: Asked) -> int:
    """Check a schedule, or the generated ones; gives the exit code."""
    with collector_paused():
        return _run(asked)


def _run(asked: Asked) -> int:
    files = {
        name: path
        for name in ("json", "svg", "perfetto", "write")
        if (path := getattr(asked, name))
    }
    if len(set(files.values())) < len(files):
        raise UserError("two outputs are one file", where="--json", expected="a file for each")
    if asked.engine:
        engines_for(asked.engine)  # a name that is none is said before anything is done
    schedules = schedules_of(asked)
    if len(schedules) > 1 and set(files) - {"json"}:
        raise UserError(
            f"two schedules for --{next(iter(set(files) - {'json'}))}",
            where="--direction",
            expected=f"{FORWARD} or {BACKWARD}",
        )
    for name, path in files.items():
        check_writable(path, f"--{name}")
    console = console_on(sys.stderr if STANDARD_OUTPUT in files.values() else sys.stdout)
    answers, data = [], []
    for schedule in schedules:
        found = check(schedule, asked.costs)
        answer = found.checked.answer
        report(console, schedule, found, asked)
        explored = _explore(console, schedule, asked) if asked.engine else None
        hangs = found.checked.of(HANG) is Answer.VIOLATED
        answers.append(combined(answer, explored, hangs=hangs))
        if asked.json:
            data.append(found.checked.as_data())
        _write(schedule, found, asked)
    if asked.json:
        whole = (
            data[0]
            if len(data) == 1
            else {
                "schema": SCHEMA,
                "kind": "taskflows",
                "schedules": data,
            }
        )
        write_text(asked.json, to_json(whole))
    return max((EXIT_CODES[each] for each in answers), key=(0, 3, 1, 4).index)


def schedules_of(asked: Asked) -> list[Schedule]:
    """The schedule in the file, or those of the passes that are asked for."""
    if asked.file:
        return [read_schedule(asked.file)]
    passes = (FORWARD, BACKWARD) if asked.direction == "both" else (asked.direction,)
    return [generate(replace(asked.layer, direction=each), asked.launches) for each in passes]


def combined(graph: Answer, explored: Answer | None, *, hangs: bool) -> Answer:
    """The answer of both, which may not contradict each other.

    What the graph refutes need not go wrong in any run on the chosen fabric: a threshold that
    either of two tasks meets, say. A hang shows in every run.
    """
    if explored in (None, Answer.UNDECIDED):
        return graph
    if graph is Answer.UNDECIDED:
        return explored or graph
    if graph is Answer.VIOLATED and explored is Answer.PROVED and not hangs:
        return graph
    return graph if graph is explored else Answer.BROKEN


def report(console: Console, schedule: Schedule, found: Checking, asked: Asked) -> None:
    """Print the answer for each property, the faults, and what the schedule costs."""
    checked = found.checked
    if not asked.quiet:
        sizes = ", ".join(
            (
                many(schedule.ranks, "rank"),
                many(len(schedule.queues), "queue"),
                many(checked.tasks, "task"),
                many(len(schedule.events), "event"),
            )
        )
        source = f", {asked.file}" if asked.file else ", generated"
        console.print(Text(f"{printable(schedule.name)}{source}: {sizes}", style="bold"))
        print_answers(console, checked.properties)
        for finding in checked.findings:
            console.print(Text(f"  - {printable(finding.message)}"), soft_wrap=True)
        _report_notes(console, schedule, found, asked)
    words = {Answer.PROVED: "proved", Answer.VIOLATED: "violated"}
    console.print(
        Text(
            f"taskflow {printable(schedule.name)}: {words.get(checked.answer, 'not decided')} "
            f"tasks={checked.tasks} dependencies={checked.dependencies} "
            f"launches={schedule.launches.count}"
        ),
        soft_wrap=True,
    )


def _report_notes(console: Console, schedule: Schedule, found: Checking, asked: Asked) -> None:
    checked = found.checked
    rows: list[tuple[str, str]] = []
    if checked.implied:
        some = ", ".join(f"{task} for {event}" for task, event in checked.implied[:3])
        more = " ..." if len(checked.implied) > 3 else ""
        rows.append(("implied", f"{many(len(checked.implied), 'wait')} can go: {some}{more}"))
        for name, gain in (
            gains(schedule, checked.implied_events[:MOST_GAINS], asked.costs).items()
            if len(schedule.tasks) <= 2000
            else ()
        ):
            rows.append(("", f"without {name}: {gain:g} us less"))
    if checked.persists:
        kept = ", ".join(f"{n}={v}" for n, v in list(checked.persists.items())[:5])
        rows.append(("persists", f"{kept}: zero them, or count by epochs, before the next launch"))
    if checked.cost:
        direction = schedule.name.rpartition(" ")[2]
        rows += cost_rows(checked.cost, schedule, found, naive_contention(asked, direction))
    print_columns(console, [(name, printable(text)) for name, text in rows])


def cost_rows(
    cost: Cost, schedule: Schedule, found: Checking, naive: Mapping[str, int]
) -> list[tuple[str, str]]:
    """What a schedule costs, in words; all of it simulated with the tasks' own durations.

    ``naive`` are the peaks of contention without rank-aware order, by operator.
    """
    if not cost.makespan:
        return []
    rows = [
        (
            "makespan",
            f"{cost.makespan:g} us simulated, {cost.makespan / cost.bound:.2f} times the "
            f"larger of critical path {cost.critical_path:g} and busiest queue "
            f"{cost.busiest_queue:g}",
        ),
        (
            "operators",
            f"one by one with barriers, on the same cores: {cost.by_operator:g} us, "
            f"{cost.by_operator / cost.makespan:.2f} times as long (ours, by assumed durations)",
        ),
    ]
    if cost.without_implied != cost.makespan:
        rows.append(("", f"without the implied waits: {cost.without_implied:g} us"))
    idle = sorted(cost.idle.values())
    rows.append(
        ("idle", f"{idle[0]:g} to {idle[-1]:g} us a queue, {sum(idle) / len(idle):.1f} on average")
    )
    for operator in sorted(sending(schedule)):
        peak = max(contention(found.program, found.execution, [operator]).values())
        text = f"{operator or 'transfers'}: {many(peak, 'rank')} at most send to one at once"
        rows.append(("contention", text + (f", {naive[operator]} in naive order" if naive else "")))
    return rows


def naive_contention(asked: Asked, direction: str) -> dict[str, int]:
    """The peaks of the same layer when all ranks send to rank 0 first; none for a file's."""
    if asked.file or not asked.layer.reorder:
        return {}
    program = unroll(generate(replace(asked.layer, direction=direction, reorder=False)))
    run = execute(program, asked.costs)
    return {
        operator: max(contention(program, run, [operator]).values())
        for operator in sending(program.schedule)
    }


def _explore(console: Console, schedule: Schedule, asked: Asked) -> Answer:
    """Ask the engines that look at every interleaving, on the chosen fabric."""
    from syncproof.checkers.explicit.check import Interrupted, question_of
    from syncproof.checkers.explicit.search import Budget
    from syncproof.engines import combined as agreed
    from syncproof.models.bounds import Bounds
    from syncproof.models.instance import Instance
    from syncproof.models.profiles import load_profile
    from syncproof.protocols.taskflow import protocol_of

    bounds = Bounds(ranks=schedule.ranks, rounds=1)
    instance = Instance(protocol_of(schedule), bounds, load_profile(asked.fabric), {})
    question = question_of(instance, schedule.name)
    verdicts = []
    try:
        for engine in engines_for(asked.engine):
            budget = Budget(states=MOST_STATES, seconds=MOST_SECONDS)
            verdicts.append(engine.check(instance, question, budget, lambda *_: None))
            found = verdicts[-1]
            by = f"{found.engine}: {many(found.states, 'state')}" if found.states else found.engine
            console.print(Text(f"every interleaving on {asked.fabric}, by {by}"))
            print_answers(console, found.properties)
    except Interrupted as error:
        verdicts.append(error.verdict)
        print("interrupted: this covers less than all runs", file=sys.stderr)
    given = {each.answer for each in agreed(verdicts)}
    order = (Answer.BROKEN, Answer.VIOLATED, Answer.UNDECIDED, Answer.PROVED)
    return min(given, key=order.index)


def _write(schedule: Schedule, found: Checking, asked: Asked) -> None:
    if asked.write:
        write_text(asked.write, to_text(schedule))
    if not (asked.svg or asked.perfetto):
        return
    run = found.execution
    bars = bars_of(schedule, run.start, run.end)
    last = max((bar.end for bar in bars.values()), default=0.0)
    senders = {
        rank: [(time, ranks) for time, ranks in levels if time <= last]
        for rank, levels in contention_over_time(found.program, run).items()
    }
    gantt = Gantt(schedule, bars, found.checked.findings, senders)
    if asked.svg:
        if len(schedule.tasks) > LARGEST_SVG:
            raise UserError(
                f"{len(schedule.tasks):,} tasks",
                where="--svg",
                expected=f"{LARGEST_SVG:,} at most; --perfetto takes all",
            )
        write_text(asked.svg, to_svg(gantt))
    if asked.perfetto:
        write_text(asked.perfetto, to_perfetto(gantt))


def asked_of(options: dict[str, Any]) -> Asked:
    """The options of the command line as one question."""
    names = ("ranks", "experts", "tiles", "columns", "aic", "aiv", "links", "routing", "reorder")
    layer = {name: options.pop(name) for name in names}
    layer["experts"] = layer["experts"] or 2 * layer["ranks"]
    # As many as keep step: all transfers of a rank go to one other rank at a time.
    to_one_rank = max(1, layer["experts"] // max(1, layer["ranks"])) * layer["tiles"]
    layer["links"] = layer["links"] or max(1, min(layer["aiv"] // 3, to_one_rank))
    explore = options.pop("explore")
    options["engine"] = options["engine"] or ("auto" if explore else "")
    costs = Costs(*(options.pop(f"{name}_cost") for name in ("wait", "trigger", "barrier")))
    return Asked(layer=Layer(**layer), costs=costs, **options)
