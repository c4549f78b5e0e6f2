"""Values of TLA+ states: as TLC prints them, and as Apalache writes them (ITF, ADR-015).

Both become the same plain values: int, bool, str, tuple (sequences and tuples), frozenset, and
dict for records and functions. A function over 1..n is a sequence in TLC's text.
"""

from __future__ import annotations

import re
from typing import Any

TOKEN = re.compile(r'<<|>>|\|->|:>|@@|\.\.|[\[\](){},]|"(?:[^"\\]|\\.)*"|-?\d+|\w+')
CLOSING = {"<<": ">>", "{": "}"}
DERIVED = ("todo", "known")
"""Variables of ``Programs`` that follow from the others, large and never looked at."""


class Unreadable(ValueError):
    """A text that is no value, with what was met instead."""


class _Reader:
    def __init__(self, text: str) -> None:
        strange = "".join(TOKEN.sub("", text).split())
        if strange:
            raise Unreadable(f"{strange[:10]!r} in a value")
        self.tokens = TOKEN.findall(text)
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        found = self.peek()
        if not found or (expected and found != expected):
            raise Unreadable(f"{found or 'the end'!r} instead of {expected or 'a value'!r}")
        self.position += 1
        return found

    def value(self) -> Any:
        token = self.take()
        if token in CLOSING:
            items = self.items(CLOSING[token])
            return tuple(items) if token == "<<" else frozenset(items)
        if token == "[":
            return self.record()
        if token == "(":
            return self.function()
        return self.atom(token)

    def items(self, closing: str) -> list[Any]:
        found: list[Any] = []
        if self.peek() != closing:
            found.append(self.value())
        while self.peek() != closing and found:
            self.take(",")
            found.append(self.value())
        self.take(closing)
        return found

    def record(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        while True:
            name = self.take()
            self.take("|->")
            found[name] = self.value()
            if self.peek() == "]":
                self.take()
                return found
            self.take(",")

    def function(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        while True:
            key = self.value()
            self.take(":>")
            found[key] = self.value()
            if self.peek() == ")":
                self.take()
                return found
            self.take("@@")

    def atom(self, token: str) -> Any:
        if token.startswith('"'):
            return re.sub(r"\\(.)", r"\1", token[1:-1])
        if token in ("TRUE", "FALSE"):
            return token == "TRUE"
        if token.lstrip("-").isdigit():
            return int(token)
        if not token.isidentifier():
            raise Unreadable(f"{token!r} instead of a value")
        return token


def from_tlc(text: str) -> Any:
    """The value that TLC prints as ``text``; `Unreadable` if it is none."""
    reader = _Reader(text)
    try:
        found = reader.value()
    except TypeError as error:
        raise Unreadable(f"a set or a key that cannot be one: {error}") from None
    if reader.peek():
        raise Unreadable(f"{reader.peek()!r} behind a value")
    return found


def state_from_tlc(text: str, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """The variables of a state that TLC prints as ``/\\ name = value``, one behind the other.

    ``known`` keeps what has been read: states of one run share most of their values.
    """
    known = {} if known is None else known
    state: dict[str, Any] = {}
    for part in re.split(r"(?:^|\n)(?:/\\ )?(?=\w+ = )", text):
        if not part.strip():
            continue
        name, equals, written = part.partition(" = ")
        if not equals:
            raise Unreadable(f"{part[:40]!r} is no variable")
        if name.strip() in DERIVED:
            continue
        if written not in known:
            known[written] = from_tlc(written)
        state[name.strip()] = known[written]
    return state


def from_itf(data: Any) -> Any:
    """The value of an ITF expression; `Unreadable` if it is none.

    Numbers may also be JSON numbers, as Apalache wrote small ones before September 2023.
    """
    if isinstance(data, bool | str | int):
        return data
    if isinstance(data, list):
        return tuple(from_itf(each) for each in data)
    if not isinstance(data, dict):
        raise Unreadable(f"{data!r:.40} is no ITF expression")
    try:
        if "#bigint" in data:
            return int(data["#bigint"])
        if "#tup" in data:
            return tuple(from_itf(each) for each in data["#tup"])
        if "#set" in data:
            return frozenset(from_itf(each) for each in data["#set"])
        if "#map" in data:
            return {from_itf(key): from_itf(value) for key, value in data["#map"]}
    except (TypeError, ValueError) as error:
        raise Unreadable(f"a malformed ITF expression: {error}") from None
    if any(name.startswith("#") for name in data):
        raise Unreadable(f"{sorted(data)} is no ITF expression")
    return {name: from_itf(value) for name, value in data.items()}
