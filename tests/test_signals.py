"""Puts with signals: what is ordered by them, and what is not."""

from __future__ import annotations

import pytest

from syncproof.models.core import Core
from syncproof.models.fabric import Profile
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.verdict import Answer
from tests.small import answers, instance, verdict


class TwoWords(Protocol):
    """The consumer waits for the second word of a signal, and trusts the first."""

    def memory(self) -> None:
        words = {"first": 8, "second": 8}
        self.slot = Region(owner=1, block=8)
        self.signal = Region(owner=1, block=16, fields=words, compared=("first", "second"))

    @role(on=[0])
    async def producer(self, core: Core) -> None:
        await core.put_with_signal(self.slot[1], 7, self.signal[1], 1)
        await core.quiet()

    @role(on=[1])
    async def consumer(self, core: Core) -> None:
        await core.wait_until(self.signal[1].field("second"), lambda word: word == 1)
        core.check(await core.load(self.slot[1]) == 7, "the signal is ahead of its put")
        first = await core.wait_until(self.signal[1].field("first"), lambda _: True)
        core.check(first == 1, "the second word is ahead of the first")


@pytest.mark.parametrize(
    ("order", "atom", "answer"),
    [
        ("any", 8, Answer.VIOLATED),
        ("ascending", 8, Answer.PROVED),
        ("any", 16, Answer.PROVED),
    ],
)
def test_the_atoms_of_a_signal_land_as_those_of_a_put(
    order: str, atom: int, answer: Answer
) -> None:
    """All of them land behind the put, and among each other in the order of a block's atoms."""
    profile = Profile("words", store_atomicity=atom, in_block_order=order)  # type: ignore[arg-type]
    found = verdict(instance(TwoWords, profile))
    assert answers(found)["checks"] is answer
    if answer is Answer.VIOLATED:
        assert found.trace is not None
        assert "the second word" in found.trace.message
