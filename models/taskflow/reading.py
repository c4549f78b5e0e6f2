"""Schedules from YAML and JSON files: everything that is wrong is one line with its place."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import orjson
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
T = TypeVar("T")
_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_schedule(path: str) -> Schedule:
    """The schedule in a file; a `UserError` with file and line if there is none."""
    with collector_paused():
        text, form = _text(path)
        plain = _read_plain_json(text, path) if form == "json" else None
        if plain is not None:
            return plain
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


def _read_plain_json(text: str, path: str) -> Schedule | None:
    """The schedule in a JSON text without any fault, several times as fast.

    None if there may be a fault: the standard parser then says what and where. The fast one keeps
    the last of keys that repeat, and takes whole numbers beyond 64 bits for fractions.
    """
    try:
        data = orjson.loads(text)
        if not _all_keys_differ(text, data):
            return None
        made = _Reader(JsonPlaces(path, text)).schedule(data)
        validate(made)
    except (ValueError, RecursionError, UserError):
        return None
    return made


def _all_keys_differ(text: str, data: Any) -> bool:
    """Whether no object has a key twice: then the objects have as many keys as are in the text.

    Each key ends in a quote and a colon. The answer is no as well where there may be blanks between
    them, where a string has both within, or where there are objects that a schedule does not have.
    """
    if not isinstance(data, dict) or any(text.count(blank + ":") for blank in " \t\n\r"):
        return False
    sections = [each for each in data.values() if type(each) is dict]
    parts = [part for each in sections for part in each.values() if type(part) is dict]
    tasks = data.get("tasks")
    for task in tasks if isinstance(tasks, list) else ():
        if type(task) is dict:
            parts.append(task)
            parts += [each for each in task.values() if type(each) is dict]
    return len(data) + sum(map(len, sections)) + sum(map(len, parts)) == text.count('":')


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

PLAIN: dict[str, tuple[type, ...]] = {
    "count": (int,),
    "flag": (bool,),
    "name": (str,),
    "word": (),
    "names": (),
    "number": (int, float),
    "amounts": (dict,),
    "tiles": (dict,),
}
"""Types of values that need no second look, for each kind of key, unless they are empty."""

_ONE_RANGE = [int, int, str]
AMOUNTS = ("waits", "triggers")
"""The keys of a task that map events to numbers."""


def _are_amounts(each: Iterable[Any]) -> bool:
    """Whether all are dicts of names and whole numbers, said of millions at once."""
    found = list(each)
    return (
        set(map(type, found)) <= {dict}
        and set(map(type, chain.from_iterable(found))) <= {str}
        and set(map(type, chain.from_iterable(map(dict.values, found)))) <= {int}
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
        tensors = self._section("tensors", data, Tensor)
        return Schedule(
            name,
            data["ranks"],
            tensors,
            self._section("queues", data, Queue),
            self._section("events", data, Event),
            self._tasks(data["tasks"], tensors),
            self._section("pools", data, Pool),
            self._launches(data.get("launches", {})),
            self.places,
        )

    def _section(
        self, section: str, whole: Mapping[str, Any], make: Callable[..., T]
    ) -> dict[str, T]:
        """The parts of a section, each made of its name and its values in the order of the keys."""
        data = whole.get(section, {})
        if not isinstance(data, dict):
            self.fail((section,), f"{section} is {data!r:.40}", "names, each with its keys")
        found = {}
        # Of a million events most are written alike; 1, 1.0 and true are not.
        alike: dict[str, tuple[Any, ...]] = {}
        for name, part in data.items():
            if type(name) is not str:
                self._name((section, name), name)
            text = repr(part)
            values = alike.get(text)
            if values is None:
                values = alike[text] = self._values((section, name), part, PARTS[section])
            found[name] = make(name, *values)
        return found

    def _values(self, path: Path_, part: Any, keys: Mapping[str, Key]) -> tuple[Any, ...]:
        found = self._keys(path, part, keys)
        return tuple(
            tuple(found[name] or ()) if key.kind == "names" else found[name]
            for name, key in keys.items()
        )

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
            if type(value) not in PLAIN[key.kind] or not value or value != value or key.of:
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

    def _tasks(self, data: Any, tensors: Mapping[str, Tensor]) -> tuple[Task, ...]:
        if not isinstance(data, list):
            self.fail(("tasks",), f"tasks is {data!r:.40}", "a list of tasks")
        amounts = [each.get(key) for each in data if type(each) is dict for key in AMOUNTS]
        is_plain = _are_amounts(each for each in amounts if each is not None)
        return tuple(
            self._task(number, each, tensors, is_plain) for number, each in enumerate(data)
        )

    def _task(self, number: int, data: Any, tensors: Mapping[str, Tensor], is_plain: bool) -> Task:
        """A task; ``is_plain`` if the amounts of all tasks are known to be such."""
        path = ("tasks", number)
        found = self._keys(path, data, TASK)
        if not is_plain:
            for key in AMOUNTS:
                self._amounts((*path, key), found[key])
        return Task(
            found["name"],
            found["queue"],
            self._tiles((*path, "reads"), found["reads"], tensors),
            self._tiles((*path, "writes"), found["writes"], tensors),
            tuple((found["waits"] or {}).items()),
            tuple((found["triggers"] or {}).items()),
            found["duration"],
            found["operator"],
            found["quiet"],
        )

    def _amounts(self, path: Path_, data: Any) -> None:
        if data is None:
            return
        if not isinstance(data, dict):
            self.fail(path, f"{path[-1]} is {data!r:.40}", "event: number")
        for name, amount in data.items():
            if not _are_amounts([{name: amount}]):
                self.fail((*path, name), f"{name!r:.40} is {amount!r:.40}", "event: a whole number")

    def _tiles(self, path: Path_, data: Any, tensors: Mapping[str, Tensor]) -> tuple[Tiles, ...]:
        if data is None:
            return ()
        if not isinstance(data, dict):
            self.fail(path, f"{path[-1]} is {data!r:.40}", "tensor: tiles")
        found: list[Tiles] = []
        for name, value in data.items():
            if type(value) is list and [*map(type, value), type(name)] == _ONE_RANGE:
                found.append(Tiles(name, *value))
                continue
            if type(name) is not str:
                self.fail((*path, name), f"{name!r:.40} is no tensor", "a name")
            for first, last in self._ranges((*path, name), value, tensors.get(name)):
                found.append(Tiles(name, first, last))
        return tuple(found)

    def _ranges(self, path: Path_, value: Any, tensor: Tensor | None) -> list[tuple[int, int]]:
        if type(value) is int:
            return [(value, value + 1)]
        if value == "all":
            return [(0, tensor.tiles if tensor else 1)]
        if isinstance(value, list) and value:
            ranges = [value] if type(value[0]) is int else value
            if all(
                isinstance(r, list) and len(r) == 2 and all(type(n) is int for n in r)
                for r in ranges
            ):
                return [(first, last) for first, last in ranges]
        self.fail(path, f"tiles {value!r:.40}", "a tile, [first, last], a list of those, or all")
