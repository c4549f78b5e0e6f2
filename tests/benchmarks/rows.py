"""Every row at 8 ranks, 2 tokens, 3 rounds: ``python -m tests.benchmarks.rows [WORD ...]``.

A row is a protocol with one setting changed, one assumption dropped, or one of `COMBINED`. Each
is answered by ``check-protocol`` in a process of its own, as from the shell: clock and CPU seconds,
the answer, the engine and the steps of the counterexample. With words: the rows that have them all.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from syncproof.models.protocol import Assumption
from syncproof.registry import built_ins

SIZE = ("--ranks", "8", "--tokens", "2", "--rounds", "3", "--budget-seconds", "60")
MOST_S = 3.0
INTEGERS = {"windows": (1, 3), "cores": (3,), "token_cores": (2,), "count_cores": (2,)}
"""Other values of parameters that are whole numbers."""
TORN = "cm384,store_atomicity=128"
DENSE = ("--set", "counts=no", "--drop", "dense_traffic")
COMBINED: tuple[tuple[str, ...], ...] = (
    *((name, *DENSE, "--routing", "all") for name in ("sp", "sw", "tff", "dc")),
    ("sp", "--drop", "reserved_sentinel", "--set", "compare=block"),
    ("sp", "--fabric", TORN),
    ("sp", "--fabric", TORN, "--set", "compare=block"),
    ("sp", "--fabric", TORN, "--set", "compare=atom"),
    ("sw", "--set", "quiet=no", "--fabric", "cm384,ordering=per_pair"),
    ("tff", "--fabric", TORN),
    ("tff", "--fabric", TORN, "--set", "flags=atom"),
    ("tff", "--set", "reset=before", "--set", "reuse=reset", "--set", "windows=1"),
    ("tff", "--set", "reset=after", "--set", "reuse=reset", "--set", "windows=1"),
    ("tff", "--set", "flag=epoch", "--set", "reset=never"),
    ("dc", "--fabric", TORN),
    ("dc", "--set", "compare=no", "--fabric", "cm384,ordering=per_pair"),
    *(("dc", "--set", "checksum=additive", "--set", "round_in_checksum=no", "--set", each)
      for each in ("initial=invalid", "initial=zeroed")),
    *(("bsp", "--set", "syncall=software", "--set", each) for each in (
        "initial=garbage", "windows=1", "first_barrier=no", "second_barrier=no", "cores=3")),
    *(("ubep", "--set", f"data={data}", "--set", each) for data in ("tff", "dc") for each in (
        "windows=1", "token_cores=2", "count_cores=2")),
)  # fmt: skip


class Row(NamedTuple):
    """What was measured of one row."""

    name: str
    seconds: float
    cpu: float
    answer: str


def rows() -> Iterator[tuple[str, ...]]:
    """The arguments of each row."""
    for name, kind in built_ins().items():
        yield (name,)
        for key, each in kind.parameters().items():
            if isinstance(each, Assumption):
                yield (name, "--drop", key)
                continue
            values = each.values or ((False,) if each.default is True else INTEGERS.get(key, ()))
            for value in values:
                if value != each.default:
                    yield (name, "--set", f"{key}={'no' if value is False else value}")
    yield from COMBINED


def measured(arguments: Sequence[str], size: Sequence[str] = SIZE) -> Row:
    """One row, answered in a process of its own."""
    command = [sys.executable, "-m", "syncproof", "check", *arguments, *size]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    line = re.search(rf"^{arguments[0]}: (.*) bounds=", done.stdout, re.M)
    answer = line[1] if line else (done.stderr.strip() or done.stdout).splitlines()[-1]
    return Row(" ".join(arguments), seconds, cpu, answer)


def main(words: Sequence[str]) -> int:
    """Measure the rows, and list those that take too long."""
    late = []
    for arguments in rows():
        if not all(any(word in each for each in arguments) for word in words):
            continue
        row = measured(arguments)
        print(f"{row.seconds:6.2f} {row.cpu:6.2f}  {row.name:60}  {row.answer}", flush=True)
        if row.seconds > MOST_S:
            late.append(row)
    print(f"{len(late)} rows took more than {MOST_S:g} s")
    for row in late:
        print(f"{row.seconds:6.2f}  {row.name}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
