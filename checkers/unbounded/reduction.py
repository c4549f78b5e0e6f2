"""Which steps of a state of the quotient are explored.

The outlook of the explicit engines runs on from such a state, in its frame and with every answer
to the choices that are not made yet (docs/unbounded.md).
"""

from __future__ import annotations

from enum import Enum
from math import lcm

from syncproof.checkers.explicit.contents import GiveUp
from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.unbounded.channel import LARGEST_MODULUS, NotCovered
from syncproof.checkers.unbounded.system import RoundSystem
from syncproof.models.lowering import ActionKind
from syncproof.models.rounds import NeedsLookback, NeedsModulus, OutsideRounds
from syncproof.models.transitions import State, Transition

ROUNDS_AHEAD = 2
"""An outlook in which a process gets further ahead of all others than this is given up."""

FREE = (ActionKind.ISSUE, ActionKind.FENCE, ActionKind.QUIET, ActionKind.SYNC)


class Reduction(Enum):
    """What is left out: nothing, what waits for a free step, or what is outside a persistent set.

    Only the last rests on the roles beyond the steps that are taken.
    """

    NONE = "none"
    FREE = "free steps"
    SETS = "persistent sets"


def free_steps(system: RoundSystem, state: State, enabled: list[Transition]) -> list[Transition]:
    """The enabled steps, or of these only one that nobody else can see, with all its answers.

    Which one depends on the nodes of the processes and on what is enabled, not on rounds.
    """
    for each in enabled:
        if each.step.kind != "process":
            break
        actions = system.node(state, each.step.process).actions
        if len(actions) == 1 and actions[0].kind in FREE:
            return [t for t in enabled if t.step == each.step]
    return enabled


class QuotientSets(PersistentSets):
    """Persistent sets in states of the quotient, each step with all its answers to choices."""

    def __init__(self, system: RoundSystem, asked: frozenset[str]) -> None:
        super().__init__(system, asked)
        self._rounds = system

    def choose(self, state: State, enabled: list[Transition]) -> list[Transition]:
        """A persistent set of the enabled steps of all systems that the state stands for."""
        system = self._rounds
        rounds = [system.node_of(state, p).round or 0 for p in range(system.processes)]
        system.channel.answers = system.beside.answers(system.beside_of(state))
        system.channel.furthest = max(rounds) + ROUNDS_AHEAD
        try:
            return super().choose(state, enabled)
        except NeedsModulus as needed:
            if lcm(system.channel.modulus, needed.number) <= LARGEST_MODULUS:
                raise  # it is very likely needed anyhow
            return free_steps(system, state, enabled)
        except (GiveUp, NeedsLookback, NotCovered, OutsideRounds):
            return free_steps(system, state, enabled)
