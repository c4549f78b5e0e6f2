"""Output files: whole or not at all, written beside and renamed; ``-`` is standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from syncproof.models.errors import UserError

STANDARD_OUTPUT = "-"


def to_json(data: Any) -> str:
    """JSON text of plain data: equal data, equal bytes."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def read_json(path: str) -> Any:
    """What a JSON file holds; a `UserError` if it cannot be read or is no JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=path) from None
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        raise UserError(f"is no JSON: {error.msg}", where=where) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"is no JSON: {error}", where=path) from None


def check_writable(path: str, option: str) -> None:
    """Refuse an output path that can surely not be written, before any work is done for it."""
    target = Path(path)
    if path == STANDARD_OUTPUT or _is_special(target):
        return
    folder = target.parent
    expected = "a file in a folder that exists and can be written to"
    if target.is_dir():
        raise UserError(f"{path} is a folder", where=option, expected=expected)
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}", where=option, expected=expected)
    if not os.access(folder, os.W_OK):
        raise UserError(f"the folder {folder} is not writable", where=option, expected=expected)


def write_text(path: str, text: str) -> None:
    """Write ``text`` to ``path``, replacing what is there only when all of it is on disk."""
    if path == STANDARD_OUTPUT:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        _write(Path(path), text)
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=path) from None


def _write(target: Path, text: str) -> None:
    if _is_special(target):
        target.write_text(text, encoding="utf-8")
        return
    target = target.resolve()
    with _beside(target) as part:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
    finally:
        with suppress(OSError):
            part.unlink()


def _is_special(target: Path) -> bool:
    """Whether it is a device or a pipe, which must be written to and never replaced."""
    return target.exists() and not target.is_file() and not target.is_dir()
