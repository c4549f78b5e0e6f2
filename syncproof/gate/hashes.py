"""What a file or a folder of modules holds, as a number that can be compared."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from importlib.machinery import all_suffixes
from pathlib import Path

FOLDER = os.sep
"""How the name of a source ends that is a folder which modules are looked for in."""


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content in hexadecimal; empty if it cannot be read."""
    with suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return ""


def digest_of(source: str) -> str:
    """The hash of a source: of a file its content, of a folder the names that can be imported.

    A module that appears in a folder may hide another, or be found where none was.
    """
    if not source.endswith(FOLDER):
        return sha256_of(Path(source))
    return hashlib.sha256("\n".join(sorted(_importable(source))).encode()).hexdigest()


def _importable(folder: str) -> list[str]:
    """The modules in a folder, and the folders that hold some."""
    packages = (each for each in _names(folder) if each != "__pycache__")
    return _modules(folder) + [each for each in packages if _modules(os.path.join(folder, each))]


def _modules(folder: str) -> list[str]:
    return [each for each in _names(folder) if each.endswith(tuple(all_suffixes()))]


def _names(folder: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []
