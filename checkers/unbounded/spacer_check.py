"""``--engine spacer --rounds unbounded``: a second opinion on the consumes, slot by slot.

What Spacer holds for possible is looked for in the system itself; only a run that is found there
is called a violation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.checkers.unbounded.cases import Shapes
from syncproof.checkers.unbounded.channel import SCALED, NotCovered
from syncproof.checkers.unbounded.check import LEFT, Explored, explore_all, premises
from syncproof.checkers.unbounded.confirm import MOST_STATES, confirm
from syncproof.checkers.unbounded.cut import Cut, Read, apart
from syncproof.checkers.unbounded.horn import Asked, Horn
from syncproof.checkers.unbounded.reduction import Reduction
from syncproof.checkers.unbounded.search import Graph
from syncproof.models.instance import Instance
from syncproof.models.lowering import ActionKind
from syncproof.models.nodes import Node
from syncproof.models.operations import Consumed, Failed
from syncproof.models.rounds import NeedsLookback, NeedsModulus, OutsideRounds
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Trace, Verdict

JUDGED = ("happens-before", "checks")
A_CUT = 180.0
"""Seconds for one query, unless the budget leaves less."""
MORE_ROUNDS = 2
NOT_ASKED = "Spacer is asked for happens-before and checks alone: ask --engine smt"


@dataclass
class Opinion:
    """What came of all cuts."""

    notes: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    """Why the question is not decided."""
    trace: Trace | None = None
    relations: int = 0
    rules: int = 0
    queries: int = 0

    def add(self, asked: Asked) -> None:
        """Count what Spacer was asked."""
        self.relations += asked.relations
        self.rules += asked.rules
        self.queries += asked.queries


def check(
    instance: Instance,
    question: Question,
    engine: str = "spacer",
    budget: Budget | None = None,
    report: Callable[[int, int, int], None] | None = None,
) -> Verdict:
    """Whether every consume gets its block in all rounds, by one cut for each slot.

    Proved rests on the quotient for how far two processes are apart, so it is no proof apart from
    the quotient's, but it follows the rounds of the slot as integers and by itself.
    """
    limits = budget or Budget()
    ends = time.monotonic() + (limits.seconds or float("inf"))
    asked = frozenset(question.properties) & frozenset(JUDGED)
    # What is refuted is refuted by a run, so that not all states need be known for it.
    for to_refute in (True, False):
        explored, opinion = Explored(Meter(limits, report)), Opinion()
        try:
            reduction = Reduction.SETS if to_refute else Reduction.NONE
            explore_all(instance, asked, explored, reduction, stop_at_first=to_refute)
            if explored.stopped:
                opinion.open.append(explored.stopped)
            if to_refute and not explored.findings:
                continue
            for graph in explored.graphs if asked else ():
                _ask_all(instance, question, explored, graph, opinion, ends)
        except (NotCovered, OutsideRounds) as reason:
            opinion.open.append(f"{LEFT}{reason}")
        except (NeedsModulus, NeedsLookback):
            opinion.open.append(f"{LEFT}a role tests rounds in the cut that it does not in any run")
        if opinion.trace is not None:
            break
    return _verdict(instance, question, engine, explored, opinion)


def _ask_all(
    instance: Instance,
    question: Question,
    explored: Explored,
    graph: Graph,
    opinion: Opinion,
    ends: float,
) -> None:
    if graph.system.ghosts.initial:
        raise NotCovered("ghosts, in a cut")
    if graph.system.channel.scaled:
        raise NotCovered(SCALED)
    cuts: list[Cut] = []
    for candidates in _cuts(graph, explored.modulus):
        for cut in candidates:
            left = min(A_CUT, ends - time.monotonic())
            if left <= 0:
                opinion.open.append("the time is over: raise --budget-seconds")
                return
            asked = Horn(cut).ask(int(left * 1000))
            opinion.add(asked)
            opinion.notes += _told(cut, asked)
            if asked.answer == "fails":
                opinion.trace = _confirmed(instance, question, explored)
                if opinion.trace is not None:
                    return
            if asked.answer == "holds":
                cuts.append(cut)
                break
        else:
            opinion.open.append(f"{_name(cut)}: {SAID[asked.answer]}")
            return
    for read in _judged(graph).union(*(cut.left_out for cut in cuts)):
        if not any(cut.asks_for(read) for cut in cuts):
            opinion.open.append(f"no cut asks for what {_process(graph, read[0])} reads")


# Which cuts


def _cuts(graph: Graph, modulus: int) -> Iterator[list[Cut]]:
    """For each slot that is consumed from the cuts to try: with it alone, and with those that the
    consumer waits on in the same rounds."""
    shapes = Shapes(graph.system.round_values, modulus)
    contents = _contents(graph, shapes)
    writers = _writers(graph)
    done: set[Read] = set()
    for process, cells, residues in _consumes(graph, modulus):
        slot = _with_neighbours(graph, cells)
        if (process, slot) in done:
            continue
        done.add((process, slot))
        more = [
            _with_neighbours(graph, read)
            for other, read, its_residues in _reads(graph, modulus)
            if other == process and its_residues & residues
        ]
        others = _others(writers, slot, process)
        near = [
            each for each in more if {w for c in each for w in writers[c]} - {process} == others
        ]
        larger = tuple(sorted({*slot, *(cell for each in near for cell in each)}))
        found = []
        for chosen in dict.fromkeys((slot, larger)):
            processes = (*sorted(others), process)
            skew = {other: apart(graph, other, process) for other in others}
            found.append(Cut(graph, processes, chosen, skew, contents, shapes))
        yield found


def _contents(graph: Graph, shapes: Shapes) -> dict[int, tuple[int, ...]]:
    """The shapes of all that each cell holds in some state."""
    system, found = graph.system, dict[int, tuple[int, ...]]()
    for cell in range(len(system.cells)):
        numbers = dict.fromkeys(system.value(state, cell) for state in graph.parents)
        held = (shapes.any_residues(system.round_values.plain(each)) for each in numbers)
        found[cell] = tuple(dict.fromkeys(shape for each in held for shape in each))
    return found


def _others(writers: dict[int, set[int]], cells: tuple[int, ...], process: int) -> set[int]:
    """Who else writes to some cells."""
    return {each for cell in cells for each in writers[cell]} - {process}


def _nodes(graph: Graph) -> Iterator[tuple[int, Node]]:
    for process, automaton in enumerate(graph.system.framed):
        for node in automaton.home.nodes:
            yield process, node


def _writers(graph: Graph) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {cell: set() for cell in range(len(graph.system.cells))}
    for process, node in _nodes(graph):
        for action in node.actions:
            writes = [write for packet in action.packets for write in packet.writes]
            cells = [cell for cell, _, _ in (*writes, *action.writes)]
            if action.kind is ActionKind.UPDATE:
                cells += action.cells
            for cell in cells:
                if cell in found:
                    found[cell].add(process)
    return found


def _reads(graph: Graph, modulus: int) -> Iterator[tuple[int, tuple[int, ...], frozenset[int]]]:
    """What each process reads at once, and in rounds of which residues."""
    found: dict[Read, set[int]] = {}
    for process, node in _nodes(graph):
        home = graph.system.framed[process].home
        for action in node.actions:
            if action.kind is ActionKind.READ:
                residue = (home.base(node) or 0) % modulus
                found.setdefault((process, action.cells), set()).add(residue)
    for (process, cells), residues in found.items():
        yield process, cells, frozenset(residues)


def _consumes(graph: Graph, modulus: int) -> Iterator[tuple[int, tuple[int, ...], frozenset[int]]]:
    """The reads by which something is consumed or checked."""
    judged = _judged(graph)
    for process, cells, residues in _reads(graph, modulus):
        if (process, cells) in judged:
            yield process, cells, residues


def _judged(graph: Graph) -> set[Read]:
    """Every step that consumes or checks, by its process and what it reads."""
    return {
        (process, cells)
        for process, automaton in enumerate(graph.system.framed)
        for cells, statements in automaton.home.statements()
        if any(isinstance(each, Consumed | Failed) for each in statements)
    }


def _with_neighbours(graph: Graph, cells: tuple[int, ...]) -> tuple[int, ...]:
    """All cells of the slots of some cells."""
    slots = {str(graph.system.cells[cell].slot) for cell in cells}
    return tuple(n for n, cell in enumerate(graph.system.cells) if str(cell.slot) in slots)


# What becomes of an answer

SAID = {
    "holds": "no consume goes wrong",
    "fails": "some run of the cut fails, and none of the system does that was looked at",
    "bound": "some run of the cut has more puts on their way than the in-flight bound",
    "vacuous": "nothing is ever consumed in the cut",
    "unknown": "Spacer says unknown, or ran out of time",
}


def _confirmed(instance: Instance, question: Question, explored: Explored) -> Trace | None:
    """A run of the system itself: that of the quotient, or one of as few rounds as show it."""
    judged = replace(question, properties=tuple(p for p in question.properties if p in JUDGED))
    for found, graph, choices in explored.findings[:1]:
        confirmed = confirm(instance, judged, found, graph, choices)
        if confirmed is not None:
            return confirmed.trace
    for rounds in range(1, explored.modulus + MORE_ROUNDS + 1):
        bounded = replace(instance, bounds=replace(instance.bounds, rounds=rounds))
        about = replace(judged, bounds={**question.bounds, "rounds": rounds})
        verdict = check_explicitly(bounded, about, "reduced", Budget(states=MOST_STATES))
        if verdict.trace is not None:
            return verdict.trace
    return None


def _process(graph: Graph, process: int) -> str:
    return str(graph.system.framed[process].process)


def _name(cut: Cut) -> str:
    slots = dict.fromkeys(str(cut.graph.system.cells[cell].slot) for cell in cut.cells)
    processes = " and ".join(_process(cut.graph, each) for each in cut.processes)
    return f"{processes} on {', '.join(slots)}"


def _told(cut: Cut, asked: Asked) -> Iterator[str]:
    said = "some run of the cut fails" if asked.answer == "fails" else SAID[asked.answer]
    yield f"spacer: {_name(cut)}: {said} ({asked.relations} relations, {asked.rules} rules)"
    last = cut.processes[-1]
    for process, distances in cut.apart.items() if asked.answer == "holds" else ():
        least = min(each[0] for each in distances.values())
        most = max(each[1] for each in distances.values())
        yield (
            f"premise: {_process(cut.graph, process)} is {least} to {most} rounds ahead of "
            f"{_process(cut.graph, last)}: in every state of the quotient"
        )


def _verdict(
    instance: Instance, question: Question, engine: str, explored: Explored, opinion: Opinion
) -> Verdict:
    properties = [_property(name, explored, opinion) for name in question.properties]
    routing = instance.bounds.routing
    meaning = (
        "spacer: what two processes do besides a slot is left out, which only adds runs; how far "
        "they are apart is the quotient's word"
    )
    work = (
        ("states", explored.meter.states),
        ("relations", opinion.relations),
        ("rules", opinion.rules),
        ("queries", opinion.queries),
    )
    is_all = not explored.stopped and explored.graphs and opinion.trace is None
    rests_on = premises(explored) if is_all else []
    return Verdict(
        question,
        engine,
        tuple(properties),
        0,
        0,
        0,
        instance.protocol().assumptions(),
        (),
        routing if isinstance(routing, str) else "as given",
        (*rests_on, meaning, *dict.fromkeys(opinion.notes)),
        opinion.trace,
        work=work,
    )


def _property(name: str, explored: Explored, opinion: Opinion) -> PropertyVerdict:
    if name not in JUDGED:
        return PropertyVerdict(name, Answer.UNDECIDED, NOT_ASKED)
    if opinion.trace is not None:
        failure = opinion.trace.message
        if opinion.trace.property == name:
            return PropertyVerdict(name, Answer.VIOLATED, failure)
        return PropertyVerdict(name, Answer.UNDECIDED, "the search stopped at the first failure")
    if opinion.open:
        return PropertyVerdict(name, Answer.UNDECIDED, opinion.open[0])
    failed = [found.failure for found, _, _ in explored.findings if found.failure.property == name]
    if failed:
        detail = f"Spacer finds nothing, and the quotient has {failed[0].message}"
        return PropertyVerdict(name, Answer.BROKEN, detail)
    return PropertyVerdict(name, Answer.PROVED)
