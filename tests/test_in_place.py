"""The walk that changes its state in place, held against the system step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from syncproof.checkers.emulator import conform, fabric
from syncproof.checkers.emulator.conform import Walk
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.fabric import Fabric
from syncproof.checkers.emulator.in_place import Box, InPlace
from syncproof.checkers.emulator.machine import Machine, RoleRaised
from syncproof.checkers.emulator.run import Options, run
from syncproof.checkers.emulator.schedule import ADVERSARIES
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol, role
from tests.random_protocols import instance_of, plan_of
from tests.test_emulator import PROVED
from tests.test_emulator import instance_of as protocol

SEEDS = 80
MANY_SEEDS = 3_000
NAMES = list(ADVERSARIES)


def steps_of(made: Instance, options: Options) -> tuple[Machine, list[Event]]:
    """The steps of a run that nobody has walked, and the machine that took them."""
    machines: list[Machine] = []
    told: list[Event] = []
    run(made, replace(options, conform=False), told.append, begun=machines.append)
    return machines[0], told


def place_of(walk: Walk) -> Any:
    """Where a walk stands, value numbers replaced by what they stand for."""
    system, places = walk.system, []
    for state in walk.states:
        nodes = [system.node(state, process) for process in range(system.processes)]
        cells = state[system.first_cell : system.first_outbox]
        boxes = [
            [
                (
                    each.packet._replace(writes=()),
                    [(cell, value >= 0 and system.values[value], m) for cell, value, m in writes],
                    len(each.after),
                    len(each.read_after),
                )
                for each in system.outbox(state, process)
                for writes in [each.packet.writes]
            ]
            for process in range(system.processes)
        ]
        progress = [[(cell, system.values[value]) for cell, value in n.progress] for n in nodes]
        places.append(
            (
                [
                    (each.state, "" if each.operation is None else str(each.operation.slot))
                    for each in nodes
                ],
                progress,
                [system.values[value] for value in cells],
                [sorted(map(repr, box)) for box in boxes],
            )
        )
    return sorted(map(repr, places))


def differences(
    made: Instance, options: Options, monkeypatch: pytest.MonkeyPatch, every: int = 1
) -> Iterator[str]:
    """Where a walk in place is not where the system is, step by step."""
    try:
        machine, told = steps_of(made, options)
    except (RoleRaised, UserError):  # the run itself: an add to what is no number
        return
    whole = replace(made, whole_atoms=True)
    quick = Walk(whole, dict(machine.choices), machine.content)
    with monkeypatch.context() as context:
        context.setattr(conform, "suits", lambda system: False)
        slow = Walk(whole, dict(machine.choices), machine.content)
        for number, event in enumerate(told):
            quick.take(event)
            slow.take(event)
            if (quick.refused, quick.position) != (slow.refused, slow.position):
                yield f"step {number}: {quick.refused} and {slow.refused}"
            elif quick.refused is None and quick.failures != slow.failures:
                yield f"step {number}: {quick.failures} and {slow.failures}"
            elif number % every == 0 and place_of(quick) != place_of(slow):
                yield f"step {number}: not the same place"
    quick.close()
    slow.close()


class Fenced(Protocol):
    """Two payloads, each with its flag behind a fence."""

    def memory(self) -> None:
        self.slot = Region(owner=0, index=(2,), block=64, fields={"payload": 64}, compared=())
        self.flag = Region(owner=0, index=(2,), block=32)

    @role(on=[0])
    async def producer(self, core: Core) -> None:
        for token in range(2):
            await core.put(self.slot[0][token], core.payload(1, token, 0))
            await core.fence()
            await core.put(self.flag[0][token], 1)
        await core.quiet()

    @role(on=[1])
    async def consumer(self, core: Core) -> None:
        for token in range(2):
            await core.wait_until(self.flag[0][token], lambda flag: flag == 1)
            core.consume(await core.load(self.slot[0][token]), 0, token, 0)


def crafted() -> Iterator[tuple[Instance, Options]]:
    """Runs with fences that hold something back."""
    made = Instance(Fenced, Bounds(2, 1, 1), load_profile("nvlink"), {})
    for seed in range(10):
        yield made, Options(seed, adversary=NAMES[seed % len(NAMES)])


def drawn(seed: int) -> tuple[Instance, Options]:
    """A random protocol and how it is run."""
    made = instance_of(plan_of(seed, lines=False), Instance)
    adversary = NAMES[seed % len(NAMES)]
    return made, Options(seed, adversary=adversary, steps=300, properties=("deadlock-free",))


def first_difference(seeds: range, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str] | None:
    """The first of some random and crafted protocols where the two do not agree.

    Nothing but getting stuck is asked for, so that a run goes on when it has gone wrong.
    """
    for made, options in chain(crafted(), map(drawn, seeds)):
        for each in differences(made, options, monkeypatch, every=7):
            return options.seed, each
    return None


def test_in_place_is_where_the_system_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random protocols on random fabrics: the same place, failures and refusal after each step."""
    assert first_difference(range(SEEDS), monkeypatch) is None


@pytest.mark.long
def test_in_place_is_where_the_system_is_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for many more."""
    assert first_difference(range(SEEDS, MANY_SEEDS), monkeypatch) is None


@pytest.mark.parametrize("name", PROVED)
def test_in_place_on_the_protocols(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in protocols, several values and outboxes at each step."""
    options = Options(seed=1, adversary=NAMES[PROVED.index(name) % len(NAMES)])
    assert next(differences(protocol(name, 3, 1, 2), options, monkeypatch, 20), None) is None


def test_proved_protocols_are_walked_in_place() -> None:
    """No step of them falls back on the system, which would be slow and not wrong."""
    for name in PROVED:
        made = protocol(name, 2, 2, 3)
        machine, told = steps_of(made, Options(seed=2))
        walk = Walk(replace(made, whole_atoms=True), machine.choices, machine.content)
        for event in told:
            walk.take(event)
        assert walk.refused is None
        assert walk.is_in_place, name
        walk.close()


def _quiet_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fabric, "is_quiet", lambda self, process, target: True)
    monkeypatch.setattr(InPlace, "_is_quiet", lambda self, process, target: True)


def _nothing_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fabric, "holds_back", lambda self, process, probe: False)
    monkeypatch.setattr(InPlace, "_holds_back", lambda self, process, action: False)


def _no_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "lands_behind", lambda early, late, profile: False)
    monkeypatch.setattr(Box, "rivals", lambda self, late, own, profile: ())


def _fences_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Box.remove

    def remove(self: Box, each: Any) -> None:
        if not each.packet.is_fence:
            right(self, each)

    monkeypatch.setattr(Box, "remove", remove)


def _any_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InPlace, "_have", lambda self, event, values: True)
    monkeypatch.setattr(Fabric, "landing", lambda self, write: self.memory.read(write.cell))


FAULTS: list[Callable[[pytest.MonkeyPatch], None]] = [
    _quiet_passes,
    _nothing_held_back,
    _no_rivals,
    _fences_stay,
    _any_bytes,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.__name__.strip("_"))
def test_fault_of_the_walk_is_noticed(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk that takes what the system refuses does not agree with it any more, also where the
    fabric of the run has the same fault."""
    fault(monkeypatch)
    assert first_difference(range(60), monkeypatch) is not None


class Unread(Protocol):
    """A block that nobody reads."""

    def memory(self) -> None:
        self.slot = Region(owner=1, block=512)

    @role(on=[0])
    async def producer(self, core: Core) -> None:
        await core.put(self.slot[1], 1)
        await core.quiet()


def test_memory_that_nobody_reads_is_the_models_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lands otherwise than it is told does not conform, also where no step shows it."""
    made = Instance(Unread, Bounds(2, 1, 1), load_profile("cm384"), {})
    assert run(made, Options(seed=1)).outcome == "complete"
    right = Fabric.store
    monkeypatch.setattr(Fabric, "store", lambda self, stores: right(self, stores[:-1]))
    found = run(made, Options(seed=1))
    assert found.outcome == "not conforming"
    assert "the memory that is left (slot[1].rest = 0)" in str(found.refused)
