"""The model of one process that goes along with a run, and forgets what lies behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from syncproof.checkers.emulator.processes import place_of
from syncproof.models.automaton import Automaton
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.instance import Choices, Instance, cache_lines
from syncproof.models.lowering import Action, Lowering, Progress
from syncproof.models.memory import Layout
from syncproof.models.nodes import Edge, Node, Process
from syncproof.models.operations import Kind, Operation, Statement
from syncproof.models.outbox import Outbox, canonical
from syncproof.models.system import System
from syncproof.models.transitions import Features, State
from syncproof.models.values import Values

SWEEPS = frozenset((Kind.SWEEP_BEGIN, Kind.SWEEP_END))
NODES_KEPT = 8
"""The nodes behind the current one that are kept: a step is made of what it leaves, too."""

Accept = Callable[[tuple[int, ...]], bool]


class LiveAutomaton(Automaton):
    """A process as its one coroutine: it cannot go back, so it makes no table.

    ``accept`` says which values the next step may read; the others are left alone, as the
    coroutine can be given only one. ``said`` is what the role said with its last step.
    """

    def __init__(
        self,
        process: Process,
        start: Callable[[], Any],
        said: list[Statement],
        lowering: Lowering,
        mutation: Callable[[Operation, str, int], Operation | None] | None,
    ) -> None:
        self.process, self._lowering, self._mutation = process, lowering, mutation
        self._heard = said
        self.accept: Accept | None = None
        self.coroutine = start()
        self._recent: dict[int, Node] = {}
        self.nodes = cast("list[Node]", self._recent)
        self._count = self._oldest = 0
        self.first, self.first_statements = self._next(None)
        self.said = self.first_statements

    def edge(self, node: Node, action: int, values: tuple[int, ...]) -> Edge | None:
        """The step of ``node`` by its ``action``; None if it blocks or is not asked for."""
        key = (action, values)
        if key in node.edges:
            return node.edges[key]
        if self.accept is not None and not self.accept(values):
            return None
        edge = node.edges[key] = self._make_edge(node, node.actions[action], values)
        return edge

    def _make_edge(self, node: Node, action: Action, values: tuple[int, ...]) -> Edge | None:
        outcome = self._lowering.outcome(node.operation, node.progress, action, values)
        if outcome.blocked:
            return None
        if outcome.error is not None:
            raise outcome.error
        if outcome.progress is not None:
            return Edge(self.partial(node, outcome.progress), (), outcome.writes)
        if outcome.again:
            return Edge(self.partial(node, ()))
        after, statements = self._next(outcome.result)
        return Edge(after, statements, outcome.writes)

    def partial(self, node: Node, progress: Progress) -> Node:
        """The same operation with other values read so far."""
        return self._made(node.operation, progress)

    def _next(self, value: Any) -> tuple[Node, tuple[Statement, ...]]:
        """Feed the role a value; the node where it stands then, and what it said."""
        self._heard.clear()
        operation: Operation | None = None
        try:
            while operation is None:
                found = self.coroutine.send(value)
                value = None
                if not isinstance(found, Operation):
                    raise UserError(f"a role awaits {type(found).__name__}, not an operation")
                if found.kind not in SWEEPS:
                    operation = self._kept(found)
        except StopIteration:
            pass
        while self._oldest < self._count - NODES_KEPT:
            old = self._recent.pop(self._oldest, None)
            if old is not None:
                old.edges.clear()
            self._oldest += 1
        return self._made(operation, ()), tuple(self._heard)

    def _kept(self, operation: Operation) -> Operation | None:
        if self._mutation is None:
            return operation
        place = place_of(self.coroutine)
        return self._mutation(operation, place.file, place.line) if place else operation

    def _made(self, operation: Operation | None, progress: Progress) -> Node:
        state = "done" if operation is None else "run"
        node = Node(self._count, state, operation, None, (), 0, progress=progress)
        self._act(node)
        self._recent[self._count] = node
        self._count += 1
        return node

    def _act(self, node: Node) -> None:
        if node.operation is None:
            return
        try:
            node.actions = self._lowering.actions(node.operation, node.progress, self.process.rank)
        except UserError as error:
            node.state, node.error = "error", error

    def renumber(self, node: Node, lowering: Lowering, moved: Callable[[int], int]) -> None:
        """Go on from ``node`` with other numbers for values, everything behind it forgotten."""
        self._lowering = lowering
        node.progress = tuple((cell, moved(value)) for cell, value in node.progress)
        node.edges.clear()
        self._act(node)
        self._recent.clear()
        self._recent[node.number] = node


def renumbered(
    system: System, state: State, layout: Layout, profile: Profile
) -> tuple[System, State]:
    """The same system and state, without the values and outboxes that it no longer needs.

    Where loads may be served early nothing is forgotten.
    """
    features = system.features
    if features.views:
        return system, state
    values = Values()

    def moved(number: int) -> int:
        return values.number(system.values[number])

    lowering = Lowering(layout, profile, values, features.locks)
    for process, each in enumerate(system.automata):
        cast(LiveAutomaton, each).renumber(system.node(state, process), lowering, moved)
    work = list(state)
    for place in range(system.first_cell, system.first_outbox):
        work[place] = moved(state[place])
    initial = work[system.first_cell : system.first_cell + len(system.cells)]
    lines, ghosts = system.caches.lines, system.ghosts.initial
    new = System(system.automata, system.cells, values, features, lines, ghosts, initial)
    for place in range(system.first_outbox, system.first_cache):
        work[place] = new.outboxes.number(_moved_outbox(system.outboxes[state[place]], moved))
    if features.caches:
        for process in range(system.processes):
            held = system.caches.of(state, process).items()
            kept = {line: (tuple(map(moved, data)), dirty) for line, (data, dirty) in held}
            new.caches.put(work, process, kept)
    if features.ghosts:
        work[system.ghosts.at] = new.ghosts.known.number(
            system.ghosts.known.known[state[system.ghosts.at]]
        )
    return new, tuple(work)


def _moved_outbox(outbox: Outbox, moved: Callable[[int], int]) -> Outbox:
    return canonical(
        [
            each._replace(
                packet=each.packet._replace(
                    writes=tuple(
                        (cell, moved(value) if value >= 0 else value, mode)
                        for cell, value, mode in each.packet.writes
                    )
                )
            )
            for each in outbox
        ]
    )


def live_system(instance: Instance, choices: Choices) -> tuple[System, Layout]:
    """The model of an instance with a live coroutine for each process, instead of tables.

    Good for following one run; ``choices`` may still grow while it is followed.
    """
    parts = instance.parts(choices)
    automata = [
        LiveAutomaton(process, role.start, role.said, parts.lowering, instance.mutation)
        for process, role in zip(parts.processes, parts.roles, strict=True)
    ]
    lines = cache_lines(parts.layout)
    features = Features(
        twins=instance.profile.quiet == "target",
        locks=instance.profile.atomics == "nic_only",
        caches=bool(lines),
        views=instance.profile.load_order == "none",
        ghosts=bool(parts.protocol.ghosts),
    )
    initial = [parts.values.number(value) for value in parts.initial]
    ghosts = {ghost.name: ghost.initial for ghost in parts.protocol.ghosts.values()}
    cells = parts.layout.cells
    system = System(automata, cells, parts.values, features, lines, ghosts, initial)
    return system, parts.layout
