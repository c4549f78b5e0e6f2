"""What memory holds: plain hashable values, the parts of a token, and what a torn read gives.

A value is compared by type and content, so ``1``, ``True`` and ``1.0`` are three values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from numbers import Number
from typing import Any, Never

from syncproof.models.errors import UserError
from syncproof.models.identity_classes import feigns, resolves
from syncproof.models.per_rank import PerRank


@dataclass(frozen=True)
class Mark:
    """A named constant, such as the value that a receiver fills its window with."""

    name: str

    def __str__(self) -> str:
        return self.name


SENTINEL = Mark("SENTINEL")


class Unchanging:
    """What no role can change, as all its runs that read the same are given the same object.

    Frozen dataclasses would do, at several times the cost for each.
    """

    def __setattr__(self, name: str, value: object) -> Never:
        self.__delattr__(name)

    def __delattr__(self, name: str) -> Never:
        raise UserError(
            f"a {type(self).__name__} is changed in place",
            expected="a variable of the role for what it makes of it",
        )


@dataclass(unsafe_hash=True, init=False)
class Part(Unchanging):
    """The bytes of one field of one token: unlike those of every other token and field."""

    source: int
    destination: int
    token: Hashable
    round: Hashable
    field: str

    def __init__(
        self, source: int, destination: int, token: Hashable, round: Hashable, field: str
    ) -> None:
        self.__dict__.update(
            source=source, destination=destination, token=token, round=round, field=field
        )

    @property
    def key(self) -> tuple[int, int, Hashable, Hashable]:
        """Which token it is a part of: (source, destination, token, round)."""
        return (self.source, self.destination, self.token, self.round)

    def __str__(self) -> str:
        return f"{self.field} of {token_text(self.key)}"


@dataclass(unsafe_hash=True, init=False)
class Payload(Unchanging):
    """A whole token on its way from ``source`` to ``destination``.

    Put into a block it fills each field with its own part; ``content`` replaces the parts of
    named fields, for tokens whose lead equals another's or the sentinel.
    """

    source: int
    destination: int
    token: Hashable
    round: Hashable
    content: tuple[tuple[str, Hashable], ...] = ()

    def __init__(
        self,
        source: int,
        destination: int,
        token: Hashable,
        round: Hashable,
        content: tuple[tuple[str, Hashable], ...] = (),
    ) -> None:
        self.__dict__.update(
            source=source, destination=destination, token=token, round=round, content=content
        )

    def field(self, name: str) -> Hashable:
        """The value that this token puts into the field ``name``."""
        for field, value in self.content:
            if field == name:
                return value
        return Part(self.source, self.destination, self.token, self.round, name)

    @property
    def key(self) -> tuple[int, int, Hashable, Hashable]:
        """Which token it is: (source, destination, token, round)."""
        return (self.source, self.destination, self.token, self.round)

    def with_content(self, **fields: Hashable) -> Payload:
        """The same token with the bytes of some fields fixed."""
        if not fields:
            return self
        content = tuple(sorted({**dict(self.content), **fields}.items()))
        return Payload(self.source, self.destination, self.token, self.round, content)


def token_text(key: tuple[Hashable, ...]) -> str:
    """A token in words: ``token 0 round 2 (1->0)``."""
    source, destination, token, round = key
    return f"token {token} round {round} ({source}->{destination})"


def together(values: Iterable[object]) -> str:
    """Several values in words; the parts of one token by its name."""
    parts = list(values)
    keys = {part.key if isinstance(part, Part) else None for part in parts}
    if len(parts) > 1 and len(keys) == 1 and None not in keys:
        return token_text(next(key for key in keys if key is not None))
    return ", ".join(dict.fromkeys(map(str, parts)))


@dataclass(frozen=True)
class Torn:
    """A field read while only some of its atoms had landed: equal to no whole value."""

    pieces: tuple[Hashable, ...]

    def __str__(self) -> str:
        return "torn(" + " | ".join(map(str, self.pieces)) + ")"


class Opaque(Unchanging):
    """The value of a field that control flow must not look at; it can be consumed or put again.

    Keeping one atom of each kind is sound only for such fields, so looking is an error.
    """

    value: Hashable

    def __init__(self, value: Hashable) -> None:
        self.__dict__["value"] = value

    def __str__(self) -> str:
        return str(self.value)

    def _look(self, *_: object) -> Never:
        raise UserError(
            "a role looks at an opaque field",
            expected="name it in Region(compared=...) to compare it, or only consume or put it",
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _look
    __bool__ = __hash__ = __int__ = __index__ = __len__ = __iter__ = _look
    __add__ = __radd__ = __sub__ = __rsub__ = __mod__ = _look


class Block(Unchanging):
    """What a load of several fields gives: one attribute a field (``block.lead``)."""

    def __init__(self, fields: Mapping[str, Hashable | Opaque]) -> None:
        self.__dict__.update(fields)

    def __str__(self) -> str:
        return "{" + ", ".join(f"{name}: {value}" for name, value in vars(self).items()) + "}"


@dataclass(frozen=True)
class AnyOf:
    """An initial value chosen freely for each block."""

    values: tuple[Hashable, ...]


def any_of(*values: Hashable) -> AnyOf:
    """``Region(initial=any_of(0, 1, 7))``: the memory starts with any of these values."""
    return AnyOf(values)


def uncover(value: Any) -> Hashable:
    """The value itself, for an opaque one too."""
    found: Hashable = value.value if isinstance(value, Opaque) else value
    return found


PLAIN = frozenset((Part, Mark, int, bool, str, bytes))
"""Types of which equal values of one type have the same content."""


def typed(value: Any) -> Hashable:
    """A key that is equal for two values only if type and content are equal."""
    kind = type(value)
    if kind in PLAIN:
        return (kind, value)
    if isinstance(value, tuple):
        return (type(value), tuple(typed(item) for item in value))
    if isinstance(value, Torn):
        return (Torn, typed(value.pieces))
    if isinstance(value, float):
        return (float, value.hex())
    if issubclass(kind, frozenset):
        return (kind, frozenset(map(typed, value)))
    if issubclass(kind, Number):
        return (kind, value, repr(value))  # Decimal("1.0") is not Decimal("1.00")
    if "__dataclass_params__" in vars(kind) and kind.__dataclass_params__.frozen:
        # What it holds, and not what it says that it equals
        return (kind, *(typed(getattr(value, each.name)) for each in fields(kind)))
    return (kind, value)


ENDURING = frozenset((int, bool, float, complex, str, bytes, range, type(None), Mark))
"""Types of values that nobody can change and that hold no others."""
HEAP = 1 << 9
"""The flag of a class that was made by running Python, and so has attributes that can be set."""
HOLDING = (Part, Payload, Torn, AnyOf, Opaque)
PACKAGE = __name__.rpartition(".")[0]


def changeable(value: Any) -> str:
    """What in a value may be changed in place, as the name of its type; nothing if nothing can."""
    kind = type(value)
    if kind is type:
        return "class" if value.__flags__ & HEAP else ""
    if type(kind) is type and kind in ENDURING:
        return ""
    if feigns(kind):
        return f"{kind.__name__}, a class that says itself what it equals"
    if kind not in HOLDING and kind.__flags__ & HEAP and not resolves(kind):
        return f"{kind.__name__}, a class made in a function"
    if issubclass(kind, Enum):
        return ""
    inside: Iterable[Any]
    if issubclass(kind, tuple | frozenset):
        if hasattr(value, "__dict__"):
            return kind.__name__
        inside = value
    elif kind in HOLDING:
        inside = vars(value).values()
    elif kind.__module__.startswith(PACKAGE):
        return kind.__name__ if issubclass(kind, Block | PerRank) else ""
    elif "__dataclass_params__" in vars(kind) and kind.__dataclass_params__.frozen:
        inside = [getattr(value, each.name) for each in fields(kind)]
    else:
        is_plain = issubclass(kind, Number) and not hasattr(value, "__dict__")
        return "" if is_plain else kind.__name__
    for each in inside:
        if found := changeable(each):
            return found
    return ""


def refuse_changeable(value: Any, what: str = "a value") -> None:
    """Refuse what would be something else as soon as a role changes it."""
    kind = changeable(value)
    if kind:
        raise UserError(
            f"{what} is or holds a {kind}, which may be changed in place",
            expected="numbers, texts, tuples, tokens or frozen dataclasses of these",
        )


class Values:
    """Numbers for values: equal numbers, equal values."""

    def __init__(self) -> None:
        self._known: list[Hashable] = []
        self._number: dict[Hashable, int] = {}

    def number(self, value: Hashable) -> int:
        """The number of ``value``; a `UserError` if it cannot be hashed."""
        try:
            key = typed(value)
            found = self._number.get(key)
        except TypeError as error:
            refuse_changeable(value)
            raise UserError(
                f"the value {value!r} cannot be hashed", expected="a number, text, tuple or token"
            ) from error
        if found is None:
            refuse_changeable(value)
            found = self._number[key] = len(self._known)
            self._known.append(value)
        return found

    def __getitem__(self, number: int) -> Hashable:
        return self._known[number]
