"""Two oracles for the reduction: the full graph, and brute force on each chosen set."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import (
    Budget,
    Choose,
    Exploration,
    Meter,
    explore,
    hung_states,
)
from syncproof.models import outbox as boxes
from syncproof.models.errors import UserError
from syncproof.models.system import System
from syncproof.models.transitions import PROPERTIES, Overfull, State, Transition

ASKED = frozenset(PROPERTIES)
LARGEST = 3000
OUTSIDE = 600
"""States looked at outside each set."""

Reduction = Callable[[System, frozenset[str]], PersistentSets]


# The full graph


@dataclass
class Seen:
    """What one search says: ``graph`` is None where a role that goes wrong was reached."""

    graph: Exploration | None
    polled: set[int]

    @property
    def hung(self) -> bool:
        return self.graph is not None and bool(hung_states(self.graph))

    @property
    def bad(self) -> bool:
        """Whether some state cannot reach an end in which nothing has failed."""
        return self.graph is None or self.hung or bool(self.graph.failing_states)

    @property
    def stopped(self) -> bool:
        return self.graph is not None and bool(self.graph.stopped)

    @property
    def said(self) -> dict[str, object]:
        """All that the search says when nothing is bad."""
        graph = self.graph
        assert graph is not None
        return {
            "failures": {each.failure.property for each in graph.findings},
            "reached": graph.reached,
            "polled": self.polled,
            "races": {cell for cell, certain in graph.races if certain or cell not in self.polled},
        }


def search(system: System, choose: Choose | None) -> Seen:
    """The whole graph, or the part of it that ``choose`` leaves."""
    system.polled.clear()
    try:
        graph = explore(system, choose, ASKED, Meter(Budget(states=LARGEST)), stop_at_first=False)
    except UserError:
        return Seen(None, set())
    return Seen(graph, set(system.polled))


def difference(system: System, reduction: Reduction = PersistentSets) -> str | None:
    """How the reduced search differs from the full one where it must not (docs/soundness.md).

    "" if it does not; None if one of them could not be completed. The reduced search comes first,
    so that the tables are filled in another order than the full one would.
    """
    reduced = search(system, reduction(system, ASKED).choose)
    return compared(reduced, search(system, None))


def compared(reduced: Seen, full: Seen) -> str | None:
    """How a reduced search differs from a full one of the same system."""
    if reduced.stopped or full.stopped:
        return None
    if reduced.bad != full.bad:
        return f"bad: {reduced.bad} for {full.bad}"
    if reduced.graph is None or full.graph is None:
        return ""
    if full.hung and not reduced.hung:
        return "a hang is missed"
    for name in ("good", "stuck"):
        if set(getattr(reduced.graph, name)) != set(getattr(full.graph, name)):
            return f"other {name} terminal states"
    if not full.bad:
        for key, value in full.said.items():
            if reduced.said[key] != value:
                return f"{key}: {reduced.said[key]} for {value}"
    return ""


# Brute force

Key = tuple[Hashable, ...]
Moves = dict[Key, list[Transition]]
"""Equal puts of one process have one key: there is nothing to tell them apart by."""


@dataclass
class BruteForce:
    """Checks sets of steps by running everything else in every order."""

    system: System
    outside: int = OUTSIDE
    checked: int = 0
    _moves: dict[State, Moves] = field(default_factory=dict)
    _known: dict[tuple[State, frozenset[Key]], str] = field(default_factory=dict)

    def broken(self, reduction: Reduction = PersistentSets, states: int = 40) -> str:
        """The first chosen set that is not persistent, in up to ``states`` states of the search."""
        sets = reduction(self.system, ASKED)
        seen: set[State] = set()
        work = [self.system.initial_transition().state]
        while work and len(seen) < states:
            state = work.pop()
            if state in seen:
                continue
            seen.add(state)
            try:
                enabled = self.system.transitions(state)
                chosen = sets.choose(state, enabled)
            except (UserError, Overfull):
                continue
            if len(chosen) < len(enabled):
                self.checked += 1
                steps = {_unnumbered(each) for each in chosen}
                keys = frozenset(
                    key
                    for key, moves in self.moves(state).items()
                    if any(_unnumbered(each) in steps for each in moves)
                )
                if (state, keys) not in self._known:
                    self._known[state, keys] = self.not_persistent(state, keys)
                why = self._known[state, keys]
                if why:
                    return f"{[each.step for each in chosen]}: {why}"
            work += [each.state for each in chosen if not absorbed(each)]
        return ""

    def moves(self, state: State) -> Moves:
        """The enabled steps by what they are, however an outbox is sorted meanwhile."""
        found = self._moves.get(state)
        if found is None:
            found = self._moves[state] = self._find(state)
        return found

    def _find(self, state: State) -> Moves:
        system = self.system
        found: Moves = {}
        for process in range(system.processes):
            if system.node(state, process).state != "error":
                for each in system.process_transitions(state, process):
                    found[("process", process, each.step.what)] = [each]
            landings = iter(system.landings(state, process))
            for element in system.outbox(state, process):
                if boxes.can_land(element) or boxes.can_be_read(element):
                    found.setdefault(("packet", process, element.packet), []).append(next(landings))
        return found

    def not_persistent(self, state: State, members: frozenset[Key]) -> str:
        """A run of the others, up to a bound, behind which a member is disabled or conflicts."""
        seen, work = {state}, [state]
        while work and len(seen) < self.outside:
            here = work.pop()
            try:
                moves = self.moves(here)
                for key in members:
                    if key not in moves:
                        return f"{key} is disabled from outside"
                outside = [(k, step) for k, steps in moves.items() for step in steps]
                for other, step in outside:
                    if other in members:
                        continue
                    for key in members:
                        why = self._conflict(here, key, other, step)
                        if why:
                            return f"{key} and {other}: {why}"
                    if not absorbed(step) and step.state not in seen:
                        seen.add(step.state)
                        work.append(step.state)
            except Overfull:
                continue
        return ""

    def _conflict(self, state: State, key: Key, other: Key, step: Transition) -> str:
        """Why the two orders of a member and another step are not one."""
        member = self.moves(state)[key][0]
        behind = self.moves(member.state).get(other, [])
        last = self.moves(step.state).get(key, [])
        if not behind or not last:
            return "one disables the other"
        pairs = [(x, y) for x in last for y in behind if x.state == y.state]
        if not pairs:
            return "the orders lead to different states"
        late, after = pairs[0]
        if (step.failures, step.reached) != (after.failures, after.reached):
            return "the other says something else behind the member"
        if member.reached != late.reached or not _covers(member, late):
            return "the member says something else behind the other"
        return self._race(state, member, step)

    def _race(self, state: State, member: Transition, step: Transition) -> str:
        for one in self.system.accesses(state, member):
            for two in self.system.accesses(state, step):
                if one.cell == two.cell and (one.writes or two.writes):
                    if not (one.synchronizing and two.synchronizing):
                        return "they race"
                    if one.is_put and two.is_put:
                        return "two puts meet"
        return ""


def _covers(early: Transition, late: Transition) -> bool:
    """Whether a step taken early says all that it says late: puts still in flight may be more."""
    more = set(early.failures) - set(late.failures)
    return set(late.failures) <= set(early.failures) and all(
        each.property == "quiescent" for each in more
    )


def _unnumbered(transition: Transition) -> Hashable:
    """A step and where it leads, without the number that tells it from like ones."""
    return transition.step._replace(variant=0), transition.state


def absorbed(transition: Transition) -> bool:
    """Whether the run is over because the step failed."""
    return any(each.property != "quiescent" for each in transition.failures)
