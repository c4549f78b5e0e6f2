"""One obligation answered in a process of its own, so that nothing it does can harm another."""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from syncproof.budget import default_memory, parse_size
from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.checkers.explicit.search import Budget
from syncproof.commands.check import ask, engines_of
from syncproof.gate.hashes import FOLDER, digest_of
from syncproof.gate.opened import opened_files
from syncproof.models.errors import UserError
from syncproof.models.mutants import Mutant
from syncproof.models.operations import Kind
from syncproof.models.verdict import to_data
from syncproof.registry import Subject, find, is_installed
from syncproof.request import Asked, Request, resolve

GRACE = 10.0
"""Seconds beyond its budget after which a process that does not stop is stopped."""

LONGEST_LOG = 4000


@dataclass(frozen=True)
class Job:
    """What a process is asked: a verdict, or with ``list_mutants`` the mutants of a request.

    ``folder`` is where relative paths start; ``workers`` is how many share the machine.
    """

    request: Request
    folder: str
    workers: int = 1
    mutant: Mutant | None = None
    list_mutants: bool = False


def answer(job: Job) -> dict[str, Any]:
    """The answer as plain data: a verdict, mutants, or why there is neither.

    With it come the sources that it rests on, each with the hash of what was read, and the
    seconds of processor time that it took.
    """
    os.chdir(job.folder)
    started = time.process_time()
    sources: dict[str, str] = {}
    try:
        with opened_files() as opened:
            subject = find(job.request.protocol)
        _note(sources, opened)
        found = _mutants(job, subject) if job.list_mutants else _verdict(job, subject)
        _note(sources, opened)
    except UserError as error:
        return {"refused": str(error)}
    except Exception:
        return {"broken": traceback.format_exc()}
    return {**found, "sources": sources, "seconds": time.process_time() - started}


def _mutants(job: Job, subject: Subject) -> dict[str, Any]:
    asked = resolve(replace(job.request, mutant=""), subject, unbounded=True)
    return {"mutants": [mutant_data(each) for each in find_mutants(asked.instance)]}


def _verdict(job: Job, subject: Subject) -> dict[str, Any]:
    request = job.request
    whole = replace(request, mutant="") if job.mutant else request
    asked = resolve(whole, subject, unbounded=True)
    if job.mutant is not None:
        question = replace(asked.question, mutant=job.mutant.name)
        asked = Asked(asked.subject, job.mutant.applied(asked.instance), question)
    memory = parse_size(request.memory) if request.memory else default_memory() // job.workers
    budget = Budget(request.budget_states, request.budget_seconds, memory)
    return {"verdict": to_data(ask(asked, engines_of(request), budget).verdict)}


def mutant_data(mutant: Mutant) -> dict[str, Any]:
    """A mutant as plain data."""
    return {**asdict(mutant), "kind": mutant.kind.value if mutant.kind else None}


def mutant_from(data: dict[str, Any]) -> Mutant:
    """The mutant that `mutant_data` made plain."""
    kind = Kind(data["kind"]) if data["kind"] else None
    setting = tuple(data["setting"]) if data["setting"] else None
    return Mutant(**{**data, "kind": kind, "setting": setting})


def _note(sources: dict[str, str], opened: Iterable[str]) -> None:
    """Add the sources of protocols that are loaded, all but Python's, ours and packages', and what
    they have opened to read.

    They are hashed as soon as they are read, so that an edit during a search is not missed.
    Packages count by their version, our engines by their hash. A link counts under its own name,
    as it may be pointed elsewhere.
    """
    found: dict[str, None] = dict.fromkeys(opened)
    looked_in = list(sys.path)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or name in ("__main__", "__mp_main__"):
            looked_in += [] if file else getattr(module, "__path__", ())
            continue
        path = Path(file).absolute()
        is_apart = name.partition(".")[0] == "syncproof" or is_installed(path)
        if name.startswith("syncproof.protocols") or not is_apart:
            found |= {str(path): None, f"{path.parent}{FOLDER}": None}
    places = (Path(each).absolute() for each in looked_in)
    found |= {f"{each}{FOLDER}": None for each in places if not is_installed(each)}
    for each in found:
        if each not in sources:
            sources[each] = digest_of(each)


# In a process of its own


class Isolated:
    """Answers jobs, each in a process of its own; safe to be shared by threads."""

    def __init__(self) -> None:
        self._context: ForkServerContext | SpawnContext
        if "forkserver" in multiprocessing.get_all_start_methods():
            self._context = multiprocessing.get_context("forkserver")
            self._context.set_forkserver_preload([__name__])
        else:
            self._context = multiprocessing.get_context("spawn")
        self._running: set[BaseProcess] = set()

    def __call__(self, job: Job) -> dict[str, Any]:
        """The answer to a job; a process that dies or does not stop is an answer too."""
        seconds = job.request.budget_seconds
        receiver, sender = self._context.Pipe(duplex=False)
        with tempfile.TemporaryDirectory() as folder, receiver:
            log = Path(folder, "log")
            process = self._context.Process(target=_run, args=(sender, job, str(log)), daemon=True)
            process.start()
            sender.close()
            self._running.add(process)
            try:
                if not receiver.poll(2 * seconds + GRACE if seconds else None):
                    process.kill()
                    return {"late": f"it did not stop after {seconds:g} s: raise budget seconds"}
                found: dict[str, Any] = json.loads(receiver.recv_bytes())
                return found
            except (EOFError, ConnectionError):
                process.join(GRACE)
                return {"broken": f"{_ending(process.exitcode)}\n{_tail(log)}".strip()}
            finally:
                process.join(GRACE)
                process.kill()
                process.join()
                self._running.discard(process)

    def stop(self) -> None:
        """Stop every process that is still running."""
        for process in list(self._running):
            process.kill()


def _run(sender: Connection, job: Job, log: str) -> None:
    with open(log, "w", encoding="utf-8", buffering=1) as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        faulthandler.enable(file)
        with suppress(KeyboardInterrupt):
            sender.send_bytes(json.dumps(answer(job)).encode())


def _ending(code: int | None) -> str:
    """How a process ended without an answer."""
    if code is not None and code < 0:
        return f"its process was ended by signal {-code}"
    return f"its process ended with code {code} and without an answer"


def _tail(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace")[-LONGEST_LOG:]
    except OSError:
        return ""
