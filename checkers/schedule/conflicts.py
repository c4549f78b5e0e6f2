"""Are conflicting accesses ordered? One walk in the order of a run, as in FastTrack.

For each tile only its last write and the readers since matter: whatever came before is ordered
before them, or was reported. A write counts as done where its queue's next quiet stands; tasks
with ``quiet`` have their own. Source: Flanagan and Freund, FastTrack, PLDI 2009.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from syncproof.checkers.schedule.clocks import Clocks
from syncproof.checkers.schedule.collected import Collected
from syncproof.checkers.schedule.program import Program
from syncproof.models.taskflow.findings import INITIALISED, ORDER
from syncproof.models.taskflow.schedule import Tiles

UNWRITTEN = -1


def quiet_nodes(program: Program) -> list[int]:
    """For each node the node whose quiet completes what it has written: itself, or a later one."""
    tasks, count = program.schedule.tasks, len(program.schedule.tasks)
    found = list(range(program.nodes))
    names = list(program.schedule.queues.values())
    for number, nodes in enumerate(program.members[: len(names)]):
        following = -1
        for node in reversed(nodes):
            launch = program.launch_of(node)
            if following < 0 or program.launch_of(following) != launch:
                following = program.host(launch, names[number].rank, 0)
            if tasks[node % count].quiet:
                following = node
            found[node] = following
    return found


@dataclass(slots=True)
class _Tile:
    """What is known of the tiles between two breakpoints of a tensor."""

    writer: int = UNWRITTEN
    readers: dict[int, int] = field(default_factory=dict)


class Conflicts:
    """Walks all accesses of a program in the order of its run."""

    def __init__(self, program: Program, clocks: Clocks, collected: Collected) -> None:
        self.program, self.clocks, self.collected = program, clocks, collected
        self.tasks = program.schedule.tasks
        self.done = quiet_nodes(program)
        self.breaks = self._breakpoints()
        self.tiles = {name: [_Tile() for _ in breaks[1:]] for name, breaks in self.breaks.items()}

    def check(self) -> None:
        """Report every access that is not ordered after the one it depends on."""
        for node in self.clocks.order:
            number = self.program.task_of(node)
            if number < 0:
                continue
            task = self.tasks[number]
            if task.reads or task.writes:
                ended = self.clocks.clock[node].tolist()
                for access in task.reads:
                    self._read(node, access, ended)
                for access in task.writes:
                    self._write(node, access, ended)

    def _breakpoints(self) -> dict[str, list[int]]:
        """Where the accesses to each tensor begin and end: between, all tiles are alike."""
        found: dict[str, set[int]] = {}
        for task in self.tasks:
            for access in (*task.reads, *task.writes):
                found.setdefault(access.tensor, set()).update((access.first, access.last))
        return {name: sorted(points) for name, points in found.items()}

    def _touched(self, access: Tiles) -> tuple[int, list[_Tile]]:
        """The tiles of an access, and the place of the first of them among the tensor's."""
        breaks = self.breaks[access.tensor]
        first, last = bisect_left(breaks, access.first), bisect_left(breaks, access.last)
        return first, self.tiles[access.tensor][first:last]

    def _read(self, node: int, access: Tiles, ended: list[int]) -> None:
        """A read by a node; ``ended`` is its clock, as a list since it is asked so often."""
        queue, position, done = self.program.queue, self.program.position, self.done
        first, tiles = self._touched(access)
        for at, tile in enumerate(tiles, first):
            if tile.writer == UNWRITTEN:
                if not self.program.schedule.tensors[access.tensor].is_input:
                    self._unwritten(node, access, at)
            else:
                quiet = done[tile.writer]
                if quiet == node or ended[queue[quiet]] <= position[quiet]:
                    self._unordered(tile.writer, node, "writes", "reads", access, at)
            tile.readers[queue[node]] = node

    def _write(self, node: int, access: Tiles, ended: list[int]) -> None:
        queue, position, done = self.program.queue, self.program.position, self.done
        first, tiles = self._touched(access)
        for at, tile in enumerate(tiles, first):
            if tile.writer not in (UNWRITTEN, node):
                quiet = done[tile.writer]
                if quiet == node or ended[queue[quiet]] <= position[quiet]:
                    self._unordered(tile.writer, node, "writes", "writes", access, at)
            for reader in tile.readers.values():
                if reader != node and ended[queue[reader]] <= position[reader]:
                    self._unordered(reader, node, "reads", "writes", access, at)
            tile.writer = node
            tile.readers.clear()

    def _unordered(
        self, first: int, second: int, one: str, two: str, access: Tiles, at: int
    ) -> None:
        where = f"tile {self.breaks[access.tensor][at]} of {access.tensor}"
        message = f"{{0}} {one} {where}, {{1}} {two} it, and nothing orders the two"
        if self.clocks.precedes(first, second):
            message = (
                f"{{0}} {one} {where} without a quiet before its triggers: they may overtake the "
                f"write, which {{1}} {two}"
            )
        self.collected.add(ORDER, message, first, second, edges=((first, second),))

    def _unwritten(self, node: int, access: Tiles, at: int) -> None:
        tile = self.breaks[access.tensor][at]
        message = f"{{0}} reads tile {tile} of {access.tensor}, which nobody has written by then"
        self.collected.add(INITIALISED, message, node)
