"""Logs of runs: a header, then one step a line, as JSON; docs/emulator.md describes them.

Ours name every step and every value. A log from elsewhere may leave out what it cannot see.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.content import Content
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.memory import places_of
from syncproof.checkers.explicit.counterexample import spoken
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance, Parts
from syncproof.models.verdict import SCHEMA, Question, from_data, to_data

KIND = "log"
LONGEST_LINE = 1 << 20
STEPS = (
    events.ISSUE,
    events.READ,
    events.WAIT,
    events.UPDATE,
    events.STORE,
    events.QUIET,
    events.FENCE,
    events.SYNC,
    events.CONSUME,
    events.FETCH,
    events.CLEAN,
    events.STORE_CACHED,
    events.READ_CACHED,
    *events.OF_THE_FABRIC,
)
FABRIC = "the fabric"


@dataclass(frozen=True)
class Entry:
    """One step of a log: ``what`` is its word, ``fields`` the values by field, as text.

    ``atom`` is -1 where the log does not say which; ``line`` is the line of the file.
    """

    what: str
    process: str
    slot: str = ""
    atom: int = -1
    fields: tuple[tuple[str, str], ...] = ()
    token: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Log:
    """A log as read: what was run, the choices that were made, whether every step is there."""

    question: Question
    entries: tuple[Entry, ...]
    choices: Mapping[str, Any]
    complete: bool
    recorded: tuple[str, ...]


class Names:
    """Cells by the names that a log uses for them, and processes by theirs."""

    def __init__(self, instance: Instance, parts: Parts) -> None:
        self.cells = parts.layout.cells
        self.processes = [*map(str, parts.processes), FABRIC]
        self.number = {name: number for number, name in enumerate(self.processes)}
        nowhere = dict.fromkeys((region.name for region in parts.layout.regions), 0)
        places = places_of(parts.layout, instance.profile.finest_atomicity, nowhere)
        self.shapes = [place.shape for place in places]
        self.blocks: dict[str, list[int]] = {}
        for number, cell in enumerate(self.cells):
            self.blocks.setdefault(str(cell.slot), []).append(number)

    def cells_in(self, entry: Entry) -> tuple[int, ...]:
        """The cells that an entry is about: of the atom and the fields that it names, if any."""
        found = self.blocks.get(entry.slot, [])
        fields = {name for name, _ in entry.fields}
        return tuple(
            cell
            for cell in found
            if entry.atom in (-1, self.cells[cell].atom)
            and (not fields or self.cells[cell].field in fields)
        )


def header(question: Question, **more: Any) -> str:
    """The first line of a log of ours."""
    data = {"schema": SCHEMA, "kind": KIND, "complete": True, **more}
    return json.dumps({**data, "question": to_data(question)})


def choice_line(name: Hashable, value: Any) -> str:
    """The line that says what was chosen."""
    plain = value if isinstance(value, bool | int | str) else {"text": str(value)}
    return json.dumps({"do": "choice", "name": spoken(name), "value": plain})


def event_line(event: Event, names: Names, content: Content) -> str:
    """The line of one step."""
    found: dict[str, Any] = {"do": event.do, "process": names.processes[event.process]}
    if event.token:
        found["token"] = [str(part) for part in event.token]
    if event.cells:
        cell = names.cells[event.cells[0]]
        found["slot"] = str(cell.slot)
        if event.data:
            found["atom"] = cell.atom
            found["values"] = {
                names.cells[c].field: str(content.decode(data, names.shapes[c]))
                for c, data in zip(event.cells, event.data, strict=True)
            }
    return json.dumps(found)


def read_log(lines: Iterable[str], where: str) -> Log:
    """A log from its lines; `UserError` with the line that is none."""
    numbered = enumerate(lines, 1)
    first = next(numbered, (1, ""))[1]
    data = _object(first, f"{where}:1")
    if data.get("kind") != KIND or data.get("schema") != SCHEMA:
        raise UserError(
            f"kind {data.get('kind')!r:.40}, schema {data.get('schema')!r:.40}",
            where=f"{where}:1",
            expected=f'{{"schema": {SCHEMA}, "kind": "{KIND}", …}}, see docs/emulator.md',
        )
    question = from_data(Question, data.get("question"), f"{where}:1")
    recorded = data.get("recorded", [])
    if not isinstance(recorded, list) or any(each not in STEPS for each in recorded):
        raise UserError(
            "recorded is no list of steps", where=f"{where}:1", expected=", ".join(STEPS)
        )
    choices: dict[str, Any] = {}
    entries = tuple(_entries(numbered, where, choices))
    return Log(question, entries, choices, data.get("complete") is True, tuple(recorded))


def _entries(
    numbered: Iterator[tuple[int, str]], where: str, choices: dict[str, Any]
) -> Iterator[Entry]:
    for number, line in numbered:
        if not line.strip():
            continue
        here = f"{where}:{number}"
        data = _object(line, here)
        if data.get("do") == "choice":
            choices[_text(data, "name", here)] = data.get("value")
        else:
            yield _entry(data, number, here)


def _entry(data: dict[str, Any], number: int, where: str) -> Entry:
    do = _text(data, "do", where)
    if do not in STEPS:
        raise UserError(f"no step {do!r:.40}", where=where, expected=", ".join(STEPS))
    values, token, atom = data.get("values", {}), data.get("token", []), data.get("atom", -1)
    if not isinstance(values, dict) or not isinstance(token, list):
        raise UserError("values are no object, or token is no list", where=where)
    if not isinstance(atom, int):
        raise UserError(f"atom {atom!r:.40}", where=where, expected="a number from 0")
    known = {"do", "process", "slot", "atom", "values", "token"}
    if set(data) - known:
        unknown = ", ".join(sorted(set(data) - known))
        raise UserError(f"unknown key {unknown:.60}", where=where, expected=", ".join(known))
    return Entry(
        do,
        _text(data, "process", where),
        _text(data, "slot", where) if "slot" in data else "",
        atom,
        tuple((name, str(value)) for name, value in values.items()),
        tuple(map(str, token)),
        number,
    )


def _object(line: str, where: str) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise UserError(f"a line of {len(line)} characters", where=where, expected="one step")
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"is no JSON: {error}", where=where) from None
    if not isinstance(data, dict):
        raise UserError("is no JSON object", where=where, expected='{"do": …}')
    return data


def _text(data: dict[str, Any], key: str, where: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise UserError(f"{key} is {value!r:.40}", where=where, expected="a text")
    return value
