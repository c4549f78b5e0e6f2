"""A run as swim-lanes: a lane for each process that acts, one for the fabric, a step a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from syncproof.models.verdict import Change, Line, Trace, TraceStep
from syncproof.reports.text import printable, source_text

FABRIC = "fabric"
LANE_WIDTH = 3
NUMBER_WIDTH = 5
LEAST_TEXT_WIDTH = 44
AT_LAST_STEP = ("happens-before", "checks")
"""Properties that a step breaks; the others are broken by the state that a run ends in."""


@dataclass(frozen=True)
class Marks:
    """The characters that a drawing is made of."""

    idle: str
    step: str
    landing: str
    other: str
    failure: str
    across: str
    crossing: str
    arrow: str
    becomes: str


FINE = Marks("│", "●", "◆", "◇", "✗", "─", "┼", "▷", "→")
ASCII = Marks("|", "o", "#", "+", "X", "-", "|", ">", "->")


def draw(
    console: Console, trace: Trace, numbers: Sequence[int], *, verbose: bool = False
) -> Iterator[Text]:
    """The lines of the drawing of the steps ``numbers`` of ``trace``.

    Where the lanes leave too little room for words, each step names its lane instead.
    """
    marks = FINE if console.encoding.lower().startswith("utf") else ASCII
    steps = [(number, trace.steps[number]) for number in numbers]
    issuing = {each.put for each in trace.steps if each.put >= 0}
    names = lanes_of(trace, [step for _, step in steps], bool(issuing))
    room = console.width - NUMBER_WIDTH - LANE_WIDTH * len(names)
    lanes: Lanes | Names = Lanes(names, marks)
    if room < LEAST_TEXT_WIDTH:
        lanes = Names(names, marks)
        room = max(console.width - lanes.width, LEAST_TEXT_WIDTH // 2)
    drawing = _Drawing(console, lanes, marks, room, verbose)
    yield from lanes.heading()
    for number, step in steps:
        yield from drawing.step(number, step, number in issuing)
    yield from drawing.failure(trace)


def lanes_of(trace: Trace, steps: Sequence[TraceStep], has_puts: bool) -> list[str]:
    """The processes that act in ``steps``, in their usual order, and the fabric last."""
    acting = {step.actor for step in steps} | {name for step in steps for name in step.joined}
    processes = [name for name in trace.processes if name in acting]
    others = sorted(acting - set(processes) - {FABRIC})
    return [*processes, *others, *([FABRIC] if has_puts or FABRIC in acting else [])]


def lanes_with_waiting(trace: Trace, steps: Sequence[TraceStep]) -> list[str]:
    """The lanes of ``steps`` and of the processes that are blocked at the end; the fabric last."""
    acting = {*lanes_of(trace, steps, any(step.issues or step.put >= 0 for step in steps))}
    names = acting | {each.process for each in trace.waiting}
    processes = [name for name in trace.processes if name in names]
    others = sorted(names - set(processes) - {FABRIC})
    return [*processes, *others, *([FABRIC] if FABRIC in names else [])]


class Lanes:
    """Lanes drawn as columns; the heading is a staircase, so that names may be long."""

    def __init__(self, names: Sequence[str], marks: Marks) -> None:
        self.names, self.marks = names, marks

    def heading(self) -> Iterator[Text]:
        for position, name in enumerate(self.names):
            line = Text(" " * NUMBER_WIDTH + self._idle(position), style="dim")
            yield line.append(printable(name), style="not dim bold")

    def _idle(self, count: int) -> str:
        return self.marks.idle.ljust(LANE_WIDTH) * count

    def blank(self) -> Text:
        """What stands before a line that goes on with the step above."""
        return Text(" " * NUMBER_WIDTH + self._idle(len(self.names)), style="dim")

    def row(self, number: str, step: TraceStep | None, mark: str, style: str, puts: bool) -> Text:
        """What stands before the first line of a step."""
        members = {step.actor, *step.joined} if step else set()
        places = [i for i, name in enumerate(self.names) if name in members]
        last = len(self.names) - 1 if puts else max(places, default=0)
        line = Text(number.rjust(NUMBER_WIDTH - 2) + "  ", style="dim")
        for place in range(len(self.names)):
            inside = bool(places) and places[0] <= place < last
            fill = self.marks.across if inside else " "
            if place in places:
                line.append(mark, style=f"not dim {style}")
            elif puts and place == last:
                line.append(self.marks.arrow, style="not dim cyan")
            else:
                crosses = bool(places) and places[0] < place < last
                line.append(self.marks.crossing if crosses else self.marks.idle)
            line.append(fill * (LANE_WIDTH - 1))
        return line


class Names:
    """Lanes given by name before each step, for runs with more of them than fit side by side."""

    def __init__(self, names: Sequence[str], marks: Marks) -> None:
        self.names, self.marks = names, marks
        self.widest = max((len(printable(name)) for name in names), default=0)
        self.width = NUMBER_WIDTH + self.widest + 4

    def heading(self) -> Iterator[Text]:
        yield from ()

    def blank(self) -> Text:
        return Text(" " * self.width)

    def row(self, number: str, step: TraceStep | None, mark: str, style: str, puts: bool) -> Text:
        line = Text(number.rjust(NUMBER_WIDTH - 2) + "  ", style="dim")
        name = printable(step.actor) if step else ""
        line.append(name.ljust(self.widest), style="not dim bold")
        return line.append(f"  {mark} ", style=f"not dim {style}")


@dataclass(frozen=True)
class _Drawing:
    console: Console
    lanes: Lanes | Names
    marks: Marks
    room: int
    verbose: bool

    def step(self, number: int, step: TraceStep, puts: bool) -> Iterator[Text]:
        """A step: what it does, its source line, and what it changed."""
        landing = step.kind == "land"
        mark = self.marks.landing if landing else self.marks.other
        style = "cyan"
        if step.actor != FABRIC:
            mark, style = self.marks.step, "bold"
        words = step.text + (self._origin(step) if landing else "")
        before = self.lanes.row(str(number + 1), step, mark, style, puts)
        yield from self._below(before, Text(printable(words)))
        if step.line is not None:
            yield from self._source(step.line)
        for change in step.changes if self.verbose else ():
            yield from self._more(Text(printable(self._change(change)), style="dim"))

    def _origin(self, step: TraceStep) -> str:
        """Where a landing comes from, and what it overwrites."""
        put = f"put of step {step.put + 1}" if step.put >= 0 else ""
        old = ", ".join(dict.fromkeys(each.before for each in step.changes))
        was = f"was {old}" if old else "no change"
        return f" ({', '.join(each for each in (put, was) if each)})"

    def _change(self, change: Change) -> str:
        return f"{change.block}.{change.field}: {change.before} {self.marks.becomes} {change.after}"

    def _source(self, line: Line) -> Iterator[Text]:
        found = Text(printable(source_text(line)), style="dim")
        found.truncate(self.room - 2, overflow="ellipsis" if self.marks is FINE else "crop")
        yield from self._more(found)
        if line.at:
            yield from self._more(Text(printable(f"kernel: {line.at}"), style="dim"))

    def failure(self, trace: Trace) -> Iterator[Text]:
        """What is wrong, in the lane of the step that did it if one step did."""
        last = trace.steps[-1] if trace.steps and trace.property in AT_LAST_STEP else None
        before = self.lanes.row("", last, self.marks.failure, "bold red", False)
        if last is None:
            before = self.lanes.blank()
        text = f"{trace.property}: {trace.message}"
        yield from self._below(before, Text(printable(text), style="bold red"))
        if trace.missing_edge and trace.missing_edge != trace.message:
            yield from self._more(Text(printable(trace.missing_edge), style="red"))

    def _more(self, text: Text) -> Iterator[Text]:
        for each in self._wrapped(text, max(self.room - 2, 1)):
            yield self.lanes.blank().append("  ").append_text(_trimmed(each))

    def _below(self, before: Text, text: Text) -> Iterator[Text]:
        for each in self._wrapped(text, max(self.room, 1)) or [Text()]:
            yield before.append_text(_trimmed(each))
            before = self.lanes.blank()

    def _wrapped(self, text: Text, width: int) -> Sequence[Text]:
        """The lines of a text without line breaks: most fit into one."""
        return [text] if text.cell_len <= width else list(text.wrap(self.console, width))


def _trimmed(text: Text) -> Text:
    text.rstrip()
    return text
