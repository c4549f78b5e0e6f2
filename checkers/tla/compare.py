"""The module and our own model of one protocol side by side: what can be seen of their states."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncproof.checkers.explicit.check import assignments
from syncproof.checkers.explicit.search import Budget, Exploration, Meter, explore
from syncproof.checkers.tla.check import scratch
from syncproof.checkers.tla.model import model_of
from syncproof.checkers.tla.observe import Observable, Observer, seen_in
from syncproof.checkers.tla.tlc import Graph, Limits, state_graph
from syncproof.checkers.tla.tools import Tools
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.narrate import describe, follow


@dataclass(frozen=True)
class Side:
    """One of the two: how many states and steps it has, and the shortest run that only it has."""

    states: int
    steps: int
    observable: int
    only_here: int
    shortest: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The observable states of our model and of the module."""

    ours: Side
    theirs: Side

    @property
    def is_equal(self) -> bool:
        """Whether both reach the same observable states."""
        return not self.ours.only_here and not self.theirs.only_here


def compare(instance: Instance, tools: Tools, limits: Limits) -> Comparison:
    """Explore both in full, nothing asked, and compare what can be seen.

    Raises `UserError` where one of the two is too large for the limits.
    """
    explored = _explored(instance)
    with scratch() as folder:
        graph = state_graph(model_of(instance), tools, folder, limits)
    ours = _seen_by_us(instance, explored)
    theirs: dict[Observable, str] = {}
    parents = _parents(graph)
    for name in parents:
        theirs.setdefault(seen_in(graph.states[name]), name)
    mine = [each for each in ours if each not in theirs]
    others = [each for each in theirs if each not in ours]
    return Comparison(
        Side(
            sum(len(each.parents) for each in explored),
            sum(each.transitions for each in explored),
            len(ours),
            len(mine),
            _our_run(*ours[mine[0]]) if mine else (),
        ),
        Side(
            len(graph.states),
            sum(before != after for before, after, _ in graph.steps),
            len(theirs),
            len(others),
            _their_run(graph, parents, theirs[others[0]]) if others else (),
        ),
    )


# Our model

Place = tuple[Exploration, Any]


def _explored(instance: Instance) -> list[Exploration]:
    """Every assignment of the free choices, searched in full."""
    found: list[Exploration] = []
    pending: list[dict[Hashable, Hashable]] = [dict(each) for each in assignments(instance)]
    while pending:
        choices = pending.pop(0)
        try:
            one = explore(
                instance.system(choices), None, frozenset(), Meter(Budget()), stop_at_first=False
            )
        except Unresolved as choice:
            pending[:0] = [{**choices, choice.name: value} for value in choice.values]
            continue
        if one.stopped:
            raise UserError(
                "a put met the in-flight bound, beyond which the two are not compared",
                where="--fabric",
                expected="a larger in_flight",
            )
        found.append(one)
    return found


def _seen_by_us(instance: Instance, explored: Sequence[Exploration]) -> dict[Observable, Place]:
    """What can be seen of our states, each with the first one where it is, fewest steps first."""
    found: dict[Observable, tuple[int, Place]] = {}
    for one in explored:
        observer = Observer(instance, one.system)
        for state, (_, _, depth) in one.parents.items():
            seen = observer.seen(state)
            if seen not in found or depth < found[seen][0]:
                found[seen] = (depth, (one, state))
    return {seen: place for seen, (_, place) in sorted(found.items(), key=lambda item: item[1][0])}


def _our_run(one: Exploration, state: Any) -> tuple[str, ...]:
    system = one.system
    return tuple(describe(system, s, t) for s, t in follow(system, one.path(state)))


# The module


def _parents(graph: Graph) -> dict[str, str]:
    """The state before each one on a shortest run, in order of distance; "" before the first."""
    after: dict[str, list[str]] = {}
    for before, then, _ in graph.steps:
        after.setdefault(before, []).append(then)
    found = dict.fromkeys(graph.initial, "")
    pending = deque(graph.initial)
    while pending:
        here = pending.popleft()
        for then in after.get(here, ()):
            if then not in found:
                found[then] = here
                pending.append(then)
    return found


def _their_run(graph: Graph, parents: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The steps of a shortest run to a state of the module, in words."""
    steps: list[str] = []
    while before := parents[name]:
        steps.append(_moved(graph.states[before], graph.states[name]))
        name = before
    return tuple(reversed(steps))


def _moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What a step of a module does, in words."""
    for process, was in before["at"].items():
        now = after["at"][process]
        if was != now:
            name = f"{process[0]}@rank{process[1]}"
            where = f" in round {now['round']}" if "round" in now else ""
            return f"{name} goes from {was['stage']} to {now['stage']}{where}"
    for process, puts in before["flight"].items():
        later = after["flight"][process]
        if puts != later:
            gone = next((i for i, put in enumerate(later) if put != puts[i]), len(later))
            return f"a put of {process[0]}@rank{process[1]} lands at {puts[gone]['slot']}"
    return "nothing moves"
