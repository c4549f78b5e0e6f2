"""Random small protocols: a random program for each process, interpreted by one coroutine role.

A plan is plain data, so that it prints, repeats and shrinks. It is drawn through one function,
``pick(options)``: `random.Random(seed).choice` for campaigns, Hypothesis for shrinking. Every
operation, statement and fabric key occurs; a few places and values are shared by all processes,
so that most steps have something to conflict with.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import CoroutineType
from typing import Any
from typing import Protocol as Shape

from syncproof.checkers.explicit.check import assignments
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core, Unresolved
from syncproof.models.fabric import Profile
from syncproof.models.identity import Identity, Refusal
from syncproof.models.instance import Instance
from syncproof.models.memory import Ghost, Region, Slot
from syncproof.models.protocol import Protocol, role
from syncproof.models.system import System
from syncproof.models.values import SENTINEL, Block, Part, Torn, any_of

BUSY = 20
"""After so many instructions without an operation a program ends: nothing spins in Python."""


class Pick(Shape):
    """Draws one of some options."""

    def __call__(self, options: Sequence[Any], /) -> Any: ...


@dataclass(frozen=True)
class Spot:
    """A block of a region, or one field of it."""

    region: str
    rank: int
    place: int
    field: str = ""


@dataclass(frozen=True)
class Condition:
    """``value OP number``."""

    operator: str
    number: int

    def holds(self, value: int) -> bool:
        if self.operator == "==":
            return value == self.number
        return value >= self.number if self.operator == ">=" else value != self.number


@dataclass(frozen=True)
class Instruction:
    """One line of a program; what matters depends on ``kind``.

    ``keep`` puts what was read into the process's register, ``own`` puts the register's value.
    """

    kind: str
    spot: Spot | None = None
    other: Spot | None = None
    value: int = 0
    condition: Condition = Condition(">=", 1)
    target: int = 0
    queue: int = 0
    keep: bool = False
    own: bool = False


Program = tuple[Instruction, ...]


@dataclass(frozen=True)
class Plan:
    """A system as data: ``instances`` processes on each of ``ranks`` ranks."""

    ranks: int
    instances: int
    profile: Profile
    programs: tuple[Program, ...]
    free_memory: bool = False
    lines: bool = False

    def __str__(self) -> str:
        shown = [f"{self.ranks} ranks x {self.instances}, {self.profile}"]
        for number, program in enumerate(self.programs):
            shown.append(f"process {number}:")
            shown += [f"    {line}: {each}" for line, each in enumerate(program)]
        return "\n".join(shown)


# The role


def _more(count: int, by: int) -> int:
    return min(count + by, 3)


def _below(count: int, most: int) -> bool:
    return count < most


class RandomProtocol(Protocol):
    """The protocol of a plan (a class attribute of the subclass made by `instance_of`)."""

    plan: Plan

    def memory(self) -> None:
        free = any_of(0, 1) if self.plan.free_memory else 0
        two = {"a": 8, "b": 8}
        self.flag = Region(index=(2,), block=8, initial=free)
        self.wide = Region(index=(1,), block=16, fields=two, compared=("a", "b"))
        self.window = Region(
            index=(2,), block=16, fields={"lead": 8, "rest": 8}, initial=SENTINEL, clean=True
        )
        self.chip = Region(index=(1,), block=8, on_chip=True)
        if self.plan.lines:
            self.lined = Region(index=(1,), block=16, fields=two, compared=("a", "b"), line=16)
        self.seen = Ghost(0)
        self.left = Ghost(0)

    @role(instances=lambda protocol: protocol.plan.instances)
    async def worker(self, core: Core) -> None:
        program = self.plan.programs[core.rank * self.plan.instances + core.index]
        at, kept, idle = 0, 0, 0
        while at < len(program) and idle < BUSY:
            step = program[at]
            at += 1
            if step.kind in OPERATIONS:
                idle = 0
                if step.keep:
                    kept = number(await OPERATIONS[step.kind](self, core, step, kept))
                else:
                    await OPERATIONS[step.kind](self, core, step, kept)
                continue
            idle += 1
            if step.kind != "jump":
                STATEMENTS[step.kind](self, core, step, kept)
            elif step.condition.holds(kept):
                at = step.target


def slot_of(protocol: RandomProtocol, spot: Spot | None) -> Slot:
    """The slot that a spot names."""
    assert spot is not None
    region: Region = protocol.regions[spot.region]
    slot: Slot = region[spot.rank][spot.place]
    return slot.field(spot.field) if spot.field else slot


def number(value: Any) -> int:
    """A small number that control flow may go by, for whatever was read."""
    if isinstance(value, Block):
        fields: Any = value
        return number(fields.a) + 2 * number(fields.b)
    if isinstance(value, int):
        return value
    if isinstance(value, Torn):
        return -1
    return 1 + number(value.token) if isinstance(value, Part) else 0


def _test(condition: Condition) -> Callable[[Any], bool]:
    return lambda value: condition.holds(number(value))


def _value(step: Instruction, kept: int) -> int:
    return kept if step.own else step.value


Role = Callable[[RandomProtocol, Core, Instruction, int], Awaitable[Any]]


async def _take(protocol: RandomProtocol, core: Core, step: Instruction, kept: int) -> Any:
    """Wait for a token and trust it: the one that is due, or whatever it says it is."""
    slot = slot_of(protocol, step.spot)
    block = await core.wait_until(slot, lambda block: block.lead != SENTINEL)
    named = isinstance(block.lead, Part) and step.own
    source = block.lead.source if named else step.target
    token = block.lead.token if named else step.value
    core.consume(block, source, token, 0)
    return token + 1


async def _trust(protocol: RandomProtocol, core: Core, step: Instruction, kept: int) -> Any:
    block = await core.load(slot_of(protocol, step.spot))
    core.consume(block, step.target, step.value, 0)
    return 0


async def _poll(protocol: RandomProtocol, core: Core, step: Instruction, kept: int) -> Any:
    """Look at two blocks in turn until what they hold together satisfies the condition."""
    first, second = slot_of(protocol, step.spot), slot_of(protocol, step.other)

    async def sweep() -> int | None:
        found = number(await core.load(first))
        found += number(await core.load(second))
        return found if step.condition.holds(found) else None

    return await core.poll_until(sweep)


def _wait_update(protocol: RandomProtocol, core: Core, step: Instruction, kept: int) -> Any:
    value = step.value
    return core.wait_until(
        slot_of(protocol, step.spot),
        _test(step.condition),
        (lambda old: value) if step.own else (lambda old: number(old) - 1),
    )


def _send(protocol: RandomProtocol, core: Core, step: Instruction, kept: int) -> Any:
    assert step.spot is not None
    return core.put(
        slot_of(protocol, step.spot),
        core.payload(step.spot.rank, step.value, 0),
        queue=step.queue,
    )


def _signal(protocol: RandomProtocol, core: Core, step: Instruction, kept: int) -> Any:
    return core.put_with_signal(
        slot_of(protocol, step.spot),
        _value(step, kept),
        slot_of(protocol, step.other),
        step.value,
        adds=step.target > 0,
        queue=step.queue,
    )


OPERATIONS: dict[str, Role] = {
    "put": lambda p, c, s, kept: c.put(slot_of(p, s.spot), _value(s, kept), queue=s.queue),
    "reset": lambda p, c, s, kept: c.put(slot_of(p, s.spot), SENTINEL, queue=s.queue),
    "send": _send,
    "put_nbi": lambda p, c, s, kept: c.put_nbi(
        slot_of(p, s.spot), slot_of(p, s.other), queue=s.queue
    ),
    "get_nbi": lambda p, c, s, kept: c.get_nbi(
        slot_of(p, s.spot), slot_of(p, s.other), queue=s.queue
    ),
    "put_with_signal": _signal,
    "add": lambda p, c, s, kept: c.add(slot_of(p, s.spot), s.value, queue=s.queue),
    "load": lambda p, c, s, kept: c.load(slot_of(p, s.spot)),
    "get": lambda p, c, s, kept: c.get(slot_of(p, s.spot), queue=s.queue),
    "wait_until": lambda p, c, s, kept: c.wait_until(slot_of(p, s.spot), _test(s.condition)),
    "wait_update": _wait_update,
    "poll_until": _poll,
    "take": _take,
    "trust": _trust,
    "fetch_add": lambda p, c, s, kept: c.fetch_add(slot_of(p, s.spot), s.value, queue=s.queue),
    "swap": lambda p, c, s, kept: c.swap(slot_of(p, s.spot), _value(s, kept), queue=s.queue),
    "compare_swap": lambda p, c, s, kept: c.compare_swap(
        slot_of(p, s.spot), s.condition.number, s.value, queue=s.queue
    ),
    "fence": lambda p, c, s, kept: c.fence(s.target if s.target >= 0 else None),
    "quiet": lambda p, c, s, kept: c.quiet(),
    "sync": lambda p, c, s, kept: c.sync("all"),
    "kernel_end": lambda p, c, s, kept: c.kernel_end(),
    "store_cached": lambda p, c, s, kept: c.store(slot_of(p, s.spot), _value(s, kept), cached=True),
    "load_cached": lambda p, c, s, kept: c.load(slot_of(p, s.spot), cached=True),
    "clean": lambda p, c, s, kept: c.clean_and_invalidate(slot_of(p, s.spot)),
}

STATEMENTS: dict[str, Callable[[RandomProtocol, Core, Instruction, int], None]] = {
    "check": lambda p, c, s, kept: c.check(s.condition.holds(kept), f"kept {kept}"),
    "reach": lambda p, c, s, kept: c.reach(f"{core_name(c)}: {kept}"),
    "ghost_update": lambda p, c, s, kept: c.ghost_update(
        p.seen if s.queue else p.left, _more, s.value
    ),
    "ghost_check": lambda p, c, s, kept: c.ghost_check(
        p.seen if s.queue else p.left, _below, s.value, message="the ghost is too large"
    ),
}


def core_name(core: Core) -> str:
    """A short name for the process that a core runs."""
    return f"{core.rank}.{core.index}"


# Drawing plans

WORDS = ("put", "put", "put", "put", "wait_until", "wait_until", "wait_until", "load", "load")
FULL = (
    *WORDS, *WORDS,
    "reset", "send", "send", "take", "take", "trust", "put_nbi", "get_nbi", "put_with_signal",
    "add", "get", "wait_update", "poll_until", "fetch_add", "swap", "compare_swap", "fence",
    "fence", "quiet", "quiet",
    "check", "reach", "reach", "ghost_update", "ghost_check", "jump",
)  # fmt: skip
CACHED = ("store_cached", "load_cached", "load_cached", "clean")
WINDOW = frozenset(("reset", "send", "take", "trust"))
SINGLE = frozenset(("add", "wait_update", "fetch_add", "swap", "compare_swap"))
WRITING = frozenset(
    ("put", "send", "put_with_signal", "add", "fetch_add", "swap", "store_cached", "put_nbi")
)
WAITING = frozenset(("wait_until", "wait_update", "poll_until", "take"))
KEEPING = frozenset(
    ("load", "get", "wait_until", "poll_until", "fetch_add", "swap", "compare_swap", "take")
)
SHAPES = ((1, 2), (1, 3), (2, 1), (2, 1), (3, 1))


def draw_profile(pick: Pick) -> Profile:
    """A fabric profile: any value of every key, the usual ones most often."""
    often, rare = (False, False, False, True), (False,) * 9 + (True,)
    weak_loads, weak_quiet = pick(rare), pick(rare)
    hops = {"same_rank": {"ordering": pick(("none", "per_pair"))}} if pick(rare) else {}
    return Profile(
        "random",
        store_atomicity=pick((8, 16, 16)),
        load_atomicity=pick((0, 0, 8, 16)),
        in_block_order=pick(("any", "any", "ascending")),
        ordering=pick(("none", "none", "per_pair", "per_queue")),
        same_address_order=not pick(often),
        fence=pick(("orders", "orders", "drains", "none")),
        fence_scope=pick(("all", "target")),
        load_order="none" if weak_loads else "program",
        quiet=pick(("target", "local")) if weak_quiet and not weak_loads else "all",
        signal=pick(("own", "prior")),
        atomics=pick(("one_domain", "one_domain", "nic_only")),
        in_flight=pick((4, 4, 4, 2)),
        immediate=pick(rare),
        hops=hops,
    )


def draw_plan(pick: Pick, lines: bool = False, words: Sequence[str] = FULL) -> Plan:
    """A random system of two or three processes with one to four instructions each.

    ``lines`` adds a region behind write-back caches; ``words`` are the instructions to draw from.
    """
    ranks, instances = pick(SHAPES)
    count = ranks * instances
    longest = 4 if count == 2 else 3
    spots = [_draw_spot(pick, ranks) for _ in range(pick((1, 2, 2)))]
    words = (*words, *CACHED, *CACHED) if lines else words
    programs = []
    for _ in range(count):
        length = pick(range(1, longest + 1))
        programs.append([_draw(pick, words, spots, ranks, length) for _ in range(length)])
    meeting = pick((None, None, None, Instruction("sync"), Instruction("kernel_end")))
    for number, program in enumerate(programs):
        others = [each for other in programs if other is not program for each in other]
        _serve(pick, program, others)
        if meeting is not None and (number < instances or meeting.kind == "sync"):
            program.insert(pick(range(len(program) + 1)), meeting)
    free = pick((False,) * 7 + (True,))
    return Plan(ranks, instances, draw_profile(pick), tuple(map(tuple, programs)), free, lines)


def _serve(pick: Pick, program: list[Instruction], others: Sequence[Instruction]) -> None:
    """Let most waits of a program be for something that another process writes."""
    offers = [each for each in others if each.kind in WRITING]
    for line, each in enumerate(program):
        wanted = [o for o in offers if (o.kind == "send") == (each.kind == "take")]
        if each.kind in WAITING and wanted and pick((True, True, True, False)):
            offer = pick(wanted)
            spot = offer.other if offer.kind == "put_with_signal" else offer.spot
            condition = Condition(pick(("==", ">=", "!=")), max(offer.value, 1))
            condition = pick((condition, condition, each.condition))
            program[line] = replace(each, spot=spot, value=offer.value, condition=condition)


def _draw_spot(pick: Pick, ranks: int) -> Spot:
    region = pick(("flag", "flag", "flag", "flag", "wide", "chip"))
    place = pick((0, 1)) if region == "flag" else 0
    field = pick(("", "", "a", "b")) if region == "wide" else ""
    return Spot(region, pick(range(ranks)), place, field)


def _draw(
    pick: Pick, words: Sequence[str], spots: Sequence[Spot], ranks: int, length: int
) -> Instruction:
    kind = pick(words)
    spot = pick(spots)
    if kind in WINDOW:
        spot = Spot("window", spot.rank, spot.place)
    elif kind in SINGLE and spot.region == "wide":
        spot = Spot("wide", spot.rank, 0, spot.field or "a")
    elif kind in CACHED:
        spot = Spot("lined", spot.rank, 0, pick(("", "a", "b")))
    other = pick(spots)
    if kind.endswith("_nbi") and (other.region == "wide") != (spot.region == "wide"):
        other = spot if other == spot else Spot(spot.region, other.rank, 0, spot.field)
    if kind.endswith("_nbi") and other.region == "wide":
        other = Spot("wide", other.rank, 0, spot.field)
    condition = Condition(pick(("==", ">=", ">=", "!=")), pick((0, 1, 1, 2)))
    return Instruction(
        kind,
        spot,
        other,
        value=pick((1, 1, 1, 2, 0)),
        condition=condition,
        target=pick(range(length)) if kind == "jump" else pick(range(-1, ranks)),
        queue=pick((0, 0, 1)),
        keep=kind in KEEPING and pick((False, True)),
        own=pick((False, False, True)),
    )


def plan_of(seed: int, lines: bool = False, words: Sequence[str] = FULL) -> Plan:
    """The plan that a seed stands for."""
    return draw_plan(random.Random(seed).choice, lines, words)


# Systems


class PlanIdentity(Identity):
    """The local state of a program, written down by hand: exact, and independent of `Identity`."""

    def __init__(self) -> None:
        """Nothing to prepare."""

    def beside(self, *objects: object) -> Identity:
        """Nothing more to prepare."""
        return self

    def fingerprint(self, coroutine: CoroutineType[Any, Any, Any]) -> bytes | Refusal:
        """Each frame's place, and its numbers; all else in them follows from the line."""
        found: list[object] = []
        inner: Any = coroutine
        while type(inner) is CoroutineType:
            frame: Any = inner.cr_frame
            numbers = {k: v for k, v in frame.f_locals.items() if isinstance(v, int)}
            found.append((frame.f_code.co_name, frame.f_lasti, sorted(numbers.items())))
            inner = inner.cr_await
        return repr(found).encode()


class PlanInstance(Instance):
    """An instance of a plan whose local states are told apart by `PlanIdentity`."""

    def identity(self, protocol: Protocol) -> Identity | None:
        return PlanIdentity() if self.merge else super().identity(protocol)


def instance_of(plan: Plan, kind: type[Instance] = PlanInstance) -> Instance:
    """The instance of a plan."""
    protocol = type("RandomProtocol", (RandomProtocol,), {"plan": plan})
    return kind(protocol, Bounds(ranks=plan.ranks, rounds=1), plan.profile, {})


def systems_of(plan: Plan, kind: type[Instance] = PlanInstance) -> Iterator[System]:
    """A system for each assignment of the plan's free choices, at most four of them."""
    instance = instance_of(plan, kind)
    for number, choices in enumerate(assignments(instance)):
        if number == 4:
            return
        try:
            yield instance.system(choices)
        except Unresolved:  # pragma: no cover - plans have no choices in their roles
            raise AssertionError("a plan has choices in memory alone") from None
