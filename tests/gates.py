"""Gates that several tests use: a report with one result of each standing, and text to escape."""

from __future__ import annotations

from syncproof.models.gate import ALL, GateReport, Obligation, Remark, Result, judge
from syncproof.models.gate import Standing as Standing
from syncproof.models.verdict import (
    Answer,
    Line,
    PropertyVerdict,
    Question,
    Trace,
    TraceStep,
    Verdict,
)

MARKUP = "<script>alert(1)</script> | `a` & [b](c) \x1b[31m\x07\udcff"
LINE = Line("protocols/sp.py", 27, "await core.wait_until(slot, is_here)")
QUESTION = Question("sp", {"ranks": 2}, {"name": "cm384", "in_flight": 2}, {})
STEPS = (
    TraceStep("process", 0, (0, 0), "sender@rank0", "put", Line("protocols/sp.py", 20, "put")),
    TraceStep("land", 0, (0, 0), "fabric", "lands", None, (), 0),
    TraceStep("process", 1, (0, 0), "receiver@rank1", f"wait {MARKUP}", LINE),
)
TRACE = Trace(QUESTION, "happens-before", "0, not 1", (), ("a", "b"), STEPS, (0, 2), True)


def verdict(answer: Answer, detail: str = "", property: str = "happens-before") -> Verdict:
    """A verdict on one property, the others being what they then are."""
    rest = Answer.PROVED if answer is Answer.PROVED else Answer.UNDECIDED
    properties = (
        PropertyVerdict("deadlock-free", rest, "the search stopped at the first failure"),
        PropertyVerdict(property, answer, detail),
    )
    trace = TRACE if answer is Answer.VIOLATED and property == "happens-before" else None
    return Verdict(QUESTION, "reduced", properties, 100, 99, 9, trace=trace)


def obligation(name: str, expected: str = "proved", at: str = "") -> Obligation:
    """An obligation at line 7 of its gate file."""
    return Obligation(
        name, "sp", f"check-protocol check sp # {name}", {ALL: expected}, at, (), 7, 5
    )


def result(name: str, found: Verdict, expected: str = "proved") -> Result:
    """A result as the gate judges it."""
    asked = obligation(name, expected)
    return Result(asked, *judge(asked, found), found)


PROOF = result("a proof", verdict(Answer.PROVED))
REFUTED = result("a mutant", verdict(Answer.VIOLATED, "0, not 1"), "violated")
VIOLATION = result(f"a violation {MARKUP}", verdict(Answer.VIOLATED, f"0, not {MARKUP}"))
SURVIVOR = result("a mutant that lives", verdict(Answer.PROVED), "violated")
UNDECIDED = result("too large", verdict(Answer.UNDECIDED, "stopped at --budget-states 9: raise it"))
BROKEN = result("two engines", verdict(Answer.BROKEN, "the engines disagree"))
CRASH = Result(obligation("a crash"), Standing.BROKEN, f"signal 11\nSegmentation fault {MARKUP}")
REFUSED = Result(obligation("a slip"), Standing.REFUSED, "no protocol 'spp'")
EACH = (PROOF, REFUTED, VIOLATION, SURVIVOR, UNDECIDED, BROKEN, CRASH, REFUSED)
REMARKS = (
    Remark("kernel", "a proof", f"k.h is now another {MARKUP}", False),
    Remark("lost proof", "too large", "happens-before was proved, is not decided", True),
)
WHOLE = GateReport("specs/gate.yaml", EACH, REMARKS)
