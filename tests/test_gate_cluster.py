"""``check-protocol gate --cluster`` on a real Dask cluster of two workers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from syncproof.cli import run
from syncproof.cluster import ClusterExecutor, cluster_at
from syncproof.gate import apart
from syncproof.gate.apart import answer_apart, job_data, job_from
from syncproof.gate.cache import Cache
from syncproof.gate.file import read_gate
from syncproof.gate.obligations import tasks_of
from syncproof.gate.run import Gate
from syncproof.gate.worker import Job
from syncproof.models.gate import Obligation, Result, Standing
from syncproof.models.mutants import Mutant
from syncproof.models.operations import Kind
from syncproof.request import Request
from tests.clusters import cluster_of_two

DOORBELL = Path(__file__).parent / "data" / "doorbell.py"
GATE = """
defaults: {rounds: 2, fabric: [cm384]}
obligations:
  - {protocol: doorbell.py}
  - {protocol: doorbell.py, set: {fence: no}, expect: {happens-before: violated}, at: load}
  - {protocol: leaves.py}
  - {protocol: doorbell.py, name: each, mutants: ['no-fence@doorbell.py:26']}
"""
HEADER = "from syncproof.models.protocol import Protocol, role\n"
LEAVES = f"import os\n{HEADER}print('on the way')\nos._exit(7)\n"
NEVER = f"{HEADER}while True:\n    pass\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A gate file with protocols that hold, that do not, that leave and that never end."""
    shutil.copy(DOORBELL, tmp_path / "doorbell.py")
    (tmp_path / "leaves.py").write_text(LEAVES)
    (tmp_path / "never.py").write_text(NEVER)
    (tmp_path / "gate.yaml").write_text(GATE)
    return tmp_path


def test_a_job_travels_as_plain_data() -> None:
    """A job that went through JSON is the same job."""
    mutant = Mutant("no-put@x.py:3", "text", kind=Kind.PUT)
    job = Job(Request("sp", settings=("windows=1",), budget_seconds=2.5), "/folder", 3, mutant)
    assert job_from(json.loads(json.dumps(job_data(job)))) == job


def test_a_child_that_prints_answers_all_the_same(folder: Path) -> None:
    """What a protocol prints while it is loaded does not get between the answer."""
    (folder / "loud.py").write_text("print('{')\n" + DOORBELL.read_text())
    found = answer_apart(Job(Request("loud.py", rounds=1), str(folder)))
    assert found["verdict"]["kind"] == "verdict"


def test_a_child_that_does_not_end_is_late(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that outlasts its budget is stopped, and the answer names the budget."""
    monkeypatch.setattr(apart, "GRACE", 0.1)
    found = answer_apart(Job(Request("never.py", budget_seconds=0.1), str(folder)))
    assert "raise budget seconds" in found["late"]


WORKER = (
    "import sys\nfrom syncproof.gate.apart import answer_apart\n"
    "from syncproof.gate.worker import Job\nfrom syncproof.request import Request\n"
    "answer_apart(Job(Request('marks.py'), sys.argv[1]))"
)


def test_a_child_ends_with_its_worker(folder: Path) -> None:
    """A worker that is killed in the middle of a job leaves nothing running."""
    pid = folder / "pid"
    (folder / "marks.py").write_text(
        f"import os\n{HEADER}open({str(pid)!r}, 'w').write(str(os.getpid()))\n"
        "while True:\n    pass\n"
    )
    with subprocess.Popen([sys.executable, "-c", WORKER, str(folder)]) as running:
        while running.poll() is None and not (pid.exists() and pid.read_text()):
            time.sleep(0.05)
        running.kill()
    with pytest.raises(ProcessLookupError):
        for _ in range(200):
            os.kill(int(pid.read_text()), 0)
            time.sleep(0.05)


@pytest.mark.outside("dask")
def test_the_cluster_says_what_this_machine_says(folder: Path) -> None:
    """Each obligation stands on the cluster as it does here, a crash included."""
    words = ["gate", str(folder / "gate.yaml"), "--no-cache", "-q", "--json"]
    here = run([*words, str(folder / "here.json")])
    with cluster_of_two() as cluster:
        address = cluster.scheduler_address
        there = run([*words, str(folder / "there.json"), "--cluster", address])
    stood = [_standings(folder / name) for name in ("here.json", "there.json")]
    assert here == there
    assert stood[0] == stood[1]
    assert set(stood[0].values()) == {"as expected", "error"}


def _standings(file: Path) -> dict[str, str]:
    return {each["name"]: each["standing"] for each in json.loads(file.read_text())["obligations"]}


@pytest.mark.outside("dask")
def test_nobody_there_is_not_decided(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no cluster answers nothing is decided: exit code 3, with the address."""
    words = ["gate", str(folder / "gate.yaml"), "--no-cache", "--only", "doorbell*"]
    assert run([*words, "--cluster", "tcp://127.0.0.1:9"]) == 3
    assert "no cluster answers at tcp://127.0.0.1:9" in " ".join(capsys.readouterr().out.split())


class BreaksOff:
    """A client, and the future of its job, whose connection breaks with the answer on the way."""

    def submit(self, *_: Any, **__: Any) -> BreaksOff:
        """The future of a job."""
        return self

    def add_done_callback(self, told: Callable[[BreaksOff], None]) -> None:
        """It is done at once."""
        told(self)

    def result(self, timeout: float) -> None:
        """There is none."""
        raise TimeoutError(f"{timeout:g} s")

    def close(self, timeout: float) -> None:
        """Closed already."""


def test_a_job_whose_answer_breaks_off_is_lost(folder: Path) -> None:
    """An answer that never arrives leaves its obligation undecided, and the gate goes on."""
    (folder / "gate.yaml").write_text("obligations:\n  - {protocol: doorbell.py}\n")
    tasks = tasks_of(read_gate(folder / "gate.yaml"))
    cluster = BreaksOff()
    executor = ClusterExecutor(cluster)
    gate = Gate(executor, answer_apart, Cache(None), folder, 2, Closing(cluster), (OSError,))
    (lost,) = gate.run(tasks)
    assert lost.standing is Standing.UNDECIDED
    assert "lost with its worker: TimeoutError: 60 s" in lost.message


class Closing:
    """Closes the cluster when the first result is there."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.results: list[Result] = []

    def planned(self, obligation: Obligation) -> None:
        """Not looked at."""

    def done(self, result: Result) -> None:
        if not self.results:
            self.cluster.close(timeout=5)
        self.results.append(result)


@pytest.mark.outside("dask")
def test_a_cluster_that_dies_leaves_what_it_answered(folder: Path) -> None:
    """What was answered before the cluster went away counts; the rest is undecided, and says so."""
    lines = "\n".join(f"  - {{protocol: doorbell.py, rounds: {n}}}" for n in range(1, 5))
    (folder / "gate.yaml").write_text(f"obligations:\n{lines}\n")
    tasks = tasks_of(read_gate(folder / "gate.yaml"))
    with (
        cluster_of_two() as cluster,
        cluster_at(cluster.scheduler_address) as (executor, losses),
    ):
        closing = Closing(cluster)
        gate = Gate(executor, answer_apart, Cache(None), folder, 2, closing, losses)
        results = gate.run(tasks)
    assert len(results) == 4
    assert closing.results[0].verdict is not None
    lost = [each for each in results if each.standing is Standing.UNDECIDED]
    assert lost and all("lost with its worker" in each.message for each in lost)
