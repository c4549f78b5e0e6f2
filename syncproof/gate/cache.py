"""Answers kept from one run of the gate to the next, by the content of all that they rest on.

An entry is found by the question: bounds, routing table, fabric profile key by key, settings,
mutant, engine, budget, and the engine's version, which is a hash of our own sources and of the
packages installed, and the places where modules are looked for. It counts only while every file
that the protocol was imported from has the content that it had, and no module has come or gone
where it looks for them. What a budget of time or memory left undecided is never kept.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import syncproof
from syncproof.gate.hashes import digest_of
from syncproof.models.errors import UserError
from syncproof.models.profiles import load_profile
from syncproof.registry import file_of
from syncproof.reports.files import to_json, write_text
from syncproof.request import Request

ENGINE_PACKAGES = ("models", "checkers", "specs")
ENGINE_SUFFIXES = {".py", ".tla", ".cfg"}


class Cache:
    """Answers in a folder, one JSON file each; ``folder`` None keeps nothing.

    What cannot be read, or not be understood, is as if it were not there.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.problem = ""
        self._digests: dict[str, str] = {}
        self._profiles: dict[str, dict[str, Any]] = {}

    def find(self, key: str) -> dict[str, Any] | None:
        """The answer kept under ``key``, if its sources are as they were."""
        if self.folder is None or not key:
            return None
        try:
            entry = json.loads(self._file(key).read_text(encoding="utf-8"))
            sources, answer = entry["sources"], entry["answer"]
            same = sources and all(self.digest(name) == kept for name, kept in sources.items())
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        return answer if same and isinstance(answer, dict) else None

    def keep(self, key: str, answer: Mapping[str, Any], sources: Mapping[str, str]) -> None:
        """Keep an answer with the sources that it rests on and the hash of each.

        A folder that cannot be written to is noted in ``problem`` and not tried again.
        """
        if self.folder is None or not key or self.problem:
            return
        if not sources or not all(sources.values()):
            return
        try:
            self._file(key).parent.mkdir(parents=True, exist_ok=True)
            write_text(
                str(self._file(key)), to_json({"sources": dict(sources), "answer": dict(answer)})
            )
        except OSError as error:
            self.problem = f"{self.folder}: nothing is kept: {error.strerror}"
        except UserError as error:
            self.problem = f"nothing is kept: {error}"

    def key(self, request: Request, root: Path, extra: str = "") -> str:
        """The key of a request, or nothing where what it names cannot be read.

        ``root`` is where its relative paths start; ``extra`` tells apart what is asked about it.
        """
        try:
            fabric = self._profile(request.fabric, root)
        except UserError:
            return ""
        routing = request.routing_asked
        table = self.digest(str(root / routing)) if routing.endswith((".yaml", ".yml")) else ""
        question = {**asdict(request), "memory": "", "routing": [routing, table]}
        file = file_of(request.protocol)
        place = [str(root), syncproof.__path__[0], file and str((root / file).resolve()), sys.path]
        content = [question, fabric, extra, engine_version(), place]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _profile(self, fabric: str, root: Path) -> dict[str, Any]:
        base, comma, changes = fabric.partition(",")
        if base.endswith((".yaml", ".yml")):
            base = str(root / base)
        name = base + comma + changes
        if name not in self._profiles:
            self._profiles[name] = dict(load_profile(name).as_data())
        return self._profiles[name]

    def digest(self, name: str) -> str:
        """The SHA-256 of a source, taken once a run; empty if it cannot be read."""
        if name not in self._digests:
            self._digests[name] = digest_of(name)
        return self._digests[name]

    def _file(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / f"{key}.json"


@lru_cache
def engine_version() -> str:
    """A hash of everything that a verdict can depend on beside the protocol and the question."""
    total = hashlib.sha256(f"{sys.version} {sys.flags.optimize}".encode())
    for folder, files in _engine_files():
        for file in sorted(files):
            total.update(str(file.relative_to(folder)).encode())
            total.update(file.read_bytes())
    for each in sorted({f"{each.name}=={each.version}" for each in metadata.distributions()}):
        total.update(each.encode())
    return total.hexdigest()


def _engine_files() -> Iterable[tuple[Path, list[Path]]]:
    for name in ENGINE_PACKAGES:
        folder = Path(importlib.import_module(f"syncproof.{name}").__path__[0]).resolve()
        yield folder, [each for each in folder.rglob("*") if each.suffix in ENGINE_SUFFIXES]
    top = Path(syncproof.__path__[0]).resolve()
    yield top, [*top.glob("*.py"), *top.glob("commands/*.py"), *top.glob("gate/*.py")]
