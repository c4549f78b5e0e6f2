"""Strides: a step together with the free steps that it makes possible, taken at once.

A free step (docs/soundness.md) is persistent alone, so the others need not be taken before it. In
a stride they never are: no state is kept in which a process has a free step, and the steps of a
stride are one move of the tables. Only the process that a step moved can have a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from syncproof.checkers.explicit.persistent import FREE, is_free
from syncproof.checkers.fast.layout import Layout
from syncproof.checkers.fast.place import Place
from syncproof.models.errors import UserError
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.nodes import TooLong
from syncproof.models.system import System
from syncproof.models.transitions import Failure, Overfull, State, Transition

LONGEST = 256
"""The most steps of a stride: free steps may go round for ever, and then some states are kept."""


@dataclass(frozen=True)
class Stride:
    """Steps that are one move, and the places that decide which free steps are among them."""

    steps: tuple[Transition, ...]
    looked: tuple[Place, ...] = ()

    @property
    def state(self) -> State:
        """The state behind the last step."""
        return self.steps[-1].state

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What goes wrong in all steps."""
        return tuple(failure for step in self.steps for failure in step.failures)

    @property
    def reached(self) -> tuple[str, ...]:
        """What is reached in all steps."""
        return tuple(place for step in self.steps for place in step.reached)


class Strides:
    """The strides of a system; of one step each unless it ``reduces``."""

    def __init__(
        self, system: System, layout: Layout, asked: frozenset[str], reduces: bool
    ) -> None:
        self.system, self.layout, self.asked, self.reduces = system, layout, asked, reduces

    def start(self) -> Stride:
        """The stride into the first state that is kept."""
        return self._from(self.system.initial_transition(), range(self.system.processes))

    def enabled(self, state: State) -> list[Stride]:
        """All strides from a state, in the order of their first steps."""
        return [self.along(state, step) for step in self.system.transitions(state)]

    def along(self, state: State, first: Transition) -> Stride:
        """The stride that begins with a step from ``state``."""
        return self._from(first, self._moved(state, first) if self.reduces else ())

    def _moved(self, state: State, step: Transition) -> Sequence[int]:
        """The processes that may have a free step behind a step and had none before it."""
        process = step.step.process
        if step.step.kind != "process":
            return (process,) if self._lets_a_quiet_pass(state, step.state, process) else ()
        action = self.system.node(state, process).actions[step.step.what[0]]
        return action.members or (process,)

    def _lets_a_quiet_pass(self, before: State, after: State, process: int) -> bool:
        """Whether some quiet of a process may pass only now; its outbox alone tells."""
        targets = {each.packet.target for each in self.system.outbox(before, process)}
        quiet = self.system.is_quiet
        return any(
            quiet(after, process, target) and not quiet(before, process, target)
            for target in (-1, *sorted(targets))
        )

    def _from(self, first: Transition, moved: Sequence[int]) -> Stride:
        steps, looked = [first], dict[Place, None]()
        waiting = list(moved) if self.reduces else []
        while waiting and len(steps) < LONGEST and not self._ends(steps[-1]):
            state = steps[-1].state
            members = self._joining(state, waiting[0], looked)
            free = self._free_step(state, members) if members else None
            if free is None:
                waiting.pop(0)
                continue
            steps.append(free)
            looked.update(dict.fromkeys(self._told_by_returns(free.state, members)))
            waiting += [each for each in members if each not in waiting]
        return Stride(tuple(steps), tuple(looked))

    def _free_step(self, state: State, members: Sequence[int]) -> Transition | None:
        """The step that processes take together, if it is enabled, free and goes right."""
        try:
            found = self.system.process_transitions(state, min(members))
        except (Overfull, TooLong, UserError):
            return None  # met again, and told, when the state is expanded
        return found[0] if found and is_free(self.system, state, found[0]) else None

    def _ends(self, step: Transition) -> bool:
        """Whether a run is over behind a step, as what it did is wrong."""
        return any(each.property in self.asked for each in step.failures)

    def _joining(self, state: State, process: int, looked: dict[Place, None]) -> tuple[int, ...]:
        """The processes that move if ``process`` takes a free step; none if it surely cannot.

        Notes the places that tell.
        """
        nodes = self.layout.nodes
        looked[nodes[process]] = None
        action = self._only_free_action(state, process)
        if action is None:
            return ()
        if action.kind is not ActionKind.SYNC:
            looked[self.layout.outboxes[process]] = None
            return (process,)
        for member in action.members:
            looked[nodes[member]] = None
            its = self._only_free_action(state, member)
            if its is None or (its.kind, its.group) != (action.kind, action.group):
                return ()
        return action.members

    def _only_free_action(self, state: State, process: int) -> Action | None:
        """What a process is about to do, if it has no choice and the step may be free."""
        node = self.system.node(state, process)
        is_single = node.state == "run" and len(node.actions) == 1
        return node.actions[0] if is_single and node.actions[0].kind in FREE else None

    def _told_by_returns(self, state: State, members: Sequence[int]) -> Iterator[Place]:
        """What decides whether members that return with a step leave puts in flight."""
        for member in members:
            if self.system.node(state, member).state == "done":
                yield self.layout.outboxes[member]
