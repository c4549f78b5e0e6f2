"""What roles share beside memory: classes, names of modules, their lists. It must stay as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import CoroutineType
from typing import Any

from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.identity import self_test
from syncproof.models.identity_scan import Refused
from syncproof.models.identity_walk import Environment
from syncproof.models.protocol import Protocol
from syncproof.models.traces import trace_of_shared


class Shared:
    """What these roles of a protocol reach beside their own variables, under watch.

    Where not all of it can be told, what can be told of the protocol's own objects and modules is.
    """

    def __init__(
        self,
        protocol: Protocol,
        coroutines: Iterable[CoroutineType[Any, Any, Any]],
        cores: Sequence[Core],
    ) -> None:
        self._protocol, self._cores = protocol, cores
        self._environment = None if self_test() else _environment(protocol, coroutines, cores)
        self._before = None if self._environment else trace_of_shared(protocol, cores)

    def refuse_change(self) -> None:
        """Raise a `UserError` if it is not as it was."""
        if self._environment is not None:
            changed = self._environment.changed()
        else:
            is_same = trace_of_shared(self._protocol, self._cores) == self._before
            changed = "" if is_same else "an object of the protocol or of its modules"
        if changed:
            raise UserError(
                f"a role changes what other roles and runs see: {changed}",
                expected="a role keeps what it changes in its own local variables",
            )


def _environment(
    protocol: Protocol,
    coroutines: Iterable[CoroutineType[Any, Any, Any]],
    cores: Sequence[Core],
) -> Environment | None:
    try:
        found = Environment((protocol, *cores))
        for code, coroutine in {each.cr_code: each for each in coroutines}.items():
            assert coroutine.cr_frame is not None
            found.adopt_code(code, coroutine.cr_frame.f_globals)
    except Refused:
        return None
    return found
