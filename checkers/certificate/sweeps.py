"""Sweeps: a loop of loads that ends on what they find together, tried on all that they may find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CoroutineType
from typing import Any

from syncproof.checkers.certificate.contents import MOST_CONTENTS, TooMany
from syncproof.checkers.certificate.roles import LiveRoles, NotCertified
from syncproof.models.identity import discard
from syncproof.models.nodes import plain
from syncproof.models.operations import Kind, Operation
from syncproof.models.standing import Standing

MOST_LOADS = 50_000
"""How many loads a sweep is tried on in all; one with a loop of its own has no end of them."""


@dataclass(frozen=True)
class Found:
    """What a load of a sweep may find: its value, what has surely happened then, and whether
    nothing of what comes earlier in the run is missing."""

    value: Any
    surely: int
    complete: bool


Alternatives = Callable[[Operation, int, int], list[Found]]
"""What a load may find, given what is known before it and which events come after the sweep."""


class Sweep:
    """A sweep of one process, at one position of what it was fed, that passed on ``values``."""

    def __init__(
        self,
        roles: LiveRoles,
        process: int,
        position: int,
        known: int,
        values: tuple[Any, ...],
        alternatives: Alternatives,
    ) -> None:
        self._roles, self._process, self._position = roles, process, position
        self._known, self._values, self._alternatives = known, values, alternatives
        self._as_run = tuple(map(plain, values))
        self._standing: Standing | None = None
        self._passed: Any = None
        self._loads = 0

    def judge(self, after: int) -> int:
        """What has surely happened when the sweep passes, whatever it finds.

        ``after`` are the events that come after it. `NotCertified` if it may wait in vain, leave a
        trace when it fails, or make a difference when it passes.
        """
        surely, tried = -1, 0
        path: list[int] = []
        options: dict[tuple[int, ...], list[Found]] = {}
        while True:
            tried += 1
            if tried > MOST_CONTENTS:
                raise TooMany
            found, left = self._try(path, options, after)
            if found is not None:
                surely &= found
            while left and not left[-1]:
                left.pop()
                path.pop()
            if not left:
                return surely if surely != -1 else self._known
            path[-1] += 1

    def _try(
        self, path: list[int], options: dict[tuple[int, ...], list[Found]], after: int
    ) -> tuple[int | None, list[int]]:
        """Run the sweep on one alternative for each load, those of ``path`` and the first of later
        ones, which are added to it; how many more each load has, and, if it passes, what has
        surely happened then. ``options`` keeps what there is behind the loads before."""
        roles, process = self._roles, self._process
        coroutine = roles.spare(process, self._position)
        if self._standing is None:
            self._standing = roles.standing(process, coroutine)
        known, complete, left = self._known, True, []
        values: list[Any] = []
        operation = _next(coroutine, None)
        while operation.kind not in (Kind.SWEEP_BEGIN, Kind.SWEEP_END):
            before = tuple(path[: len(values)])
            if before not in options:
                # What has most writes comes last: the coroutine that passes is done with failing.
                options[before] = self._alternatives(operation, known, after)[::-1]
            if len(values) == len(path):
                path.append(0)
            self._loads += 1
            if self._loads > MOST_LOADS:
                raise TooMany
            chosen = options[before][path[len(values)]]
            left.append(len(options[before]) - 1 - path[len(values)])
            known |= chosen.surely
            complete &= chosen.complete
            values.append(chosen.value)
            operation = _next(coroutine, chosen.value)
        if operation.kind is Kind.SWEEP_BEGIN:
            self._check_failed(coroutine, complete)
            return None, left
        if tuple(map(plain, values)) == self._as_run:
            roles.keep(process, self._position + 1 + len(values), coroutine)
        else:
            self._check_passed(coroutine)
        return known, left

    def _check_failed(self, coroutine: CoroutineType[Any, Any, Any], complete: bool) -> None:
        roles, process = self._roles, self._process
        if complete:
            raise NotCertified(f"a sweep of {roles.names[process]} may wait in vain")
        if roles.parts.roles[process].said:
            raise NotCertified(f"a sweep of {roles.names[process]} that failed made a statement")
        stood = self._standing
        assert stood is not None
        if not stood.is_as_it_was(coroutine, roles.looks_always):
            self._standing = roles.standing(process, coroutine)
            if self._standing.fingerprint != stood.fingerprint:
                raise NotCertified(f"a sweep of {roles.names[process]} that failed left a trace")
        roles.keep(process, self._position, coroutine)

    def _check_passed(self, coroutine: CoroutineType[Any, Any, Any]) -> None:
        """However it passes, the role goes on as it did in this run."""
        roles, process = self._roles, self._process
        said = tuple(roles.parts.roles[process].said)
        state = said, roles.state(process, coroutine, None)
        discard(coroutine)
        if self._passed is None:
            again = roles.spare(process, self._position)
            operation = _next(again, None)
            for value in self._values:
                operation = _next(again, value)
            assert operation.kind is Kind.SWEEP_END
            said = tuple(roles.parts.roles[process].said)
            self._passed = said, roles.state(process, again, None)
            discard(again)
        if state != self._passed:
            raise NotCertified(f"a sweep of {roles.names[process]} may find several things")


def _next(coroutine: CoroutineType[Any, Any, Any], value: Any) -> Operation:
    try:
        operation = coroutine.send(value)
    except StopIteration:
        raise NotCertified("a sweep ends its role") from None
    except Exception as error:
        raise NotCertified(f"a sweep raised {error}") from error
    if type(operation) is not Operation or operation.kind not in SWEPT:
        raise NotCertified(f"a sweep awaits {operation}")
    return operation


SWEPT = (Kind.SWEEP_BEGIN, Kind.SWEEP_END, Kind.LOAD, Kind.GET)
