"""The files that ``--html``, ``--text``, ``--perfetto`` and ``--mermaid`` write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from syncproof import cli
from syncproof.models.verdict import to_data
from syncproof.reports.mermaid import mermaid_of
from syncproof.reports.page import page_of
from syncproof.reports.perfetto import perfetto_of
from syncproof.reports.plain import WIDTH, text_of
from tests import page_examples
from tests.page_examples import trace_of

KINDS = ("html", "text", "perfetto", "mermaid")
TORN = ["sp", "--rounds", "1", "--routing", "balanced", "--fabric", "cm384,store_atomicity=128"]


def options(folder: Path) -> list[str]:
    """Every kind of file, each by its own name."""
    return [word for kind in KINDS for word in (f"--{kind}", str(folder / kind))]


def test_a_violation_is_written_in_every_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One check writes all files; show and replay draw the same run from its trace alone."""
    drawn, shown, replayed = (tmp_path / name for name in ("drawn", "shown", "replayed"))
    for folder in (drawn, shown, replayed):
        folder.mkdir()
    trace = tmp_path / "t.json"
    assert cli.run([*TORN, "--trace", str(trace), *options(drawn)]) == 1
    assert cli.run(["show", str(trace), *options(shown)]) == 0
    assert cli.run(["replay", str(trace), *options(replayed)]) == 1
    assert "again: check-protocol check sp" in capsys.readouterr().out
    page = (drawn / "html").read_text()
    assert "check-protocol check sp --ranks 2" in page
    assert "overwritten" in page
    assert (drawn / "mermaid").read_text() == (shown / "mermaid").read_text()
    for kind in KINDS:
        assert (shown / kind).read_text() == (replayed / kind).read_text()


def test_a_proof_has_no_diagram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A proof is written as page, text and Perfetto trace; that there is no run is said."""
    assert cli.run(["sp", "--rounds", "1", *options(tmp_path)]) == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["html", "perfetto", "text"]
    assert f"no run to draw in {tmp_path / 'mermaid'}" in capsys.readouterr().err
    assert "proved   happens-before" in (tmp_path / "text").read_text()


def test_a_recorded_verdict_is_drawn(tmp_path: Path) -> None:
    """Show draws verdicts, and comparisons with what each engine says."""
    verdict = tmp_path / "v.json"
    verdict.write_text(json.dumps(to_data(page_examples.torn())))
    assert cli.run(["show", str(verdict), "--html", str(tmp_path / "v.html")]) == 0
    assert "happens-before is violated in 8 steps" in (tmp_path / "v.html").read_text()
    both = [to_data(page_examples.proof()), to_data(page_examples.undecided())]
    data = {"schema": 1, "kind": "comparison", "verdicts": both}
    verdict.write_text(json.dumps(data))
    assert cli.run(["show", str(verdict), "--html", str(tmp_path / "v.html")]) == 0
    assert "What each engine says" in (tmp_path / "v.html").read_text()


def test_standard_output_is_the_file_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """With ``-`` the drawing is all of standard output, and the report goes to the other one."""
    assert cli.run([*TORN, "--perfetto", "-"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["otherData"]["protocol"] == "sp"
    assert "happens-before is violated" in captured.err


def test_the_text_is_for_mail() -> None:
    """No colours, no line too long, and the run and its answer are all there."""
    for example in page_examples.ALL:
        text = text_of(example())
        *body, last = text.splitlines()
        assert all(len(line) <= WIDTH and line == line.rstrip() for line in body)
        assert "\x1b" not in text
        assert last.startswith(f"{example().question.protocol}: ")
    trace = trace_of(page_examples.torn())
    text = " ".join(text_of(trace).split())
    assert "receiver@rank0" in text and "happens-before: consumed rest torn" in text


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    """Whatever the order of sets and the width, colours and language of the terminal."""
    written = []
    for seed, columns, language in (("1", "40", "C"), ("77", "200", "C.UTF-8")):
        folder = tmp_path / seed
        folder.mkdir()
        variables = {"PYTHONHASHSEED": seed, "COLUMNS": columns, "LC_ALL": language}
        subprocess.run(
            [sys.executable, "-m", "syncproof", *TORN, "-q", *options(folder)],
            env={**os.environ, **variables, "FORCE_COLOR": "1" if seed == "77" else ""},
            capture_output=True,
            check=False,
            timeout=120,
        )
        written.append({kind: (folder / kind).read_bytes() for kind in KINDS})
    assert written[0] == written[1]
    for example in page_examples.ALL:
        verdict = example()
        for draw in (page_of, text_of, perfetto_of):
            assert draw(verdict) == draw(verdict)
    trace = trace_of(page_examples.hang())
    assert mermaid_of(trace) == mermaid_of(trace)


def test_no_address_is_in_the_page() -> None:
    """Nothing that a browser would fetch by itself is in the page, but for the names of SVG."""
    page = page_of(page_examples.torn())
    for word in ("http:", "https:", "//cdn", "@import", "url("):
        assert word not in page.replace("http://www.w3.org/2000/svg", "")


# Bad input


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_cannot_be_written_is_refused_first(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any work, in one line that names the option; nothing is written."""
    target = tmp_path / "missing" / "file"
    for command in (["sp"], ["show", "t.json"], ["replay", "t.json"]):
        assert cli.run([*command, f"--{kind}", str(target)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert f"--{kind}: there is no folder {target.parent}" in captured.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("other", ["--json", "--trace", "--text", "--perfetto", "--mermaid"])
def test_one_file_for_two_things_is_refused(
    other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two options may not name one file."""
    file = str(tmp_path / "x")
    assert cli.run(["sp", other, file, "--html", file]) == 2
    assert "are one file" in capsys.readouterr().err
    assert not Path(file).exists()


def test_a_full_disk_leaves_no_half_of_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    """An error while writing is one line."""
    assert cli.run(["sp", "--rounds", "1", "--html", "/dev/full", "-q"]) == 2
    assert "/dev/full: cannot be written: No space left" in capsys.readouterr().err


def test_a_protocol_is_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Show draws recorded runs only."""
    assert cli.run(["show", "sp", "--html", str(tmp_path / "x")]) == 2
    assert "sp: is a protocol (a trace or verdict file)" in capsys.readouterr().err


LATE = "step 2 comes after one that is not before it"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("put", 99, LATE),
        ("put", 5, LATE),
        ("after", [5], LATE),
        ("after", [-1], LATE),
        ("what", [], "step 2 does not say what it is"),
    ],
)
def test_a_step_before_its_cause_is_refused(
    key: str, value: object, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace whose steps refer to later ones or to none is no trace, alone or in a verdict; nor
    is one with a step that nobody could take again."""
    verdict = to_data(page_examples.torn())
    verdict["trace"]["steps"][2][key] = value
    trace = {"schema": 1, "kind": "trace", **verdict["trace"]}
    for data in (verdict, trace):
        file = tmp_path / "bad.json"
        file.write_text(json.dumps(data))
        assert cli.run(["show", str(file), "--html", str(tmp_path / "x")]) == 2
        assert said in capsys.readouterr().err


def test_the_emulator_draws_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a replay on the emulator could not draw is refused, not passed over."""
    page = tmp_path / "x.html"
    assert cli.run(["replay", "t.json", "--emulate", "--html", str(page)]) == 2
    assert "--emulate: draws nothing (--html without it)" in capsys.readouterr().err


def test_a_run_that_is_not_reproduced_is_not_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Replay draws what the protocol does now, or nothing."""
    file, page = tmp_path / "t.json", tmp_path / "x.html"
    assert cli.run([*TORN, "-q", "--trace", str(file)]) == 1
    data = json.loads(file.read_text())
    data["steps"] = data["steps"][:-1]
    data["shown"] = data["shown"][:-1]
    data["unordered"] = []
    file.write_text(json.dumps(data))
    assert cli.run(["replay", str(file), "--html", str(page)]) == 0
    assert "nothing is drawn: the run is not reproduced" in capsys.readouterr().err
    assert not page.exists()
