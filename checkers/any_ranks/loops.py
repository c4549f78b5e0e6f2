"""``for peer in core.destinations()`` where there may be any number of other ranks.

The loop meets the peer once and, before and after it, any number of others: after each turn it is
asked what comes next. A loop that comes back to its head with the same local state and without an
operation on the way would only repeat itself: `Head` tells that.
"""

from __future__ import annotations

import dis
import inspect
import marshal
import sys
from collections.abc import Iterator
from functools import cache
from types import CodeType, CoroutineType, FrameType
from typing import Any, NoReturn

from syncproof.checkers.unbounded.liveness import LiveIdentity
from syncproof.models.identity import WRITERS, Walk
from syncproof.models.identity_scan import Refused
from syncproof.models.ranks import Counted, CountedTurns, Rank, RankCore, RankTable

ANOTHER, THE_PEER, NO_MORE = "another", "the peer", "no more"

WAY = "for peer in core.destinations(): ..., without a comprehension"


@cache
def _instructions(code: CodeType) -> dict[int, dis.Instruction]:
    return {each.offset: each for each in dis.get_instructions(code)}


def _instruction(frame: FrameType) -> dis.Instruction | None:
    return _instructions(frame.f_code).get(frame.f_lasti)


@cache
def _collects(code: CodeType, first: int, last: int) -> bool:
    """Whether a loop adds to what only the value stack holds: an inlined comprehension."""
    inside = (each for at, each in _instructions(code).items() if first <= at < last)
    return any(each.opname in ("LIST_APPEND", "SET_ADD", "MAP_ADD") for each in inside)


def outside(core: RankCore, what: str) -> NoReturn:
    """Refuse what is no plain loop."""
    rank: Rank = core.rank
    rank.outside_(what, WAY)


class Ranks:
    """All other ranks; a plain loop can go through them, and nothing else is known of them."""

    # A role may ask whether it is a tuple.
    __class__ = property(lambda self: tuple)

    def __init__(self, core: RankCore, roles: Any) -> None:
        self.core_, self.roles_ = core, roles

    def __iter__(self) -> Iterator[Rank]:
        frame = sys._getframe(1)
        found = _instruction(frame)
        if found is None or found.opname != "GET_ITER":
            self._together()
        return Turns(self.core_, self.roles_, frame)

    def _together(self, *_: object) -> NoReturn:
        outside(self.core_, "all ranks are put together")

    __len__ = __bool__ = __getitem__ = __contains__ = __reversed__ = _together
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _together
    __add__ = __radd__ = __mul__ = __rmul__ = index = count = _together
    __str__ = __repr__ = __format__ = _together


class Turns:
    """The turns of one loop through all other ranks, which never leaves the loop's own frame."""

    def __init__(self, core: RankCore, roles: Any, frame: FrameType) -> None:
        self.core_, self.roles_ = core, roles
        self.frame_, self.number_ = id(frame), roles.new_loop()
        self.met_ = False

    def __iter__(self) -> Iterator[Rank]:
        return self

    def __next__(self) -> Rank:
        frame = sys._getframe(1)
        found = _instruction(frame)
        if found is None or found.opname != "FOR_ITER" or id(frame) != self.frame_:
            outside(self.core_, "all ranks are put together")
        if _collects(frame.f_code, frame.f_lasti, found.argval):
            outside(self.core_, "something is collected of all ranks")
        options = (NO_MORE if self.met_ else THE_PEER, ANOTHER)
        answer = self.roles_.next_turn(options, self, frame)
        if answer == ANOTHER:
            return self.core_.another_()
        if answer == NO_MORE:
            raise StopIteration
        self.met_ = True
        return self.core_.peer_


class RankIdentity(LiveIdentity):
    """Fingerprints of roles that deal in opaque ranks."""

    def __init__(self, shared: tuple[object, ...], leaf: type) -> None:
        writers = {
            **WRITERS,
            Rank: _rank,
            RankTable: _table,
            Counted: _counted,
            CountedTurns: _counted_turns,
            Ranks: _ranks,
            Turns: _turns,
        }
        super().__init__(shared, leaf, writers)

    def _tokens(self, coroutine: CoroutineType[Any, Any, Any]) -> list[Any]:
        tokens = super()._tokens(coroutine)
        self.refuse_looking_inside()
        return tokens

    def head(self, turns: Turns, frame: FrameType, root: FrameType) -> bytes:
        """The local state at the head of a loop, of a role that runs and is thrown away now.

        All variables of all frames count. What only a value stack holds was put there before the
        loop began, and the loop's body has no way to it. Raises `Refused`.
        """
        if self._trouble:
            raise Refused(self._trouble)
        frames = _frames(frame, root)
        while True:
            before = len(self._environment.positions)
            walk = Walk(self._environment, self._writers)
            walk.tokens += (turns.number_, turns.met_)
            for each in frames:
                self._environment.adopt_code(each.f_code, each.f_globals)
                names = sorted(each.f_locals)
                walk.tokens += (walk.number(each.f_code), each.f_lasti, *names)
                walk.write([each.f_locals[name] for name in names])
            tokens = walk.finish(0)
            if len(self._environment.positions) == before:
                break
        self.refuse_looking_inside()
        if changed := self._environment.changed():
            raise Refused(changed)
        return marshal.dumps(tokens, 2)  # version 2: no references, so only values count


def _frames(frame: FrameType, root: FrameType) -> list[FrameType]:
    found = [frame]
    while found[-1] is not root:
        outer = found[-1].f_back
        assert outer is not None, "the role's first frame is below its loops"
        found.append(outer)
    if any(each.f_code.co_flags & GENERATORS for each in found):
        raise Refused("a loop through all ranks in a generator")
    return found


GENERATORS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def _rank(walk: Walk, each: Any) -> None:
    walk.tokens += ("rank", each.which_)


def _table(walk: Walk, each: Any) -> None:
    walk.tokens += ("table", *each.of_pair, len(each.of_others))
    walk.write(each.of_pair.values())
    walk.write(each.of_others)


def _counted(walk: Walk, each: Any) -> None:
    walk.tokens += ("rounds", each.rounds_)


def _counted_turns(walk: Walk, each: Any) -> None:
    walk.tokens += ("round", each.rounds_, each.next_)


def _ranks(walk: Walk, each: Any) -> None:
    walk.tokens.append("ranks")


def _turns(walk: Walk, each: Any) -> None:
    walk.tokens += ("turns", each.met_)
