"""``check-protocol gate``: every obligation of a file, and what became worse."""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from syncproof.cluster import ClusterMissing, Losses, cluster_at
from syncproof.gate.apart import answer_apart
from syncproof.gate.baseline import read_baseline, worse
from syncproof.gate.cache import Cache
from syncproof.gate.file import read_gate, shipped_gate
from syncproof.gate.hashes import sha256_of
from syncproof.gate.obligations import Task, tasks_of
from syncproof.gate.run import Gate, Stopped
from syncproof.gate.worker import Isolated, Job
from syncproof.models.errors import UserError
from syncproof.models.gate import GateReport, Obligation, Remark, Result, Standing, summary_data
from syncproof.models.verdict import to_data
from syncproof.reports.files import STANDARD_OUTPUT, check_writable, to_json, write_text
from syncproof.reports.gate_table import LiveTable, print_gate
from syncproof.reports.terminal import console_on

INTERRUPTED = 130
FORMATS = {"json": "gate.json", "junit": "junit.xml", "sarif": "gate.sarif", "markdown": "gate.md"}
"""Outputs, and what each is called in the folder of ``--out``."""

LONGEST_NAME = 60


@dataclass(frozen=True)
class Options:
    """What the command line says beside the file; ``summary`` is a file to append Markdown to."""

    only: tuple[str, ...] = ()
    workers: int = 0
    cache: str = ""
    baseline: str = ""
    strict_kernels: bool = False
    out: str = ""
    json: str = ""
    junit: str = ""
    sarif: str = ""
    markdown: str = ""
    quiet: bool = False
    cluster: str = ""
    summary: str = ""

    @property
    def files(self) -> dict[str, str]:
        """The outputs that are asked for, by format; those of ``out`` among them."""
        in_folder = {k: str(Path(self.out, v)) for k, v in FORMATS.items()} if self.out else {}
        named = {k: getattr(self, k) for k in FORMATS if getattr(self, k)}
        return {**in_folder, **named}

    def check(self) -> None:
        """Refuse what cannot be written, before the work is done; make the folder of ``out``."""
        if self.out:
            _make_folder(Path(self.out))
        for name, path in self.files.items():
            check_writable(path, f"--{name}")
        if list(self.files.values()).count(STANDARD_OUTPUT) > 1:
            raise UserError("two outputs are standard output", expected="one of them")


def run(file: str, options: Options) -> int:
    """Answer every obligation of a gate file; gives the exit code."""
    options.check()
    path = Path(file) if file else shipped_gate()
    root = path.resolve().parent
    tasks = _chosen(tasks_of(read_gate(path)), options.only)
    baseline = read_baseline(options.baseline) if options.baseline else None
    cache = Cache(Path(options.cache) if options.cache else None)
    results, is_over = _answer(tasks, cache, root, options)
    report = GateReport(str(path), results)
    remarks = [] if baseline is None or is_over else list(worse(report, baseline))
    remarks += moved_kernels([each.obligation for each in tasks], root, options.strict_kernels)
    report = replace(report, remarks=tuple(remarks))
    to_stdout = STANDARD_OUTPUT in options.files.values()
    console = console_on(sys.stderr if to_stdout else sys.stdout)
    print_gate(console, report, is_quiet=options.quiet)
    if cache.problem:
        print(f"check-protocol: {cache.problem}", file=sys.stderr)
    if is_over:
        print("interrupted: nothing is written", file=sys.stderr)
        return INTERRUPTED
    write(report, options)
    return report.code


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _answer(
    tasks: list[Task], cache: Cache, root: Path, options: Options
) -> tuple[tuple[Result, ...], bool]:
    """The results, and whether the user broke in before all of them were there."""
    workers = options.workers or _cores()
    try:
        with (
            _executor(options.cluster, workers) as (executor, answer, losses),
            LiveTable(console_on(sys.stderr)) as table,
        ):
            gate = Gate(executor, answer, cache, root, workers, table, losses)
            return gate.run(tasks), False
    except Stopped as stopped:
        return stopped.results, True
    except ClusterMissing as missing:
        undecided = (Result(each.obligation, Standing.UNDECIDED, str(missing)) for each in tasks)
        return tuple(undecided), False


@contextmanager
def _executor(
    cluster: str, workers: int
) -> Iterator[tuple[Executor, Callable[[Job], dict[str, Any]], Losses]]:
    """Who answers jobs, how, and the exceptions by which a job is lost."""
    if cluster:
        with cluster_at(cluster) as (executor, losses):
            yield executor, answer_apart, losses
        return
    answer = Isolated()
    threads = ThreadPoolExecutor(workers)
    try:
        yield threads, answer, ()
    finally:
        answer.stop()
        threads.shutdown(cancel_futures=True)


def _chosen(tasks: list[Task], patterns: tuple[str, ...]) -> list[Task]:
    if not patterns:
        return tasks
    chosen = [t for t in tasks if any(fnmatch.fnmatchcase(t.obligation.name, p) for p in patterns)]
    if not chosen:
        raise UserError("no obligation has such a name", where="--only", expected="such as 'sp*'")
    return chosen


def moved_kernels(obligations: Iterable[Obligation], root: Path, is_strict: bool) -> list[Remark]:
    """What to say of the kernel files that are not what their model was made of."""
    said = []
    for obligation in obligations:
        for kernel in obligation.kernels:
            now = sha256_of(root / kernel.file)
            if now != kernel.sha256:
                what = f"is now sha256 {now}" if now else "cannot be read"
                text = f"{kernel.file} {what}: the model may be out of date"
                said.append(Remark("kernel", obligation.name, text, is_strict))
    return said


# Files


def write(report: GateReport, options: Options) -> None:
    """Write what was asked for, the runs of what failed and the index with ``out``."""
    for name, path in options.files.items():
        write_text(path, _text(name, report))
    if options.summary:
        _append(Path(options.summary), _text("markdown", report))
    if options.out:
        from syncproof.reports.gate_page import gate_page

        links = _write_failed(report, Path(options.out))
        write_text(str(Path(options.out, "index.html")), gate_page(report, links))


def _text(name: str, report: GateReport) -> str:
    if name == "junit":
        from syncproof.reports.junit import junit_xml

        return junit_xml(report)
    if name == "sarif":
        from syncproof.reports.sarif import sarif_data

        return to_json(sarif_data(report, Path.cwd(), metadata.version("syncproof")))
    if name == "markdown":
        from syncproof.reports.markdown import markdown

        return markdown(report)
    return to_json(summary_data(report))


def _write_failed(report: GateReport, folder: Path) -> Mapping[str, list[tuple[str, str]]]:
    """Page, verdict and trace of each obligation that failed; gives the links to them."""
    from syncproof.reports.page import page_of

    links: dict[str, list[tuple[str, str]]] = {}
    for number, result in enumerate(report.failed, 1):
        if result.verdict is None:
            continue
        name = f"{number:03}-{_slug(result.obligation.name)}"
        page = page_of(result.verdict, again=result.obligation.command)
        write_text(str(folder / f"{name}.html"), page)
        links[result.obligation.name] = [("the run step by step", f"{name}.html")]
        parts: list[tuple[str, Any]] = [("verdict", result.verdict)]
        if result.verdict.trace is not None:
            parts.append(("trace", result.verdict.trace))
        for word, thing in parts:
            file = f"{name}.{word}.json"
            write_text(str(folder / file), to_json(to_data(thing)))
            links[result.obligation.name].append((word, file))
    return links


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._=]+", "-", name)[:LONGEST_NAME].strip("-")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot be made: {error.strerror}", where=f"--out {folder}") from None


def _append(path: Path, text: str) -> None:
    """Add to a file that others add to as well."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=str(path)) from None
