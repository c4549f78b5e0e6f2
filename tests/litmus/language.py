"""Litmus tests in the notation of the memory-model literature, as protocols of the model.

A program is one line: ``T0@0: put x=1; fence; put f=1 | T1@1: wait f=1; ld r=x``. A thread is
named and placed on a rank (``T0`` alone is on rank 0, ``T1`` on rank 1). What it may do:

``put x=1``, ``put x=$r+1``     put a number, or one more than register r holds
``put x=1,f=1``                 put several fields of one block at once
``put x=[s]``, ``get d=[x]``    copy by the fabric, done at any time before the next quiet; also
                                several fields of a block, ``put x,y=[s,t]``
``put x=1 sig f=1``             put with signal
``get r=x``, ``ld r=x``         read (remotely, behind earlier puts; or directly) into a register
``ld r,s=x,f``                  read several fields of one block in one load
``wait x=1``, ``wait x>=1``     wait until the variable has this value, or at least it
``add x=1``, ``fadd r=x+1``     atomic add without and with an answer
``cst x=1``, ``cld r=x``        store and load through the write-back cache; ``dcci x`` cleans it
``fence``, ``quiet``            and ``fence 1`` for one target
``meet b``, ``barrier``         meet all threads; the same after a quiet
``arrive b 64``, ``sync b 64``  a warp's bar.arrive and bar.sync on named barrier b for 64 threads

``q1`` behind an operation names its queue. Memory is a list of variables: ``x@1`` is a word of
8 B in the memory of rank 1 that is 0 at first, ``s@0=1/local`` one that only its own rank touches
(immediate, in order), ``x@1/line`` one behind the cores' caches, ``a,b@1/line`` two that share a
line, ``x:480+f:32@1`` two fields of one block.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import Budget, Exploration, Meter, explore, hung_states
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import Ghost, Region, Slot
from syncproof.models.protocol import Protocol, role
from syncproof.models.system import System
from syncproof.models.transitions import State
from syncproof.models.values import Block

WARP = 32
LARGEST = Budget(states=20_000)
"""A litmus test is small; one that is not has been written down wrongly."""


@dataclass(frozen=True)
class Variable:
    """Where a variable of a litmus test lies: a field of one block of a region."""

    region: str
    rank: int
    place: tuple[int, ...]
    field: str


@dataclass(frozen=True)
class Place:
    """One entry of the memory line: a region, and the variables in it."""

    region: Callable[[], Region]
    variables: dict[str, Variable]


def parse_place(text: str) -> Place:
    """One entry of the memory line."""
    match = re.fullmatch(r"([\w:+,]+)@(\d+)(?:=(\d+))?(?:/(local|line))?", text)
    assert match, f"memory {text!r}"
    names, rank, initial, kind = match[1], int(match[2]), int(match[3] or 0), match[4]
    shared = names.split(",")
    sizes = {n: int(size or 8) for n, _, size in (f.partition(":") for f in names.split("+"))}
    fields = {"word": 8} if len(shared) > 1 else sizes
    name = "_".join(shared if len(shared) > 1 else sizes)

    def make() -> Region:
        return Region(
            owner=rank,
            index=(len(shared),) if len(shared) > 1 else (),
            block=sum(fields.values()),
            fields=fields,
            initial=initial,
            compared=tuple(fields),
            on_chip=kind == "local",
            line=64 if kind == "line" else None,
        )

    if len(shared) > 1:
        variables = {n: Variable(name, rank, (i,), "word") for i, n in enumerate(shared)}
    else:
        variables = {n: Variable(name, rank, (), n) for n in sizes}
    return Place(make, variables)


@dataclass(frozen=True)
class Statement:
    """One operation of a thread: its word, its operands and its queue."""

    word: str
    operands: str
    queue: int

    @property
    def registers(self) -> tuple[str, ...]:
        """The registers that it reads into."""
        reads = self.word in ("ld", "cld", "fadd", "get") and "[" not in self.operands
        return tuple(self.operands.split("=")[0].split(",")) if reads else ()


def parse_thread(text: str) -> tuple[str, int, list[Statement]]:
    """A thread's name, its rank and what it does."""
    head, _, body = text.partition(":")
    name, _, rank = head.strip().partition("@")
    statements = []
    for each in filter(None, (part.strip() for part in body.split(";"))):
        match = re.fullmatch(r"([a-z]+)\s*(.*?)(?:\s+q(\d+))?", each)
        assert match, f"operation {each!r}"
        statements.append(Statement(match[1], match[2].strip(), int(match[3] or 0)))
    return name, int(rank or re.sub(r"\D", "", name)), statements


class Litmus(Protocol):
    """A litmus test as a protocol; its subclasses are made by `protocol_of`."""

    places: tuple[Place, ...] = ()
    registers: tuple[str, ...] = ()
    barriers: tuple[str, ...] = ()

    def memory(self) -> None:
        for place in self.places:
            name = next(iter(place.variables.values())).region
            setattr(self, name, place.region())
        for name in self.barriers:
            setattr(self, f"bar_{name}", Region(owner=0, block=8, fields={"n": 8}, on_chip=True))
        for name in self.registers:
            setattr(self, ghost_name(name), Ghost())

    def slot(self, name: str) -> Slot:
        """The memory of a variable."""
        variable = variables_of(self.places)[name]
        block = getattr(self, variable.region)[variable.rank]
        whole: Slot = block[variable.place] if variable.place else block
        return whole.field(variable.field)

    def part(self, names: str) -> Slot:
        """The memory of several variables of one block, ``x,f``."""
        first, *others = names.split(",")
        if not others:
            return self.slot(first)
        variables = [variables_of(self.places)[name] for name in (first, *others)]
        block = getattr(self, variables[0].region)[variables[0].rank]
        part: Slot = block.field(*(variable.field for variable in variables))
        return part


def variables_of(places: tuple[Place, ...]) -> dict[str, Variable]:
    """Every variable by its name."""
    return {name: each for place in places for name, each in place.variables.items()}


def ghost_name(register: str) -> str:
    """The ghost that holds what a register last read, for the final condition."""
    return "reg_" + register.replace(".", "_")


def protocol_of(name: str, memory: str, program: str) -> type[Litmus]:
    """The protocol that a memory line and a program line describe."""
    threads = [parse_thread(text) for text in program.split("|")]
    members: dict[str, Any] = {
        "places": tuple(parse_place(text) for text in memory.split()),
        "registers": tuple(
            dict.fromkeys(f"{t}.{r}" for t, _, body in threads for s in body for r in s.registers)
        ),
        "barriers": tuple(
            dict.fromkeys(
                s.operands.split()[0]
                for _, _, body in threads
                for s in body
                if s.word in ("arrive", "sync")
            )
        ),
        "groups": lambda self: dict.fromkeys(
            (s.operands for _, _, body in threads for s in body if s.word == "meet"),
            lambda process: True,
        ),
    }
    for thread, rank, body in threads:
        members[thread] = role(on=(rank,))(run(thread, body))
    return type(name, (Litmus,), members)


def run(thread: str, body: list[Statement]) -> Callable[[Litmus, Core], Awaitable[None]]:
    """The role that performs the statements of one thread."""

    async def perform(protocol: Litmus, core: Core) -> None:
        registers: dict[str, int] = {}
        for each in body:
            result = await PERFORM[each.word](protocol, core, each, registers)
            found = list(vars(result).values()) if isinstance(result, Block) else [result]
            for name, value in zip(each.registers, found, strict=False):
                registers[name] = value
                ghost = getattr(protocol, ghost_name(f"{thread}.{name}"))
                core.ghost_update(ghost, _second, value)

    return perform


def _second(_: Hashable, new: Hashable) -> Hashable:
    return new


# Statements

Registers = dict[str, int]


def _number(text: str, registers: Registers) -> int:
    """``1``, ``$r`` or ``$r+1``."""
    register, _, more = text.partition("+")
    return registers[register[1:]] + int(more or 0) if text.startswith("$") else int(text)


async def _put(p: Litmus, core: Core, s: Statement, registers: Registers) -> None:
    target, _, signal = s.operands.partition(" sig ")
    if "[" in target:
        names, source = target.rstrip("]").split("=[")
        await core.put_nbi(p.part(names), p.part(source), queue=s.queue)
        return
    assignments = dict(each.split("=") for each in target.strip().split(","))
    variables = variables_of(p.places)
    written = {variables[n].field: _number(v, registers) for n, v in assignments.items()}
    slot = p.part(",".join(assignments))
    if not signal:
        await core.put(slot, written, queue=s.queue)
        return
    flag, _, number = signal.partition("=")
    await core.put_with_signal(
        slot, written, p.slot(flag.strip()), _number(number, registers), queue=s.queue
    )


async def _get(p: Litmus, core: Core, s: Statement, _: Registers) -> Any:
    target, source = s.operands.split("=")
    if source.startswith("["):
        await core.get_nbi(p.part(target), p.part(source[1:-1]), queue=s.queue)
        return None
    return await core.get(p.part(source), queue=s.queue)


async def _ld(p: Litmus, core: Core, s: Statement, _: Registers) -> Any:
    return await core.load(p.part(s.operands.split("=")[1]), cached=s.word == "cld")


async def _cst(p: Litmus, core: Core, s: Statement, registers: Registers) -> None:
    name, value = s.operands.split("=")
    await core.store(p.slot(name), _number(value, registers), cached=True)


async def _wait(p: Litmus, core: Core, s: Statement, _: Registers) -> None:
    name, value = s.operands.split("=")
    wanted, slot = int(value), p.slot(name.rstrip(">"))
    if name.endswith(">"):
        await core.wait_until(slot, lambda found: found >= wanted)
    else:
        await core.wait_until(slot, lambda found: found == wanted)


async def _add(p: Litmus, core: Core, s: Statement, registers: Registers) -> None:
    name, value = s.operands.split("=")
    await core.add(p.slot(name), _number(value, registers), queue=s.queue)


async def _fadd(p: Litmus, core: Core, s: Statement, _: Registers) -> Any:
    name, value = s.operands.split("=")[1].split("+")
    return await core.fetch_add(p.slot(name), int(value), queue=s.queue)


async def _fence(_p: Litmus, core: Core, s: Statement, _: Registers) -> None:
    await core.fence(int(s.operands) if s.operands else None)


async def _quiet(_p: Litmus, core: Core, _s: Statement, _: Registers) -> None:
    await core.quiet()


async def _dcci(p: Litmus, core: Core, s: Statement, _: Registers) -> None:
    await core.clean_and_invalidate(p.slot(s.operands))


async def _meet(_p: Litmus, core: Core, s: Statement, _: Registers) -> None:
    await core.sync(s.operands)


async def _barrier(_p: Litmus, core: Core, _s: Statement, _: Registers) -> None:
    await core.barrier()


async def _named_barrier(p: Litmus, core: Core, s: Statement, _: Registers) -> None:
    """PTX bar: every ``threads`` arrivals open a new generation; sync waits for its own to fill."""
    name, threads = s.operands.split()
    arrivals = getattr(p, f"bar_{name}")[0]
    before = await core.fetch_add(arrivals, WARP)
    full = (before // int(threads) + 1) * int(threads)
    if s.word == "sync":
        await core.wait_until(arrivals, lambda found: found >= full)


PERFORM: Mapping[str, Callable[[Litmus, Core, Statement, Registers], Awaitable[Any]]] = {
    "put": _put,
    "get": _get,
    "ld": _ld,
    "cld": _ld,
    "cst": _cst,
    "wait": _wait,
    "add": _add,
    "fadd": _fadd,
    "fence": _fence,
    "quiet": _quiet,
    "dcci": _dcci,
    "meet": _meet,
    "barrier": _barrier,
    "arrive": _named_barrier,
    "sync": _named_barrier,
}


# What a program can do

Outcome = tuple[tuple[str, Hashable], ...]


@dataclass(frozen=True)
class Behaviour:
    """Every way in which a program can end, and whether it can come to a standstill."""

    outcomes: frozenset[Outcome]
    can_hang: bool
    states: int

    def allows(self, condition: str) -> bool:
        """Whether some complete run ends with ``condition`` (``T1.r=0 & x=1``).

        ``finish`` asks for any complete run, ``hang`` for a state from which there is none.
        """
        if condition == "hang":
            return self.can_hang
        wanted = [] if condition == "finish" else [c.split("=") for c in condition.split("&")]
        terms = {name.strip(): int(value) for name, value in wanted}
        for outcome in self.outcomes:
            assert terms.keys() <= dict(outcome).keys(), f"{condition}: {dict(outcome)}"
            if all(dict(outcome)[name] == value for name, value in terms.items()):
                return True
        return False


def system_of(kind: type[Litmus], profile: Profile) -> System:
    """The system of a litmus test under a fabric."""
    ranks = 1 + max(v.rank for v in variables_of(kind.places).values()) if kind.places else 1
    ranks = max(ranks, *(1 + rank for each in kind.roles() for rank in _ranks(each.on)))
    return Instance(kind, Bounds(ranks=ranks, rounds=1), profile, {}).system({})


def _ranks(on: Any) -> tuple[int, ...]:
    assert isinstance(on, tuple)
    return on


def behaviour(kind: type[Litmus], profile: Profile, *, reduced: bool = False) -> Behaviour | None:
    """All that a program can do, by complete search; None where the reduction does not apply."""
    system = system_of(kind, profile)
    if reduced and not PersistentSets.covers(system):
        return None
    choose = PersistentSets(system).choose if reduced else None
    meter = Meter(LARGEST)
    found = explore(system, choose, frozenset(), meter)
    assert not found.stopped, found.stopped
    assert not found.findings
    outcomes = frozenset(_outcome(kind, found, state) for state in found.good)
    return Behaviour(outcomes, bool(hung_states(found)), meter.states)


def _outcome(kind: type[Litmus], found: Exploration, state: State) -> Outcome:
    """Registers and memory of a complete run."""
    system = found.system
    result: dict[str, Hashable] = {}
    if system.features.ghosts:
        result |= {
            name: system.ghosts.value(state, ghost_name(name), None) for name in kind.registers
        }
    for name, variable in variables_of(kind.places).items():
        values = {
            system.values[system.value(state, number)]
            for number, cell in enumerate(system.cells)
            if (cell.slot.region.name, cell.slot.rank, cell.slot.place, cell.field)
            == (variable.region, variable.rank, variable.place, variable.field)
        }
        result[name] = values.pop() if len(values) == 1 else "torn"
    return tuple(sorted(result.items()))
