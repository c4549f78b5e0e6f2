"""From a protocol and its bounds to systems: one for each assignment of the free choices."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CoroutineType
from typing import Any

from syncproof.models.automaton import Automaton
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.identity import Identity, discard
from syncproof.models.lowering import Lowering
from syncproof.models.memory import Layout, Region
from syncproof.models.nodes import Ledger, Process
from syncproof.models.operations import Operation, Statement
from syncproof.models.protocol import Protocol, Setting
from syncproof.models.shared import Shared
from syncproof.models.system import System
from syncproof.models.transitions import Features
from syncproof.models.values import AnyOf, Values
from syncproof.models.verdict import Question

Choices = Mapping[Hashable, Hashable]
Mutation = Callable[[Operation, str, int], Operation | None]
"""What becomes of an operation at a line of a file: itself, another, or nothing."""


@dataclass(frozen=True)
class Running:
    """How to start the role of one process, and where what it says arrives."""

    core: Core
    start: Callable[[], CoroutineType[Any, Any, Any]]
    said: list[Statement]


def shared_by(protocol: Protocol, roles: Sequence[Running]) -> Shared:
    """What roles share beside memory, as it is now."""
    coroutines = [each.start() for each in roles]
    found = Shared(protocol, coroutines, [each.core for each in roles])
    for each in coroutines:
        discard(each)
    return found


@dataclass(frozen=True)
class Parts:
    """An instance under one assignment of its choices, taken apart."""

    protocol: Protocol
    layout: Layout
    values: Values
    lowering: Lowering
    processes: list[Process]
    roles: list[Running]
    choices: Choices

    def shared(self) -> Shared:
        """What the roles share beside memory, as it is now."""
        return shared_by(self.protocol, self.roles)

    @cached_property
    def initial(self) -> list[Hashable]:
        """What each cell holds at first."""
        return [
            self.choices[("initial", str(cell.slot), cell.field)]
            if isinstance(cell.initial, AnyOf)
            else cell.initial
            for cell in self.layout.cells
        ]


@dataclass(frozen=True)
class Instance:
    """A protocol with everything fixed but its free choices."""

    kind: type[Protocol]
    bounds: Bounds
    profile: Profile
    settings: Mapping[str, Setting]
    mutation: Mutation | None = None
    whole_atoms: bool = False
    merge: bool = True

    def protocol(self) -> Protocol:
        """A fresh protocol object of this instance."""
        return self.kind(self.bounds, **self.settings)

    def initial_choices(self) -> dict[Hashable, tuple[Hashable, ...]]:
        """The free choices of initial memory: one for each block that may hold anything."""
        protocol = self.protocol()
        if not any(isinstance(r.initial, AnyOf | Mapping) for r in protocol.regions.values()):
            return {}
        return {
            ("initial", str(cell.slot), cell.field): cell.initial.values
            for cell in self.layout(protocol).cells
            if isinstance(cell.initial, AnyOf)
        }

    def layout(self, protocol: Protocol) -> Layout:
        return Layout(
            list(protocol.regions.values()),
            self.profile.finest_atomicity,
            self.profile.in_block_order,
            self.whole_atoms,
        )

    def parts(self, choices: Choices) -> Parts:
        """What systems and other executors of the instance are built from."""
        protocol = self.protocol()
        layout, values = self.layout(protocol), Values()
        locks = self.profile.atomics == "nic_only"
        lowering = Lowering(layout, self.profile, values, locks)
        processes = self.processes(protocol)
        groups = groups_of(protocol, processes)
        roles = [self._role(protocol, process, groups, choices) for process in processes]
        return Parts(protocol, layout, values, lowering, processes, roles, choices)

    def system(self, choices: Choices, ledger: Ledger | None = None) -> System:
        """The system under one assignment; `Unresolved` when a role asks for another choice."""
        parts = self.parts(choices)
        ledger = ledger or Ledger()
        shared, identity = parts.shared(), self.identity(parts.protocol)
        automata = [
            Automaton(
                process,
                role.start,
                role.said,
                parts.lowering,
                identity and identity.beside(role.core),
                ledger,
                self.mutation,
                shared,
            )
            for process, role in zip(parts.processes, parts.roles, strict=True)
        ]
        lines = cache_lines(parts.layout)
        features = Features(
            twins=self.profile.quiet == "target",
            locks=self.profile.atomics == "nic_only",
            caches=bool(lines),
            views=self.profile.load_order == "none",
            ghosts=bool(parts.protocol.ghosts),
        )
        initial = [parts.values.number(value) for value in parts.initial]
        ghosts = {ghost.name: ghost.initial for ghost in parts.protocol.ghosts.values()}
        return System(
            automata, parts.layout.cells, parts.values, features, lines, ghosts, initial, ledger
        )

    def identity(self, protocol: Protocol) -> Identity | None:
        """What tells, beside its core, which local states of a process are equal; None: its
        history alone."""
        return Identity((protocol,), Operation) if self.merge else None

    def unwatched(self) -> str:
        """What the roles refer to that cannot be put under watch, or nothing.

        By it roles may tell each other something that no engine sees, so nothing is proved.
        """
        protocol = self.protocol()
        processes = self.processes(protocol)
        groups = groups_of(protocol, processes)
        one_of_each = {each.role: each for each in processes}.values()
        roles = [self._role(protocol, each, groups, {}) for each in one_of_each]
        return shared_by(protocol, roles).unwatched

    def processes(self, protocol: Protocol) -> list[Process]:
        """Every role on every core of every rank."""
        found: list[Process] = []
        for role in protocol.roles():
            count = protocol.count(role)
            for rank in protocol.ranks_of(role):
                if not 0 <= rank < self.bounds.ranks:
                    raise UserError(
                        f"the role {role.name} is on rank {rank}",
                        expected=f"ranks below {self.bounds.ranks}",
                    )
                for instance in range(count):
                    found.append(Process(len(found), role.name, rank, instance, count))
        if not found:
            raise UserError(
                f"{self.kind.__name__} has no process", expected="a method marked @role"
            )
        return found

    def _role(
        self,
        protocol: Protocol,
        process: Process,
        groups: Mapping[str, tuple[int, ...]],
        choices: Choices,
    ) -> Running:
        said: list[Statement] = []
        core = Core(
            process.role,
            process.rank,
            process.instance,
            process.count,
            self.bounds,
            groups,
            choices,
            said.append,
        )
        function = next(r.function for r in protocol.roles() if r.name == process.role)

        def start() -> CoroutineType[Any, Any, Any]:
            made = function(protocol, core)
            assert isinstance(made, CoroutineType)
            return made

        return Running(core, start, said)


def groups_of(protocol: Protocol, processes: list[Process]) -> dict[str, tuple[int, ...]]:
    """Who meets in a sync: all, a rank, a role of a rank, and groups that the protocol names."""
    groups: dict[str, list[int]] = {"all": [p.number for p in processes]}
    for process in processes:
        for name in (f"rank {process.rank}", f"{process.role} of rank {process.rank}"):
            groups.setdefault(name, []).append(process.number)
    for name, member in protocol.groups().items():
        groups[name] = [p.number for p in processes if member(p)]
    return {name: tuple(members) for name, members in groups.items()}


def cache_lines(layout: Layout) -> list[tuple[int, ...]]:
    """The cells of each cache line of the regions that lie behind write-back caches."""
    lines: dict[tuple[str, int, int], list[int]] = {}
    for region in layout.regions:
        if region.line is not None:
            _add_lines(layout, region, lines)
    return [tuple(cells) for cells in lines.values()]


def _add_lines(
    layout: Layout, region: Region, lines: dict[tuple[str, int, int], list[int]]
) -> None:
    assert region.line is not None
    for number, cell in enumerate(layout.cells):
        if cell.slot.region is region:
            block = 0
            for i, extent in zip(cell.slot.place, region.extents, strict=True):
                block = block * extent + i
            line = (block * region.block + cell.first_byte) // region.line
            lines.setdefault((region.name, cell.slot.rank, line), []).append(number)


def source_line(file: str, line: int) -> str:
    """A line of source without its indentation."""
    return linecache.getline(file, line).strip()


def instance_of(question: Question, kind: type[Protocol]) -> Instance:
    """The instance that a recorded question is about, its mutant left out."""
    bounds = dict(question.bounds)
    if not isinstance(bounds.get("routing"), str):
        bounds["routing"] = tuple(
            tuple(tuple(row) for row in sources) for sources in bounds["routing"]
        )
    return Instance(kind, Bounds(**bounds), Profile(**question.fabric), dict(question.settings))
