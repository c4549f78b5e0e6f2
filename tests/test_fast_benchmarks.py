"""The benchmarks run, and what they compare counts alike."""

from __future__ import annotations

import pytest

from tests.benchmarks.engines import filled_tables, in_its_own_process, spin, tlc
from tests.benchmarks.tla_text import tla


def test_a_module_has_an_action_for_each_step() -> None:
    """The TLA+ text of a system names every variable that changes, and one action a step."""
    text = tla(filled_tables("sp-3x1"), "Tables")
    assert text.startswith("---- MODULE Tables ----") and text.endswith("====\n")
    waits_puts_and_landings = 3 * (2 + 2 + 2) + 3 * (2 + 2)
    assert text.count("\n  \\/ ") == waits_puts_and_landings


@pytest.mark.long
@pytest.mark.outside("spin", "gcc", "java", "tlc")
@pytest.mark.parametrize("name", ["sp-3x1", "barrier-6"])
def test_all_count_alike(name: str) -> None:
    """This project, SPIN and TLC count the same states and transitions on the same tables."""
    tables = filled_tables(name)
    found = [in_its_own_process(name, 2), spin(tables, reduce=False), tlc(tables)]
    assert len({(each.states, each.transitions) for each in found}) == 1
