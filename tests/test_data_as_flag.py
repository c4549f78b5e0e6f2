"""The verdict table of the data-as-flag protocols: sw, tff, dc and sp.

Expectations come from UBEP, section 3.4, from what is known of public kernels and from arguments
on paper, never from the output of an engine. Rows small enough are decided by both explicit
engines; more ranks and all routings by the certificate of a single run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from syncproof.checkers.certificate.check import certify
from syncproof.checkers.explicit.check import check, question_of
from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.models.bounds import Bounds, RoutingTable
from syncproof.models.core import Core
from syncproof.models.instance import Instance
from syncproof.models.per_rank import PerRank
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Setting
from syncproof.models.transitions import PROPERTIES
from syncproof.models.verdict import Answer, Verdict
from syncproof.protocols.counts import DataAsFlag
from syncproof.protocols.dc import DataForChecksum
from syncproof.protocols.sp import SentinelPolling
from syncproof.protocols.sw import StopAndWait
from syncproof.protocols.tff import TokenFlagFusion

BOTH = ("reference", "reduced")
REDUCED = ("reduced",)
ALL = (*BOTH, "certificate")
KINDS: dict[str, type[DataAsFlag]] = {
    kind.name: kind for kind in (StopAndWait, TokenFlagFusion, DataForChecksum, SentinelPolling)
}

ONE_WAY: RoutingTable = (((0, 1), (0, 0)),)
SILENT_ROUND: RoutingTable = (((0, 1), (1, 0)), ((0, 0), (0, 0)), ((0, 1), (1, 0)))
"""Two ranks, rounds 0 and 2 with a token for both, round 1 without any."""
TO_RECEIVERS: RoutingTable = (((0, 0, 0, 1, 1),) * 3 + ((0,) * 5,) * 2,)
"""Ranks 0 to 2 only send, ranks 3 and 4 only receive."""

HB, DEADLOCK = "happens-before", "deadlock-free"


@dataclass(frozen=True)
class Row:
    """A question and its verdict: the property ``violated``, or "" for proved.

    ``at`` is a piece of the source line at which a violation shows: that of the last step, or of a
    process that hangs. ``dropped`` are the assumptions that do not hold.
    """

    name: str
    protocol: str
    violated: str = ""
    at: str = ""
    fabric: str = "cm384"
    settings: Mapping[str, Setting] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    engines: tuple[str, ...] = BOTH
    ranks: int = 2
    tokens: int = 1
    rounds: int = 3
    routing: str | RoutingTable = "balanced"
    asked: tuple[str, ...] = PROPERTIES

    def instance(self) -> Instance:
        bounds = Bounds(self.ranks, self.tokens, self.rounds, routing=self.routing)
        settings = {**self.settings, **dict.fromkeys(self.dropped, False)}
        return Instance(KINDS[self.protocol], bounds, load_profile(self.fabric), settings)

    def verdict(self, engine: str) -> Verdict:
        made = self.instance()
        question = question_of(made, self.protocol, self.dropped, properties=self.asked)
        if engine == "certificate":
            certified = certify(made, question)
            assert isinstance(certified, Verdict), certified
            return certified
        return check(made, question, engine)


def violated(verdict: Verdict) -> list[str]:
    return [p.property for p in verdict.properties if p.answer is Answer.VIOLATED]


def shows_at(verdict: Verdict) -> list[str]:
    """The source lines at which a violation shows."""
    trace = verdict.trace
    assert trace is not None
    lines = [row.line for row in trace.waiting] or [trace.steps[-1].line]
    return [line.text for line in lines if line is not None]


SPARSE = {"counts": False}
ATOMS_OF_128 = "cm384,store_atomicity=128"
ONE_TOKEN: Mapping[str, Any] = {"rounds": 1, "routing": ONE_WAY, "dropped": ("dense_traffic",)}
"""A single token, the least traffic."""
ROWS = [
    # sp
    Row("counts", "sp", engines=ALL),
    Row("counts, one way", "sp", routing=ONE_WAY, engines=ALL),
    Row("counts, a silent round", "sp", routing=SILENT_ROUND, engines=ALL),
    Row("one window", "sp", HB, "wait_until", settings={"windows": 1}, rounds=2),
    Row(
        "no quiet, a reset that comes too late",
        "sp",
        HB,
        "wait_until(slot",
        settings={"quiet": False},
    ),
    Row(
        "no quiet, a reset that wipes the next token",
        "sp",
        DEADLOCK,
        "wait_until",
        settings={"quiet": False, **SPARSE},
        asked=(DEADLOCK,),
        engines=REDUCED,
    ),
    Row("counts, two tokens", "sp", tokens=2, engines=REDUCED),
    Row(
        "a token like the sentinel",
        "sp",
        DEADLOCK,
        "wait_until(slot",
        dropped=("reserved_sentinel",),
        rounds=1,
        routing=ONE_WAY,
    ),
    Row(
        "a whole block like the sentinel",
        "sp",
        DEADLOCK,
        "wait_until(slot",
        settings={"compare": "block"},
        dropped=("reserved_sentinel",),
        rounds=1,
        routing=ONE_WAY,
    ),
    Row("the whole block is compared", "sp", settings={"compare": "block"}, routing=ONE_WAY),
    Row(
        "128 B atoms, lead",
        "sp",
        HB,
        "wait_until(slot",
        ATOMS_OF_128,
        {"compare": "lead", **SPARSE},
        **ONE_TOKEN,
    ),
    Row(
        "128 B atoms, block",
        "sp",
        HB,
        "wait_until(slot",
        ATOMS_OF_128,
        {"compare": "block", **SPARSE},
        **ONE_TOKEN,
    ),
    Row(
        "128 B atoms, atom", "sp", "", "", ATOMS_OF_128, {"compare": "atom", **SPARSE}, **ONE_TOKEN
    ),
    # sw
    Row("counts", "sw"),
    Row("without the quiet", "sw", HB, "load", settings={"quiet": False}, rounds=1),
    Row(
        "without the quiet, a pair in order",
        "sw",
        fabric="cm384,ordering=per_pair",
        settings={"quiet": False},
        rounds=2,
    ),
    Row("one window", "sw", HB, "load", settings={"windows": 1}, rounds=2),
    # tff
    Row("constant flag, reset after", "tff"),
    Row("flag at the tail", "tff", settings={"flag_at": "tail"}, routing=ONE_WAY),
    Row("constant flag, never reset", "tff", HB, "load", settings={"reset": "never"}),
    Row("epoch flag, never reset", "tff", settings={"flag": "epoch", "reset": "never"}),
    Row("one window", "tff", HB, "load", settings={"windows": 1}, rounds=2),
    Row("128 B atoms, a flag in each block", "tff", HB, "load", ATOMS_OF_128, SPARSE, **ONE_TOKEN),
    Row(
        "128 B atoms, a flag in each block's tail",
        "tff",
        HB,
        "load",
        ATOMS_OF_128,
        {"flag_at": "tail", **SPARSE},
        **ONE_TOKEN,
    ),
    Row(
        "128 B atoms, a flag in each atom",
        "tff",
        "",
        "",
        ATOMS_OF_128,
        {"flags": "atom", **SPARSE},
        **ONE_TOKEN,
    ),
    Row(
        "128 B atoms, a flag in each atom, with counts",
        "tff",
        "",
        "",
        ATOMS_OF_128,
        {"flags": "atom"},
        routing=ONE_WAY,
        engines=REDUCED,
    ),
    Row(
        "reset before, one window, reused on reset",
        "tff",
        HB,
        "load",
        settings={"reset": "before", "windows": 1, "reuse": "reset"},
        rounds=2,
    ),
    Row(
        "reset after, one window, reused on reset",
        "tff",
        settings={"windows": 1, "reuse": "reset"},
        rounds=2,
    ),
    Row("reset before, two windows", "tff", settings={"reset": "before"}, routing=ONE_WAY),
    # dc
    Row("ideal checksum with the round", "dc", engines=REDUCED),
    Row("ideal checksum with the round, 2 rounds", "dc", rounds=2, routing=ONE_WAY),
    Row(
        "leads repeat",
        "dc",
        HB,
        "load(slot)",
        dropped=("distinct_leads",),
        settings=SPARSE,
        engines=REDUCED,
    ),
    Row(
        "a lead of zeros",
        "dc",
        HB,
        "load(slot)",
        dropped=("distinct_leads",),
        rounds=1,
        routing=ONE_WAY,
    ),
    Row(
        "ideal checksum without the round",
        "dc",
        HB,
        "load(slot)",
        settings={"round_in_checksum": False},
        routing=ONE_WAY,
    ),
    Row(
        "additive checksum without the round, stale window",
        "dc",
        HB,
        "load(slot)",
        settings={"checksum": "additive", "round_in_checksum": False},
        tokens=2,
        routing=(((0, 2), (0, 0)),),
        engines=REDUCED,
    ),
    Row(
        "additive checksum with the round, stale window",
        "dc",
        HB,
        "load(slot)",
        settings={"checksum": "additive"},
        tokens=2,
        routing=(((0, 2), (0, 0)),),
        engines=REDUCED,
    ),
    Row(
        "additive checksum with the round, no two leads to add",
        "dc",
        settings={"checksum": "additive"},
        routing=ONE_WAY,
        engines=REDUCED,
    ),
    Row(
        "zeroed window and checksum",
        "dc",
        HB,
        "load(slot)",
        settings={"checksum": "additive", "round_in_checksum": False, "initial": "zeroed"},
        rounds=1,
    ),
    Row(
        "zeroed window and checksum, ideal with the round",
        "dc",
        settings={"initial": "zeroed"},
        rounds=1,
        routing=ONE_WAY,
    ),
    Row(
        "the checksum's arrival alone",
        "dc",
        HB,
        "load(slot)",
        settings={"compare": False},
        rounds=1,
    ),
    Row(
        "the checksum's arrival alone, a pair in order",
        "dc",
        fabric="cm384,ordering=per_pair",
        settings={"compare": False},
        rounds=2,
        routing=ONE_WAY,
    ),
    Row("128 B atoms", "dc", HB, "load(slot)", ATOMS_OF_128, SPARSE, **ONE_TOKEN),
    Row("one window", "dc", HB, "load(slot)", settings={"windows": 1}, rounds=2, routing=ONE_WAY),
]
ROWS += [
    row
    for name in KINDS
    for row in (
        Row("no counts, dense traffic", name, settings=SPARSE, routing="all"),
        Row(
            "no counts, sparse traffic",
            name,
            HB,
            settings=SPARSE,
            dropped=("dense_traffic",),
            routing="all",
            engines=REDUCED,
        ),
        Row(
            "no counts, a silent round",
            name,
            HB,
            settings=SPARSE,
            dropped=("dense_traffic",),
            routing=SILENT_ROUND,
        ),
        Row(
            "no counts, one way",
            name,
            HB,
            settings=SPARSE,
            dropped=("dense_traffic",),
            routing=ONE_WAY,
        ),
    )
]
ROWS += [
    row
    for name in ("sp", "sw", "tff")
    for row in (
        Row("counts, all routings", name, routing="all", engines=("certificate",)),
        Row("counts, 3 ranks", name, ranks=3, engines=("certificate",)),
        Row("counts, 8 ranks", name, ranks=8, engines=("certificate",)),
        Row(
            "counts, 3 ranks that only send to 2 that only receive",
            name,
            ranks=5,
            routing=TO_RECEIVERS,
            engines=("certificate",),
        ),
        Row(
            "no counts, dense traffic, 8 ranks",
            name,
            ranks=8,
            settings=SPARSE,
            engines=("certificate",),
        ),
    )
]
LONG = [
    Row("all routings", "sp", routing="all"),
    Row("all routings", "dc", routing="all"),
    Row("3 ranks", "sp", ranks=3),
    Row(
        "128 B atoms, atom, three rounds",
        "sp",
        "",
        "",
        ATOMS_OF_128,
        {"compare": "atom"},
        routing=ONE_WAY,
    ),
]


@pytest.mark.parametrize(
    ("row", "engine"),
    [pytest.param(r, e, id=f"{r.protocol}: {r.name} [{e}]") for r in ROWS for e in r.engines],
)
def test_verdict(row: Row, engine: str) -> None:
    """The row has its verdict, and a violation shows at the expected line."""
    found = row.verdict(engine)
    assert violated(found) == ([row.violated] if row.violated else [])
    if row.violated:
        assert any(row.at in text for text in shows_at(found)), shows_at(found)
    else:
        assert found.answer is Answer.PROVED


@pytest.mark.long
@pytest.mark.parametrize("row", [pytest.param(r, id=f"{r.protocol}: {r.name}") for r in LONG])
def test_verdict_by_reduction(row: Row) -> None:
    """What takes long without a certificate is proved without one too."""
    assert row.verdict("reduced").answer is Answer.PROVED


def test_a_sum_of_two_old_leads_is_taken_for_the_new_sum() -> None:
    """With an additive checksum the trace shows a token of an earlier round being taken."""
    row = next(r for r in ROWS if r.name == "additive checksum with the round, stale window")
    detail = next(p.detail for p in row.verdict("reduced").properties if p.property == HB)
    assert "round 0 (0->1) where token" in detail and "round 2 (0->1)" in detail


def test_without_counts_15_of_64_routings_fail() -> None:
    """Of the routings of 2 ranks, 3 rounds and 1 token, 15 break Sentinel Polling without counts.

    The number comes from a breadth-first search that was written apart from this project's
    engines (the project's soundness notes, C1).
    """
    failing = 0
    for bits in product((0, 1), repeat=6):
        table = tuple(((0, a), (b, 0)) for a, b in zip(bits[::2], bits[1::2], strict=True))
        row = Row("", "sp", settings=SPARSE, dropped=("dense_traffic",), routing=table)
        failing += row.verdict("reduced").answer is Answer.VIOLATED
    assert failing == 15


class CountsAlongTraffic(SentinelPolling):
    """Only the rank that receives tokens is told how many: attention here, experts there."""

    async def send_counts(self, core: Core, round: int) -> None:
        if core.rank == 0:
            await super().send_counts(core, round)

    async def receive_counts(self, core: Core, round: int) -> PerRank:
        if core.rank == 1:
            return await super().receive_counts(core, round)
        told = core.per_rank()
        told[1] = 0
        return told


@pytest.mark.parametrize("engine", BOTH)
def test_counts_must_also_go_against_the_traffic(engine: str) -> None:
    """A rank that only sends is held back by nothing but the counts of those that receive."""
    made = Instance(CountsAlongTraffic, Bounds(2, 1, 3, routing=ONE_WAY), load_profile("cm384"), {})
    assert violated(check(made, question_of(made, "sp"), engine)) == [HB]


# Removing operations

VARYING: RoutingTable = (((0, 1), (1, 0)), ((0, 1), (0, 0)), ((0, 1), (0, 0)))
"""Three rounds in which a count left over from the same half is a wrong one."""


@pytest.mark.parametrize("name", KINDS)
def test_every_operation_is_needed(name: str) -> None:
    """Each synchronization operation left out is refuted, not only by what it leaves behind."""
    asked = tuple(each for each in PROPERTIES if each != "quiescent")
    made = Row("", name, routing=VARYING).instance()
    mutants = find_mutants(made)
    assert len(mutants) >= 6
    for mutant in mutants:
        changed = mutant.applied(made)
        question = question_of(changed, name, mutant=mutant.name, properties=asked)
        assert check(changed, question, "reduced").answer is Answer.VIOLATED, mutant.name
