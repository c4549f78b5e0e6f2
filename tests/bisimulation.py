"""Brute force: two systems have the same steps, outputs and ends from every reachable state."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from syncproof.checkers.explicit.search import judge_end
from syncproof.models.system import System
from syncproof.models.transitions import State


class Different(AssertionError):
    """Two systems that can be told apart, and by what."""


def compare(one: System, other: System) -> int:
    """Walk both systems in step over all that can be reached; how many pairs of states there are.

    Raises `Different` at the first state in which the enabled steps, what they say and do, the
    accesses that races are judged by, the lines shown or the judgement of an end are not the same.
    """
    start = (one.initial_transition(), other.initial_transition())
    _same(
        "what is said first",
        start[0].failures + start[0].reached,
        start[1].failures + start[1].reached,
    )
    first = (start[0].state, start[1].state)
    seen, work = {first}, deque([first])
    while work:
        mine, its = work.popleft()
        _same("what can be seen", visible(one, mine), visible(other, its))
        steps, its_steps = one.transitions(mine), other.transitions(its)
        _same("steps", [each.step for each in steps], [each.step for each in its_steps])
        for a, b in zip(steps, its_steps, strict=True):
            _same("outputs", (a.failures, a.reached, a.fair), (b.failures, b.reached, b.fair))
            _same("accesses", one.accesses(mine, a), other.accesses(its, b))
            pair = (a.state, b.state)
            if pair not in seen:
                seen.add(pair)
                work.append(pair)
    return len(seen)


def visible(system: System, state: State) -> Hashable:
    """All of a state but which node a process is at; of the node what a report shows."""
    nodes = [system.node(state, process) for process in range(system.processes)]
    inner = (
        (system.outboxes, system.first_outbox, system.first_cache),
        (system.caches.known.known, system.first_cache, system.views.at),
        (system.views.known.known, system.views.at, system.ghosts.at),
        (system.ghosts.known.known, system.ghosts.at, system.width),
    )
    end = tuple(judge_end(system, state)) if system.all_done(state) else None
    return (
        tuple((node.state, node.place, str(node.error)) for node in nodes),
        state[system.first_cell : system.first_outbox],
        tuple(held[n] for held, first, last in inner for n in state[first:last]),
        end,
    )


def _same(what: str, mine: object, its: object) -> None:
    if mine != its:
        raise Different(f"{what}: {mine} and {its}")
