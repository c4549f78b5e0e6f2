"""The terminal report: drawings, tables, the progress line, and text that is only text."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from syncproof.models.verdict import (
    Answer,
    Change,
    Line,
    PropertyVerdict,
    Question,
    Trace,
    TraceStep,
    Verdict,
    Waiting,
)
from syncproof.reports import progress
from syncproof.reports.columns import print_columns
from syncproof.reports.files import write_text
from syncproof.reports.terminal import console_on, print_trace, print_verdict, summary_line

BOUNDS = {"ranks": 2, "tokens": 1, "rounds": 3, "experts": 2, "topk": 2, "routing": "all"}
FABRIC = {"name": "cm384", "store_atomicity": 512, "ordering": "none", "in_flight": 2}
QUESTION = Question("sp", BOUNDS, FABRIC, {"windows": 1}, properties=("happens-before",))
PROCESSES = ("sender@rank0", "receiver@rank0", "sender@rank1", "receiver@rank1")
PUT = Line("/home/me/sp.py", 27, "await core.put(slot, core.payload(peer, token, round))", "k.h:9")
WAIT = Line("/home/me/sp.py", 36, "block = await core.wait_until(slot, is_here)")

STEPS = (
    TraceStep("process", 0, (0, 0), PROCESSES[0], "put window[1][0]: token 0", PUT),
    TraceStep("process", 2, (0, 0), PROCESSES[2], "sync of rank 1", None, (), -1, PROCESSES[2:]),
    TraceStep(
        "land", 0, (4, 0), "fabric", "token 0 lands at window[1][0]", None,
        (Change("window[1][0]", "lead", "SENTINEL", "token 0"),), 0,
    ),
    TraceStep("process", 1, (0, 0), PROCESSES[1], "quiet", None),
    TraceStep("process", 3, (0, 0), PROCESSES[3], "wait_until window[1][0] reads token 0", WAIT),
)  # fmt: skip
TRACE = Trace(
    QUESTION,
    "happens-before",
    "it is token 0, not token 1",
    (("tokens 0 1 0", "1"),),
    PROCESSES,
    STEPS,
    (0, 1, 2, 3, 4),
    fewest=True,
    missing_edge="nothing orders the landing after the read in receiver@rank1, sp.py:36",
)
WAITING = (
    Waiting(
        PROCESSES[1], WAIT, "wait_until window[0][1]", "SENTINEL", PROCESSES[2:3], "it is done"
    ),
)
VERDICT = Verdict(
    QUESTION,
    "reduced",
    (PropertyVerdict("happens-before", Answer.PROVED),),
    561,
    560,
    42,
    {"reserved_sentinel": "no payload equals the sentinel"},
    ("epoch",),
    "all",
)


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The width and colour of the terminal that the tests run on do not matter."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


def printed(trace: Trace = TRACE, *, verbose: bool = False, encoding: str = "utf-8") -> list[str]:
    """The lines of a trace as they are printed."""
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, errors="strict") as file:
        print_trace(console_on(file), trace, verbose=verbose, with_question=False)
        file.flush()
        return raw.getvalue().decode(encoding).splitlines()


def described(verdict: Verdict, *, verbose: bool = False) -> str:
    """A verdict as it is printed, however it is broken into lines."""
    file = io.StringIO()
    print_verdict(console_on(file), verdict, verbose=verbose)
    return " ".join(file.getvalue().split())


# Swim-lanes


def test_each_process_that_acts_has_a_lane_and_the_fabric_is_last() -> None:
    """The heading is a staircase with a step for each lane, in the usual order."""
    heading = [line.strip(" │") for line in printed()[3:8]]
    assert heading == [*PROCESSES, "fabric"]
    depths = [line.count("│") for line in printed()[3:8]]
    assert depths == [0, 1, 2, 3, 4]


def test_process_that_only_acts_where_nothing_is_shown_has_no_lane() -> None:
    """Lanes are of the shown steps alone, which keep the numbers of the whole run."""
    lines = printed(dataclasses.replace(TRACE, shown=(0, 2, 4)))
    assert not any("sender@rank1" in line or "receiver@rank0" in line for line in lines)
    numbers = [int(found[1]) for line in lines if (found := re.match(r" *(\d+)  ", line))]
    assert numbers == [1, 3, 5]
    assert "2 that do not matter are left out" in " ".join(lines)


def test_put_goes_to_the_fabric_and_its_landing_is_in_the_fabric_lane() -> None:
    """A put is an arrow into the fabric; its landing names the put and what it overwrote."""
    lines = printed()
    assert next(line for line in lines if "put window" in line).startswith("  1  ●──┼──┼──┼──▷  ")
    landing = next(line for line in lines if "lands at" in line)
    assert landing.startswith("  3  │  │  │  │  ◆  token 0 lands at window[1][0]")
    assert "(put of step 1, was SENTINEL)" in " ".join(" ".join(lines).replace("│", "").split())


def test_joint_step_is_marked_in_the_lane_of_every_member() -> None:
    """A sync is one step of all who meet in it."""
    line = next(line for line in printed() if "sync of" in line)
    assert line.startswith("  2  │  │  ●──●  │  sync of rank 1")


def test_failing_read_is_marked_with_the_missing_edge_below() -> None:
    """The failure stands in the lane of the process that read, right after its step."""
    lines = printed()
    mark = next(i for i, line in enumerate(lines) if "✗" in line)
    assert lines[mark].startswith("     │  │  │  ✗  │  happens-before: it is token 0")
    assert "sp.py:36" in lines[mark - 1]
    assert "nothing orders the landing after" in lines[mark + 1]


def test_source_line_and_kernel_line_stand_below_their_step() -> None:
    """Each step shows the protocol's line without its folder, and the kernel's."""
    lines = printed()
    first = next(i for i, line in enumerate(lines) if "put window" in line)
    assert "sp.py:27  await core.put(" in lines[first + 1] and "/home" not in lines[first + 1]
    assert lines[first + 2].endswith("kernel: k.h:9")


def test_four_lanes_fit_into_80_columns() -> None:
    """No line is wider than the terminal or ends in spaces."""
    long = dataclasses.replace(STEPS[0], text="put " + "window[1][0, 0, 0] " * 9)
    for line in printed(dataclasses.replace(TRACE, steps=(long, *STEPS[1:]))):
        assert len(line) <= 80
        assert line == line.rstrip()


def test_more_lanes_than_fit_are_named_instead() -> None:
    """With many lanes each step has one line, with its lane's name before it."""
    names = tuple(f"receiver[{i}]@rank7" for i in range(16))
    steps = tuple(TraceStep("process", i, (0, 0), name, "quiet") for i, name in enumerate(names))
    trace = dataclasses.replace(TRACE, processes=names, steps=steps, shown=tuple(range(16)))
    lines = [line for line in printed(trace) if "quiet" in line]
    assert len(lines) == 16 and all("│" not in line for line in lines)
    assert re.fullmatch(r"  1  receiver\[0\]@rank7 +● quiet", lines[0])


def test_terminal_without_unicode_gets_ascii() -> None:
    """A drawing never breaks an output that cannot encode it."""
    lines = printed(encoding="ascii", verbose=True)
    assert any(line.startswith("  1  o--|--|--|-->  put") for line in lines)
    assert any("X  |  happens-before" in line for line in lines)


def test_verbose_shows_every_step_and_every_change() -> None:
    """``-v`` leaves nothing out."""
    lines = printed(dataclasses.replace(TRACE, shown=(4,)), verbose=True)
    assert sum(bool(re.match(r" *\d+  ", line)) for line in lines) == len(STEPS)
    assert any("window[1][0].lead: SENTINEL → token 0" in line for line in lines)


def test_failure_of_a_state_is_in_no_lane() -> None:
    """A hang is no step's doing: its message follows the run."""
    lines = printed(dataclasses.replace(TRACE, property="deadlock-free", message="stuck"))
    assert not any("✗" in line for line in lines)
    assert any("deadlock-free: stuck" in line for line in lines)


# The wait-for table


def test_wait_for_table_says_where_what_who_and_why_not() -> None:
    """Each blocked process has its line, the value it sees, who could help and why they cannot."""
    lines = printed(dataclasses.replace(TRACE, waiting=WAITING))
    table = [re.split(r" {2,}", line.strip()) for line in lines[lines.index("") :][-6:]]
    assert table == [
        ["receiver@rank0", "is blocked in", "wait_until window[0][1]"],
        ["at", "sp.py:36", "block = await"],
        ["core.wait_until(slot, is_here)"],
        ["sees", "SENTINEL"],
        ["could be helped by", "sender@rank1"],
        ["but", "it is done"],
    ]


# Verdicts


def test_verdict_says_what_it_is_a_verdict_of() -> None:
    """Bounds, routing, fabric, in-flight bound, settings, assumptions, regions, engine, states."""
    said = described(VERDICT)
    for words in (
        "proved happens-before",
        "2 ranks, 1 token, 3 rounds",
        "every number of tokens",
        "cm384: puts land in 512 B atoms",
        "at most 2 in flight",
        "windows=1",
        "reserved_sentinel: no payload equals the sentinel",
        "persists epoch",
        "561 states, 560 transitions, depth 42, every run covered (engine reduced)",
    ):
        assert words in said


def test_proved_is_not_said_of_what_was_not_covered() -> None:
    """Only a proof says that every run was covered."""
    undecided = (PropertyVerdict("happens-before", Answer.UNDECIDED, "raise --memory"),)
    said = described(dataclasses.replace(VERDICT, properties=undecided))
    assert "not decided happens-before raise --memory" in said
    assert "not all runs covered" in said and "every run" not in said and "proved" not in said


def test_dropped_assumptions_and_mutants_are_named() -> None:
    """What was asked for is part of the answer."""
    question = dataclasses.replace(QUESTION, dropped=("reserved_sentinel",), mutant="windows=1")
    said = described(dataclasses.replace(VERDICT, question=question, assumptions={}))
    assert "dropped reserved_sentinel" in said and "mutant windows=1" in said
    assert "assuming nothing" in said


def test_verbose_verdict_has_every_fabric_key() -> None:
    """``-v`` says all that the fabric is."""
    assert "store_atomicity=512 ordering=none in_flight=2" in described(VERDICT, verbose=True)


def test_summary_is_one_line_whatever_the_name() -> None:
    """The line that scripts look for is quoted like a word of a shell."""
    question = dataclasses.replace(QUESTION, protocol="my kernel.py\n")
    line = summary_line(dataclasses.replace(VERDICT, question=question))
    assert line.startswith(r"'my kernel.py\n': proved states=561 transitions=560 depth=42 ")
    assert line.endswith("bounds=ranks:2,tokens:1,rounds:3,experts:2,topk:2,routing:all,"
                         "fabric:cm384,in_flight:2")  # fmt: skip


# Text is only text


def test_markup_and_escape_sequences_are_shown_and_not_obeyed() -> None:
    """A trace from elsewhere cannot colour, move or hide anything."""
    evil = "[bold red]x[/] :smile: \x1b[2J\x07\r\u202e"
    step = dataclasses.replace(
        STEPS[0], text=evil, line=dataclasses.replace(PUT, text=evil, at=evil)
    )
    waiting = (Waiting(evil, None, evil, evil, (evil,), evil),)
    trace = dataclasses.replace(
        TRACE, message=evil, missing_edge=evil, steps=(step, *STEPS[1:]), waiting=waiting,
        choices=((evil, evil),),
    )  # fmt: skip
    out = "\n".join(printed(trace, verbose=True))
    assert "[bold red]x[/] :smile: \\x1b[2J\\x07\\r\\u202e" in out
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", out)
    verdict = dataclasses.replace(VERDICT, notes=(evil,), persists=(evil,), engine=evil)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", described(verdict))


@pytest.mark.parametrize("has_color", [True, False])
def test_no_color_is_heeded(has_color: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal answers are coloured, unless NO_COLOR is set."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    if not has_color:
        monkeypatch.setenv("NO_COLOR", "1")
    file = io.StringIO()
    print_verdict(console_on(file), VERDICT)
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]", file.getvalue())) == has_color


def test_columns_wrap_the_last_one_below_itself() -> None:
    """Long text stays in its column, and no line ends in spaces."""
    file = io.StringIO()
    console = Console(file=file, width=40)
    print_columns(console, [("a", "word " * 12), (Text("bcd"), "")], indent=1, gap=2)
    lines = file.getvalue().splitlines()
    assert lines[0].startswith(" a    word") and lines[1].startswith("      word")
    assert lines[-1] == " bcd" and all(line == line.rstrip() for line in lines)


# Progress


class Terminal(io.StringIO):
    """A stream that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long search shows its counts, and leaves an empty line behind."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.001)
    stream = Terminal()
    with progress.Progress(stream) as shown:
        shown.report(12345, 67, 8)
        while "12,345 states" not in stream.getvalue():
            pass
    assert re.search(r"12,345 states \([\d,]+/s\), 67 to expand, depth 8", stream.getvalue())
    assert stream.getvalue().endswith("\r\x1b[K")


def test_progress_tells_memory_and_how_long_the_budget_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After 10 s 1,000 of 4,000 states: 30 s more. Without a budget there is no estimate at all."""
    clock = iter([0.0, 10.0, 0.0, 10.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    bounded = progress.Progress(Terminal(), most_states=4_000, memory=lambda: 300 << 20)
    bounded.report(1_000, 5, 7)
    assert bounded.line() == (
        "10 s: 1,000 states (100/s), 5 to expand, depth 7, 300 MiB; "
        "the budget lasts 30 s more at most"
    )
    endless = progress.Progress(Terminal())
    endless.report(1_000, 5, 7)
    assert endless.line() == "10 s: 1,000 states (100/s), 5 to expand, depth 7"


def test_progress_is_silent_elsewhere_and_when_it_is_quick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is written to a file, nor to a terminal in the first second."""
    quick = Terminal()
    with progress.Progress(quick) as shown:
        shown.report(1, 1, 1)
    assert quick.getvalue() == ""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    elsewhere = io.StringIO()
    with progress.Progress(elsewhere) as shown:
        shown.report(1, 1, 1)
    assert elsewhere.getvalue() == ""


# Files


def test_written_file_has_usual_permissions_and_follows_links(tmp_path: Path) -> None:
    """A file written beside and renamed looks like any other, and a link stays a link."""
    ordinary, target, link = (tmp_path / name for name in ("o", "t", "l"))
    ordinary.write_text("")
    link.symlink_to(target)
    write_text(str(link), "x")
    assert target.read_text() == "x" and link.is_symlink()
    assert target.stat().st_mode == ordinary.stat().st_mode
