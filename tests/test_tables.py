"""Tables frozen from a system have its states, steps and verdicts, and no Python role."""

from __future__ import annotations

import pytest

from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import Budget, Exploration, Meter, explore
from syncproof.models.errors import UserError
from syncproof.models.system import System
from syncproof.models.tables import TableSystem, Unmet, freeze
from syncproof.models.transitions import PROPERTIES
from tests.bisimulation import compare
from tests.random_protocols import plan_of, systems_of
from tests.small import FlagAfterData, OneRound, instance, with_settings

MOST_STATES = 1500


def everything(system: System, asked: frozenset[str] = frozenset()) -> Exploration:
    """The whole graph of a system, behind failures too where none is asked for."""
    return explore(system, None, asked, Meter(Budget(states=MOST_STATES)), stop_at_first=False)


def random_systems(first: int, last: int, lines: bool = False) -> list[System]:
    """The systems of some seeds whose graphs are complete and without a broken role."""
    found = []
    for seed in range(first, last):
        for system in systems_of(plan_of(seed, lines)):
            try:
                complete = not everything(system).stopped
            except UserError:
                continue
            if complete:
                found.append(system)
    return found


class TestTables:
    """`freeze` and `TableSystem`."""

    @pytest.mark.parametrize("lines", [False, True], ids=["plain", "cached"])
    def test_same_states_and_steps(self, lines: bool) -> None:
        """On random protocols the tables have the same states in the same order as the roles."""
        systems = random_systems(0, 30, lines)
        assert len(systems) > 15
        for system in systems:
            of_roles = everything(system)
            of_tables = everything(TableSystem(freeze(system)))
            assert list(of_tables.parents) == list(of_roles.parents)
            assert of_tables.transitions == of_roles.transitions
            assert len(of_roles.parents) == compare(system, TableSystem(freeze(system)))

    @pytest.mark.parametrize("quiet", [True, False])
    def test_same_findings(self, quiet: bool) -> None:
        """The findings on tables are those on roles, word for word, sound or broken."""
        made = with_settings(instance(FlagAfterData), quiet=quiet)
        system = made.system({})
        of_roles = everything(system, frozenset(PROPERTIES))
        of_tables = everything(TableSystem(freeze(system)), frozenset(PROPERTIES))
        assert bool(of_roles.findings) is not quiet
        assert [f.failure for f in of_tables.findings] == [f.failure for f in of_roles.findings]

    def test_reduced_search_runs_on_its_own_tables(self) -> None:
        """The tables that a reduced search filled are enough for it: 31 states on 3 ranks."""
        system = instance(OneRound, ranks=3).system({})
        for each in (system, None):
            here = each or TableSystem(freeze(system))
            found = explore(here, PersistentSets(here).choose, frozenset(), Meter(Budget()))
            assert (len(found.parents), found.stopped) == (31, "")

    def test_what_was_not_met_is_raised(self) -> None:
        """A table asked for a step that its search did not meet raises and never blocks."""
        system = instance(OneRound).system({})
        with pytest.raises(Unmet, match="sender@rank0, node 0"):
            everything(TableSystem(freeze(system)))

    def test_no_function_of_a_role_is_left(self) -> None:
        """The operations kept for reports have neither condition nor update."""
        system = instance(OneRound).system({})
        everything(system)
        kept = [
            n.operation
            for p in freeze(system).processes
            for n in p.nodes
            if n.operation is not None
        ]
        assert kept and all(each.predicate is None and each.update is None for each in kept)
