"""Mutants: a protocol with one of its synchronization operations left out, by source line.

A proof that survives every mutation says little, so each operation must be refuted when it is
gone, or be marked by the protocol as not needed.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.operations import Kind, Operation
from syncproof.models.protocol import Parameter
from syncproof.models.system import System
from syncproof.models.values import Part, Payload

WAITS = (Kind.WAIT_UNTIL, Kind.LOAD_CACHED)
DROPPED = (
    Kind.PUT,
    Kind.ADD,
    Kind.FENCE,
    Kind.QUIET,
    Kind.SYNC,
    Kind.WAIT_UNTIL,
    Kind.STORE_CACHED,
    Kind.CLEAN_AND_INVALIDATE,
    Kind.PUT_WITH_SIGNAL,
)


@dataclass(frozen=True)
class Mutant:
    """A change of one operation at one line, or of one parameter.

    ``name`` is what ``--mutant`` takes: ``no-quiet@sp.py:27``, ``windows=1``.
    """

    name: str
    text: str
    file: str = ""
    line: int = 0
    kind: Kind | None = None
    setting: tuple[str, int] | None = None

    def applied(self, instance: Instance) -> Instance:
        """The instance with the change."""
        if self.setting is not None:
            settings = {**instance.settings, self.setting[0]: self.setting[1]}
            return dataclasses.replace(instance, settings=settings)
        return dataclasses.replace(instance, mutation=self.mutate)

    def mutate(self, operation: Operation, file: str, line: int) -> Operation | None:
        """What becomes of an operation: nothing, a load without its condition, or itself."""
        if (operation.kind, line, file) != (self.kind, self.line, self.file):
            return operation
        if operation.kind in WAITS:
            return dataclasses.replace(
                operation,
                kind=Kind.LOAD if operation.kind is Kind.WAIT_UNTIL else operation.kind,
                predicate=None,
                update=None,
            )
        if operation.kind is Kind.PUT_WITH_SIGNAL:
            return dataclasses.replace(operation, kind=Kind.PUT, signal=None, signal_value=None)
        return None


def mutants_of(instance: Instance, systems: Iterable[System]) -> list[Mutant]:
    """The mutants of a protocol whose tables ``systems`` an engine has filled, in source order."""
    found: dict[tuple[str, int, str], Mutant] = {}
    for system in systems:
        for automaton in system.automata:
            for node in automaton.nodes:
                operation, place = node.operation, node.place
                if operation is None or place is None or not synchronizes(operation):
                    continue
                kind = operation.kind
                mutant = Mutant(
                    f"no-{kind.value.replace('_', '-')}@{Path(place.file).name}:{place.line}",
                    f"without the {kind.value} in: {place.text}",
                    place.file,
                    place.line,
                    kind,
                )
                found[(place.file, place.line, kind.value)] = mutant
    ordered = [found[key] for key in sorted(found)]
    return ordered + _with_fewer_windows(instance.kind.parameters(), instance)


def synchronizes(operation: Operation) -> bool:
    """Whether leaving the operation out is a mutant: everything but data and plain reads."""
    if operation.kind not in DROPPED:
        return False
    if operation.kind is Kind.LOAD_CACHED:
        return operation.predicate is not None
    if operation.kind in (Kind.PUT, Kind.STORE_CACHED):
        value = operation.value
        parts = list(value.values()) if isinstance(value, Mapping) else [value]
        return not any(isinstance(getattr(p, "value", p), (Payload, Part)) for p in parts)
    return True


def _with_fewer_windows(parameters: Mapping[str, Parameter], instance: Instance) -> list[Mutant]:
    windows = instance.settings.get(
        "windows", parameters["windows"].default if "windows" in parameters else 0
    )
    if not isinstance(windows, int) or windows < 2:
        return []
    fewer = windows - 1
    text = f"with {fewer} window{'s' if fewer > 1 else ''} instead of {windows}"
    return [Mutant(f"windows={fewer}", text, setting=("windows", fewer))]


def mutant_named(name: str, mutants: Iterable[Mutant], where: str = "--mutant") -> Mutant:
    """The mutant that a command line or a gate file names; `UserError` tells the near ones."""
    known = {each.name: each for each in mutants}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3) or known
        expected = " or ".join(near) or "it has none"
        raise UserError(f"no mutant {name!r}", where=where, expected=expected)
    return known[name]
