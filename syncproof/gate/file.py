"""A gate file: read, held against its JSON Schema, each mistake with its line and column."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from syncproof.models.errors import UserError
from syncproof.models.profiles import parsed_yaml

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

SCHEMA_FILE = "gate.schema.json"
LARGEST_FILE = 1 << 20
MOST_VALUES = 100_000
"""Values that a file may hold once its aliases are followed."""

Place = tuple[int, int]
Steps = tuple[str | int, ...]


@dataclass(frozen=True)
class Entry:
    """An obligation as it is written, defaults filled in; ``given`` are its own keys."""

    keys: Mapping[str, Any]
    given: tuple[str, ...]
    file: str
    line: int
    column: int

    @property
    def where(self) -> str:
        """Its place as ``gate.yaml:12:3``."""
        return f"{self.file}:{self.line}:{self.column}"


def shipped_gate() -> Path:
    """The obligations that ship with us."""
    return Path(str(resources.files("syncproof.specs").joinpath("gate.yaml")))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of gate files."""
    text = resources.files("syncproof.specs").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def read_gate(path: Path) -> list[Entry]:
    """The entries of a gate file; `UserError` with line and column for what it cannot hold."""
    name = str(path)
    text = _text(path)
    data = parsed_yaml(text, name)
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None:
        raise UserError("is empty", where=name, expected="a mapping with obligations")
    _refuse_bombs(node, name)
    _validate(data, node, name)
    defaults = data.get("defaults", {})
    entries = []
    for number, own in enumerate(data["obligations"]):
        line, column = _place(node, ("obligations", number))
        keys = {**defaults, **own}
        if "set" in defaults and "set" in own:
            keys["set"] = {**defaults["set"], **own["set"]}
        if "budget" in defaults and "budget" in own:
            keys["budget"] = {**defaults["budget"], **own["budget"]}
        entry = Entry(keys, tuple(own), name, line, column)
        if "protocol" not in keys:
            raise UserError("no protocol", where=entry.where, expected="protocol: NAME or FILE.py")
        entries.append(entry)
    return entries


def _text(path: Path) -> str:
    expected = "a YAML file of obligations"
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise UserError(f"larger than {LARGEST_FILE} bytes", where=str(path), expected=expected)
        return content.decode("utf-8")
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise UserError(problem, where=str(path), expected=expected) from None
    except UnicodeDecodeError:
        raise UserError("is no text in UTF-8", where=str(path), expected=expected) from None


def _refuse_bombs(root: yaml.Node, name: str) -> None:
    """Aliases share what they name, but whoever walks through them sees all of it each time."""
    sizes: dict[int, int] = {}
    pending: list[tuple[yaml.Node, bool]] = [(root, False)]
    open_nodes: set[int] = set()
    while pending:
        node, is_left = pending.pop()
        children = list(_children(node))
        if is_left:
            open_nodes.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes.get(id(each), 0) for each in children)
            if sizes[id(node)] > MOST_VALUES:
                raise UserError(f"more than {MOST_VALUES} values", where=name)
            continue
        if id(node) in sizes:
            continue
        open_nodes.add(id(node))
        pending.append((node, True))
        for each in children:
            if id(each) in open_nodes:
                raise UserError("a value that holds itself", where=_where(name, each))
            pending.append((each, False))


def _children(node: yaml.Node) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return (value for _, value in node.value)
    return node.value if isinstance(node, yaml.SequenceNode) else ()


# What the schema says, told with the place in the file


def _validate(data: Any, node: yaml.Node, name: str) -> None:
    from jsonschema import Draft202012Validator

    found = Draft202012Validator(json_schema()).iter_errors(data)
    errors = [_innermost(each) for each in found]
    if errors:
        first = min(errors, key=lambda error: _place(node, _path(error)))
        raise _told(first, node, name)


def _innermost(error: ValidationError) -> ValidationError:
    """The error within the value, where one of several forms has at least the right shape."""
    within = [each for each in error.context or () if each.path or _is_of_a_name(each)]
    return _innermost(within[0]) if within else error


def _is_of_a_name(error: ValidationError) -> bool:
    """Whether it is about a key of a mapping: its path is then the mapping's."""
    return "propertyNames" in error.schema_path


def _path(error: ValidationError) -> Steps:
    """Where an error is: for an unknown key the key itself."""
    path: Steps = tuple(error.absolute_path)
    if _is_of_a_name(error):
        return (*path, str(error.instance))
    return (*path, _unknown(error)[0]) if error.validator == "additionalProperties" else path


def _unknown(error: ValidationError) -> list[str]:
    assert isinstance(error.instance, Mapping) and isinstance(error.schema, Mapping)
    known = error.schema.get("properties", {})
    return [str(each) for each in error.instance if each not in known]


def _told(error: ValidationError, node: yaml.Node, name: str) -> UserError:
    path = _path(error)
    line, column = _place(node, path)
    where = f"{name}:{line}:{column}"
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    if error.validator == "additionalProperties":
        unknown, known = str(path[-1]), list(schema.get("properties", {}))
        return UserError(
            f"unknown key {unknown!r:.60}", where=where, expected=_near(unknown, known)
        )
    if schema == json_schema()["$defs"]["property"]:
        name, known = error.instance, schema["enum"]
        return UserError(f"no property {name!r:.60}", where=where, expected=_near(name, known))
    expected = _described(error)
    if error.validator == "required":
        assert isinstance(error.instance, Mapping)
        missing = [each for each in schema["required"] if each not in error.instance]
        return UserError(f"no {' and no '.join(missing)}", where=where, expected=expected)
    key = next((f"{each} is " for each in reversed(path) if isinstance(each, str)), "")
    return UserError(f"{key}{_shown(error.instance)}", where=where, expected=expected)


def _near(unknown: object, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(unknown), known, n=2)
    return f"perhaps {' or '.join(near)}" if near else f"one of {', '.join(known)}"


def _described(error: ValidationError) -> str:
    """The description of the nearest schema around an error that has one.

    The path of an error leaves out that a schema refers to another one.
    """
    root = json_schema()
    schema: Any = root
    found = ""
    for step in (*error.absolute_schema_path, None):
        while isinstance(schema, Mapping):
            found = schema.get("description", found)
            if "$ref" not in schema or step in schema:
                break
            schema = root["$defs"][str(schema["$ref"]).rpartition("/")[2]]
        schema = schema[step] if step is not None else schema
    return found


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list" if value else "an empty list"
    return "empty" if value is None else f"{value!r:.60}"


def _place(node: yaml.Node, path: Steps) -> Place:
    """Line and column of what a path leads to; of the key where the last step names one."""
    here = node
    mark = node.start_mark
    for step in path:
        if isinstance(here, yaml.SequenceNode) and isinstance(step, int):
            here = here.value[step]
            mark = here.start_mark
            continue
        pairs = here.value if isinstance(here, yaml.MappingNode) else []
        found = next(((k, v) for k, v in pairs if _key(k) == str(step)), None)
        if found is None:
            break
        mark, here = found[0].start_mark, found[1]
    return mark.line + 1, mark.column + 1


def _key(node: yaml.Node) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _where(name: str, node: yaml.Node) -> str:
    return f"{name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
