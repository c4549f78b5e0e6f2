"""``check-protocol gate`` end to end: verdicts, exit codes, files, what is kept, what broke."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from syncproof.asserts import check_protocol
from syncproof.cli import run
from syncproof.gate import cache as caching
from syncproof.gate import worker
from syncproof.gate.baseline import worse
from syncproof.gate.cache import Cache
from syncproof.gate.file import read_gate
from syncproof.gate.hashes import sha256_of
from syncproof.gate.obligations import tasks_of
from syncproof.gate.run import Gate
from syncproof.gate.worker import Job
from syncproof.models.gate import ALL, GateReport, Obligation, Result, Standing, judge
from syncproof.models.verdict import Answer
from syncproof.reports.gate_page import gate_page
from syncproof.reports.markdown import markdown
from tests import gates
from tests.test_cli import heeds_interrupts

DOORBELL = Path(__file__).parent / "data" / "doorbell.py"
Captured = pytest.CaptureFixture[str]

HEADER = "from syncproof.models.protocol import Protocol, role\n"
CRASH = (
    f"import os, signal\n{HEADER}class Crash(Protocol):\n    @role\n"
    "    async def r(self, core):\n        os.kill(os.getpid(), signal.SIGSEGV)\n"
)
NEVER = f"{HEADER}while True:\n    pass\n"
LEAVES = f"import os\n{HEADER}print('on the way')\nos._exit(0)\n"
GATE = """
defaults: {rounds: 2, fabric: [cm384]}
obligations:
  - {protocol: doorbell.py}
  - {protocol: doorbell.py, set: {fence: no}, expect: {happens-before: violated}, at: load}
  - {protocol: crash.py}
  - {protocol: leaves.py}
  - {protocol: never.py, budget: {seconds: 0.2}}
  - {protocol: nothing.py}
  - {protocol: doorbell.py, name: no such setting, set: {fences: no}}
  - {protocol: doorbell.py, name: unexpected violation, set: {credits: no}}
  - {protocol: doorbell.py, name: violation that is gone, expect: violated}
  - {protocol: doorbell.py, name: too small, engine: reduced, budget: {states: 5}}
  - {protocol: doorbell.py, name: each, mutants: all}
  - {protocol: doorbell.py, name: slip, mutants: [no-fense@doorbell.py:26]}
"""
EXPECTED = {
    "doorbell.py": "as expected",
    "doorbell.py fence=no": "as expected",
    "crash.py": "error",
    "leaves.py": "error",
    "never.py": "not decided",
    "nothing.py": "bad input",
    "no such setting": "bad input",
    "unexpected violation": "unexpected",
    "violation that is gone": "unexpected",
    "too small": "not decided",
    "slip no-fense@doorbell.py:26": "bad input",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a gate whose obligations end in every way there is."""
    made = tmp_path_factory.mktemp("gate")
    shutil.copy(DOORBELL, made)
    (made / "g.yaml").write_text(GATE)
    for name, text in (("crash", CRASH), ("never", NEVER), ("leaves", LEAVES)):
        (made / f"{name}.py").write_text(text)
    return made


@pytest.fixture(scope="module")
def ended(folder: Path) -> dict[str, Any]:
    """What ``--json`` holds after that gate was run once, cold, elsewhere than in its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "GRACE", 1.0)
        command = ["gate", str(folder / "g.yaml"), "--workers", "2", "-q"]
        code = run([*command, "--cache", str(folder / "kept"), "--out", str(folder / "cold")])
    data: dict[str, Any] = json.loads((folder / "cold" / "gate.json").read_text())
    return {**data, "code": code}


def by_name(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in data["obligations"]}


def test_each_obligation_stands_on_its_own(ended: dict[str, Any]) -> None:
    """A crash, an exit, an endless import and bad input are of their obligation alone."""
    found = {name: each["standing"] for name, each in by_name(ended).items()}
    assert {name: found[name] for name in EXPECTED} == EXPECTED
    others = {name: standing for name, standing in found.items() if name not in EXPECTED}
    assert len(others) >= 4 and all(name.startswith("each without the ") for name in others)
    assert set(others.values()) == {"as expected"}


def test_exit_code_is_that_of_the_worst(ended: dict[str, Any]) -> None:
    """Errors of ours come before all else."""
    assert (ended["code"], ended["answer"]) == (4, "error")


def test_what_went_wrong_is_said(ended: dict[str, Any]) -> None:
    """The signal and where it struck, what was printed, the file, the setting, the budget."""
    said = {name: each["message"] for name, each in by_name(ended).items()}
    assert "signal 11" in said["crash.py"] and "crash.py" in said["crash.py"].partition("\n")[2]
    assert "code 0" in said["leaves.py"] and "on the way" in said["leaves.py"]
    assert "raise budget seconds" in said["never.py"]
    assert "nothing.py: there is no such file" in said["nothing.py"]
    assert "no parameter 'fences' (fence" in said["no such setting"]
    assert "--budget-states 5" in said["too small"]
    assert said["violation that is gone"] == "it is proved, expected violated"
    violated = said["unexpected violation"]
    assert violated.startswith("happens-before is violated at doorbell.py:34")
    assert "consumed token 0 round 1 (0->1) where token 0 round 0 (0->1) was expected" in violated
    slip = said["slip no-fense@doorbell.py:26"]
    assert slip.startswith("mutants, line 15: no mutant 'no-fense@doorbell.py:26' (no-fence@")


def test_command_of_a_mutant_asks_for_it(ended: dict[str, Any]) -> None:
    """Each is asked again as it was asked; also one that there is not."""
    commands = [each["command"] for each in ended["obligations"]]
    of_each = [c for c in commands if "--mutant no-" in c or "--mutant windows=" in c]
    assert len(set(of_each)) == sum("without the" in name for name in by_name(ended)) + 1


def test_failed_runs_are_written_and_linked(ended: dict[str, Any], folder: Path) -> None:
    """The run of what failed replays, and the index leads to it; a test's own run is not there."""
    traces = sorted((folder / "cold").glob("*.trace.json"))
    assert [each.name.partition("-")[2] for each in traces] == ["unexpected-violation.trace.json"]
    assert f'href="{traces[0].name}"' in (folder / "cold" / "index.html").read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["replay", str(traces[0])]) == 1


def test_warm_run_answers_nothing_and_writes_the_same_bytes(
    ended: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is not asked again, and no file tells whether it was."""

    def refuse(self: object, job: Job) -> dict[str, Any]:
        raise AssertionError(f"asked again: {job.request.protocol}")

    monkeypatch.setattr(worker.Isolated, "__call__", refuse)
    only = [f"--only={name}" for name in ("doorbell.py*", "each*", "*violation*")]
    command = ["gate", str(folder / "g.yaml"), "--cache", str(folder / "kept"), *only]
    for out in ("warm", "warmer"):
        assert run([*command, "--out", str(folder / out), "-q"]) == 1
    names = sorted(each.name for each in (folder / "warm").iterdir())
    assert len(names) == 10
    for name in names:
        assert (folder / "warm" / name).read_bytes() == (folder / "warmer" / name).read_bytes()
    cold = by_name(ended)
    warm = by_name(json.loads((folder / "warm" / "gate.json").read_text()))
    assert warm == {name: cold[name] for name in warm} and len(warm) >= 8
    trace = "unexpected-violation.trace.json"
    (first,), (second,) = ((folder / out).glob(f"*{trace}") for out in ("cold", "warm"))
    assert first.read_bytes() == second.read_bytes()


# What is kept


class Answering:
    """Answers in this process, and counts."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def __call__(self, job: Job) -> dict[str, Any]:
        self.jobs.append(job)
        return worker.answer(job)

    def planned(self, obligation: Obligation) -> None:
        """Not looked at."""

    def done(self, result: Result) -> None:
        """Not looked at."""


def asked_anew(path: Path, kept: Path | None) -> int:
    """How many obligations of a gate file are not answered from what is kept."""
    answering = Answering()
    with ThreadPoolExecutor(1) as executor:
        gate = Gate(executor, answering, Cache(kept), path.parent, 1, answering)
        gate.run(tasks_of(read_gate(path)))
    return len(answering.jobs)


SPLIT = {
    "own.py": "from sizes import ROUNDS\nfrom doorbell import Doorbell\nclass Own(Doorbell):\n"
    "    '''Mine.'''\n    name = str(ROUNDS)\n",
    "sizes.py": "ROUNDS = 1\n",
    "other.py": "",
    "g.yaml": "obligations: [{protocol: 'own.py:Own', rounds: 1, fabric: f.yaml, routing: r.yaml}]",
    "f.yaml": "store_atomicity: 512\nordering: none\n",
    "r.yaml": "[[[0, 1], [0, 0]]]",
}


@pytest.mark.parametrize(
    ("file", "text", "asked"),
    [
        ("other.py", "x = 1\n", 0),
        ("own.py", SPLIT["own.py"].replace("Mine", "Yours"), 1),
        ("sizes.py", "ROUNDS = 2\n", 1),
        ("f.yaml", SPLIT["f.yaml"].replace("none", "per_pair"), 1),
        ("f.yaml", SPLIT["f.yaml"] + "# only a comment\n", 0),
        ("r.yaml", "[[[0, 1], [1, 0]]]", 1),
        ("g.yaml", SPLIT["g.yaml"].replace("rounds: 1", "rounds: 2"), 1),
        ("g.yaml", SPLIT["g.yaml"].replace("}]", ", expect: violated}]"), 0),
    ],
)
def test_only_what_changed_is_asked_again(
    file: str, text: str, asked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The protocol, what it imports, its fabric and routing count; nothing else does."""
    monkeypatch.chdir(tmp_path)
    for name in ("own", "sizes", "doorbell"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    shutil.copy(DOORBELL, tmp_path)
    for name, content in SPLIT.items():
        (tmp_path / name).write_text(content)
    gate, kept = tmp_path / "g.yaml", tmp_path / "kept"
    assert asked_anew(gate, kept) == 1
    assert asked_anew(gate, kept) == 0
    assert asked_anew(gate, None) == 1
    (tmp_path / file).write_text(text)
    assert asked_anew(gate, kept) == asked


def test_module_found_elsewhere_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link pointed elsewhere, a module that appears and another path count as an edit does."""
    own = SPLIT["own.py"]
    for module in ("local_sizes", "kernels.local"):
        own += f"try:\n    import {module}\nexcept ImportError:\n    pass\n"
    for release in ("one", "two", "three"):
        (tmp_path / release / "kernels").mkdir(parents=True)
        (tmp_path / release / "kernels" / "known.py").write_text("")
        (tmp_path / release / "sizes.py").write_text(f"ROUNDS = '{release}'\n")
        shutil.copy(DOORBELL, tmp_path / release)
        (tmp_path / release / "own.py").write_text(own)
    gate, kept = tmp_path / "g.yaml", tmp_path / "kept"
    gate.write_text("obligations: [{protocol: 'now/own.py:Own', rounds: 1}]")
    now = tmp_path / "now"

    def asked() -> tuple[int, int]:
        found = []
        for _ in range(2):
            for name in ("own", "sizes", "doorbell", "local_sizes", "kernels", "kernels.local"):
                sys.modules.pop(name, None)
            found.append(asked_anew(gate, kept))
        return found[0], found[1]

    def point(link: Path, at: Path) -> None:
        link.unlink(missing_ok=True)
        link.symlink_to(at)

    monkeypatch.chdir(tmp_path)
    point(now, tmp_path / "one")
    assert asked() == (1, 0)
    point(now, tmp_path / "two")
    assert asked() == (1, 0)
    point(now / "sizes.py", tmp_path / "three" / "sizes.py")
    assert asked() == (1, 0)
    for module in (now / "local_sizes.py", now / "kernels" / "local.py"):
        module.write_text("")
        assert asked() == (1, 0)
    (now / "sizes.py").unlink()
    for release in ("one", "three"):
        with monkeypatch.context() as patch:
            patch.syspath_prepend(tmp_path / release)
            assert asked() == (1, 0)


@pytest.mark.parametrize(
    "reads",
    ["pathlib.Path('d.txt').read_text()", "runpy.run_path('d.txt')['x']"],
    ids=("as data", "as code"),
)
def test_file_that_a_protocol_reads_counts_too(
    reads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is opened while the file is imported is a source as it is."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOORBELL, tmp_path)
    gate, kept, data = tmp_path / "g.yaml", tmp_path / "kept", tmp_path / "d.txt"
    gate.write_text("obligations: [{protocol: 'own.py:Own', rounds: 1}]")
    text = (
        "import pathlib, runpy\nfrom doorbell import Doorbell\nclass Own(Doorbell):\n    'Mine.'\n"
    )
    (tmp_path / "own.py").write_text(f"{text}    x = {reads}\n")
    monkeypatch.delitem(sys.modules, "doorbell", raising=False)
    for number in range(2):
        data.write_text(f"x = {number}")
        assert (asked_anew(gate, kept), asked_anew(gate, kept)) == (1, 0)


def test_edit_while_the_answer_is_sought_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer rests on what was read, not on what the file holds when the answer is there."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOORBELL, tmp_path)
    gate, kept = tmp_path / "g.yaml", tmp_path / "kept"
    gate.write_text("obligations: [{protocol: doorbell.py}]")
    asking = worker.ask

    def edited(*given: Any) -> Any:
        with Path("doorbell.py").open("a") as file:
            file.write("# edited\n")
        return asking(*given)

    with monkeypatch.context() as patch:
        patch.setattr(worker, "ask", edited)
        assert asked_anew(gate, kept) == 1
    assert (asked_anew(gate, kept), asked_anew(gate, kept)) == (1, 0)


def test_engine_and_damage_and_budget_count_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another engine, an entry that is damaged, and what a budget left open are asked again."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOORBELL, tmp_path)
    gate, kept = tmp_path / "g.yaml", tmp_path / "kept"
    gate.write_text("obligations: [{protocol: doorbell.py}]")
    assert (asked_anew(gate, kept), asked_anew(gate, kept)) == (1, 0)
    monkeypatch.setattr(caching, "engine_version", lambda: "another")
    assert (asked_anew(gate, kept), asked_anew(gate, kept)) == (1, 0)
    shutil.rmtree(kept)
    assert (asked_anew(gate, kept), asked_anew(gate, kept)) == (1, 0)
    for damage in ("", "[]", "{}", '{"sources": {"/x": ""}, "answer": {}}', "\x00"):
        for entry in kept.rglob("*.json"):
            entry.write_text(damage)
        assert (asked_anew(gate, kept), asked_anew(gate, kept)) == (1, 0), damage
    for entry in kept.rglob("*.json"):
        data = json.loads(entry.read_text())
        data["answer"]["verdict"]["properties"] = "proved"
        entry.write_text(json.dumps(data))
    assert asked_anew(gate, kept) == 1
    gate.write_text("obligations: [{protocol: doorbell.py, engine: reduced, budget: {states: 3}}]")
    assert (asked_anew(gate, kept), asked_anew(gate, kept)) == (1, 1)


def test_engine_version_covers_the_engines_and_not_the_protocols() -> None:
    """A change of a protocol asks that protocol again, one of an engine asks everything."""
    files = {str(f.relative_to(r)) for r, each in caching._engine_files() for f in each}
    assert {"system.py", "explicit/search.py", "engines.py", "gate/worker.py"} <= files
    assert not files & {"sp.py", "counts.py", "terminal.py"}


# Judging


@pytest.mark.parametrize(
    ("expected", "found", "standing"),
    [
        ({ALL: "proved"}, gates.verdict(Answer.PROVED), Standing.HELD),
        ({ALL: "proved"}, gates.verdict(Answer.VIOLATED), Standing.UNEXPECTED),
        ({ALL: "proved"}, gates.verdict(Answer.UNDECIDED), Standing.UNDECIDED),
        ({ALL: "proved"}, gates.verdict(Answer.BROKEN), Standing.BROKEN),
        ({ALL: "violated"}, gates.verdict(Answer.VIOLATED), Standing.HELD),
        ({ALL: "violated"}, gates.verdict(Answer.PROVED), Standing.UNEXPECTED),
        ({ALL: "violated"}, gates.verdict(Answer.UNDECIDED), Standing.UNDECIDED),
        ({ALL: "violated"}, gates.verdict(Answer.BROKEN), Standing.BROKEN),
        ({ALL: "not decided"}, gates.verdict(Answer.UNDECIDED), Standing.HELD),
        ({ALL: "not decided"}, gates.verdict(Answer.PROVED), Standing.UNEXPECTED),
        ({"happens-before": "violated"}, gates.verdict(Answer.VIOLATED), Standing.HELD),
        ({"happens-before": "proved"}, gates.verdict(Answer.PROVED), Standing.HELD),
        ({"happens-before": "proved"}, gates.verdict(Answer.VIOLATED), Standing.UNEXPECTED),
        ({"happens-before": "violated"}, gates.verdict(Answer.PROVED), Standing.UNEXPECTED),
        ({"deadlock-free": "violated"}, gates.verdict(Answer.VIOLATED), Standing.UNEXPECTED),
        ({"deadlock-free": "proved"}, gates.verdict(Answer.UNDECIDED), Standing.UNDECIDED),
        (
            {"happens-before": "violated", "deadlock-free": "proved"},
            gates.verdict(Answer.VIOLATED),
            Standing.UNDECIDED,
        ),
        ({ALL: "proved"}, gates.verdict(Answer.VIOLATED, property="reached"), Standing.UNEXPECTED),
        ({"reached": "violated"}, gates.verdict(Answer.PROVED), Standing.UNEXPECTED),
        ({"reached": "proved"}, gates.verdict(Answer.PROVED), Standing.HELD),
        ({"race-free": "proved"}, gates.verdict(Answer.PROVED), Standing.UNDECIDED),
    ],
)
def test_verdict_is_held_to_what_is_expected(
    expected: dict[str, str], found: Any, standing: Standing
) -> None:
    """Whatever is not exactly as expected is not held, and says why."""
    asked = Obligation("x", "sp", "", expected)
    judged, why = judge(asked, found)
    assert judged is standing
    assert bool(why) == (standing is not Standing.HELD)


def test_violation_elsewhere_is_another_violation() -> None:
    """With ``at`` a failure that shows at another line is unexpected."""
    found = gates.verdict(Answer.VIOLATED)
    assert judge(gates.obligation("x", "violated", "wait_until(slot"), found)[0] is Standing.HELD
    judged, why = judge(gates.obligation("x", "violated", "load"), found)
    assert judged is Standing.UNEXPECTED and "'load'" in why
    without = gates.verdict(Answer.VIOLATED, property="reached")
    judged, why = judge(gates.obligation("x", "violated", "load"), without)
    assert judged is Standing.UNEXPECTED and "no line" in why


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ((gates.PROOF, gates.REFUTED), 0),
        ((gates.PROOF, gates.UNDECIDED), 3),
        ((gates.UNDECIDED, gates.SURVIVOR), 1),
        ((gates.SURVIVOR, gates.REFUSED), 2),
        ((gates.REFUSED, gates.CRASH, gates.VIOLATION), 4),
    ],
)
def test_exit_code(results: tuple[Result, ...], code: int) -> None:
    """4 before 2 before 1 before 3 before 0."""
    assert GateReport("g", results).code == code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_says_what_was_covered_and_leaves_nothing_running(
    number: int, code: int, tmp_path: Path
) -> None:
    """The obligation that was done keeps its verdict, the other one is not decided."""
    shutil.copy(DOORBELL, tmp_path)
    (tmp_path / "marks.py").write_text(
        f"import os\n{HEADER}open('pid', 'w').write(str(os.getpid()))\nwhile True:\n    pass\n"
    )
    gate = "obligations: [{protocol: doorbell.py, rounds: 1}, {protocol: marks.py}]"
    (tmp_path / "g.yaml").write_text(gate)
    command = [sys.executable, "-m", "syncproof", "gate", "g.yaml", "--no-cache", "--workers", "1"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, preexec_fn=heeds_interrupts
    ) as running:
        pid = tmp_path / "pid"
        while running.poll() is None and not (pid.exists() and pid.read_text()):
            time.sleep(0.05)
        running.send_signal(number)
        said, _ = running.communicate()
    assert running.returncode == code
    assert "gate: undecided obligations=2 expected=1" in said and "interrupted" in said
    with pytest.raises(ProcessLookupError):
        for _ in range(200):
            os.kill(int(pid.read_text()), 0)
            time.sleep(0.05)


# Baseline and kernels


def kept(**more: Any) -> dict[str, Any]:
    """What a baseline says of an obligation: two properties proved in 100 states."""
    properties = {"deadlock-free": "proved", "happens-before": "proved"}
    return {"properties": properties, "states": 100, **more}


@pytest.mark.parametrize(
    ("result", "before", "kinds"),
    [
        (gates.PROOF, kept(), set()),
        (gates.PROOF, kept(states=11), set()),
        (gates.PROOF, kept(states=10), {"growth"}),
        (gates.UNDECIDED, kept(), {"lost proof"}),
        (gates.VIOLATION, kept(), {"new violation", "lost proof"}),
        (gates.CRASH, kept(), {"lost proof"}),
        (gates.PROOF, kept(properties={"happens-before": "violated"}), set()),
    ],
)
def test_what_is_worse_than_the_baseline(result: Result, before: Any, kinds: set[str]) -> None:
    """New violations, lost proofs, states that grew tenfold; what became better is no remark."""
    report = GateReport("g", (result,))
    found = list(worse(report, {result.obligation.name: before}))
    assert {each.kind for each in found} == kinds
    assert all(each.fails for each in found)


def test_obligation_that_is_gone_and_one_that_is_new() -> None:
    """A proof that nobody asks for any more is lost; a new obligation has nothing to lose."""
    report = GateReport("g", (gates.PROOF,))
    assert [each.kind for each in worse(report, {"another": kept()})] == ["gone"]
    assert list(worse(report, {})) == []


def test_baseline_and_kernels_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """A gate's own JSON is its baseline; a kernel that changed is said, and fails if strict."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOORBELL, tmp_path)
    Path("k.cu").write_text("a")
    digest = sha256_of(Path("k.cu"))
    gate = Path("g.yaml")
    gate.write_text(
        f"obligations: [{{protocol: doorbell.py, kernels: [{{file: k.cu, sha256: '{digest}'}}]}}]"
    )
    command = ["gate", "g.yaml", "--cache", "kept", "-q"]
    assert run([*command, "--json", "b.json", "--strict-kernels"]) == 0
    assert run([*command, "--baseline", "b.json"]) == 0
    Path("k.cu").write_text("b")
    assert run(command) == 0
    assert "k.cu is now sha256" in capsys.readouterr().out
    assert run([*command, "--strict-kernels"]) == 1
    gate.write_text("obligations: [{protocol: doorbell.py, set: {fence: no}, expect: violated}]")
    assert run(command) == 0
    assert run([*command, "--baseline", "b.json"]) == 1
    assert "gone: doorbell.py" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        (b"[]", "b.json: is no baseline (what check-protocol gate --json wrote)"),
        (b'{"schema": 1, "kind": "verdict"}', "b.json: is no baseline"),
        (b'{"schema": 2, "kind": "gate"}', "b.json: is no baseline"),
        (b'{"schema": 1, "kind": "gate"}', "b.json: obligations are malformed"),
        (b'{"schema": 1, "kind": "gate", "obligations": [{"name": 1}]}', "are malformed"),
        (
            b'{"schema": 1, "kind": "gate", "obligations": [{"name": "a", "verdict":'
            b' {"states": "9"}}]}',
            "are malformed",
        ),
        (b'{"schema": 1,\n "kind": }', "b.json:2:10: is no JSON: Expecting value"),
        (b"\xff\xfe", "b.json: is no JSON: 'utf-8' codec"),
        (b"[" * 100_000, "b.json: is no JSON: "),
        (b"", "b.json:1:1: is no JSON"),
    ],
)
def test_baseline_that_is_none_is_refused_in_one_line(
    content: bytes, pattern: str, small: list[str], capsys: Captured
) -> None:
    """Before the work: what is wrong, where, and what would be right."""
    Path("b.json").write_bytes(content)
    assert run([*small, "--baseline", "b.json"]) == 2
    said = capsys.readouterr()
    assert pattern in said.err and said.err.count("\n") == 1 and said.out == ""


# Files


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command for a gate with one obligation."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    shutil.copy(DOORBELL, tmp_path)
    Path("g.yaml").write_text("obligations: [{protocol: doorbell.py}]")
    return ["gate", "g.yaml", "--no-cache", "-q"]


def test_full_disk_leaves_no_half_written_file(
    small: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """One clear line, and neither a file nor a part of one."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run([*small, "--out", "reports"]) == 2
    said = capsys.readouterr().err
    assert "gate.json: cannot be written: No space left on device" in said
    assert list(Path("reports").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        (["--out", "g.yaml/reports"], "--out g.yaml/reports: cannot be made"),
        (["--junit", "no/j.xml"], "--junit: there is no folder no"),
        (["--sarif", "."], "--sarif: . is a folder"),
        (["--json", "-", "--junit", "-"], "two outputs are standard output"),
        (["--only", "nothing*"], "--only: no obligation has such a name"),
        (["--baseline", "none.json"], "none.json: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_work(
    options: list[str], pattern: str, small: list[str], capsys: Captured
) -> None:
    """One line and exit code 2."""
    assert run([*small, *options]) == 2
    said = capsys.readouterr()
    assert pattern in said.err and said.err.count("\n") == 1 and said.out == ""


def test_cache_that_cannot_be_written_is_said_and_costs_nothing_else(
    small: list[str], capsys: Captured
) -> None:
    """The verdict does not depend on whether it can be kept."""
    command = [each for each in small if each != "--no-cache"]
    assert run([*command, "--cache", "g.yaml/kept"]) == 0
    assert "nothing is kept: Not a directory" in capsys.readouterr().err


def test_all_numbers_of_rounds_are_an_obligation(small: list[str], capsys: Captured) -> None:
    """Proved and refuted for every number of rounds at once; what that does not cover is said."""
    Path("g.yaml").write_text(
        "defaults: {protocol: sp, rounds: unbounded, routing: balanced}\n"
        "obligations: [{ranks: 2}, {mutants: [no-quiet@counts.py:134, windows=1]},"
        " {protocol: doorbell.py, engine: reduced}]"
    )
    assert run([*small, "--json", "g.json"]) == 2
    rows = json.loads(Path("g.json").read_text())["obligations"]
    assert [each["standing"] for each in rows] == [*["as expected"] * 3, "bad input"]
    assert [each["verdict"]["engine"] for each in rows[:3]] == ["quotient"] * 3
    assert [each["verdict"]["answer"] for each in rows[:3]] == ["proved", "violated", "violated"]
    assert "--rounds unbounded with --engine reduced" in rows[3]["message"]
    check_protocol("sp", rounds="unbounded", routing="balanced")


def test_summary_is_added_to_what_others_have_written(
    small: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """$GITHUB_STEP_SUMMARY is a file of the whole job."""
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    assert run(small) == 0
    assert Path("summary.md").read_text().startswith("before\n## Proof gate: green\n")


def test_markup_is_shown_and_never_obeyed() -> None:
    """Names, files and messages with HTML, Markdown or control characters are text."""
    page = gate_page(gates.WHOLE, {gates.MARKUP: [("trace", "x.json")]})
    assert "<script" not in page.lower() and "&lt;script&gt;alert(1)" in page
    assert "default-src 'none'" in page
    text = markdown(gates.WHOLE)
    assert "<script" not in text and "\\`a\\`" in text and "\\[b\\]\\(c\\)" in text
    for shown in (page, text):
        assert not any(c in shown for c in "\x1b\x07\udcff")
        shown.encode()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == len(gates.EACH) + 1
    assert {line.replace("\\|", "").count("|") for line in rows} == {7}
