"""What a role sees: its place, its peers, and every operation it can await."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from types import (
    AsyncGeneratorType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
)
from typing import Any, TypeVar

from syncproof.models.bounds import Bounds
from syncproof.models.errors import UserError
from syncproof.models.ghost_functions import function_of_arguments
from syncproof.models.memory import Ghost, Pool, Slot
from syncproof.models.operations import (
    Consumed,
    Failed,
    GhostCheck,
    GhostUpdate,
    Hidden,
    Kind,
    Operation,
    Reached,
    Sent,
    Statement,
)
from syncproof.models.per_rank import PerRank
from syncproof.models.values import (
    Block,
    Opaque,
    Part,
    Payload,
    refuse_changeable,
    together,
    token_text,
    typed,
)

T = TypeVar("T")


class Unresolved(BaseException):
    """A choice that the run's assignment does not name yet: the run forks before its first step."""

    def __init__(self, name: Hashable, values: tuple[Hashable, ...]) -> None:
        super().__init__(f"choice {name} among {values}")
        self.name, self.values = name, values


def unchanging(given: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """A mapping that all cores are given, so that no role writes to it."""
    return MappingProxyType(given) if type(given) is dict else given


def expected(name: Hashable) -> Hashable:
    """The name under which an assignment has the options of a choice that it makes ahead."""
    return (Unresolved, name)


class Core:
    """The handle of one process: role ``role``, instance ``index`` of ``count`` on ``rank``."""

    def __init__(
        self,
        role: str,
        rank: int,
        index: int,
        count: int,
        bounds: Bounds,
        groups: Mapping[str, tuple[int, ...]],
        choices: Mapping[Hashable, Hashable],
        say: Callable[[Statement], None],
    ) -> None:
        self.role, self.rank, self.index, self.count = role, rank, index, count
        self.bounds, self.ranks = bounds, bounds.ranks
        self._groups, self._choices, self._say = unchanging(groups), unchanging(choices), say

    # Places and counts

    def rounds(self) -> range:
        """The rounds of a bounded run."""
        return range(self.bounds.rounds)

    def destinations(self) -> tuple[int, ...]:
        """The other ranks, beginning behind this one: (rank + i) mod N."""
        return tuple((self.rank + i) % self.ranks for i in range(1, self.ranks))

    def sources(self) -> tuple[int, ...]:
        """The other ranks, beginning before this one: (rank - i) mod N."""
        return tuple((self.rank - i) % self.ranks for i in range(1, self.ranks))

    def per_rank(self) -> PerRank:
        """An empty table with an entry for each rank, for what a role keeps of its peers."""
        return PerRank()

    def routed(self, source: int, expert: int, round: int) -> int:
        """How many tokens the routing sends from ``source`` to ``expert`` in ``round``."""
        return self.bounds.routed(source, expert, round, self.choose)

    def tokens_to(self, destination: int, round: int, source: int | None = None) -> range:
        """The tokens from this rank (or ``source``) to ``destination`` in ``round``."""
        origin = self.rank if source is None else source
        return range(self.bounds.sent(origin, destination, round, self.choose))

    def tokens_from(self, source: int, round: int) -> range:
        """The tokens from ``source`` to this rank in ``round``, as the routing has them."""
        return self.tokens_to(self.rank, round, source)

    def choose(self, name: Hashable, values: Sequence[T]) -> T:
        """A free choice, the same for all who ask by this name; what changes with the round
        carries the round in its name."""
        options = tuple(values)
        if not options:
            raise UserError(f"the choice {name!r} has no values")
        if len(options) == 1:
            return options[0]
        if name not in self._choices:
            raise self._unresolved(name, options)
        found: Any = self._choices[name]
        ahead = self._choices.get(expected(name))
        if ahead is not None and typed(ahead) != typed(options):
            raise self._unresolved(name, options)
        if found not in options:
            raise UserError(f"the choice {name!r} is asked with different values: {options}")
        chosen: T = found
        return chosen

    def _unresolved(self, name: Hashable, options: tuple[Hashable, ...]) -> Unresolved:
        """The error that ends this run; said as well, as a role may catch it."""
        refuse_changeable(options, f"what the choice {name!r} is among")
        error = Unresolved(name, options)
        self._say(Hidden(error))
        return error

    # Operations

    def put(self, slot: Slot, value: Any, *, queue: int = 0, at: str = "") -> Operation:
        """Store ``value`` into a block, wherever it lies: captured now, lands later by atoms."""
        return _operation(Kind.PUT, slot, value, None, queue, at)

    def put_nbi(self, slot: Slot, source: Slot, *, queue: int = 0, at: str = "") -> Operation:
        """Copy ``source`` to ``slot``, reading it at any time before the next quiet."""
        return Operation(Kind.PUT_NBI, slot, source=source, queue=queue, at=at)

    def put_with_signal(
        self,
        slot: Slot,
        value: Any,
        signal: Slot,
        signal_value: Any,
        *,
        adds: bool = False,
        queue: int = 0,
        at: str = "",
    ) -> Operation:
        """Put a block and, landing after it, set (or add to) a signal."""
        return Operation(
            Kind.PUT_WITH_SIGNAL,
            slot,
            value,
            signal=signal,
            signal_value=signal_value,
            signal_adds=adds,
            queue=queue,
            at=at,
        )

    def get(self, slot: Slot, *, queue: int = 0, at: str = "") -> Operation:
        """Read remote memory and wait for the answer; comes behind earlier puts of its queue."""
        return Operation(Kind.GET, slot, queue=queue, ordered=True, at=at)

    def get_nbi(self, target: Slot, source: Slot, *, queue: int = 0, at: str = "") -> Operation:
        """Copy remote ``source`` to ``target`` at any time before the next quiet."""
        return Operation(Kind.GET_NBI, target, source=source, queue=queue, at=at)

    def load(self, slot: Slot, *, cached: bool = False, at: str = "") -> Operation:
        """Read a block; several atoms are read each at its own step."""
        return Operation(Kind.LOAD_CACHED if cached else Kind.LOAD, slot, at=at)

    def store(self, slot: Slot, value: Any, *, cached: bool = False, at: str = "") -> Operation:
        """Store through the core's write-back cache, or like a put when not ``cached``."""
        return Operation(Kind.STORE_CACHED if cached else Kind.PUT, slot, value, at=at)

    def clean_and_invalidate(self, slot: Slot, *, at: str = "") -> Operation:
        """Write the slot's cache lines back if they are dirty, and drop them (dcci)."""
        return Operation(Kind.CLEAN_AND_INVALIDATE, slot, at=at)

    def add(self, slot: Slot, value: int, *, queue: int = 0, at: str = "") -> Operation:
        """Atomic add without an answer; lands later, like a put."""
        return Operation(Kind.ADD, slot, value, queue=queue, at=at)

    def atomic(
        self, slot: Slot, function: Callable[[Any], Any], *, queue: int = 0, at: str = ""
    ) -> Operation:
        """One indivisible read-modify-write at the owner; gives the old value."""
        return Operation(Kind.ATOMIC, slot, update=function, queue=queue, ordered=True, at=at)

    def fetch_add(self, slot: Slot, value: int, *, queue: int = 0, at: str = "") -> Operation:
        """Atomic add that gives the old value."""
        return self.atomic(slot, lambda old: old + value, queue=queue, at=at)

    def swap(self, slot: Slot, value: Any, *, queue: int = 0, at: str = "") -> Operation:
        """Atomic exchange that gives the old value."""
        return self.atomic(slot, lambda old: value, queue=queue, at=at)

    def compare_swap(
        self, slot: Slot, expected: Any, value: Any, *, queue: int = 0, at: str = ""
    ) -> Operation:
        """Atomic compare-and-swap that gives the old value."""
        return self.atomic(slot, lambda old: value if old == expected else old, queue=queue, at=at)

    def wait_until(
        self,
        slot: Slot,
        predicate: Callable[[Any], Any],
        update: Callable[[Any], Any] | None = None,
        *,
        cached: bool = False,
        at: str = "",
    ) -> Operation:
        """Block until ``predicate`` holds for the value read, and give it.

        With ``update`` the test and the new value are one step (consuming events, semaphores).
        """
        kind = Kind.LOAD_CACHED if cached else Kind.WAIT_UNTIL
        condition_of(predicate)
        if update is None:
            return _operation(kind, slot, None, predicate, 0, at)
        return Operation(kind, slot, predicate=predicate, update=update, at=at)

    async def poll_until(self, sweep: Callable[[], Coroutine[Any, Any, T | None]]) -> T:
        """Repeat ``sweep``, an async function of loads, until it gives a value other than None.

        A sweep that gave None leaves no trace, so it is treated as a wait and not as a loop.
        """
        found: T | None = None
        while found is None:
            await Operation(Kind.SWEEP_BEGIN)
            found = await sweep()
        await Operation(Kind.SWEEP_END)
        return found

    def fence(self, target: int | None = None, *, at: str = "") -> Operation:
        """Order earlier puts (to ``target``, or to all) before later ones."""
        return Operation(Kind.FENCE, target=target, at=at)

    def quiet(self, *, at: str = "") -> Operation:
        """Wait until all earlier puts of this process are complete."""
        return Operation(Kind.QUIET, at=at)

    def sync(self, group: str = "all", *, at: str = "") -> Operation:
        """Wait until every process of the group is here: execution only, no put is completed.

        Groups: ``"rank"`` (the processes of this rank), ``"role"`` (this role on this rank),
        ``"all"``, or a name that the protocol gives in ``groups``.
        """
        name = {"rank": f"rank {self.rank}", "role": f"{self.role} of rank {self.rank}"}
        full = name.get(group, group)
        if full not in self._groups:
            raise UserError(
                f"no group {group!r}", where="sync", expected=", ".join(sorted(self._groups))
            )
        return Operation(Kind.SYNC, group=full, members=self._groups[full], at=at)

    async def barrier(self, group: str = "all", *, at: str = "") -> None:
        """quiet, then sync."""
        await self.quiet(at=at)
        await self.sync(group, at=at)

    async def kernel_end(self, *, at: str = "") -> None:
        """quiet, then nobody on this rank goes on before all its processes are here."""
        await self.quiet(at=at)
        await self.sync("rank", at=at)

    def hold(self, pool: Pool, units: int = 1) -> Held:
        """``async with core.hold(pool, n):`` keeps n units of the pool until its end."""
        return Held(self, pool, units)

    # Statements for the proof

    def payload(self, destination: int, token: Hashable, round: int, **content: Any) -> Payload:
        """A token of this rank; it has to be consumed exactly once."""
        self._say(Sent((self.rank, destination, token, round)))
        return Payload(self.rank, destination, token, round).with_content(**content)

    def consume(
        self,
        data: Any,
        source: int,
        token: Hashable,
        round: int,
        *,
        owner: int | None = None,
        **content: Any,
    ) -> None:
        """Here the kernel trusts ``data`` to be the token that ``source`` put for this round.

        ``data`` is a block, every field of which must be the token's, or one field's value.
        ``owner`` is the rank that the token was made for (this one by default).
        """
        here = self.rank if owner is None else owner
        if not content and type(round) is int and is_token(data, (source, here, token, round)):
            self._say(Consumed((source, here, token, round)))
            return
        fields = vars(data) if isinstance(data, Block) else {"": data}
        expected = Payload(source, here, token, round).with_content(**content)
        wrong: dict[str, Hashable] = {}
        for name, found in fields.items():
            value = found.value if isinstance(found, Opaque) else found
            field = name or getattr(value, "field", "payload")
            due = expected.field(field)
            are_parts = type(value) is type(due) is Part
            same = value == due if are_parts else typed(value) == typed(due)
            if not same:
                wrong[field] = value
        if not wrong:
            self._say(Consumed(expected.key))
            return
        self._say(Consumed(expected.key, *self._mismatch(wrong, expected, len(fields))))

    def _mismatch(
        self, wrong: dict[str, Hashable], expected: Payload, fields: int
    ) -> tuple[str, str]:
        """What is wrong with data out of ``fields`` fields, and what the first should have been."""
        first = next(iter(wrong))
        only = "" if len(wrong) == fields else f"{first} "
        found = f"{only}{together(wrong.values())}"
        failure = f"consumed {found} where {token_text(expected.key)} was expected"
        return failure, str(expected.field(first))

    def check(self, condition: Any, message: str) -> None:
        """The run is wrong if ``condition`` does not hold here."""
        if isinstance(condition, Opaque) or not is_met(condition):
            self._say(Failed(message))

    def reach(self, name: str) -> None:
        """Some run must get here; if none does the verdict is vacuous."""
        self._say(Reached(name))

    def ghost_update(
        self,
        ghost: Ghost,
        function: Callable[..., Hashable],
        *arguments: Hashable,
        key: Hashable = None,
    ) -> None:
        """Change ghost state: ``function(old, *arguments)``; ``function`` is a plain function."""
        refuse_changeable((key, *arguments), "an argument of a ghost function")
        self._say(GhostUpdate(ghost.name, key, function_of_arguments(function), arguments))

    def ghost_check(
        self,
        ghost: Ghost,
        predicate: Callable[..., bool],
        *arguments: Hashable,
        key: Hashable = None,
        message: str,
    ) -> None:
        """The run is wrong unless ``predicate(value, *arguments)`` holds for the ghost here."""
        refuse_changeable((key, *arguments), "an argument of a ghost function")
        condition = function_of_arguments(condition_of(predicate))
        self._say(GhostCheck(ghost.name, key, condition, arguments, message))


def _operation(
    kind: Kind,
    slot: Slot,
    value: Any,
    predicate: Callable[[Any], Any] | None,
    queue: int,
    at: str,
) -> Operation:
    """`Operation(...)` at half its cost: what is not set here is as its class has it."""
    made = Operation.__new__(Operation)
    made.kind, made.slot, made.value = kind, slot, value
    made.predicate, made.queue, made.at = predicate, queue, at
    return made


def is_token(data: Any, key: tuple[Hashable, ...]) -> bool:
    """Whether every field holds its part of the token, as most do: so this is asked first."""
    fields = vars(data) if isinstance(data, Block) else {"": data}
    for name, found in fields.items():
        value = found.value if type(found) is Opaque else found
        if type(value) is not Part or value.key != key or (name and value.field != name):
            return False
    return True


def is_met(condition: Any) -> bool:
    """Whether a condition holds; a `UserError` for what always would, whatever was meant by it."""
    if isinstance(condition, ALWAYS_TRUE):
        raise UserError(
            f"a {type(condition).__name__} is used as a condition, and it always holds",
            expected="await what it gives, or call it",
        )
    return bool(condition)


def condition_of(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function; a `UserError` if what it gives is no value, and so always holds."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & NO_VALUE:
        raise UserError(
            f"the condition {code.co_name} is an async function or a generator, and it "
            "always holds",
            expected="a plain function of the value",
        )
    return function


ALWAYS_TRUE = (CoroutineType, GeneratorType, AsyncGeneratorType, FunctionType, MethodType)
NO_VALUE = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


class Held:
    """Units of a pool, taken on entry and given back on exit."""

    def __init__(self, core: Core, pool: Pool, units: int) -> None:
        self._core, self._slot, self._units = core, pool.region[core.rank], units

    async def __aenter__(self) -> None:
        units = self._units
        await self._core.wait_until(
            self._slot, lambda free: free >= units, lambda free: free - units
        )

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is GeneratorExit:
            return  # the coroutine is thrown away, nothing is given back
        await self._core.fetch_add(self._slot, self._units)


Role = Callable[[Core], Awaitable[None]]
