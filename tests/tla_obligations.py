"""The obligations of ``specs/tla/obligations``: each as TLC gets it, and as our own instance."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.checkers.tla.model import Model, constant_name, omitted_steps, specs_folder
from syncproof.models.bounds import Bounds, RoutingTable
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol
from syncproof.protocols.bsp import BulkSynchronous
from syncproof.protocols.cumsum import KernelDecomposition
from syncproof.protocols.dc import DataForChecksum
from syncproof.protocols.sp import SentinelPolling
from syncproof.protocols.sw import StopAndWait
from syncproof.protocols.taskflow import Taskflow, protocol_of
from syncproof.protocols.tff import TokenFlagFusion
from syncproof.protocols.ubep import Ubep

KINDS: dict[str, type[Protocol]] = {
    kind.__name__: kind
    for kind in (
        StopAndWait,
        TokenFlagFusion,
        DataForChecksum,
        SentinelPolling,
        BulkSynchronous,
        KernelDecomposition,
        Ubep,
        Taskflow,
    )
}
FILES = sorted((specs_folder() / "obligations").glob("*.cfg"))
HEADER = re.compile(r"\\\* Module: (\w+)\. Expected: (.+)\.\n")


@dataclass(frozen=True)
class Obligation:
    """A cfg file: its module, what is expected of it, and its constants."""

    name: str
    module: str
    expected: str
    text: str
    constants: dict[str, str]

    @property
    def model(self) -> Model:
        """The cfg's constants as a run of ours takes them."""
        values = tuple(
            (name, value if value.startswith("<-") else f"= {value}")
            for name, value in self.constants.items()
        )
        return Model(self.module, f"---- MODULE Run ----\nEXTENDS {self.module}\n====\n", values)

    def without(self, steps: Iterable[str]) -> Callable[[Instance], Model]:
        """What `model_of` would say if it knew this instance without some steps."""
        omitted = "{" + ", ".join(f'"{step}"' for step in steps) + "}"
        other = replace(self, constants={**self.constants, "Omitted": omitted})
        return lambda _: other.model

    def instance(self) -> Instance:
        """The instance of the protocol with the same constants."""
        given = self.constants
        kind = exchange() if given.get("Schedule") == "<- Exchange" else KINDS[self.module]
        settings: dict[str, Any] = {
            name: _read(given[constant_name(name)]) for name in kind.parameters()
        }
        ranks = int(given["Ranks"])
        bounds = Bounds(ranks)
        if "Routings" in given:
            tokens, rounds = int(given["Tokens"]), int(given["Rounds"])
            bounds = Bounds(ranks, tokens, rounds, routing=_routing(given, ranks))
        fabric = f"cm384,ordering={_read(given['Ordering'])},in_flight={given['InFlight']}"
        made = Instance(kind, bounds, load_profile(fabric), settings)
        omitted = set(re.findall(r'"([^"]+)"', given["Omitted"]))
        return mutant_without(made, omitted) if omitted else made


def exchange() -> type[Protocol]:
    """The first part of the generated layer on two ranks: what is dispatched and multiplied."""
    layer = Taskflow(Bounds(2), direction="forward").schedule
    tasks = tuple(each for each in layer.tasks if each.operator in ("dispatch", "gate_up"))
    queues = {each.queue for each in tasks}
    tensors = {tiles.tensor for each in tasks for tiles in (*each.reads, *each.writes)}
    events = {name for each in tasks for name, _ in (*each.waits, *each.triggers)}
    part = replace(
        layer,
        tasks=tasks,
        queues={name: each for name, each in layer.queues.items() if name in queues},
        tensors={name: each for name, each in layer.tensors.items() if name in tensors},
        events={name: each for name, each in layer.events.items() if name in events},
        launches=replace(layer.launches, zero=()),
    )
    return type("Taskflow", (protocol_of(part),), {"__module__": Taskflow.__module__})


def mutant_without(instance: Instance, steps: set[str]) -> Instance:
    """The instance with the mutant that leaves out exactly these steps."""
    dense = replace(instance, bounds=Bounds(2, 1, 3))
    for mutant in find_mutants(dense):
        changed = mutant.applied(instance)
        if set(omitted_steps(changed)) == steps:
            return changed
    raise AssertionError(f"no mutant leaves out {steps}")


def obligation(path: Path) -> Obligation:
    """The obligation that a cfg file states."""
    text = path.read_text(encoding="utf-8")
    header = HEADER.search(text)
    assert header is not None, path
    found = re.findall(r"^    (\w+) (?:= )?(.+)$", text, re.MULTILINE)
    return Obligation(path.stem, header[1], header[2], text, dict(found))


def _read(text: str) -> bool | int | str:
    if text in ("TRUE", "FALSE"):
        return text == "TRUE"
    return text[1:-1] if text.startswith('"') else int(text)


def _routing(constants: dict[str, str], ranks: int) -> str | RoutingTable:
    name = constants["Routings"].removeprefix("<- ")
    if name == "EveryPair":
        return "balanced"
    assert name in ("OneWay", "NoTokens"), name
    sent = {(0, 1)} if name == "OneWay" else set()
    return (tuple(tuple(int((s, d) in sent) for d in range(ranks)) for s in range(ranks)),)


OBLIGATIONS = {each.name: each for each in map(obligation, FILES)}


def made(
    module: str, rounds: int = 1, ranks: int = 2, fabric: str = "cm384", **settings: Any
) -> Instance:
    """A protocol by its class, small, one token for every pair of ranks."""
    return Instance(KINDS[module], Bounds(ranks, 1, rounds), load_profile(fabric), settings)
