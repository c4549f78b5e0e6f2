"""Schedules from YAML and JSON files: everything that is wrong is one line with its place."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import yaml

from syncproof.models.errors import UserError
from syncproof.models.taskflow.collector import collector_paused
from syncproof.models.taskflow.format import LAUNCHES, MARK, PARTS, TASK, TOP, Key
from syncproof.models.taskflow.places import (
    JsonPlaces,
    RepeatedKey,
    YamlPlaces,
    no_repeats,
)
from syncproof.models.taskflow.schedule import (
    VERSION,
    Event,
    Launches,
    NoPlaces,
    Places,
    Pool,
    Queue,
    Schedule,
    Task,
    Tensor,
    Tiles,
)
from syncproof.models.taskflow.validation import validate

LARGEST = {"json": 128 << 20, "yaml": 8 << 20}
"""Bytes of a file; more is refused before it is parsed. Large schedules are JSON."""

Path_ = tuple[str | int, ...]
_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_schedule(path: str) -> Schedule:
    """The schedule in a file; a `UserError` with file and line if there is none."""
    with collector_paused():
        text, form = _text(path)
        try:
            data, places = (_json if form == "json" else _yaml)(text, path)
            made = _Reader(places).schedule(data)
        except RecursionError:
            raise UserError("is nested too deeply", where=f"{path}:1") from None
        validate(made)
    return made


def schedule_from_data(data: Any) -> Schedule:
    """The schedule that plain data, such as `writing.to_data` gives, describe."""
    made = _Reader(NoPlaces()).schedule(data)
    validate(made)
    return made


# Text


def _text(path: str) -> tuple[str, str]:
    try:
        with Path(path).open("rb") as file:
            start = file.read(4096)
            form = _form(path, start)
            content = start + file.read(LARGEST[form] + 1 - len(start))
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=path) from None
    if len(content) > LARGEST[form]:
        hint = "" if form == "json" else "; JSON may be larger"
        expected = f"{LARGEST[form] >> 20} MiB at most{hint}"
        raise UserError(
            f"too large for a schedule in {form.upper()}", where=f"{path}:1", expected=expected
        )
    try:
        return content.decode("utf-8"), form
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError("is not UTF-8", where=f"{path}:{line}") from None


def _form(path: str, start: bytes) -> str:
    for ending, form in ((".json", "json"), (".yaml", "yaml"), (".yml", "yaml")):
        if path.endswith(ending):
            return form
    return "json" if start.lstrip().startswith(b"{") else "yaml"


def _json(text: str, path: str) -> tuple[Any, Places]:
    places = JsonPlaces(path, text)
    try:
        return json.loads(text, object_pairs_hook=no_repeats, parse_constant=_refuse), places
    except json.JSONDecodeError as error:
        raise UserError(f"is no JSON: {error.msg}", where=f"{path}:{error.lineno}") from None
    except RepeatedKey as error:
        where = places.line_of_repeat()
        raise UserError(
            f"a second {error.key!r:.60}", where=where, expected="each key once"
        ) from None
    except ValueError as error:
        raise UserError(f"is no JSON: {error}", where=f"{path}:1") from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _yaml(text: str, path: str) -> tuple[Any, Places]:
    loader = _FastLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            raise UserError("is empty", where=f"{path}:1", expected=f"{MARK}: {VERSION}")
        _check_nodes(root, path)
        return loader.construct_document(root), YamlPlaces(path, root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else path
        raise UserError(f"is no YAML: {error.problem}", where=where) from None
    except yaml.YAMLError as error:
        raise UserError(f"is no YAML: {error}", where=f"{path}:1") from None
    except ValueError as error:
        raise UserError(f"is no YAML: {error}", where=f"{path}:1") from None
    finally:
        loader.dispose()


def _check_nodes(root: yaml.Node, path: str) -> None:
    """Refuse keys that repeat, and aliases: a few lines of those can mean terabytes."""
    pending, seen = [root], set()
    while pending:
        node = pending.pop()
        where = f"{path}:{node.start_mark.line + 1}"
        if isinstance(node, yaml.ScalarNode):
            continue
        if id(node) in seen:
            raise UserError("an alias", where=where, expected="everything written out")
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                if key.value in keys if isinstance(key, yaml.ScalarNode) else True:
                    line = key.start_mark.line + 1
                    raise UserError(
                        f"a second {key.value!r:.60}",
                        where=f"{path}:{line}",
                        expected="each key once",
                    )
                keys.add(key.value)
                pending.append(value)
        else:
            pending += node.value


# Data


def _event(name: str, part: Mapping[str, Any]) -> Event:
    """An event of checked values."""
    return Event(
        name,
        part["kind"],
        part["rank"],
        part["id"],
        part["mode"],
        tuple(part["cores"] or ()),
        part["arrivals"],
        part["epochs"],
    )


class _Reader:
    def __init__(self, places: Places) -> None:
        self.places = places
        tables = [*PARTS.values(), TASK, LAUNCHES]
        self.defaults = {id(t): {n: key.default for n, key in t.items()} for t in tables}
        self.required = {id(t): [n for n, key in t.items() if key.required] for t in tables}

    def fail(self, path: Path_, what: str, expected: str) -> NoReturn:
        raise UserError(what, where=self.places.line(*path), expected=expected)

    def schedule(self, data: Any) -> Schedule:
        if not isinstance(data, dict) or MARK not in data:
            self.fail((), "is no schedule", f"{MARK}: {VERSION}")
        if data[MARK] != VERSION or isinstance(data[MARK], bool):
            self.fail((MARK,), f"version {data[MARK]!r:.40} of the format", f"{VERSION}")
        for key in data:
            if key not in TOP:
                self._unknown((key,), key, TOP)
        for key in ("ranks", "queues", "tasks"):
            if key not in data:
                self.fail((), f"has no {key!r}", f"the keys {', '.join(TOP)}")
        self._count(("ranks",), data["ranks"])
        name = data.get("name", "schedule")
        self._name(("name",), name)
        sections = {section: self._section(section, data.get(section, {})) for section in PARTS}
        return Schedule(
            name,
            data["ranks"],
            {
                n: Tensor(n, p["rank"], p["tiles"], p["input"])
                for n, p in sections["tensors"].items()
            },
            {n: Queue(n, p["rank"], p["core"], p["pool"]) for n, p in sections["queues"].items()},
            {n: _event(n, p) for n, p in sections["events"].items()},
            self._tasks(data["tasks"], sections["tensors"]),
            {n: Pool(n, p["rank"], p["size"]) for n, p in sections["pools"].items()},
            self._launches(data.get("launches", {})),
            self.places,
        )

    def _section(self, section: str, data: Any) -> dict[str, dict[str, Any]]:
        if not isinstance(data, dict):
            self.fail((section,), f"{section} is {data!r:.40}", "names, each with its keys")
        found = {}
        # Of a million events most are written alike; 1, 1.0 and true are not.
        alike: dict[str, dict[str, Any]] = {}
        for name, part in data.items():
            self._name((section, name), name)
            text = repr(part)
            if text not in alike:
                alike[text] = self._keys((section, name), part, PARTS[section])
            found[name] = alike[text]
        return found

    def _keys(self, path: Path_, data: Any, keys: Mapping[str, Key]) -> dict[str, Any]:
        """The values of a part, checked; what is not there has its default."""
        if data is None:
            data = {}
        if not isinstance(data, dict):
            self.fail(path, f"{data!r:.40}", f"the keys {', '.join(keys)}")
        found = dict(self.defaults[id(keys)])
        for name, value in data.items():
            key = keys.get(name)
            if key is None:
                self._unknown((*path, name), name, tuple(keys))
            self._value((*path, name), key, value)
            found[name] = value
        for name in self.required[id(keys)]:
            if name not in data:
                what = repr(path[-1]) if isinstance(path[-1], str) else "a task"
                self.fail(path, f"{what} has no {name!r}", keys[name].text)
        return found

    def _value(self, path: Path_, key: Key, value: Any) -> None:
        if key.kind == "count":
            self._count(path, value)
        elif key.kind == "flag" and not isinstance(value, bool):
            self.fail(path, f"{path[-1]} is {value!r:.40}", "true or false")
        elif key.kind in ("name", "word"):
            self._name(path, value)
            if key.of and value not in key.of:
                self.fail(path, f"{path[-1]} is {value!r:.40}", " or ".join(key.of))
        elif key.kind == "names":
            if not isinstance(value, list):
                self.fail(path, f"{path[-1]} is {value!r:.40}", "a list of names")
            for each in value:
                self._name(path, each)
        elif key.kind == "number" and (
            isinstance(value, bool) or not isinstance(value, int | float) or value != value
        ):
            self.fail(path, f"{path[-1]} is {value!r:.40}", key.text)

    def _count(self, path: Path_, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(path, f"{path[-1]} is {value!r:.40}", "a whole number")

    def _name(self, path: Path_, value: Any) -> None:
        if not isinstance(value, str) or (not value and path[-1] in ("name", "queue")):
            self.fail(path, f"{path[-1]} is {value!r:.40}", "a name")

    def _unknown(self, path: Path_, key: Any, known: tuple[str, ...]) -> NoReturn:
        near = difflib.get_close_matches(str(key), known, n=1)
        self.fail(
            path, f"unknown key {key!r:.40}", f"perhaps {near[0]}" if near else ", ".join(known)
        )

    def _launches(self, data: Any) -> Launches:
        found = self._keys(("launches",), data, LAUNCHES)
        return Launches(found["count"], tuple(found["zero"] or ()), found["barrier"])

    def _tasks(self, data: Any, tensors: Mapping[str, dict[str, Any]]) -> tuple[Task, ...]:
        if not isinstance(data, list):
            self.fail(("tasks",), f"tasks is {data!r:.40}", "a list of tasks")
        return tuple(self._task(number, each, tensors) for number, each in enumerate(data))

    def _task(self, number: int, data: Any, tensors: Mapping[str, dict[str, Any]]) -> Task:
        path = ("tasks", number)
        found = self._keys(path, data, TASK)
        return Task(
            found["name"],
            found["queue"],
            self._tiles((*path, "reads"), found["reads"], tensors),
            self._tiles((*path, "writes"), found["writes"], tensors),
            self._amounts((*path, "waits"), found["waits"]),
            self._amounts((*path, "triggers"), found["triggers"]),
            found["duration"],
            found["operator"],
            found["quiet"],
        )

    def _amounts(self, path: Path_, data: Any) -> tuple[tuple[str, int], ...]:
        if data is None:
            return ()
        if not isinstance(data, dict):
            self.fail(path, f"{path[-1]} is {data!r:.40}", "event: number")
        for name, amount in data.items():
            if type(amount) is not int or type(name) is not str:
                self.fail((*path, name), f"{name!r:.40} is {amount!r:.40}", "event: a whole number")
        return tuple(data.items())

    def _tiles(
        self, path: Path_, data: Any, tensors: Mapping[str, dict[str, Any]]
    ) -> tuple[Tiles, ...]:
        if data is None:
            return ()
        if not isinstance(data, dict):
            self.fail(path, f"{path[-1]} is {data!r:.40}", "tensor: tiles")
        found: list[Tiles] = []
        for name, value in data.items():
            if type(name) is not str:
                self.fail((*path, name), f"{name!r:.40} is no tensor", "a name")
            for first, last in self._ranges((*path, name), value, tensors.get(name)):
                found.append(Tiles(name, first, last))
        return tuple(found)

    def _ranges(
        self, path: Path_, value: Any, tensor: Mapping[str, Any] | None
    ) -> list[tuple[int, int]]:
        if type(value) is int:
            return [(value, value + 1)]
        if value == "all":
            return [(0, tensor["tiles"] if tensor else 1)]
        if isinstance(value, list) and value:
            ranges = [value] if type(value[0]) is int else value
            if all(
                isinstance(r, list) and len(r) == 2 and all(type(n) is int for n in r)
                for r in ranges
            ):
                return [(first, last) for first, last in ranges]
        self.fail(path, f"tiles {value!r:.40}", "a tile, [first, last], a list of those, or all")
