"""Spacer on the one-slot cut: it proves, it refutes, and what it rests on is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import z3

from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.replay import replay
from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.checkers.unbounded import cases, cut, spacer_check
from syncproof.checkers.unbounded.cases import Case, Role, Shapes, holds
from syncproof.checkers.unbounded.channel import Needed
from syncproof.checkers.unbounded.check import Explored, explore_all
from syncproof.checkers.unbounded.cut import Cut
from syncproof.checkers.unbounded.horn import Horn
from syncproof.checkers.unbounded.reduction import Reduction
from syncproof.checkers.unbounded.search import Graph
from syncproof.checkers.unbounded.spacer_check import JUDGED, check
from syncproof.models.core import Core
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, Setting, role
from syncproof.models.verdict import Answer, Verdict
from syncproof.protocols.sp import SentinelPolling
from syncproof.protocols.sw import StopAndWait
from syncproof.protocols.tff import TokenFlagFusion
from tests.test_unbounded_invariant import Handshake, instance_of


def quotient_of(kind: type[Protocol], **settings: Setting) -> Explored:
    explored = Explored(Meter(Budget()))
    instance = instance_of(kind, **settings)
    explore_all(instance, frozenset(JUDGED), explored, Reduction.NONE, stop_at_first=False)
    return explored


def cuts_of(explored: Explored) -> Iterator[Cut]:
    """The smallest cut for each slot."""
    for candidates in spacer_check._cuts(explored.graphs[0], explored.modulus):
        yield candidates[0]


def verdict_of(kind: type[Protocol], budget: Budget | None = None, **settings: Setting) -> Verdict:
    instance = instance_of(kind, **settings)
    question = question_of(instance, "x", properties=("happens-before",))
    return check(instance, question, "spacer", budget)


@pytest.fixture(scope="module")
def polling() -> Explored:
    return quotient_of(SentinelPolling, counts=False)


# The cases of a role


def reads_of(graph: Graph) -> Iterator[tuple[int, Any, int]]:
    for process, node in spacer_check._nodes(graph):
        for number, action in enumerate(node.actions):
            if action.cells:
                yield process, node, number


def done(case: Case) -> Any:
    """What a step does: where it leads, and which of its statements are wrong."""
    edge = case.edge.edge
    return edge and (edge.target.number, tuple(map(cut._fails, edge.statements)))


def check_cases(explored: Explored, most: int) -> int:
    """For rounds of all kinds some case applies, and a run on them does as it says."""
    graph, seen = explored.graphs[0], 0
    shapes = Shapes(graph.system.round_values, explored.modulus)
    contents = spacer_check._contents(graph, shapes)
    roles = [Role(each.home, shapes) for each in graph.system.framed]
    for process, node, number in list(reads_of(graph))[:most]:
        for held in cut._product([contents[cell] for cell in node.actions[number].cells]):
            found = roles[process].cases(node, number, held)
            count = sum(len(shapes.residues[each]) for each in held)
            for k in range(-3, 4):
                quotients = [k + i for i in range(count)]
                read = [z3.IntVal(each) for each in quotients]
                given = [
                    each
                    for each in found
                    if z3.is_true(z3.simplify(holds(each.tests, z3.IntVal(0), read)))
                ]
                try:
                    run = roles[process]._run({}, node, number, held, quotients)
                except Needed:
                    assert len({each.edge.edge.target for each in given if each.edge.edge}) > 1
                else:
                    assert given and {done(each) for each in given} == {done(run)}
                seen += 1
    return seen


def test_one_case_for_all_rounds() -> None:
    """Waits for at least a round and for exactly one: the cases are complete and right."""
    assert check_cases(quotient_of(Handshake), 40) > 50
    assert check_cases(quotient_of(Handshake, at_least=False), 40) > 50


def test_one_case_for_all_consumes(polling: Explored) -> None:
    """What is said of a consume is the same for all rounds of a case."""
    assert check_cases(polling, 40) > 50


class Checking(Protocol):
    """A check that fails in a step which reads nothing, of a process that shares no slot."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK, 2), block=32)

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            for peer in core.destinations():
                await core.put(self.flag[peer][core.rank, round % 2], round + 1)
                core.check(round % 2 == 0, "an odd round")
        await core.quiet()


def test_a_check_outside_of_every_cut_is_not_passed_over() -> None:
    """Where nothing asks for a failure nothing is proved."""
    instance = instance_of(Checking)
    verdict = check(instance, question_of(instance, "x", properties=("checks",)))
    assert verdict.answer is not Answer.PROVED


def test_a_test_that_is_told_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With differences off by one a case claims what a run does not do."""
    right = cases.Role._test

    def wrong(self: Role, *about: Any) -> Any:
        found = right(self, *about)
        return found and (*found[:3], found[3] + 1)

    monkeypatch.setattr(cases.Role, "_test", wrong)
    with pytest.raises((AssertionError, cases.NotCovered)):
        check_cases(quotient_of(Handshake), 40)


# One slot


def test_a_slot_is_proved(polling: Explored) -> None:
    """Sentinel Polling with two windows: no consume of a slot goes wrong, in any round."""
    asked = Horn(next(cuts_of(polling))).ask(60_000)
    assert asked.answer == "holds" and asked.queries == 3 and asked.relations > 50


def test_how_far_they_are_apart_is_needed(polling: Explored) -> None:
    """Without the premise the sender laps the receiver, and the cut fails."""
    first = next(cuts_of(polling))
    first.apart = {p: dict.fromkeys(each, (-9, 9)) for p, each in first.apart.items()}
    assert Horn(first).ask(60_000).answer == "fails"


def test_what_only_the_cut_shows_is_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that no run of the system shows is not called one."""
    monkeypatch.setattr(spacer_check, "apart", lambda *_: dict.fromkeys(BEGUN, (-9, 9)))
    verdict = verdict_of(SentinelPolling, counts=False)
    assert verdict.answer is Answer.UNDECIDED and verdict.trace is None
    assert "none of the system" in verdict.properties[0].detail


BEGUN = [(one, other) for one in (False, True) for other in (False, True)]


def nothing_lands(patch: pytest.MonkeyPatch) -> None:
    """No put ever lands."""
    patch.setattr(Cut, "_landings", lambda *_: iter(()))


def nothing_is_near(patch: pytest.MonkeyPatch) -> None:
    """No two processes are ever as far apart as they are."""
    patch.setattr(Cut, "_near", lambda *_: iter([z3.BoolVal(False)]))


def no_test_passes(patch: pytest.MonkeyPatch) -> None:
    """No rounds pass any test."""
    patch.setattr(cut, "holds", lambda *_: z3.BoolVal(False))


@pytest.mark.parametrize("fault", (nothing_lands, nothing_is_near, no_test_passes))
def test_a_cut_in_which_nothing_happens_is_no_proof(
    polling: Explored, fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clauses that exclude too much exclude every consume, and that is told."""
    fault(monkeypatch)
    assert Horn(next(cuts_of(polling))).ask(60_000).answer == "vacuous"


# The engine


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(SentinelPolling, {"windows": 1}), (StopAndWait, {"quiet": False})],
)
def test_mutants_are_refuted(kind: type[Protocol], settings: dict[str, Setting]) -> None:
    """Without the second window or the quiet Spacer finds a failure, and a run shows it."""
    verdict = verdict_of(kind, counts=False, **settings)
    assert verdict.answer is Answer.VIOLATED and verdict.trace is not None
    rounds = verdict.trace.question.bounds["rounds"]
    bounded = instance_of(kind, counts=False, **settings)
    object.__setattr__(bounded.bounds, "rounds", rounds)
    assert replay(verdict.trace, bounded).reproduced


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (SentinelPolling, {"quiet": False}),
        (TokenFlagFusion, {"windows": 1}),
        (TokenFlagFusion, {"reset": "before", "reuse": "reset", "windows": 1}),
    ],
)
def test_more_mutants_are_refuted(kind: type[Protocol], settings: dict[str, Setting]) -> None:
    """The same for a reset that comes late or too early."""
    assert verdict_of(kind, counts=False, **settings).answer is Answer.VIOLATED


@pytest.mark.long
@pytest.mark.parametrize("kind", [SentinelPolling, StopAndWait, TokenFlagFusion])
def test_the_data_as_flag_protocols_are_proved(kind: type[Protocol]) -> None:
    """sp, sw and tff at two ranks: every slot."""
    assert verdict_of(kind, counts=False).answer is Answer.PROVED


def test_other_properties_are_not_decided() -> None:
    """The cut says nothing of deadlocks, and says so."""
    instance = instance_of(SentinelPolling, counts=False)
    verdict = check(instance, question_of(instance, "x", properties=("deadlock-free",)))
    assert verdict.answer is Answer.UNDECIDED
    assert "--engine smt" in verdict.properties[0].detail


def test_without_time_it_is_not_decided() -> None:
    """A budget that is over leaves the question open."""
    verdict = verdict_of(SentinelPolling, Budget(seconds=1e-6), counts=False)
    assert verdict.answer is Answer.UNDECIDED


def test_a_run_that_only_the_quotient_shows_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the quotient has a failure and Spacer finds all well, one of them is wrong."""
    well = spacer_check.Asked("holds", 1, 1, 3)
    monkeypatch.setattr(Horn, "ask", lambda *_: well)
    verdict = verdict_of(SentinelPolling, counts=False, windows=1)
    assert verdict.answer is Answer.BROKEN


class InTwoReads(Protocol):
    """A token of two atoms behind a bell, read atom by atom."""

    def memory(self) -> None:
        self.slot = Region(owner=1, block=1024)
        self.bell = Region(owner=1, block=32)

    @role(on=[0])
    async def sender(self, core: Core) -> None:
        for round in core.rounds():
            await core.put(self.slot[1], core.payload(1, 0, round))
            await core.fence()
            await core.put(self.bell[1], round + 1)
            await core.barrier()

    @role(on=[1])
    async def receiver(self, core: Core) -> None:
        for round in core.rounds():
            await core.wait_until(self.bell[1], lambda rung, due=round + 1: rung == due)
            core.consume(await core.load(self.slot[1]), 0, 0, round)
            await core.barrier()


def test_a_block_that_is_read_in_several_steps_is_not_covered() -> None:
    """What a process has read of a block before is not followed in a cut, which is told."""
    verdict = verdict_of(InTwoReads)
    assert verdict.answer is Answer.UNDECIDED
    assert "read in several steps" in verdict.properties[0].detail
