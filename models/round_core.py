"""What roles see of rounds without bound: a loop without end, and choices made when asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Never

from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.operations import Hidden
from syncproof.models.rounds import Note, OutsideRounds, Round, mapped, named, rounds_in
from syncproof.models.values import Payload

ENDS = "the run ends before"
"""The choice that ends a run: the same for all processes, made anew before each round."""

Ask = Callable[[Hashable, tuple[Hashable, ...]], Hashable]


class NoBound:
    """Stands for the number of rounds where there is none; any use of it is an error.

    ``refuse`` is told of each, as a role may catch the error.
    """

    text = "the number of rounds is used, and there is none"
    error: type[UserError] = OutsideRounds

    def __init__(self, refuse: Callable[[Any], None] | None = None) -> None:
        self.refuse_ = refuse

    def _refused(self, *_: object) -> Never:
        error = self.error(self.text)
        if self.refuse_ is not None:
            self.refuse_(error)
        raise error

    # A role may ask whether it is a number.
    __class__ = property(lambda self: int)
    __str__ = __repr__ = __format__ = _refused
    __bool__ = __int__ = __index__ = __float__ = __hash__ = __iter__ = __len__ = _refused
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refused
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __divmod__ = __rdivmod__ = _refused
    __pow__ = __rpow__ = __abs__ = __pos__ = __invert__ = __round__ = __trunc__ = _refused
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __contains__ = _refused
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __getitem__ = __complex__ = _refused


class RoundIterator:
    """Gives the rounds of a run one by one; asks before each but the first whether it is over.

    It stands for a range, which may be gone through again and looked into: here that is refused.
    """

    def __init__(self, ask: Ask, note: Note) -> None:
        self.ask, self.note_, self.number_, self.begun_ = ask, note, 0, False

    def __iter__(self) -> Iterator[Round]:
        if self.begun_:
            raise self._outside("the rounds are gone through twice", "one loop over core.rounds()")
        self.begun_ = True
        return self

    def _outside(self, what: str, expected: str = "") -> OutsideRounds:
        error = OutsideRounds(what, expected=expected)
        self.note_("outside", Round(self.number_), 0, error)
        return error

    def _refused(self, *_: object) -> Never:
        raise self._outside(
            "the rounds are used otherwise than in a loop", "for r in core.rounds()"
        )

    __contains__ = __len__ = __getitem__ = __reversed__ = __bool__ = __eq__ = __ne__ = _refused
    __hash__ = __str__ = __repr__ = _refused
    start = stop = step = index = count = property(_refused)

    def __next__(self) -> Round:
        if not self.begun_:
            self._refused()
        found = Round(self.number_, 0, self.note_)
        if self.number_ and self.ask((ENDS, Round(self.number_)), (False, True)):
            raise StopIteration
        self.number_ += 1
        return found


class RoundCore(Core):
    """A core whose rounds do not end at a number, and whose choices are made when asked for.

    ``ask`` answers a choice or raises `Unresolved`; ``note`` is told of the tests on rounds.
    ``begin`` is called when a role starts to count rounds.
    """

    def __init__(self, *parts: Any, ask: Ask, note: Note, begin: Callable[[], None]) -> None:
        super().__init__(*parts)
        self._ask, self._note, self._begin = ask, note, begin

    def rounds(self) -> Any:
        """Rounds without end."""
        self._begin()
        return RoundIterator(self._ask, self._note)

    def choose(self, name: Hashable, values: Sequence[Any]) -> Any:
        """A free choice; one with a round in its name is made when it is first asked for."""
        options = tuple(values)
        if rounds_in(options):
            raise OutsideRounds("a round is chosen", expected="a choice of plain values")
        if not rounds_in(name):
            return super().choose(name, options)
        if len(options) == 1:
            return options[0]
        try:
            return self._ask(name, options)
        except BaseException as error:
            self._say(Hidden(error))  # a role may catch it
            raise

    def _mismatch(
        self, wrong: dict[str, Hashable], expected: Payload, fields: int
    ) -> tuple[str, str]:
        # The text compares what was found, also two rounds of which no test would be answered.
        found = {name: mapped(value, named) for name, value in wrong.items()}
        return super()._mismatch(found, mapped(expected, named), fields)


async def from_the_start(core: Core, role: Callable[..., Any], protocol: object) -> None:
    """A role behind a first step that does nothing, so that it chooses nothing before one."""
    await core.fence()
    await role(protocol, core)


def aside(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, such that what it depends on is not part of what all runs of a role share."""
    return lambda *arguments: function(*arguments)
