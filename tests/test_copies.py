"""Copies by the fabric: only between blocks of which the same cells hold the same bytes."""

from __future__ import annotations

import pytest

from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.verdict import Answer
from tests.small import instance, verdict

Fields = dict[str, int]


def copying(source: Fields, target: Fields, field: str = "") -> type[Protocol]:
    """A protocol that copies a block, or one field of it, to a block with the fields ``target``."""

    class Copying(Protocol):
        def memory(self) -> None:
            self.here = Region(block=sum(source.values()), fields=source, compared=())
            self.there = Region(block=sum(target.values()), fields=target, compared=())

        @role(on=[0])
        async def copier(self, core: Core) -> None:
            here, there = self.here[0], self.there[1]
            pair = (there.field(field), here.field(field)) if field else (there, here)
            await core.put_nbi(*pair)
            await core.quiet()

    return Copying


@pytest.mark.parametrize(
    ("source", "target", "field"),
    [
        ({"all": 1024}, {"all": 64}, ""),  # one cell each, as like atoms are one
        ({"flag": 8, "data": 56}, {"data": 56, "flag": 8}, ""),
        ({"flag": 8, "data": 56}, {"data": 56, "flag": 8}, "data"),  # cut at other bytes
        ({"a": 16, "b": 48}, {"c": 32, "d": 32}, ""),
    ],
)
def test_a_copy_to_another_shape_is_refused(source: Fields, target: Fields, field: str) -> None:
    """Sizes of fields and where atoms cut them must be those of the source."""
    with pytest.raises(UserError, match="of another shape"):
        verdict(instance(copying(source, target, field), Profile("fine", store_atomicity=16)))


@pytest.mark.parametrize(
    ("source", "target", "field"),
    [
        ({"all": 1024}, {"all": 1024}, ""),
        ({"flag": 8, "data": 56}, {"mark": 8, "rest": 56}, ""),
        ({"flag": 8, "data": 56}, {"data": 56, "flag": 8}, "flag"),  # in one atom, wherever
    ],
)
def test_a_copy_to_the_same_shape_is_not(source: Fields, target: Fields, field: str) -> None:
    """Names of fields do not matter, nor where a field lies that no atom cuts."""
    made = instance(copying(source, target, field), Profile("fine", store_atomicity=16))
    assert verdict(made).answer is Answer.PROVED
