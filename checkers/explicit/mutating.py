"""The mutants of an instance, found by filling its tables with one search."""

from __future__ import annotations

from collections.abc import Hashable

from syncproof.checkers.explicit.check import assignments
from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import Budget, Meter, explore
from syncproof.models.core import Unresolved
from syncproof.models.instance import Instance
from syncproof.models.mutants import Mutant, mutants_of
from syncproof.models.system import System

MOST_STATES = 20_000
MOST_ASSIGNMENTS = 64
ENDS_A_RUN = frozenset({"happens-before", "checks"})


def find_mutants(instance: Instance) -> list[Mutant]:
    """Every mutant whose operation some run of the instance comes to, within a small budget.

    The list may be short where the instance is too large to search, so ask at few ranks, and
    where it is wrong: nothing is looked for behind a failure.
    """
    systems: list[System] = []
    pending: list[dict[Hashable, Hashable]] = [dict(each) for each in assignments(instance)]
    while pending and len(systems) < MOST_ASSIGNMENTS:
        choices = pending.pop()
        try:
            system = instance.system(choices)
            covered = PersistentSets.covers(system)
            choose = PersistentSets(system, ENDS_A_RUN).choose if covered else None
            explore(
                system, choose, ENDS_A_RUN, Meter(Budget(states=MOST_STATES)), stop_at_first=False
            )
        except Unresolved as choice:
            pending += [{**choices, choice.name: value} for value in choice.values]
            continue
        systems.append(system)
    return mutants_of(instance, systems)
