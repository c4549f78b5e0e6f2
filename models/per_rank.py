"""A table with an entry for each rank: how a role keeps something of every peer."""

from __future__ import annotations

from typing import Any


class PerRank:
    """``told[source] = 3`` and ``told[source]``: looked up by rank and in no other way.

    So what a role does with one peer does not depend on how many others there are, which a proof
    for any number of ranks needs (docs/any-ranks.md).
    """

    def __init__(self) -> None:
        self.entries: dict[int, Any] = {}

    def __setitem__(self, rank: int, value: Any) -> None:
        self.entries[rank] = value

    def __getitem__(self, rank: int) -> Any:
        return self.entries[rank]
