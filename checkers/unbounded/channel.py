"""What a role is told and tells beside its operations: values by frame, choices, tests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

from syncproof.models.core import Unresolved
from syncproof.models.rounds import (
    LEAVES,
    NeedsLookback,
    NeedsModulus,
    Old,
    OutsideRounds,
    Round,
    bare,
    by_scale,
    mapped,
    rounds_in,
    spelled,
)
from syncproof.models.values import Values, typed

LARGEST_MODULUS = 24

MOST_AHEAD = 16
"""A choice is asked for at most so many rounds ahead of the role's own."""


SCALED = "a round is multiplied or divided, which the quotient alone covers: no --engine"
"""Why other engines leave a role that does so undecided."""


class NotCovered(Exception):
    """A premise of the argument does not hold; the message says which, and where."""


class Needed(Unresolved):
    """A choice with a round in its name that is to be made by this step."""


class RoundValues(Values):
    """Values by number, also moved to another frame; ``note`` makes what is read tell of tests."""

    def __init__(self) -> None:
        super().__init__()
        self.note: Callable[..., None] | None = None
        self._moved: dict[tuple[int, int], int] = {}
        self._fed: dict[tuple[int, int, int | None], int] = {}

    def number(self, value: Hashable) -> int:
        """The number of a value; rounds count as equal only if all that is known of them is."""
        if type(value) in LEAVES:
            return super().number(value)
        key = typed(spelled(value))
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self._known)
            self._known.append(mapped(value, lambda r: r.like_(r.number_)))
        return found

    def __getitem__(self, number: int) -> Hashable:
        value = self._known[number]
        if self.note is None:
            return value
        places: list[Round] = []

        def copied(each: Round) -> Round:
            place = (number, len(places))
            places.append(each)
            return each.like_(each.number_, self.note, place)

        read: Hashable = mapped(value, copied)
        return read

    def plain(self, number: int) -> Hashable:
        """A value as it is kept."""
        return self._known[number]

    def moved(self, number: int, by: int) -> int:
        """The number of the same value with its rounds moved; what is long past stays so."""
        found = self._moved.get((number, by))
        if found is None:
            value = mapped(self._known[number], lambda r: settled(r, by))
            found = self._moved[number, by] = self.number(value)
        return found

    def fed(self, number: int, by: int, bound: int | None) -> int:
        """The value in another frame, where what is long past is below ``bound``."""
        key = (number, by, bound)
        if key not in self._fed:
            least = -(10**9) if bound is None else bound
            value = mapped(
                self._known[number],
                lambda r: r.old_(least) if type(r) is Old else r.moved_(by),
            )
            self._fed[key] = self.number(value)
        return self._fed[key]

    def aged(self, number: int, horizon: int) -> int:
        """The value with each round below ``horizon`` long past."""
        value = mapped(self._known[number], lambda r: r.old_(0) if r.when_ < horizon else r)
        return self.number(value)


def settled(each: Round, by: int) -> Round:
    """A round in the frame of a state: of one long past nothing but its least value is kept."""
    if type(each) is Old:
        return each.old_(0)
    return Round(each.number_ + by_scale(by, each.scale_), each.least_, scale=each.scale_)


class Channel:
    """What a role is told beside what it reads, and what it lets known of its tests on rounds.

    ``answers`` are the choices that the present state has made, value numbers by the number of
    ``("choice", name)``; ``shift`` leads from the role's frame to that of the state. On a replay
    the answers are those of the first time, by name. ``askers`` are the processes that have been
    seen to ask for choices of a kind; ``grew`` is set when there is a new one. ``outside`` is the
    error of a use of a round that is not covered, also where the role has caught it. ``scaled`` is
    set when a role multiplies or divides one, ``furthest`` is how far an outlook may run on.
    """

    def __init__(self, values: RoundValues, modulus: int, lookback: int) -> None:
        self.values, self.modulus, self.lookback = values, modulus, lookback
        self.answers: Mapping[int, int] = {}
        self.shift = 0
        self.base: int | None = None
        self.replayed: Mapping[Hashable, Hashable] | None = None
        self.used: dict[int, int] = {}
        self.named: dict[Hashable, Hashable] = {}
        self.tests: list[tuple[str, Any, Any, Any]] = []
        self.askers: dict[Hashable, set[int]] = {}
        self.asker = -1
        self.grew = False
        self.furthest = 0
        self.scaled = False
        self.outside: OutsideRounds | None = None

    def ask(self, name: Hashable, options: tuple[Hashable, ...]) -> Hashable:
        """The answer to a choice with a round in its name; raises `Unresolved` if there is none."""
        name = bare(name)
        if self.replayed is not None:
            return self.replayed[spelled(name)]
        rounds = rounds_in(name)
        oldest = min(r.when_ for r in rounds)
        if self.base is not None and oldest < self.base - 1 - self.lookback:
            raise NeedsLookback
        if any(type(r) is Old for r in rounds):
            raise NeedsLookback  # which of all that are long past is not known
        if max(r.when_ for r in rounds) - (self.base or 0) > MOST_AHEAD:
            raise OutsideRounds("a role goes on from round to round without an operation")
        own = self.values.number(("choice", name))
        askers = self.askers.setdefault(mapped(name, lambda r: "r"), set())
        if self.asker not in askers:
            askers.add(self.asker)
            self.grew = True
        number = self.values.moved(own, self.shift)
        if number not in self.answers:
            raise Needed(own, options)
        self.used[own] = self.answers[number]
        answer = self.values.plain(self.answers[number])
        if answer not in options:
            raise OutsideRounds("a choice is asked with different values")
        self.named[spelled(name)] = answer
        return answer

    def note(self, test: str, one: Round, other: Round | int, found: Any) -> None:
        """Take down a test that a role makes; a modulus must divide the common one."""
        if test in ("%", "scale"):
            assert type(other) is int
            self.scaled = self.scaled or test == "scale"
            needed = (Fraction(one.scale_) / other).denominator if test == "%" else other
            if self.modulus % needed:
                raise NeedsModulus(needed)
            if test == "scale":
                return
        if test == "text" and self.replayed is None:
            found = OutsideRounds("a round is made a text", expected="a tuple as a name")
        if isinstance(found, OutsideRounds):
            self.outside = found
            if test == "text":
                raise found
            return
        self.tests.append((test, _term(one), _term(other), found))

    def begin(self) -> None:
        """A role starts to count rounds: once, or its rounds would begin again."""
        if self.replayed is None and self.base is not None:
            raise OutsideRounds("a role counts its rounds twice", expected="one core.rounds()")


Term = tuple[Hashable, int]
"""Where a round comes from (None: the role's own, else value number and place) and its value."""


def _term(each: Round | int) -> Term:
    return (each.origin_, each.number_) if isinstance(each, Round) else ("number", each)
