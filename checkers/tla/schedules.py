"""A static schedule as the module ``Taskflow`` has it: names of cells, and what tasks write."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from syncproof.models.errors import UserError
from syncproof.models.instance import Instance

CALLED = re.compile(r"((?:tensor|event) \w+)((?:\.[a-z]\d+)*)@(\d+)")
"""A generated tensor or event: what it is, its numbers, its rank."""

Code = tuple[int, ...]
"""A value as the modules write it: a sequence of integers."""


def queues_of(instance: Instance) -> list[list[list[int]]] | None:
    """For each queue of each rank the numbers of its tasks; None where no schedule is run."""
    protocol = instance.protocol()
    by_queue: Mapping[str, Any] | None = getattr(protocol, "by_queue", None)
    if by_queue is None:
        return None
    ranks: list[list[str]] = getattr(protocol, "queues", [])
    return [[[task.number for task in by_queue[name]] for name in names] for names in ranks]


def refuse_other_schedules(instance: Instance) -> None:
    """Refuse a schedule that is not the generated layer that the module states."""
    bounds = instance.bounds
    if queues_of(instance) is None:
        return
    given: Callable[[], object] = getattr(instance.kind, "given", lambda: None)
    if given() is not None:
        raise UserError(
            "the TLA+ module states the generated layer, and no schedule of somebody else",
            where="--engine tla",
            expected="another engine",
        )
    if bounds.experts_in_all != bounds.ranks:
        raise UserError(
            f"the TLA+ module has one expert for each rank, not {bounds.experts_in_all} in all",
            where="--experts",
            expected="no --experts, or another engine",
        )


def place_of(region: str, place: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """A region's name and a place in it, the numbers that a schedule's names have in the place."""
    called = CALLED.fullmatch(region)
    if called is None:
        return region, place
    return called[1], (*map(int, re.findall(r"\d+", called[2])), *place)


def writers_of(instance: Instance) -> Callable[[Hashable], Code | None]:
    """For the value of a tile the task that has written it: rank, queue, how manieth.

    None for what no task has written.
    """
    ranks = queues_of(instance)
    if ranks is None:
        return lambda _: None
    launches = int(getattr(instance.protocol(), "launches", 1))
    in_all = sum(len(tasks) for queues in ranks for tasks in queues)
    known: dict[Hashable, Code] = {}
    for rank, queues in enumerate(ranks):
        for queue, tasks in enumerate(queues):
            for position, task in enumerate(tasks, 1):
                for launch in range(launches):
                    known[launch * in_all + task + 1] = (rank, queue, position)
    return known.get
