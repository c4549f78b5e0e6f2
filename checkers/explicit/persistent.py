"""Persistent sets by abstract reachability: which enabled steps are enough to explore.

A set T of enabled steps is persistent if nothing that the others can do before a step of T
conflicts with one of T. T holds every enabled step of some *agents* (processes, and puts in
flight); all others run on in an over-approximation in which memory holds sets of values
(`Outlook`). If a step met that way conflicts with a member of T, the agent behind it joins, and
the run is repeated. The argument is in docs/soundness.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from syncproof.checkers.explicit.conflicts import conflict
from syncproof.checkers.explicit.contents import Atoms, GiveUp
from syncproof.checkers.explicit.outlook import (
    Agent,
    Outlook,
    PacketAgent,
    ProcessAgent,
    ghosts_of,
)
from syncproof.checkers.explicit.standing import Outlooks, Standing
from syncproof.models.lowering import ActionKind
from syncproof.models.system import System
from syncproof.models.transitions import State, Transition

LONG, MOST_IN_VAIN = 2_000, 10
"""Turns of an outlook that is long, and how many such are given up before no more are tried."""

FREE = (ActionKind.ISSUE, ActionKind.FENCE, ActionKind.QUIET, ActionKind.SYNC)


def is_free(system: System, state: State, transition: Transition) -> bool:
    """Whether nobody else can see a step of a process: an issue into its own outbox, a fence, a
    quiet or a sync that passes. With a ghost it can be seen."""
    step = transition.step
    actions = system.node(state, step.process).actions
    action = actions[step.what[0]]
    if len(actions) != 1 or action.kind not in FREE:
        return False
    members = action.members or (step.process,)
    for member in members:
        node = system.node(state, member)
        ways = system.automata[member].ways(node, 0, ())
        if any(edge is not None and ghosts_of(edge.statements) for _, edge in ways):
            return False
    return True


@dataclass
class PersistentSets:
    """Chooses a persistent set of the enabled steps of each state of one system.

    ``asked`` are the properties whose violation ends a run: nothing is explored behind one.
    """

    system: System
    asked: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._atoms = Atoms(self.system)
        self._standing = Standing(self.system, self._outlook)
        self._in_vain = 0

    @staticmethod
    def covers(system: System) -> bool:
        """Whether the argument covers the system: no caches, no early loads, no two views."""
        features = system.features
        return not (features.caches or features.views or features.twins)

    def choose(self, state: State, enabled: list[Transition]) -> list[Transition]:
        """A persistent set of the enabled steps, a single one where it is found."""
        known = self._standing.outlooks(state)
        chosen = enabled if len(enabled) <= 1 else self._choose(state, enabled, known)
        if len(chosen) == 1:
            self._standing.hand_on(state, chosen[0], known)
        return chosen

    def _choose(self, state: State, enabled: list[Transition], known: Outlooks) -> list[Transition]:
        for each in enabled:
            if each.step.kind != "process":
                break
            if is_free(self.system, state, each):
                return [also for also in enabled if also.step == each.step]
        by_agent = self._by_agent(state, enabled)
        seeds = [a for a in self._seeds(state, by_agent) if not self._is_split(state, a, by_agent)]
        single = {agent: by_agent[agent][0] for agent in seeds if _number(by_agent[agent]) == 1}
        alone = self._standing.alone(state, single, known)
        if alone is not None:
            return by_agent[alone]
        best = enabled
        for seed in seeds:
            found = self._closed(state, seed, by_agent, len(best))
            if found is not None and len(found) < len(best):
                best = found
                if _number(best) == 1:
                    break
        return best

    def _by_agent(self, state: State, enabled: list[Transition]) -> dict[Agent, list[Transition]]:
        """The enabled steps by the agent that takes them."""
        found: dict[Agent, list[Transition]] = {}
        positions: dict[int, Iterator[int]] = {}
        for each in enabled:
            step = each.step
            if step.kind == "process":
                found.setdefault(ProcessAgent(step.process), []).append(each)
                continue
            if step.process not in positions:
                positions[step.process] = self._deliverable(state, step.process)
            found[PacketAgent(step.process, next(positions[step.process]))] = [each]
        return found

    def _deliverable(self, state: State, owner: int) -> Iterator[int]:
        """The positions of the puts that the fabric may act on next, in order of their steps."""
        outbox = state[self.system.first_outbox + owner]
        return (each.position for each in self.system.deliveries(owner, outbox))

    def _seeds(self, state: State, by_agent: dict[Agent, list[Transition]]) -> list[Agent]:
        """The agents to try, those first whose steps are most likely alone: what somebody waits
        for, then reads, then the rest of the fabric."""
        awaited: set[int] = set()
        for process in range(self.system.processes):
            if ProcessAgent(process) not in by_agent:
                for action in self.system.node(state, process).actions:
                    awaited.update(action.cells)
        first: list[Agent] = []
        then: list[Agent] = []
        last: list[Agent] = []
        for agent, steps in by_agent.items():
            if isinstance(agent, ProcessAgent):
                then.append(agent)
            elif awaited.isdisjoint(steps[0].step.what):
                last.append(agent)
            else:
                first.append(agent)
        return first + then + last

    # Sets that grow

    def _closed(
        self, state: State, seed: Agent, by_agent: dict[Agent, list[Transition]], bound: int
    ) -> list[Transition] | None:
        """Grow the agents until nothing outside conflicts; None if that reaches ``bound``."""
        agents = {seed}
        while True:
            members = [each for agent in agents for each in by_agent[agent]]
            if len(members) >= bound:
                return None
            try:
                outlook = self._outlook(state, agents)
                found = self._first_conflict(outlook, agents, by_agent)
                if found is None:
                    return members
                added = self._responsible(state, found, outlook, by_agent)
            except GiveUp:
                return None
            if added in agents or self._is_split(state, added, by_agent):
                return None
            agents.add(added)

    def _outlook(self, state: State, agents: set[Agent]) -> Outlook:
        """What all others may do. Raises `GiveUp`, at once after many long ones in vain."""
        if self._in_vain >= MOST_IN_VAIN:
            raise GiveUp
        outlook = Outlook(self.system, self._atoms, state, agents, self.asked)
        try:
            outlook.run()
        except GiveUp:
            self._in_vain += outlook.turns >= LONG or outlook.goes_on_and_on
            raise
        return outlook

    def _is_split(
        self, state: State, agent: Agent, by_agent: dict[Agent, list[Transition]]
    ) -> bool:
        """Whether some steps of a process are enabled and others not yet: a set that holds the
        former would have to look at what enables the latter."""
        if isinstance(agent, PacketAgent):
            return False
        return _number(by_agent[agent]) < len(self.system.node(state, agent.process).actions)

    def _first_conflict(
        self, outlook: Outlook, agents: set[Agent], by_agent: dict[Agent, list[Transition]]
    ) -> Agent | None:
        for agent in agents:
            for member in by_agent[agent]:
                found = conflict(outlook, outlook.state, agent, member)
                if found is not None:
                    return found
        return None

    def _responsible(
        self, state: State, agent: Agent, outlook: Outlook, by_agent: dict[Agent, list[Transition]]
    ) -> Agent:
        """An agent with an enabled step without which a step of ``agent`` cannot come."""
        seen: set[Agent] = set()
        while agent not in by_agent:
            if agent in seen:
                raise GiveUp
            seen.add(agent)
            if isinstance(agent, PacketAgent):
                agent = self._ahead_of(state, agent)
            else:
                agent = self._enabler(state, agent, outlook)
        return agent

    def _ahead_of(self, state: State, agent: PacketAgent) -> Agent:
        element = self.system.outbox(state, agent.owner)[agent.position]
        for position in (*element.after, *element.read_after):
            return PacketAgent(agent.owner, position)
        raise GiveUp

    def _enabler(self, state: State, agent: ProcessAgent, outlook: Outlook) -> Agent:
        """Who has to act before a process that is blocked now can go on."""
        system, process = self.system, agent.process
        for action in system.node(state, process).actions:
            if action.kind is ActionKind.SYNC:
                for member in action.members:
                    here = system.node(state, member).actions
                    if not any(a.kind is ActionKind.SYNC and a.group == action.group for a in here):
                        return ProcessAgent(member)
            behind_puts = action.ordered and bool(system.outbox(state, process))
            if action.kind is ActionKind.QUIET or behind_puts:
                for position in self._deliverable(state, process):
                    return PacketAgent(process, position)
            for cell in action.cells:
                for writer, _ in outlook.writers.get(cell, ()):
                    if writer != agent:
                        return writer
        raise GiveUp


def _number(transitions: list[Transition]) -> int:
    """How many steps there are; one may have several answers to a choice that it makes."""
    return len({each.step for each in transitions})
