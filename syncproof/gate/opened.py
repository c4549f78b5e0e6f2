"""The files that code opens to read while it runs, as the interpreter's own audit tells them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.machinery import BYTECODE_SUFFIXES
from pathlib import Path

from syncproof.registry import is_installed

OURS = ("syncproof", *(f"syncproof.{name}" for name in ("models", "checkers", "specs", "reports")))
NO_CONTENT = ("/dev/", "/proc/", "/sys/")
"""Folders whose files hold what the machine does, and not what somebody wrote."""

_watchers: list[set[str]] = []


@contextmanager
def opened_files() -> Iterator[set[str]]:
    """The files that are opened within to be read, whether they are there or not; full behind it.

    Those of Python, of installed packages and of this one are left out, and bytecode.
    """
    _listen()
    found: set[str] = set()
    _watchers.append(found)
    try:
        yield found
    finally:
        _watchers.remove(found)
    found -= {each for each in found if _is_apart(Path(each))}


@cache
def _listen() -> None:
    """An audit hook is there for good, so that there is one."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event != "open" or not _watchers:
        return
    path, _, flags = arguments
    if isinstance(path, str | bytes) and isinstance(flags, int):
        name = os.path.abspath(os.fsdecode(path))
        if flags & os.O_ACCMODE != os.O_WRONLY and not name.startswith(NO_CONTENT):
            for each in _watchers:
                each.add(name)


def _is_apart(path: Path) -> bool:
    here = path.resolve()
    ours = [Path(import_module(name).__path__[0]).resolve() for name in OURS]
    return (
        path.suffix in BYTECODE_SUFFIXES
        or is_installed(path)
        or any(folder in here.parents for folder in ours)
    )
