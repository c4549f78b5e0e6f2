"""Promela from the same tables: an outside checker explores exactly the system that we explore.

One statement of the model is one step of ours (`d_step` makes it indivisible), and its variables
determine a state of ours and are determined by it. So SPIN stores as many states as `reference`
and counts one transition more, as entering the initial state is one to it (model compiled by
``spin -o1 -o2 -o3 -a``, which leaves out no variable and no step, and with -DNOREDUCE).

- A process is a proctype with a label for each node. One that takes part in a `sync` keeps its node
  in a variable instead, as the joint step of a group moves all its members at once.
- A cell is a variable that counts through the values which may ever be written to it.
- The puts of one process that overlap land in the order of issue; they are one queue, of as many
  elements as the fabric's in-flight bound. All landings are steps of one proctype, the fabric.

What a table does not have (`Unmet`) and a put beyond the bound are failed assertions: neither ever
blocks. SPIN finds stuck states and failed assertions; exactly-once, races, quiescence and hangs in
which somebody still polls are not in the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from syncproof.checkers.promela_state import (
    WRONG,
    Cells,
    any_of,
    cells_of,
    queues_of,
    reachable,
    refuse_uncovered,
    spoken,
    uncovered,
    unsigned,
)
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.operations import Consumed, Failed
from syncproof.models.tables import TableEdge, TableNode, Tables


def promela(tables: Tables, *, assertions: bool = False, declared: bool = False) -> str:
    """A Promela model of the product of ``tables``.

    With ``assertions`` a step that consumes wrong data or fails a check is a failed assertion, and
    so is a state in which nobody can go on; without, SPIN goes on behind the former (count with the
    tables of a search that asked for no property). ``declared`` makes the queues channels with
    exclusive senders and receivers (`xs`, `xr`), for SPIN's own partial-order reduction; quiets and
    ordered atomics look into queues and are refused then. Raises `UserError` for what is not
    covered.
    """
    refuse_uncovered(tables)
    return _Model(tables, assertions, declared).text()


class _Option(NamedTuple):
    """A step of a process: what must hold, what it does, where it leads."""

    guards: tuple[str, ...]
    effects: tuple[str, ...]
    target: int


class _Model:
    def __init__(self, tables: Tables, assertions: bool, declared: bool) -> None:
        self.tables, self.assertions, self.declared = tables, assertions, declared
        self.cells = Cells(tables)
        self.queues = queues_of(tables, declared)
        self.moved_jointly = {
            member
            for process in range(len(tables.processes))
            for _, node in self._nodes(process)
            for action in node.actions
            for member in action.members
        }

    def text(self) -> str:
        """The whole model."""
        lines = ["/* written by a program: one statement is one step of the tables */"]
        lines += self.cells.declarations()
        lines += [queue.declaration() for queue in self.queues]
        for process in sorted(self.moved_jointly):
            table = self.tables.processes[process]
            lines.append(unsigned(f"n{process}", len(table.nodes) - 1, table.first))
        for process in range(len(self.tables.processes)):
            lines += self._process(process)
        return "\n".join([*lines, *self._fabric(), ""])

    def _nodes(self, process: int) -> list[tuple[int, TableNode]]:
        """The nodes of a process, the first one first."""
        table = self.tables.processes[process]
        numbers = sorted(reachable(table), key=lambda number: number != table.first)
        return [(number, table.nodes[number]) for number in numbers]

    # Processes

    def _process(self, process: int) -> list[str]:
        table = self.tables.processes[process]
        lines = [f"active proctype p{process}() {{ /* {spoken(table.process)} */"]
        if self.declared:
            lines += [f"xs {queue.name};" for queue in self.queues if queue.owner == process]
        if self._wrong(table.first_statements):
            lines.append(f"{WRONG};")
        if process in self.moved_jointly:
            lines += ["end: do", *self._by_variable(process), "od"]
        else:
            for number, node in self._nodes(process):
                lines += self._labelled(process, number, node)
        return [*lines, "}"]

    def _by_variable(self, process: int) -> list[str]:
        """The steps of a process whose node is a variable."""
        lines = []
        for number, node in self._nodes(process):
            for guards, effects, target in self._options(process, number, node):
                here, move = f"n{process} == {number}", f"n{process} = {target}"
                lines.append(f"  :: {_statement((here, *guards), (*effects, move))}")
        return lines or ["  :: false"]

    def _labelled(self, process: int, number: int, node: TableNode) -> list[str]:
        """The steps of a node that is a label."""
        label = self._label(process, number)
        options = list(self._options(process, number, node))
        if not options:
            return [f"{label}: false;"]
        ways = [
            f"  :: {_statement(guards, effects)} -> goto {self._label(process, target)}"
            for guards, effects, target in options
        ]
        return [f"{label}: if /* {spoken(node.place)} */", *ways, "fi;"]

    def _label(self, process: int, number: int) -> str:
        done = self.tables.processes[process].nodes[number].state == "done"
        return f"end{number}" if done else f"N{number}"

    # Steps

    def _options(self, process: int, number: int, node: TableNode) -> Iterator[_Option]:
        if node.state == "error":
            yield _Option((), (WRONG,), number)
        for position, action in enumerate(node.actions):
            if action.kind is ActionKind.SYNC:
                if process == min(action.members):
                    yield from self._sync(number, action)
                continue
            met = {
                values: edge for (which, values), edge in node.edges.items() if which == position
            }
            guards, effects = self._enabled(process, action), self._done(process, action)
            for (writes, wrong, target), values in self._alike(met).items():
                holds = self._holds(action, values)
                if holds:
                    done = (*effects, *self.cells.written((c, v, -1) for c, v in writes))
                    failed = (WRONG,) if wrong else ()
                    yield _Option((*guards, any_of(holds)), (*failed, *done), target)
            known = self._holds(action, list(met))
            if len(known) < self.cells.combinations(action.cells):
                unknown = (f"!({any_of(known)})",) if known else ()
                yield _Option((*guards, *unknown), (WRONG,), number)

    def _holds(self, action: Action, values: Sequence[tuple[int, ...]]) -> list[str]:
        """The conditions of those values that the action's cells can hold."""
        tests = [self.cells.holds(action.cells, each) for each in values]
        return [each for each in tests if each is not None]

    def _alike(
        self, met: dict[tuple[int, ...], TableEdge | None]
    ) -> dict[tuple[tuple[tuple[int, int], ...], bool, int], list[tuple[int, ...]]]:
        """The values on which an action does the same."""
        found: dict[tuple[tuple[tuple[int, int], ...], bool, int], list[tuple[int, ...]]] = {}
        for values, edge in met.items():
            if edge is not None:
                key = (edge.writes, self._wrong(edge.statements), edge.target)
                found.setdefault(key, []).append(values)
        return found

    def _wrong(self, statements: int) -> bool:
        """Whether what a step says is a failure that the model asserts."""
        return self.assertions and any(
            isinstance(each, Failed) or (isinstance(each, Consumed) and bool(each.failure))
            for each in self.tables.statements[statements]
        )

    def _enabled(self, process: int, action: Action) -> tuple[str, ...]:
        """What must hold besides the values read."""
        mine = [queue for queue in self.queues if queue.owner == process]
        if action.kind is ActionKind.QUIET and self.tables.profile.quiet != "local":
            awaited = [q for q in mine if action.target in (-1, q.packets[0].target)]
        elif action.ordered:
            awaited = [q for q in mine if q.cells & set(action.cells)]
            if any(not cells_of(p) & set(action.cells) for q in awaited for p in q.packets):
                raise uncovered("an ordered atomic or get of a part of what one queue writes")
        else:
            return ()
        if awaited and self.declared:
            raise uncovered("a quiet or an ordered atomic with channels that SPIN may reduce by")
        return tuple(queue.empty() for queue in awaited)

    def _done(self, process: int, action: Action) -> tuple[str, ...]:
        """The puts that an action issues and what it writes at once."""
        issued = []
        for packet in action.packets if action.kind is ActionKind.ISSUE else ():
            for queue in self.queues:
                if queue.owner == process and cells_of(packet) <= queue.cells:
                    issued.append(queue.issued(packet))
        return (*issued, *self.cells.written(action.writes))

    def _sync(self, number: int, action: Action) -> Iterator[_Option]:
        """The joint step of a group, taken by its first member when all are there."""
        moves = {}
        for member in action.members:
            moves[member] = {
                n: node.edges.get((0, ()))
                for n, node in self._nodes(member)
                if any(a.kind is ActionKind.SYNC and a.group == action.group for a in node.actions)
            }
        leader = min(action.members)
        mine = moves.pop(leader)[number]
        if not all(moves.values()):
            return
        guards = [any_of([f"n{m} == {n}" for n in there]) for m, there in moves.items()]
        effects = [self._joined(member, there) for member, there in moves.items()]
        if mine is None or self._wrong(mine.statements):
            effects.insert(0, WRONG)
        yield _Option(tuple(guards), tuple(effects), number if mine is None else mine.target)

    def _joined(self, member: int, there: dict[int, TableEdge | None]) -> str:
        """The move of another member of the group, from whichever of its nodes it waits at."""
        ways = []
        for node, edge in there.items():
            wrong = edge is None or self._wrong(edge.statements)
            move = WRONG if edge is None or wrong else f"n{member} = {edge.target}"
            ways.append(f":: n{member} == {node} -> {move}")
        return f"if {' '.join(ways)} fi"

    # The fabric

    def _fabric(self) -> list[str]:
        """Landings and, as members of a sync have no end label, the judgement of their ends."""
        steps = [step for queue in self.queues for step in queue.landings(self.cells)]
        if self.assertions and self.moved_jointly:
            ended = [
                any_of([f"n{p} == {n}" for n, node in self._nodes(p) if node.state == "done"])
                for p in sorted(self.moved_jointly)
            ]
            steps.append(f"d_step {{ timeout && !({' && '.join(ended)}) -> {WRONG} }}")
        if not steps:
            return []
        lines = ["active proctype fabric() {"]
        lines += [f"xr {queue.name};" for queue in self.queues] if self.declared else []
        return [*lines, "end: do", *(f"  :: {step}" for step in steps), "od", "}"]


def _statement(guards: Sequence[str], effects: Sequence[str]) -> str:
    """One indivisible statement."""
    tests = [each for each in guards if each != "true"]
    guard = " && ".join(f"({each})" for each in tests) if len(tests) > 1 else "".join(tests)
    body = "; ".join(effects)
    if not body:
        return guard or "true"
    return f"d_step {{ {guard} -> {body} }}" if guard else f"d_step {{ {body} }}"
