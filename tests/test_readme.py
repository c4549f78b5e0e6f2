"""The README is true: its session prints what it shows, its example is a file that is tested."""

from __future__ import annotations

import re
from pathlib import Path

from tests.refresh_readme import EXAMPLE, ROOT, SESSION, example, session

README = (ROOT / "README.md").read_text()


def test_session_is_real() -> None:
    """The commands of the session print exactly what the README shows."""
    shown = SESSION.search(README)
    assert shown is not None
    assert shown[1] == session()


def test_example_is_the_tested_file() -> None:
    """The protocol shown in full is tests/data/doorbell.py, and short."""
    shown = EXAMPLE.search(README)
    assert shown is not None
    assert shown[1] == example()
    assert len(example().splitlines()) < 40


def test_links_lead_somewhere() -> None:
    """Every relative link of every document names a file that is there."""
    documents = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]
    for document in documents:
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / Path(link)).exists(), f"{document.name}: {link}"


def test_two_commands_are_the_ones_that_ci_runs() -> None:
    """What CI does is what the README tells people to do."""
    ci = (ROOT / ".ci" / "run").read_text()
    assert "check-protocol sp --ranks 8" in README
    assert ".venv/bin/check-protocol sp --ranks 8" in ci
    assert ".[test]" in README
    assert ".[test]" in ci
