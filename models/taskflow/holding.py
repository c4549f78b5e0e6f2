"""What a protocol made of a schedule holds apart from its roles.

Of what roles reach all is watched at each step, so that the less there is of it the better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from syncproof.models.memory import Pool, Region
from syncproof.models.protocol import Protocol
from syncproof.models.taskflow.schedule import Schedule


def kept(schedule: Schedule | None) -> Callable[[], Schedule | None]:
    """A function that gives the schedule, for a class whose roles do not look at it: without the
    arrays that it has worked out meanwhile, which nobody can watch."""
    plain = schedule and replace(schedule)
    return lambda: plain


def place(protocol: Protocol, parts: Mapping[str, Region | Pool]) -> None:
    """Give the protocol its regions and pools, by names that no program text has."""
    for name, part in parts.items():
        setattr(protocol, name, part)
