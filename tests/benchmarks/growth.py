"""How the certificate's time grows with the blocks: ``python -m tests.benchmarks.growth``.

For each protocol and each number of ranks one process of its own, with balanced routing, one token
and three rounds: the CPU time of the certificate, its steps and the peak of memory. The exponent is
the slope of a straight line through the logarithms of time and of blocks.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence

from syncproof.checkers.certificate.check import certificate
from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.models.bounds import Bounds
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.registry import find

RANKS = (16, 32, 64, 128, 256)
PROTOCOLS = ("sp", "tff", "sw")
USAGE = f"python -m tests.benchmarks.growth [{'|'.join(PROTOCOLS)} ...]"
ONE = "--one"


def certified(name: str, ranks: int) -> str:
    """Steps, CPU seconds of the certificate alone, and peak bytes of this process."""
    bounds = Bounds(ranks=ranks, tokens=1, rounds=3, routing="balanced")
    made = Instance(find(name).kind, bounds, load_profile("cm384"), {})
    began = time.process_time()
    steps = certificate(made, {}, Meter(Budget())).steps
    seconds = time.process_time() - began
    return f"{steps} {seconds} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}"


def measured(name: str, ranks: int) -> tuple[int, float, int]:
    """The same, in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.growth", ONE, name, str(ranks)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(found[0]), float(found[1]), int(found[2])


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope of a straight line through the logarithms, by least squares."""
    xs, ys = [math.log(each) for each in sizes], [math.log(each) for each in times]
    middle = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - middle[0]) * (y - middle[1]) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - middle[0]) ** 2 for x in xs)


def show(name: str) -> None:
    """The rows of a protocol, and its exponent."""
    measured(name, max(RANKS))  # numba keeps what it compiles
    print(f"\n{name}\n{'ranks':>6}{'blocks':>9}{'steps':>11}{'CPU s':>8}{'us/step':>9}{'MiB':>6}")
    blocks, times = list[int](), list[float]()
    for ranks in RANKS:
        steps, seconds, peak = min((measured(name, ranks) for _ in range(2)), key=lambda x: x[1])
        blocks.append(ranks * (ranks - 1) * 2)
        times.append(seconds)
        print(
            f"{ranks:6}{blocks[-1]:9,}{steps:11,}{seconds:8.2f}"
            f"{seconds / steps * 1e6:9.1f}{peak / 2**20:6.0f}"
        )
    print(f"time grows with the blocks to the power of {exponent(blocks, times):.2f}")


def main(arguments: Sequence[str]) -> int:
    """The protocols that are asked for."""
    if arguments[:1] == [ONE]:
        print(certified(arguments[1], int(arguments[2])))
        return 0
    names = arguments or PROTOCOLS
    if any(each not in PROTOCOLS for each in names):
        print(USAGE, file=sys.stderr)
        return 2
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first run")
    for name in names:
        show(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
