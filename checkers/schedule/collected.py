"""Findings as they are collected: the first few of each property, all of them counted."""

from __future__ import annotations

from collections import Counter

from syncproof.checkers.schedule.program import Program
from syncproof.models.taskflow.findings import SHOWN, Finding


class Collected:
    """Findings about the nodes of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()

    def add(
        self,
        property: str,
        message: str,
        *nodes: int,
        edges: tuple[tuple[int, int], ...] = (),
        waits: tuple[int, ...] = (),
    ) -> None:
        """Note a fault; ``{0}``, ``{1}`` in the message are the names of ``nodes``."""
        self.counts[property] += 1
        if self.counts[property] > SHOWN:
            return
        task_of, tasks = self.program.task_of, self.program.schedule.tasks
        names = tuple(tasks[task_of(n)].name for n in nodes if task_of(n) >= 0)
        pairs = tuple((task_of(a), task_of(b)) for a, b in edges if task_of(a) >= 0 <= task_of(b))
        text = message.format(*map(self.program.name, nodes))
        waiting = tuple(task_of(n) for n in waits if task_of(n) >= 0)
        self.findings.append(Finding(property, text, names, pairs, waiting))

    def first(self, property: str) -> str:
        """The first message of a property, and how many more there are."""
        text = next(each.message for each in self.findings if each.property == property)
        more = self.counts[property] - 1
        return f"{text} (and {more:,} more)" if more else text
