"""The verdicts of `bsp`, `cumsum` and `ubep`: UBEP, sections 2.3 to 3.4, and CANN's kernels."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from syncproof.checkers.explicit.check import Budget, check, question_of
from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.mutants import Mutant
from syncproof.models.protocol import Protocol
from syncproof.models.verdict import Answer, Verdict
from syncproof.protocols.bsp import BulkSynchronous
from syncproof.protocols.cumsum import KernelDecomposition
from syncproof.protocols.output import Output, offsets_of
from syncproof.protocols.ubep import SCHEMES, Ubep

CM384 = Profile("cm384")
BOTH, REDUCED = ("reference", "reduced"), ("reduced",)

# Tables of one round each: routing[round][source][expert]
ONE_WAY = (((0, 1), (0, 0)),)
NOTHING = (((0, 0), (0, 0)),)
CHANGING = (
    ((1, 1, 1), (1, 1, 1), (1, 1, 1)),
    ((0, 0, 0), (0, 0, 0), (0, 0, 0)),
    ((0, 1, 0), (1, 0, 1), (1, 1, 0)),
)


@dataclass(frozen=True)
class Row:
    """A row of the table of verdicts: ``violated`` names the property, or is empty for a proof."""

    name: str
    kind: type[Protocol]
    settings: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, Any] = field(default_factory=dict)
    violated: str = ""
    engines: tuple[str, ...] = REDUCED

    def instance(self) -> Instance:
        return Instance(self.kind, Bounds(**self.bounds), CM384, dict(self.settings))


def one_round(**more: Any) -> dict[str, Any]:
    return {"rounds": 1, **more}


ALL = {"routing": "all", "rounds": 2}
THREE_RANKS = {"ranks": 3, "routing": CHANGING}
THREE = {"ranks": 3, "rounds": 2}
ROWS = [
    Row("three rounds", BulkSynchronous),
    Row("one round", BulkSynchronous, bounds=one_round(), engines=BOTH),
    Row("all routings", BulkSynchronous, bounds=ALL),
    Row("3 ranks", BulkSynchronous, bounds={"ranks": 3}),
    Row("3 cores, 2 tokens", BulkSynchronous, {"cores": 3}, {"tokens": 2}),
    Row(
        "without the first SyncAll",
        BulkSynchronous,
        {"first_barrier": False},
        violated="happens-before",
        engines=BOTH,
    ),
    Row(
        "without the second SyncAll",
        BulkSynchronous,
        {"second_barrier": False},
        violated="checks",
        engines=BOTH,
    ),
    Row("software SyncAll", BulkSynchronous, {"syncall": "software"}, one_round()),
    Row(
        "software SyncAll on garbage",
        BulkSynchronous,
        {"syncall": "software", "initial": "garbage"},
        one_round(),
        violated="deadlock-free",
    ),
    Row("one window", BulkSynchronous, {"windows": 1}, violated="deadlock-free"),
    Row("three rounds", KernelDecomposition),
    Row("no tokens", KernelDecomposition, bounds=one_round(routing=NOTHING), engines=BOTH),
    Row("all routings", KernelDecomposition, bounds=ALL),
    Row("2 token cores, 2 tokens", KernelDecomposition, {"token_cores": 2}, {"tokens": 2}),
    Row("2 count cores", KernelDecomposition, {"count_cores": 2}, THREE_RANKS),
    Row(
        "without the wait for the offset signal",
        KernelDecomposition,
        {"wait_for_offset": False},
        one_round(),
        violated="happens-before",
    ),
    Row(
        "counts and flag in two puts",
        KernelDecomposition,
        {"one_put": False},
        violated="checks",
        engines=BOTH,
    ),
    Row(
        "column not zeroed",
        KernelDecomposition,
        {"count_cores": 2, "zero_column": False},
        {**THREE_RANKS, "rounds": 2},
        violated="checks",
    ),
    Row("one window", KernelDecomposition, {"windows": 1}, violated="deadlock-free"),
    Row("dc", Ubep, {"data": "dc"}),
    *(Row(f"{data}, 3 ranks", Ubep, {"data": data}, THREE) for data in ("sp", "tff")),
    *(
        Row(f"{data}, one window", Ubep, {"data": data, "windows": 1}, ALL, "happens-before")
        for data in SCHEMES
    ),
]
LONG = [
    *(Row(f"{data}, all routings", Ubep, {"data": data}, ALL) for data in SCHEMES),
    Row("dc, 3 ranks", Ubep, {"data": "dc"}, THREE),
    *(
        Row(f"{data}, one token", Ubep, {"data": data}, one_round(routing=ONE_WAY), engines=BOTH)
        for data in SCHEMES
    ),
    Row("one round", KernelDecomposition, bounds=one_round(routing=ONE_WAY), engines=BOTH),
    Row("software SyncAll, 3 rounds", BulkSynchronous, {"syncall": "software"}, {"rounds": 3}),
    Row("software SyncAll", BulkSynchronous, {"syncall": "software"}, one_round(), engines=BOTH),
    Row("three layers, 2 count cores", Ubep, {"count_cores": 2}, {"ranks": 3, "tokens": 2}),
]


def verdict(made: Instance, engine: str) -> Verdict:
    question = question_of(made, made.kind.name)
    return check(made, question, engine, Budget(states=400_000))


def parametrised(rows: list[Row]) -> pytest.MarkDecorator:
    cases = [
        pytest.param(r, e, id=f"{r.kind.name}: {r.name} [{e}]") for r in rows for e in r.engines
    ]
    return pytest.mark.parametrize(("row", "engine"), cases)


def judge(row: Row, engine: str) -> None:
    found = verdict(row.instance(), engine)
    broken = [each.property for each in found.properties if each.answer is Answer.VIOLATED]
    assert broken == ([row.violated] if row.violated else [])
    assert found.answer is (Answer.VIOLATED if row.violated else Answer.PROVED)


@parametrised(ROWS)
def test_verdict(row: Row, engine: str) -> None:
    """The row has its verdict, with the property that is violated, under each engine."""
    judge(row, engine)


@pytest.mark.long
@parametrised(LONG)
def test_verdict_of_a_larger_instance(row: Row, engine: str) -> None:
    """The row has its verdict where a search takes longer."""
    judge(row, engine)


# What each operation is needed for

MUTATED = [
    Row("three rounds", BulkSynchronous),
    Row("three rounds", KernelDecomposition),
    Row("sp", Ubep, {"data": "sp"}, {"rounds": 2}),
]
LONG_MUTATED = [
    Row("software", BulkSynchronous, {"syncall": "software", "windows": 1}, one_round()),
    Row("tff", Ubep, {"data": "tff"}, {"rounds": 2}),
    Row("dc", Ubep, {"data": "dc"}, {"rounds": 2}),
]


@pytest.mark.parametrize(
    "row",
    [*MUTATED, *(pytest.param(each, marks=pytest.mark.long) for each in LONG_MUTATED)],
    ids=lambda row: f"{row.kind.name}: {row.name}",
)
def test_every_operation_is_needed(row: Row) -> None:
    """Without any one synchronization operation, or with a window fewer, there is a violation."""
    made = row.instance()
    mutants = find_mutants(made)
    assert len(mutants) >= 6
    assert survivors(made, mutants) == []


def test_every_operation_of_the_exchange_of_sums_is_needed() -> None:
    """With two count cores, so is each put and wait of the N x N matrix."""
    made = Row("", KernelDecomposition, {"count_cores": 2}, one_round(ranks=3)).instance()
    lines, first = inspect.getsourcelines(KernelDecomposition.exchange_sums)
    inside = range(first, first + len(lines))
    mutants = [each for each in find_mutants(made) if each.line in inside]
    assert len(mutants) == 3
    assert survivors(made, mutants) == []


def survivors(made: Instance, mutants: list[Mutant]) -> list[str]:
    """The mutants that are not refuted."""
    names = []
    for mutant in mutants:
        changed = mutant.applied(made)
        question = question_of(changed, made.kind.name, mutant=mutant.name)
        found = check(changed, question, "reduced", Budget(states=20_000))
        if found.answer is not Answer.VIOLATED:
            names.append(mutant.name)
    return names


def test_a_software_barrier_on_garbage_also_lets_cores_pass_early() -> None:
    """A slot that holds one too many lets the other core leave SyncAll before this one is there:
    with its deadlock not asked for, a token is read that has not landed, or a stale count."""
    made = Instance(
        BulkSynchronous,
        Bounds(rounds=1),
        CM384,
        {"syncall": "software", "initial": "garbage"},
    )
    question = question_of(made, "bsp", properties=("happens-before", "checks"))
    assert check(made, question, "reduced").answer is Answer.VIOLATED


# The proof's own statements


@pytest.mark.parametrize("kind", [BulkSynchronous, KernelDecomposition])
@pytest.mark.parametrize("wrong", [lambda place: 1 - place, lambda place: 0], ids=["swap", "same"])
def test_a_token_at_a_wrong_place_is_noticed(
    kind: type[Protocol], wrong: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tokens that change places, or share one, break a property."""
    straight = Output.place

    async def misplaced(self: Output, core: Core, position: int, data: Any, round: int) -> None:
        await straight(self, core, wrong(position), data, round)

    monkeypatch.setattr(Output, "place", lambda *given, at="": misplaced(*given))
    found = verdict(Instance(kind, Bounds(rounds=1, tokens=2), CM384, {}), "reduced")
    assert found.answer is Answer.VIOLATED


def test_offsets_are_the_exclusive_prefix_sum() -> None:
    """Ranges are disjoint and contiguous, in the order of the sources, from 0 on."""
    counts = {3: 2, 0: 1, 1: 0, 2: 4}
    offsets = offsets_of(counts)
    ranges = [p for s in sorted(counts) for p in range(offsets[s], offsets[s] + counts[s])]
    assert ranges == list(range(sum(counts.values())))


def test_fewer_than_two_cores_are_refused() -> None:
    """`bsp` with one core is an error that says so."""
    with pytest.raises(UserError, match="1 core"):
        Instance(BulkSynchronous, Bounds(), CM384, {"cores": 1}).protocol()


def test_ubep_assumes_what_its_scheme_assumes() -> None:
    """The assumptions of the held scheme are listed, dense traffic is not among them."""
    for data, assumed in (("sp", "reserved_sentinel"), ("dc", "distinct_leads")):
        names = Instance(Ubep, Bounds(), CM384, {"data": data}).protocol().assumptions()
        assert f"scheme.{assumed}" in names and "scheme.dense_traffic" not in names
