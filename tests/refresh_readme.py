"""Write the README's session and example anew: ``python -m tests.refresh_readme``."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
COMMANDS = (
    "check-protocol doorbell.py",
    "check-protocol doorbell.py --set fence=no",
)
SESSION = re.compile(r"```console\n(.*?)```\n", re.S)
EXAMPLE = re.compile(r"```python\n(.*?)```\n", re.S)


def output(command: str) -> str:
    """What a command of the README prints, in a terminal of 88 columns."""
    words = shlex.split(command)
    assert words[0] == "check-protocol"
    done = subprocess.run(
        [sys.executable, "-m", "syncproof", *words[1:]],
        cwd=DATA,
        env={**os.environ, "COLUMNS": "88", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def session() -> str:
    """The commands with their output, as the README shows them."""
    return "\n".join(f"$ {command}\n{output(command)}" for command in COMMANDS)


def example() -> str:
    """The protocol that the README shows in full."""
    return (DATA / "doorbell.py").read_text()


def refresh() -> None:
    """Put session and example into the README."""
    path = ROOT / "README.md"
    text = path.read_text()
    block = f"```console\n{session()}```\n"
    text = SESSION.sub(lambda _: block, text, count=1)
    text = text.replace("<!-- session -->\n", block)
    text = text.replace("<!-- doorbell -->\n", example())
    text = EXAMPLE.sub(lambda _: f"```python\n{example()}```\n", text, count=1)
    path.write_text(text)


if __name__ == "__main__":
    refresh()
