"""SPIN as an opinion from outside: the same counts and verdicts on Promela from our tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from syncproof.checkers import spin
from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import Budget, Exploration, Meter, explore
from syncproof.checkers.promela import promela
from syncproof.checkers.spin import Limits, SpinResult, read_answer, run_spin
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.memory import Region
from syncproof.models.minimise import minimise
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.system import System
from syncproof.models.tables import Tables, TableSystem, freeze
from tests.random_protocols import Instruction, Plan, plan_of, systems_of
from tests.small import FlagAfterData, Meeting, OneRound, instance, with_settings

SC = Profile("sc", immediate=True)


def everything(system: System) -> Exploration:
    """The whole graph of a system, behind failures too."""
    return explore(system, None, frozenset(), Meter(Budget()), stop_at_first=False)


def reduced_tables(ranks: int, tokens: int) -> Tables:
    """The tables of one-round Sentinel Polling, filled by a reduced search: all edges are met."""
    system = instance(OneRound, ranks=ranks, tokens=tokens).system({})
    choose = PersistentSets(system).choose
    explore(system, choose, frozenset(), Meter(Budget()), stop_at_first=False)
    return freeze(system)


def counts(found: SpinResult) -> tuple[int, int]:
    """States and transitions as we count them: entering the initial state is none."""
    assert not found.error
    return found.states, found.transitions - 1


class TwoTurnstiles(Protocol):
    """The reusable barrier of tlaplus/Examples (Barriers.tla): two turnstiles and a lock.

    Each operation is one action of the specification; a fence is one that only tests or skips (what
    it tests is known since the step before, as the lock is held).
    """

    members: int = parameter(2, "how many processes meet again and again")

    def memory(self) -> None:
        self.lock = Region(owner=0, block=8, initial=1)
        self.gate = Region(owner=0, index=(2,), block=8)
        self.inside = Region(owner=0, block=8)

    @role(instances="members", on=(0,))
    async def member(self, core: Core) -> None:
        while True:
            await core.fence()
            await self.turnstile(core, 0, 1, self.members)
            await self.turnstile(core, 1, -1, 0)

    async def turnstile(self, core: Core, gate: int, step: int, last: int) -> None:
        """Count in (or out); the last one opens the gate for all."""
        await core.wait_until(self.lock[0], lambda free: free == 1, lambda free: 0)
        is_last = await core.fetch_add(self.inside[0], step) + step == last
        await core.fence()
        if is_last:
            await core.fetch_add(self.gate[0][gate], self.members)
        del is_last
        await core.put(self.lock[0], 1)
        await core.wait_until(self.gate[0][gate], lambda count: count > 0, lambda count: count - 1)


@pytest.mark.outside("spin", "gcc")
class TestPublishedCounts:
    """Counts that others have published, or that a hand-written Promela model gives."""

    @pytest.mark.parametrize(("ranks", "states", "steps"), [(2, 36, 60), (3, 10_252, 44_898)])
    def test_one_round(self, ranks: int, states: int, steps: int) -> None:
        """One-round Sentinel Polling has the published counts in SPIN and in our own search."""
        system = instance(OneRound, ranks=ranks).system({})
        found = everything(system)
        assert (len(found.parents), found.transitions) == (states, steps)
        assert counts(run_spin(promela(freeze(system)), optimise=False)) == (states, steps)

    @pytest.mark.long
    def test_five_million_states(self) -> None:
        """3 ranks, 2 tokens: 5,447,512 states and 41,279,233 transitions as SPIN counts them."""
        found = run_spin(promela(minimise(reduced_tables(3, 2))))
        assert (found.states, found.transitions) == (5_447_512, 41_279_233)

    @pytest.mark.long
    def test_spins_own_reduction(self) -> None:
        """With declared channels SPIN's reduction leaves as much as of the hand-written model."""
        model = promela(minimise(reduced_tables(3, 2)), declared=True)
        found = run_spin(model, reduce=True)
        assert (found.states, found.transitions) == (1_126_412, 4_300_813)

    @pytest.mark.parametrize(
        ("members", "states", "steps"),
        [(2, 75, 113), (3, 353, 709), (4, 1567, 3957), (5, 6805, 20_731)],
    )
    def test_two_turnstiles(self, members: int, states: int, steps: int) -> None:
        """TLA+'s barrier has the counts of TLC (with the initial state, as SPIN counts too)."""
        made = with_settings(instance(TwoTurnstiles, SC, ranks=1), members=members)
        system = made.system({})
        found = everything(system)
        assert (len(found.parents), found.transitions + 1) == (states, steps)
        its = run_spin(promela(freeze(system), assertions=True), stuck=True, optimise=False)
        assert (its.states, its.transitions, its.error) == (states, steps, "")


def covered(plan: Plan) -> Plan:
    """The plan with what the Promela model has no words for replaced by something that it has."""
    profile = replace(
        plan.profile,
        ordering="none",
        same_address_order=True,
        load_order="program",
        quiet="all",
        atomics="one_domain",
        in_block_order="any",
        fence="drains",
        hops={},
    )
    instead = {
        "ghost_update": "quiet",
        "ghost_check": "check",
        "put_with_signal": "put",
        "put_nbi": "put",
        "get_nbi": "load",
    }

    def one(each: Instruction) -> Instruction:
        return replace(each, kind=instead.get(each.kind, each.kind))

    programs = tuple(tuple(map(one, program)) for program in plan.programs)
    return replace(plan, profile=profile, programs=programs)


def compare_counts(seed: int) -> None:
    """SPIN and the reference search count alike, on the tables as met and minimised."""
    for system in systems_of(covered(plan_of(seed))):
        try:
            found = everything(system)
        except UserError:
            continue
        if found.stopped:
            continue
        tables = freeze(system)
        its = run_spin(promela(tables), optimise=False, limits=Limits(depth=100_000))
        assert counts(its) == (len(found.parents), found.transitions)
        fewer = minimise(tables)
        if fewer != tables:
            smaller = everything(TableSystem(fewer))
            its = run_spin(promela(fewer), optimise=False, limits=Limits(depth=100_000))
            assert counts(its) == (len(smaller.parents), smaller.transitions)
        return


@pytest.mark.outside("spin", "gcc")
class TestAgreement:
    """SPIN agrees where nobody has published a number."""

    @pytest.mark.parametrize("seed", [3, 7, 16, 24])
    def test_random_protocols(self, seed: int) -> None:
        """Random protocols with syncs, atomics, adds, quiets and overlapping puts count alike."""
        compare_counts(seed)

    @pytest.mark.long
    @pytest.mark.parametrize("first", range(100, 200, 20))
    def test_many_random_protocols(self, first: int) -> None:
        """The same on a hundred more."""
        for seed in range(first, first + 20):
            compare_counts(seed)

    @pytest.mark.parametrize(
        ("settings", "error"),
        [
            ({}, ""),
            ({"quiet": False}, "assertion violated"),
            ({"flag": False}, "invalid end state"),
        ],
        ids=["sound", "stale", "hang"],
    )
    def test_verdicts(self, settings: dict[str, bool], error: str) -> None:
        """SPIN proves the sound protocol, and finds the wrong data and the hang of the others."""
        system = with_settings(instance(FlagAfterData), **settings).system({})
        everything(system)
        found = run_spin(promela(freeze(system), assertions=True), stuck=True, optimise=False)
        assert found.error.startswith(error) and bool(found.error) == bool(error)

    def test_hang_in_a_sync(self) -> None:
        """A process that waits in a sync for one that never comes is found, without a label."""
        system = instance(Waiting).system({})
        everything(system)
        model = promela(freeze(system), assertions=True)
        assert "assertion" in run_spin(model, stuck=True, optimise=False).error

    def test_incomplete_tables_are_not_blocked_silently(self) -> None:
        """On tables that lack a step SPIN reports a failed assertion, not fewer states."""
        system = instance(OneRound).system({})
        everything(system)
        tables = freeze(system)
        sender = tables.processes[0]
        nodes = tuple(replace(node, edges={}) for node in sender.nodes)
        partial = replace(tables, processes=(replace(sender, nodes=nodes), *tables.processes[1:]))
        assert "assertion" in run_spin(promela(partial), optimise=False).error


class Waiting(Protocol):
    """Rank 0 waits in a sync for rank 1, which waits for a flag that nobody puts."""

    def memory(self) -> None:
        self.flag = Region(block=8)

    @role
    async def member(self, core: Core) -> None:
        if core.rank:
            await core.wait_until(self.flag[0], lambda flag: flag == 1)
        await core.sync("all")


class TestRefusals:
    """What the model does not cover is named; none of this needs SPIN."""

    @pytest.mark.parametrize(
        ("key", "value", "named"),
        [
            ("ordering", "per_pair", "ordered links"),
            ("same_address_order", False, "overtake each other on one address"),
            ("load_order", "none", "load_order: none"),
            ("quiet", "target", "quiet: target"),
        ],
    )
    def test_fabrics(self, key: str, value: str | bool, named: str) -> None:
        """A fabric that the model has no words for is refused by name."""
        profile = Profile("weak").changed({key: value})
        with pytest.raises(UserError, match=named):
            promela(freeze(instance(OneRound, profile).system({})))

    def test_ghosts(self) -> None:
        """A protocol with ghost statements is refused."""
        system = instance(Meeting).system({})
        everything(system)
        with pytest.raises(UserError, match="ghosts"):
            promela(freeze(system))

    def test_channels_with_a_quiet(self) -> None:
        """A quiet looks into channels that SPIN may then not reduce by, so it is refused."""
        system = instance(FlagAfterData).system({})
        everything(system)
        with pytest.raises(UserError, match="a quiet"):
            promela(freeze(system), declared=True)


class TestPrograms:
    """Missing and failing programs, and answers that are not complete."""

    def test_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without SPIN the error is one line that names the program."""
        monkeypatch.setattr(spin, "missing_programs", lambda: ("spin",))
        with pytest.raises(UserError, match="spin cannot be found"):
            run_spin("")

    @pytest.mark.outside("spin", "gcc")
    def test_not_promela(self) -> None:
        """Text that is no model gives SPIN's own complaint in one line."""
        with pytest.raises(UserError, match="spin ended with 1"):
            run_spin("active proctype p() { nonsense")

    @pytest.mark.outside("spin", "gcc")
    def test_limit(self) -> None:
        """A search that is cut off at the depth limit is an error, not a count."""
        system = instance(OneRound).system({})
        everything(system)
        with pytest.raises(UserError, match="max search depth too small"):
            run_spin(promela(freeze(system)), optimise=False, limits=Limits(depth=5))

    def test_answer_without_numbers(self) -> None:
        """Output of another program is refused."""
        with pytest.raises(UserError, match="SPIN"):
            read_answer("hello\n")
