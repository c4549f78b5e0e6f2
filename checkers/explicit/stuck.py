"""Whether a state is stuck for good, told without a search: nothing lands, and whoever is not done
only reads what nobody changes."""

from __future__ import annotations

from collections import deque

from syncproof.models.errors import UserError
from syncproof.models.lowering import ActionKind
from syncproof.models.nodes import TooLong
from syncproof.models.system import System
from syncproof.models.transitions import Overfull, State, Transition

MOST_STEPS = 20_000

Run = list[tuple[State, Transition]]


def is_stuck(system: System, state: State) -> bool:
    """Whether no step from ``state`` on changes anything but where polling processes stand, and
    one of them can never be done.

    Such processes cannot hinder or help each other, so each is followed by itself.
    """
    try:
        return _next_steps(system, state) is None and not _all_may_end(system, state)
    except (Overfull, TooLong, UserError):
        return False


def straight_on(system: System, state: State, asked: frozenset[str]) -> Run | None:
    """One run from ``state`` to where it is stuck: what is put lands, and one process after the
    other goes on as far as it can.

    None if the run ends otherwise, breaks a property of ``asked`` or is too long to tell.
    """
    run: Run = []
    first = 0
    try:
        while len(run) < MOST_STEPS:
            steps = _next_steps(system, state, first)
            if steps is None:
                return None if _all_may_end(system, state) else run
            for _, each in steps:
                if any(f.property in asked and f.property != "quiescent" for f in each.failures):
                    return None
            run += steps
            state, step = steps[-1][1].state, steps[-1][1].step
            if step.kind == "process":
                first = step.process
    except (Overfull, TooLong, UserError):
        pass
    return None


def _next_steps(system: System, state: State, first: int = 0) -> Run | None:
    """A landing, or the steps of one process, ``first`` before others, up to one that is more than
    a read; None if there is neither."""
    for owner in range(system.first_cache - system.first_outbox):
        if state[system.first_outbox + owner]:
            for each in system.landings(state, owner):
                return [(state, each)]
    for i in range(system.processes):
        steps, _ = _alone(system, state, (first + i) % system.processes)
        if steps is not None:
            return steps
    return None


def _all_may_end(system: System, state: State) -> bool:
    """Whether each process is done or can end by reads alone."""
    return all(_alone(system, state, process)[1] for process in range(system.processes))


def _alone(system: System, state: State, process: int) -> tuple[Run | None, bool]:
    """What a process can do by itself: its steps to the first that is more than a read, or to a
    sync, if there is one, and whether it is done or can end by reads."""
    came: dict[State, tuple[State, Transition] | None] = {state: None}
    work = deque([state])
    while work:
        here = work.popleft()
        node = system.node(here, process)
        if node.state == "done":
            return None, True
        if here != state and any(each.kind is ActionKind.SYNC for each in node.actions):
            return _way(came, here), False
        for each in system.process_transitions(here, process):
            after = each.state
            alike = (
                here[:process] == after[:process] and here[process + 1 :] == after[process + 1 :]
            )
            if not alike or each.failures:
                return [*_way(came, here), (here, each)], False
            if after not in came:
                came[after] = (here, each)
                work.append(after)
    return None, False


def _way(came: dict[State, tuple[State, Transition] | None], state: State) -> Run:
    steps: Run = []
    while (before := came[state]) is not None:
        steps.insert(0, before)
        state = before[0]
    return steps


def _without(state: State, process: int) -> State:
    """All of a state but where a process stands."""
    return state[:process] + state[process + 1 :]
