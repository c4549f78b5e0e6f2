"""Every finding is shown by the command beside it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMAND = re.compile(r"^    check-protocol (.+?) {2,}(\d)$", re.M)
FOUND = COMMAND.findall((ROOT / "docs" / "findings.md").read_text())


def test_no_command_is_missed() -> None:
    """Each line that shows a command has an exit code, so that it is run here."""
    shown = (ROOT / "docs" / "findings.md").read_text().count("    check-protocol ")
    assert len(FOUND) == shown > 20


@pytest.mark.parametrize(("command", "code"), FOUND, ids=[command for command, _ in FOUND])
def test_command_shows_the_finding(command: str, code: str) -> None:
    """The command ends with the exit code that the document says."""
    done = subprocess.run(
        [sys.executable, "-m", "syncproof", *shlex.split(command)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == int(code), done.stdout + done.stderr
