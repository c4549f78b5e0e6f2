"""Who takes the next step: a seeded scheduler, with adversaries that know what hurts."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from operator import attrgetter
from typing import Literal

from syncproof.checkers.emulator.flights import Flight
from syncproof.checkers.emulator.machine import Machine
from syncproof.checkers.emulator.operations import step
from syncproof.checkers.emulator.processes import Emulated
from syncproof.models.errors import UserError

Actor = Emulated | Flight
Ended = Literal["over", "stuck", "wrong", "budget"]

ADVERSARIES = {
    "random": "another mixture of haste and delay for each seed",
    "starve-region": "what is put to one region lands only when nothing else can happen",
    "starve-process": "one process goes on only when nothing else can happen",
    "stop-rank": "one rank after the other stands still while the others can go on",
    "hold-last-atom": "the last atom of each put lands only when nothing else can happen",
    "starve-link": "one link delivers only when nothing else can happen",
    "newest-first": "what was put last lands first",
}
"""The adversaries of ``--adversary``, each with what it does."""

HOLDS_PUTS = ("starve-link", "hold-last-atom", "starve-region")

NUMBER = attrgetter("number")
LOOKS_EVERY = 1024
STOPPED_FOR = 200
"""Steps after which `stop-rank` stops another rank."""
GIVES_UP_A_LINE = 0.02
"""How often a core's cache gives up a line of its own accord, in a step."""


class Adversary:
    """Chooses the next step among all that are possible; everything is drawn from the seed."""

    def __init__(self, machine: Machine, name: str, seed: int) -> None:
        if name not in ADVERSARIES:
            raise UserError(
                f"no adversary {name!r}", where="--adversary", expected=" or ".join(ADVERSARIES)
            )
        self.machine, self.name = machine, name
        self.random = random.Random(f"{seed} {name}")
        ranks = machine.instance.bounds.ranks
        self._haste = self.random.choice((0.02, 0.1, 0.3, 0.5, 0.8))
        self._link = (self.random.randrange(ranks), self.random.randrange(ranks))
        self._stopped, self._until = self.random.randrange(ranks), STOPPED_FOR
        self._cells, self._process = self._cells_of_a_region(seed), self._any_process()
        self._order: dict[Actor, float] = {}
        self._ranked = name == "random" and self.random.random() < 0.5

    def choose(self) -> Actor | None:
        """The next to act; None if nobody can."""
        fabric = self.machine.fabric
        if not fabric.ready.things and not fabric.free.things:
            return None
        if self.name in HOLDS_PUTS:
            return self._unless(self._is_held_put)
        if self.name == "starve-process":
            return self._unless(lambda each: each is self._process)
        if self.name == "stop-rank":
            return self._stop_a_rank()
        if self.name == "newest-first" and fabric.free and not self._is_a_process_next():
            return max(fabric.free.things, key=NUMBER)
        if self._ranked:
            return self._of_highest_rank()
        return self._any()

    # Where threads choose for themselves

    def holds(self, process: Emulated) -> bool:
        """Whether a thread has to wait although its process could take a step."""
        if self.name == "starve-process":
            return process is self._process and self._others_can_go_on()
        if self.name != "stop-rank":
            return False
        if self.machine.steps >= self._until:
            self._stop_another()
        return process.rank == self._stopped and self._can_go_on(process.rank)

    def among(self, free: list[Flight]) -> Flight | None:
        """Which of some flights lands next; None if all are to be held back."""
        if self.name == "newest-first":
            return max(free, key=NUMBER)
        if self.name in HOLDS_PUTS:
            held = [each for each in free if self._is_held(each)]
            others = [each for each in free if each not in held]
            if others:
                return self.random.choice(others)
            if self.machine.fabric.ready or len(held) < len(self.machine.fabric.free):
                return None if self.random.random() < 0.9 else self.random.choice(held)
        return self.random.choice(free)

    def _others_can_go_on(self) -> bool:
        """Whether anybody but the starved process can."""
        fabric = self.machine.fabric
        return bool(fabric.free) or any(each is not self._process for each in fabric.ready)

    def _can_go_on(self, stopped: int) -> bool:
        """Whether anybody but a rank can."""
        fabric = self.machine.fabric
        return bool(fabric.free) or any(each.rank != stopped for each in fabric.ready)

    def _stop_another(self) -> None:
        self._until = self.machine.steps + self.random.randrange(1, 2 * STOPPED_FOR)
        self._stopped = self.random.randrange(self.machine.instance.bounds.ranks)

    # Where one after the other acts

    def _any(self) -> Actor:
        fabric = self.machine.fabric
        if self._is_a_process_next():
            return fabric.ready.draw(self.random)
        return fabric.free.draw(self.random)

    def _is_a_process_next(self) -> bool:
        fabric = self.machine.fabric
        if not fabric.free.things or not fabric.ready.things:
            return bool(fabric.ready.things)
        return self.random.random() > self._haste

    def _unless(self, is_held: Callable[[Actor], bool]) -> Actor:
        """Anything that is not held back, while there is something of the kind."""
        for _ in range(4):
            chosen = self._any()
            if not is_held(chosen):
                return chosen
        others = [each for each in self._all() if not is_held(each)]
        return self.random.choice(others) if others else self._any()

    def _all(self) -> list[Actor]:
        fabric = self.machine.fabric
        return [*fabric.ready.things, *fabric.free.things]

    def _is_held_put(self, actor: Actor) -> bool:
        return isinstance(actor, Flight) and self._is_held(actor)

    def _is_held(self, flight: Flight) -> bool:
        if self.name == "hold-last-atom":
            return flight.is_last
        if self.name == "starve-region":
            return not self._cells.isdisjoint(flight.cells)
        owner = flight.owner
        source = self.machine.processes[owner].rank if owner >= 0 else -1
        return (source, flight.target) == self._link

    def _cells_of_a_region(self, seed: int) -> frozenset[int]:
        """Those of the largest blocks first, as data hurts when it comes late; all adversaries
        taken in turn, the next region every time."""
        layout = self.machine.memory.layout
        if self.name != "starve-region" or not layout.regions:
            return frozenset()
        regions = sorted(layout.regions, key=lambda each: -each.block)
        name = regions[seed // len(ADVERSARIES) % len(regions)].name
        cells = enumerate(layout.cells)
        return frozenset([cell for cell, each in cells if each.slot.region.name == name])

    def _any_process(self) -> Emulated | None:
        processes = self.machine.processes
        if self.name != "starve-process" or not processes:
            return None
        return self.random.choice(processes)

    def _stop_a_rank(self) -> Actor:
        if self.machine.steps >= self._until:
            self._stop_another()
        stopped = self._stopped
        return self._unless(lambda each: isinstance(each, Emulated) and each.rank == stopped)

    def _of_highest_rank(self) -> Actor:
        """Random priorities that seldom change: long delays, as in a probabilistic checker."""
        if self.random.random() < 0.02:
            self._order.clear()
        ranks, actors = self._order, self._all()
        for each in actors:
            if each not in ranks:
                ranks[each] = self.random.random()
        return max(actors, key=ranks.__getitem__)


def act(machine: Machine, actor: Actor) -> None:
    """Let a process take a step, or the fabric deliver."""
    if isinstance(actor, Flight):
        machine.fabric.deliver(actor)
    else:
        step(machine, actor)


def run_in_turn(
    machine: Machine,
    adversary: Adversary,
    is_enough: Callable[[], bool] = lambda: False,
) -> Ended:
    """One step after the other until the run is over, wrong or stuck, or ``is_enough`` says so."""
    caches = bool(machine.memory.lines)
    fabric = machine.fabric
    for number in count(1):
        if machine.wrong:
            break
        actor = adversary.choose()
        if actor is None:
            return "over" if machine.is_over else "stuck"
        act(machine, actor)
        if caches and adversary.random.random() < GIVES_UP_A_LINE:
            give_up_a_line(machine, adversary.random)
        if number % LOOKS_EVERY == 0:
            fabric.woken.clear()
            fabric.freed.clear()
            machine.remember_less()
            if is_enough():
                return "budget"
    return "wrong"


def run_as_told(
    machine: Machine, choose: Callable[[int, int], int], is_enough: Callable[[], bool]
) -> Ended:
    """``choose(turn, n)`` picks each step among n possible ones, the oldest of which is step 0.

    So a chooser that always says 0 is fair to all.
    """
    fabric, waiting = machine.fabric, dict[Actor, None]()
    for turn in count():
        if machine.wrong:
            return "wrong"
        possible = [*fabric.ready, *fabric.free]
        for each in possible:
            waiting.setdefault(each)
        present = set(possible)
        for each in [each for each in waiting if each not in present]:
            del waiting[each]
        if not waiting:
            return "over" if machine.is_over else "stuck"
        actor = list(waiting)[choose(turn, len(waiting))]
        del waiting[actor]
        act(machine, actor)
        if turn % LOOKS_EVERY == 0 and is_enough():
            break
    return "budget"


def give_up_a_line(machine: Machine, random: random.Random) -> None:
    """Some core's cache gives up some line."""
    held = [(process, line) for process in machine.processes for line in process.cache]
    if held:
        machine.fabric.give_up_line(*random.choice(held))
