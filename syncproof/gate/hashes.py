"""What a file holds, as a number that can be compared."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content in hexadecimal; empty if it cannot be read."""
    with suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return ""
