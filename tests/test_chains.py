"""What carries a proof: computed for its page, the same each time, or said why not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx
import pytest

from syncproof.checkers.smt import why
from syncproof.checkers.smt.why import Effort, TooLarge, explain
from syncproof.cli import run
from syncproof.commands import why as command
from syncproof.models.bounds import Bounds
from syncproof.models.instance import Instance
from syncproof.models.verdict import Carried, Chains, Verdict, from_data, to_data
from syncproof.protocols.cumsum import KernelDecomposition
from syncproof.reports.chains import print_chains
from syncproof.reports.page import page_of
from syncproof.reports.terminal import console_on
from syncproof.request import Request
from tests import page_examples
from tests.small import CM384, FlagAfterData, instance
from tests.test_data_as_flag import Row

Captured = pytest.CaptureFixture[str]
QUICK = ["sw", "--routing", "balanced", "--rounds", "1", "-q"]


def prefix_sum() -> Instance:
    """Where one process places the tokens and another reads them."""
    return Instance(KernelDecomposition, Bounds(2, rounds=1, routing="balanced"), CM384, {})


def way(each: Carried) -> list[str]:
    """The chain in words."""
    return [f"{each.events[n].actor}: {each.events[n].text}" for n in each.chain]


def test_chain_goes_through_what_the_processes_of_a_rank_do_together() -> None:
    """A token that another process has placed: put, landing, its quiet, the sync, the read."""
    explained, consumes = explain(prefix_sum(), is_every=False)
    assert consumes == 2 and len(explained) == 1
    put, landing, quiet, sync, load = way(explained[0])
    assert put.startswith("count_core@rank1: put output.tokens[1]")
    assert landing.startswith("fabric: payload of token 0 round 0 (0->1) lands at output.tokens[1]")
    assert (quiet, sync) == ("count_core@rank1: quiet", "rank 1: sync")
    assert load.startswith("token_core@rank1: load output.tokens[1]")


def test_events_stand_below_what_they_come_after() -> None:
    """The orders are acyclic and the chain is one of their paths."""
    for each in explain(instance(FlagAfterData))[0]:
        assert all(order.first < order.second for order in each.orders)
        assert list(each.chain) == sorted(each.chain) and len(each.chain) >= 3
        graph = networkx.DiGraph((order.first, order.second) for order in each.orders)
        assert networkx.is_path(graph, each.chain)


def test_consume_that_no_path_leads_to() -> None:
    """Where the order comes about in another way the chain is put, landing, consume."""
    put, landing, consume, other = (object() for _ in range(4))
    graph: Any = networkx.DiGraph([(other, consume), (put, landing)])
    data: Any = [(put, landing, "is put by"), (landing, consume, "reads")]
    found: Any = why._chain(graph, data, consume, set())  # type: ignore[arg-type]
    assert found == [put, landing, consume]


@pytest.mark.parametrize("effort", [Effort(points=5), Effort(steps=50)])
def test_effort_is_bounded_by_counting(effort: Effort) -> None:
    """Too many steps, or too many of z3's: the same each time, and never a chain that is half."""
    for _ in range(2):
        with pytest.raises(TooLarge):
            explain(instance(FlagAfterData), effort=effort)
    assert explain(instance(FlagAfterData), effort=Effort(10_000, 10_000_000))[1] == 2


def test_page_says_why_there_is_no_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Too large, not of a number of rounds, or not asked for; and how to get it."""
    file = str(tmp_path / "p.html")
    monkeypatch.setattr(command, "UNASKED", Effort(points=3))
    assert run([*QUICK, "--html", file]) == 0
    page = Path(file).read_text()
    assert "Not computed: its roles have" in page and "--why computes it" in page
    assert run([*QUICK, "--html", file, "--why"]) == 0
    assert "is consumed by receiver@rank1" in Path(file).read_text()
    assert run([*QUICK, "--rounds", "unbounded", "--html", file]) == 0
    assert "Not computed: of all numbers of rounds" in Path(file).read_text()
    assert "Not computed for this page" in page_of(page_examples.proof())
    capsys.readouterr()


def test_page_and_json_hold_the_same_chain_each_time(tmp_path: Path) -> None:
    """Whatever the order of sets; a page drawn from the verdict's file is the page."""
    written = []
    for seed in ("1", "77"):
        page, data = tmp_path / f"{seed}.html", tmp_path / f"{seed}.json"
        subprocess.run(
            [sys.executable, "-m", "syncproof", *QUICK, "--html", str(page), "--json", str(data)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=300,
        )
        written.append((page.read_bytes(), data.read_bytes()))
    assert written[0] == written[1]
    verdict = from_data(Verdict, json.loads(written[0][1]), "it")
    assert verdict.chains is not None and verdict.chains.consumes == 2
    assert from_data(Verdict, to_data(verdict), "it") == verdict
    assert run(["show", str(tmp_path / "1.json"), "--html", str(tmp_path / "again.html")]) == 0
    assert "is consumed by receiver@rank1" in (tmp_path / "again.html").read_text()


def test_without_a_page_nothing_is_computed(tmp_path: Path) -> None:
    """A check that is not asked for a page costs no formula, and its JSON is as it was."""
    file = tmp_path / "v.json"
    assert run([*QUICK, "--json", str(file)]) == 0
    assert "chains" not in json.loads(file.read_text())


def test_chains_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    """In 100 columns no line is longer, and every event is there."""
    monkeypatch.setenv("COLUMNS", "100")
    explained, consumes = explain(Row("", "tff").instance())
    print_chains(console_on(sys.stdout), Chains(explained, consumes))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 100
    assert said.count("->  ") == sum(len(each.chain) for each in explained)
    for each in explained:
        assert f"{each.token} is consumed by {each.consumer} at tff.py:" in said


def test_markup_in_a_chain_is_text() -> None:
    """Names of an author are shown and not obeyed."""
    (each, *_), consumes = explain(instance(FlagAfterData))
    bad = "<script>alert(1)</script>\x1b[31m"
    events = tuple(replace(event, actor=bad, text=bad) for event in each.events)
    chains = Chains((replace(each, token=bad, events=events),), consumes, "")
    page = page_of(replace(page_examples.proof(), chains=chains))
    assert "<script>alert" not in page and "\x1b" not in page and "&lt;script&gt;alert(1)" in page


def test_proof_of_what_never_ends_has_no_chain(tmp_path: Path, capsys: Captured) -> None:
    """No run is complete, so there is nothing to explain; the verdict stands."""
    file = tmp_path / "p.html"
    hangs = ["--drop", "reserved_sentinel", "--property", "happens-before"]
    asked = ["sp", "--rounds", "1", "--routing", "balanced", *hangs, "--engine", "reference"]
    assert run([*asked, "--html", str(file)]) == 0
    assert "Not computed: --why: no run is complete" in file.read_text()


def test_z3_that_contradicts_a_proof_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page never shows a proof beside a run that breaks it."""
    broken = (Carried("token", "receiver@rank0"),)
    monkeypatch.setattr(command, "explain", lambda *_, **__: (broken, 1))
    asked: Any = SimpleNamespace(instance=None)
    with pytest.raises(RuntimeError, match="the engines disagree"):
        command.chains_of(asked, Request("sw"), False)
