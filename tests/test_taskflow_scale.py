"""Large schedules: proved, within the time that was promised, growing nearly linearly."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from syncproof.checkers.schedule.check import check
from syncproof.checkers.schedule.cost import contention
from syncproof.models.taskflow.builder import Builder
from syncproof.models.taskflow.moe import BACKWARD, FORWARD, Layer
from syncproof.models.taskflow.schedule import Schedule
from syncproof.models.taskflow.scheduling import generate
from syncproof.models.verdict import Answer

FAN, LAG, QUEUES = 10, 40, 72


def stages(tasks: int) -> Schedule:
    """Events of ten triggers and ten waiters each: ten dependencies a task, on 72 queues."""
    b = Builder(ranks=1)
    b.tensor("x", 0, tasks)
    for number in range(QUEUES):
        b.queue(f"q{number}", 0)
    for number in range(tasks // FAN):
        b.event(f"e{number}")
    for number in range(tasks):
        own, source = number // FAN, number // FAN - LAG
        later = source >= 0
        b.task(
            f"t{number}",
            f"q{number % QUEUES}",
            reads=[("x", source * FAN, source * FAN + FAN)] if later else [],
            writes=[("x", number, number + 1)],
            waits={f"e{source}": FAN} if later else {},
            triggers={f"e{own}": 1},
            duration=1.0,
        )
    return b.build()


def one_to_one(tasks: int) -> Schedule:
    """The same dependencies, each with an event of its own: ten times as many events as tasks."""
    b = Builder(ranks=1)
    b.tensor("x", 0, tasks)
    for number in range(QUEUES):
        b.queue(f"q{number}", 0)
    for number in range(tasks):
        source = (number // FAN - LAG) * FAN
        waits = {f"e{source + i}.{number}": 1 for i in range(FAN)} if source >= 0 else {}
        for name in waits:
            b.event(name)
        target = (number // FAN + LAG) * FAN
        b.task(
            f"t{number}",
            f"q{number % QUEUES}",
            reads=[("x", source, source + FAN)] if waits else [],
            writes=[("x", number, number + 1)],
            waits=waits,
            triggers={f"e{number}.{i}": 1 for i in range(target, min(target + FAN, tasks))},
            duration=1.0,
        )
    return b.build()


def seconds(schedule: Schedule) -> float:
    """Processor time of a check that proves."""
    started = time.process_time()
    assert check(schedule, price=False).checked.answer is Answer.PROVED
    return time.process_time() - started


@pytest.mark.long
@pytest.mark.parametrize("make", [stages, one_to_one])
def test_a_million_dependencies_in_20_seconds(make: Callable[[int], Schedule]) -> None:
    """100,000 tasks with a million dependencies take 20 s, and time grows nearly linearly.

    All in 4 GiB; with a `stages` event ten tasks wait for ten, with `one_to_one` one for one.
    """
    sizes = (1_000, 10_000, 100_000)
    times = [seconds(make(size)) for size in sizes]
    exponents = [math.log10(more / less) for less, more in pairwise(times)]
    print(make.__name__, [f"{each:.2f} s" for each in times], exponents)
    assert times[-1] < 20
    assert sum(exponents) / 2 < 1.25
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20


def test_implied_waits_are_found_among_many() -> None:
    """Of one-to-one events, those whose order another one gives already are reported, and only
    those: each task of a chain also waits for the one before the last."""
    b = Builder(ranks=1)
    for number in range(60):
        b.queue(f"q{number}", 0)
        waits = {f"e{source}.{number}": 1 for source in (number - 1, number - 2) if source >= 0}
        for name in waits:
            b.event(name)
        triggers = {f"e{number}.{target}": 1 for target in (number + 1, number + 2) if target < 60}
        b.task(f"t{number}", f"q{number}", waits=waits, triggers=triggers)
    implied = check(b.build(), price=False).checked.implied
    assert implied == tuple((f"t{n}", f"e{n - 2}.{n}") for n in range(2, 60))


@pytest.mark.long
@pytest.mark.parametrize("ranks", [4, 8, 16])
@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
def test_generated_schedules_of_real_size_are_proved(ranks: int, direction: str) -> None:
    """EP 4, 8 and 16 with 24 AIC and 48 AIV: proved, within 1.3 of the lower bound, one sender."""
    layer = Layer(
        ranks=ranks,
        experts=8 * ranks,
        tiles=2,
        columns=3,
        aic=24,
        aiv=48,
        links=16,
        direction=direction,
    )
    checking = check(generate(layer))
    found = checking.checked
    assert found.answer is Answer.PROVED
    assert found.tasks >= (20_000 if ranks == 16 else 1_000)
    assert found.cost is not None and found.cost.makespan <= 1.3 * found.cost.bound
    assert set(contention(checking.program, checking.execution).values()) == {1}
