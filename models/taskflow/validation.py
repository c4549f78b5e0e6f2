"""What a schedule must be before anybody checks it: names that exist, numbers in range.

Each fault is one `UserError` with the line of the part that is wrong.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

import numpy as np

from syncproof.models.errors import UserError
from syncproof.models.taskflow.schedule import (
    BARRIERS,
    CORES,
    COUNTER,
    CROSS_CORE,
    FLAG,
    IDS,
    KINDS,
    LARGEST_COUNT,
    MBARRIER,
    RESERVED,
    Event,
    Schedule,
    Task,
    Tiles,
    setters_of,
)

LARGEST = {"ranks": 4096, "launches": 1000, "tiles": 1 << 31}


def validate(schedule: Schedule) -> None:
    """Raise a `UserError` for the first part that cannot be meant."""
    ranks = schedule.ranks
    _in_range(schedule, ("ranks",), "ranks", ranks, 1, LARGEST["ranks"])
    _validate_parts(schedule)
    for event in schedule.events.values():
        is_plain = event.kind == COUNTER and event.id is None and not event.cores
        if not (is_plain and 0 <= event.rank < ranks):
            _validate_event(schedule, event)
    _validate_ids(schedule)
    doubtful = _doubtful(schedule)
    names: dict[str, int] = {}
    for number, task in enumerate(schedule.tasks):
        if names.setdefault(task.name, number) != number:
            first = schedule.places.line("tasks", names[task.name])
            raise _error(
                schedule,
                ("tasks", number, "name"),
                f"a second task {task.name!r}",
                f"another name than that of {first}",
            )
        _validate_task(schedule, number, task)
        if number in doubtful:
            _validate_pairs(schedule, number, task)
    _validate_use(schedule)
    _validate_launches(schedule)


def _error(schedule: Schedule, path: tuple[str | int, ...], what: str, expected: str) -> UserError:
    return UserError(what, where=schedule.places.line(*path), expected=expected)


def _known(
    schedule: Schedule, path: tuple[str | int, ...], what: str, name: str, known: Iterable[str]
) -> None:
    names = list(known)
    if name in names:
        return
    near = difflib.get_close_matches(name, names[:5000], n=2)
    some = ", ".join(near or names[:4]) or "none is declared"
    raise _error(schedule, path, f"unknown {what} {name!r}", f"perhaps {some}" if near else some)


def _in_range(
    schedule: Schedule, path: tuple[str | int, ...], what: str, value: int, least: int, most: int
) -> None:
    if not least <= value <= most:
        raise _error(schedule, path, f"{what} is {value}", f"{least} to {most}")


def _validate_parts(schedule: Schedule) -> None:
    last = schedule.ranks - 1
    for tensor in schedule.tensors.values():
        path = ("tensors", tensor.name)
        _in_range(schedule, path, f"the rank of tensor {tensor.name!r}", tensor.rank, 0, last)
        _in_range(
            schedule, path, f"the size of tensor {tensor.name!r}", tensor.tiles, 1, LARGEST["tiles"]
        )
    for pool in schedule.pools.values():
        path = ("pools", pool.name)
        _in_range(schedule, path, f"the rank of pool {pool.name!r}", pool.rank, 0, last)
        _in_range(schedule, path, f"the size of pool {pool.name!r}", pool.size, 1, 1 << 20)
    for queue in schedule.queues.values():
        path = ("queues", queue.name)
        _in_range(schedule, path, f"the rank of queue {queue.name!r}", queue.rank, 0, last)
        _known(schedule, path, "kind of core", queue.core, CORES)
        if queue.pool:
            _known(schedule, path, "pool", queue.pool, schedule.pools)
            if schedule.pools[queue.pool].rank != queue.rank:
                raise _error(
                    schedule,
                    path,
                    f"pool {queue.pool!r} is on another rank than {queue.name!r}",
                    f"a pool of rank {queue.rank}",
                )


# Events


def _validate_event(schedule: Schedule, event: Event) -> None:
    path = ("events", event.name)
    _known(schedule, path, "kind of event", event.kind, KINDS)
    _in_range(schedule, path, f"the rank of {event.name!r}", event.rank, 0, schedule.ranks - 1)
    _in_range(schedule, path, f"arrivals of {event.name!r}", event.arrivals, 1, 1 << 20)
    if event.kind in (CROSS_CORE, FLAG) and event.id is None:
        raise _error(schedule, path, f"the {event.kind} {event.name!r} has no id", "an id")
    if event.id is not None and event.kind in IDS:
        most = IDS[event.kind] - 1
        if not 0 <= event.id <= most:
            aliases = f"0 to {most}; the hardware would take {event.id % IDS[event.kind]}"
            raise _error(schedule, path, f"the id of {event.name!r} is {event.id}", aliases)
        if event.id in RESERVED.get(event.kind, ()):
            raise _error(
                schedule,
                path,
                f"the id of {event.name!r} is {event.id}, which is reserved",
                f"none of {', '.join(map(str, RESERVED[event.kind]))}",
            )
    for core in event.cores:
        _known(schedule, path, "queue", core, schedule.queues)
        if schedule.queues[core].rank != event.rank:
            raise _error(
                schedule,
                path,
                f"{core!r} is not on rank {event.rank}, as {event.name!r} is",
                "cores of one rank",
            )
    if len(set(event.cores)) != len(event.cores):
        raise _error(schedule, path, f"{event.name!r} names a core twice", "each once")
    if event.kind == CROSS_CORE:
        _validate_mode(schedule, event)
    if event.kind == FLAG and len(event.cores) != 2:
        raise _error(schedule, path, f"{len(event.cores)} cores of flag {event.name!r}", "two")


def _validate_mode(schedule: Schedule, event: Event) -> None:
    kinds = sorted(schedule.queues[name].core for name in event.cores)
    path = ("events", event.name)
    if event.mode == 0:
        all_of_kind = {
            name
            for name, queue in schedule.queues.items()
            if kinds and queue.core == kinds[0] and queue.rank == event.rank
        }
        if len(set(kinds)) != 1 or set(event.cores) != all_of_kind:
            raise _error(
                schedule,
                path,
                f"mode 0 of {event.name!r} is not of all cores of one kind",
                "every AIC or every AIV of the rank",
            )
    elif event.mode == 1 and kinds != ["aiv", "aiv"]:
        raise _error(schedule, path, f"mode 1 of {event.name!r} on {kinds}", "two AIVs")
    elif event.mode == 2 and kinds not in (["aic", "aiv"], ["aic", "aiv", "aiv"]):
        raise _error(schedule, path, f"mode 2 of {event.name!r} on {kinds}", "an AIC and its AIVs")
    elif event.mode not in (0, 1, 2):
        raise _error(schedule, path, f"mode {event.mode} of {event.name!r}", "0, 1 or 2")


def _validate_ids(schedule: Schedule) -> None:
    """Counters are never free again within a launch: two of one rank cannot share an id."""
    taken: dict[tuple[int, int], str] = {}
    for event in schedule.events.values():
        if event.id is not None and event.kind == COUNTER:
            other = taken.setdefault((event.rank, event.id), event.name)
            if other != event.name:
                raise _error(
                    schedule,
                    ("events", event.name),
                    f"{event.name!r} and {other!r} overlap: both are counter {event.id} of rank "
                    f"{event.rank}",
                    "an id of its own",
                )


# Tasks


def _validate_task(schedule: Schedule, number: int, task: Task) -> None:
    if task.queue not in schedule.queues:
        _known(schedule, ("tasks", number, "queue"), "queue", task.queue, schedule.queues)
    if not 0 <= task.duration < math.inf:
        raise _error(
            schedule,
            ("tasks", number, "duration"),
            f"the duration of task {task.name!r} is {task.duration:g}",
            "microseconds, 0 or more",
        )
    for key, accesses in (("reads", task.reads), ("writes", task.writes)):
        for access in accesses:
            tensor = schedule.tensors.get(access.tensor)
            if tensor is None or not 0 <= access.first < access.last <= tensor.tiles:
                raise _wrong_tiles(schedule, number, key, access)


def _doubtful(schedule: Schedule) -> set[int]:
    """The tasks with anything but waits for counters of their own rank and triggers of counters.

    A task of an unknown queue is refused before its pairs are looked at.
    """
    events = schedule.events.values()
    # One more for events that are not known: their number is -1.
    is_counter = np.array([event.kind == COUNTER for event in events] + [False])
    ranks = {name: queue.rank for name, queue in schedule.queues.items()}
    rank_of_event = np.array([event.rank for event in events] + [-1])
    rank_of_task = np.array([ranks.get(task.queue, -1) for task in schedule.tasks], dtype=np.int64)
    found: set[int] = set()
    for pairs in (schedule.all_waits, schedule.all_triggers):
        tasks = pairs.tasks()
        is_plain = is_counter[pairs.event] & (pairs.amount >= 1) & (pairs.amount <= LARGEST_COUNT)
        if pairs is schedule.all_waits:
            is_plain &= rank_of_event[pairs.event] == rank_of_task[tasks]
        found.update(tasks[~is_plain].tolist())
    return found


def _validate_pairs(schedule: Schedule, number: int, task: Task) -> None:
    for key, pairs in (("waits", task.waits), ("triggers", task.triggers)):
        for name, amount in pairs:
            event = schedule.events.get(name)
            if event is None or type(amount) is not int or not 1 <= amount <= LARGEST_COUNT:
                raise _wrong_event(schedule, number, key, name, amount)
            _validate_side(schedule, number, task, key, event, amount)


def _wrong_tiles(schedule: Schedule, number: int, key: str, access: Tiles) -> UserError:
    path = ("tasks", number, key, access.tensor)
    task = schedule.tasks[number]
    if access.tensor not in schedule.tensors:
        near = difflib.get_close_matches(access.tensor, list(schedule.tensors)[:5000], n=2)
        return _error(
            schedule,
            path,
            f"task {task.name!r} {key} an unknown tensor {access.tensor!r}",
            f"perhaps {', '.join(near)}" if near else "a tensor of the schedule",
        )
    tiles = schedule.tensors[access.tensor].tiles
    return _error(
        schedule,
        path,
        f"task {task.name!r} {key} tiles {access.first} to {access.last} of {access.tensor!r}",
        f"first below last, within 0 to {tiles}",
    )


def _wrong_event(schedule: Schedule, number: int, key: str, name: str, amount: int) -> UserError:
    path = ("tasks", number, key, name)
    task = schedule.tasks[number]
    if name in schedule.events:
        return _error(
            schedule,
            path,
            f"task {task.name!r} {key} {name!r} by {amount}",
            f"1 to {LARGEST_COUNT}",
        )
    near = difflib.get_close_matches(name, list(schedule.events)[:5000], n=2)
    return _error(
        schedule,
        path,
        f"task {task.name!r} {key} an unknown event {name!r}",
        f"perhaps {', '.join(near)}" if near else "an event of the schedule",
    )


def _validate_side(
    schedule: Schedule, number: int, task: Task, key: str, event: Event, amount: int
) -> None:
    """Who may wait for an event, and who may trigger it."""
    path = ("tasks", number, key, event.name)
    if (key == "waits" or event.kind != COUNTER) and schedule.rank_of(task) != event.rank:
        raise _error(
            schedule,
            path,
            f"task {task.name!r} of rank {schedule.rank_of(task)} {key} {event.name!r} of rank "
            f"{event.rank}",
            "an event of its own rank" if key == "waits" else "a counter",
        )
    if event.kind == CROSS_CORE and (
        task.queue not in event.cores
        or (key == "waits" and not setters_of(event, task.queue, schedule.queues))
    ):
        raise _error(
            schedule, path, f"{task.queue!r} is no core of {event.name!r}", ", ".join(event.cores)
        )
    if event.kind == FLAG:
        wanted = event.cores[1 if key == "waits" else 0]
        if task.queue != wanted:
            raise _error(
                schedule, path, f"{task.queue!r} {key} the flag {event.name!r}", f"only {wanted}"
            )
    if event.kind in (FLAG, MBARRIER) and key == "waits" and amount != 1:
        raise _error(schedule, path, f"a wait of {amount} for {event.name!r}", "1")
    if event.kind in (FLAG, CROSS_CORE) and amount > 64:
        raise _error(schedule, path, f"{amount} at once of {event.name!r}", "64 at most")


def _validate_use(schedule: Schedule) -> None:
    """Whoever waits, waits for an event that somebody triggers."""
    is_triggered = np.zeros(len(schedule.events) + 1, dtype=bool)
    is_triggered[schedule.all_triggers.event] = True
    waits = schedule.all_waits
    missing = np.flatnonzero(~is_triggered[waits.event])
    if missing.size:
        number = int(waits.tasks()[missing[0]])
        task = schedule.tasks[number]
        name = task.waits[int(missing[0] - waits.start[number])][0]
        raise _error(
            schedule,
            ("tasks", number, "waits", name),
            f"task {task.name!r} waits for {name!r}, which nobody triggers",
            "a trigger",
        )


def _validate_launches(schedule: Schedule) -> None:
    launches = schedule.launches
    _in_range(
        schedule,
        ("launches", "count"),
        "the number of launches",
        launches.count,
        1,
        LARGEST["launches"],
    )
    if launches.barrier not in BARRIERS:
        raise _error(
            schedule, ("launches", "barrier"), f"barrier {launches.barrier!r}", ", ".join(BARRIERS)
        )
    for name in launches.zero:
        _known(schedule, ("launches", "zero"), "event", name, schedule.events)
        if schedule.events[name].kind != COUNTER or schedule.events[name].epochs:
            raise _error(
                schedule, ("launches", "zero"), f"{name!r} is zeroed", "a counter without epochs"
            )
