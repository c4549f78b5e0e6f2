"""Why a program gets stuck: sums that are never reached, and cycles of tasks that wait in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from syncproof.checkers.schedule.collected import Collected
from syncproof.checkers.schedule.execution import Execution
from syncproof.checkers.schedule.program import Program
from syncproof.models.taskflow.findings import HANG

if TYPE_CHECKING:
    import networkx


def explain_hang(program: Program, execution: Execution, collected: Collected) -> None:
    """Report each sum that is never reached, else a cycle, printed in its order."""
    import networkx  # only for what hangs: it takes as long as checking a small schedule

    graph = networkx.DiGraph()
    unreachable = False
    for head in blocked_heads(program, execution):
        for group, threshold in program.waits.of(head):
            if execution.sums[group] >= threshold:
                continue
            if program.totals[group] < threshold:
                unreachable = True
                _report_unreachable(program, collected, head, group, threshold)
        for other, why in _waited_for(program, execution, head):
            graph.add_edge(head, other, why=why)
    for head in list(graph):
        for other in list(graph[head]):
            _add_queue_edges(program, execution, graph, other)
    if not unreachable:
        _report_cycle(program, collected, graph)


def blocked_heads(program: Program, execution: Execution) -> list[int]:
    """The first node of each queue that never starts."""
    found = []
    for nodes in program.members:
        head = next((node for node in nodes if execution.is_stuck(node)), None)
        if head is not None:
            found.append(head)
    return found


def _waited_for(program: Program, execution: Execution, head: int) -> Iterator[tuple[int, str]]:
    for group, threshold in program.waits.of(head):
        if execution.sums[group] < threshold:
            found = program.group(group)
            for trigger in found.nodes:
                if execution.is_stuck(trigger):
                    yield trigger, f"waits for {found.event} from"
    for other in program.before[head]:
        if execution.is_stuck(other):
            yield other, "comes after"


def _add_queue_edges(
    program: Program, execution: Execution, graph: networkx.DiGraph, node: int
) -> None:
    nodes = program.members[program.queue[node]]
    head = next(each for each in nodes if execution.is_stuck(each))
    if head != node:
        graph.add_edge(node, head, why="is queued behind")


def _report_unreachable(
    program: Program, collected: Collected, head: int, group: int, threshold: int
) -> None:
    found = program.group(group)
    operators = {program.schedule.tasks[program.task_of(n)].operator for n in found.nodes} - {""}
    silent = [
        task.name
        for task in program.schedule.tasks
        if task.operator in operators and not task.triggers
    ][:3]
    hint = f"; of the same operator {', '.join(silent)} triggers nothing" if silent else ""
    some = ", ".join(f"{{{i + 1}}}" for i in range(min(3, len(found.nodes))))
    by = f"; it is triggered by {some}{' ...' if len(found.nodes) > 3 else ''}"
    collected.add(
        HANG,
        f"{{0}} waits for {found.event} to reach {threshold}, but all triggers add up to "
        f"{found.total}{by}{hint}",
        head,
        *found.nodes[:3],
        waits=(head,),
    )


def _report_cycle(program: Program, collected: Collected, graph: networkx.DiGraph) -> None:
    import networkx

    try:
        cycle = networkx.find_cycle(graph)
    except networkx.NetworkXNoCycle:
        heads = [node for node in graph if program.task_of(node) >= 0][:4]
        names = ", ".join(f"{{{i}}}" for i in range(len(heads)))
        collected.add(HANG, f"stuck for want of a core of their pool: {names}", *heads)
        return
    nodes = [one for one, _ in cycle]
    # The cycle begins at the task that stands first in the file: the same input, the same words.
    at = nodes.index(min(nodes))
    cycle = cycle[at:] + cycle[:at]
    words = [f"{{{i}}} {graph.edges[one, two]['why']}" for i, (one, two) in enumerate(cycle)]
    waits = tuple(one for one, two in cycle if "behind" not in graph.edges[one, two]["why"])
    collected.add(
        HANG,
        f"a cycle: {' '.join(words)} {{0}}",
        *(one for one, _ in cycle),
        edges=tuple((two, one) for one, two in cycle),
        waits=waits,
    )
