"""Options of the whole suite, and the list of what was not run and why."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

PROGRAMS = {"spin": "SPIN (Debian: apt-get install spin)", "gcc": "a C compiler"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests that take minutes")
    parser.addoption(
        "--everything", action="store_true", help="fail if a program from outside is missing"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = [text for program, text in PROGRAMS.items() if shutil.which(program) is None]
    for item in items:
        if item.get_closest_marker("long") and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="long: run with --long"))
        if item.get_closest_marker("outside") and missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}"))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    reasons: dict[str, list[str]] = {}
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons.setdefault(reason.removeprefix("Skipped: "), []).append(report.nodeid)
    if reasons:
        terminalreporter.section("not run")
    for reason, tests in sorted(reasons.items()):
        terminalreporter.write_line(f"{len(tests)} not run: {reason}")
        for test in sorted(tests):
            terminalreporter.write_line(f"    {test}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if not session.config.getoption("--everything") or os.environ.get("PYTEST_XDIST_WORKER"):
        return
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if "--long" not in reason:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
