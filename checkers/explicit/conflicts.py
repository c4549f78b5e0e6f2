"""Whether a step commutes with everything that an outlook may do: the dependence of steps.

Steps on one cell depend on each other if one of them writes it, with one exception: a write and a
synchronizing read are independent where the read goes the same way and says the same with and
without the write. Steps that touch one ghost depend on each other, and so do the landing of a put
and the return of the process that issued it. No other steps do (docs/soundness.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from syncproof.checkers.explicit.outlook import (
    Agent,
    Outlook,
    PacketAgent,
    ProcessAgent,
    ghosts_of,
    synchronizes,
)
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.nodes import Edge, Node, Way
from syncproof.models.outbox import SET, Write
from syncproof.models.transitions import State, Transition


def conflict(
    outlook: Outlook, state: State, agent: Agent, member: Transition, behind: int = -1
) -> Agent | None:
    """An agent of the outlook with a step that depends on ``member``, a step of ``agent``.

    ``behind`` is a process whose puts do not count as writers: they land behind the member. Its
    gets do count, for a get does not hold back what is issued later.
    """
    system = outlook.system
    if isinstance(agent, PacketAgent):
        packet = system.outbox(state, agent.owner)[agent.position].packet
        if packet.reads:
            return _writer(outlook, packet.reads)
        if agent.owner in outlook.returned:
            return ProcessAgent(agent.owner)
        return _with_writes(outlook, state, packet.writes, behind)
    node, number = system.node(state, agent.process), member.step.what[0]
    action = node.actions[number]
    values = tuple(system.value(state, cell) for cell in action.cells)
    for way in system.automata[agent.process].ways(node, number, values):
        if way[1] is not None:
            found = _with_ghosts(outlook, state, action, way[1]) or _with_memory(
                outlook, state, agent.process, node, number, way
            )
            if found is not None:
                return found
    return None


def _with_ghosts(outlook: Outlook, state: State, action: Action, edge: Edge) -> Agent | None:
    edges = [edge]
    if action.kind is ActionKind.SYNC:
        system = outlook.system
        for member in action.members:
            ways = system.automata[member].ways(system.node(state, member), 0, ())
            edges += [found for _, found in ways if found is not None]
    for each in edges:
        for ghost in ghosts_of(each.statements):
            if ghost in outlook.ghosts:
                return outlook.ghosts[ghost]
    return None


def _with_memory(
    outlook: Outlook, state: State, process: int, node: Node, number: int, way: Way
) -> Agent | None:
    action, edge = node.actions[number], way[1]
    if action.kind is ActionKind.WRITE:
        return _with_writes(outlook, state, action.writes)
    if synchronizes(node, action):
        return _with_wait(outlook, state, process, node, number, way)
    if action.kind is ActionKind.READ:
        return _writer(outlook, action.cells)
    if action.kind is ActionKind.UPDATE and edge is not None:
        writes = [(cell, value, SET) for cell, value in edge.writes]
        return (
            _writer(outlook, action.cells)
            or _plain_reader(outlook, action.cells)
            or _with_writes(outlook, state, writes)
        )
    return None


def _writer(outlook: Outlook, cells: Iterable[int], behind: int = -1) -> Agent | None:
    for cell in cells:
        for agent, packet in outlook.writers.get(cell, ()):
            if packet is None or packet.is_get or agent[0] != behind:
                return agent
    return None


def _plain_reader(outlook: Outlook, cells: Iterable[int]) -> Agent | None:
    for cell in cells:
        if cell in outlook.plain_readers:
            return outlook.plain_readers[cell]
    return None


def _with_writes(
    outlook: Outlook, state: State, writes: Iterable[Write], behind: int = -1
) -> Agent | None:
    """Who else writes there, reads there plainly, or waits and would see the difference."""
    cells = [cell for cell, _, _ in writes]
    found = _writer(outlook, cells, behind) or _plain_reader(outlook, cells)
    return found or _waiter(outlook, state, tuple(writes))


def _waiter(outlook: Outlook, state: State, writes: tuple[Write, ...]) -> Agent | None:
    """A wait from outside that passes, but not alike behind these writes."""
    for atom in {outlook.memory.atoms.atom_of[cell] for cell, _, _ in writes}:
        for place, number, action in outlook.readers.get(atom, {}).values():
            if action.kind is not ActionKind.READ:
                continue
            automaton = outlook.system.automata[place.process]
            for values in outlook.memory.combinations(action.cells, state):
                after = _after(outlook, action.cells, values, writes)
                behind = automaton.ways(place.node, number, after)
                for way in automaton.ways(place.node, number, values):
                    if not goes_the_same_way(way, behind):
                        return ProcessAgent(place.process)
    return None


def _after(
    outlook: Outlook, cells: tuple[int, ...], values: tuple[int, ...], writes: tuple[Write, ...]
) -> tuple[int, ...]:
    """What a read of ``cells`` gives behind the writes, if it gave ``values`` before them."""
    after = dict(zip(cells, values, strict=True))
    for cell, value, mode in writes:
        if cell in after:
            after[cell] = value if mode == SET else outlook.memory.sum(after[cell], value)
    return tuple(after[cell] for cell in cells)


def _with_wait(
    outlook: Outlook, state: State, process: int, node: Node, number: int, way: Way
) -> Agent | None:
    """A member that waits: does it go the same way on every value there may be?"""
    cells = node.actions[number].cells
    automaton = outlook.system.automata[process]
    for values in outlook.memory.combinations(cells, state):
        if not goes_the_same_way(way, automaton.ways(node, number, values)):
            return _writer(outlook, cells) or ProcessAgent(process)
    return None


def goes_the_same_way(way: Way, others: Iterable[Way]) -> bool:
    """Whether a step that is possible under some answers to choices stays as it is."""
    answers, edge = way
    if edge is None:
        return True
    return all(alike(edge, other) for their, other in others if _agree(answers, their))


def _agree(one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]) -> bool:
    if not (one and other):
        return True
    known = dict(one)
    return all(known.get(name, answer) == answer for name, answer in other)


def alike(one: Edge, other: Edge | None) -> bool:
    """Whether two edges lead to the same node with the same statements and writes."""
    return (
        other is not None
        and one.target is other.target
        and one.writes == other.writes
        and one.statements == other.statements
    )
