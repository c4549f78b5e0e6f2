"""Verdicts of each kind, small enough to be drawn in every test."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from syncproof.checkers.smt.why import explain
from syncproof.models.bounds import Bounds
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.verdict import (
    Answer,
    Chains,
    Change,
    Line,
    MemoryCell,
    PropertyVerdict,
    Question,
    Trace,
    TraceStep,
    Verdict,
)
from syncproof.protocols.sp import SentinelPolling
from tests.small import CM384, FlagAfterData, instance, verdict, with_settings

WEAK = Profile("weak", store_atomicity=128)


def polling(rounds: int, profile: Profile, **settings: bool) -> Instance:
    """Sentinel Polling between two ranks, a token each way and round."""
    bounds = Bounds(ranks=2, rounds=rounds, routing="balanced")
    return Instance(SentinelPolling, bounds, profile, settings)


@cache
def torn() -> Verdict:
    """One atom of a block is read before it lands."""
    return verdict(polling(1, WEAK), "reduced")


@cache
def hang() -> Verdict:
    """A token looks like the sentinel, and its reader waits for ever."""
    return verdict(polling(1, CM384, reserved_sentinel=False), "reduced")


@cache
def overwritten() -> Verdict:
    """A window is used again before it was read; with steps that do not matter."""
    bounds = Bounds(
        ranks=2, rounds=3, routing=(((0, 0), (1, 0)), ((0, 0), (0, 0)), ((0, 0), (1, 0)))
    )
    settings = {"counts": False, "dense_traffic": False}
    return verdict(Instance(SentinelPolling, bounds, CM384, settings), "reference")


@cache
def at_once() -> Verdict:
    """A hang before the first step."""
    return verdict(with_settings(instance(FlagAfterData), flag=False), "reduced")


@cache
def stale() -> Verdict:
    """A flag that overtakes its data."""
    return verdict(with_settings(instance(FlagAfterData), quiet=False), "reduced")


@cache
def proof() -> Verdict:
    """Proved."""
    return verdict(instance(FlagAfterData), "reference")


@cache
def explained() -> Verdict:
    """Proved, with what carries each block."""
    return replace(proof(), chains=Chains(*explain(instance(FlagAfterData), is_every=False)))


@cache
def undecided() -> Verdict:
    """Stopped by its budget."""
    return verdict(instance(FlagAfterData), "reference", states=5)


@cache
def broken() -> Verdict:
    """Two engines contradict each other."""
    said = "the engines disagree: reference says proved, reduced says violated"
    answers = (PropertyVerdict("race-free", Answer.BROKEN, said), *proof().properties[1:])
    return replace(proof(), engine="reference,reduced", properties=answers)


VIOLATIONS = (torn, hang, overwritten, at_once, stale)
ALL = (*VIOLATIONS, proof, explained, undecided, broken)


def trace_of(found: Verdict) -> Trace:
    """The run of a verdict that has one."""
    assert found.trace is not None
    return found.trace


def long_run(puts: int, ranks: int = 4) -> Trace:
    """A made-up run of four steps for each put: it is issued, lands, is read, and a quiet."""
    processes = tuple(f"{role}@rank{n}" for role in ("sender", "receiver") for n in range(ranks))
    cells = tuple(
        MemoryCell(number, f"window[{number // 8}][{number % 8}]", "lead", 0, "empty")
        for number in range(8 * ranks)
    )
    held = ["empty"] * len(cells)
    last: dict[int, int] = {}
    steps: list[TraceStep] = []

    def add(
        process: int, text: str, line: int, causes: tuple[int, ...] = (), **more: object
    ) -> int:
        after = tuple(sorted({*causes, *([last[process]] if process in last else [])}))
        source = Line("long.py", line, f"await core.{text.split()[0]}(slot)")
        made = TraceStep("process", process, (0, 0), processes[process], text, source, after=after)
        steps.append(replace(made, **more))  # type: ignore[arg-type]
        last[process] = len(steps) - 1
        return len(steps) - 1

    for number in range(puts):
        sender, receiver = number % ranks, ranks + (number + 1) % ranks
        cell = cells[(number + 1) % ranks * 8 + number % 8]
        put = add(sender, f"put {cell.block}: token {number}", 10, issues=1)
        change = Change(cell.block, cell.field, held[cell.number], f"token {number}")
        held[cell.number] = f"token {number}"
        what, text = (cell.number, 0), f"token {number} lands at {cell.block}"
        landing = TraceStep("land", sender, what, "fabric", text, None, (change,), put)
        steps.append(replace(landing, writes=(cell.number,), after=(put,)))
        reads = (cell.number,)
        text = f"wait_until {cell.block} reads token {number}"
        add(receiver, text, 20, (len(steps) - 1,), reads=reads)
        add(receiver, "quiet", 30)
    bounds = {"ranks": ranks, "tokens": 1, "rounds": puts, "experts": ranks, "topk": ranks}
    question = Question("long", bounds, CM384.as_data(), {})
    everything = tuple(range(len(steps)))
    message, edge = "token 7, not token 8", "nothing orders this landing after the read"
    return Trace(
        question,
        "happens-before",
        message,
        (),
        processes,
        tuple(steps),
        everything,
        False,
        edge,
        memory=cells,
    )
