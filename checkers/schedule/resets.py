"""Zeroing between launches: no trigger may land before it that is meant for after it, or the
other way round."""

from __future__ import annotations

from itertools import zip_longest

from syncproof.checkers.schedule.clocks import Clocks
from syncproof.checkers.schedule.collected import Collected
from syncproof.checkers.schedule.conflicts import quiet_nodes
from syncproof.checkers.schedule.program import Group, Program
from syncproof.models.taskflow.findings import RESET


def check_resets(program: Program, clocks: Clocks, collected: Collected) -> None:
    """Report every trigger that a rank's zeroing may erase."""
    zeroed = [
        (number, program.group(number))
        for number, launch in enumerate(program.launch_of_group)
        if launch >= 0
    ]
    if not zeroed or program.schedule.launches.count < 2:
        return
    landing = _landings(program)
    observers = _observers(program, {number for number, _ in zeroed})
    for number, group in zeroed:
        rank = program.schedule.events[group.event].rank
        if group.launch + 1 < program.schedule.launches.count:
            zero = program.host(group.launch, rank, 1)
            _check_late(program, clocks, collected, group, observers.get(number, []), landing, zero)
        if group.launch:
            zero = program.host(group.launch - 1, rank, 1)
            _check_early(clocks, collected, group, zero)


def _landings(program: Program) -> list[int]:
    """The node whose quiet completes a node's triggers: the next one of its queue."""
    quiet = quiet_nodes(program)
    found = list(quiet)
    queues = list(program.schedule.queues.values())
    for number, nodes in enumerate(program.members[: len(queues)]):
        for node, following in zip_longest(nodes, nodes[1:], fillvalue=-1):
            launch = program.launch_of(node)
            is_last = following < 0 or program.launch_of(following) != launch
            found[node] = (
                program.host(launch, queues[number].rank, 0) if is_last else quiet[following]
            )
    return found


def _observers(program: Program, wanted: set[int]) -> dict[int, list[tuple[int, int]]]:
    """The waits for each of the groups, as (node, threshold)."""
    found: dict[int, list[tuple[int, int]]] = {}
    waits = program.waits
    columns = (waits.rows().tolist(), waits.first.tolist(), waits.second.tolist())
    for node, group, threshold in zip(*columns, strict=True):
        if group in wanted:
            found.setdefault(group, []).append((node, threshold))
    return found


def _check_late(
    program: Program,
    clocks: Clocks,
    collected: Collected,
    group: Group,
    observers: list[tuple[int, int]],
    landing: list[int],
    zero: int,
) -> None:
    """Each trigger of a launch has landed before the zeroing: by a quiet, or as it was seen."""
    total = group.total
    seen = max((t for node, t in observers if clocks.precedes(node, zero)), default=0)
    for trigger, amount in zip(group.nodes, group.amounts, strict=True):
        if total - amount >= seen and not clocks.precedes(landing[trigger], zero):
            collected.add(
                RESET,
                f"{{1}} may zero {group.event} before the trigger of {{0}} has landed, which then "
                "counts for the next launch",
                trigger,
                zero,
            )


def _check_early(clocks: Clocks, collected: Collected, group: Group, zero: int) -> None:
    """Each trigger of the next launch comes after the zeroing."""
    for trigger in group.nodes:
        if not clocks.precedes(zero, trigger):
            collected.add(
                RESET,
                f"{{1}} may zero {group.event} after the trigger of {{0}} has landed, and erase it",
                trigger,
                zero,
            )
