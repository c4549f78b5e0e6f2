"""One obligation answered by a child of a cluster's worker, whose own modules may be old.

``python -m syncproof.gate.apart`` reads a job as JSON and writes the answer as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from typing import Any

from syncproof.gate.worker import GRACE, LONGEST_LOG, Job, answer, mutant_data, mutant_from
from syncproof.request import Request


def answer_apart(job: Job) -> dict[str, Any]:
    """The answer to a job; a child that dies or does not stop is an answer too."""
    seconds = job.request.budget_seconds
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps(job_data(job)).encode(),
            capture_output=True,
            timeout=2 * seconds + GRACE if seconds else None,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"late": f"it did not stop after {seconds:g} s: raise budget seconds"}
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        told = done.stderr.decode(errors="replace")[-LONGEST_LOG:]
        code = done.returncode
        return {"broken": f"its process ended with code {code} and without an answer\n{told}"}
    return found


def job_data(job: Job) -> dict[str, Any]:
    """A job as plain data."""
    return {**asdict(job), "mutant": mutant_data(job.mutant) if job.mutant else None}


def job_from(data: dict[str, Any]) -> Job:
    """The job that `job_data` made plain."""
    told: dict[str, Any] = data["request"]
    asked: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
    mutant = mutant_from(data["mutant"]) if data["mutant"] else None
    return Job(**{**data, "request": Request(**asked), "mutant": mutant})


def main() -> None:
    """Answer the job on standard input; what a protocol prints does not get between."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    out = os.dup(1)
    os.dup2(2, 1)
    found = answer(job_from(json.load(sys.stdin)))
    with os.fdopen(out, "w", encoding="utf-8") as file:
        json.dump(found, file)


def _end_with(parent: int) -> None:
    """A worker that is killed cannot stop its child."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    main()
