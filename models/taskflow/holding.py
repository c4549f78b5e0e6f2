"""What a protocol made of a schedule holds apart from its roles.

A role is told apart from itself a step later by all that it reaches; these functions, which belong
to the models, are not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from syncproof.models.memory import Pool, Region
from syncproof.models.protocol import Protocol
from syncproof.models.taskflow.schedule import Schedule


def kept(schedule: Schedule | None) -> Callable[[], Schedule | None]:
    """A function that gives the schedule: for a class whose roles do not look at it."""
    return lambda: schedule


def place(protocol: Protocol, parts: Mapping[str, Region | Pool]) -> None:
    """Give the protocol its regions and pools, by names that no program text has."""
    for name, part in parts.items():
        setattr(protocol, name, part)
