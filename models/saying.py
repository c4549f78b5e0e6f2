"""What a role says to the proof: failures, places reached, and ghost state."""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence

from syncproof.models.errors import UserError
from syncproof.models.operations import (
    Consumed,
    Failed,
    GhostCheck,
    GhostUpdate,
    Reached,
    Sent,
    Statement,
)
from syncproof.models.transitions import Failure, Interned
from syncproof.models.values import refuse_changeable, typed

Held = frozenset[tuple[tuple[str, Hashable], tuple[Hashable, Hashable]]]
"""What ghosts hold under their keys: a value, and before it a key that tells 1 from True."""

ABOUT_GHOSTS = (GhostUpdate, GhostCheck)


def check_held(statement: GhostUpdate | GhostCheck, ghosts: Container[str]) -> None:
    """Refuse what is said on a ghost that the protocol does not hold: nobody would judge it."""
    if statement.ghost not in ghosts:
        raise UserError(
            f"the ghost {statement.ghost or 'that a role speaks of'} is none of the protocol's",
            expected="an attribute of the protocol: self.seen = Ghost()",
        )


class Ghosts:
    """State that only the proof sees; ``at`` is its place in a state."""

    def __init__(self, initial: Mapping[str, Hashable], at: int) -> None:
        self.initial = dict(initial)
        self.at = at
        self.known = Interned(frozenset())

    def _held(self, work: Sequence[int]) -> Held:
        held: Held = self.known.known[work[self.at]]  # type: ignore[assignment]
        return held

    def value(self, work: Sequence[int], name: str, key: Hashable) -> Hashable:
        """What a ghost holds under a key."""
        _, value = dict(self._held(work)).get((name, key), (None, self.initial.get(name, 0)))
        return value

    def set(self, work: list[int], name: str, key: Hashable, value: Hashable) -> None:
        """Change what a ghost holds under a key."""
        refuse_changeable(value, f"what the ghost {name} holds")
        updated = dict(self._held(work)) | {(name, key): (typed(value), value)}
        work[self.at] = self.known.number(frozenset(updated.items()))

    def hear(
        self,
        work: list[int],
        process: int,
        statements: Sequence[Statement],
        failures: list[Failure],
        reached: list[str],
    ) -> None:
        """Judge what a process says at the end of a step; ghosts change in ``work``."""
        for each in statements:
            if type(each) is Sent:
                continue
            if isinstance(each, ABOUT_GHOSTS):
                check_held(each, self.initial)
            if isinstance(each, Consumed) and each.failure:
                failures.append(Failure("happens-before", each.failure, process, each.expected))
            elif isinstance(each, Failed):
                failures.append(Failure("checks", each.message, process))
            elif isinstance(each, Reached):
                reached.append(each.name)
            elif isinstance(each, GhostUpdate):
                old = self.value(work, each.ghost, each.key)
                self.set(work, each.ghost, each.key, each.function(old, *each.arguments))
            elif isinstance(each, GhostCheck) and not each.predicate(
                self.value(work, each.ghost, each.key), *each.arguments
            ):
                failures.append(Failure("checks", each.message, process))
