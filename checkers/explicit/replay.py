"""Walk a recorded trace through the model again, step by step."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from syncproof.checkers.explicit.causes import told_with_causes
from syncproof.checkers.explicit.counterexample import awaited, breaks, is_hung, spoken
from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import Budget, Finding, Meter, explore, race_pairs
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.narrate import NotEnabled, follow, touched
from syncproof.models.system import System
from syncproof.models.transitions import Failure, State, Step
from syncproof.models.verdict import Trace

MOST_STATES_TO_SEE_WHO_POLLS = 20_000

T = TypeVar("T")


@dataclass(frozen=True)
class Replayed:
    """Whether the run could be walked and ends as the trace says; ``position`` is where it left.

    ``trace`` is the run as it is now, if it is reproduced.
    """

    reproduced: bool
    message: str
    position: int
    trace: Trace | None = None


def replay(trace: Trace, instance: Instance) -> Replayed:
    """Walk ``trace`` through a fresh system of ``instance``.

    Reproduced means: every step is enabled in turn and reads and writes what the trace says, and
    the run ends with the same property broken. For a hang, that no run from there ends is searched
    again.
    """
    return _under_its_choices(trace, instance, lambda system: _replayed(trace, system))


def _replayed(trace: Trace, system: System) -> Replayed:
    steps = [Step(s.kind, s.process, s.what[:-1], s.what[-1]) for s in trace.steps]
    try:
        taken = follow(system, steps)
    except NotEnabled as left:
        step = trace.steps[left.position]
        message = f"step {left.position} is not possible there: {step.actor}: {step.text}"
        return Replayed(False, message, left.position)
    steps_now = told_with_causes(system, taken)
    for position, (told, now) in enumerate(zip(trace.steps, steps_now, strict=True)):
        if (told.text, told.changes) != (now.text, now.changes):
            message = f"step {position} is now {now.text!r}, in the trace {told.text!r}"
            return Replayed(False, message, position)
    state = taken[-1][1].state if taken else system.initial_transition().state
    if not _ends_wrong(system, trace, taken, state):
        message = f"the run is possible but does not break {trace.property}"
        return Replayed(False, message, len(steps))
    message = f"{len(steps)} steps, {trace.property} is broken as before"
    finding = Finding(Failure(trace.property, trace.message, -1), state, None)
    memory = touched(system, steps_now, awaited(system, taken, finding))
    as_it_is = replace(trace, steps=steps_now, memory=memory)
    return Replayed(True, message, len(steps), as_it_is)


def system_of(trace: Trace, instance: Instance) -> System:
    """The system under the choices that the trace names."""
    return _under_its_choices(trace, instance, lambda system: _followed(trace, system))


def _followed(trace: Trace, system: System) -> System:
    """The system, after every choice that the run makes was asked for."""
    with suppress(NotEnabled):
        follow(system, [Step(s.kind, s.process, s.what[:-1], s.what[-1]) for s in trace.steps])
    return system


def _under_its_choices(trace: Trace, instance: Instance, use: Callable[[System], T]) -> T:
    """What ``use`` makes of the system, started again whenever it meets another choice."""
    told = dict(trace.choices)
    choices: dict[Hashable, Hashable] = {
        name: chosen(name, values, told) for name, values in instance.initial_choices().items()
    }
    while True:
        try:
            return use(instance.system(choices))
        except Unresolved as choice:
            choices[choice.name] = chosen(choice.name, choice.values, told)


def chosen(name: Hashable, values: tuple[Hashable, ...], told: dict[str, str]) -> Hashable:
    """The value that a trace names for a choice; the first where it names none."""
    recorded = told.get(spoken(name))
    return next((value for value in values if str(value) == recorded), values[0])


def _polled(system: System, asked: frozenset[str]) -> set[int]:
    """The cells that some run polls, as far as can be told soon: puts to them do not race."""
    choose = PersistentSets(system, asked).choose if PersistentSets.covers(system) else None
    meter = Meter(Budget(states=MOST_STATES_TO_SEE_WHO_POLLS))
    with suppress(UserError):
        explore(system, choose, asked, meter, stop_at_first=False)
    return system.polled


def _ends_wrong(system: System, trace: Trace, taken: object, state: State) -> bool:
    assert isinstance(taken, list)
    name = trace.property
    if name == "race-free":
        pairs = list(race_pairs(system, state, system.transitions(state)))
        if any(certain for _, certain, _, _ in pairs):
            return True
        puts = {cell for cell, _, _, _ in pairs}
        return not puts <= _polled(system, frozenset(trace.question.properties))
    last = taken[-1][1] if taken else system.initial_transition()
    for each in last.failures:
        if each.property == name:
            return True
    finding = Finding(Failure(name, trace.message, -1), state, None)
    asked = frozenset(trace.question.properties)
    return breaks(system, last.failures, state, finding, asked, is_hung)
