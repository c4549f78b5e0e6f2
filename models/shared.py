"""What roles share beside memory: classes, names of modules, their lists. It must stay as it is."""

from __future__ import annotations

from collections.abc import Iterable
from types import CoroutineType
from typing import Any

from syncproof.models.errors import UserError
from syncproof.models.identity import self_test
from syncproof.models.identity_scan import Refused
from syncproof.models.identity_walk import Environment


class Shared:
    """What these roles of a protocol reach beside their own variables, under watch.

    Nothing is watched where it cannot be told.
    """

    def __init__(
        self, protocol: object, coroutines: Iterable[CoroutineType[Any, Any, Any]]
    ) -> None:
        self._environment = None if self_test() else _environment(protocol, coroutines)

    def refuse_change(self) -> None:
        """Raise a `UserError` if it is not as it was."""
        changed = "" if self._environment is None else self._environment.changed()
        if changed:
            raise UserError(
                f"a role changes what other roles and runs see: {changed}",
                expected="a role keeps what it changes in its own local variables",
            )


def _environment(
    protocol: object, coroutines: Iterable[CoroutineType[Any, Any, Any]]
) -> Environment | None:
    try:
        found = Environment((protocol,))
        for code, coroutine in {each.cr_code: each for each in coroutines}.items():
            assert coroutine.cr_frame is not None
            found.adopt_code(code, coroutine.cr_frame.f_globals)
    except Refused:
        return None
    return found
