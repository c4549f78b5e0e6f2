"""Obligations: questions whose answers are known, and how what was found stands to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from syncproof.models.transitions import PROPERTIES
from syncproof.models.verdict import SCHEMA, Answer, Line, Trace, Verdict

ALL = ""
"""The property that stands for the verdict as a whole in an expectation."""


UNASKED = "it was not asked for"


class Standing(Enum):
    """How a verdict stands to what was expected."""

    HELD = "as expected"
    UNEXPECTED = "unexpected"
    UNDECIDED = "not decided"
    REFUSED = "bad input"
    BROKEN = "error"


@dataclass(frozen=True)
class Kernel:
    """A kernel file that an obligation models, by the SHA-256 of its content."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Obligation:
    """A question and the answer that it must have.

    ``expected`` maps a property (or `ALL`) to an answer; ``at`` is a piece of the source line at
    which a violation has to show; ``line`` and ``column`` are its place in the gate file.
    """

    name: str
    protocol: str
    command: str
    expected: Mapping[str, str]
    at: str = ""
    kernels: tuple[Kernel, ...] = ()
    line: int = 0
    column: int = 0

    @property
    def expectation(self) -> str:
        """What is expected, in words."""
        said = [f"{name} {answer}".strip() for name, answer in self.expected.items()]
        return ", ".join(said) + (f" at {self.at}" if self.at else "")


@dataclass(frozen=True)
class Result:
    """What became of an obligation.

    ``seconds`` of processor time and ``cached`` are for the eye only: files do not hold them.
    """

    obligation: Obligation
    standing: Standing
    message: str
    verdict: Verdict | None = None
    seconds: float = 0.0
    cached: bool = False

    @property
    def line(self) -> Line | None:
        """The protocol's line at which an unexpected violation shows."""
        if self.standing is Standing.HELD or self.verdict is None or self.verdict.trace is None:
            return None
        return next(iter(failing_lines(self.verdict.trace)), None)

    @property
    def property(self) -> str:
        """The property whose violation was not expected, or nothing."""
        if self.standing is not Standing.UNEXPECTED or self.verdict is None:
            return ""
        return next(iter(_violated(self.obligation, self.verdict)), "")


@dataclass(frozen=True)
class Remark:
    """Something else that the gate has to say of an obligation.

    ``kind`` is "new violation", "lost proof", "growth", "gone" (all against the baseline) or
    "kernel".
    """

    kind: str
    name: str
    text: str
    fails: bool


@dataclass(frozen=True)
class GateReport:
    """All results, in the order of the gate file, and the remarks."""

    file: str
    results: tuple[Result, ...]
    remarks: tuple[Remark, ...] = field(default=())

    def count(self, standing: Standing) -> int:
        """How many results stand so."""
        return sum(each.standing is standing for each in self.results)

    @property
    def failed(self) -> tuple[Result, ...]:
        """The results that are not as expected."""
        return tuple(each for each in self.results if each.standing is not Standing.HELD)

    @property
    def code(self) -> int:
        """The exit code: 4 error, 2 bad input, 1 unexpected, 3 not decided, 0 all as expected."""
        for standing, code in (
            (Standing.BROKEN, 4),
            (Standing.REFUSED, 2),
            (Standing.UNEXPECTED, 1),
        ):
            if self.count(standing):
                return code
        if any(each.fails for each in self.remarks):
            return 1
        return 3 if self.count(Standing.UNDECIDED) else 0

    @property
    def answer(self) -> str:
        """The gate as a whole, in one word."""
        return {0: "green", 1: "red", 2: "bad input", 3: "undecided", 4: "error"}[self.code]


def judge(obligation: Obligation, verdict: Verdict) -> tuple[Standing, str]:
    """How a verdict stands to what is expected, and why it is not as expected.

    Properties that an expectation does not name must be proved where it names no violation, and
    not be violated where it does: a search may stop at the first failure.
    """
    if verdict.answer is Answer.BROKEN:
        said = next(p.detail for p in verdict.properties if p.answer is Answer.BROKEN)
        return Standing.BROKEN, said or "an engine broke"
    unexpected = _violated(obligation, verdict)
    if unexpected:
        return Standing.UNEXPECTED, _told(obligation, verdict, unexpected[0])
    found = {each.property: each for each in verdict.properties}
    for name, answer in obligation.expected.items():
        got = verdict.answer if name == ALL else _answer(found, name, verdict)
        if got.value != answer:
            asked = name in found or name not in PROPERTIES
            detail = found[name].detail if name in found else _reason(verdict) if asked else UNASKED
            said = f"{name or 'it'} is {got.value}, expected {answer}"
            text = f"{said}: {detail}" if detail else said
            return (Standing.UNDECIDED if got is Answer.UNDECIDED else Standing.UNEXPECTED), text
    if Answer.VIOLATED.value not in obligation.expected.values() and ALL not in obligation.expected:
        for each in verdict.properties:
            if each.property not in obligation.expected and each.answer is not Answer.PROVED:
                return Standing.UNDECIDED, f"{each.property} is {each.answer.value}: {each.detail}"
    if obligation.at:
        shown = failing_lines(verdict.trace) if verdict.trace is not None else ()
        if not any(obligation.at in each.text for each in shown):
            where = shown[0].text if shown else "no line"
            return Standing.UNEXPECTED, f"the violation shows at {where!r}, not {obligation.at!r}"
    return Standing.HELD, ""


def _violated(obligation: Obligation, verdict: Verdict) -> list[str]:
    """The properties that are violated though that is not expected."""
    expected = obligation.expected
    if expected.get(ALL) == Answer.VIOLATED.value:
        return []
    return [
        each.property
        for each in verdict.properties
        if each.answer is Answer.VIOLATED and expected.get(each.property) != Answer.VIOLATED.value
    ]


def _answer(found: Mapping[str, Any], name: str, verdict: Verdict) -> Answer:
    """The answer for a property; places reached are listed only if one is not.

    Any other that is not listed was not asked for, and so it is not decided.
    """
    if name in found:
        return Answer(found[name].answer)
    is_proved = name not in PROPERTIES and verdict.answer is Answer.PROVED
    return Answer.PROVED if is_proved else Answer.UNDECIDED


def _reason(verdict: Verdict) -> str:
    return next((p.detail for p in verdict.properties if p.answer is verdict.answer), "")


def _told(obligation: Obligation, verdict: Verdict, name: str) -> str:
    detail = next(each.detail for each in verdict.properties if each.property == name)
    lines = failing_lines(verdict.trace) if verdict.trace is not None else ()
    where = f" at {_place(lines[0])}" if lines else ""
    return f"{name} is violated{where}, expected {obligation.expectation}: {detail}"


def _place(line: Line) -> str:
    return f"{line.file.rpartition('/')[2]}:{line.line}"


def failing_lines(trace: Trace) -> tuple[Line, ...]:
    """The source lines at which a violation shows: the waits of a hang, else the last step.

    Of a hang's waits those that look at memory come first: who waits for a barrier waits for
    them. A landing has no line of its own: the put's stands for it.
    """
    waits = sorted(trace.waiting, key=lambda each: not each.sees)
    if waits:
        return tuple(each.line for each in waits if each.line is not None)
    for step in reversed(trace.steps):
        issue = trace.steps[step.put] if step.put >= 0 else step
        line = step.line or issue.line
        if line is not None:
            return (line,)
    return ()


def summary_data(report: GateReport) -> dict[str, Any]:
    """The report as plain data for JSON, which is also what a baseline is: no traces, no times."""
    return {
        "schema": SCHEMA,
        "kind": "gate",
        "file": report.file,
        "answer": report.answer,
        "counts": {each.value: report.count(each) for each in Standing},
        "obligations": [_result_data(each) for each in report.results],
        "remarks": [
            {"kind": each.kind, "name": each.name, "text": each.text, "fails": each.fails}
            for each in report.remarks
        ],
    }


def _result_data(result: Result) -> dict[str, Any]:
    obligation, verdict = result.obligation, result.verdict
    data: dict[str, Any] = {
        "name": obligation.name,
        "protocol": obligation.protocol,
        "line": obligation.line,
        "expected": {name or "all": answer for name, answer in obligation.expected.items()},
        "standing": result.standing.value,
        "message": result.message,
        "command": obligation.command,
    }
    if verdict is not None:
        data["verdict"] = {
            "answer": verdict.answer.value,
            "properties": {each.property: each.answer.value for each in verdict.properties},
            "engine": verdict.engine,
            "states": verdict.states,
            "transitions": verdict.transitions,
            "depth": verdict.depth,
            "routing": verdict.routing,
            "fabric": verdict.question.fabric.get("name", ""),
            "in_flight": verdict.question.fabric.get("in_flight", ""),
            "assumptions": dict(verdict.assumptions),
        }
    return data
