"""The product: processes, memory and fabric together, one tuple of integers a state.

A state holds the node of each process, the value number of each cell, the outbox number of each
process and, where the protocol or the fabric needs them, caches, views and ghosts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from syncproof.models import outbox as boxes
from syncproof.models.automaton import Automaton
from syncproof.models.caches import Caches
from syncproof.models.errors import UserError
from syncproof.models.in_flight import InFlight
from syncproof.models.looks import accesses_of, outline_of
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.memory import Cell
from syncproof.models.nodes import Edge, Ledger, Node
from syncproof.models.outbox import ADD, Outbox
from syncproof.models.saying import Ghosts
from syncproof.models.transitions import (
    Access,
    Delivery,
    Failure,
    Features,
    Move,
    Outline,
    Overfull,
    State,
    Step,
    Transition,
    moves_of,
)
from syncproof.models.values import Values
from syncproof.models.views import Views


class System:
    """Initial state and transitions of one instance under one assignment of its choices."""

    def __init__(
        self,
        automata: Sequence[Automaton],
        cells: Sequence[Cell],
        values: Values,
        features: Features,
        lines: Sequence[tuple[int, ...]] = (),
        ghost_initial: dict[str, Hashable] | None = None,
        initial_cells: Sequence[int] | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.automata, self.cells, self.values = tuple(automata), tuple(cells), values
        self.features = features
        self.ledger = ledger or Ledger()
        self.processes = len(self.automata)
        count = len(self.cells)
        self.first_cell = self.processes
        self.first_twin = count * (1 + features.locks) if features.twins else 0
        total = count * (1 + features.twins + features.locks)
        self.first_outbox = self.first_cell + total
        boxes_count = self.processes + features.twins
        self.first_cache = self.first_outbox + boxes_count
        first_view = self.first_cache + self.processes * features.caches
        ghost_at = first_view + self.processes * features.views
        self.width = ghost_at + features.ghosts
        self.outboxes = InFlight(self.processes)
        self.deliveries = self.outboxes.deliveries
        self.landing_cells = self.outboxes.landing_cells
        self.caches = Caches(lines, self.first_cell, self.first_cache)
        self.views = Views(self.cells, self.first_cell, first_view)
        self.ghosts = Ghosts(ghost_initial or {}, ghost_at)
        self.polled: set[int] = set()
        profile = self.automata[0].profile
        self._twin_profile = replace(profile, ordering="none", same_address_order=True, hops={})
        self._ambiguous = features.views or not profile.same_address_order
        self._start = (
            [values.number(cell.initial) for cell in cells]
            if initial_cells is None
            else list(initial_cells)
        )
        self._moves: dict[tuple[int, ...], tuple[Move, ...]] = {}
        self._accesses: dict[tuple[Hashable, ...], tuple[Access, ...]] = {}
        self._outlines: dict[tuple[int, int], Outline] = {}
        self._entangled = features.twins or features.views or features.caches or features.ghosts

    # States

    def initial(self) -> State:
        """The state before the first step."""
        state = [each.first.number for each in self.automata] + self._start
        state += [self.values.number(0)] * len(self.cells) if self.features.locks else []
        state += self._start if self.features.twins else []
        state += [0] * (self.width - len(state))
        return tuple(state)

    def initial_transition(self) -> Transition:
        """The initial state with what the roles say before their first operation."""
        state = self.initial()
        failures: list[Failure] = []
        reached: list[str] = []
        work = list(state)
        for process, each in enumerate(self.automata):
            self.ghosts.hear(work, process, each.first_statements, failures, reached)
        return Transition(Step("process", -1, ()), tuple(work), tuple(failures), tuple(reached))

    def node(self, state: State, process: int) -> Node:
        return self.automata[process].nodes[state[process]]

    def outbox(self, state: State, process: int) -> Outbox:
        return self.outboxes[state[self.first_outbox + process]]

    def value(self, state: State, cell: int) -> int:
        return state[self.first_cell + cell]

    def initial_value(self, cell: int) -> int:
        """The number of the value that a cell starts with."""
        return self._start[cell]

    def all_done(self, state: State) -> bool:
        """Whether every process has returned."""
        return all(self.node(state, p).state == "done" for p in range(self.processes))

    def nothing_in_flight(self, state: State) -> bool:
        return not any(state[self.first_outbox : self.first_cache])

    # Transitions

    def transitions(self, state: State) -> list[Transition]:
        """Every step that is enabled in ``state``, in a fixed order.

        Raises `Overfull` when a put meets the in-flight bound and `UserError` when a role that
        goes wrong is reached.
        """
        found: list[Transition] = []
        for process in range(self.processes):
            found += self.process_transitions(state, process)
        found += self.fabric_transitions(state)
        return self.told_apart(found) if self._ambiguous or self.outboxes.alike else found

    def told_apart(self, found: list[Transition]) -> list[Transition]:
        """The same transitions, with numbers for steps that are alike."""
        seen: dict[Step, int] = {}
        for i, each in enumerate(found):
            variant = seen.get(each.step, 0)
            seen[each.step] = variant + 1
            if variant:
                found[i] = each.numbered(variant)
        return found

    def step_transitions(self, state: State, step: Step) -> list[Transition]:
        """The enabled transitions among which ``step`` is, if it is enabled."""
        if self.features.views or step.kind in ("write back", "evict", "fetch"):
            return self.transitions(state)
        if step.kind == "process":
            return self.process_transitions(state, step.process)
        found = list(self.landings(state, step.process))
        return self.told_apart(found) if self._ambiguous or self.outboxes.alike else found

    def process_transitions(self, state: State, process: int) -> list[Transition]:
        """The enabled steps of one process."""
        moves = self._local_moves(state, process)
        return self._steps(state, process) if moves is None else [m.taken(state) for m in moves]

    def process_moves(self, state: Sequence[int], process: int) -> Sequence[Move]:
        """The same as changes of the state."""
        moves = self._local_moves(state, process)
        return moves_of(state, self._steps(state, process)) if moves is None else moves

    def _local_moves(self, state: Sequence[int], process: int) -> tuple[Move, ...] | None:
        """The steps of a process that depend on little; None if they may depend on more."""
        node = self.automata[process].nodes[state[process]]
        if node.state == "done":
            return ()
        if node.state == "error":
            assert node.error is not None
            raise node.error
        outline = self._outlines.get((process, node.number))
        if outline is None:
            outline = outline_of(node, self.first_cell, self._entangled)
            self._outlines[process, node.number] = outline
        if outline.polls:
            self.polled |= outline.polls
        if not outline.local:
            return None
        outbox = state[self.first_outbox + process]
        key = (process, node.number, outbox, *[state[place] for place in outline.looks])
        moves = self._moves.get(key)
        if moves is None:
            moves = self._moves[key] = moves_of(state, self._steps(state, process))
        return moves

    def _steps(self, state: Sequence[int], process: int) -> list[Transition]:
        state, found = tuple(state), list[Transition]()
        node = self.node(state, process)
        for number, action in enumerate(node.actions):
            found += self._act(state, process, node, number, action)
        return found

    def _act(
        self, state: State, process: int, node: Node, number: int, action: Action
    ) -> Iterator[Transition] | list[Transition]:
        kind = action.kind
        if kind is ActionKind.READ:
            return self._read(state, process, node, number, action)
        if kind is ActionKind.UPDATE:
            return self._update(state, process, node, number, action)
        if kind is ActionKind.SYNC:
            return self._sync(state, process, action)
        if kind in (ActionKind.READ_CACHED, ActionKind.WRITE_CACHED, ActionKind.CLEAN):
            return self._cached(state, process, node, number, action)
        if kind is ActionKind.QUIET and not self.is_quiet(state, process, action.target):
            return []
        work = list(state)
        if kind in (ActionKind.ISSUE, ActionKind.FENCE) and action.packets:
            at = self.first_outbox + process
            work[at] = self.outboxes.issued(process, node, number, state[at])
        elif kind is ActionKind.WRITE:
            self._write_all(work, action.writes)
        if kind in (ActionKind.FENCE, ActionKind.QUIET):
            self._order_loads(work, process)
        return [self._moved(work, process, node, number, ())]

    def is_quiet(self, state: State, process: int, target: int) -> bool:
        """Whether a quiet (towards ``target``, or -1 for all) may pass."""
        outbox = self.outbox(state, process)
        if not outbox:
            return True
        if self.automata[process].quiet_is_local:
            return not any(each.packet.reads or each.packet.is_get for each in outbox)
        if target < 0:
            return False
        return not any(each.packet.target in (target, -1) for each in outbox)

    def _moved(
        self, work: list[int], process: int, node: Node, number: int, values: tuple[int, ...]
    ) -> Transition:
        """The transition of ``process`` along its edge for ``values``; ``work`` is updated."""
        edge = self.automata[process].edge(node, number, values)
        assert edge is not None
        return self._along(work, process, number, edge)

    def _along(self, work: list[int], process: int, number: int, edge: Edge) -> Transition:
        failures: list[Failure] = []
        reached: list[str] = []
        for cell, value in edge.writes:
            self._write(work, cell, value)
        work[process] = edge.target.number
        if edge.statements:
            self.ghosts.hear(work, process, edge.statements, failures, reached)
        self._ended(work, process, edge.target, failures)
        step = Step("process", process, (number,))
        return Transition(step, tuple(work), tuple(failures), tuple(reached))

    def _ended(self, work: list[int], process: int, node: Node, failures: list[Failure]) -> None:
        if node.state == "done" and work[self.first_outbox + process]:
            failures.append(Failure("quiescent", "returns while its puts are in flight", process))

    def _read(
        self, state: State, process: int, node: Node, number: int, action: Action
    ) -> Iterator[Transition]:
        if action.ordered and self._held_back(state, process, action):
            return
        for values, view in self.readable(state, process, action.cells):
            edge = self.automata[process].edge(node, number, values)
            if edge is None:
                continue
            work = list(state)
            if view is not None:
                work[self.views.place(process)] = view
            yield self._along(work, process, number, edge)

    def _update(
        self, state: State, process: int, node: Node, number: int, action: Action
    ) -> Iterator[Transition]:
        if action.ordered and self._held_back(state, process, action):
            return
        values = tuple(self.value(state, cell) for cell in action.cells)
        edge = self.automata[process].edge(node, number, values)
        if edge is not None:
            yield self._along(list(state), process, number, edge)

    def _held_back(self, state: State, process: int, action: Action) -> bool:
        """Whether an earlier put of the process must land before this get or atomic.

        A fence orders the atomic and not the get (OpenSHMEM, shmem_fence).
        """
        profile = self.automata[process].profile_to(action.target)
        is_get = action.kind is ActionKind.READ
        probe = boxes.Packet(
            tuple((cell, -1, boxes.SET) for cell in action.cells),
            action.cells if is_get else (),
            action.target,
            action.queue,
            False,
            0,
            False,
            is_get,
            False,
        )
        return any(
            boxes.must_precede(each.packet, probe, profile) for each in self.outbox(state, process)
        )

    def _sync(self, state: State, process: int, action: Action) -> list[Transition]:
        """The joint step of a group, once all its members are here; its first member leads."""
        if process != min(action.members):
            return []
        here: list[int] = []
        for member in action.members:
            actions = enumerate(self.node(state, member).actions)
            syncs = [(i, each) for i, each in actions if each.kind is ActionKind.SYNC]
            here += [i for i, each in syncs if each.group == action.group][:1]
        if len(here) < len(action.members):
            return []
        edges: list[tuple[int, Edge]] = []
        for member, number in zip(action.members, here, strict=True):
            edge = self.automata[member].edge(self.node(state, member), number, ())
            assert edge is not None
            edges.append((member, edge))
        work = list(state)
        failures: list[Failure] = []
        reached: list[str] = []
        for member, edge in edges:
            work[member] = edge.target.number
            self._order_loads(work, member)
            self.ghosts.hear(work, member, edge.statements, failures, reached)
            self._ended(work, member, edge.target, failures)
        step = Step("process", process, (0,))
        return [Transition(step, tuple(work), tuple(failures), tuple(reached))]

    # The fabric

    def fabric_transitions(self, state: State) -> list[Transition]:
        """What the fabric and the caches may do."""
        found: list[Transition] = []
        for owner in range(self.first_cache - self.first_outbox):
            if state[self.first_outbox + owner]:
                found += self.landings(state, owner)
        if self.features.caches:
            for process in range(self.processes):
                found += self._cache_steps(state, process)
        return found

    def landings(self, state: State, owner: int) -> Iterator[Transition]:
        """The deliveries that the fabric may make from one outbox."""
        for each in self.deliveries(owner, state[self.first_outbox + owner]):
            yield Transition(each.step, partial(self._landed, state, owner, each))

    def _landed(self, state: State, owner: int, delivery: Delivery) -> State:
        """The state behind a delivery."""
        work, at = list(state), self.first_outbox + owner
        if delivery.after >= 0:
            work[at] = delivery.after
            self._write_all(work, delivery.packet.writes)
        else:
            rank = self.automata[owner].process.rank
            values = [self._seen(state, rank, cell) for cell in delivery.packet.reads]
            after = boxes.source_read(self.outbox(state, owner), delivery.position, values)
            work[at] = self.outboxes.number(after)
        return tuple(work)

    def _write_all(self, work: list[int], writes: Sequence[boxes.Write]) -> None:
        if self.features.views:
            self._remember(work, [cell for cell, _, _ in writes])
        for cell, value, mode in writes:
            if mode == ADD:
                old = self.values[work[self.first_cell + cell]]
                more = self.values[value]
                if not isinstance(old, int):
                    where = self.cells[cell]
                    raise UserError(f"an add to {where}, which holds {old}", expected="a number")
                assert isinstance(more, int)
                value = self.values.number(old + more)
            self._set(work, cell, value)

    def _write(self, work: list[int], cell: int, value: int) -> None:
        if self.features.views and cell < len(self.cells):
            self._remember(work, [cell])
        self._set(work, cell, value)

    def _set(self, work: list[int], cell: int, value: int) -> None:
        work[self.first_cell + cell] = value
        if self.features.twins and cell < len(self.cells):
            at = self.first_outbox + self.processes
            before = self.outboxes[work[at]]
            twin = ((self.first_twin + cell, value, boxes.SET),)
            packet = boxes.Packet(twin, (), 0, 0, False, 0, False, False, False)
            after = boxes.issue(before, [packet], [self._twin_profile])
            if after is None:
                raise Overfull
            work[at] = self.outboxes.number(after)

    # What a process can read

    def readable(
        self, state: State, process: int, cells: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], int | None]]:
        """The values that a read may give, each with the process's view after it."""
        base = self.first_cell
        if self.features.twins:
            rank = self.automata[process].process.rank
            yield tuple(self._seen(state, rank, cell) for cell in cells), None
            return
        current = tuple(state[base + cell] for cell in cells)
        if not self.features.views:
            yield current, None
            return
        yield current, self.views.after(state, process, cells)
        for old, view in self.views.older(state, process, cells):
            merged = dict(zip(cells, current, strict=True)) | old
            yield tuple(merged[cell] for cell in cells), view

    def _seen(self, state: State, rank: int, cell: int) -> int:
        """What a rank sees in a cell: under quiet=target only its owner sees it at once."""
        here = not self.features.twins or self.cells[cell].slot.rank == rank
        return self.value(state, cell if here else self.first_twin + cell)

    def _remember(self, work: list[int], written: Sequence[int]) -> None:
        """Keep what is overwritten for loads that may still be served with it."""
        cells = [cell for cell in written if cell < len(self.cells)]
        for process in range(self.processes):
            if self.automata[process].nodes[work[process]].state != "done":
                self.views.remember(work, process, cells)

    def _order_loads(self, work: list[int], process: int) -> None:
        if self.features.views:
            work[self.views.place(process)] = 0

    # Caches

    def _cached(
        self, state: State, process: int, node: Node, number: int, action: Action
    ) -> Iterator[Transition]:
        caches = self.caches
        held, work = caches.of(state, process), list(state)
        if action.kind is ActionKind.CLEAN:
            for line in caches.touched(action.cells):
                caches.drop(work, held, line, self._write_all)
            caches.put(work, process, held)
            yield self._moved(work, process, node, number, ())
            return
        caches.fetch(state, held, action.cells)
        if action.kind is ActionKind.WRITE_CACHED:
            caches.write(held, action.writes)
            caches.put(work, process, held)
            yield self._moved(work, process, node, number, ())
            return
        caches.put(work, process, held)
        edge = self.automata[process].edge(node, number, caches.read(held, action.cells))
        if edge is not None:
            yield self._along(work, process, number, edge)
        elif tuple(work) != state:
            yield Transition(Step("fetch", process, action.cells), tuple(work))

    def _cache_steps(self, state: State, process: int) -> Iterator[Transition]:
        """A line may be evicted at any time, and is written back whole if it is dirty."""
        for line, (_, dirty) in self.caches.of(state, process).items():
            held, work = self.caches.of(state, process), list(state)
            self.caches.drop(work, held, line, self._write_all)
            self.caches.put(work, process, held)
            step = Step("write back" if dirty else "evict", process, self.caches.lines[line])
            yield Transition(step, tuple(work), fair=False)

    # Races

    def accesses(self, state: State, transition: Transition) -> tuple[Access, ...]:
        """What a step reads and writes, for race-free."""
        step = transition.step
        if step.kind == "process":
            source: Hashable = state[step.process]
        elif step.kind == "land":
            source = state[self.first_outbox + step.process]
        else:
            source = None
        key = (*step, source)
        found = self._accesses.get(key)
        if found is None:
            found = self._accesses[key] = tuple(self._find_accesses(state, step))
        return found

    def _find_accesses(self, state: State, step: Step) -> list[Access]:
        if step.kind == "process":
            return accesses_of(self.node(state, step.process), step.what[0])
        if step.kind == "land":
            is_put = not self._is_add(state, step)
            return [Access(cell, True, True, is_put) for cell in step.what]
        if step.kind == "read source":
            return [Access(cell, False, False, False) for cell in step.what]
        return []

    def _is_add(self, state: State, step: Step) -> bool:
        """Whether what lands is an atomic add and no put."""
        outbox = state[self.first_outbox + step.process]
        deliveries = self.deliveries(step.process, outbox)
        alike = [each for each in deliveries if each.step == step._replace(variant=0)]
        return all(mode == ADD for _, _, mode in alike[step.variant].packet.writes)
