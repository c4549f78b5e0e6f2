"""Run the benchmarks and print what each engine counted, how fast, and the ratios."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence

from tests.benchmarks.engines import (
    SYSTEMS,
    Measured,
    as_line,
    filled_tables,
    in_its_own_process,
    ours,
    spin,
    tlc,
)

USAGE = f"python -m tests.benchmarks [{'|'.join(SYSTEMS)} ...] [--no-tlc]"
USUAL = ("sp-3x2", "barrier-7", "barrier-8", "barrier-9")


def measured(name: str, with_tlc: bool) -> Iterator[Measured]:
    """Every engine on one system, one after another."""
    tables = filled_tables(name)
    yield in_its_own_process(name, 1)
    yield in_its_own_process(name, 2)
    yield spin(tables, reduce=False)
    if name.startswith("sp"):
        yield in_its_own_process(name, 1, reduces=True)
        yield spin(tables, reduce=True)
    if with_tlc:
        yield tlc(tables)


def show(name: str, rows: Sequence[Measured]) -> bool:
    """Print the rows of a system; whether all complete searches counted alike."""
    base = next(each for each in rows if each.engine == "SPIN")
    print(f"\n{name}")
    print(
        f"{'':22}{'states':>10}{'transitions':>13}{'seconds':>9}{'CPU s':>8}"
        f"{'states/s':>11}{'a CPU s':>11}{'B/state':>9}{'x SPIN':>8}{'by CPU':>8}"
    )
    for each in rows:
        rate, cpu_rate = each.states / each.seconds, each.states / max(each.cpu, 1e-9)
        memory = f"{each.memory / each.states:9.1f}" if each.memory else f"{'':9}"
        print(
            f"{each.engine:22}{each.states:10,}{each.transitions:13,}{each.seconds:9.2f}"
            f"{each.cpu:8.2f}{rate:11,.0f}{cpu_rate:11,.0f}{memory}"
            f"{rate / (base.states / base.seconds):8.1f}"
            f"{cpu_rate / (base.states / max(base.cpu, 1e-9)):8.1f}"
        )
    full = {(r.states, r.transitions) for r in rows if "reduction" not in r.engine}
    print("all counts agree" if len(full) == 1 else f"THE COUNTS DIFFER: {sorted(full)}")
    return len(full) == 1


def main(arguments: Sequence[str]) -> int:
    """The benchmarks that are asked for; 1 if any counts differ."""
    if arguments[:1] == ["--one"]:
        print(as_line(ours(arguments[1], int(arguments[2]), len(arguments) > 3)))
        return 0
    names = [each for each in arguments if not each.startswith("-")] or list(USUAL)
    unknown = [each for each in names if each not in SYSTEMS]
    if unknown or any(each not in ("--no-tlc",) for each in arguments if each.startswith("-")):
        print(USAGE, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before the first run")
    agree = [show(name, list(measured(name, "--no-tlc" not in arguments))) for name in names]
    return 0 if all(agree) else 1


sys.exit(main(sys.argv[1:]))
