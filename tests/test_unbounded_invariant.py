"""The quotient as an inductive invariant over unbounded integers: z3 agrees, and would notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncproof.checkers.explicit.check import Budget, question_of
from syncproof.checkers.unbounded import carried, guards, system
from syncproof.checkers.unbounded.check import answer
from syncproof.checkers.unbounded.invariant import (
    Candidate,
    Checked,
    check_invariant,
    differences,
    ranges,
)
from syncproof.checkers.unbounded.invariant_check import check
from syncproof.checkers.unbounded.readings import Reader
from syncproof.checkers.unbounded.reduction import Reduction
from syncproof.checkers.unbounded.search import Graph
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, Setting, parameter, role
from syncproof.models.verdict import Answer, Verdict
from syncproof.protocols.barrier import Barrier
from syncproof.protocols.sp import SentinelPolling
from syncproof.protocols.sw import StopAndWait
from syncproof.protocols.tff import TokenFlagFusion


class Handshake(Protocol):
    """Each rank tells the other its round and waits for the other's."""

    at_least: bool = parameter(True, "whether a later round will do")
    windows: int = parameter(2, "slots used in turn")

    def memory(self) -> None:
        self.flag = Region(index=(RANK, self.windows), block=32)

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            epoch, turn = round + 1, round % self.windows
            for peer in core.destinations():
                await core.put(self.flag[peer][core.rank, turn], epoch)
                mine = self.flag[core.rank][peer, turn]
                if self.at_least:
                    await core.wait_until(mine, lambda seen, e=epoch: seen >= e)
                else:
                    await core.wait_until(mine, lambda seen, e=epoch: seen == e)
        await core.quiet()


def instance_of(kind: type[Protocol], **settings: Setting) -> Instance:
    return Instance(kind, Bounds(routing="balanced"), Profile("cm384"), settings)


def graph_of(kind: type[Protocol], engine: str = "quotient-full", **settings: Setting) -> Graph:
    instance = instance_of(kind, **settings)
    verdict, graphs = answer(instance, question_of(instance, "x"), engine)
    assert verdict.answer is Answer.PROVED
    return graphs[0]


def verdict_of(kind: type[Protocol], budget: Budget | None = None, **settings: Setting) -> Verdict:
    instance = instance_of(kind, **settings)
    return check(instance, question_of(instance, "x"), "smt", budget)


@pytest.fixture(scope="module", params=["quotient-full", "smt"])
def handshake(request: pytest.FixtureRequest) -> Graph:
    """The quotient of all steps, and that of the steps that the engine takes."""
    graph = graph_of(Handshake, request.param)
    assert (graph.reduction is Reduction.FREE) is (request.param == "smt")
    return graph


def candidate_of(graph: Graph) -> tuple[Reader, Candidate]:
    reader = Reader(graph.system)
    return reader, differences(graph, reader)


def checked_of(graph: Graph) -> Checked:
    return check_invariant(graph, *candidate_of(graph))


def test_the_invariant_is_inductive(handshake: Graph) -> None:
    """z3 finds no integers for which a test comes out otherwise or a step leads out."""
    reader, candidate = candidate_of(handshake)
    checked = check_invariant(handshake, reader, candidate)
    assert checked.failed == []
    assert checked.states == len(handshake.arcs) > 40 and len(checked.queries) > 10
    assert any(len(set(sum(rounds, ()))) > 1 for c in candidate.values() for rounds in c)


def test_it_is_told_in_the_protocol_s_names(handshake: Graph) -> None:
    """How far ranks and flags are apart, by name."""
    told = ranges(handshake, Reader(handshake.system))
    assert "worker@rank1 - worker@rank0: -1 to 1" in told
    assert any(each.startswith("flag[0][1, 0]") for each in told)


def test_without_one_control_state_it_is_not(handshake: Graph) -> None:
    """Whichever control state is left out, the rest does not begin or some step leads out."""
    reader, candidate = candidate_of(handshake)
    for control in list(candidate)[::20]:
        less = {key: value for key, value in candidate.items() if key != control}
        assert check_invariant(handshake, reader, less).failed != []


def test_with_one_difference_falsified_it_is_not(handshake: Graph) -> None:
    """Whichever round is moved alone, some step leads out of the rest."""
    reader, candidate = candidate_of(handshake)
    controls = [key for key, value in candidate.items() if len(sum(min(value), ())) > 2]
    for control in controls[::20]:
        first, *others = sorted(candidate[control])
        last = max(n for n, part in enumerate(first) if part)
        false = (*first[:last], (*first[last][:-1], first[last][-1] + 2), *first[last + 1 :])
        wrong = {**candidate, control: {false, *others}}
        assert check_invariant(handshake, reader, wrong).failed != []


def test_a_fault_in_the_quotient_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rounds in memory are not moved with the others, z3 does not find the set closed."""
    monkeypatch.setattr(system.Aged, "__missing__", lambda self, number: number)
    instance = instance_of(Handshake, at_least=True, windows=1)
    verdict, graphs = answer(
        instance, question_of(instance, "x"), "quotient-full", Budget(states=400)
    )
    checked = checked_of(graphs[0]) if graphs else None
    assert verdict.answer is not Answer.PROVED or (checked is not None and checked.failed)


Patch = pytest.MonkeyPatch


def lands_as_it_was(patch: Patch) -> None:
    """A landing leaves the rounds of its cell as they are."""
    patch.setattr(
        carried.Carrier,
        "_delivered",
        lambda self, state, step, cell: state[self.system.first_cell + cell],
    )


def issued_a_round_later(patch: Patch) -> None:
    """A put takes the next round with it."""
    right = carried._issued
    patch.setattr(carried, "_issued", lambda found, own: right(found + 1, own))


def begins_a_round_later(patch: Patch) -> None:
    """The rounds of the processes are taken for one more than they are."""
    right = carried.Carrier._process

    def wrong(self: carried.Carrier, *about: Any) -> carried.Fate:
        fate = right(self, *about)
        claims = tuple(each.replace("(= ", "(= 1 (- ", 1) + ")" for each in fate.claims)
        return fate._replace(claims=claims)

    patch.setattr(carried.Carrier, "_process", wrong)


@pytest.mark.parametrize("fault", [lands_as_it_was, issued_a_round_later, begins_a_round_later])
def test_a_fault_in_what_becomes_of_rounds_is_noticed(
    fault: Callable[[Patch], None], handshake: Graph, monkeypatch: Patch
) -> None:
    """Where rounds behind a step are taken from elsewhere, they are not those that were found."""
    fault(monkeypatch)
    assert checked_of(handshake).failed != []


def test_what_is_forgotten_too_early_is_noticed(monkeypatch: Patch) -> None:
    """A round that is forgotten while a process has not passed it is no round long past."""
    right = system.Quotient._frame

    def wrong(self: system.Quotient, nodes: Any) -> system.Frame:
        frame = right(self, nodes)
        return frame._replace(horizon=frame.horizon + 1)

    monkeypatch.setattr(system.Quotient, "_frame", wrong)
    instance = instance_of(Handshake)
    _, (graph,) = answer(instance, question_of(instance, "x"), "quotient-full")
    assert checked_of(graph).failed != []


def test_a_test_that_is_told_wrong_is_noticed(
    handshake: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guards are not empty words: with one outcome turned round, z3 objects."""
    right = guards.Guards._claim

    def wrong(self: guards.Guards, test: str, *about: Any) -> str:
        left, right_, result, node = about
        return right(self, test, left, right_, result ^ (test in ("==", "<")), node)

    monkeypatch.setattr(guards.Guards, "_claim", wrong)
    assert checked_of(handshake).failed != []


def test_the_engine_proves_and_refutes() -> None:
    """What z3 confirms is proved; what the quotient refutes is refuted by a bounded run."""
    proved = verdict_of(Handshake, at_least=False)
    assert proved.answer is Answer.PROVED
    assert any("queries to z3" in note for note in proved.notes)
    refuted = verdict_of(Handshake, at_least=False, windows=1)
    assert refuted.answer is Answer.VIOLATED and refuted.trace is not None


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (SentinelPolling, {"windows": 1}),
        (SentinelPolling, {"quiet": False}),
        (StopAndWait, {"quiet": False}),
        (TokenFlagFusion, {"windows": 1}),
        (TokenFlagFusion, {"reset": "before", "reuse": "reset", "windows": 1}),
    ],
)
def test_mutants_are_refuted(kind: type[Protocol], settings: dict[str, Setting]) -> None:
    """Without the quiet, the order of a reset or the second window no invariant is claimed."""
    assert verdict_of(kind, counts=False, **settings).answer is Answer.VIOLATED


@pytest.mark.long
@pytest.mark.parametrize("kind", [SentinelPolling, StopAndWait, TokenFlagFusion])
def test_the_data_as_flag_protocols_are_proved(kind: type[Protocol]) -> None:
    """sp, sw and tff at two ranks, with and without the exchange of counts."""
    assert verdict_of(kind, counts=False).answer is Answer.PROVED
    assert verdict_of(kind).answer is Answer.PROVED


class Keeping(Protocol):
    """Each rank keeps the flag that it has read, and compares it a round later."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK, 2), block=32)

    @role
    async def worker(self, core: Core) -> None:
        before = None
        for round in core.rounds():
            for peer in core.destinations():
                await core.put(self.flag[peer][core.rank, round % 2], round + 1)
                mine = self.flag[core.rank][peer, round % 2]
                seen = await core.wait_until(mine, lambda found, r=round: found >= r + 1)
                core.check(before is None or seen > before, "the flag falls")
                before = seen
        await core.quiet()


def test_a_round_that_a_role_keeps_is_followed() -> None:
    """What was read and kept is part of the local state, by its difference from the role's own."""
    assert verdict_of(Keeping).answer is Answer.PROVED


def test_what_cannot_be_followed_is_not_decided() -> None:
    """Atomics on memory change rounds in ways that are not followed: no proof is claimed."""
    for scheme in ("at_least", "put_wait"):
        verdict = verdict_of(Barrier, scheme=scheme)
        assert verdict.answer is Answer.UNDECIDED
        assert "the invariant does not cover" in verdict.properties[0].detail


def test_without_time_it_is_not_decided() -> None:
    """A budget that is over leaves the question open."""
    verdict = verdict_of(Handshake, Budget(seconds=1e-6))
    assert verdict.answer is Answer.UNDECIDED
