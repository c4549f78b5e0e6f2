"""A few random runs of a large instance, before it is searched: what is badly wrong shows at once.

The emulator takes a step in a tenth of the time that a search of many processes needs. What it
runs into is walked through the model that is searched, which alone says that something is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from syncproof.checkers.emulator import events
from syncproof.checkers.emulator.content import Content
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.machine import RoleRaised
from syncproof.checkers.emulator.matching import Matching, shapes_of
from syncproof.checkers.emulator.past import past_of_the_end
from syncproof.checkers.emulator.results import Result
from syncproof.checkers.emulator.run import Options, run
from syncproof.checkers.emulator.schedule import ADVERSARIES
from syncproof.checkers.explicit.counterexample import build_trace
from syncproof.checkers.explicit.search import Budget, Exploration, Finding
from syncproof.checkers.explicit.stuck import is_stuck
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.instance import Choices, Instance
from syncproof.models.memory import Cell, Layout
from syncproof.models.nodes import TooLong
from syncproof.models.taskflow.collector import collector_paused
from syncproof.models.transitions import Failure, Overfull, State, Step
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Verdict

ENGINE = "runs"
MOST_RUNS = 4 * len(ADVERSARIES)
MOST_STEPS = 60_000
"""The steps of all runs together."""


def look_for_violation(instance: Instance, question: Question, budget: Budget) -> Verdict | None:
    """A violation that random runs find, with its trace; None says nothing at all.

    The seeds are 0, 1, ... with each adversary in turn, so that the answer is always the same,
    unless the budget of time is used. Steps of runs count as states. Raises `UserError` if a role
    has changed what a search after them would find changed from the start.
    """
    shared = instance.parts({}).shared()
    try:
        return _looked(instance, question, budget)
    finally:
        shared.refuse_change()


def _looked(instance: Instance, question: Question, budget: Budget) -> Verdict | None:
    left, asked = min(MOST_STEPS, budget.states or MOST_STEPS), question.properties
    began = time.monotonic()
    for seed in range(MOST_RUNS):
        spent = time.monotonic() - began
        if budget.seconds and spent >= budget.seconds:
            break
        adversary = list(ADVERSARIES)[seed % len(ADVERSARIES)]
        options = Options(
            seed,
            adversary=adversary,
            conform=False,
            seconds=budget.seconds and budget.seconds - spent,
            steps=left,
            properties=asked,
        )
        told: list[Event] = []
        try:
            found = run(instance, options, told.append)
        except (RoleRaised, UserError):
            return None  # the engines say it better
        if set(found.properties) & set(asked):
            with suppress(Overfull, TooLong, Unresolved, UserError):
                with collector_paused():
                    verdict = _violation(instance, question, found, told, seed + 1)
                if verdict is not None:
                    return verdict
        left -= found.steps
        if left <= 0 or found.outcome == "not finished":
            break
    return None


def _violation(
    instance: Instance, question: Question, run: Result, told: Sequence[Event], runs: int
) -> Verdict | None:
    """The verdict on a run of the emulator, if the model finds it wrong too."""
    asked, choices = frozenset(question.properties), run.choices
    walked = None
    if run.outcome == "wrong":
        with suppress(Overfull, TooLong, Unresolved, UserError):
            walked = _walked(instance, choices, past_of_the_end(told, instance.profile), asked)
    walked = walked or _walked(instance, choices, told, asked)
    if walked is None:
        return None
    finding, exploration = walked
    trace = build_trace(question, finding, exploration, choices, fewest=False, to_the_end=True)
    reason = "the search stopped at the first failure"
    name = finding.failure.property
    properties = tuple(
        PropertyVerdict(each, Answer.VIOLATED, finding.failure.message)
        if each == name
        else PropertyVerdict(each, Answer.UNDECIDED, reason)
        for each in question.properties
    )
    states = len(exploration.parents)
    return Verdict(
        question,
        ENGINE,
        properties,
        states,
        states - 1,
        states - 1,
        instance.protocol().assumptions(),
        notes=(f"found by random run {runs}, before any search: --engine reduced searches",),
        trace=trace,
    )


def _walked(
    instance: Instance, choices: Choices, told: Iterable[Event], asked: frozenset[str]
) -> tuple[Finding, Exploration] | None:
    """What a run comes to in the model, and the way there without its loops."""
    system = instance.system(choices)
    layout = instance.parts(choices).layout
    matching = Matching(system, shapes_of(layout, instance.profile.finest_atomicity), Content())
    start = system.initial_transition()
    state = start.state
    parents: dict[State, tuple[State | None, Step | None, int]] = {state: (None, None, 0)}
    for event in _as_modelled(instance, choices, layout, told):
        taken = next(matching.allowed(state, event), None)
        if taken is None:
            return None
        for failure in taken.failures:
            if failure.property in asked:
                return Finding(failure, state, taken), Exploration(system, parents)
        if taken.state not in parents:
            parents[taken.state] = (state, taken.step, parents[state][2] + 1)
        state = taken.state
    if "deadlock-free" not in asked or not is_stuck(system, state):
        return None
    failure = Failure("deadlock-free", "no process can go on", -1)
    return Finding(failure, state, None), Exploration(system, parents)


def _as_modelled(
    instance: Instance, choices: Choices, layout: Layout, told: Iterable[Event]
) -> Iterable[Event]:
    """The steps on the cells that the model has: of fields that nobody compares it keeps one atom
    of each kind, the emulator all."""
    whole = replace(instance, whole_atoms=True).parts(choices).layout
    numbers = {_key(cell): number for number, cell in enumerate(layout.cells)}
    kept = [numbers.get(_key(cell), -1) for cell in whole.cells]
    for event in told:
        places = [i for i, cell in enumerate(event.cells) if kept[cell] >= 0]
        if event.do != events.CONSUME and (places or not event.cells):
            cells = tuple([kept[event.cells[i]] for i in places])
            data = tuple([event.data[i] for i in places if i < len(event.data)])
            yield event._replace(cells=cells, data=data)


def _key(cell: Cell) -> tuple[object, ...]:
    slot = cell.slot
    return slot.region.name, slot.rank, slot.number, cell.atom, cell.field
