"""What the certificate and the full graph once saw differently, mostly of memory on the chip."""

from __future__ import annotations

import pytest

from syncproof.checkers.certificate import certify, execution, sweeps
from syncproof.checkers.explicit.check import question_of
from syncproof.models.conditions import leaves_no_trace
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.memory import Region
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.verdict import Answer, Verdict
from tests.small import answers, instance, verdict, with_settings


class Raised(Protocol):
    """Data in device memory, something that orders, a flag on the chip: the reader checks."""

    order: str = parameter("fence", "what stands between data and flag", ("fence", "quiet"))

    def memory(self) -> None:
        self.data = Region(index=(), block=8)
        self.flag = Region(index=(), block=8, on_chip=True)

    @role
    async def sender(self, core: Core) -> None:
        await core.put(self.data[core.rank], 1)
        await (core.fence() if self.order == "fence" else core.quiet())
        await core.put(self.flag[core.rank], 1)
        await core.quiet()

    @role
    async def receiver(self, core: Core) -> None:
        await core.wait_until(self.flag[core.rank], lambda flag: flag == 1)
        core.check(await core.load(self.data[core.rank]) == 1, "old data")


@pytest.mark.parametrize(
    ("order", "fabric", "sound"),
    [("fence", "nvlink", False), ("fence", "cm384", True), ("quiet", "nvlink", True)],
)
def test_a_fence_does_not_hold_back_a_store_on_the_chip(
    order: str, fabric: str, sound: bool
) -> None:
    """A fence that only orders lets the flag be seen before the data; one that drains does not."""
    made = with_settings(instance(Raised, load_profile(fabric), ranks=1), order=order)
    assert (verdict(made).answer is Answer.PROVED) is sound
    assert isinstance(certify(made, question_of(made, "raised")), Verdict) is sound


class Halves(Protocol):
    """A put with signal to two words on the chip, with the signal in device memory or reversed."""

    data_on_chip: bool = parameter(True, "the data is on the chip, and the signal is not")

    def memory(self) -> None:
        fields = {"first": 8, "second": 8}
        self.words = Region(index=(), block=16, fields=fields, compared=tuple(fields), on_chip=True)
        self.word = Region(index=(), block=8)

    @role
    async def sender(self, core: Core) -> None:
        words, word = self.words[core.rank], self.word[core.rank]
        data, signal = (words, word) if self.data_on_chip else (word, words)
        await core.put_with_signal(data, 1, signal, 1)
        await core.quiet()

    @role
    async def receiver(self, core: Core) -> None:
        words = await core.wait_until(self.words[core.rank], lambda words: words.first == 1)
        core.check(words.second == 1, "half of it")


@pytest.mark.parametrize("data_on_chip", [True, False])
@pytest.mark.parametrize("atomicity", [8, 16])
def test_a_put_with_signal_reaches_the_chip_atom_by_atom(
    data_on_chip: bool, atomicity: int
) -> None:
    """Where its other half is in device memory it goes through the fabric, which may tear it."""
    profile = load_profile(f"nvlink,store_atomicity={atomicity}")
    made = with_settings(instance(Halves, profile, ranks=1), data_on_chip=data_on_chip)
    found = answers(verdict(made))
    assert (Answer.VIOLATED in found.values()) is (atomicity == 8)
    assert isinstance(certify(made, question_of(made, "halves")), Verdict) is (atomicity == 16)


class Heard(Protocol):
    """The condition of a wait keeps what it was asked, and the role looks at that."""

    counts: bool = parameter(False, "it counts, in a variable of the role")

    def memory(self) -> None:
        self.flag = Region(index=(), block=8)

    @role
    async def setter(self, core: Core) -> None:
        await core.put(self.flag[core.rank], 1)
        await core.quiet()

    @role
    async def waiter(self, core: Core) -> None:
        seen: list[int] = []
        times = 0

        def keeps(flag: int) -> bool:
            seen.append(flag)
            return flag == 1

        def counts(flag: int) -> bool:
            nonlocal times
            times += 1
            return flag == 1

        await core.wait_until(self.flag[core.rank], counts if self.counts else keeps)
        core.check(times or seen, "nothing was kept")


@pytest.mark.parametrize("counts", [True, False])
def test_a_condition_leaves_nothing_behind_in_its_role(counts: bool) -> None:
    """How often a condition was asked is no part of a run: one that keeps it is refused."""
    made = with_settings(instance(Heard, ranks=1), counts=counts)
    with pytest.raises(UserError, match="keeps something from one asking to the next"):
        verdict(made)
    assert not isinstance(certify(made, question_of(made, "heard")), Verdict)


@pytest.mark.parametrize("counts", [True, False])
def test_a_condition_that_leaves_a_trace_is_noticed(
    counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were such conditions asked as they are, the test above would see a wrong certificate."""
    monkeypatch.setattr(execution, "leaves_no_trace", lambda _: True)
    made = with_settings(instance(Heard, ranks=1), counts=counts)
    assert isinstance(certify(made, question_of(made, "heard")), Verdict)


def test_only_conditions_that_surely_leave_no_trace_are_asked_as_they_are() -> None:
    """They close over what cannot change, bind no variable of the role."""
    number, several = 3, [3]

    def binds(flag: int) -> bool:
        nonlocal number
        number = flag
        return flag == number

    def makes(flag: int) -> bool:
        return (lambda: flag in several)()

    assert leaves_no_trace(lambda flag: flag == number)
    assert not leaves_no_trace(lambda flag: flag in several)
    assert not leaves_no_trace(lambda flag: flag == later)
    assert not leaves_no_trace(binds)
    assert not leaves_no_trace(makes)
    assert not leaves_no_trace(several.append)
    later = 3


class Kinds(Protocol):
    """Values that are equal and of two types, put under one name one after the other."""

    def memory(self) -> None:
        self.word = Region(index=(2,), block=16, fields={"a": 8, "b": 8}, compared=("a", "b"))

    @role
    async def setter(self, core: Core) -> None:
        for i, value in enumerate((1, True)):
            await core.put(self.word[core.rank][i], {"a": value, "b": 0})
        await core.quiet()
        await core.sync("rank")

    @role
    async def reader(self, core: Core) -> None:
        await core.sync("rank")
        for i, kind in enumerate((int, bool)):
            found = await core.load(self.word[core.rank][i])
            core.check(type(found.a) is kind, "another type")


def test_equal_values_of_two_types_stay_two() -> None:
    """What is kept once for all equal blocks is kept once for each type of its values."""
    made = instance(Kinds, ranks=1)
    assert answers(verdict(made))["checks"] is Answer.PROVED
    assert isinstance(certify(made, question_of(made, "kinds")), Verdict)


class Signalled(Protocol):
    """Two cores put data and add to one counter that nobody waits for."""

    def memory(self) -> None:
        self.data, self.total = Region(index=(2,), block=8), Region(index=(), block=8)

    @role(instances=2)
    async def sender(self, core: Core) -> None:
        data, total = self.data[core.rank][core.index], self.total[core.rank]
        await core.put_with_signal(data, 1, total, 1, adds=True)
        await core.quiet()


@pytest.mark.parametrize("fabric", ["sc", "cm384"])
def test_signals_that_add_do_not_race(fabric: str) -> None:
    """An added signal is an atomic, also where a put has landed when it is issued."""
    made = instance(Signalled, load_profile(fabric), ranks=1)
    for engine in ("reference", "reduced"):
        assert verdict(made, engine).answer is Answer.PROVED, engine
    assert isinstance(certify(made, question_of(made, "signalled")), Verdict)


class Insisting(Protocol):
    """A sweep that has a loop of its own, and so need not fail to go on."""

    def memory(self) -> None:
        self.flag = Region(index=(), block=8)

    @role
    async def setter(self, core: Core) -> None:
        await core.put(self.flag[core.rank], 1)
        await core.quiet()

    @role
    async def waiter(self, core: Core) -> None:
        async def look() -> bool:
            while await core.load(self.flag[core.rank]) != 1:
                pass
            return True

        await core.poll_until(look)


def test_a_sweep_that_goes_on_by_itself_has_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried on so many loads in all, whatever the number of loads of each try."""
    monkeypatch.setattr(sweeps, "MOST_LOADS", 1_000)
    made = instance(Insisting, ranks=1)
    assert verdict(made).answer is Answer.PROVED
    assert "too many different things" in str(certify(made, question_of(made, "insisting")))
