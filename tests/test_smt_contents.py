"""The value closure misses nothing that a run can bring about (docs/smt.md)."""

from __future__ import annotations

import pytest

from syncproof.checkers.explicit.check import assignments, question_of
from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.search import Budget, Meter, explore
from syncproof.checkers.smt.check import check
from syncproof.checkers.smt.contents import Contents
from syncproof.checkers.smt.uncovered import Uncovered
from syncproof.checkers.smt.unrolling import Unrolling
from syncproof.models.core import Core, Unresolved
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.memory import Ghost, Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.transitions import PROPERTIES, Overfull
from syncproof.models.values import SENTINEL
from syncproof.models.verdict import Answer
from tests.random_protocols import instance_of, plan_of
from tests.small import instance


class Overwritten(Protocol):
    """A local atomic in two steps, between which a put of the whole block lands: the block then
    holds the atomic's result beside the other field of the put, which no order of whole steps
    gives."""

    def memory(self) -> None:
        fields = {"a": 8, "b": 8}
        self.block = Region(owner=0, block=16, fields=fields, compared=("a", "b"))

    @role(on=(0,))
    async def adder(self, core: Core) -> None:
        await core.fetch_add(self.block[0].field("a"), 1)

    @role(on=(1,))
    async def putter(self, core: Core) -> None:
        await core.put(self.block[0], {"a": 5, "b": 6})

    @role(on=(0,))
    async def reader(self, core: Core) -> None:
        block = await core.load(self.block[0])
        core.check((block.a, block.b) != (1, 6), "the atomic wipes the put")


class Remembered(Protocol):
    """A role that tells a ghost what it has read, and goes on alike whatever it was."""

    def memory(self) -> None:
        self.flag = Region(owner=1, block=8)
        self.done = Region(owner=1, block=8)
        self.seen = Ghost(0)

    @role(on=(0,))
    async def setter(self, core: Core) -> None:
        await core.put(self.flag[1], 1)

    @role(on=(1,))
    async def reader(self, core: Core) -> None:
        core.ghost_update(self.seen, lambda old, new: old + new, await core.load(self.flag[1]) + 2)
        await core.load(self.done[1])
        core.ghost_check(self.seen, lambda held: held != 3, message="the flag was seen")


class FromTheStart(Protocol):
    """A role that tells a ghost something before its first operation."""

    def memory(self) -> None:
        self.flag = Region(owner=1, block=8)
        self.seen = Ghost(0)

    @role
    async def reader(self, core: Core) -> None:
        core.ghost_update(self.seen, lambda old: old + 1)
        await core.load(self.flag[1])
        core.ghost_check(self.seen, lambda held: held != 2, message="both have begun")


class OfTwoTypes(Protocol):
    """A ghost that holds 1 or True, whatever was said last."""

    def memory(self) -> None:
        self.flag = Region(owner=1, block=8)
        self.seen = Ghost(0)

    @role(on=(0,))
    async def setter(self, core: Core) -> None:
        await core.put(self.flag[1], 1)
        core.ghost_update(self.seen, lambda _: 1)

    @role(on=(1,))
    async def reader(self, core: Core) -> None:
        await core.load(self.flag[1])
        core.ghost_update(self.seen, lambda _: True)
        await core.load(self.flag[1])
        core.ghost_check(self.seen, lambda held: held is not True, message="True was said")


class Counted(Protocol):
    """A ghost whose states are in a table: it is in none but these."""

    def memory(self) -> None:
        self.flag = Region(owner=1, block=8)
        self.state = Ghost(0)

    @role(on=(0,))
    async def setter(self, core: Core) -> None:
        await core.put(self.flag[1], 1)
        core.ghost_update(self.state, lambda old: {0: 1, 1: 2}[old])
        await core.quiet()
        core.ghost_update(self.state, lambda old: {0: 1, 1: 2}[old])


SPLIT = Profile("split", store_atomicity=16, load_atomicity=16, atomics="nic_only")


@pytest.mark.parametrize(
    ("kind", "profile"),
    [
        (Overwritten, SPLIT),
        (Remembered, Profile("cm384")),
        (FromTheStart, Profile("cm384")),
        (OfTwoTypes, Profile("cm384")),
    ],
    ids=("overwritten", "remembered", "from the start", "of two types"),
)
def test_values_that_only_some_orders_bring_about(kind: type[Protocol], profile: Profile) -> None:
    """The failing check is found: the values that it fails on are among those followed."""
    made = instance(kind, profile)
    question = question_of(made, "x", properties=("checks",))
    assert check_explicitly(made, question, "reference").answer is Answer.VIOLATED
    assert check(made, question).answer is Answer.VIOLATED


class Reset(Protocol):
    """A counter that its owner resets to the sentinel while an add may be on its way."""

    def memory(self) -> None:
        self.arrived = Region(owner=0, block=8)

    @role(on=[1])
    async def adder(self, core: Core) -> None:
        await core.add(self.arrived[0], 1)
        await core.quiet()

    @role(on=[0])
    async def owner(self, core: Core) -> None:
        await core.put(self.arrived[0], SENTINEL)
        await core.quiet()
        await core.wait_until(self.arrived[0], lambda held: held == SENTINEL)


def test_add_that_may_meet_no_number_is_not_decided() -> None:
    """No run is left out in which an add meets what is no number; that run is the user's error."""
    made = instance(Reset, Profile("cm384"))
    question = question_of(made, "reset", properties=PROPERTIES)
    found = check(made, question)
    assert found.answer is Answer.UNDECIDED
    assert "an add to memory that may hold SENTINEL" in found.properties[0].detail
    with pytest.raises(UserError, match=r"an add to .* holds SENTINEL"):
        check_explicitly(made, question, "reference", Budget(), lambda *_: None)


def test_ghost_function_that_takes_not_every_value_is_not_decided() -> None:
    """On a value that no run holds a ghost's function may raise: nobody's mistake, and no proof."""
    made = instance(Counted, Profile("cm384"))
    question = question_of(made, "x", properties=("checks",))
    assert check_explicitly(made, question, "reference").answer is Answer.PROVED
    verdict = check(made, question)
    assert verdict.answer is Answer.UNDECIDED
    assert "takes not every value" in verdict.properties[0].detail


# Against every state that there is

ASKED = frozenset(PROPERTIES)


def check_states(seeds: range) -> int:
    """In every state of random systems each process is at a node that was met, and what it looks
    at next holds values that were thought possible; how many were looked at."""
    seen = 0
    for seed in seeds:
        made = instance_of(plan_of(seed))
        try:
            system = made.system(next(assignments(made)))
            unrolling = Unrolling(system, ASKED)
            explored = explore(system, None, ASKED, Meter(Budget(states=2_000)))
        except (Uncovered, UserError, Unresolved, Overfull):
            continue
        steps = (each.last for each in explored.findings)
        failed = {each.state for each in steps if each is not None}
        for state in explored.parents:
            if state in failed or system.initial_transition().failures:
                continue
            for process in range(system.processes):
                node = system.node(state, process)
                if node.state != "run":
                    continue
                assert node.number in unrolling._met[process], f"seed {seed}: {node.place}"
                for action in node.actions:
                    values = tuple(state[system.first_cell + cell] for cell in action.cells)
                    assert values in unrolling.contents.possible(action.cells), f"seed {seed}"
                    seen += 1
    return seen


def test_every_state_is_covered() -> None:
    """What the explicit search meets is among what the closure holds for possible."""
    assert check_states(range(150)) > 1_000


@pytest.mark.long
def test_every_state_is_covered_at_length() -> None:
    """The same on more systems."""
    assert check_states(range(1_000)) > 10_000


def test_a_closure_that_misses_a_write_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-modify-writes that are not told leave values out, and some state has them."""
    monkeypatch.setattr(Contents, "change", lambda *_: None)
    with pytest.raises(AssertionError, match="seed"):
        check_states(range(40))
