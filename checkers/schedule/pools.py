"""Pools smaller than their queues: a task that spins holds a core that its notifier may need."""

from __future__ import annotations

from syncproof.checkers.schedule.clocks import Clocks
from syncproof.checkers.schedule.program import Program


def crowded_queues(program: Program) -> dict[int, str]:
    """Queues, with their pools, that may have to wait for a core."""
    queues = list(program.schedule.queues.values())
    size = {pool.name: pool.size for pool in program.schedule.pools.values()}
    members: dict[str, list[int]] = {}
    for number, queue in enumerate(queues):
        if queue.pool:
            members.setdefault(queue.pool, []).append(number)
    return {q: pool for pool, own in members.items() if len(own) > size[pool] for q in own}


def may_starve(program: Program, clocks: Clocks) -> tuple[int, int] | None:
    """A task that spins in a crowded pool for what another crowded queue has yet to do, if any.

    If there is none, and each wait is met by what surely precedes it (`thresholds` is proved), no
    order of taking cores hangs: whoever holds a core and spins waits for a task that needs none
    of a crowded pool, and that can run (docs/taskflow.md, Pools).
    """
    crowded = crowded_queues(program)
    for queue in crowded:
        nodes = program.members[queue]
        for previous, node in zip([-1, *nodes], nodes, strict=False):
            if not program.waits.of(node):
                continue
            for other in crowded:
                before = int(clocks.clock[previous, other]) if previous >= 0 else 0
                now = int(clocks.clock[node, other])
                if other != queue and now > before:
                    return node, program.members[other][now - 1]
    return None
