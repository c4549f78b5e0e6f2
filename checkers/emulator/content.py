"""What values look like as bytes: tokens of floating-point numbers, flags, sentinels, and back.

A cell of memory is read by its bytes alone: a token is recognised only if each byte of it is right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from syncproof.models.errors import UserError
from syncproof.models.values import SENTINEL, Part, typed

OF_SENTINEL = typed(SENTINEL)
LEAD = 32
MOST_KNOWN = 1 << 17
"""Byte strings whose meaning is kept; what is in memory or in flight is never forgotten."""


@dataclass(frozen=True)
class NumberFormat:
    """The numbers of a token: ``mask`` keeps ``size`` bytes of random bits finite, ``sentinel`` is
    the value that no number of a model is (a NaN; of INT8 the one without a negative)."""

    name: str
    size: int
    mask: int
    sentinel: int


FORMATS = {
    each.name: each
    for each in (
        NumberFormat("bf16", 2, 0xBFFF, 0xFFFF),
        NumberFormat("fp16", 2, 0xBFFF, 0xFFFF),
        NumberFormat("fp8", 1, 0xBF, 0xFF),
        NumberFormat("int8", 1, 0xFF, 0x80),
    )
}


class Shape(NamedTuple):
    """Where a cell lies in its field: (offset, bytes) of each of its ranges."""

    ranges: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        return sum(length for _, length in self.ranges)


@dataclass(eq=False)
class Known:
    """What is known of the cells of one shape: the bytes of values, and what bytes mean."""

    shape: Shape
    bytes_of: dict[Any, bytes] = field(default_factory=dict)
    meaning: dict[bytes, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Garbage:
    """Bytes that nobody has put as a whole."""

    shape: Shape
    data: bytes

    def __str__(self) -> str:
        shown = self.data[:8].hex(" ")
        return f"unknown bytes {shown}{' …' if len(self.data) > 8 else ''}"


class Content:
    """Bytes for values and values for bytes.

    ``number_format`` is one of `FORMATS`. With ``domain`` tokens have only so many different
    contents, and the first of them has the bytes of the sentinel. ``sentinel`` is the pattern of
    the sentinel's numbers, by default one that no number has.
    """

    def __init__(
        self, number_format: str = "bf16", domain: int = 0, sentinel: int | None = None
    ) -> None:
        if number_format not in FORMATS:
            raise UserError(
                f"no payload of {number_format!r}", where="--payload", expected=" or ".join(FORMATS)
            )
        self.format, self.domain = FORMATS[number_format], domain
        self.sentinel = self.format.sentinel if sentinel is None else sentinel
        self._known: dict[Shape, Known] = {}
        self._masks: dict[int, int] = {}

    def of(self, shape: Shape) -> Known:
        """What is known of the cells of a shape."""
        found = self._known.get(shape)
        if found is None:
            found = self._known[shape] = Known(shape)
        return found

    def encode(self, value: Any, shape: Shape) -> bytes:
        """The bytes of ``value`` in a cell of this shape; `UserError` for a number too large."""
        return self.encoded(value, self.of(shape))

    def decode(self, data: bytes, shape: Shape) -> Any:
        """The value that bytes mean: the first that was encoded so, a number, or `Garbage`."""
        return self.decoded(data, self.of(shape))

    def encoded(self, value: Any, known: Known) -> bytes:
        """`encode` for cells of which somebody keeps what is known."""
        key = value if type(value) is Part else typed(value)
        found = known.bytes_of.get(key)
        if found is None:
            found = known.bytes_of[key] = self._made(value, known.shape)
            known.meaning.setdefault(found, value)
        return found

    def decoded(self, data: bytes, known: Known) -> Any:
        """`decode` for cells of which somebody keeps what is known."""
        value = known.meaning.get(data)
        if value is None and data not in known.meaning:
            value = self._number(data, known.shape)
        return value

    def same(self, one: Any, other: Any) -> bool:
        """Whether two values have the same bytes, in whatever cell."""
        if isinstance(one, Garbage) or isinstance(other, Garbage):
            shape = one.shape if isinstance(one, Garbage) else other.shape
            return self.encode(one, shape) == self.encode(other, shape)
        if isinstance(one, bytes) or isinstance(other, bytes):
            sizes = [len(each) for each in (one, other) if isinstance(each, bytes)]
            shape = Shape(((0, max(*sizes, LEAD)),))
            return self.encode(one, shape) == self.encode(other, shape)
        return bool(self._key(one) == self._key(other))

    def is_crowded(self) -> bool:
        """Whether it is time to `forget`."""
        return sum(len(known.meaning) for known in self._known.values()) > MOST_KNOWN

    def forget(self, kept: Iterable[tuple[Shape, bytes]]) -> None:
        """Forget what half of the byte strings mean, of each shape the oldest; never one of
        ``kept``."""
        needed = set(kept)
        for shape, known in self._known.items():
            recent = len(known.meaning) // 2
            known.meaning = {
                data: value
                for number, (data, value) in enumerate(known.meaning.items())
                if number >= recent or (shape, data) in needed
            }
            known.bytes_of = {}

    def _key(self, value: Any) -> Any:
        """What the bytes of a value depend on."""
        if isinstance(value, Part) and self.domain:
            number = int.from_bytes(hashlib.blake2b(repr(value.key).encode()).digest()[:4], "big")
            number %= self.domain
            return OF_SENTINEL if not number else ("content", number, value.field)
        return typed(value)

    def _made(self, value: Any, shape: Shape) -> bytes:
        if isinstance(value, Garbage):
            return value.data if value.shape == shape else bytes(shape.size)
        if type(value) is int:
            return b"".join(_number_bytes(value, length) for _, length in shape.ranges)
        key = self._key(value)
        if len(shape.ranges) == 1:
            ((offset, length),) = shape.ranges
            return self._stream(value, key, offset + length)[offset : offset + length]
        last = max(offset + length for offset, length in shape.ranges)
        whole = self._stream(value, key, last)
        return b"".join(whole[offset : offset + length] for offset, length in shape.ranges)

    def _stream(self, value: Any, key: Any, size: int) -> bytes:
        """The first ``size`` bytes of a value in a field of its own."""
        if isinstance(value, bytes):
            return value[:size].ljust(size, b"\0")
        width = self.format.size
        if key == OF_SENTINEL:
            return self.sentinel.to_bytes(width, "little") * -(-size // width)
        raw = hashlib.shake_128(repr(key).encode()).digest(size + size % width)
        if not isinstance(value, Part):
            return raw
        return (int.from_bytes(raw) & self._mask(len(raw))).to_bytes(len(raw))

    def _mask(self, size: int) -> int:
        """What keeps ``size`` random bytes finite numbers."""
        found = self._masks.get(size)
        if found is None:
            width = self.format.size
            numbers = self.format.mask.to_bytes(width, "little") * (size // width)
            found = self._masks[size] = int.from_bytes(numbers)
        return found

    def _number(self, data: bytes, shape: Shape) -> Any:
        first = shape.ranges[0][1]
        value = int.from_bytes(data[: _width(first)], "little", signed=True)
        if b"".join(_number_bytes(value, length) for _, length in shape.ranges) == data:
            return value
        return Garbage(shape, data)


def _width(length: int) -> int:
    return 8 if length >= 8 else 4 if length >= 4 else length


def _number_bytes(value: int, length: int) -> bytes:
    try:
        return value.to_bytes(_width(length), "little", signed=True).ljust(length, b"\0")
    except OverflowError:
        raise UserError(
            f"the number {value} does not fit into {length} B", expected="a wider field"
        ) from None


def hex_difference(expected: bytes, found: bytes, lines: int = 4) -> str:
    """The first lines of 16 bytes that differ, expected above found, as ``xxd`` shows them."""
    told: list[str] = []
    different = 0
    for at in range(0, max(len(expected), len(found)), 16):
        one, other = expected[at : at + 16], found[at : at + 16]
        if one == other:
            continue
        different += 1
        if different <= lines:
            told += [f"  {at:04x}  expected  {one.hex(' ')}", f"        found     {other.hex(' ')}"]
    if different > lines:
        told.append(f"  … and {different - lines} more lines of 16 B")
    return "\n".join(told)
