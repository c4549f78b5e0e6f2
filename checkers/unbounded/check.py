"""The question about every number of rounds at once: one verdict by the shift quotient.

What fails in the quotient is looked for again in the system of as many rounds as it takes, and
only if it fails there too it is called violated, with that run as its trace.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import lcm

from syncproof.checkers.explicit.check import assignments
from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.checkers.unbounded.channel import LARGEST_MODULUS, NotCovered
from syncproof.checkers.unbounded.confirm import Confirmed, confirm, refute
from syncproof.checkers.unbounded.instance import RoundInstance, round_instance
from syncproof.checkers.unbounded.reduction import Reduction
from syncproof.checkers.unbounded.search import REFUTED, Found, Graph, cannot_end, explore
from syncproof.checkers.unbounded.system import MOST_SKEW
from syncproof.models.core import Unresolved
from syncproof.models.instance import Choices, Instance
from syncproof.models.reaches import declared_reaches
from syncproof.models.rounds import NeedsLookback, NeedsModulus, OutsideRounds
from syncproof.models.transitions import Failure
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Trace, Verdict

MOST_LOOKBACK = 3
REDUCTIONS = {"quotient-full": Reduction.NONE, "smt": Reduction.FREE}
"""By engine: z3 is asked about each step that is taken, so no other may rest on what is not."""

LEFT = "--rounds unbounded does not cover this: "


@dataclass
class Explored:
    """The quotients of all assignments, and what was found wrong with them."""

    meter: Meter
    modulus: int = 1
    lookback: int = 0
    graphs: list[Graph] = field(default_factory=list)
    choices: list[Choices] = field(default_factory=list)
    findings: list[tuple[Found, Graph, Choices]] = field(default_factory=list)
    stopped: str = ""
    early: list[Confirmed | None] = field(default_factory=list)
    """What a few rounds show, if that was looked for."""


def check(
    instance: Instance,
    question: Question,
    engine: str = "quotient",
    budget: Budget | None = None,
    report: Callable[[int, int, int], None] | None = None,
) -> Verdict:
    """The verdict on runs of every number of rounds; ``quotient-full`` reduces nothing.

    Raises `UserError` for what the user can mend.
    """
    return answer(instance, question, engine, budget, report)[0]


def answer(
    instance: Instance,
    question: Question,
    engine: str,
    budget: Budget | None = None,
    report: Callable[[int, int, int], None] | None = None,
) -> tuple[Verdict, list[Graph]]:
    """The same, with what was explored."""
    asked = frozenset(question.properties)
    explored = Explored(Meter(budget or Budget(), report))

    reduction = REDUCTIONS.get(engine, Reduction.SETS)

    def is_refuted() -> bool:
        if not explored.early:
            by_all_steps = reduction is Reduction.NONE
            explored.early.append(None if by_all_steps else refute(instance, question))
        return explored.early[0] is not None

    try:
        explore_all(instance, asked, explored, reduction, is_refuted=is_refuted)
    except (NotCovered, OutsideRounds) as reason:
        explored.stopped = f"{LEFT}{reason}"
    if not explored.stopped and not explored.findings and "deadlock-free" in asked:
        _judge_progress(explored)
    if not explored.stopped and not explored.findings and "race-free" in asked:
        _judge_races(explored)
    confirmed = next(iter(explored.early), None) or _confirmed(instance, question, explored)
    return _verdict(instance, question, engine, explored, confirmed), explored.graphs


def explore_all(
    instance: Instance,
    asked: frozenset[str],
    explored: Explored,
    reduction: Reduction = Reduction.SETS,
    *,
    stop_at_first: bool = True,
    is_refuted: Callable[[], bool] = lambda: False,
) -> None:
    """Explore the quotient of each assignment of the choices that name no round.

    The modulus and how far roles look back are found on the way: with a larger one it begins anew.
    """
    unbounded = round_instance(instance)
    pending: list[dict[Hashable, Hashable]] = [dict(each) for each in assignments(unbounded)]
    while pending:
        choices = pending.pop(0)
        try:
            graph = _explore_one(
                unbounded, choices, asked, explored, reduction, stop_at_first, is_refuted
            )
        except Unresolved as choice:
            pending[:0] = [{**choices, choice.name: value} for value in choice.values]
            continue
        explored.graphs.append(graph)
        explored.choices.append(choices)
        explored.findings += [(each, graph, choices) for each in graph.findings]
        explored.stopped = _why_stopped(graph)
        if explored.stopped or (explored.findings and stop_at_first):
            return


def _explore_one(
    instance: RoundInstance,
    choices: Choices,
    asked: frozenset[str],
    explored: Explored,
    reduction: Reduction,
    stop_at_first: bool,
    is_refuted: Callable[[], bool],
) -> Graph:
    meter = explored.meter
    while True:
        before = meter.states, meter.transitions
        try:
            system = instance.round_system(choices, explored.modulus, explored.lookback)
            return explore(
                system,
                asked,
                meter,
                reduction=reduction,
                stop_at_first=stop_at_first,
                is_refuted=is_refuted,
            )
        except NeedsModulus as needed:
            explored.modulus = lcm(explored.modulus, needed.number)
            if explored.modulus > LARGEST_MODULUS:
                raise NotCovered(f"rounds modulo {needed.number} are too many classes") from None
        except NeedsLookback:
            explored.lookback += 1
            if explored.lookback > MOST_LOOKBACK:
                raise NotCovered(
                    f"a role looks back at a round that is more than {MOST_LOOKBACK} rounds past"
                ) from None
        meter.states, meter.transitions = before


def _why_stopped(graph: Graph) -> str:
    if graph.stopped == "in_flight":
        return "a put met the in-flight bound: raise it with --fabric NAME,in_flight=N"
    if graph.stopped == REFUTED:
        return REFUTED
    return f"the search stopped at {graph.stopped}: raise it" if graph.stopped else ""


def _judge_progress(explored: Explored) -> None:
    for graph, choices in zip(explored.graphs, explored.choices, strict=True):
        for process, states in cannot_end(graph).items():
            surely = cannot_end(graph, whatever_is_chosen=True).get(process)
            state = min(surely or states, key=lambda each: graph.parents[each][2])
            message = "no run from here lets every process finish"
            found = Found(Failure("deadlock-free", message, process), state)
            explored.findings.append((found, graph, choices))
            return


def _judge_races(explored: Explored) -> None:
    for graph, choices in zip(explored.graphs, explored.choices, strict=True):
        for (cell, certain), (state, what) in graph.races.items():
            if certain or cell not in graph.system.polled:
                found = Found(Failure("race-free", f"{what} are not ordered", -1), state)
                explored.findings.append((found, graph, choices))
                return


def _confirmed(instance: Instance, question: Question, explored: Explored) -> Confirmed | None:
    """The first finding that a bounded run shows too."""
    for found, graph, choices in explored.findings:
        confirmed = confirm(instance, question, found, graph, choices)
        if confirmed is not None:
            return confirmed
    return None


# The verdict


def _verdict(
    instance: Instance,
    question: Question,
    engine: str,
    explored: Explored,
    confirmed: Confirmed | None,
) -> Verdict:
    meter, protocol = explored.meter, instance.protocol()
    routing = instance.bounds.routing
    trace: Trace | None = None if confirmed is None else confirmed.trace
    return Verdict(
        question,
        engine,
        tuple(_properties(instance, question, explored, confirmed)),
        meter.states,
        meter.transitions,
        meter.depth,
        protocol.assumptions(),
        tuple(sorted({name for graph in explored.graphs for name in graph.persists})),
        routing if isinstance(routing, str) else "as given",
        tuple(premises(explored)) if not explored.stopped else (),
        trace,
    )


def _properties(
    instance: Instance, question: Question, explored: Explored, confirmed: Confirmed | None
) -> list[PropertyVerdict]:
    violated = {} if confirmed is None else {confirmed.failure.property: confirmed.failure}
    reason = explored.stopped
    if explored.findings and not reason:
        first = explored.findings[0][0].failure
        reason = (
            REFUTED
            if confirmed is not None
            else f"the quotient has a run against {first.property} ({first.message}) that no "
            "bounded run shows"
        )
    found = []
    for name in question.properties:
        if name in violated:
            found.append(PropertyVerdict(name, Answer.VIOLATED, violated[name].message))
        elif reason:
            found.append(PropertyVerdict(name, Answer.UNDECIDED, reason))
        else:
            found.append(PropertyVerdict(name, Answer.PROVED))
    reached = {name for graph in explored.graphs for name in graph.reached}
    for name in declared_reaches(instance.kind):
        if name not in reached and not reason:
            detail = f"vacuous: no run reaches {name!r}"
            found.append(PropertyVerdict("reached", Answer.VIOLATED, detail))
    return found


def premises(explored: Explored) -> list[str]:
    """What the verdict rests on, as it was found in this run."""
    skew = max((graph.skew for graph in explored.graphs), default=0)
    nodes = sum(len(a.home.nodes) for graph in explored.graphs for a in graph.system.framed)
    return [
        "rounds: every number of them, by the quotient of states under moving all rounds by a "
        f"multiple of {explored.modulus} (docs/unbounded.md)",
        "premise: rounds are used only as r + n, n * r, r // n, r % n and in comparisons of two "
        "that are multiplied alike: by type",
        f"premise: {explored.modulus} is a multiple of every modulus: asked of each r % n, r // n",
        f"premise: processes are at most {skew} rounds apart: in every state (cap {MOST_SKEW})",
        f"premise: no role looks back at a round more than {1 + explored.lookback} before the "
        "slowest process: asked of each comparison",
        f"premise: nothing but rounds is carried on: {nodes} local states in all rounds",
    ]
