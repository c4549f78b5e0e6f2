"""A static schedule as the module ``Taskflow`` has it: names of cells, and what tasks write."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable

from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.taskflow.schedule import Schedule

CALLED = re.compile(r"((?:tensor|event) \w+)((?:\.[a-z]\d+)*)@(\d+)")
"""A generated tensor or event: what it is, its numbers, its rank."""

Code = tuple[int, ...]
"""A value as the modules write it: a sequence of integers."""


def schedule_of(instance: Instance) -> Schedule | None:
    """The schedule that the instance's protocol runs, if it runs one."""
    found = getattr(instance.protocol(), "schedule", None)
    return found if isinstance(found, Schedule) else None


def refuse_other_schedules(instance: Instance) -> None:
    """Refuse a schedule that is not the generated layer that the module states."""
    bounds = instance.bounds
    if schedule_of(instance) is None:
        return
    if getattr(instance.kind, "given", None) is not None:
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
    schedule = schedule_of(instance)
    if schedule is None:
        return lambda _: None
    known: dict[Hashable, Code] = {}
    numbers: dict[int, int] = {}
    for name, tasks in schedule.by_queue().items():
        rank = schedule.queues[name].rank
        queue = numbers.get(rank, 0)
        numbers[rank] = queue + 1
        for position, task in enumerate(tasks, 1):
            for launch in range(schedule.launches.count):
                known[launch * len(schedule.tasks) + task + 1] = (rank, queue, position)
    return known.get
