"""One run of a protocol on the emulator, from its options to what it came to."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from syncproof.checkers.emulator.conform import Walk
from syncproof.checkers.emulator.content import Content
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.machine import Machine
from syncproof.checkers.emulator.results import Result, blocked_in, in_flight
from syncproof.checkers.emulator.schedule import Adversary, Ended, run_as_told, run_in_turn
from syncproof.checkers.emulator.threads import run_on_threads
from syncproof.checkers.emulator.watchdog import PATIENCE, watched
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.transitions import PROPERTIES

SCHEDULES = ("deterministic", "free")
Report = Callable[[Machine], None]


@dataclass(frozen=True)
class Options:
    """How a run goes: everything but ``schedule="free"`` is repeated exactly by the same options.

    ``properties`` are those that are judged, besides getting stuck; all if none is named.
    ``domain`` is how many different contents tokens have, 0 for all different; ``sentinel`` is
    the pattern of the sentinel's numbers, None for one that no number has; ``seconds`` and
    ``steps`` end a run that is not over by then, 0 for never. ``patience`` is how many seconds a
    role may stay away from its core.
    """

    seed: int = 0
    schedule: str = "deterministic"
    adversary: str = "random"
    payload: str = "bf16"
    domain: int = 0
    sentinel: int | None = None
    conform: bool = True
    seconds: float = 0.0
    steps: int = 0
    patience: float = PATIENCE
    properties: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise UserError(
                f"no schedule {self.schedule!r}",
                where="--schedule",
                expected=" or ".join(SCHEDULES),
            )


def run(
    instance: Instance,
    options: Options | None = None,
    tell: Callable[[Event], None] | None = None,
    report: Report | None = None,
    begun: Callable[[Machine], None] | None = None,
) -> Result:
    """Run an instance once; every step is also given to ``tell``, and ``begun`` sees the machine.

    `RoleRaised` if a role goes wrong by itself.
    """
    options = options or Options()

    def drive(machine: Machine, is_enough: Callable[[], bool]) -> Ended:
        adversary = Adversary(machine, options.adversary, options.seed)
        if options.schedule == "free":
            return run_on_threads(machine, adversary, is_enough, options.patience)
        with watched(machine, options.patience):
            return run_in_turn(machine, adversary, is_enough)

    return _run(instance, options, drive, tell, report, begun)


def run_scheduled(
    instance: Instance,
    options: Options,
    choose: Callable[[int, int], int],
    tell: Callable[[Event], None] | None = None,
) -> Result:
    """Run an instance; ``choose(turn, n)`` says which of n possible steps comes next."""

    def drive(machine: Machine, is_enough: Callable[[], bool]) -> Ended:
        with watched(machine, options.patience):
            return run_as_told(machine, choose, is_enough)

    return _run(instance, options, drive, tell)


Drive = Callable[[Machine, Callable[[], bool]], Ended]


def _run(
    instance: Instance,
    options: Options,
    drive: Drive,
    tell: Callable[[Event], None] | None = None,
    report: Report | None = None,
    begun: Callable[[Machine], None] | None = None,
) -> Result:
    instance = replace(instance, whole_atoms=True)
    content = Content(options.payload, options.domain, options.sentinel)
    choices: dict[Hashable, Hashable] = {}
    walk: Walk | None = None

    def hear(event: Event) -> None:
        if walk is not None:
            walk.take(event)
        if tell is not None:
            tell(event)

    def is_enough() -> bool:
        if report is not None:
            report(machine)
        if walk is not None and walk.refused is not None:
            return True
        if options.steps and machine.steps >= options.steps:
            return True
        return bool(options.seconds) and time.monotonic() - started >= options.seconds

    machine = Machine(instance, options.seed, content, hear, choices)
    machine.asked = frozenset(options.properties or PROPERTIES)
    started = time.monotonic()
    try:
        if begun is not None:
            begun(machine)
        with watched(machine, options.patience):
            machine.start()
        walk = Walk(instance, choices, content) if options.conform else None
        ended = drive(machine, is_enough)
        if ended == "over":
            machine.judge_end()
        is_told_apart = not options.domain and options.sentinel is None
        return _result(machine, ended, walk, time.monotonic() - started, is_told_apart)
    finally:
        machine.close()
        if walk is not None:
            walk.close()


def _result(
    machine: Machine, ended: Ended, walk: Walk | None, seconds: float, is_told_apart: bool
) -> Result:
    """What a run came to; tokens may have the same bytes unless it ``is_told_apart``."""
    refused = None if walk is None else walk.refused or walk.difference(machine.memory.read)
    wrong = tuple(machine.wrong)
    if walk is not None and refused is None and not wrong and is_told_apart:
        refused = walk.unseen(machine.asked)
    found = Result(
        "complete",
        machine.steps,
        machine.blocks,
        seconds,
        wrong,
        refused=refused,
        choices=machine.choices,
        walked=0 if walk is None else walk.position,
        in_model=() if walk is None else walk.broken,
    )
    if refused is not None:
        return replace(found, outcome="not conforming")
    if wrong:
        return replace(found, outcome="wrong", in_flight=in_flight(machine))
    if ended == "over":
        return found
    return replace(
        found,
        outcome="stuck" if ended == "stuck" else "not finished",
        blocked=blocked_in(machine),
        in_flight=in_flight(machine),
    )
