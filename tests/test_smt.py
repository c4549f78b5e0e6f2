"""Bounded happens-before by z3: the verdict table, random protocols, and faults in the axioms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import z3

from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.replay import replay
from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.smt import check as checking
from syncproof.checkers.smt import ordering
from syncproof.checkers.smt.check import Deadline, Formula, Tally, check
from syncproof.checkers.smt.encoding import Encoding
from syncproof.checkers.smt.queries import Queries
from syncproof.checkers.smt.races import Races
from syncproof.checkers.smt.solving import Parts
from syncproof.checkers.smt.terms import FALSE, TRUE
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol, role
from syncproof.models.transitions import PROPERTIES
from syncproof.models.verdict import Answer, Verdict
from tests.random_protocols import instance_of, plan_of
from tests.small import (
    FlagAfterData,
    Meeting,
    OneRound,
    answers,
    instance,
    with_settings,
)
from tests.test_data_as_flag import KINDS, LONG, ROWS, Row, shows_at, violated
from tests.test_verdicts import Pulse, ThreeInFlight, Unreachable


def by_z3(made: Instance, *properties: str, seconds: float = 0.0) -> Verdict:
    """The verdict of z3 on some properties, or on all."""
    question = question_of(made, made.kind.__name__, properties=properties or PROPERTIES)
    return check(made, question, budget=Budget(seconds=seconds))


# The verdict table

SLOW = (
    "leads repeat",
    "additive checksum with the round, stale window",
    "128 B atoms, block",
    "128 B atoms, atom",
    "128 B atoms, a flag in each atom",
    "128 B atoms, a flag in each atom, with counts",
    "no counts, sparse traffic",
    "counts, all routings",
    "counts, two tokens",
)
QUICK = [row for row in ROWS if row.ranks == 2 and row.name not in SLOW]
HEAVY = [row for row in (*ROWS, *LONG) if row.ranks == 2 and row.name in (*SLOW, "all routings")]
HEAVY += [row for row in LONG if row.name.startswith("128 B atoms")]


def check_row(row: Row) -> None:
    made = row.instance()
    question = question_of(made, row.protocol, row.dropped, properties=row.asked)
    found = check(made, question)
    assert violated(found) == ([row.violated] if row.violated else [])
    if row.violated:
        assert any(row.at in text for text in shows_at(found)), shows_at(found)
        assert found.trace is not None and replay(found.trace, made).reproduced
    else:
        assert found.answer is Answer.PROVED


@pytest.mark.parametrize("row", [pytest.param(r, id=f"{r.protocol}: {r.name}") for r in QUICK])
def test_row(row: Row) -> None:
    """z3 gives the row's verdict; a violation shows at its line, in a trace that replays."""
    check_row(row)


@pytest.mark.long
@pytest.mark.parametrize("row", [pytest.param(r, id=f"{r.protocol}: {r.name}") for r in HEAVY])
def test_heavy_row(row: Row) -> None:
    """The same for 64 routings and for many atoms."""
    check_row(row)


@pytest.mark.long
@pytest.mark.parametrize("name", ("sp", "tff", "sw"))
def test_eight_ranks(name: str) -> None:
    """8 ranks, 1 token, 3 rounds are proved."""
    check_row(Row("8 ranks", name, ranks=8))


@pytest.mark.parametrize(
    ("made", "wrong"),
    (
        (instance(FlagAfterData), ""),
        (with_settings(instance(FlagAfterData), quiet=False), "happens-before"),
        (with_settings(instance(FlagAfterData), flag=False), "deadlock-free"),
        (instance(OneRound), "quiescent"),
        (instance(Meeting), ""),
        (with_settings(instance(Meeting), meets=False), "checks"),
        (instance(Unreachable), "reached"),
        (instance(ThreeInFlight, Profile("cm384", in_flight=3)), "checks"),
    ),
    ids=lambda each: each if isinstance(each, str) else each.kind.__name__,
)
def test_small_protocol(made: Instance, wrong: str) -> None:
    """Each property is seen to hold and to fail, ghosts, syncs and vacuity among them."""
    found = by_z3(made)
    assert violated(found) == ([wrong] if wrong else [])
    assert (found.answer is Answer.PROVED) is not bool(wrong)
    assert found.trace is None or replay(found.trace, made).reproduced


# Litmus tests for the encoding itself (soundness notes, C7, C9 and C14)


class TwoFlags(Protocol):
    """f := 1; f := 2 against a wait for 1: some landing satisfies it, and it can hang."""

    def memory(self) -> None:
        self.flag = Region(owner=1, block=8)

    @role(on=(0,))
    async def setter(self, core: Core) -> None:
        await core.put(self.flag[1], 1)
        await core.put(self.flag[1], 2)
        await core.quiet()

    @role(on=(1,))
    async def waiter(self, core: Core) -> None:
        await core.wait_until(self.flag[1], lambda flag: flag == 1)


def test_wait_may_miss_the_landing_that_serves_it() -> None:
    """ "Never served" is a maximal run, not the absence of a landing that would do."""
    assert violated(by_z3(instance(TwoFlags), "deadlock-free")) == ["deadlock-free"]


class StaleThenStuck(Protocol):
    """A stale read after which its reader hangs for ever."""

    def memory(self) -> None:
        self.data = Region(owner=1, block=8)
        self.never = Region(owner=1, block=8)

    @role(on=(0,))
    async def setter(self, core: Core) -> None:
        await core.put(self.data[1], 1)
        await core.quiet()

    @role(on=(1,))
    async def reader(self, core: Core) -> None:
        core.check(await core.load(self.data[1]) == 1, "stale")
        await core.wait_until(self.never[1], lambda value: value == 1)


def test_stale_read_before_a_hang_is_found() -> None:
    """Safety ranges over prefix runs: nobody has to be served afterwards."""
    assert violated(by_z3(instance(StaleThenStuck), "checks")) == ["checks"]


class Sweep(Protocol):
    """(a, b) goes from (0, 1) to (0, 0) to (1, 0): a sweep that reads b first finds the sum 2."""

    def memory(self) -> None:
        self.a = Region(owner=1, block=8)
        self.b = Region(owner=1, block=8, initial=1)

    @role(on=(0,))
    async def setter(self, core: Core) -> None:
        await core.put(self.b[1], 0)
        await core.quiet()
        await core.put(self.a[1], 1)
        await core.quiet()

    @role(on=(1,))
    async def reader(self, core: Core) -> None:
        async def both() -> bool | None:
            b = await core.load(self.b[1])
            return True if b + await core.load(self.a[1]) == 2 else None

        await core.poll_until(both)
        core.check(False, "a sum that memory never had")


@pytest.mark.parametrize("name", ("checks", "deadlock-free"))
def test_sweep_is_no_snapshot_and_can_fail_for_ever(name: str) -> None:
    """A sweep may see values that never stood together, and waits for ever if the end fails it."""
    assert violated(by_z3(instance(Sweep), name)) == [name]


# What is not decided


def test_loop_over_loads_is_refused_by_name() -> None:
    """A loop whose number of turns depends on data: which, at which line, and who can do it."""
    found = by_z3(instance(Pulse))
    assert found.answer is Answer.UNDECIDED
    reason = found.properties[0].detail
    assert "a loop" in reason and "test_verdicts.py:" in reason and "--engine reference" in reason


@pytest.mark.parametrize("changed", ({"load_order": "none"}, {"quiet": "target"}), ids=str)
def test_fabric_that_is_not_encoded_is_refused_by_name(changed: dict[str, str]) -> None:
    """A key that the axioms do not have is named, not passed over."""
    found = by_z3(instance(FlagAfterData, replace(Profile("weak"), **changed)))  # type: ignore[arg-type]
    assert found.answer is Answer.UNDECIDED
    (key,) = changed
    assert key in found.properties[0].detail


def test_put_that_meets_the_bound_is_not_decided() -> None:
    """As in the other engines a run beyond the in-flight bound is no proof and no refutation."""
    found = by_z3(instance(ThreeInFlight), "checks")
    assert found.answer is Answer.UNDECIDED and "in_flight=N" in found.properties[0].detail


def test_time_that_runs_out_is_not_decided() -> None:
    """The reason names the flag to raise."""
    found = by_z3(instance(FlagAfterData), seconds=1e-6)
    assert found.answer is Answer.UNDECIDED
    assert "--budget-seconds" in found.properties[0].detail


def test_unknown_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """What z3 cannot say is no proof."""
    monkeypatch.setattr(z3.Solver, "check", lambda *_: z3.unknown)
    found = by_z3(instance(FlagAfterData))
    assert found.answer is Answer.UNDECIDED
    assert "z3 says unknown" in found.properties[0].detail


# Faults in the axioms

Fault = Callable[[pytest.MonkeyPatch], None]


def contradiction(patch: pytest.MonkeyPatch) -> None:
    """An axiom too many: no run at all, so that every query is unsatisfiable."""
    made = Encoding.__init__

    def init(self: Encoding, *arguments: Any) -> None:
        made(self, *arguments)
        self.add(FALSE)

    patch.setattr(Encoding, "__init__", init)


def no_quiet(patch: pytest.MonkeyPatch) -> None:
    """A quiet waits for nothing."""
    patch.setattr(ordering, "_quiet", lambda *_: None)


def no_last_write(patch: pytest.MonkeyPatch) -> None:
    """A read may get any earlier write, not only the last."""
    real = Encoding.add

    def add(self: Encoding, constraint: Any, label: Any = None) -> None:
        if not (isinstance(label, tuple) and label[0] == "last"):
            real(self, constraint, label)

    patch.setattr(Encoding, "add", add)


def no_program_order(patch: pytest.MonkeyPatch) -> None:
    """The steps of a process have no order in time."""
    real = Encoding.add

    def add(self: Encoding, constraint: Any, label: Any = None) -> None:
        if not (isinstance(label, tuple) and label[0] == "program"):
            real(self, constraint, label)

    patch.setattr(Encoding, "add", add)


def nothing_blocks(patch: pytest.MonkeyPatch) -> None:
    """Every process may stop where it likes in a run that should be maximal."""
    patch.setattr(Queries, "blocked", lambda *_: TRUE)


@pytest.mark.parametrize(
    "fault", (contradiction, no_quiet, no_last_write, no_program_order, nothing_blocks)
)
def test_fault_in_the_axioms_is_no_verdict(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too few axioms give a run that the interpreter does not go along with, too many none."""
    assert by_z3(instance(FlagAfterData)).answer is Answer.PROVED
    fault(monkeypatch)
    found = by_z3(instance(FlagAfterData))
    assert found.answer is Answer.BROKEN
    assert "disagree" in found.properties[0].detail


def too_strong_order(patch: pytest.MonkeyPatch) -> None:
    """Every put waits for all earlier ones, whatever the fabric says."""
    patch.setattr(ordering, "must_precede", lambda *_: True)


def deaf_to_races(patch: pytest.MonkeyPatch) -> None:
    """No two accesses are enabled in one state."""
    patch.setattr(checking.Races, "_on", lambda *_, **__: iter(()))


def never_stuck(patch: pytest.MonkeyPatch) -> None:
    """No wait counts as blocked, so that nothing hangs."""
    patch.setattr(Queries, "blocked", lambda *_: FALSE)


def lost_ends(patch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong with any end."""
    patch.setattr(Queries, "miscounted", lambda *_: FALSE)
    patch.setattr(Queries, "not_clean", lambda *_: FALSE)
    patch.setattr(Queries, "returns_early", lambda *_: iter(()))


@pytest.mark.parametrize("fault", (deaf_to_races, never_stuck, lost_ends))
def test_fault_that_hides_runs_is_noticed(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong "proved" of a faulty encoding shows against `reference` on the random protocols."""
    fault(monkeypatch)
    with pytest.raises(AssertionError, match="seed"):
        compare(range(0, 120))


def test_order_that_no_fabric_promised_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With puts held in order a missing quiet goes unseen: the table's row would be "proved"."""
    too_strong_order(monkeypatch)
    made = with_settings(instance(FlagAfterData), quiet=False)
    assert by_z3(made).answer is Answer.PROVED
    assert check_explicitly(made, question_of(made, "r"), "reference").answer is Answer.VIOLATED


# Parts of the formula


def five(name: str, **settings: Any) -> Instance:
    """A protocol at five ranks, of which a token concerns two."""
    bounds = Bounds(5, 1, 2, routing="balanced")
    return Instance(KINDS[name], bounds, load_profile("cm384"), settings)


def test_a_part_excludes_only_what_the_whole_excludes() -> None:
    """What the constraints on some ranks exclude, all of them do; each consume is decided so."""
    made, asked = five("sw"), frozenset(PROPERTIES)
    formula = Formula(made.system({}), asked, Deadline(Budget()), Tally())
    wrong = formula.queries.each_wrong("happens-before")
    others = [term for _, term, _ in Races(formula.queries).certain()]
    others += formula.queries.returns_early()
    assert len(wrong) == 40 and all(formula.excluded(*each) for each in wrong)
    excluded = [term for term, _ in wrong] + [term for term in others if formula.excluded(term)]
    assert len(excluded) == 90
    assert all(formula.model(term) is None for term in excluded[::5])


def test_a_part_does_not_exclude_what_happens() -> None:
    """Without the quiet no part claims that the stale read cannot be; the run that shows it is
    found in the whole."""
    made = five("sw", quiet=False)
    found = by_z3(made, "happens-before")
    assert found.answer is Answer.VIOLATED and found.trace is not None
    assert replay(found.trace, made).reproduced


def test_fault_in_a_part_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part with an axiom too many excludes everything: the test above would fail."""
    monkeypatch.setattr(Parts, "_within", lambda *_: [FALSE])
    assert violated(by_z3(five("sw", quiet=False), "happens-before")) == []


# Random protocols

ASKED = tuple((name,) for name in PROPERTIES)


def compare(seeds: range, seconds: float = 20.0) -> Counter[str]:
    """Each plan asked one property, in turn, of z3 and of `reference`; how they came out."""
    found: Counter[str] = Counter()
    for seed in seeds:
        made = instance_of(plan_of(seed))
        question = question_of(made, "random", properties=ASKED[seed % len(ASKED)])
        try:
            verdict = check(made, question, budget=Budget(seconds=seconds))
        except UserError:
            found["a role goes wrong"] += 1
            continue
        assert verdict.answer is not Answer.BROKEN, f"seed {seed}: {verdict.properties[0].detail}"
        if verdict.answer is Answer.UNDECIDED:
            found["not decided"] += 1
            continue
        other = check_explicitly(made, question, "reference", Budget(states=50_000))
        if other.answer is Answer.UNDECIDED:
            found["reference not decided"] += 1
            continue
        assert answers(verdict) == answers(other), f"seed {seed}\n{plan_of(seed)}"
        found[verdict.answer.value] += 1
    return found


def test_random_protocols_agree() -> None:
    """z3 and `reference` give the same answers, both of them often, and little is not decided."""
    found = compare(range(0, 120))
    assert found["proved"] > 30 and found["violated"] > 15
    assert found["not decided"] < 40


def test_step_that_writes_a_cell_twice() -> None:
    """A put with its signal to the same cell, both at once: the last write stays (two plans)."""
    assert sum(compare(range(1330, 1332)).values()) == 2


def test_wait_that_never_passes_polls_its_cell() -> None:
    """Puts that serve a wait with update are no race, also where none of them lets it pass."""
    assert sum(compare(range(279, 280)).values()) == 1


def test_put_and_add_of_one_process_to_a_cell() -> None:
    """A put and the add of a signal land in either order and are no two puts: no race (a plan)."""
    assert compare(range(447, 448)) == {"proved": 1}


def test_a_copy_and_a_put_to_one_cell_are_two_steps() -> None:
    """A get and a copy may land in one cell in either order: a trace tells which (a plan)."""
    made = instance_of(plan_of(5114))
    system = made.system({})
    seen = {system.initial_transition().state}
    work = list(seen)
    while work:
        enabled = system.transitions(work.pop())
        assert len({each.step for each in enabled}) == len(enabled)
        work += {each.state for each in enabled} - seen
        seen |= {each.state for each in enabled}
    for name in ("deadlock-free", "exactly-once", "race-free", "quiescent"):
        found = check_explicitly(made, question_of(made, "x", properties=(name,)), "reference")
        assert found.trace is not None and replay(found.trace, made).reproduced


@pytest.mark.long
def test_random_protocols_agree_at_length() -> None:
    """The same on 10,000 plans."""
    found = compare(range(10_000))
    assert found["proved"] > 3_000 and found["violated"] > 1_500
