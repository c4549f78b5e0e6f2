"""The commands beside check: show, replay, list, init and doctor."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from syncproof.cli import run
from syncproof.registry import built_ins, find

DATA = Path(__file__).parent / "data"
DOORBELL = str(DATA / "doorbell.py")

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The width and colour of the terminal that the tests run on do not matter."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


# Traces: show and replay


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    """A user's protocol and the trace of its failure."""
    protocol, trace = tmp_path / "bell.py", tmp_path / "t.json"
    source = Path(DOORBELL).read_text()
    protocol.write_text(source.replace("if self.fence:", "if self.fence and round:"))
    assert run([str(protocol), "-q", "--trace", str(trace)]) == 1
    return protocol, trace


def test_show_does_not_need_the_protocol(recorded: tuple[Path, Path], capsys: Captured) -> None:
    """A trace is shown where its protocol is gone."""
    protocol, trace = recorded
    protocol.unlink()
    capsys.readouterr()
    assert run(["show", str(trace)]) == 0
    out = capsys.readouterr().out
    assert "happens-before is violated" in out and "await core.load(self.slot[1]" in out


def test_replay_reproduces_until_the_protocol_is_mended(
    recorded: tuple[Path, Path], capsys: Captured
) -> None:
    """``replay`` exits 1 while the fault is there and 0 when it is not."""
    protocol, trace = recorded
    assert run(["replay", str(trace)]) == 1
    said = capsys.readouterr()
    assert "reproduced" in said.out and f"imports {protocol}" in said.err
    protocol.write_text(Path(DOORBELL).read_text())
    assert run(["replay", str(trace)]) == 0
    assert "not reproduced" in capsys.readouterr().out


def test_mutant_is_refuted_and_its_trace_replays(tmp_path: Path, capsys: Captured) -> None:
    """``show`` lists mutants by source line, ``--mutant`` checks one, ``replay`` applies it."""
    assert run(["show", DOORBELL]) == 0
    names = re.findall(r"no-fence@doorbell\.py:\d+", capsys.readouterr().out)
    assert len(names) == 1
    trace = tmp_path / "t.json"
    assert run([DOORBELL, "--mutant", names[0], "-q", "--trace", str(trace)]) == 1
    assert "property=happens-before" in capsys.readouterr().out
    assert run(["replay", str(trace)]) == 1


def test_verdict_file_is_shown_as_it_was_printed(tmp_path: Path, capsys: Captured) -> None:
    """``show`` of a verdict gives the report of the check, but for the lines around it."""
    file = tmp_path / "v.json"
    assert run([DOORBELL, "--set", "fence=no", "--json", str(file)]) == 1
    printed = capsys.readouterr().out
    assert run(["show", str(file)]) == 0
    shown = capsys.readouterr().out
    assert shown.strip() in printed


# The other commands


def test_list_names_every_protocol_once(capsys: Captured) -> None:
    """``list`` has a line for each built-in protocol; found by module or scan."""
    assert run(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, kind in built_ins().items():
        assert sum(line.startswith(f"{name} ") for line in lines) == 1
        assert kind.__module__.startswith("syncproof.protocols.")
    assert "sp" in built_ins()


def test_list_long_adds_settings_and_assumptions(capsys: Captured) -> None:
    """``list --long`` names what can be varied."""
    assert run(["list", "--long"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"settings: .*windows", out) and "assumptions: " in out
    assert "roles: sender, receiver" in out


def test_show_tells_what_a_protocol_is_made_of(capsys: Captured) -> None:
    """``show`` gives docstring, settings with default and value, roles, memory and mutants."""
    assert run(["show", DOORBELL, "--rounds", "1", "--set", "fence=no"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "One slot, a doorbell that counts messages" in out
    assert re.search(r"fence +no \(default yes\) +a fence between .*\(yes or no\)", out)
    assert re.search(r"producer +1 core on rank 0", out)
    assert re.search(r"slot\[1\] +512 B: lead 32, rest 480 +starts as 0", out)
    assert "no-fence@" not in out and re.search(r"no-quiet@doorbell\.py:\d+", out)


def test_init_writes_a_protocol_that_checks(tmp_path: Path, capsys: Captured) -> None:
    """The skeleton is proved as it is and refuted where it says that it will be."""
    file = str(tmp_path / "my_kernel.py")
    assert run(["init", file]) == 0
    assert "class MyKernel(Protocol)" in Path(file).read_text()
    assert run([file, "-q"]) == 0
    assert run([file, "-q", "--set", "fence=no"]) == 1
    assert run([file, "-q", "--drop", "acknowledged"]) == 1


def test_doctor_names_what_is_there_and_what_for(capsys: Captured) -> None:
    """``doctor`` lists Python, packages and programs, each with a version or as missing."""
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    for name in ("Python", "z3-solver", "numba", "SPIN", "Java", "TLC", "Apalache", "Chromium"):
        assert re.search(rf"^{name} +(not here|\d)", out, re.MULTILINE), name


def test_protocol_of_another_package_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """An installed package adds protocols through the entry point group."""
    information = tmp_path / "others-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    entries = "[syncproof.protocols]\nbell = their_bell:Doorbell\nbroken = their_bell:Nothing\n"
    (information / "entry_points.txt").write_text(entries)
    (tmp_path / "their_bell.py").write_text(Path(DOORBELL).read_text())
    monkeypatch.syspath_prepend(tmp_path)
    assert run(["bell", "-q"]) == 0
    assert capsys.readouterr().out.startswith("bell: proved")
    assert run(["list"]) == 0
    assert re.search(r"^bell +their_bell:Doorbell, from others", capsys.readouterr().out, re.M)
    assert run(["broken"]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(r".*entry point broken = their_bell:Nothing: does not load.*\n", said)


def test_free_choices_are_resolved_again_by_show_and_replay(
    tmp_path: Path, capsys: Captured
) -> None:
    """A protocol whose roles choose can be shown, and its traces name what was chosen."""
    assert run(["show", "sp", "--rounds", "1"]) == 0
    assert re.search(r"no-wait-until@counts\.py:\d+", capsys.readouterr().out)
    trace = tmp_path / "t.json"
    one_window = ["sp", "--set", "windows=1", "--rounds", "2", "--engine", "reduced"]
    assert run([*one_window, "-q", "--trace", str(trace)]) == 1
    assert run(["replay", str(trace)]) == 1


@pytest.mark.parametrize(
    ("module", "folder"), [("sizes", "own"), ("kernels.sizes", "own"), ("sizes", "elsewhere")]
)
def test_bytecode_of_an_earlier_text_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, folder: str
) -> None:
    """A protocol and what it imports are as they are now, even if size and time of the file are as
    they were, by which Python tells whether the bytecode that it keeps is of this text."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(tmp_path / folder)
    text = (
        "from syncproof.models.protocol import Protocol, role\n"
        f"from {module} import SIZE\n"
        "class One(Protocol):\n    '''{}'''\n    size = SIZE\n    @role\n"
        "    async def only(self, core): await core.quiet()\n"
    )
    one = tmp_path / "own" / "one.py"
    sizes = tmp_path / folder / f"{module.replace('.', '/')}.py"
    for file in (one, sizes):
        file.parent.mkdir(parents=True, exist_ok=True)
    found = []
    for word in ("this", "that"):
        for file, content in ((one, text), (sizes, "SIZE = '{}'\n")):
            file.write_text(content.format(word))
            os.utime(file, (1_000_000, 1_000_000))
        kind: Any = find(str(one)).kind
        found.append((kind.__doc__, kind.size))
        del sys.modules[module]
    assert found == [("this", "this"), ("that", "that")]
