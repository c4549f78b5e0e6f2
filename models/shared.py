"""What roles share beside memory: classes, names of modules, their lists. It must stay as it is.

What cannot be put under watch may be a channel between roles that no engine sees, so that nothing
is proved of a protocol whose roles refer to it (docs/soundness.md, "What roles share").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property
from types import CodeType, CoroutineType
from typing import Any, TypeAlias

from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.identity import self_test
from syncproof.models.identity_scan import Refused
from syncproof.models.identity_walk import Environment
from syncproof.models.protocol import Protocol
from syncproof.models.traces import trace_of_shared

Coroutine: TypeAlias = "CoroutineType[Any, Any, Any]"


class Shared:
    """What these roles of a protocol reach beside their own variables, under watch.

    Where not all of it can be told, ``unwatched`` says why, and what can be told of the protocol's
    own objects and modules is watched.
    """

    def __init__(
        self, protocol: Protocol, coroutines: Iterable[Coroutine], cores: Sequence[Core]
    ) -> None:
        _find_out(protocol)
        self._protocol, self._cores = protocol, cores
        self._environment, self.unwatched = _environment(protocol, coroutines, cores)
        self._before = None if self._environment else trace_of_shared(protocol, cores)

    def beside(self, cores: Sequence[Core]) -> Shared:
        """The same, with cores."""
        made = copy(self)
        made._cores = cores
        if self._environment is not None:
            try:
                made._environment = self._environment.beside(*cores)
            except Refused as refused:
                made._environment, made.unwatched = None, str(refused)
        if made._environment is None:
            made._before = trace_of_shared(self._protocol, cores)
        return made

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


def _find_out(protocol: Protocol) -> None:
    """Ask for what a protocol finds out once and keeps, so that no role is the first to ask."""
    for kind in type(protocol).__mro__:
        for name, value in vars(kind).items():
            if isinstance(value, cached_property):
                with suppress(Exception):  # then whoever asks while roles run is told
                    getattr(protocol, name)


def _environment(
    protocol: Protocol, coroutines: Iterable[Coroutine], cores: Sequence[Core]
) -> tuple[Environment | None, str]:
    """All that the roles reach, under watch; or why that cannot be."""
    trouble = self_test()
    if trouble:
        return None, trouble
    codes: dict[CodeType, Coroutine] = {each.cr_code: each for each in coroutines}
    try:
        found = Environment((protocol, *cores), compares=False)
        for code, coroutine in codes.items():
            assert coroutine.cr_frame is not None
            found.adopt_code(code, coroutine.cr_frame.f_globals)
    except Refused as refused:
        return None, str(refused)
    return found, ""
