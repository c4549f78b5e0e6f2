"""One obligation answered in a process of its own, so that nothing it does can harm another."""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import sys
import sysconfig
import tempfile
import time
import traceback
from collections.abc import Iterator
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
from syncproof.commands.check import ask
from syncproof.engines import engines_for
from syncproof.models.errors import UserError
from syncproof.models.mutants import Mutant
from syncproof.models.operations import Kind
from syncproof.models.verdict import to_data
from syncproof.registry import find
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

    With it come its sources and the seconds of processor time that it took.
    """
    os.chdir(job.folder)
    started = time.process_time()
    try:
        if job.list_mutants:
            found: dict[str, Any] = {"mutants": [mutant_data(m) for m in _mutants(job.request)]}
        else:
            found = {"verdict": _verdict(job)}
    except UserError as error:
        return {"refused": str(error)}
    except Exception:
        return {"broken": traceback.format_exc()}
    seconds = time.process_time() - started
    return {**found, "sources": sorted(_sources()), "seconds": seconds}


def _mutants(request: Request) -> list[Mutant]:
    asked = resolve(replace(request, mutant=""), find(request.protocol))
    return find_mutants(asked.instance)


def _verdict(job: Job) -> dict[str, Any]:
    request = job.request
    asked = resolve(replace(request, mutant="") if job.mutant else request, find(request.protocol))
    if job.mutant is not None:
        question = replace(asked.question, mutant=job.mutant.name)
        asked = Asked(asked.subject, job.mutant.applied(asked.instance), question)
    memory = parse_size(request.memory) if request.memory else default_memory() // job.workers
    budget = Budget(request.budget_states, request.budget_seconds, memory)
    return dict(to_data(ask(asked, engines_for(request.engine), budget).verdict))


def mutant_data(mutant: Mutant) -> dict[str, Any]:
    """A mutant as plain data."""
    return {**asdict(mutant), "kind": mutant.kind.value if mutant.kind else None}


def mutant_from(data: dict[str, Any]) -> Mutant:
    """The mutant that `mutant_data` made plain."""
    kind = Kind(data["kind"]) if data["kind"] else None
    setting = tuple(data["setting"]) if data["setting"] else None
    return Mutant(**{**data, "kind": kind, "setting": setting})


def _sources() -> Iterator[str]:
    """The source files of protocols that are loaded: all but Python's, ours and packages'.

    Packages count by their version, our engines by their hash.
    """
    places = {Path(sysconfig.get_path(each)).resolve() for each in ("stdlib", "purelib", "platlib")}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or not str(file).endswith(".py") or name in ("__main__", "__mp_main__"):
            continue
        path = Path(file).resolve()
        is_ours = name.partition(".")[0] == "syncproof"
        is_installed = any(place in path.parents for place in places)
        if name.startswith("syncproof.protocols") or not (is_ours or is_installed):
            yield str(path)


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
                process.join()
                return {"broken": f"{_ending(process.exitcode)}\n{_tail(log)}".strip()}
            finally:
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
