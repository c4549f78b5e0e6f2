"""Two suspended roles are merged only if nothing can tell their futures apart (C8 and C9)."""

from __future__ import annotations

import gc
import itertools
import random
import types
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.identity import Identity, Refusal, Walk, discard, self_test
from syncproof.models.memory import Region
from syncproof.models.operations import Kind, Operation
from syncproof.models.protocol import Protocol, role
from syncproof.models.values import Block, Opaque, Payload

GLOBAL: Any = 0
TABLE: dict[str, int] = {}
VARIABLE: ContextVar[int] = ContextVar("VARIABLE", default=0)


def load(value: Any = None) -> Operation:
    """One operation; ``value`` makes it differ from others."""
    return Operation(Kind.LOAD, value=value)


class Holder:
    """A class with an attribute that roles change."""

    value = 0


@dataclass(frozen=True)
class Pair:
    """A plain frozen object."""

    one: Any
    two: Any


class Loose:
    """An object that gets its attributes later."""


@dataclass(frozen=True)
class PairFrom:
    """A frozen object whose generated methods are read by the scan of globals."""

    one: int = 1


class Colour(Enum):
    """Members stand for themselves."""

    RED = 1
    BLUE = 2


class Slotted:
    """State outside ``__dict__``."""

    __slots__ = ("hidden",)

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden


class Getstate:
    """An object that hides its state from copying."""

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden

    def __getstate__(self) -> dict[str, int]:
        return {}


class Reduced:
    """An object that hides its state from pickling."""

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden

    def __reduce__(self) -> Any:
        return (Reduced, (0,))


class Several:
    """An awaitable that yields two operations."""

    def __await__(self) -> Any:
        one = yield load(0)
        two = yield load(0)
        return one + two


def remember(value: int, seen: list[int] = []) -> int:  # noqa: B006
    """A helper whose default keeps what it was given."""
    seen.append(value)
    return len(seen)


def counted() -> int:
    """A helper that keeps a count as an attribute of itself."""
    return counted.count  # type: ignore[attr-defined,no-any-return]


counted.count = 0  # type: ignore[attr-defined]


def suspend(role: Callable[..., Any], history: tuple[Any, ...], *given: Any) -> Any:
    """The role, fed a history."""
    coroutine = role(*given)
    for value in (None, *history):
        coroutine.send(value)
    return coroutine


def two(role: Callable[..., Any], one: tuple[Any, ...], other: tuple[Any, ...], *given: Any) -> Any:
    """The fingerprints of a role after two histories."""
    identity = Identity(given, Operation)
    first = suspend(role, one, *given)
    before = identity.fingerprint(first)
    second = suspend(role, other, *given)
    after = identity.fingerprint(second)
    discard(first)
    discard(second)
    return before, after


def told_apart(role: Callable[..., Any], one: Any, other: Any, *given: Any) -> bool:
    """Whether two histories are not merged."""
    before, after = two(role, one, other, *given)
    return isinstance(before, Refusal) or before != after


def captured_apart(role: Callable[..., Any], one: Any, other: Any, *given: Any) -> bool:
    """Whether two histories are captured, and differ."""
    before, after = two(role, one, other, *given)
    assert isinstance(before, bytes), before
    assert isinstance(after, bytes), after
    return before != after


def merged(role: Callable[..., Any], one: Any, other: Any, *given: Any) -> bool:
    """Whether two histories are captured, and equal."""
    return not captured_apart(role, one, other, *given)


def reasons(role: Callable[..., Any], *history: Any) -> str:
    """Why a role is refused after a history."""
    coroutine = suspend(role, history)
    found = Identity((), Operation).fingerprint(coroutine)
    discard(coroutine)
    assert isinstance(found, Refusal)
    assert found.where
    return found.reason


# What must be told apart


async def unbound(*_: Any) -> None:
    if await load():
        x = 5
    else:
        y = 5
    await load()
    try:
        await load(x)
    except NameError:
        await load(y)


def test_unbound_locals_are_told_apart() -> None:
    """``x = 5`` with y unbound is not ``y = 5`` with x unbound."""
    assert captured_apart(unbound, (0,), (1,))


async def stack_iterator() -> None:
    for x in (1, 1, 2):
        await load(x)


async def stack_operand() -> None:
    await load((await load()) + (await load()))


async def stack_method() -> None:
    found: list[int] = []
    other: list[int] = []
    for _ in range(2):
        (found if await load() else other).append(await load())
    await load(tuple(found))


def test_value_stack_is_captured() -> None:
    """Loop positions, pending operands and pending methods are part of the identity."""
    assert captured_apart(stack_iterator, (), (0,))
    assert captured_apart(stack_operand, (1,), (2,))
    assert captured_apart(stack_method, (0,), (1,))


async def inlined(*_: Any) -> None:
    if await load():
        x = 1
    else:
        y = 1
    found = [x + y for x in (await load(), 2) for y in (1, await load())]
    await load(tuple(found))
    try:
        await load(x)
    except NameError:
        await load(y)


def test_saved_variables_of_comprehensions_are_told_apart() -> None:
    """What a comprehension puts aside (an unbound variable too) is captured or refused."""
    for more in ((), (7,), (7, 8), (7, 8, 9)):
        assert told_apart(inlined, (0, *more), (1, *more))


async def set_global() -> None:
    global GLOBAL
    GLOBAL = 0
    GLOBAL = await load()
    await load()
    await load(GLOBAL)


async def set_table() -> None:
    TABLE.clear()
    TABLE["x"] = await load()
    await load()
    await load(TABLE["x"])


async def set_class() -> None:
    Holder.value = 0
    Holder.value = await load()
    await load()
    await load(Holder.value)


async def set_function() -> None:
    counted.count = 0  # type: ignore[attr-defined]
    counted.count = await load()  # type: ignore[attr-defined]
    await load()
    await load(counted())


async def set_default() -> None:
    remember(await load())
    await load()
    await load(remember(0))


async def set_context() -> None:
    VARIABLE.set(0)
    VARIABLE.set(await load())
    await load()
    await load(VARIABLE.get())


async def set_random() -> None:
    random.seed(0)
    if await load():
        random.random()
    await load()
    await load(random.random())


@pytest.mark.parametrize(
    "changing",
    [set_global, set_table, set_class, set_function, set_default, set_context, set_random],
)
def test_state_without_a_frame_must_not_change(changing: Callable[..., Any]) -> None:
    """Whatever a role keeps outside its frames is refused once it is not what it was."""
    before, after = two(changing, (0,), (1,))
    assert isinstance(before, Refusal) or isinstance(after, Refusal)


async def set_self(self: Any) -> None:
    self.x = 0
    self.x = await load()
    await load()
    await load(self.x)


async def set_inside(self: Any) -> None:
    self.one.clear()
    self.one.append(await load())
    await load()
    await load(self.one[0])


def test_attributes_of_shared_objects_must_not_change() -> None:
    """An attribute of self or of core, or the content of one, is no place for state."""
    assert told_apart(set_self, (0,), (1,), Loose())
    assert told_apart(set_inside, (0,), (1,), Pair([], None))


async def set_keys(self: Any) -> None:
    for name in ("a", "b"):
        self.one.pop(name, None)
    self.one["b" if await load() else "a"] = None
    await load()
    await load("a" in self.one)


def test_a_renamed_key_is_a_change() -> None:
    """A shared dict with the same values under other keys has changed, or with keys put in anew,
    which is seen by who goes through it meanwhile."""
    assert told_apart(set_keys, (0,), (1,), Pair({"a": None}, None))
    assert told_apart(set_keys, (0,), (0,), Pair({"a": None}, None))


async def lambda_default() -> None:
    value = await load()
    function: Callable[..., Any] = lambda kept=value: kept  # noqa: E731
    del value
    await load()
    await load(function())


async def closure() -> None:
    value = await load()

    def function() -> Any:
        return value

    await load()
    await load(function())


async def bound_method() -> None:
    append = [await load()].append
    await load()
    append(1)
    await load(append)


async def partly_used() -> None:
    pairs = zip(enumerate([1, 2, 3], await load()), reversed((4, 5, 6)), iter("abc"), strict=False)
    next(pairs)
    await load()
    await load(tuple(pairs))


def test_functions_methods_and_iterators_are_captured() -> None:
    """Defaults, closures, bound methods and nested iterators carry their values."""
    for each in (lambda_default, closure, bound_method, partly_used):
        assert captured_apart(each, (0,), (1,))
        assert merged(each, (1,), (1,))


async def helper(found: list[int]) -> None:
    await load()
    found.append(1)


async def across_frames() -> None:
    one: list[int] = []
    other: list[int] = []
    given = one if await load() else other
    mine = one
    del one, other
    await helper(given)
    await load(len(mine))


def test_aliases_across_frames_are_told_apart() -> None:
    """A list shared with a helper is not an equal list beside it."""
    assert captured_apart(across_frames, (0,), (1,))


async def aliased_ints() -> None:
    a = (await load()) + 1000
    b = a if await load() else a + 1 - 1
    await load()
    await load((a, b))


async def compares_ints() -> None:
    a = (await load()) + 1000
    await load()
    b = await load()
    await load(a is b)


def test_identity_of_numbers() -> None:
    """Equal numbers that are one object differ from two; comparing by ``is`` is refused."""
    assert captured_apart(aliased_ints, (0, 0), (0, 1))
    assert "identity" in reasons(compares_ints, 1)


async def by_type() -> None:
    value = await load()
    await load()
    await load(repr(value))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0, 0.0),
        (0, False),
        (1, True),
        (0.0, -0.0),
        ("a", b"a"),
        (None, 0),
        ((), []),
        ([], bytearray()),
        ((1,), (1.0,)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (range(2), range(0, 2, 3)),
        (Pair(1, 2), Pair(2, 1)),
        (Pair(1, 2), PairFrom(1)),
        (Colour.RED, Colour.BLUE),
        (slice(1), slice(2)),
        (float("nan"), float("inf")),
        (Opaque(1), Opaque(2)),
        (300, 300.0),
        (1000, "1000"),
        (b"ab", "b'ab'"),
        (Block({"a": 1}), Block({"b": 1})),
        (iter((1, 2)), iter([1, 2])),
        (int, bool),
        (..., None),
    ],
)
def test_values_differ_by_type_order_and_content(one: Any, other: Any) -> None:
    """Values that Python calls equal, or that copy alike, are not merged."""
    assert told_apart(by_type, (one,), (other,))


@pytest.mark.parametrize(
    "make",
    [
        lambda: 1000,
        lambda: 2.5,
        lambda: float("nan"),
        lambda: "some text " * 2,
        lambda: b"bytes" * 2,
        lambda: (1, [2]),
        lambda: {"a": [1]},
        lambda: bytearray(b"ab"),
        lambda: range(3),
        lambda: slice(1, 2),
        lambda: Pair(1, (2,)),
        lambda: Payload(0, 1, 0, 0),
        lambda: Opaque(3),
        lambda: Block({"lead": 1}),
        lambda: Colour.RED,
        lambda: iter([1]),
        lambda: iter(()),
        lambda: enumerate((1, 2)),
        lambda: zip((1,), "a", strict=False),
        lambda: reversed([1]),
        lambda: 10**40,
        lambda: None,
        lambda: iter("\u0101"),
    ],
)
def test_equal_values_made_anew_are_merged(make: Callable[[], Any]) -> None:
    """Two objects made alike have one identity."""
    assert merged(by_type, (make(),), (make(),))


# What must be refused


def infinite() -> Any:
    yield 1


@pytest.mark.parametrize(
    "value",
    [
        {1},
        frozenset((1,)),
        iter({1: 2}),
        {1: 2}.items(),
        numpy.zeros(2),
        numpy.int64(1),
        infinite(),
        itertools.pairwise((1, 2)),
        itertools.count(),
        map(str, (1,)),
        ValueError("x"),
        Slotted(1),
        Getstate(1),
        Reduced(1),
        object(),
        1j,
        memoryview(b"a"),
        {1: 2}.__iter__(),
        itertools.cycle("a"),
        types.SimpleNamespace(a=1),
        iter(int, 1),
        (frozenset(),),
        [{"a": {1}}],
    ],
)
def test_what_cannot_be_captured_is_refused(value: Any) -> None:
    """Objects that hide state, or whose state cannot be read, leave the history as identity."""
    assert reasons(by_type, value)


async def local_class() -> None:
    class Local:
        value = 1

    Local.value = await load()
    await load(Local.value)


async def handling() -> None:
    try:
        raise ValueError(await load())
    except ValueError as error:
        await load()
        await load(error.args)


async def several() -> None:
    await Several()


async def generator() -> None:
    for each in (x for x in (1, 2)):
        await load(each)


async def agenerator() -> None:
    async def rounds() -> Any:
        yield await load()

    async for each in rounds():
        await load(each)


async def uses_locals() -> None:
    locals()["hidden"] = await load()
    await load()


async def uses_id() -> None:
    await load(id(await load()))


async def imports() -> None:
    import math

    await load(math.pi)


async def other_coroutine() -> None:
    waiting = helper([])
    try:
        await load()
    finally:
        waiting.close()


@pytest.mark.parametrize(
    "refused",
    [
        handling,
        several,
        generator,
        agenerator,
        uses_locals,
        uses_id,
        imports,
        other_coroutine,
        local_class,
    ],
)
def test_roles_that_cannot_be_captured_are_refused(refused: Callable[..., Any]) -> None:
    """Handled exceptions, foreign awaitables, generators and reflection are refused."""
    history = () if refused in (several, generator, agenerator, other_coroutine, uses_id) else (1,)
    history = () if refused is imports else history
    assert reasons(refused, *history)


def test_a_leaf_that_yields_twice_is_refused() -> None:
    """The leaf type itself is checked to yield exactly once."""
    coroutine = suspend(several, ())
    assert isinstance(Identity((), Several).fingerprint(coroutine), Refusal)
    discard(coroutine)


# What must be merged


async def polling() -> None:
    while (await load()) == 0:
        pass
    await load("end")


async def polling_helper() -> None:
    async def once(slot: tuple[int, ...]) -> bool:
        return bool(await load(slot))

    while not await once((1, 2)):
        pass


async def modulo() -> None:
    i = 0
    while await load(i) == 0:
        i = (i + 1) % 3


async def large_modulo() -> None:
    i = 1000
    while await load(i) == 0:
        i = 1000 + (i + 1) % 3


def test_loops_return_to_themselves() -> None:
    """A polling loop comes back to the state it was in, with counters and helpers too."""
    assert merged(polling, (0,), (0, 0))
    assert merged(polling, (0,), (0, 0, 0))
    assert merged(polling_helper, (0,), (0, 0))
    assert merged(modulo, (0,), (0, 0, 0, 0))
    assert captured_apart(modulo, (0,), (0, 0))
    assert merged(large_modulo, (0, 0, 0), (0, 0, 0, 0, 0, 0))


def test_a_loop_is_finite() -> None:
    """A loop with a large counter has as many identities as the counter has values."""
    identity = Identity((), Operation)
    coroutine = suspend(large_modulo, ())
    found = set()
    for _ in range(40):
        found.add(identity.fingerprint(coroutine))
        coroutine.send(0)
    assert len(found) <= 4 and not any(isinstance(each, Refusal) for each in found)
    discard(coroutine)


class Ring(Protocol):
    """A protocol with real operations: polls, sends and says what it does."""

    def memory(self) -> None:
        self.flag = Region(index=(), block=32)
        self.window = Region(index=(2,))

    @role
    async def poll(self, core: Core) -> None:
        for round in core.rounds():
            while (await core.load(self.flag[core.rank])) != 1:
                core.reach("again")
            slot = self.window[core.rank][round % 2]
            block = await core.wait_until(slot, lambda block: block.lead != 0)
            core.check(block.lead, "nothing")
            await core.fetch_add(self.flag[core.rank], 1)
            await core.poll_until(lambda: self._sweep(core))
            await core.put(slot, core.payload(1 - core.rank, 0, round))
            await core.kernel_end()

    async def _sweep(self, core: Core) -> int | None:
        total = 0
        for place in (0, 1):
            total += await core.load(self.window[core.rank][place])
        return total or None


def ring() -> tuple[Ring, Core, Callable[..., Any], list[Any]]:
    bounds = Bounds(ranks=2, rounds=2)
    said: list[Any] = []
    core = Core("poll", 0, 0, 1, bounds, {"rank 0": (0,)}, {}, said.append)
    return Ring(bounds), core, next(iter(Ring.roles())).function, said


def test_a_protocol_is_captured_at_every_operation() -> None:
    """Each operation of a real role is captured; polls merge although statements were made."""
    protocol, core, function, said = ring()
    identity = Identity((protocol, core), Operation)
    coroutine = suspend(function, (), protocol, core)
    values: list[Any] = [0, 0, 1, Block({"lead": 1}), 0, None]
    sweep = len(values) + 3
    values += [0, 0, None] * 3 + [0, 1, None, None, None]
    found = [identity.fingerprint(coroutine)]
    for value in values:
        coroutine.send(value)
        found.append(identity.fingerprint(coroutine))
    discard(coroutine)
    assert [each for each in found if isinstance(each, Refusal)] == []
    assert said and found[1] == found[2]  # the compiler writes the test of a loop twice
    assert found[sweep] == found[sweep + 3] and found[sweep] != found[sweep + 1]
    assert found[0] != found[-1]


def test_a_change_of_the_protocol_is_named() -> None:
    """A refusal names what changed and where the role is."""
    protocol, core, function, _ = ring()
    identity = Identity((protocol, core), Operation)
    coroutine = suspend(function, (), protocol, core)
    assert isinstance(identity.fingerprint(coroutine), bytes)
    protocol.regions.pop("flag")
    found = identity.fingerprint(coroutine)
    assert isinstance(found, Refusal) and "test_identity.py:" in found.where and found.reason
    discard(coroutine)


def test_what_is_beside_another_one_stands_for_itself() -> None:
    """A role is captured beside its own core as it would be with it from the start; nothing of that
    core stands for itself in what the other roles have."""
    protocol, core, function, _ = ring()
    common = Identity((protocol,), Operation)
    identity, another = common.beside(core), common.beside(ring()[1])
    coroutine = suspend(function, (), protocol, core)
    whole = Identity((protocol, core), Operation)
    found, as_one = identity.captured(coroutine), whole.captured(coroutine)
    assert isinstance(found, Walk) and isinstance(as_one, Walk)
    assert len(found.objects) == len(as_one.objects)
    assert isinstance(another.captured(coroutine), Refusal)  # nobody sees into a core
    discard(coroutine)


@pytest.mark.parametrize("when", ["before", "behind"])
def test_a_change_of_what_all_have_is_seen_beside_a_core(when: str) -> None:
    """Whether it is made before the core is given or later, nothing is captured any more."""
    protocol, core, function, _ = ring()
    common = Identity((protocol,), Operation)
    identity = common.beside(core)
    coroutine = suspend(function, (), protocol, core)
    assert isinstance(identity.fingerprint(coroutine), bytes)
    protocol.regions.pop("flag")
    changed = common.beside(core) if when == "before" else identity
    assert isinstance(changed.fingerprint(coroutine), Refusal)
    discard(coroutine)


# Ending a coroutine


async def awaits_at_the_end() -> None:
    try:
        await load()
    finally:
        await load()


async def never_ends() -> None:
    while True:
        try:  # noqa: SIM105
            await load()
        except BaseException:
            pass


@pytest.mark.parametrize("stubborn", [polling, awaits_at_the_end, never_ends])
def test_discard_is_quiet(stubborn: Callable[..., Any], capsys: Any) -> None:
    """A coroutine ends without an error, a warning or a message, however it resists."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coroutine = suspend(stubborn, ())
        discard(coroutine)
        discard(stubborn())
        del coroutine
        gc.collect()
    assert capsys.readouterr().err == ""


def test_the_interpreter_is_as_relied_on() -> None:
    """The facts about frames hold on this interpreter."""
    assert self_test() == ""


# Random programs

NAMES = st.sampled_from("abc")
ATOM = st.one_of(NAMES, st.sampled_from(["0", "1", "1000", "'x'", "(1, 2)"]))
SIMPLE = st.one_of(
    st.builds("{} = await load()".format, NAMES),
    st.builds("{} = {}".format, NAMES, ATOM),
    st.builds("{} = [{}, {}]".format, NAMES, ATOM, ATOM),
    st.builds("{} = ({}, {})".format, NAMES, ATOM, ATOM),
    st.builds("del {}".format, NAMES),
    st.builds("{}.append({})".format, NAMES, ATOM),
    st.builds("{}.append(await load())".format, NAMES),
    st.builds("{} = {} + (await load({}))".format, NAMES, ATOM, ATOM),
    st.builds("{} = (lambda k={}: (k, {}))".format, NAMES, ATOM, NAMES),
    st.builds("{0} = {0}()".format, NAMES),
    st.builds("{} = await helper({})".format, NAMES, ATOM),
    st.builds("{} = iter(({}, {}, 0))".format, NAMES, ATOM, ATOM),
    st.builds("{} = next({})".format, NAMES, NAMES),
    st.builds("{} = [x for x in (await load(), {})]".format, NAMES, ATOM),
    st.builds("{0} = [{0} for {0} in (await load(), {1})]".format, NAMES, ATOM),
    st.builds("await load(repr({}))".format, ATOM),
)
HELPER = """
async def helper(given):
    kept = [given]
    kept.append(await load())
    if type(given) is list:
        given.append(0)
    await load()
    return kept
"""


def indented(body: list[str]) -> list[str]:
    return ["    " + line for part in body for line in part.splitlines()]


def blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    heads = st.one_of(
        st.builds("if {}:".format, ATOM),
        st.builds("while (await load()) == 0:".format),
        st.builds("for {} in ({}, {}, 1):".format, NAMES, ATOM, ATOM),
        st.builds("for {} in range({}):".format, NAMES, st.sampled_from("23")),
        st.builds("for {} in enumerate({}):".format, NAMES, NAMES),
        st.just("try:"),
    )

    def block(head: str, body: list[str]) -> str:
        tail = ["except Exception:", "    pass"] if head == "try:" else []
        return "\n".join([head, *indented(body), *tail])

    return st.builds(block, heads, st.lists(inner, min_size=1, max_size=3))


PROGRAMS = st.lists(st.recursive(SIMPLE, blocks, max_leaves=8), min_size=3, max_size=8)
HISTORY = st.lists(st.sampled_from([0, 1, 1000]), max_size=7).map(tuple)


def compiled(body: list[str]) -> Callable[..., Any]:
    space: dict[str, Any] = {"__name__": "random_program", "load": load}
    end = ["for v in (a, b, c):", "    await load(repr(v))"]
    first = ["a = b = c = []" if len(body) % 2 else "a, b, c = [], [], 0"]
    text = "\n".join([HELPER, "async def program():", *indented([*first, *body, *end])])
    exec(compile(text, "program", "exec"), space)
    made: Callable[..., Any] = space["program"]
    return made


def shown(operation: Any) -> str:
    return str(operation.value).split(" at 0x")[0]


def future(coroutine: Any, values: tuple[Any, ...]) -> list[str]:
    """What the role does when it is fed these values."""
    found = []
    for value in values:
        try:
            found.append(shown(coroutine.send(value)))
        except (StopIteration, Exception) as error:
            return [*found, f"{type(error).__name__} {str(error).split(' at 0x')[0]}"]
    return found


def reached(program: Callable[..., Any], history: tuple[Any, ...]) -> Any:
    coroutine = program()
    try:
        for value in (None, *history):
            operation = coroutine.send(value)
    except (StopIteration, Exception):
        return None, ""
    return coroutine, shown(operation)


def check_merges(program: Callable[..., Any], histories: Any, continuations: Any) -> int:
    """Compare the futures of all histories that are merged; how many were."""
    identity = Identity((), Operation)
    first: dict[bytes, tuple[Any, ...]] = {}
    count = 0
    for history in histories:
        coroutine, operation = reached(program, history)
        if coroutine is None:
            continue
        found = identity.fingerprint(coroutine)
        discard(coroutine)
        if isinstance(found, Refusal):
            continue
        known = first.setdefault(found, history)
        if known == history:
            continue
        count += 1
        for continuation in continuations:
            one, other = reached(program, known), reached(program, history)
            assert one[1] == other[1] == operation
            assert future(one[0], continuation) == future(other[0], continuation)
    return count


@settings(max_examples=150, deadline=None)
@given(
    PROGRAMS,
    st.lists(HISTORY, min_size=2, max_size=25),
    st.lists(HISTORY, min_size=1, max_size=3),
)
def test_merged_histories_have_one_future(body: Any, histories: Any, continuations: Any) -> None:
    """Equal fingerprints give equal operations, whatever is read afterwards."""
    check_merges(compiled(body), histories, [(*each, 0, 0, 1, 1, 0) for each in continuations])


def test_random_programs_do_merge() -> None:
    """The random test is not vacuous: loops over loads merge, and dead values vanish."""
    body = [
        "while (await load()) == 0:\n    b = (await load()) + 1000",
        "a = [b]",
        "del b",
        "c = await helper(a)",
    ]
    histories = [h for n in range(6) for h in itertools.product((0, 1), repeat=n)]
    assert check_merges(compiled(body), histories, [(0, 0, 1, 1, 0, 1), (1, 1, 1, 1, 1)]) > 10
