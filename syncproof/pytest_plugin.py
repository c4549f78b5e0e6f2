"""The pytest plugin: the fixture ``check_protocol``, and gate files as test items.

A file ``gate.yaml`` or ``*.gate.yaml`` with obligations is collected where pytest looks for
tests; ``--gate-cache DIR`` keeps what was answered from one run to the next.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from syncproof.gate.obligations import Task
    from syncproof.models.gate import Obligation, Result
    from syncproof.models.verdict import Verdict

OBLIGATIONS = re.compile(rb"^obligations\s*:", re.MULTILINE)
LOOKED_AT = 1 << 20


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where answers to the obligations of gate files are kept."""
    group = parser.getgroup("syncproof")
    group.addoption("--gate-cache", metavar="DIR", help="keep the answers of gate files here")


@pytest.fixture
def check_protocol(request: pytest.FixtureRequest) -> Callable[..., Verdict]:
    """`syncproof.asserts.check_protocol`, with files relative to the folder of the test."""
    from syncproof.asserts import check_protocol as check

    return functools.partial(check, folder=request.path.parent)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> GateFile | None:
    """A gate file, by its name and what it holds: other tools have gates too."""
    if file_path.name != "gate.yaml" and not file_path.name.endswith(".gate.yaml"):
        return None
    with file_path.open("rb") as file:
        if not OBLIGATIONS.search(file.read(LOOKED_AT)):
            return None
    found: GateFile = GateFile.from_parent(parent, path=file_path)
    return found


class GateFile(pytest.File):
    """A gate file: an item for each obligation, one for all mutants of an entry."""

    def collect(self) -> Iterator[GateItem]:
        """The items, in the order of the file."""
        from syncproof.gate.file import read_gate
        from syncproof.gate.obligations import tasks_of
        from syncproof.models.errors import UserError

        try:
            tasks = tasks_of(read_gate(self.path))
        except UserError as error:
            raise self.CollectError(str(error)) from None
        for task in tasks:
            yield GateItem.from_parent(self, name=task.obligation.name, task=task)


class Unexpected(Exception):
    """Results that are not as expected."""

    def __init__(self, failed: list[Result]) -> None:
        super().__init__(f"{len(failed)} not as expected")
        self.failed = failed


class GateItem(pytest.Item):
    """An obligation."""

    def __init__(self, *, task: Task, **more: Any) -> None:
        super().__init__(**more)
        self.task = task

    def runtest(self) -> None:
        """Answer it in a process of its own, and judge."""
        from concurrent.futures import ThreadPoolExecutor

        from syncproof.gate.cache import Cache
        from syncproof.gate.run import Gate
        from syncproof.gate.worker import Isolated
        from syncproof.models.gate import Standing

        kept = self.config.getoption("--gate-cache")
        cache = Cache(Path(kept) if kept else None)
        answer = Isolated()
        try:
            with ThreadPoolExecutor(1) as executor:
                gate = Gate(executor, answer, cache, self.path.resolve().parent, 1, Silent())
                results = gate.run([self.task])
        finally:
            answer.stop()
        failed = [each for each in results if each.standing is not Standing.HELD]
        if failed:
            raise Unexpected(failed)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Why it is not as expected, with the run that shows it."""
        if not isinstance(excinfo.value, Unexpected):
            return super().repr_failure(excinfo, style)
        from syncproof.asserts import report_of

        said = []
        for each in excinfo.value.failed:
            said += [f"{each.standing.value}: {each.obligation.name}", each.message]
            said += [report_of(each.verdict)] if each.verdict is not None else []
            said += [f"again: {each.obligation.command}"]
        return "\n".join(said)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Its place in the gate file."""
        return self.path, self.task.obligation.line - 1, self.name


class Silent:
    """Watches a gate and says nothing: pytest has its own progress."""

    def planned(self, obligation: Obligation) -> None:
        """Nothing to say."""

    def done(self, result: Result) -> None:
        """Nothing to say."""
