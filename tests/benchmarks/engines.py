"""One engine on one system, measured in a process of its own."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.checkers.promela import promela
from syncproof.checkers.spin import KEEP_ALL, OPTIONS, read_answer
from syncproof.checkers.tla.tools import found_tools
from syncproof.models.minimise import minimise
from syncproof.models.system import System
from syncproof.models.tables import Tables, freeze
from tests.benchmarks.tla_text import tla
from tests.small import OneRound, instance, with_settings
from tests.test_spin import SC, TwoTurnstiles


def one_round(tokens: int) -> Callable[[], System]:
    """One-round Sentinel Polling of three ranks."""
    return lambda: instance(OneRound, ranks=3, tokens=tokens).system({})


def turnstiles(members: int) -> Callable[[], System]:
    """The two-turnstile barrier."""
    made = with_settings(instance(TwoTurnstiles, SC, ranks=1), members=members)
    return lambda: made.system({})


SYSTEMS: dict[str, Callable[[], System]] = {
    "sp-3x1": one_round(1),
    "sp-3x2": one_round(2),
    "barrier-6": turnstiles(6),
    "barrier-7": turnstiles(7),
    "barrier-8": turnstiles(8),
    "barrier-9": turnstiles(9),
}


@dataclass(frozen=True)
class Measured:
    """What an engine counted and used: seconds of the clock and of processors, bytes at most.

    ``transitions`` are without entering the initial state. Bytes are of states and tables: without
    what the engine takes before the search, where it can be told.
    """

    engine: str
    states: int
    transitions: int
    seconds: float
    cpu: float
    memory: int


def filled_tables(name: str) -> Tables:
    """The tables of a system, minimised, filled by a search that meets every edge."""
    from syncproof.checkers.fast.search import Search

    system = SYSTEMS[name]()
    Search(system, frozenset(), Meter(Budget())).run()
    return minimise(freeze(system))


def ours(name: str, threads: int, reduces: bool = False) -> Measured:
    """The fast engine, everything compiled before the clock starts; reducing, by free steps."""
    from syncproof.checkers.fast.search import Search

    warm = Search(SYSTEMS["sp-3x1"](), frozenset(), Meter(Budget(threads=threads)))
    warm.run()
    system = SYSTEMS[name]()
    before = _peak()
    started, cpu = time.perf_counter(), time.process_time()
    meter = Meter(Budget(threads=threads))
    found = Search(system, frozenset(), meter, reduces=reduces).run()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    label = (
        "fast, its reduction" if reduces else f"fast, {threads} thread{'s' if threads > 1 else ''}"
    )
    memory = max(0, _peak() - before)
    return Measured(label, meter.states, found.transitions, seconds, cpu, memory)


def _peak() -> int:
    """The most memory that this process has had; `getrusage` would count its parent's too."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found.group(1)) * 1024


def in_its_own_process(name: str, threads: int, reduces: bool = False) -> Measured:
    """`ours` in a fresh process, so that its memory is its own."""
    asked = [name, str(threads), *(["reducing"] if reduces else [])]
    command = [sys.executable, "-m", "tests.benchmarks", "--one", *asked]
    ended = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return Measured(**json.loads(ended.stdout.splitlines()[-1]))


def spin(tables: Tables, reduce: bool) -> Measured:
    """SPIN, by the Promela model of the same tables; reducing, with `xs` and `xr` declarations."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        place = Path(folder)
        model = promela(tables, declared=reduce)
        (place / "model.pml").write_text(model, encoding="ascii")
        subprocess.run(["spin", *KEEP_ALL, "-a", "model.pml"], cwd=place, check=True)
        options = [*OPTIONS, "-O2", "-DMEMLIM=8192", *([] if reduce else ["-DNOREDUCE"])]
        subprocess.run(["gcc", *options, "-o", "pan", "pan.c"], cwd=place, check=True)
        output, _, cpu = _timed(["./pan", "-m200000", "-n", "-E"], place)
    found = read_answer(output)
    label = "SPIN, its reduction" if reduce else "SPIN"
    return Measured(label, found.states, found.transitions - 1, found.seconds, cpu, found.memory)


def tlc(tables: Tables) -> Measured:
    """TLC, by a TLA+ module of the same tables, on two workers."""
    java, jar = found_tools(os.environ).for_tlc()
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        place = Path(folder)
        (place / "Tables.tla").write_text(tla(tables, "Tables"), encoding="ascii")
        (place / "Tables.cfg").write_text("INIT Init\nNEXT Next\n", encoding="ascii")
        memory = ["-Xmx4g", "-XX:+UseParallelGC"]
        flags = ["-workers", "2", "-deadlock", "Tables.tla"]
        command = [java, *memory, "-cp", jar, "tlc2.TLC", *flags]
        output, seconds, cpu = _timed(command, place)
    counts = re.findall(r"^(\d+) states generated, (\d+) distinct", output, re.MULTILINE)
    generated, distinct = map(int, counts[-1])
    return Measured("TLC, 2 workers", distinct, generated - 1, seconds, cpu, 0)


def _timed(command: Sequence[str], place: Path) -> tuple[str, float, float]:
    """What a program prints, with its seconds of the clock and of processors."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(command, cwd=place, stdout=subprocess.PIPE, check=True, text=True)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ended.stdout, seconds, cpu


def as_line(measured: Measured) -> str:
    """One line of JSON."""
    return json.dumps(asdict(measured))
