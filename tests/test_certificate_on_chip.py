"""The certificate where some memory is on the chip: stores there land as they are made."""

from __future__ import annotations

import pytest

from syncproof.checkers.certificate import certify
from syncproof.checkers.explicit.check import question_of
from syncproof.models.core import Core
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
