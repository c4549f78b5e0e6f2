"""Records of the certificate, checked in another way and against the reference semantics."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from syncproof.checkers.certificate.clocks import SOUND, clocks_of, first_gap
from syncproof.checkers.certificate.execution import Beyond, Execution, run
from syncproof.checkers.certificate.record import (
    PUT,
    QUIET,
    RETURN,
    SYNC,
    WAIT,
    Record,
)
from syncproof.checkers.certificate.replay import Replay
from syncproof.checkers.certificate.roles import NotCertified
from syncproof.checkers.explicit.search import Budget, Meter, judge_end
from syncproof.models.bounds import Bounds
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Setting
from syncproof.models.system import System
from syncproof.models.transitions import State, Transition
from syncproof.registry import find
from tests.benchmarks import growth
from tests.letters import draw, instance_of

BUILT_IN: tuple[tuple[str, dict[str, Setting]], ...] = (
    ("sp", {}),
    ("sp", {"counts": False}),
    ("tff", {}),
    ("tff", {"reuse": "reset", "windows": 1}),
    ("sw", {}),
    ("bsp", {}),
    ("cumsum", {}),
    ("cumsum", {"count_cores": 2}),
    ("ubep", {"data": "sp"}),
    ("ubep", {"data": "tff"}),
)


def built_in(name: str, settings: dict[str, Setting], ranks: int) -> Instance:
    """A built-in protocol with balanced routing."""
    kind = find(name).kind
    return Instance(kind, Bounds(ranks=ranks, tokens=2), load_profile("cm384"), settings)


def executed(made: Instance) -> Execution:
    return run(lambda: made.parts({}), Meter(Budget()))


def some_records() -> Iterator[Record]:
    """Records of letters, sound ones and others."""
    for seed in range(500):
        made = instance_of(draw(seed))
        try:
            yield executed(made).record
        except (NotCertified, Beyond):
            continue


@pytest.mark.parametrize(("name", "settings"), BUILT_IN)
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_records_of_built_in_protocols_pass_both_checks(
    name: str, settings: dict[str, Setting], ranks: int
) -> None:
    """Clocks certify each, the second check agrees, and the clocks know nothing false."""
    record = executed(built_in(name, settings, ranks)).record
    gap, known = clocks_of(record)
    assert gap[0] == SOUND
    replayed = Replay(record).run()
    assert replayed.wrong == ""
    assert replayed.knows_too_much(known) == ""
    assert (known.steps > 0).any() or name == "sp"


@pytest.mark.parametrize(("name", "settings"), BUILT_IN)
def test_records_are_runs_of_the_reference_semantics(
    name: str, settings: dict[str, Setting]
) -> None:
    """Each instruction is a step that is enabled there, and the run ends well."""
    made = built_in(name, settings, 3)
    run = executed(made)
    system = made.system({})
    state = system.initial()
    steps = 0
    for instruction in run.record:
        for taken in walked(system, run, state, instruction):
            assert not taken.failures
            state, steps = taken.state, steps + 1
    assert steps == run.record.steps
    assert system.all_done(state)
    assert judge_end(system, state) == []


def walked(
    system: System, run: Execution, state: State, instruction: tuple[int, ...]
) -> Iterator[Transition]:
    """The transitions that an instruction stands for."""
    if instruction[0] == RETURN:
        assert system.node(state, instruction[1]).state == "done"
        return
    process = min(instruction[2:]) if instruction[0] == SYNC else instruction[1]
    taken = system.process_transitions(state, process)[0]
    yield taken
    at = 3
    for _ in range(instruction[2] if instruction[0] == PUT else 0):
        places = instruction[at + 1 : at + 1 + instruction[at]]
        at += 1 + instruction[at]
        names = {run.places.slot_at(place) for place in places}
        taken = next(
            each
            for each in system.landings(taken.state, process)
            if any(
                slot.place == system.cells[cell].slot.place
                and (slot.region.name, slot.rank)
                == (system.cells[cell].slot.region.name, system.cells[cell].slot.rank)
                for slot in names
                for cell in each.step.what
            )
        )
        yield taken


def test_the_two_checks_agree_on_random_records() -> None:
    """What clocks call sound the second check does too; what it adds is knowledge, not faults."""
    sound = both = 0
    for record in some_records():
        gap, known = clocks_of(record)
        replayed = Replay(record).run()
        if gap[0] == SOUND:
            sound += 1
            assert replayed.wrong == ""
            assert replayed.knows_too_much(known) == ""
        both += replayed.wrong == ""
    assert sound > 100
    assert both >= sound


def test_changed_records_are_refused_by_both() -> None:
    """Instructions taken out or put elsewhere: what clocks still call sound is sound."""
    pick, refused, kept = random.Random(1), 0, 0
    originals = [record for record in some_records() if first_gap(record)[0] == SOUND]
    for record in originals[:150]:
        for _ in range(4):
            changed = altered(record, pick)
            if first_gap(changed)[0] == SOUND:
                kept += 1
                assert Replay(changed).run().wrong == ""
            else:
                refused += 1
    assert refused > 100
    assert kept > 50


def altered(record: Record, pick: random.Random) -> Record:
    """The record without one quiet, or with a wait that fails on less, or two steps swapped."""
    instructions = [list(each) for each in record]
    at = pick.randrange(len(instructions))
    kind = instructions[at][0]
    if kind == QUIET:
        del instructions[at]
    elif kind == WAIT:
        made = sum(each[2] for each in instructions[:at] if each[0] == PUT)
        instructions[at][3] = pick.choice((-1, *range(made)))
    elif at + 1 < len(instructions) and PUT not in (kind, instructions[at + 1][0]):
        instructions[at : at + 2] = instructions[at + 1], instructions[at]
    numbers = [number for each in instructions for number in each]
    return replace(record, instructions=array("i", numbers))


FAULTS: dict[str, str] = {
    "steps": "a process knows a step that it cannot",
    "landed": "a process knows a landing that it cannot",
}


@pytest.mark.parametrize("which", FAULTS)
def test_clocks_that_know_too_much_are_noticed(which: str) -> None:
    """A number too large in the clocks is found by the second check."""
    record = executed(built_in("sp", {"counts": False}, 3)).record
    _, known = clocks_of(record)
    clock: Any = getattr(known, which)
    clock[:] = len(record.instructions)
    assert Replay(record).run().knows_too_much(known)


def test_growth_is_measured_on_the_same_runs() -> None:
    """The benchmark certifies the run whose steps are known; powers have their own exponents."""
    steps = executed(Instance(find("sp").kind, Bounds(ranks=4), load_profile("cm384"), {}))
    assert growth.certified("sp", 4).split()[0] == str(steps.record.steps)
    sizes = (2, 8, 32)
    assert growth.exponent(sizes, [3 * each**2 for each in sizes]) == pytest.approx(2)
    assert growth.exponent(sizes, [each**0.5 for each in sizes]) == pytest.approx(0.5)


@pytest.mark.long
def test_compiled_loops_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled check and the interpreted one are one function."""
    record = executed(built_in("tff", {}, 3)).record
    plain_gap, plain_known = clocks_of(record)
    monkeypatch.setattr("syncproof.checkers.certificate.clocks.LONG", 0)
    gap, known = clocks_of(record)
    assert gap == plain_gap
    assert all((one == other).all() for one, other in zip(known, plain_known, strict=True))
