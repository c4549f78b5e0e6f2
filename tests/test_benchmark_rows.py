"""The rows that are measured at 8 ranks are all there are."""

from __future__ import annotations

from syncproof.models.protocol import Assumption
from syncproof.registry import built_ins
from tests.benchmarks.rows import measured, rows


def test_every_value_and_every_assumption_has_a_row() -> None:
    """No protocol, no value of a setting that has a list of them, no assumption is left out, and
    no row is measured twice."""
    found = [*rows()]
    assert len({*found}) == len(found)
    for name, kind in built_ins().items():
        assert (name,) in found
        for key, each in kind.parameters().items():
            if isinstance(each, Assumption):
                assert (name, "--drop", key) in found
            for value in each.values:
                assert value == each.default or (name, "--set", f"{key}={value}") in found
            if each.default is True and not isinstance(each, Assumption):
                assert (name, "--set", f"{key}=no") in found


def test_what_a_row_says_is_the_answer_of_the_command() -> None:
    """Answer, engine and processor time come from the command itself."""
    row = measured(("sp", "--ranks", "2", "--rounds", "1", "--tokens", "1"), size=())
    assert row.answer.startswith("proved states=") and "engine=certificate" in row.answer
    assert row.cpu > 0 and row.name.startswith("sp ")
