"""What a protocol holds cannot be changed by a role, and is otherwise what it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.sealed import sealed
from tests.small import instance, verdict

CHANGES: dict[str, Callable[[Any], object]] = {
    "append": lambda held: held["list"].append(1),
    "extend": lambda held: held["list"].extend([1]),
    "item": lambda held: held["list"].__setitem__(0, 1),
    "sort": lambda held: held["list"].sort(),
    "add in place": lambda held: held["list"].__iadd__([1]),
    "key": lambda held: held.__setitem__("new", 1),
    "update": lambda held: held.update(new=1),
    "setdefault": lambda held: held.setdefault("new", 1),
    "pop": lambda held: held.pop("list"),
    "add": lambda held: held["set"].add(3),
    "discard": lambda held: held["set"].discard(1),
    "inner": lambda held: held["tuple"][0].append(1),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_refused(what: str) -> None:
    """Every way to change a list, dict or set, also one inside another, is an error."""
    held = sealed({"list": [2, 1], "set": {1, 2}, "tuple": ([],)})
    with pytest.raises(UserError, match="is changed while a role runs"):
        CHANGES[what](held)
    assert held == {"list": [2, 1], "set": {1, 2}, "tuple": ([],)}


def test_what_can_change_is_all_covered() -> None:
    """No method that changes a list, dict or set is left as it was."""
    reads = {"copy", "count", "index", "get", "items", "keys", "values", "fromkeys"}
    for kind in (list, dict, set):
        inherited = {
            name
            for name in vars(kind)
            if not name.startswith("_") and getattr(type(sealed(kind())), name) is vars(kind)[name]
        }
        pure = {name for name in vars(frozenset) if not name.startswith("_")}
        assert inherited <= reads | pure


class Sharing(Protocol):
    """One role leaves something behind that another looks at."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=32)
        self.left: list[int] = []

    @role
    async def writer(self, core: Core) -> None:
        await core.put(self.flag[core.rank][core.rank], 1)
        self.left.append(1)
        await core.quiet()

    @role
    async def reader(self, core: Core) -> None:
        await core.wait_until(self.flag[core.rank][core.rank], lambda flag: flag == 1)
        core.check(not self.left, "something is left behind")


@pytest.mark.parametrize("engine", ["reference", "reduced"])
def test_roles_share_memory_only(engine: str) -> None:
    """A protocol whose roles talk through a Python object has no verdict."""
    with pytest.raises(UserError, match="a list of the protocol is changed"):
        verdict(instance(Sharing), engine)
