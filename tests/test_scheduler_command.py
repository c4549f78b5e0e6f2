"""``check-protocol scheduler``: verdicts, picture, JSON and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from syncproof.cli import run
from syncproof.models.verdict import Answer, Verdict, from_data


def test_corrected_algorithm_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    """The corrected scheduler keeps every contract at the size of the paper."""
    assert run(["scheduler", "--experts", "256", "--cores", "48", "--tokens", "128"]) == 0
    shown = capsys.readouterr().out
    assert "scheduler: proved algorithm=corrected" in shown
    assert "violated" not in shown


@pytest.mark.parametrize("algorithm", ["printed", "printed-floor", "search-only", "rounded-up"])
def test_printed_readings_are_refuted(algorithm: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every reading of the printed text fails, and the command shows on what."""
    sizes = ["--experts", "8", "--cores", "3", "--tokens", "8", "--hops", "one:4,two:4"]
    assert run(["scheduler", *sizes, "--set", f"algorithm={algorithm}"]) == 1
    assert "fails on:" in capsys.readouterr().out


def test_verdict_as_json(tmp_path: Path) -> None:
    """The file is a verdict of the project's own form."""
    path = tmp_path / "verdict.json"
    assert run(["scheduler", "--experts", "4", "--cores", "2", "--json", str(path), "-q"]) == 0
    assert from_data(Verdict, json.loads(path.read_text()), "f").answer is Answer.PROVED


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cores", "0"], "at least 1"),
        (["--hops", "one:3"], "add up to 256"),
        (["--set", "algorithm=best"], "one of corrected"),
        (["--set", "colour=red"], "algorithm=NAME"),
    ],
)
def test_bad_input(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what would be right; exit code 2."""
    assert run(["scheduler", *arguments]) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1
