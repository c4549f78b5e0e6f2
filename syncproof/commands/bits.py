"""``check-protocol bits``: sentinels and checksums with real bytes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from syncproof.checkers.bits import (
    CHECKSUMS,
    FORMATS,
    Answered,
    Collision,
    Format,
    ask_sentinel,
    free_patterns,
    shared_lead,
    stale_markers,
    torn_tail,
    zero_window,
)
from syncproof.models.errors import UserError
from syncproof.models.verdict import SCHEMA
from syncproof.reports.columns import print_columns
from syncproof.reports.files import STANDARD_OUTPUT, check_writable, to_json, write_text
from syncproof.reports.terminal import console_on


@dataclass(frozen=True)
class Asked:
    """What is asked; empty names ask for all there are."""

    format: str = ""
    sentinel: str = ""
    checksum: str = ""
    markers: int = 2
    json: str = ""


def run(asked: Asked) -> int:
    """Answer; the exit code is 0, as none of it is a verdict on a protocol."""
    if asked.json:
        check_writable(asked.json, "--json")
    console = console_on(sys.stderr if asked.json == STANDARD_OUTPUT else sys.stdout)
    data: dict[str, Any] = {"schema": SCHEMA, "kind": "bits", "formats": [], "checksums": []}
    if asked.format or asked.sentinel or not asked.checksum:
        for format in _formats(asked):
            data["formats"].append(_tell_format(console, format, asked.sentinel))
    if asked.checksum or not (asked.format or asked.sentinel):
        for name in _checksums(asked):
            data["checksums"].append(_tell_checksum(console, name, asked.markers))
    if asked.json:
        write_text(asked.json, to_json(data))
    return 0


def _formats(asked: Asked) -> list[Format]:
    if not asked.format:
        return [FORMATS["bf16"]] if asked.sentinel else list(FORMATS.values())
    if asked.format not in FORMATS:
        expected = ", ".join(FORMATS)
        raise UserError(f"no format {asked.format!r}", where="--format", expected=expected)
    return [FORMATS[asked.format]]


def _checksums(asked: Asked) -> list[str]:
    if not asked.checksum:
        return list(CHECKSUMS)
    if asked.checksum not in CHECKSUMS:
        expected = ", ".join(CHECKSUMS)
        raise UserError(f"no checksum {asked.checksum!r}", where="--checksum", expected=expected)
    return [asked.checksum]


def _pattern(text: str, format: Format) -> int:
    try:
        pattern = int(text, 0)
    except ValueError:
        pattern = -1
    if not 0 <= pattern < 1 << format.bits:
        expected = f"the bits of a {format.name}, such as 0x{(1 << format.bits) - 1:x}"
        raise UserError(f"{text!r:.40}", where="--sentinel", expected=expected)
    return pattern


def _tell_format(console: Console, format: Format, sentinel: str) -> dict[str, Any]:
    found: dict[str, Any] = {"format": format.name}
    if not sentinel:
        free = found["free"] = list(free_patterns(format))
        shown = f"{len(free)} patterns: {_ranges(format, free)}" if free else "none"
        text = "free: no sum, difference or product of finite values has them"
        print_columns(console, [(Text(format.name, style="bold"), text, shown)])
        return found
    pattern = _pattern(sentinel, format)
    console.print(Text(f"{format.name}, sentinel {format.text(pattern)}", style="bold"))
    answers = ask_sentinel(format, pattern)
    print_columns(console, [_row(each) for each in answers])
    found["answers"] = [
        {"question": e.question, "holds": e.holds, "patterns": list(e.patterns), "how": e.how}
        for e in answers
    ]
    return found


def _row(answer: Answered) -> tuple[Text, str, str]:
    word = "yes" if answer.holds else "no"
    return Text(word, style="bold"), answer.question, f"{answer.text} ({answer.how})"


def _ranges(format: Format, patterns: list[int]) -> str:
    """Patterns with their neighbours, first to last."""
    runs: list[list[int]] = []
    for each in patterns:
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    width = (format.bits + 3) // 4
    return ", ".join(f"0x{first:0{width}x} to 0x{last:0{width}x}" for first, last in runs)


def _tell_checksum(console: Console, name: str, markers: int) -> dict[str, Any]:
    rows = {
        "stale markers": stale_markers(name, markers),
        "untouched window": zero_window(name, markers),
        "torn tail": torn_tail(name, markers),
        "shared lead": shared_lead(name, markers),
    }
    console.print(Text(f"{name} over the leads of {markers} blocks", style="bold"))
    print_columns(console, [_collision_row(what, each) for what, each in rows.items()])
    return {"checksum": name, **{what: _collision_data(each) for what, each in rows.items()}}


def _collision_row(what: str, found: Collision | None) -> tuple[Text, str, str]:
    if found is None:
        return Text(what, style="bold"), "told apart", "proved"
    held, wanted = (" ".join(_short(each) for each in side) for side in (found.held, found.wanted))
    value = f"0x{found.value:08x}"
    text = f"holds {held}, should hold {wanted}: both {value}"
    if what == "untouched window":
        text = f"holds {held}, which gives {value}, as the checksum's own cell holds at first"
    return Text(what, style="bold"), "verifies", text


def _short(data: bytes) -> str:
    return data.hex() if len(data) <= 8 else f"{data[:4].hex()}..{data[-4:].hex()}"


def _collision_data(found: Collision | None) -> dict[str, Any] | None:
    if found is None:
        return None
    held, wanted = ([each.hex() for each in side] for side in (found.held, found.wanted))
    return {"held": held, "wanted": wanted, "value": found.value, "text": found.text}
