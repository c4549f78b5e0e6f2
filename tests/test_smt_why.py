"""``show --why``: the chain that carries each consume, and that every edge shown is needed."""

from __future__ import annotations

import pytest

from syncproof.checkers.smt import why
from syncproof.checkers.smt.why import explain
from syncproof.cli import run
from syncproof.models.verdict import Carried
from tests.small import FlagAfterData, instance, with_settings
from tests.test_data_as_flag import Row
from tests.test_verdicts import Pulse


def words(each: Carried) -> list[str]:
    """The events of a chain."""
    return [f"{each.events[n].actor} {each.events[n].text}" for n in each.chain]


def test_chain_goes_through_quiet_and_flag() -> None:
    """Put, landing, quiet, flag, wait, load: what the protocol was written to rely on."""
    explained, consumes = explain(instance(FlagAfterData))
    assert consumes == 2
    assert [each.token for each in explained] == [
        "token 0 round 0 (1->0)",
        "token 0 round 0 (0->1)",
    ]
    for each in explained:
        put, landing, *between, consume = words(each)
        assert "sender" in put and "lands at data" in landing and "load data" in consume
        ways = ("lands at ready", "wait_until ready")
        places = [next(i for i, event in enumerate(between) if w in event) for w in ways]
        assert places == sorted(places)
        assert any(event.text == "quiet" for event in each.events)


def test_token_flag_fusion_needs_the_reset_to_land_before_the_window_is_reused() -> None:
    """Each round rests on its flag, round 2 also on the quiet behind the reset of round 0."""
    explained, consumes = explain(Row("", "tff").instance())
    assert len(explained) == consumes == 6
    assert all(any("wait_until" in event for event in words(each)) for each in explained)
    last = next(each for each in explained if "round 2 (0->1)" in each.token)
    assert any(event.text == "quiet" for event in last.events)


def test_every_edge_is_needed() -> None:
    """Without any one of the labels behind the edges the wrong consume becomes possible."""
    system = instance(FlagAfterData).system({})
    asked = frozenset(("happens-before",))
    encoding = why.Encoding(why.Unrolling(system, asked))
    prover, queries = why._Prover(encoding), why.Queries(encoding, asked)
    ((condition, _), *_) = queries.each_wrong("happens-before")
    needed = prover.needed_against(condition)
    assert needed
    for left_out in needed:
        assert not prover.holds_without(condition, [e for e in needed if e != left_out])


def test_broken_protocol_has_no_chain(capsys: pytest.CaptureFixture[str]) -> None:
    """Where some run gets something else there is nothing to explain, and the exit code says so."""
    explained, _ = explain(with_settings(instance(FlagAfterData), quiet=False))
    assert explained and all(each.chain == each.events == () for each in explained)
    arguments = ["sw", "--routing", "balanced", "--rounds", "1"]
    assert run(["show", *arguments, "--why"]) == 0
    assert "; reads " in capsys.readouterr().out
    assert run(["show", *arguments, "--set", "quiet=no", "--why"]) == 1
    assert "nothing carries it" in capsys.readouterr().out


def test_loop_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """What the encoding does not cover is said by name."""
    with pytest.raises(why.Uncovered, match="a loop"):
        explain(instance(Pulse))
