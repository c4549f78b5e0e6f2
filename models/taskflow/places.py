"""Where the parts of a JSON or YAML text stand: looked up only when something is to be said.

JSON is parsed by the standard parser at full speed; a place is found by walking the text again,
each skipped value by the same parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecoder, decoder
from typing import Any

import yaml

_scanstring: Any = vars(decoder)["scanstring"]
SPACE = re.compile(r"[ \t\n\r]*")


class RepeatedKey(ValueError):
    """An object names a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, or `RepeatedKey`."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise RepeatedKey(next(key for key in made if keys.count(key) > 1))
    return made


class JsonPlaces:
    """Lines of a well-formed JSON text by path."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self._scan: Any = vars(JSONDecoder(object_pairs_hook=no_repeats))["scan_once"]
        self._members: dict[int, dict[str | int, int]] = {}

    def line(self, *path: str | int) -> str:
        """``file:line`` of the part that ``path`` leads to, or of the last one that is there."""
        at = self._skip(0)
        for step in path:
            members = self._members_at(at)
            if step not in members:
                break
            at = members[step]
        return self._line(at)

    def line_of_repeat(self) -> str:
        """The line of a key that its object already has."""
        return self._line(self._repeat(self._skip(0)))

    def _line(self, at: int) -> str:
        return f"{self.file}:{self.text.count(chr(10), 0, at) + 1}"

    def _skip(self, at: int) -> int:
        match = SPACE.match(self.text, at)
        return match.end() if match else at

    def _members_at(self, at: int) -> dict[str | int, int]:
        """The places of the members of the object or array at ``at``, by key or number."""
        if at not in self._members:
            self._members[at] = {key: place for key, _, place in self._walk(at)}
        return self._members[at]

    def _walk(self, at: int) -> Iterator[tuple[str | int, int, int]]:
        """(key or number, place of the key, place of the value) of each member."""
        opening = self.text[at]
        if opening not in "{[":
            return
        at, number = self._skip(at + 1), 0
        while self.text[at] not in "}]":
            key: str | int = number
            place = at
            if opening == "{":
                key, at = _scanstring(self.text, at + 1, True)
                at = self._skip(self._skip(at) + 1)
            yield key, place, at
            at = self._skip(self._scan(self.text, at)[1])
            if self.text[at] == ",":
                at = self._skip(at + 1)
            number += 1

    def _repeat(self, at: int) -> int:
        seen: set[str | int] = set()
        value = at
        try:
            for key, place, value in self._walk(at):  # noqa: B007
                if key in seen:
                    return place
                seen.add(key)
        except RepeatedKey:
            return self._repeat(value)
        return at


class YamlPlaces:
    """Lines of a YAML document by path."""

    def __init__(self, file: str, root: yaml.Node) -> None:
        self.file, self.root = file, root

    def line(self, *path: str | int) -> str:
        """``file:line`` of the part that ``path`` leads to, or of the last one that is there."""
        node, place = self.root, self.root
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            place, node = found
        return f"{self.file}:{place.start_mark.line + 1}"


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The key and the value that a step leads to; in a sequence the item is both."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return (node.value[step], node.value[step]) if step < len(node.value) else None
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key, value
    return None
