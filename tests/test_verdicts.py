"""Verdicts: what is proved, violated, vacuous and not decided, and their JSON form."""

from __future__ import annotations

import json

import pytest

from syncproof.checkers.certificate.check import check as check_by_certificate
from syncproof.checkers.explicit.check import Budget, question_of
from syncproof.checkers.unbounded.check import check as check_unbounded
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.verdict import Answer, Trace, Verdict, from_data, to_data
from tests.small import FlagAfterData, Meeting, OneRound, answers, instance, verdict, with_settings

ENGINES = ("reference", "reduced")


@pytest.mark.parametrize("engine", ENGINES)
def test_sound_protocol_is_proved(engine: str) -> None:
    """Payload, quiet, flag is right on an unordered fabric."""
    found = verdict(instance(FlagAfterData), engine)
    assert set(answers(found).values()) == {Answer.PROVED}


@pytest.mark.parametrize("engine", ENGINES)
def test_missing_quiet_breaks_happens_before(engine: str) -> None:
    """Without the quiet the flag may overtake the payload."""
    found = verdict(with_settings(instance(FlagAfterData), quiet=False), engine)
    assert answers(found)["happens-before"] is Answer.VIOLATED


@pytest.mark.parametrize("engine", ENGINES)
def test_missing_flag_is_a_deadlock(engine: str) -> None:
    """A wait that nobody serves never passes, and the table says whom it waits for."""
    found = verdict(with_settings(instance(FlagAfterData), flag=False), engine)
    assert answers(found)["deadlock-free"] is Answer.VIOLATED
    assert found.trace is not None
    assert {row.process for row in found.trace.waiting} == {"receiver@rank0", "receiver@rank1"}


@pytest.mark.parametrize("engine", ENGINES)
def test_put_that_outlives_its_process_is_not_quiescent(engine: str) -> None:
    """One-round Sentinel Polling ends without a quiet."""
    assert answers(verdict(instance(OneRound), engine))["quiescent"] is Answer.VIOLATED


@pytest.mark.parametrize("engine", ENGINES)
def test_ghost_condition_is_seen_to_hold_and_to_fail(engine: str) -> None:
    """Nobody leaves a sync before all have entered; without the sync somebody does."""
    assert answers(verdict(instance(Meeting), engine))["checks"] is Answer.PROVED
    broken = verdict(with_settings(instance(Meeting), meets=False), engine)
    assert answers(broken)["checks"] is Answer.VIOLATED


class Unreachable(Protocol):
    """Names a place that no run comes to."""

    @role
    async def member(self, core: Core) -> None:
        await core.fence()
        if core.ranks > 100:
            core.reach("many ranks")


@pytest.mark.parametrize("engine", ENGINES)
def test_place_that_no_run_reaches_makes_the_verdict_vacuous(engine: str) -> None:
    """A proof that never gets to what it is about counts as violated."""
    found = verdict(instance(Unreachable), engine)
    assert answers(found)["reached"] is Answer.VIOLATED
    assert found.answer is Answer.VIOLATED


class ReachesInAMethod(Protocol):
    """What a method of the role's names, and what it calls, counts as if the role named it."""

    @role
    async def member(self, core: Core) -> None:
        await core.fence()
        await self.go_on(core)

    async def go_on(self, core: Core) -> None:
        """A part of the role."""
        if core.ranks > 100:
            core.reach("many ranks")


class ReachesByAFunction(ReachesInAMethod):
    async def go_on(self, core: Core) -> None:
        say_where(core)


class ReachesNothing(ReachesInAMethod):
    """Does not do what it would do as the class from which it derives."""

    async def go_on(self, core: Core) -> None:
        await core.fence()


class ReachesBySuper(ReachesInAMethod):
    async def go_on(self, core: Core) -> None:
        await super().go_on(core)


def say_where(core: Core) -> None:
    if core.ranks > 100:
        core.reach("many ranks")


@pytest.mark.parametrize("engine", ENGINES)
def test_places_named_by_what_a_role_calls_have_to_be_reached(engine: str) -> None:
    """A place is named wherever ``core.reach`` stands, if the role may come to it."""
    for kind in (ReachesInAMethod, ReachesByAFunction, ReachesBySuper):
        assert answers(verdict(instance(kind), engine))["reached"] is Answer.VIOLATED
    assert verdict(instance(ReachesNothing), engine).answer is Answer.PROVED


class Catches(Protocol):
    """A choice of which the second answer is wrong, by a role that catches whatever comes."""

    @role(on=(0,))
    async def member(self, core: Core) -> None:
        await core.fence()
        number = 0
        try:
            number = self.number(core)
        except BaseException:
            number = 0
        core.check(number == 0, "the second answer")

    def number(self, core: Core) -> int:
        """Which answer it is."""
        return core.choose("number", (0, 1))


class CatchesByFinally(Catches):
    def number(self, core: Core) -> int:
        found = 0
        for _ in range(1):
            try:
                found = core.choose("number", (0, 1))
            finally:
                break  # noqa: B012
        return found


class CatchesInARound(Catches):
    @role(on=(0,))
    async def member(self, core: Core) -> None:
        for round in core.rounds():
            await core.fence()
            try:
                number = core.choose(("number", round), (0, 1))
            except BaseException:
                number = 0
            core.check(number == 0, "the second answer")


@pytest.mark.parametrize("kind", [Catches, CatchesByFinally, CatchesInARound])
def test_a_role_cannot_hide_a_choice_from_the_search(kind: type[Protocol]) -> None:
    """What ends a run at a choice that is still to be made may be caught, and counts all the same;
    no certificate and no number of rounds is proved either."""
    made = instance(kind)
    asked = question_of(made, "x")
    for engine in ENGINES:
        assert answers(verdict(made, engine))["checks"] is Answer.VIOLATED
    assert check_by_certificate(made, asked, "x", Budget()).answer is Answer.UNDECIDED
    assert check_unbounded(made, asked, "auto", Budget()).answer is not Answer.PROVED


class ThreeInFlight(Protocol):
    """Three puts to one cell, then a flag: soundness.md C7, wrong only with three in flight."""

    def memory(self) -> None:
        self.word = Region(index=(RANK,), block=8)
        self.flag = Region(index=(RANK,), block=8)

    @role(on=(0,))
    async def sender(self, core: Core) -> None:
        for value in (1, 2, 3):
            await core.put(self.word[1][0], value)
        await core.put(self.flag[1][0], 1)
        await core.quiet()

    @role(on=(1,))
    async def receiver(self, core: Core) -> None:
        await core.wait_until(self.flag[1][0], lambda flag: flag == 1)
        core.check(await core.load(self.word[1][0]) != 0, "nothing has landed")


def test_in_flight_bound_is_never_a_proof() -> None:
    """A put beyond the bound makes a verdict undecided; with a larger bound the fault is found."""
    bounded = verdict(instance(ThreeInFlight))
    assert bounded.answer in (Answer.UNDECIDED, Answer.VIOLATED)
    assert Answer.PROVED not in answers(bounded).values()
    enough = verdict(instance(ThreeInFlight, Profile("cm384", in_flight=3)))
    assert Answer.VIOLATED in (answers(enough)["checks"], answers(enough)["race-free"])


class ThreeQuiets(Protocol):
    """Three puts to one cell, each complete before the next."""

    def memory(self) -> None:
        self.word = Region(owner=1, block=8)

    @role(on=(0,))
    async def sender(self, core: Core) -> None:
        for value in (1, 2, 3):
            await core.put(self.word[1], value)
            await core.quiet()


@pytest.mark.parametrize("engine", ENGINES)
def test_bound_met_by_a_landing_is_undecided(engine: str) -> None:
    """What has landed, and others do not see yet, counts against the bound; the detail names it."""
    found = verdict(instance(ThreeQuiets, Profile("late", quiet="target")), engine)
    assert set(answers(found).values()) == {Answer.UNDECIDED}
    assert "in_flight" in found.properties[0].detail
    enough = verdict(instance(ThreeQuiets, Profile("late", quiet="target", in_flight=3)), engine)
    assert set(answers(enough).values()) == {Answer.PROVED}


def test_budget_that_is_used_up_is_undecided() -> None:
    """A search that stops at a limit proves nothing and names the flag to raise."""
    found = verdict(instance(FlagAfterData, ranks=3), states=50)
    assert found.answer is Answer.UNDECIDED
    assert "--budget-states" in found.properties[0].detail


class Pulse(Protocol):
    """A pulses a flag until B answers; B polls with plain loads (soundness.md C16)."""

    def memory(self) -> None:
        self.flag = Region(block=8)
        self.answer = Region(block=8)

    @role(on=(0,))
    async def pulser(self, core: Core) -> None:
        while not await core.load(self.answer[0]):
            await core.put(self.flag[1], 1)
            await core.quiet()
            await core.put(self.flag[1], 0)
            await core.quiet()

    @role(on=(1,))
    async def poller(self, core: Core) -> None:
        while not await core.load(self.flag[1]):
            pass
        await core.put(self.answer[0], 1)
        await core.quiet()


def test_loop_over_loads_terminates_only_under_strong_fairness() -> None:
    """Every state can finish, yet a weakly fair endless run exists: the verdict says so."""
    found = verdict(instance(Pulse))
    (deadlock,) = [each for each in found.properties if each.property == "deadlock-free"]
    assert deadlock.answer is Answer.PROVED
    assert "strong fairness" in deadlock.detail


@pytest.mark.parametrize("quiet", (True, False))
def test_json_round_trips(quiet: bool) -> None:
    """A verdict and its trace come back from JSON as they were."""
    found = verdict(with_settings(instance(FlagAfterData), quiet=quiet))
    assert from_data(Verdict, json.loads(json.dumps(to_data(found))), "v.json") == found
    if found.trace is not None:
        assert (
            from_data(Trace, json.loads(json.dumps(to_data(found.trace))), "t.json") == found.trace
        )


@pytest.mark.parametrize(
    "change",
    (
        {"schema": 2},
        {"kind": "trace"},
        {"states": "many"},
        {"unheard": 1},
        {"properties": [{"property": "deadlock-free", "answer": "perhaps"}]},
        {"engine": None},
    ),
    ids=str,
)
def test_json_of_something_else_is_refused(change: dict[str, object]) -> None:
    """A file of another version, kind or shape is a user's error that says where."""
    data = {**to_data(verdict(instance(FlagAfterData))), **change}
    with pytest.raises(UserError, match=r"v\.json"):
        from_data(Verdict, data, "v.json")
