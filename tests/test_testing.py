"""`syncproof.testing`: strategies by which a user's own pytest runs a protocol."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, find, given, settings

from syncproof.protocols.sp import SentinelPolling
from syncproof.testing import Run, Schedule, fabrics, runs
from tests.small import FlagAfterData

RELAXED = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@given(runs(SentinelPolling, ranks=2, rounds=2))
@settings(max_examples=8, **RELAXED)
def test_sound_protocol_passes(run: Run) -> None:
    """Whatever the schedule, the payload and the routing, Sentinel Polling completes."""
    run.check()


@given(runs(FlagAfterData, ranks=2, fabric=fabrics(), settings={"quiet": True}))
@settings(max_examples=8, **RELAXED)
def test_sound_protocol_passes_on_every_fabric(run: Run) -> None:
    """Payload, quiet, flag is right however blocks are torn."""
    run.check()


def fails(run: Run) -> bool:
    return run.result.outcome != "complete"


def test_failing_run_shrinks_to_a_short_schedule() -> None:
    """With one window a failing run is found, it is short, and `check` says what is wrong."""
    made = runs(SentinelPolling, ranks=2, settings={"windows": 1}, conform=False)
    found = find(made, fails, settings=settings(max_examples=100, database=None, **RELAXED))
    assert len(found.schedule.turns) <= 6
    with pytest.raises(AssertionError, match=r"after \d+ steps"):
        found.check()
    assert "Schedule(turns=" in repr(found) and len(repr(found)) < 300


def test_empty_schedule_is_the_plainest_run() -> None:
    """Behind its turns a schedule always takes the step that has waited longest."""
    assert Schedule((3, 1)).choose(0, 2) == 1
    assert Schedule(()).choose(5, 9) == 0
