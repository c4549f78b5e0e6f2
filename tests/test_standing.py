"""A coroutine that came back to where it stood: told only if nothing can tell it apart."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest

from syncproof.models import standing
from syncproof.models.identity import Identity, Refusal
from syncproof.models.operations import Kind, Operation
from syncproof.models.standing import Standing

Role = Callable[[Any], Coroutine[Any, Any, Any]]
BEGIN = Kind.SWEEP_BEGIN


class Shared:
    """What all runs of a role share; a role may write to it, and then nothing is as it was."""


class Holder:
    """A plain object of the role's own."""

    def __init__(self) -> None:
        self.count = 0


async def turn(act: Callable[[], object]) -> None:
    while True:
        await Operation(BEGIN)
        await Operation(Kind.LOAD)
        act()


async def nothing(shared: Any) -> None:
    held, numbers = [1, {2: Holder()}], iter(range(9))
    await turn(lambda: (held[0], numbers, shared))


async def made_and_dropped(shared: Any) -> None:
    await turn(lambda: [Holder(), shared])


async def list_grows(shared: Any) -> None:
    held: list[int] = []
    await turn(lambda: held.append(1))


async def item_changes(shared: Any) -> None:
    held = [0]
    await turn(lambda: held.__setitem__(0, held[0] + 1))


async def deep_item_changes(shared: Any) -> None:
    held = ({"a": [0]},)
    await turn(lambda: held[0]["a"].__setitem__(0, held[0]["a"][0] + 1))


async def iterator_moves(shared: Any) -> None:
    numbers = iter(range(9))
    await turn(lambda: next(numbers))


async def list_iterator_moves(shared: Any) -> None:
    numbers = iter([5, 5, 5, 5, 5])
    await turn(lambda: next(numbers))


async def pairs_move(shared: Any) -> None:
    numbers = enumerate([5, 5, 5, 5, 5])
    await turn(lambda: next(numbers))


async def bytes_change(shared: Any) -> None:
    held = bytearray(2)
    await turn(lambda: held.__setitem__(0, held[0] + 1))


async def attribute_changes(shared: Any) -> None:
    held = Holder()

    def act() -> None:
        held.count += 1

    await turn(act)


async def variable_changes(shared: Any) -> None:
    count = 0

    def act() -> None:
        nonlocal count
        count += 1

    await turn(act)


async def own_variable_changes(shared: Any) -> None:
    count = 0
    while True:
        await Operation(BEGIN)
        count += 1
        await Operation(Kind.LOAD)


async def another_place(shared: Any) -> None:
    await Operation(BEGIN)
    await Operation(Kind.LOAD)
    await Operation(BEGIN)


async def another_operation(shared: Any) -> None:
    kind = BEGIN
    while True:
        await Operation(kind)
        await Operation(Kind.LOAD)
        kind = Kind.SWEEP_END


class Awaited:
    """It has no attributes beside its slot, and awaits an operation by itself."""

    __slots__ = ("operation",)

    def __init__(self) -> None:
        self.operation = Operation(BEGIN)

    def __await__(self) -> Generator[Operation, Any, Any]:
        return (yield self.operation)


async def another_awaited(shared: Any) -> None:
    awaited: Any = Operation(BEGIN)
    for _ in range(2):
        await awaited
        await Operation(Kind.LOAD)
        awaited = Awaited()


async def another_coroutine(shared: Any) -> None:
    async def inner() -> None:
        await Operation(BEGIN)

    while True:
        await inner()
        await Operation(Kind.LOAD)


async def shared_changes(shared: Any) -> None:
    def act() -> None:
        shared.name = 1

    await turn(act)


STAY = (nothing, made_and_dropped)
MOVE = (
    list_grows,
    item_changes,
    deep_item_changes,
    iterator_moves,
    list_iterator_moves,
    pairs_move,
    bytes_change,
    attribute_changes,
    variable_changes,
    own_variable_changes,
    another_place,
    another_operation,
    another_awaited,
)


def comes_back(role: Role) -> tuple[bool, bool]:
    """Whether a role after one turn is told to be as it was, and whether its fingerprints agree."""
    shared = Shared()
    coroutine = role(shared)
    coroutine.send(None)
    identity = Identity((shared,), Operation)
    before, walk = identity.fingerprint(coroutine), identity.captured(coroutine)
    assert not isinstance(walk, Refusal), walk
    stands = Standing(coroutine, walk)
    assert stands.is_as_it_was(coroutine)
    coroutine.send(None)
    coroutine.send(None)
    told = stands.is_as_it_was(coroutine)
    return told, identity.fingerprint(coroutine) == before


@pytest.mark.parametrize("role", STAY)
def test_what_comes_back_is_as_it_was(role: Role) -> None:
    """A turn that leaves nothing behind is told without writing all of it down."""
    assert comes_back(role) == (True, True)


@pytest.mark.parametrize("role", MOVE)
def test_a_trace_is_seen(role: Role) -> None:
    """Whatever a turn changes, it is not as it was, and the fingerprints say the same."""
    assert comes_back(role) == (False, False)


@pytest.mark.parametrize("role", [another_coroutine, shared_changes])
def test_what_cannot_be_told_soon_is_not_told(role: Role) -> None:
    """A coroutine made anew may be the same, and what is shared is no coroutine's own."""
    told, _ = comes_back(role)
    assert not told


def test_another_coroutine_of_the_role_is_not_told() -> None:
    """It stands alike, but nobody has looked at it."""
    shared = Shared()
    one, other = nothing(shared), nothing(shared)
    one.send(None)
    other.send(None)
    walk = Identity((shared,), Operation).captured(one)
    assert not isinstance(walk, Refusal)
    assert not Standing(one, walk).is_as_it_was(other)


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        (list_grows, list),
        (deep_item_changes, list),
        (bytes_change, bytearray),
        (attribute_changes, Holder),
        (variable_changes, types.CellType),
    ],
)
def test_a_kind_wrongly_taken_for_unchanging_is_noticed(
    role: Role, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one more kind of object not looked at, a change of such an object is not seen."""
    monkeypatch.setattr(standing, "UNCHANGING", standing.UNCHANGING | {kind})
    assert comes_back(role) == (True, False)
