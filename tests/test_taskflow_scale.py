"""Large schedules: proved, within the time that was promised, growing nearly linearly."""

from __future__ import annotations

import math
import time

import pytest

from syncproof.checkers.schedule.check import check
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


def seconds(tasks: int) -> float:
    """Processor time of a check that proves."""
    schedule = stages(tasks)
    started = time.process_time()
    assert check(schedule, price=False).checked.answer is Answer.PROVED
    return time.process_time() - started


@pytest.mark.long
def test_a_million_dependencies_in_20_seconds() -> None:
    """100,000 tasks with a million dependencies take 20 s, and time grows nearly linearly."""
    small, large = seconds(1000), seconds(100_000)
    print(f"exponent {math.log(large / small) / math.log(100):.2f}, {large:.1f} s")
    assert large < 20
    assert math.log(large / small) / math.log(100) < 1.25


@pytest.mark.long
@pytest.mark.parametrize("ranks", [4, 8, 16])
@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
def test_generated_schedules_of_real_size_are_proved(ranks: int, direction: str) -> None:
    """EP 4, 8 and 16 with 24 AIC and 48 AIV: proved, and within 1.3 of the lower bound."""
    layer = Layer(
        ranks=ranks,
        experts=128,
        tiles=2,
        columns=4,
        aic=24,
        aiv=48,
        links=16,
        direction=direction,
    )
    found = check(generate(layer)).checked
    assert found.answer is Answer.PROVED
    assert found.tasks >= (20_000 if ranks == 16 else 5_000)
    assert found.cost is not None and found.cost.makespan <= 1.3 * found.cost.bound
