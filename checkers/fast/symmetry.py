"""Symmetry that is checked, not assumed: processes whose tables are the same.

Members of an orbit are processes between which every permutation is a symmetry: it renames the
processes, what they hold and what they have in flight, and nothing else. That is so if in each
situation met (what a member holds, and the places that its step looks at) every member does the
same: it writes the same contents, says the same, accesses the same cells, and goes on to what has
the same number. Numbers are given in lock-step: one for what each member holds in its own tables.
Whatever breaks this raises `Asymmetric`, and the search begins anew without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from syncproof.checkers.fast.place import Content, Place
from syncproof.models.system import System
from syncproof.models.transitions import State


class Asymmetric(Exception):
    """Two members of an orbit do not do the same; the text says what."""


@dataclass(frozen=True)
class Orbit:
    """Processes that are taken to be interchangeable, and the places of node and outbox of each."""

    processes: tuple[int, ...]
    places: tuple[Place, ...]

    def number(self, system: System, contents: Sequence[Content]) -> int:
        """The code of what the members hold, each in its own tables."""
        known = {place.known(content) for place, content in zip(self.places, contents, strict=True)}
        if len(known) != 1:
            raise Asymmetric("members that did the same are in different situations")
        code = known.pop()
        if code is not None:
            return code
        ends = set()
        for process, (node_number, _) in zip(self.processes, contents, strict=True):
            node = system.automata[process].nodes[node_number]
            ends.add((node.state, node.ledger, node.in_sweep))
        if len(ends) != 1:
            raise Asymmetric("members sent or consumed different tokens")
        codes = {place.code(content) for place, content in zip(self.places, contents, strict=True)}
        return codes.pop()

    def swapped(self, state: State, one: int, other: int) -> State:
        """The state in which two members have changed their roles."""
        if one == other:
            return state
        work = list(state)
        first, second = self.places[one], self.places[other]
        mine, its = first.known(first.of(state)), second.known(second.of(state))
        assert mine is not None and its is not None
        for place, code in ((first, its), (second, mine)):
            for position, value in zip(place.positions, place.contents[code], strict=True):
                work[position] = value
        return tuple(work)

    def describe(self, system: System) -> str:
        """The orbit in words."""
        members = [str(system.automata[process].process) for process in self.processes]
        return f"any permutation of {members[0]} … {members[-1]} ({len(members)} processes)"


def guesses(system: System) -> Iterator[list[tuple[int, ...]]]:
    """Groups of processes that may be interchangeable, the largest first; no group at last."""
    by_role: dict[object, list[int]] = {}
    by_rank: dict[object, list[int]] = {}
    for automaton in system.automata:
        process = automaton.process
        by_role.setdefault(process.role, []).append(process.number)
        by_rank.setdefault((process.role, process.rank), []).append(process.number)
    tried: list[list[tuple[int, ...]]] = [[]]
    for groups in (by_role, by_rank):
        found = [tuple(each) for each in groups.values() if len(each) > 1]
        if found not in tried:
            tried.append(found)
            yield found
    yield []
