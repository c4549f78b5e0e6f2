"""Any number of ranks: a rank as an opaque value, and the core and memory that deal in such.

A role is run as one of a *pair*: it is "this" rank, there is one "peer", and every other rank is
some "other" of which nothing is known. A role can index memory by a rank, compare two, and go
through all of them in a loop. Nothing else: so what it does is the same for all numbers of ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Never, NoReturn, TypeVar, cast

from syncproof.models.bounds import Bounds
from syncproof.models.core import Core, is_met
from syncproof.models.errors import UserError
from syncproof.models.memory import RANK, Blocks, Region, Slot
from syncproof.models.operations import Failed, Kind, Operation, Reached, Sent
from syncproof.models.per_rank import PerRank
from syncproof.models.protocol import Protocol
from syncproof.models.round_core import NoBound
from syncproof.models.values import Block, Mark, Opaque, Part, Payload, Torn, typed

THIS, PEER, OTHER = "this", "peer", "other"
PAIR = 2
A_THIRD = 2
"""The number that stands for any rank but 0 and 1, the pair."""


class OutsideRanks(UserError):
    """A role uses a rank in a way that depends on which or how many there are."""


Refuse = Callable[[OutsideRanks], None]
Ask = Callable[[tuple[Any, ...]], Any]
F = TypeVar("F", bound=Callable[..., Any])


def telling(method: F) -> F:
    """Let ``refuse_`` of the object know of what is not covered, as a role may catch the error."""

    @wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return method(self, *arguments, **named)
        except OutsideRanks as error:
            self.refuse_(error)
            raise

    return cast(F, call)


class Rank:
    """A rank of which a role knows only whether it is itself, the peer, or some other.

    ``refuse`` is told of every use that is not covered, as a role may catch the error. Its own
    names end with a line, as a number has no such.
    """

    def __init__(self, which: str, refuse: Refuse) -> None:
        self.which_, self.refuse_ = which, refuse

    # A role may ask whether a rank is a number.
    __class__ = property(lambda self: int)

    def __eq__(self, other: object) -> bool:
        if type(other) is Rank:
            if self is other:
                return True
            if self.which_ == other.which_ == OTHER:
                self.outside_("two other ranks are compared", "a comparison with this rank")
            return self.which_ == other.which_
        if isinstance(other, int | float | complex):
            self.outside_(f"a rank is compared with {other}", "a comparison of two ranks")
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    @telling
    def outside_(self, what: str, expected: str = "") -> NoReturn:
        """Raise the error of a use that is not covered."""
        raise OutsideRanks(what, expected=expected)

    def _refused(self, *_: object) -> Never:
        self.outside_(
            "a rank is used as a number, a text or a key",
            "an index of RANK, a comparison of two ranks, or a key of core.per_rank()",
        )

    __hash__ = __bool__ = __int__ = __index__ = __float__ = __len__ = __iter__ = _refused
    __str__ = __repr__ = __format__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = _refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refused
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __divmod__ = _refused
    __rdivmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __invert__ = _refused
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refused
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refused
    __round__ = __trunc__ = __floor__ = __ceil__ = _refused
    __complex__ = _refused
    real = imag = numerator = denominator = conjugate = property(_refused)
    bit_length = bit_count = to_bytes = from_bytes = property(_refused)
    as_integer_ratio = is_integer = property(_refused)


class NoRanks(NoBound):
    """Stands for the number of ranks where it may be any."""

    text = "the number of ranks is used, and it may be any"
    error = OutsideRanks


class RankBounds(Bounds):
    """The bounds of a pair among any number of ranks, with an expert on each rank."""

    refuse_: Refuse

    @classmethod
    def of(cls, bounds: Bounds, refuse: Refuse) -> RankBounds:
        """The bounds of a pair, as roles see them."""
        made = object.__new__(cls)
        made.__dict__.update(vars(bounds), ranks=NoRanks(refuse), refuse_=refuse)
        return made

    def extents_(self) -> dict[str, Any]:
        return {"RANK": self.ranks, "TOKEN": self.tokens_per_pair, "EXPERT": self.experts_per_rank}

    @telling
    def _compared(self, *_: object) -> Any:
        raise OutsideRanks("the bounds are compared or made a text")

    __eq__ = __ne__ = __hash__ = __str__ = __repr__ = __format__ = _compared

    @property
    def experts_in_all(self) -> Any:
        return self.ranks

    @property
    def experts_per_rank(self) -> int:
        return 1

    @telling
    def _numbered(self, *_: Any, **__: Any) -> Any:
        raise OutsideRanks("experts are told by their numbers", expected="bounds.sent(...)")

    experts_of = home = routed = _numbered

    def sent(
        self, source: Any, destination: Any, round: int, choose: Any, dense: bool = False
    ) -> int:
        if self.routing == "all":
            name = ("tokens", source, destination, round)
            return int(choose(name, range(int(dense), self.tokens + 1)))
        return self.tokens


# Memory


class RankRegion(Region):
    """A region whose ``RANK`` indices are opaque ranks, and its other indices numbers."""

    refuse_: Refuse

    @telling
    def __getitem__(self, rank: Any) -> Any:
        if self.owner is not RANK:
            raise OutsideRanks(f"{self.name} is in the memory of rank {self.owner} alone")
        if type(rank) is not Rank:
            raise OutsideRanks(f"{self.name}[{rank}]: a number is used as a rank")
        blocks = RankBlocks(self, rank)  # type: ignore[arg-type]
        return blocks if self.extents else slot_of(self, rank, ())


class RankBlocks(Blocks):
    """The blocks of one rank, by opaque ranks where the index says ``RANK``."""

    @property
    def refuse_(self) -> Refuse:
        region: Any = self.region
        refuse: Refuse = region.refuse_
        return refuse

    @telling
    def __getitem__(self, index: Any) -> Slot:
        place = index if isinstance(index, tuple) else (index,)
        region = self.region
        if len(place) != len(region.extents):
            raise OutsideRanks(f"{region.name} has {len(region.extents)} indices")
        for each, word, extent in zip(place, region.index, region.extents, strict=True):
            if (word is RANK) is not (type(each) is Rank):
                what = "a number" if word is RANK else "a rank"
                raise OutsideRanks(
                    f"{what} is the index of {region.name} where it has {_extent(word)}",
                    expected="ranks where the region says RANK, numbers elsewhere",
                )
            if word is not RANK and not 0 <= each < extent:
                raise OutsideRanks(f"{each} is outside {region.name}, below {extent}")
        return slot_of(region, self.rank, place)


def slot_of(region: Region, rank: Any, place: tuple[Any, ...]) -> Slot:
    """A block without a number, as that depends on how many ranks there are."""
    number: Any = NoRanks(getattr(region, "refuse_", None))
    return Slot(region, rank, place, region.names, number)


def _extent(word: Any) -> str:
    return str(getattr(word, "name", word))


def opaque(protocol: Protocol, refuse: Refuse) -> Protocol:
    """The protocol, made with `RankBounds`, with memory that takes opaque ranks."""
    for region in protocol.regions.values():
        region.__class__ = RankRegion
        region.__dict__["refuse_"] = refuse
    return protocol


# Ranks in values


def numbered(value: Any, own: int) -> Any:
    """``value`` as the rank of number ``own`` of the pair holds it, with numbers for its ranks.

    Raises `OutsideRanks` for a rank anywhere but as source or destination of a token.
    """
    return _renamed(value, lambda rank: number_of(rank, own))


def ranked(value: Any, ranks: Sequence[Rank]) -> Any:
    """The same backwards: ``ranks`` are those of the numbers 0 and 1."""
    return _renamed(value, lambda number: ranks[number])


def number_of(rank: Any, own: int) -> int:
    """The number of a rank, seen from rank ``own`` of the pair."""
    if type(rank) is not Rank:
        raise OutsideRanks("a number is used as the rank of a token", expected="a rank of the core")
    return {THIS: own, PEER: 1 - own, OTHER: A_THIRD}[rank.which_]


def _renamed(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) is Part:
        return Part(
            change(value.source),
            change(value.destination),
            _without(value.token),
            _without(value.round),
            value.field,
        )
    if type(value) is Payload:
        return replace(
            value,
            source=change(value.source),
            destination=change(value.destination),
            token=_without(value.token),
            round=_without(value.round),
            content=tuple((name, _renamed(each, change)) for name, each in value.content),
        )
    if type(value) is Torn:
        return Torn(tuple(_renamed(each, change) for each in value.pieces))
    if type(value) is Opaque:
        return Opaque(_renamed(value.value, change))
    if type(value) is Block:
        return Block({name: _renamed(each, change) for name, each in vars(value).items()})
    if type(value) is dict:
        return {name: _renamed(each, change) for name, each in value.items()}
    if type(value) is tuple:
        return tuple(_renamed(each, change) for each in value)
    return _without(value)


def _without(value: Any) -> Any:
    """``value``, which must hold no rank."""
    if type(value) is tuple:
        return tuple(_without(each) for each in value)
    if type(value) is Rank or type(value).__module__ not in KNOWN:
        raise OutsideRanks(
            "a rank, or what may hide one, is put into memory or into the name of a token",
            expected="numbers, texts, tuples and tokens",
        )
    return value


def _fixed(value: Any) -> Any:
    """``value``, which must be a plain one that nobody can change."""
    if type(value) is tuple:
        return tuple(_fixed(each) for each in value)
    if not (value is None or type(value) in (bool, int, float, str, bytes, Mark)):
        raise OutsideRanks(
            f"a {type(value).__name__} is kept for a rank or chosen",
            expected="a number, a text, a mark, or a tuple of them",
        )
    return value


KNOWN = ("builtins", "enum", "syncproof.models.values")


# What roles see


class RankTable(PerRank):
    """What a role keeps of each rank: of the others, every value that was kept of some of them.

    An entry of another rank that was not made has no answer, and the role goes no further there:
    were it asked for in some system, then among these two ranks alone as well, and there it would
    be an error that nothing catches (checkers/any_ranks/language.py), which the search would find.
    """

    def __init__(self, ask: Ask, refuse: Refuse) -> None:
        self.ask_, self.refuse_ = ask, refuse
        self.of_pair: dict[str, Any] = {}
        self.of_others: list[Any] = []

    @property
    def entries(self) -> Never:  # type: ignore[override]
        self._all_together()

    @telling
    def _all_together(self) -> Never:
        raise OutsideRanks("the entries of all ranks are used together")

    @telling
    def __setitem__(self, rank: Any, value: Any) -> None:
        if type(rank) is not Rank:
            raise OutsideRanks("a number is used as a rank", expected="a rank of the core")
        if rank.which_ != OTHER:
            self.of_pair[rank.which_] = _fixed(value)
        elif typed(_fixed(value)) not in map(typed, self.of_others):
            self.of_others.append(value)
            self.of_others.sort(key=lambda each: repr(typed(each)))

    @telling
    def __getitem__(self, rank: Any) -> Any:
        if type(rank) is not Rank:
            raise OutsideRanks("a number is used as a rank", expected="a rank of the core")
        if rank.which_ != OTHER:
            return self.of_pair[rank.which_]
        return self.ask_(tuple(self.of_others))


class Counted:
    """The rounds of a run; ``begun`` is told of each."""

    __class__ = property(lambda self: range)

    def __init__(self, rounds: int, begun: Callable[[int], None]) -> None:
        self.rounds_, self.begun_ = rounds, begun

    def __iter__(self) -> Iterator[int]:
        return CountedTurns(self.rounds_, self.begun_)


class CountedTurns:
    """The turns of a loop through all rounds."""

    def __init__(self, rounds: int, begun: Callable[[int], None]) -> None:
        self.rounds_, self.begun_, self.next_ = rounds, begun, 0

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if self.next_ == self.rounds_:
            raise StopIteration
        self.next_ += 1
        self.begun_(self.next_ - 1)
        return self.next_ - 1


class RankCore(Core):
    """A core that knows itself, one peer, and that there may be others.

    ``loop`` gives what goes through all other ranks, ``chosen`` a choice of the pair by its name
    and by what of it is a rank, ``ask`` any answer; ``begun`` is told of each round.
    """

    def __init__(
        self,
        *parts: Any,
        own: int,
        ask: Ask,
        chosen: Callable[[Hashable, tuple[Any, ...], Hashable], Any],
        refuse: Refuse,
        loop: Callable[[RankCore], Any],
        begun: Callable[[int], None],
    ) -> None:
        super().__init__(*parts)
        self._own, self._ask_, self._chosen = own, ask, chosen
        self._loop, self._begun = loop, begun
        self.refuse_ = refuse
        self.rank: Any = Rank(THIS, refuse)
        self.peer_ = Rank(PEER, refuse)

    def another_(self) -> Rank:
        """Some rank outside the pair."""
        return Rank(OTHER, self.refuse_)

    def rounds(self) -> Any:
        return Counted(self.bounds.rounds, self._begun)

    def destinations(self) -> Any:
        """All other ranks, in some order: ``for peer in core.destinations()``."""
        return self._loop(self)

    sources = destinations

    def per_rank(self) -> PerRank:
        return RankTable(self._ask_, self.refuse_)

    @telling
    def choose(self, name: Hashable, values: Sequence[Any]) -> Any:
        """A choice of the pair is the same for both; one that names another rank is made anew."""
        options = tuple(_fixed(each) for each in values)
        if len(options) == 1:
            return options[0]
        if type(name) is tuple and name[:1] == ("initial",):
            raise OutsideRanks("a choice has the name of what memory holds at first")
        own, met = self._own, set[str]()

        def plain(each: Any, shows: bool) -> Any:
            if type(each) is tuple:
                return tuple(plain(part, shows) for part in each)
            if type(each) is Rank:
                met.add(each.which_)
                return number_of(each, own) if shows else Rank
            return _without(each)

        known, form = plain(name, True), plain(name, False)
        return self._ask_(options) if OTHER in met else self._chosen(known, options, form)

    @telling
    def payload(self, destination: Any, token: Hashable, round: int, **content: Any) -> Payload:
        here, there = number_of(self.rank, self._own), number_of(destination, self._own)
        if there != A_THIRD:
            self._say(Sent((here, there, _without(token), _without(round))))
        return Payload(self.rank, destination, token, round).with_content(**content)

    @telling
    def consume(
        self,
        data: Any,
        source: Any,
        token: Hashable,
        round: int,
        *,
        owner: Any = None,
        **content: Any,
    ) -> None:
        own = self._own
        origin, here = number_of(source, own), number_of(self.rank if owner is None else owner, own)
        if here != own:
            raise OutsideRanks("a token that was made for another rank is consumed")
        if origin != A_THIRD:
            plain = numbered(content, own)
            super().consume(numbered(data, own), origin, token, round, owner=here, **plain)

    def check(self, condition: Any, message: str) -> None:
        if isinstance(condition, Opaque) or not is_met(condition):
            self._say(Failed(message))

    def reach(self, name: str) -> None:
        self._say(Reached(name))

    @telling
    def ghost_update(self, *_: Any, **__: Any) -> Never:
        raise OutsideRanks("a ghost is shared by all ranks")

    ghost_check = ghost_update

    @telling
    def sync(self, group: str = "all", *, at: str = "") -> Operation:
        """The group by the name that it has everywhere."""
        if group not in ("all", "rank", "role"):
            raise OutsideRanks(f"the group {group!r} is told by the numbers of its ranks")
        members: Any = NoRanks(self.refuse_)
        return Operation(Kind.SYNC, group=group, members=members, at=at)
