"""Hypothesis strategies for a user's own pytest: runs of a protocol on the emulator.

    from hypothesis import given
    from syncproof.testing import runs

    @given(runs(MyProtocol, ranks=2))
    def test_my_kernel(run):
        run.check()

A failing run shrinks: first to a plain fabric and few tokens and rounds, then to a schedule that
departs from the simplest one in as few places as possible. Needs the package hypothesis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from hypothesis import strategies
from hypothesis.strategies import DrawFn, SearchStrategy

from syncproof.checkers.emulator.content import FORMATS
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.results import Result, place_text
from syncproof.checkers.emulator.run import Options, run_scheduled
from syncproof.models.bounds import Bounds
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol, Setting

LONGEST_SCHEDULE = 60
MOST_STEPS = 20_000
LAST_SHOWN = 12


@dataclass(frozen=True)
class Schedule:
    """Which of the possible next steps is taken: at each turn a number, 0 for the first of them.

    The first is that of the process or put that has waited longest; behind the end of ``turns``
    it is always taken. So an empty schedule is the plainest run there is.
    """

    turns: tuple[int, ...] = ()

    def choose(self, turn: int, possible: int) -> int:
        """Which of so many possible steps is taken in a turn."""
        return self.turns[turn] % possible if turn < len(self.turns) else 0


@dataclass(frozen=True, repr=False)
class Run:
    """A run to be had: `check` has it and fails if it does not complete, `result` is what it is."""

    instance: Instance
    schedule: Schedule
    fabric: str
    tokens: int
    rounds: int
    seed: int
    payload: str
    conform: bool = True

    def __repr__(self) -> str:
        bounds = self.instance.bounds
        name = self.instance.kind.__name__
        size = f"ranks={bounds.ranks}, tokens={self.tokens}, rounds={self.rounds}"
        how = f"{self.schedule}, seed={self.seed}, payload={self.payload!r}"
        return f"Run({name}, {size}, fabric={self.fabric!r}, {how})"

    @cached_property
    def _ran(self) -> tuple[Result, list[Event]]:
        events: list[Event] = []
        options = Options(
            seed=self.seed, payload=self.payload, steps=MOST_STEPS, conform=self.conform
        )
        result = run_scheduled(self.instance, options, self.schedule.choose, events.append)
        return result, events

    @property
    def result(self) -> Result:
        """What the run comes to."""
        return self._ran[0]

    @property
    def events(self) -> Sequence[Event]:
        """Its steps."""
        return self._ran[1]

    def check(self) -> None:
        """Fail unless every role returns, every byte is right and the model allows every step."""
        result = self.result
        if result.outcome == "complete":
            return
        raise AssertionError(f"{result.outcome} after {result.steps} steps: {_why(result)}")


def _why(result: Result) -> str:
    if result.refused is not None:
        return str(result.refused)
    told = [f"{w.property}: {w.process} {w.message} ({place_text(w.place)})" for w in result.wrong]
    told += [f"{b.process} waits for {b.waits_for}, sees {b.sees}" for b in result.blocked]
    return "; ".join(told[:LAST_SHOWN])


def schedules() -> SearchStrategy[Schedule]:
    """Schedules; they shrink towards the plainest run."""
    turns = strategies.lists(strategies.integers(0, 63), max_size=LONGEST_SCHEDULE)
    return turns.map(lambda found: Schedule(tuple(found)))


def payloads() -> SearchStrategy[str]:
    """Formats of the numbers in a token."""
    return strategies.sampled_from(list(FORMATS))


def fabrics(*names: str) -> SearchStrategy[Profile]:
    """Fabric profiles by name, such as ``"cm384"`` or ``"cm384,store_atomicity=128"``.

    Without a name any that reorders or tears in some way, cm384 first.
    """
    known = names or (
        "cm384",
        "cm384,ordering=per_pair",
        "cm384,store_atomicity=128",
        "cm384,store_atomicity=128,in_block_order=ascending",
    )
    return strategies.sampled_from([_profile(name) for name in known])


@cache
def _profile(text: str) -> Profile:
    return load_profile(text)


@strategies.composite
def runs(
    draw: DrawFn,
    protocol: type[Protocol],
    *,
    ranks: int = 2,
    tokens: int | SearchStrategy[int] = 1,
    rounds: int | SearchStrategy[int] = 3,
    experts: int = 0,
    topk: int = 0,
    routing: Any = "all",
    fabric: str | SearchStrategy[Profile] = "cm384",
    settings: Mapping[str, Setting] | None = None,
    conform: bool = True,
) -> Run:
    """Runs of a protocol; what is given as a strategy is drawn, too.

    ``settings`` are parameters by name, and assumptions as True or False; ``conform`` says whether
    each step is walked through the model.
    """
    profile = _profile(fabric) if isinstance(fabric, str) else draw(fabric)
    number_of_tokens = tokens if isinstance(tokens, int) else draw(tokens)
    number_of_rounds = rounds if isinstance(rounds, int) else draw(rounds)
    bounds = Bounds(ranks, number_of_tokens, number_of_rounds, experts, topk, routing)
    instance = Instance(protocol, bounds, profile, dict(settings or {}))
    seed = draw(strategies.integers(0, 999))
    payload = draw(payloads())
    schedule = draw(schedules())
    return Run(
        instance, schedule, profile.name, number_of_tokens, number_of_rounds, seed, payload, conform
    )


__all__ = ["Run", "Schedule", "fabrics", "payloads", "runs", "schedules"]
