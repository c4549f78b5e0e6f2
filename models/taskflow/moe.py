"""The MoE-FFN layer as a graph of tile tasks: dispatch, experts, combine, and their gradients.

Rank d holds ``experts / ranks`` experts. Every source sends ``tiles`` row tiles at most to each
expert; the rows of one expert are multiplied in blocks of ``sources_per_block`` sources, a block
being what one event tells of. Every tile has its task, and an empty one still triggers: thresholds
do not depend on the routing. Source: HyperParallel-MoE (arXiv 2605.23764), figures 2 and 4; the
counters are those of hyper-parallel's multicore runtime, 1024 a rank.

Durations are assumptions, in microseconds, chosen so that the matrix cores are the bottleneck.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from syncproof.models.errors import UserError
from syncproof.models.taskflow.schedule import COUNTER, IDS, Tensor, Tiles

FORWARD, BACKWARD = "forward", "backward"
ROUTINGS = ("balanced", "skewed")


@dataclass(frozen=True)
class Durations:
    """Microseconds of one task of each kind, for ``empty`` ones those of looking and signalling."""

    transfer: float = 3.0
    matrix: float = 10.0
    vector: float = 4.0
    empty: float = 0.5


@dataclass(frozen=True)
class Layer:
    """What is generated.

    ``experts`` in all; ``tiles`` row tiles a source may send to an expert; ``columns`` column
    tiles of each matrix product; ``aic`` and ``aiv`` cores a rank, of which ``links`` AIVs make
    transfers. ``reorder`` is the rank-aware order of transfers.
    """

    ranks: int = 2
    experts: int = 4
    tiles: int = 1
    columns: int = 2
    aic: int = 2
    aiv: int = 4
    links: int = 2
    direction: str = FORWARD
    routing: str = "balanced"
    reorder: bool = True
    durations: Durations = field(default_factory=Durations)

    def __post_init__(self) -> None:
        for name, most in (
            ("ranks", 1024),
            ("experts", 65536),
            ("tiles", 1024),
            ("columns", 1024),
            ("aic", 1024),
            ("aiv", 1024),
            ("links", 1024),
        ):
            if not 1 <= getattr(self, name) <= most:
                raise UserError(
                    f"{name} is {getattr(self, name)}", where=f"--{name}", expected=f"1 to {most}"
                )
        if self.experts % self.ranks:
            raise UserError(
                f"{self.experts} experts do not spread evenly over {self.ranks} ranks",
                where="--experts",
                expected=f"a multiple of {self.ranks}",
            )
        if self.links > self.aiv:
            raise UserError(
                f"{self.links} of {self.aiv} AIVs make transfers",
                where="--links",
                expected="no more than there are",
            )
        for value, known in ((self.direction, (FORWARD, BACKWARD)), (self.routing, ROUTINGS)):
            if value not in known:
                raise UserError(f"{value!r} is not known", expected=" or ".join(known))

    @property
    def experts_per_rank(self) -> int:
        """Experts on each rank."""
        return self.experts // self.ranks

    def sent(self, source: int, expert: int) -> int:
        """Tiles from ``source`` to ``expert``; skewed: fewer for later ones, none for the last."""
        if self.routing == "balanced":
            return self.tiles
        if expert == self.experts - 1:
            return 0
        return max(0, self.tiles - (expert * self.tiles) // self.experts)

    @property
    def sources_per_block(self) -> int:
        """The fewest sources in a block for which a rank's events fit into its counters."""
        for size in range(1, self.ranks + 1):
            if self.ranks % size == 0 and self.events_per_rank(size) <= IDS[COUNTER]:
                return size
        raise UserError(
            f"{self.experts_per_rank} experts a rank need more than {IDS[COUNTER]} events",
            where="--experts",
            expected="fewer experts or more ranks",
        )

    def events_per_rank(self, size: int) -> int:
        """Events of a rank if a block has the rows of ``size`` sources."""
        blocks = self.experts_per_rank * (self.ranks // size)
        return 4 * blocks + self.tiles


@dataclass
class Work:
    """A task that has no queue yet: ``core`` says on which kind it runs, ``peer`` to which rank
    it sends, ``turn`` when among the tasks of its operator."""

    name: str
    operator: str
    rank: int
    core: str
    duration: float
    reads: list[Tiles]
    writes: list[Tiles]
    waits: dict[str, int] = field(default_factory=dict)
    triggers: dict[str, int] = field(default_factory=dict)
    peer: int = -1
    turn: int = 0


@dataclass
class Graph:
    """All work of a layer, its tensors, and its events with the ranks that count them."""

    layer: Layer
    tensors: dict[str, Tensor] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    work: list[Work] = field(default_factory=list)


def layer_graph(layer: Layer) -> Graph:
    """The graph of a layer's forward or backward pass."""
    graph = Graph(layer)
    made = _Maker(graph)
    made.exchange("dispatch" if layer.direction == FORWARD else "combine_grad")
    if layer.direction == FORWARD:
        made.forward()
    else:
        made.backward()
    _count_triggers(graph)
    return graph


def _count_triggers(graph: Graph) -> None:
    """Each wait is for all triggers of its event."""
    totals: dict[str, int] = dict.fromkeys(graph.events, 0)
    for work in graph.work:
        for name, amount in work.triggers.items():
            totals[name] += amount
    for work in graph.work:
        work.waits = {name: totals[name] for name in work.waits}


class _Maker:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.layer = graph, graph.layer
        self.ranks, self.tiles = self.layer.ranks, self.layer.tiles
        self.size = self.layer.sources_per_block
        self.blocks = self.ranks // self.size
        self.rows = self.size * self.tiles
        self.local = range(self.layer.experts_per_rank)

    def tensor(self, name: str, rank: int, tiles: int, *, is_input: bool = False) -> str:
        full = f"{name}@{rank}"
        if full not in self.graph.tensors:
            self.graph.tensors[full] = Tensor(full, rank, tiles, is_input)
        return full

    def event(self, name: str, rank: int) -> str:
        self.graph.events.setdefault(f"{name}@{rank}", rank)
        return f"{name}@{rank}"

    def turn(self, rank: int, peer: int) -> int:
        """Which of its peers a rank serves when: the next rank first, or rank 0 first."""
        return (peer - rank) % self.ranks if self.layer.reorder else peer

    def filled(self, rank: int, expert: int, block: int) -> list[tuple[int, int]]:
        """The (source, tile) of a block that hold tokens."""
        everywhere = rank * self.layer.experts_per_rank + expert
        return [
            (source, tile)
            for source in range(block * self.size, (block + 1) * self.size)
            for tile in range(self.layer.sent(source, everywhere))
        ]

    def row(self, expert: int, source: int, tile: int) -> int:
        return (expert * self.ranks + source) * self.tiles + tile

    # Between ranks

    def exchange(self, operator: str) -> None:
        """Each source sends its tiles to each expert's rank, and says so for each tile."""
        per_rank = self.layer.experts_per_rank
        for source in range(self.ranks):
            tokens = self.tensor("tokens", source, self.layer.experts * self.tiles, is_input=True)
            for peer in range(self.ranks):
                received = self.tensor("received", peer, per_rank * self.ranks * self.tiles)
                for expert in self.local:
                    for tile in range(self.tiles):
                        everywhere = peer * per_rank + expert
                        full = tile < self.layer.sent(source, everywhere)
                        at = everywhere * self.tiles + tile
                        row = self.row(expert, source, tile)
                        event = self.event(f"{operator}.e{expert}.b{source // self.size}", peer)
                        self.add(
                            f"{operator}.{source}to{peer}.e{expert}.t{tile}",
                            operator,
                            source,
                            "link",
                            self.layer.durations.transfer if full else 0.0,
                            [Tiles(tokens, at, at + 1)] if full else [],
                            [Tiles(received, row, row + 1)] if full else [],
                            (),
                            [event],
                            peer,
                            self.turn(source, peer),
                        )

    def send_back(self, operator: str, product: str, done: str) -> None:
        """Each expert's rank sends the rows back to where they came from; the source adds them."""
        per_rank = self.layer.experts_per_rank
        for rank in range(self.ranks):
            for expert in self.local:
                for source in range(self.ranks):
                    block = source // self.size
                    for tile in range(self.tiles):
                        everywhere = rank * per_rank + expert
                        full = tile < self.layer.sent(source, everywhere)
                        at = everywhere * self.tiles + tile
                        returned = self.tensor("returned", source, self.layer.experts * self.tiles)
                        row = (source % self.size) * self.tiles + tile
                        reads = [
                            Tiles(product, first + row, first + row + 1)
                            for column in range(self.layer.columns)
                            for first in [self.column(expert, block, column)]
                        ]
                        self.add(
                            f"{operator}.{rank}to{source}.e{expert}.t{tile}",
                            operator,
                            rank,
                            "link",
                            self.layer.durations.transfer if full else 0.0,
                            [Tiles(f"{product}@{rank}", r.first, r.last) for r in reads if full],
                            [Tiles(returned, at, at + 1)] if full else [],
                            [self.event(f"{done}.e{expert}.b{block}", rank)],
                            [self.event(f"{operator}.t{tile}", source)],
                            source,
                            self.turn(rank, source),
                        )
        for source in range(self.ranks):
            for tile in range(self.tiles):
                full_experts = [
                    e for e in range(self.layer.experts) if tile < self.layer.sent(source, e)
                ]
                result = self.tensor("result", source, self.tiles)
                self.add(
                    f"add.{source}.t{tile}",
                    "add",
                    source,
                    "aiv",
                    self.layer.durations.vector,
                    [
                        Tiles(
                            f"returned@{source}", e * self.tiles + tile, e * self.tiles + tile + 1
                        )
                        for e in full_experts
                    ],
                    [Tiles(result, tile, tile + 1)],
                    [self.event(f"{operator}.t{tile}", source)],
                    [],
                )

    # Experts

    def column(self, expert: int, block: int, column: int) -> int:
        """The first tile of a block's column: a product is stored block by block, by columns."""
        return ((expert * self.blocks + block) * self.layer.columns + column) * self.rows

    def product(
        self,
        operator: str,
        source: Callable[[int, int, int], list[Tiles]],
        target: str,
        after: str,
        done: str,
    ) -> None:
        """A grouped matrix product: a task for each column of each block."""
        for rank, expert, block in self.all_blocks():
            full = self.filled(rank, expert, block)
            size = len(self.local) * self.blocks * self.layer.columns * self.rows
            written = self.tensor(target, rank, size)
            for column in range(self.layer.columns):
                first = self.column(expert, block, column)
                rows = [first + (s % self.size) * self.tiles + t for s, t in full]
                self.add(
                    f"{operator}.{rank}.e{expert}.b{block}.c{column}",
                    operator,
                    rank,
                    "aic",
                    self.layer.durations.matrix if full else 0.0,
                    source(rank, expert, block) if full else [],
                    _ranges(written, rows),
                    [self.event(f"{after}.e{expert}.b{block}", rank)],
                    [self.event(f"{done}.e{expert}.b{block}", rank)] if done else [],
                    turn=self.block_turn(rank, block),
                )

    def vector(
        self,
        operator: str,
        source: Callable[[int, int, int], list[Tiles]],
        target: str,
        after: str,
        done: str,
    ) -> None:
        """An elementwise operator: a task for each block."""
        for rank, expert, block in self.all_blocks():
            full = self.filled(rank, expert, block)
            written = self.tensor(target, rank, len(self.local) * self.ranks * self.tiles)
            rows = [self.row(expert, s, t) for s, t in full]
            self.add(
                f"{operator}.{rank}.e{expert}.b{block}",
                operator,
                rank,
                "aiv",
                self.layer.durations.vector if full else 0.0,
                source(rank, expert, block) if full else [],
                _ranges(written, rows),
                [self.event(f"{after}.e{expert}.b{block}", rank)],
                [self.event(f"{done}.e{expert}.b{block}", rank)],
                turn=self.block_turn(rank, block),
            )

    def weights(self, operator: str, left: str, right: str, after: Iterable[str]) -> None:
        """A weight gradient: all rows of an expert, so it waits for all of its blocks."""
        names = list(after)
        for rank in range(self.ranks):
            for expert in self.local:
                full = [f for block in range(self.blocks) for f in self.filled(rank, expert, block)]
                rows = [self.row(expert, s, t) for s, t in full]
                target = self.tensor(operator, rank, len(self.local) * self.layer.columns)
                for column in range(self.layer.columns):
                    at = expert * self.layer.columns + column
                    self.add(
                        f"{operator}.{rank}.e{expert}.c{column}",
                        operator,
                        rank,
                        "aic",
                        self.layer.durations.matrix * self.blocks if full else 0.0,
                        _ranges(f"{left}@{rank}", rows) + _ranges(f"{right}@{rank}", rows),
                        [Tiles(target, at, at + 1)],
                        [
                            self.event(f"{name}.e{expert}.b{block}", rank)
                            for name in names
                            for block in range(self.blocks)
                        ],
                        [],
                        turn=self.ranks,
                    )

    def all_blocks(self) -> Iterable[tuple[int, int, int]]:
        return (
            (rank, expert, block)
            for rank in range(self.ranks)
            for expert in self.local
            for block in range(self.blocks)
        )

    def block_turn(self, rank: int, block: int) -> int:
        """Blocks in the order in which their rows arrive."""
        if not self.layer.reorder:
            return block
        sources = range(block * self.size, (block + 1) * self.size)
        return max((rank - source) % self.ranks for source in sources)

    def rows_of(self, tensor: str) -> Callable[[int, int, int], list[Tiles]]:
        """The rows of a block in a tensor that is stored by rows."""
        return lambda rank, expert, block: _ranges(
            f"{tensor}@{rank}",
            [self.row(expert, s, t) for s, t in self.filled(rank, expert, block)],
        )

    def columns_of(self, tensor: str) -> Callable[[int, int, int], list[Tiles]]:
        """The filled rows of a block in all columns of a product."""
        return lambda rank, expert, block: _ranges(
            f"{tensor}@{rank}",
            [
                self.column(expert, block, column) + (s % self.size) * self.tiles + t
                for column in range(self.layer.columns)
                for s, t in self.filled(rank, expert, block)
            ],
        )

    # Passes

    def forward(self) -> None:
        """gate/up, SwiGLU, down, combine."""
        self.product("gate_up", self.rows_of("received"), "hidden", "dispatch", "gate_up")
        self.vector("swiglu", self.columns_of("hidden"), "activated", "gate_up", "swiglu")
        self.product("down", self.rows_of("activated"), "output", "swiglu", "down")
        self.send_back("combine", "output", "down")

    def backward(self) -> None:
        """Activation gradients back to the sources; weight gradients off that path."""
        rows = len(self.local) * self.ranks * self.tiles
        for rank in range(self.ranks):
            for saved in ("activated", "hidden", "inputs"):
                self.tensor(saved, rank, rows, is_input=True)

        def saved_and_gradient(rank: int, expert: int, block: int) -> list[Tiles]:
            gradient = self.columns_of("activated_grad")(rank, expert, block)
            return self.rows_of("hidden")(rank, expert, block) + gradient

        self.product(
            "down_grad", self.rows_of("received"), "activated_grad", "combine_grad", "down_grad"
        )
        self.weights("down_weight_grad", "activated", "received", ["combine_grad"])
        self.vector("swiglu_grad", saved_and_gradient, "hidden_grad", "down_grad", "swiglu_grad")
        self.product(
            "gate_up_grad", self.rows_of("hidden_grad"), "input_grad", "swiglu_grad", "gate_up_grad"
        )
        self.weights("gate_up_weight_grad", "inputs", "hidden_grad", ["swiglu_grad"])
        self.send_back("dispatch_grad", "input_grad", "gate_up_grad")

    def add(
        self,
        name: str,
        operator: str,
        rank: int,
        core: str,
        duration: float,
        reads: list[Tiles],
        writes: list[Tiles],
        waits: Iterable[str],
        triggers: Iterable[str],
        peer: int = -1,
        turn: int = 0,
    ) -> None:
        self.graph.work.append(
            Work(
                name,
                operator,
                rank,
                core,
                duration or self.layer.durations.empty,
                reads,
                writes,
                dict.fromkeys(waits, 0),
                dict.fromkeys(triggers, 1),
                peer,
                turn,
            )
        )


def _ranges(tensor: str, tiles: list[int]) -> list[Tiles]:
    """Tiles as few ranges, in order."""
    found: list[Tiles] = []
    for tile in sorted(tiles):
        if found and found[-1].last == tile:
            found[-1] = Tiles(tensor, found[-1].first, tile + 1)
        else:
            found.append(Tiles(tensor, tile, tile + 1))
    return found
