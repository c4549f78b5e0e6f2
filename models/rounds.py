"""Rounds without bound: the number of a round as an opaque value.

A role can add a whole number to a round, multiply or divide it by one, take it modulo one, and
compare it with another round of its scale. Nothing else: so what a role does depends on differences
of rounds and on residues alone, and a run looks the same when all of its rounds are moved by a
common multiple of the moduli.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from numbers import Number
from typing import Any, Never

from syncproof.models.errors import UserError
from syncproof.models.values import AnyOf, Mark, Part, Payload, Torn

MOST_LEAST = 8
"""What is known of a round's smallest value is kept up to here; knowing less is always right."""

Scale = int | Fraction
"""By how much a value moves when all rounds do by one: 2 for ``2 * r + 1``, 1/2 for ``r // 2``."""

Note = Callable[[str, "Round", "Round | int", Any], None]


class OutsideRounds(UserError):
    """A role uses a round in a way that depends on more than differences and residues."""


class NeedsModulus(BaseException):
    """A role takes a round modulo ``number`` or divides it, which the common multiple covers."""

    def __init__(self, number: int) -> None:
        super().__init__(f"rounds modulo {number}")
        self.number = number


class NeedsLookback(BaseException):
    """A role looks back at a round that was held to be long past."""


class Round:
    """The number of a round, or a value that is made of one; it is never below ``least``.

    ``note``, if there is one, is told of every test; ``origin`` says where the value was read.
    Its own names end with a line: a number has no such, and a role that asks for one gets none.
    """

    def __init__(
        self,
        value: int,
        least: int = 0,
        note: Note | None = None,
        origin: Hashable = None,
        scale: Scale = 1,
    ) -> None:
        self.number_, self.least_ = value, min(least, MOST_LEAST)
        self.note_, self.origin_, self.scale_ = note, origin, scale

    # A role may ask whether a round is a number, as it is where rounds are bounded.
    __class__ = property(lambda self: int)

    def __str__(self) -> str:
        # A text is compared, measured and used as a name: what a role makes of it is not seen.
        try:
            self._noted("text", 0, None)
        except OutsideRounds as error:
            raise error.with_traceback(None) from None
        return "r"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)

    def __hash__(self) -> int:
        # A set or a dict would take a role's round to differ from a number without comparing them.
        if self.note_ is not None:
            raise self._outside("a round is looked up in a set or a dict")
        return hash(("round", self.number_))

    def moved_(self, by: int) -> Round:
        """The same where all rounds are ``by`` later, a multiple of the common one."""
        number = self.number_ + by_scale(by, self.scale_)
        return Round(number, self.least_, self.note_, self.origin_, self.scale_)

    def like_(self, number: int, note: Note | None = None, origin: Hashable = None) -> Round:
        """A value of this kind with another number."""
        return type(self)(number, self.least_, note, origin, self.scale_)

    @property
    def when_(self) -> Scale:
        """The round that the value is of, whole or between two."""
        return self.number_ if self.scale_ == 1 else self.number_ / Fraction(self.scale_)

    def old_(self, horizon: int, note: Note | None = None) -> Old:
        """What is left of it when it is only known to be of a round before ``horizon``."""
        number = horizon if self.scale_ == 1 else ceil(horizon * self.scale_)
        return Old(number, self.least_, note, None, self.scale_)

    # What a role can do

    def __add__(self, other: object) -> Round:
        number = self._whole(other, "added to")
        return self._made(self.number_ + number, self.least_ + number, self.scale_)

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        if isinstance(other, Round):
            if isinstance(other, Old):
                raise NeedsLookback
            self._alike(other)
            difference = self.number_ - other.number_
            self._noted("-", other, difference)
            return difference
        number = self._whole(other, "subtracted from")
        return self._made(self.number_ - number, self.least_ - number, self.scale_)

    def __mul__(self, other: object) -> Round:
        number = self._positive(other, "times")
        self._noted("scale", 1, None)
        return self._made(self.number_ * number, self.least_ * number, self.scale_ * number)

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Round:
        number = self._positive(other, "divided by")
        scale = Fraction(self.scale_) / number
        self._noted("scale", scale.denominator, None)
        whole = scale.numerator if scale.denominator == 1 else scale
        return self._made(self.number_ // number, self.least_ // number, whole)

    def __mod__(self, other: object) -> Any:
        number = self._positive(other, "modulo")
        residue = self.number_ % number
        self._noted("%", number, residue)
        return residue

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Old):
            return bool(other == self)
        if isinstance(other, Round):
            self._alike(other)
            found = self.number_ == other.number_
            self._noted("==", other, found)
            return found
        return self._above(other) if isinstance(other, Number) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        if isinstance(other, Old):
            return not other < self
        if isinstance(other, Round):
            self._alike(other)
            found = self.number_ < other.number_
            self._noted("<", other, found)
            return found
        return self._above(other)

    def __gt__(self, other: object) -> bool:
        if isinstance(other, Round):
            return other < self
        return not self._above(other)

    def __le__(self, other: object) -> bool:
        return not self > other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def _above(self, other: object) -> bool:
        """False if a round surely is above a plain number; else the test is not decided."""
        if not isinstance(other, int | float) or isinstance(other, Round):
            raise self._outside(f"a round is compared with {type(other).__name__}")
        if self.least_ > other:
            return False
        raise self._outside(
            f"a round is compared with {other}, which tells one round from all others",
            "a comparison of two rounds",
        )

    def _outside(self, what: str, expected: str = "") -> OutsideRounds:
        """The error of a use that is not covered; told as well, as a role may catch it."""
        error = OutsideRounds(what, expected=expected)
        self._noted("outside", 0, error)
        return error

    def _made(self, number: int, least: int, scale: Scale) -> Round:
        return Round(number, least, self.note_, self.origin_, scale)

    def _alike(self, other: Round) -> None:
        """Values that move by unlike steps compare otherwise in later rounds."""
        if self.scale_ != other.scale_:
            raise self._outside(
                f"a round times {self.scale_} is compared with a round times {other.scale_}",
                "a comparison of two that are multiplied alike",
            )

    def _positive(self, number: object, how: str) -> int:
        found = self._whole(number, how)
        if found <= 0:
            raise self._outside(f"a round {how} {found}", "a positive whole number")
        return found

    def _whole(self, number: object, how: str) -> int:
        if type(number) is int:
            return number
        raise self._outside(f"{type(number).__name__} is {how} a round", "a whole number")

    def _noted(self, test: str, other: Round | int, found: Any) -> None:
        note = self.note_ or (other.note_ if isinstance(other, Round) else None)
        if note is not None:
            note(test, self, other, found)

    def _refused(self, *_: object) -> Never:
        raise self._outside(
            "a round is used as a plain number",
            "round + n, round % n, or a comparison of two rounds",
        )

    __bool__ = __int__ = __index__ = __float__ = __len__ = __iter__ = _refused
    __rfloordiv__ = __truediv__ = __rtruediv__ = __rdivmod__ = _refused
    __rmod__ = __rsub__ = __neg__ = __pos__ = __abs__ = __invert__ = _refused
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __pow__ = __rpow__ = _refused
    real = imag = numerator = denominator = conjugate = property(_refused)
    bit_length = bit_count = to_bytes = from_bytes = property(_refused)
    as_integer_ratio = is_integer = property(_refused)
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __round__ = __trunc__ = _refused


class Old(Round):
    """A round long past, of which nothing is kept but that it is below ``value``."""

    __hash__ = Round.__hash__

    def moved_(self, by: int) -> Old:
        """The same, seen in a frame that is moved by ``by``."""
        number = self.number_ + by_scale(by, self.scale_)
        return Old(number, self.least_, self.note_, self.origin_, self.scale_)

    def __add__(self, other: object) -> Round:
        raise NeedsLookback

    __radd__ = __sub__ = __mod__ = __mul__ = __rmul__ = __floordiv__ = __add__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Round):
            self._before(other)
            return False
        return Round.__eq__(self, other)

    def __lt__(self, other: object) -> bool:
        if isinstance(other, Round):
            self._before(other)
            return True
        return Round.__lt__(self, other)

    def __gt__(self, other: object) -> bool:
        return not self < other

    def _before(self, other: Round) -> None:
        self._alike(other)
        if isinstance(other, Old) or other.number_ < self.number_:
            raise NeedsLookback
        self._noted("old", other, True)


def by_scale(by: int, scale: Scale) -> int:
    """By how much a value of this scale moves when all rounds are ``by`` later."""
    found = by * scale
    assert scale == 1 or found == int(found), "a round is moved by no multiple of the common one"
    return int(found)


# Values that hold rounds

LEAVES = (int, float, str, bytes, type(None), Mark)


def mapped(value: Any, change: Callable[[Round], Any]) -> Any:
    """``value`` with every round in it changed; the same object where it holds none.

    Raises `OutsideRounds` for a value that may hide a round.
    """
    if isinstance(value, Round):
        return change(value)
    if type(value) in LEAVES:
        return value
    if isinstance(value, tuple):
        items = tuple([mapped(each, change) for each in value])
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        if type(value) is not tuple:
            raise OutsideRounds(f"a round in a {type(value).__name__}", expected="a plain tuple")
        return items
    if isinstance(value, Part):
        key = value.key
        changed = mapped(key, change)
        return value if changed is key else Part(*_key(changed), value.field)
    if isinstance(value, Payload):
        key, content = mapped((value.key, value.content), change)
        return Payload(*_key(key), content)
    if isinstance(value, Torn):
        return Torn(mapped(value.pieces, change))
    if isinstance(value, AnyOf):
        return AnyOf(mapped(value.values, change))
    if isinstance(value, bool) or type(value).__module__ == "enum":
        return value
    raise OutsideRounds(
        f"a value of type {type(value).__name__} may hide a round",
        expected="numbers, texts, tuples and tokens",
    )


def _key(key: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
    source, destination, token, number = key
    return source, destination, token, number


def bare(value: Any) -> Any:
    """``value`` with nothing in its rounds but their numbers, so that equal ones are alike."""
    return mapped(value, lambda r: type(r)(r.number_, scale=r.scale_))


def rounds_in(value: Any) -> list[Round]:
    """Every round that a value holds, in a fixed order."""
    found: list[Round] = []

    def note(each: Round) -> Round:
        found.append(each)
        return each

    mapped(value, note)
    return found


class _Spelled(tuple[Any, ...]):
    """A round written out, so that it equals no value of a role."""

    __slots__ = ()


def spelled(value: Any) -> Any:
    """``value`` with each round written out with all that is known of it."""
    return mapped(value, lambda r: _Spelled((type(r).__name__, r.number_, r.least_, r.scale_)))


@dataclass(frozen=True, repr=False)
class _Named:
    """A round in a message."""

    is_old: bool
    number: int
    scale: Scale

    def __str__(self) -> str:
        return "r"

    __repr__ = __str__


def named(each: Round) -> _Named:
    """A round as it stands in a message, which compares rounds without a test."""
    return _Named(type(each) is Old, each.number_, each.scale_)
