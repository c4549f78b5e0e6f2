"""The argument from two ranks to every number of them, and what it rests on.

Two ranks are searched exhaustively; the roles among any number of ranks are shown to do to each
peer only what they do among two; and who may wait for whom has no cycle. docs/any-ranks.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from syncproof.checkers.any_ranks.grammar import check_written
from syncproof.checkers.any_ranks.memory import Memory
from syncproof.checkers.any_ranks.roles import Role, protocol_of_any
from syncproof.checkers.any_ranks.simulation import Simulation
from syncproof.checkers.any_ranks.waiting import Waits
from syncproof.checkers.explicit.check import check as check_pair
from syncproof.checkers.explicit.loops import has_loop
from syncproof.checkers.explicit.search import Budget, Exploration, Meter, explore
from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.models.automaton import Automaton
from syncproof.models.fabric import HOP_KEYS
from syncproof.models.instance import Choices, Instance
from syncproof.models.nodes import Ledger
from syncproof.models.ranks import PAIR
from syncproof.models.reaches import declared_reaches
from syncproof.models.system import System
from syncproof.models.transitions import PROPERTIES
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Verdict

LEFT = "--ranks any does not cover this: "
Report = Callable[[int, int, int], None] | None


@dataclass(frozen=True)
class Pair(Instance):
    """An instance of two ranks that keeps what was searched, with its choices."""

    systems: dict[int, tuple[System, Choices]] = field(default_factory=dict, compare=False)
    searched: list[tuple[Exploration, Choices]] = field(default_factory=list, compare=False)

    def system(self, choices: Choices, ledger: Ledger | None = None) -> System:
        made = super().system(choices, ledger)
        self.systems[id(made)] = (made, choices)
        return made

    def search(self, system: System, asked: frozenset[str], meter: Meter) -> Exploration:
        """Every interleaving, all of them kept."""
        found = explore(system, None, asked, meter)
        self.searched.append((found, self.systems[id(system)][1]))
        return found


@dataclass
class Premises:
    """What of the argument holds for a protocol, as it was found in this run."""

    points: int = 0
    waits: int = 0
    cycle: str = ""
    failed: str = ""
    loops: bool = False


@dataclass(frozen=True)
class Deadline:
    """When the time is over that all of the argument may take."""

    budget: Budget
    started: float

    def look(self) -> None:
        """`NotCovered` if it is over."""
        seconds = self.budget.seconds
        if seconds and time.monotonic() - self.started >= seconds:
            raise NotCovered(f"the argument stopped at --budget-seconds {seconds:g}: raise it")


def argue(
    instance: Instance, question: Question, budget: Budget, report: Report
) -> tuple[Verdict | None, Premises]:
    """What two ranks say, with all their properties, and which premises hold.

    No verdict if a premise fails before anything is searched. Raises `UserError` as all engines do.
    """
    pair = Pair(
        instance.kind,
        replace(instance.bounds, ranks=PAIR, experts=0, topk=0),
        instance.profile,
        instance.settings,
        instance.mutation,
        instance.whole_atoms,
        instance.merge,
    )
    premises, started = Premises(), time.monotonic()
    verdict = None
    try:
        _check_fabric(pair)
        protocol_of_any(pair, lambda _: None)
        verdict = check_pair(pair, of_two(question), "reference", budget, report, pair.search)
        if verdict.answer is Answer.PROVED:
            _look(pair, premises, Deadline(budget, started))
        else:
            premises.failed = "two ranks break another property, so no argument starts from them"
    except NotCovered as reason:
        premises.failed = f"{LEFT}{reason}"
    return verdict, premises


def of_two(question: Question) -> Question:
    """All properties of two ranks, which is what the argument starts from."""
    two = dict.fromkeys(("ranks", "experts", "topk"), PAIR)
    return replace(question, bounds={**question.bounds, **two}, properties=PROPERTIES)


def proved_for_many(
    instance: Instance, question: Question, budget: Budget, report: Report
) -> Verdict | None:
    """The verdict on a number of ranks of which all that is asked is proved for every number.

    None where the argument does not apply or does not prove all. It is only about protocols in the
    language of grammar.py, and about routings that give each pair what two ranks may have.
    """
    bounds = instance.bounds
    is_uniform = isinstance(bounds.routing, str) and not bounds.experts and not bounds.topk
    if bounds.ranks <= PAIR or not is_uniform:
        return None
    try:
        check_written(instance.protocol())
    except NotCovered:
        return None
    verdict, premises = argue(instance, question, budget, report)
    if verdict is None:
        return None
    found = concluded(verdict, premises, question, "pairs")
    return found if found.answer is Answer.PROVED else None


def concluded(verdict: Verdict, premises: Premises, question: Question, engine: str) -> Verdict:
    """What two ranks and the premises say together of the question."""
    violated = {p.property for p in verdict.properties if p.answer is Answer.VIOLATED}
    return replace(
        verdict,
        question=question,
        engine=engine,
        properties=tuple(
            _answer(each, premises)
            for each in verdict.properties
            if each.property in question.properties or each.property not in PROPERTIES
        ),
        notes=(*verdict.notes, *_notes(verdict, premises)),
        trace=verdict.trace if violated & {*question.properties} else None,
    )


def _answer(of_two: PropertyVerdict, premises: Premises) -> PropertyVerdict:
    """What two ranks and the premises say together of a property."""
    if of_two.answer is not Answer.PROVED:
        return of_two
    if premises.failed:
        return PropertyVerdict(of_two.property, Answer.UNDECIDED, premises.failed)
    if of_two.property == "deadlock-free" and premises.loops:
        reason = f"{LEFT}a role loops over loads, and may do so for ever"
        return PropertyVerdict(of_two.property, Answer.UNDECIDED, reason)
    if of_two.property == "deadlock-free" and premises.cycle:
        reason = f"{LEFT}ranks may wait for each other in a ring: {premises.cycle}"
        return PropertyVerdict(of_two.property, Answer.UNDECIDED, reason)
    return of_two


def _look(pair: Pair, premises: Premises, deadline: Deadline) -> None:
    """Check every premise; `NotCovered` says which fails."""
    memory = Memory(pair, pair.searched[0][0].system)
    for found, _ in pair.searched:
        memory.note(found.system, found.parents)
    waits = Waits()
    known: list[Role] = []
    for found, choices in pair.searched:
        system = found.system
        roles = [_role(pair, each, choices, known) for each in system.automata]
        simulations = [
            Simulation(role, automaton, memory)
            for role, automaton in zip(roles, system.automata, strict=True)
        ]
        for each in simulations:
            deadline.look()
            each.run()
        waits.add(system, found.parents, simulations)
        premises.loops |= any(has_loop(each) for each in system.automata)
    premises.points = sum(len(role.points) for role in known)
    premises.waits, premises.cycle = waits.graph.number_of_edges(), waits.cycle()


def _role(pair: Pair, automaton: Automaton, choices: Choices, known: list[Role]) -> Role:
    """The role under an assignment, one that is known if it asks for nothing that differs."""
    for each in known:
        if each.process == automaton.process and each.serves(choices):
            return each
    known.append(Role(pair, automaton.process, choices, len(automaton.nodes)))
    return known[-1]


def _check_fabric(pair: Pair) -> None:
    """What less traffic might take a behaviour from, and what may tell ranks apart."""
    profile = pair.profile
    near, far = (dict(profile.hops.get(hop, {})) for hop in ("one_hop", "two_hops"))
    if any(near.get(key) != far.get(key) for key in HOP_KEYS):
        raise NotCovered("the fabric depends on how far apart two ranks are")
    for key, value in (("quiet", "target"), ("load_order", "none"), ("atomics", "nic_only")):
        if getattr(profile, key) == value:
            raise NotCovered(f"fabrics with {key}={value}")
    if declared_reaches(pair.kind):
        raise NotCovered("core.reach: what two ranks reach, more need not")
    if pair.protocol().ghosts:
        raise NotCovered("ghosts are shared by all ranks")


def _notes(verdict: Verdict, premises: Premises) -> tuple[str, ...]:
    """What the verdict rests on, or what was proved instead."""
    if verdict.answer is not Answer.PROVED:
        return ("searched: two ranks, which are the smallest number",)
    if premises.failed:
        return ("proved instead: two ranks",)
    return (
        "ranks: every number from two on, from all interleavings of two (docs/any-ranks.md)",
        "premise: no block is accessed by more than two ranks: asked of each access",
        "premise: a rank is an index, an entry or compared with another, and nothing else: by type",
        "premise: among more ranks a role does to its peer only what it does among two: weak "
        f"simulation, {premises.points} local states",
        "premise: the routing gives each pair every pattern that two ranks have: by the bounds",
        "premise: less traffic takes no behaviour from the fabric: of its profile",
        f"premise: who may wait for whom has no cycle: {premises.waits} edges",
    )
