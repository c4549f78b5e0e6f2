"""Checks from the command line: exit codes, what is printed, files, and interrupts."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from syncproof import engines
from syncproof.cli import run
from syncproof.models.verdict import Answer, PropertyVerdict, Trace, Verdict, from_data, to_data

DATA = Path(__file__).parent / "data"
DOORBELL = str(DATA / "doorbell.py")
PLANTED = str(DATA / "planted.py")
ROOT = Path(__file__).parents[1]

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The width and colour of the terminal that the tests run on do not matter."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "syncproof", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        timeout=60,
    )


def words(capsys: Captured) -> str:
    """What was printed, however it was broken into lines."""
    return " ".join(capsys.readouterr().out.split())


# Verdicts and exit codes


def test_proof_exits_0_and_says_what_it_is_a_proof_of(capsys: Captured) -> None:
    """A proof names every bound, assumption and region that it rests on."""
    assert run([DOORBELL, "--ranks", "2", "--rounds", "2"]) == 0
    out = capsys.readouterr().out
    for said in ("2 ranks", "1 core each", "1 token", "2 rounds", "routing", "cm384", "512 B"):
        assert said in out
    for said in ("at most 2 in", "assuming", "nothing", "persists", "slot", "every run covered"):
        assert said in out
    assert re.findall(r"^  proved +(\S+)$", out, re.MULTILINE) == [
        "deadlock-free",
        "happens-before",
        "exactly-once",
        "race-free",
        "quiescent",
        "checks",
    ]


def test_summary_line_is_one_line_with_counts_and_bounds(capsys: Captured) -> None:
    """Scripts find one line that begins with the protocol, and nothing else with ``-q``."""
    assert run([DOORBELL, "-q"]) == 0
    said = capsys.readouterr()
    pattern = r"\S+doorbell\.py: proved states=\d+ transitions=\d+ depth=\d+ .*bounds=ranks:2,\S+\n"
    assert re.fullmatch(pattern, said.out)
    assert said.err == ""


def test_violation_exits_1_and_shows_the_run(capsys: Captured) -> None:
    """A violation shows where the run fails and which edge is missing."""
    assert run([DOORBELL, "--set", "fence=no"]) == 1
    out = capsys.readouterr().out
    assert "happens-before is violated in" in out
    assert "nothing orders the landing of" in out
    assert "doorbell.py:33" in out and "kernel: doorbell.cu:52" in out
    assert re.search(r"^\S+: violated .*property=happens-before", out, re.MULTILINE)


def test_hang_shows_who_waits_for_whom(capsys: Captured) -> None:
    """A hang names each blocked process, its line, what it sees and why nobody can help."""
    assert run([f"{PLANTED}:Hangs", "--property", "deadlock-free"]) == 1
    out = capsys.readouterr().out
    assert out.count("is blocked in") == 2
    assert "kernel: hang.cu:7" not in out and re.search(r"kernel +hang\.cu:7", out)
    assert re.search(r"sees +0", out) and "could be helped by" in out


def test_vacuous_proof_is_violated(capsys: Captured) -> None:
    """A place that no run reaches makes the exit code 1, and is named."""
    assert run([f"{PLANTED}:Vacuous"]) == 1
    assert "no run reaches 'seven'" in capsys.readouterr().out


@pytest.mark.parametrize("budget", [("--budget-states", "300"), ("--budget-seconds", "0.01")])
def test_budget_that_ends_exits_3_and_names_its_flag(
    budget: tuple[str, str], capsys: Captured
) -> None:
    """What is not decided says which limit to raise."""
    assert run([f"{PLANTED}:Wide", "--full", *budget]) == 3
    out = capsys.readouterr().out
    assert budget[0] in out.partition("size")[0]
    assert ": undecided " in out


def test_memory_that_runs_out_exits_3() -> None:
    """A search that meets its memory budget stops, and says so."""
    ended = program(DOORBELL, "--rounds", "500", "--engine", "reduced", "--memory", "1M")
    assert ended.returncode == 3, ended.stderr
    assert "--memory" in ended.stdout.partition("size")[0]


def test_model_larger_than_memory_is_refused_at_once(capsys: Captured) -> None:
    """An instance whose cells alone exceed the budget is not begun."""
    assert run(["sp", "--ranks", "512", "--tokens", "64", "--memory", "1G"]) == 3
    assert "raise --memory" in words(capsys)


def test_properties_that_are_not_asked_for_are_not_answered(capsys: Captured) -> None:
    """``--property`` limits the question."""
    arguments = ["--property", "quiescent", "--property", "deadlock-free"]
    assert run([DOORBELL, "--rounds", "1", "--set", "fence=no", *arguments, "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [each["property"] for each in data["properties"]] == ["deadlock-free", "quiescent"]


def test_name_alone_and_options_before_it_are_checked(capsys: Captured) -> None:
    """Protocols share one namespace with commands; ``check`` is what is meant."""
    said = []
    for arguments in (["check", DOORBELL], [DOORBELL], ["--ranks", "2", DOORBELL]):
        assert run([*arguments, "-q"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] == said[2]


def test_default_routing_is_all_at_two_ranks_and_balanced_above(capsys: Captured) -> None:
    """The default covers every routing where that is small."""
    for ranks, routing in (("2", "all"), ("3", "balanced")):
        assert run([DOORBELL, "--ranks", ranks, "-q"]) == 0
        assert f"routing:{routing}" in capsys.readouterr().out


def test_routing_file_is_read(tmp_path: Path, capsys: Captured) -> None:
    """A routing file gives the tokens of each round, source and expert."""
    (tmp_path / "r.yaml").write_text("[[[0, 1], [0, 0]]]\n")
    routing = ["--routing", str(tmp_path / "r.yaml")]
    assert run(["sp", "--rounds", "1", *routing, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["question"]["bounds"]["routing"] == [
        [[0, 1], [0, 0]]
    ]


def test_full_is_the_engine_without_reduction(capsys: Captured) -> None:
    """``--full`` visits more states than the default, with the same answer."""
    counts = []
    for more in ([], ["--full"]):
        assert run([DOORBELL, "--json", "-", *more]) == 0
        counts.append(json.loads(capsys.readouterr().out)["states"])
    assert counts[0] < counts[1]


# Several engines


def test_all_engines_agree_and_are_all_kept(tmp_path: Path, capsys: Captured) -> None:
    """``--engine all`` answers with every engine and keeps each verdict."""
    file = tmp_path / "v.json"
    assert run([DOORBELL, "--engine", "all", "--json", str(file)]) == 0
    data = json.loads(file.read_text())
    assert data["kind"] == "comparison"
    verdicts = [from_data(Verdict, each, "") for each in data["verdicts"]]
    assert [each.engine for each in verdicts] == list(engines.ENGINES)
    assert {each.answer for each in verdicts} == {Answer.PROVED}


def lying(monkeypatch: pytest.MonkeyPatch, check: Callable[..., Verdict]) -> None:
    """Add an engine ``lying`` that answers with ``check``."""
    module = types.ModuleType("lying_engine")
    module.check = check  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lying_engine", module)
    engine = engines.Engine("lying", "proves everything", "lying_engine:check")
    monkeypatch.setitem(engines.ENGINES, "lying", engine)


def prove_anything(instance: object, question: object, engine: str, *_: object) -> Verdict:
    properties = (PropertyVerdict("happens-before", Answer.PROVED),)
    return Verdict(question, engine, properties, 1, 0, 0)  # type: ignore[arg-type]


def test_engines_that_disagree_exit_4(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured
) -> None:
    """A property that one engine proves and another refutes is an error of ours, both kept."""
    lying(monkeypatch, prove_anything)
    file = tmp_path / "v.json"
    asked = [DOORBELL, "--set", "fence=no", "--property", "happens-before"]
    assert run([*asked, "--engine", "all", "--json", str(file)]) == 4
    out = capsys.readouterr().out
    assert "the engines disagree: reference says violated" in out and "lying says proved" in out
    verdicts = json.loads(file.read_text())["verdicts"]
    kept = {each["engine"]: each["properties"][0]["answer"] for each in verdicts}
    assert list(kept) == list(engines.ENGINES)
    assert kept["reference"] == "violated" and kept["lying"] == "proved"


@pytest.mark.parametrize("error", [ZeroDivisionError("planted"), SystemExit("planted")])
def test_engine_that_breaks_exits_4_with_its_traceback(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """An error of ours is told with a traceback and what to report."""

    def broken(*_: object) -> Verdict:
        raise error

    lying(monkeypatch, broken)
    assert run([DOORBELL, "--engine", "lying"]) == 4
    err = capsys.readouterr().err
    assert "Traceback" in err and f"{type(error).__name__}: planted" in err
    assert "please report" in err and "--engine lying" in err and "Python 3." in err


# Files


def test_json_has_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    """Same input, same bytes: the verdict, the trace and the report."""
    said = set()
    for seed in ("1", "2"):
        verdict, trace = tmp_path / f"v{seed}.json", tmp_path / f"t{seed}.json"
        files = ["--json", str(verdict), "--trace", str(trace)]
        ended = program(DOORBELL, "--set", "credits=no", *files, PYTHONHASHSEED=seed)
        assert ended.returncode == 1, ended.stderr
        said.add((verdict.read_text(), trace.read_text(), ended.stdout))
    assert len(said) == 1


def test_json_round_trips(tmp_path: Path) -> None:
    """What is written can be read back as the same verdict and trace."""
    verdict, trace = tmp_path / "v.json", tmp_path / "t.json"
    files = ["--json", str(verdict), "--trace", str(trace)]
    assert run([DOORBELL, "--set", "fence=no", "-q", *files]) == 1
    for kind, path in ((Verdict, verdict), (Trace, trace)):
        data = json.loads(path.read_text())
        assert to_data(from_data(kind, data, str(path))) == data
    assert "seconds" not in verdict.read_text()


def test_timings_are_in_files_only_when_asked(tmp_path: Path) -> None:
    """``--timings`` adds the time that each engine took."""
    file = tmp_path / "v.json"
    assert run([DOORBELL, "-q", "--timings", "--json", str(file)]) == 0
    assert re.search(r"\w+: \d+\.\d\d s", file.read_text())


def test_json_on_standard_output_is_nothing_but_json(capsys: Captured) -> None:
    """``--json -`` leaves standard output to the file; the report goes to standard error."""
    assert run([DOORBELL, "--json", "-"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["kind"] == "verdict"
    assert "proved" in said.err


def test_no_trace_is_written_for_a_proof(tmp_path: Path, capsys: Captured) -> None:
    """A trace file appears only where something is violated."""
    assert run([DOORBELL, "-q", "--trace", str(tmp_path / "t.json")]) == 0
    assert list(tmp_path.iterdir()) == []
    assert "no trace to write" in capsys.readouterr().err


def test_file_is_replaced_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """A disk that is full leaves the old file and nothing beside it."""
    file = tmp_path / "v.json"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert run([DOORBELL, "--json", str(file)]) == 2
    said = capsys.readouterr()
    assert "No space left on device" in said.err and ": proved " in said.out
    assert [each.name for each in tmp_path.iterdir()] == ["v.json"] and file.read_text() == "old"


def test_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """An output that is no regular file stays what it is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    assert run([DOORBELL, "-q", "--json", str(pipe)]) == 0
    reader.join(timeout=10)
    assert json.loads(received[0])["kind"] == "verdict" and pipe.is_fifo()


def test_printed_command_asks_the_same_again(tmp_path: Path, capsys: Captured) -> None:
    """The command that a run ends with gives the same verdict, also for a path with spaces."""
    file = tmp_path / "my kernel.py"
    file.write_text(Path(DOORBELL).read_text())
    asked = ["--set", "credits=no", "--rounds", "2", "--fabric", "cm384,in_flight=3"]
    assert run([str(file), *asked, "--json", str(tmp_path / "1.json")]) == 1
    out = capsys.readouterr().out
    again = next(line for line in out.splitlines() if line.startswith("again: "))
    name, *words = shlex.split(again.removeprefix("again: "))
    assert name == "check-protocol"
    assert run([*words, "-q", "--json", str(tmp_path / "2.json")]) == 1
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()


# Interrupts


def heeds_interrupts() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_says_what_was_covered(number: int, code: int, tmp_path: Path) -> None:
    """Ctrl-C and SIGTERM end a long search with its partial verdict and whole files.

    The progress display, which is only drawn on a terminal, tells that the search is on its way.
    """
    file = tmp_path / "v.json"
    mine, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "syncproof", f"{PLANTED}:Wide", "--full", "--json", str(file)],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        preexec_fn=heeds_interrupts,
    ) as process:
        os.close(theirs)
        shown = b""
        while b" states (" not in shown:
            shown += os.read(mine, 1024)
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
        os.close(mine)
    assert process.returncode == code
    verdict = from_data(Verdict, json.loads(file.read_text()), str(file))
    assert verdict.answer is Answer.UNDECIDED and verdict.states > 0
    assert "interrupted" in out and f"states={verdict.states}" in out
    assert [each.name for each in tmp_path.iterdir()] == ["v.json"]


def test_help_without_a_reader_is_no_error() -> None:
    """``check-protocol --help | true`` says nothing on standard error."""
    command = f"{shlex.quote(sys.executable)} -m syncproof --help | true"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, shell=True, stderr=subprocess.PIPE, env=environment)
    assert ended.stderr == b""


def test_help_names_every_engine(capsys: Captured) -> None:
    """``check --help`` lists the engines of the table; no arguments at all are a call for help."""
    assert run(["check", "--help"]) == 0
    assert f"auto|{'|'.join(engines.ENGINES)}|all" in capsys.readouterr().out
    assert run([]) == 0
    assert "Usage: check-protocol" in capsys.readouterr().out


def test_reader_that_leaves_does_not_change_the_answer() -> None:
    """A closed pipe is no error: the exit code is still the verdict's."""
    with subprocess.Popen(
        [sys.executable, "-m", "syncproof", DOORBELL, "--set", "fence=no"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(timeout=30) == 1
    assert err == b""


def test_help_imports_nothing_heavy() -> None:
    """``--help`` answers without a solver, arrays, graphs, compilers or a renderer."""
    code = (
        "import sys\nfrom syncproof.cli import run\nassert run(['--help']) == 0\n"
        "heavy = {'z3', 'numba', 'networkx', 'numpy', 'rich', 'yaml', 'hypothesis'}\n"
        "print('heavy:', *heavy & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"Usage: check-protocol" in ended.stdout
    assert ended.stdout.endswith(b"\nheavy:\n")


def test_an_engine_that_is_cut_off_still_says_what_it_assumes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An answer without a search names the assumptions that were made with the question."""
    assert run(["sp", "--ranks", "4000", "--memory", "60M"]) == 3
    assert "assuming  reserved_sentinel" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--threads", "2"], "--threads with --engine auto"),
        (["--threads", "2", "--engine", "reference"], "--threads with --engine reference"),
        (["--budget-states", "5", "--engine", "smt"], "--budget-states with --engine smt"),
    ],
)
def test_a_limit_that_the_engine_does_not_know_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No option is taken and then not looked at."""
    assert run(["sp", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_mistyped_command_gets_the_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """A word that is nearly a command, with an argument behind it, is not taken for a protocol."""
    assert run(["shw", "sp"]) == 2
    assert "no command 'shw' (perhaps show" in capsys.readouterr().err
