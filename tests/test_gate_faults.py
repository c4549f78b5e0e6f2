"""The shipped gate turns red, with protocol, property and line, for one-line faults in protocols.

The faults are planted into a copy of the package. What each of them breaks, and at which line it
must show, follows from what the line is for, not from what the gate has said.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from syncproof.gate.file import read_gate, shipped_gate
from syncproof.gate.obligations import tasks_of

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Fault:
    """A line of a protocol's file that becomes another one, and what must be said of it.

    ``obligation`` is one that turns red, by one of ``properties``, at a line of ``shows_in`` that
    holds ``at``. No fault touches what another protocol of the list uses.
    """

    protocol: str
    file: str
    line: str
    fault: str
    obligation: str
    properties: tuple[str, ...]
    shows_in: str
    at: str


STALE = ("happens-before",)
FAULTS = (
    Fault(  # A block is not covered again: in round 2 the token of round 0 is taken.
        "sp", "sp.py", "await self.give_back(core, source, token, round)", "pass",
        "sp ranks=2", STALE, "protocols/sp.py", "wait_until(slot",
    ),
    Fault(  # The flag overtakes its token.
        "sw", "sw.py", 'await core.quiet(at=f"{KERNEL}:852")', "pass",
        "sw ranks=2", STALE, "protocols/sw.py", "await core.load(",
    ),
    Fault(  # A flag is not reset: in round 2 that of round 0 is taken for it.
        "tff", "tff.py", "await self.give_back(core, source, token, round)", "pass",
        "tff ranks=2", STALE, "protocols/tff.py", "await core.load(",
    ),
    Fault(  # Every batch is held to be complete.
        "dc", "dc.py", "return bool(found == self.checksum_of(leads, round))", "return True",
        "dc ranks=2", STALE, "protocols/dc.py", "await core.load(slot)",
    ),
    Fault(  # A core tells that tokens are there which another one has not sent.
        "bsp", "bsp.py", 'met = await self.sync_all(core, met, at=f"{KERNEL}:594")', "pass",
        "bsp ranks=2", STALE, "protocols/output.py", "await core.load(",
    ),
    Fault(  # The number of the round is missing in a token: it is waited for in vain.
        "cumsum", "cumsum.py",
        'block = {"flag": round + 1, "payload": core.payload(peer, token, round)}',
        'block = {"flag": 1, "payload": core.payload(peer, token, round)}',
        "cumsum ranks=2", ("deadlock-free",), "protocols/cumsum.py", "await core.wait_until(",
    ),
    Fault(  # The experts read what another core has not placed.
        "ubep", "ubep.py", "await core.kernel_end()", "pass",
        "ubep ranks=2 data=dc", STALE, "protocols/output.py", "await core.load(",
    ),
    Fault(  # A rank leaves before the others have come.
        "barrier", "barrier.py", "await core.wait_until(mine, lambda seen: seen >= epoch)",
        "await core.wait_until(mine, lambda seen: seen >= 0)",
        "barrier ranks=2", ("checks",), "protocols/barrier.py", "seen >= 0",
    ),
    Fault(  # A flag that is not cleared lets a rank through; the quiet is the last step before.
        "barrier", "barrier.py", "await core.put(mine, 0)", "pass",
        "barrier ranks=2 scheme=reset_two_slots", ("checks",), "protocols/barrier.py",
        "await core.quiet()",
    ),
    Fault(  # A trigger overtakes the data that it is about.
        "taskflow", "taskflow.py", "await core.quiet(at=at)", "pass",
        "taskflow ranks=2", ("checks",), "protocols/taskflow.py", "await core.load(",
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package whose protocols can be spoilt."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        ROOT / "syncproof", root / "syncproof", ignore=shutil.ignore_patterns("__pycache__")
    )
    return root


def plant(root: Path, fault: Fault) -> None:
    """Write the fault over the first line that is as it says."""
    file = root / "syncproof" / "protocols" / fault.file
    lines = file.read_text().splitlines()
    number = next(i for i, line in enumerate(lines) if line.strip() == fault.line)
    lines[number] = lines[number].replace(fault.line, fault.fault)
    file.write_text("\n".join(lines) + "\n")


def gate(root: Path, *options: str) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """Exit code, JSON and SARIF results of the shipped gate, asked of the copy."""
    command = [sys.executable, "-m", "syncproof", "gate", "-q", "--out", "reports", *options]
    ended = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True
    )
    data = json.loads((root / "reports" / "gate.json").read_text())
    found = json.loads((root / "reports" / "gate.sarif").read_text())
    return ended.returncode, data, found["runs"][0]["results"]


def noticed(fault: Fault, data: dict[str, Any], results: list[dict[str, Any]], root: Path) -> None:
    """The obligation is red by the right property, and the review points to the right line."""
    (row,) = [each for each in data["obligations"] if each["name"] == fault.obligation]
    assert (row["protocol"], row["standing"]) == (fault.protocol, "unexpected"), row
    told = [r for r in results if r["message"]["text"].startswith(f"{fault.obligation}: ")]
    assert [each["ruleId"] for each in told] == [f"syncproof/{told_property(row, fault)}"]
    place = told[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == fault.shows_in
    line = (root / "syncproof" / fault.shows_in).read_text().splitlines()
    assert fault.at in line[place["region"]["startLine"] - 1]


def told_property(row: dict[str, Any], fault: Fault) -> str:
    (name,) = [p for p, answer in row["verdict"]["properties"].items() if answer == "violated"]
    assert name in fault.properties and row["message"].startswith(f"{name} is violated at ")
    return str(name)


def test_ten_faults_turn_the_gate_red(copy: Path) -> None:
    """Each in a protocol, or a scheme, of its own, so that one run shows that all are noticed."""
    assert len(FAULTS) == 10
    for fault in FAULTS:
        plant(copy, fault)
    only = [f"--only={fault.obligation}" for fault in FAULTS]
    code, data, results = gate(copy, "--no-cache", *only)
    assert code == 1 and data["answer"] == "red"
    for fault in FAULTS:
        noticed(fault, data, results, copy)


def test_faults_are_in_what_the_gate_asks() -> None:
    """The obligations that have to notice are those of the shipped file."""
    names = {task.obligation.name for task in tasks_of(read_gate(shipped_gate()))}
    assert {fault.obligation for fault in FAULTS} <= names


@pytest.mark.long
def test_shipped_gate_is_green_and_each_fault_alone_turns_it_red(tmp_path: Path) -> None:
    """The whole gate, before and with each fault: what does not use the protocol stays green."""
    shutil.copytree(
        ROOT / "syncproof", tmp_path / "syncproof", ignore=shutil.ignore_patterns("__pycache__")
    )
    code, data, _ = gate(tmp_path, "--cache", "kept")
    mutants = [each for each in data["obligations"] if "--mutant" in each["command"]]
    assert code == 0 and len(mutants) >= 40
    for fault in FAULTS:
        file = tmp_path / "syncproof" / "protocols" / fault.file
        sound = file.read_text()
        plant(tmp_path, fault)
        code, data, results = gate(tmp_path, "--cache", "kept")
        assert code in (1, 2, 4), fault
        noticed(fault, data, results, tmp_path)
        red = {
            each["protocol"]
            for each in data["obligations"]
            if each["standing"] not in ("as expected", "not decided")  # a busy machine is slow
        }
        assert red <= {fault.protocol, "ubep"}, fault
        file.write_text(sound)
