"""List scheduling: each task to the core that is free first, the longest way to go first.

Transfers go in the order of their turns: with rank-aware reordering rank r serves r, r+1, ... in
turn, so that at any time every rank sends to another one; without, all begin with rank 0. Source:
HyperParallel-MoE (arXiv 2605.23764), figure 6.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass

from syncproof.models.taskflow.moe import Graph, Layer, Work, layer_graph
from syncproof.models.taskflow.schedule import (
    Event,
    Launches,
    Queue,
    Schedule,
    Task,
)
from syncproof.models.taskflow.validation import validate


def generate(layer: Layer, launches: int = 1) -> Schedule:
    """The schedule of a layer; between launches its events are zeroed before a barrier."""
    graph = layer_graph(layer)
    placed = _ListScheduler(graph).run()
    queues = _queues(layer)
    events: dict[str, Event] = {}
    used: dict[int, int] = defaultdict(int)
    for name, rank in graph.events.items():
        events[name] = Event(name, rank=rank, id=used[rank])
        used[rank] += 1
    made = Schedule(
        f"MoE-FFN {layer.direction}",
        layer.ranks,
        graph.tensors,
        queues,
        events,
        tuple(
            Task(
                work.name,
                queue,
                tuple(work.reads),
                tuple(work.writes),
                tuple(work.waits.items()),
                tuple(work.triggers.items()),
                work.duration,
                work.operator,
            )
            for work, queue in placed
        ),
        launches=Launches(launches, tuple(events), "after"),
    )
    validate(made)
    return made


def _queues(layer: Layer) -> dict[str, Queue]:
    found = {}
    for rank in range(layer.ranks):
        for core, count in (("aic", layer.aic), ("aiv", layer.aiv)):
            for number in range(count):
                name = f"{core}{number}@{rank}"
                found[name] = Queue(name, rank, core)
    return found


def upward_ranks(work: list[Work]) -> list[float]:
    """For each task the longest way to the end, itself included, through events."""
    waiters: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(work):
        for name in each.waits:
            waiters[name].append(number)
    best: dict[str, float] = {}
    found = [0.0] * len(work)
    # Work is made in the order of the operators, so whoever waits comes later.
    for number in reversed(range(len(work))):
        each = work[number]
        for name in each.triggers:
            if name not in best:
                best[name] = max((found[other] for other in waiters[name]), default=0.0)
        found[number] = each.duration + max((best[n] for n in each.triggers), default=0.0)
    return found


@dataclass
class _Kind:
    """The free cores and the ready tasks of one kind on one rank."""

    free: list[tuple[float, int]]
    ready: list[tuple[tuple[float, ...], int]]


class _ListScheduler:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.layer, self.work = graph, graph.layer, graph.work
        self.length = upward_ranks(self.work)
        self.missing = [len(each.waits) for each in self.work]
        self.left: dict[str, int] = defaultdict(int)
        self.waiters: dict[str, list[int]] = defaultdict(list)
        for number, each in enumerate(self.work):
            for name, amount in each.triggers.items():
                self.left[name] += amount
            for name in each.waits:
                self.waiters[name].append(number)
        links, aiv = self.layer.links, self.layer.aiv
        apart = links < aiv
        cores = {
            "aic": range(self.layer.aic),
            "link": range(links),
            "aiv": range(links if apart else 0, aiv),
        }
        self.kinds = {
            (rank, core): _Kind([(0.0, number) for number in numbers], [])
            for rank in range(self.layer.ranks)
            for core, numbers in cores.items()
        }
        if not apart:
            for rank in range(self.layer.ranks):
                self.kinds[rank, "link"] = self.kinds[rank, "aiv"]
        self.running: list[tuple[float, int, int]] = []

    def run(self) -> list[tuple[Work, str]]:
        """The work in the order of its starts, each with its queue."""
        placed: list[tuple[Work, str]] = []
        for number, missing in enumerate(self.missing):
            if missing == 0:
                self._ready(number)
        now = 0.0
        while True:
            placed += self._start_all(now)
            if not self.running:
                break
            now = self.running[0][0]
            while self.running and self.running[0][0] == now:
                self._finish(heapq.heappop(self.running))
        assert len(placed) == len(self.work), "the graph has a cycle"
        return placed

    def _ready(self, number: int) -> None:
        work = self.work[number]
        # Transfers strictly in turn; other work by the longest way to go, then in turn.
        key = (
            (work.turn, -self.length[number])
            if work.core == "link"
            else (-self.length[number], work.turn)
        )
        heapq.heappush(self.kinds[work.rank, work.core].ready, ((*key, number), number))

    def _start_all(self, now: float) -> list[tuple[Work, str]]:
        placed = []
        for (rank, _), kind in self.kinds.items():
            while kind.ready and kind.free and kind.free[0][0] <= now:
                _, number = heapq.heappop(kind.ready)
                _, core = heapq.heappop(kind.free)
                work = self.work[number]
                heapq.heappush(self.running, (round(now + work.duration, 6), number, core))
                name = "aic" if work.core == "aic" else "aiv"
                placed.append((work, f"{name}{core}@{rank}"))
        return placed

    def _finish(self, ended: tuple[float, int, int]) -> None:
        now, number, core = ended
        work = self.work[number]
        heapq.heappush(self.kinds[work.rank, work.core].free, (now, core))
        for name, amount in work.triggers.items():
            self.left[name] -= amount
            if self.left[name] == 0:
                for other in self.waiters[name]:
                    self.missing[other] -= 1
                    if self.missing[other] == 0:
                        self._ready(other)
