"""What TLC says about the TLA+ modules against what we say about the protocols.

TLC was not written by us, and the modules were written by hand from the papers. The rest of the
TLA+ side, for which no program from outside is needed, is in ``test_tla.py``.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.checkers.explicit.replay import replay
from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.tla import check as checking
from syncproof.checkers.tla import compare as comparing
from syncproof.checkers.tla import tlc
from syncproof.checkers.tla.check import check, scratch, verdict_of
from syncproof.checkers.tla.compare import compare
from syncproof.checkers.tla.model import TERMINATION, invariants_for, model_of, omitted_steps
from syncproof.checkers.tla.tlc import Limits
from syncproof.checkers.tla.tools import Tools, found_tools
from syncproof.checkers.tla.translate import Disagreement, followed
from syncproof.cli import run
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.transitions import PROPERTIES
from syncproof.models.verdict import Answer, Verdict
from tests.tla_obligations import KINDS, OBLIGATIONS, Obligation, made
from tests.tla_values import as_itf

NOT_RACES = tuple(each for each in PROPERTIES if each != "race-free")
SPARSE = {"counts": False}


@pytest.fixture(scope="module")
def tools() -> Tools:
    here = found_tools(os.environ)
    try:
        here.for_tlc()
    except UserError as missing:
        pytest.skip(f"needs Java and TLC (extra [tla]): {missing}")
    return here


QUICK = (
    "sp-sound",
    "sp-one-window",
    "sp-no-cover",
    "sw-three-ranks",
    "sw-no-quiet",
    "sw-no-flag",
    "tff-sound",
    "tff-never-reset",
    "tff-one-window",
    "dc-three-ranks",
    "dc-arrival-alone",
    "dc-leads-repeat",
    "bsp-one-way",
    "bsp-no-second-barrier",
    "cumsum-no-signal",
    "cumsum-no-status-wait",
    "ubep-no-signal",
    "ubep-no-status-wait",
    "taskflow-exchange",
    "taskflow-no-wait",
    "taskflow-no-quiet",
    "taskflow-no-trigger",
    "taskflow-three-ranks",
)


def judged(name: str) -> Any:
    return pytest.param(name, marks=() if name in QUICK else pytest.mark.long)


@pytest.mark.outside("java", "tlc")
@pytest.mark.parametrize("name", [judged(name) for name in OBLIGATIONS])
def test_obligation(name: str, tools: Tools) -> None:
    """TLC and `reference` both give the expected verdict, in the same number of steps.

    TLC's run then replays in our model and breaks the same property there.
    """
    it = OBLIGATIONS[name]
    theirs, ours = ask_both(it, tools)
    holds = it.expected == "everything holds"
    expected = {
        "HappensBefore is violated": "happens-before",
        "Checks is violated": "checks",
        "Quiescent is violated": "quiescent",
        "deadlock": "deadlock-free",
    }
    assert violated(theirs) == violated(ours) == ([] if holds else [expected[it.expected]])
    if not holds:
        assert theirs.trace is not None and ours.trace is not None
        assert len(theirs.trace.steps) == len(ours.trace.steps)
        assert replay(theirs.trace, it.instance()).reproduced


def ask_both(it: Obligation, tools: Tools) -> tuple[Verdict, Verdict]:
    """TLC's verdict on the cfg, and our own on the instance that it is of."""
    instance = it.instance()
    asked = PROPERTIES if it.expected == "everything holds" else NOT_RACES
    question = question_of(instance, it.module, properties=asked)
    with scratch() as folder:
        found = tlc.check(
            it.model,
            tools,
            folder,
            Limits(),
            invariants=invariants_for(it.module, asked),
            temporal=[TERMINATION],
            deadlock=True,
        )
    theirs = verdict_of(instance, question, "tla", found)
    return theirs, check_explicitly(instance, question, "reference")


def violated(verdict: Verdict) -> list[str]:
    wrong = (Answer.VIOLATED, Answer.BROKEN)
    return [each.property for each in verdict.properties if each.answer in wrong]


COUNTED = [name for name, kind in KINDS.items() if "counts" in kind.parameters()]
HEAVY = ("KernelDecomposition", "Ubep")
"""Modules of four busy cores a pair, which are compared without tokens and with ordered puts."""

COMPARED = [
    pytest.param(
        module,
        settings,
        omitted,
        id=f"{module} {omitted or settings or 'sound'}",
        marks=() if omitted.endswith("offset") else pytest.mark.long if number or heavy else (),
    )
    for module, variants in {
        "SentinelPolling": [
            ({}, ""),
            ({}, "receiver put window"),
            ({}, "receiver wait_until window"),
        ],
        "StopAndWait": [({}, ""), ({"quiet": False}, ""), ({}, "sender put flag")],
        "TokenFlagFusion": [
            ({}, ""),
            ({"reset": "before"}, ""),
            ({}, "receiver wait_until window"),
        ],
        "DataForChecksum": [({}, ""), ({"compare": False}, ""), ({}, "sender put total")],
        "BulkSynchronous": [
            ({}, ""),
            ({"second_barrier": False}, ""),
            ({}, "aiv sync in sync_all"),
            ({}, "aiv wait_until status"),
        ],
        "KernelDecomposition": [
            ({}, ""),
            ({}, "count_core put status in take_count"),
            ({}, "count_core put_with_signal offset"),
        ],
        "Ubep": [({}, ""), ({}, "count_core put_with_signal counting.offset")],
    }.items()
    for heavy in [module in HEAVY]
    for number, (settings, omitted) in enumerate(variants)
]


def small(module: str, settings: dict[str, Any]) -> Instance:
    """An instance of which all states can be listed."""
    if module in COUNTED:
        return made(module, **{**SPARSE, **settings})
    if module not in HEAVY:
        return made(module, **settings)
    instance = made(module, fabric="cm384,ordering=per_pair", **settings)
    return replace(instance, bounds=replace(instance.bounds, routing=(((0, 0), (0, 0)),)))


def omitting(instance: Instance, step: str) -> Instance:
    """The instance with the mutant that leaves out this step."""
    if not step:
        return instance
    return next(
        changed
        for changed in (each.applied(instance) for each in find_mutants(instance))
        if omitted_steps(changed) == [step]
    )


@pytest.mark.outside("java", "tlc")
@pytest.mark.parametrize(("module", "settings", "omitted"), COMPARED)
def test_observable_states_are_equal(
    module: str, settings: dict[str, Any], omitted: str, tools: Tools
) -> None:
    """TLC and our model reach the same observable states.

    Where no wrong token is taken they also have as many states and steps in all: a module tells
    apart what was taken, which our model, for which the run is over then, does not.
    """
    instance = omitting(small(module, settings), omitted)
    found = compare(instance, tools, Limits())
    assert found.is_equal, (found.ours.shortest, found.theirs.shortest)
    if not settings and not omitted:
        sizes = [(side.states, side.steps) for side in (found.ours, found.theirs)]
        assert sizes[0] == sizes[1]
    assert found.ours.observable > 5


@pytest.mark.outside("java", "tlc")
@pytest.mark.long
@pytest.mark.parametrize("name", ["cumsum-sound", "cumsum-no-window-wait", "ubep-sound"])
def test_observable_states_with_a_token(name: str, tools: Tools) -> None:
    """Also with a token on its way, and with mutants in which it is taken before it is there."""
    it = OBLIGATIONS[name]
    found = compare(it.instance(), tools, Limits())
    assert found.is_equal, (found.ours.shortest, found.theirs.shortest)
    if it.expected == "everything holds":
        sizes = [(side.states, side.steps) for side in (found.ours, found.theirs)]
        assert sizes[0] == sizes[1]


@pytest.mark.outside("java", "tlc")
@pytest.mark.parametrize("name", ["cumsum-no-signal", "taskflow-no-trigger"])
def test_termination_alone_finds_a_hang(name: str, tools: Tools) -> None:
    """Termination is violated by a hang also where nobody asks for deadlocks."""
    it = OBLIGATIONS[name]
    assert it.expected == "deadlock"
    with scratch() as folder:
        found = tlc.check(it.model, tools, folder, Limits(), temporal=[TERMINATION])
    assert found.violated == "temporal"


@pytest.mark.outside("java", "tlc")
@pytest.mark.parametrize(
    "name",
    [
        "bsp-one-way",
        pytest.param("cumsum-no-tokens", marks=pytest.mark.long),
        pytest.param("ubep-no-tokens", marks=pytest.mark.long),
        pytest.param("taskflow-exchange", marks=pytest.mark.long),
    ],
)
def test_fairness_knows_when_there_is_a_step(name: str, tools: Tools) -> None:
    """The condition written by hand in the fairness is TLC's own: that Next is enabled."""
    with scratch() as folder:
        found = tlc.check(
            OBLIGATIONS[name].model, tools, folder, Limits(), invariants=["HasStepIsEnabled"]
        )
    assert not found.violated and found.distinct > 100


SCHEDULES = [
    pytest.param(name, marks=() if name == "taskflow-exchange" else pytest.mark.long)
    for name in ("taskflow-exchange", "taskflow-ordered", "taskflow-no-last-quiet")
]


@pytest.mark.heavy
@pytest.mark.outside("java", "tlc")
@pytest.mark.parametrize("name", SCHEDULES)
def test_observable_states_of_a_schedule(
    name: str, monkeypatch: pytest.MonkeyPatch, tools: Tools
) -> None:
    """The states of the first part of the layer are those of the part of the generated one."""
    it = OBLIGATIONS[name]
    monkeypatch.setattr(comparing, "model_of", lambda _: it.model)
    found = compare(it.instance(), tools, Limits())
    assert found.is_equal, (found.ours.shortest, found.theirs.shortest)
    assert (found.ours.states, found.ours.steps) == (found.theirs.states, found.theirs.steps)
    assert found.ours.observable > 1000


@pytest.mark.outside("java", "tlc")
@pytest.mark.long
@pytest.mark.parametrize("module", COUNTED)
def test_observable_states_with_counts(module: str, tools: Tools) -> None:
    """With the exchange of counts, for the protocol and for every mutant of an operation."""
    instance = made(module)
    mutants = [each for each in find_mutants(instance) if each.setting is None]
    for each in [instance, *(mutant.applied(instance) for mutant in mutants)]:
        found = compare(each, tools, Limits())
        assert found.is_equal, (omitted_steps(each), found)


@pytest.mark.outside("java", "tlc")
@pytest.mark.long
@pytest.mark.parametrize("module", [*COUNTED, "BulkSynchronous"])
def test_every_mutant_has_one_verdict(module: str, tools: Tools) -> None:
    """TLC and `reference` give every mutant the same verdict, in the same number of steps.

    An endless run, of a receiver that polls for ever, is not the shortest that TLC could find.
    """
    instance = made(module, 3, **SPARSE) if module in COUNTED else made(module, 2)
    for mutant in find_mutants(instance):
        changed = mutant.applied(instance)
        question = question_of(changed, module, mutant=mutant.name, properties=NOT_RACES)
        theirs = check(changed, question, "tla", Budget(), tools)
        ours = check_explicitly(changed, question, "reference")
        assert violated(theirs) == violated(ours), mutant.name
        if theirs.trace is None or ours.trace is None:
            assert module not in COUNTED and theirs.trace is ours.trace, mutant.name
            continue
        if theirs.trace.fewest:
            assert len(theirs.trace.steps) == len(ours.trace.steps), mutant.name
        assert replay(theirs.trace, changed).reproduced, mutant.name


@pytest.mark.outside("java", "tlc")
@pytest.mark.long
def test_every_mutant_of_a_schedule_has_one_verdict(
    monkeypatch: pytest.MonkeyPatch, tools: Tools
) -> None:
    """TLC and `reference` say the same of every mutant of the first part of the layer."""
    it = OBLIGATIONS["taskflow-exchange"]
    instance = it.instance()
    mutants = find_mutants(instance)
    assert len(mutants) == 6
    for mutant in mutants:
        changed = mutant.applied(instance)
        question = question_of(changed, it.module, mutant=mutant.name, properties=NOT_RACES)
        monkeypatch.setattr(checking, "model_of", it.without(omitted_steps(changed)))
        theirs = check(changed, question, "tla", Budget(), tools)
        ours = check_explicitly(changed, question, "reference")
        assert violated(theirs) == violated(ours), mutant.name
        if theirs.trace is not None and ours.trace is not None:
            assert len(theirs.trace.steps) == len(ours.trace.steps), mutant.name
            assert replay(theirs.trace, changed).reproduced, mutant.name


@pytest.mark.outside("java", "tlc")
def test_a_difference_is_shown_by_its_shortest_run(
    monkeypatch: pytest.MonkeyPatch, tools: Tools
) -> None:
    """Where the module has another constant than our instance, each side shows a run of its own."""
    other = made("StopAndWait", quiet=False, **SPARSE)
    monkeypatch.setattr(comparing, "model_of", lambda _: model_of(other))
    found = compare(made("StopAndWait", **SPARSE), tools, Limits())
    assert not found.is_equal and found.theirs.only_here and not found.ours.only_here
    # put, then the flag without a quiet: the fewest steps to two puts in flight of one sender
    assert len(found.theirs.shortest) == 2


@pytest.mark.outside("java", "tlc")
def test_apalache_counterexample_is_a_trace_of_ours(tmp_path: Path, tools: Tools) -> None:
    """A program that answers as Apalache does, with TLC's run in ITF, gives the same trace."""
    it = OBLIGATIONS["sw-no-flag"]
    instance = it.instance()
    question = question_of(instance, it.module, properties=("deadlock-free",))
    with scratch() as folder:
        found = tlc.check(it.model, tools, folder, Limits(), deadlock=True)
    theirs = verdict_of(instance, question, "tla", found)
    states = [{n: as_itf(v) for n, v in state.items()} for state in found.states]
    itf = {"#meta": {}, "vars": sorted(found.states[0]), "states": states}
    (tmp_path / "run.itf.json").write_text(json.dumps(itf))
    program = tmp_path / "apalache-mc"
    program.write_text(
        f"#!{sys.executable}\nimport shutil, sys\nfrom pathlib import Path\n"
        "out = Path(next(a for a in sys.argv if a.startswith('--run-dir=')).split('=')[1])\n"
        f"out.mkdir()\nrun = {str(tmp_path / 'run.itf.json')!r}\n"
        "shutil.copy(run, out / 'violation1.itf.json')\n"
        "print('The outcome is: Deadlock')\nsys.exit(12)\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    by_apalache = check(instance, question, "tla-apalache", Budget(), Tools(apalache=str(program)))
    assert violated(by_apalache) == ["deadlock-free"]
    assert by_apalache.trace is not None and theirs.trace is not None
    assert by_apalache.trace.steps == theirs.trace.steps


@pytest.mark.outside("java", "tlc")
def test_a_run_that_our_model_lacks_is_an_error_of_ours(tools: Tools) -> None:
    """A counterexample that the model cannot follow is reported as broken, never as a verdict."""
    it = OBLIGATIONS["sw-no-quiet"]
    with scratch() as folder:
        found = tlc.check(it.model, tools, folder, Limits(), invariants=["HappensBefore"])
    sound = made("StopAndWait", **SPARSE)
    with pytest.raises(Disagreement, match="not possible in our model"):
        followed(sound, found.states)
    question = question_of(sound, "sw", properties=("happens-before",))
    assert verdict_of(sound, question, "tla", found).answer is Answer.BROKEN


@pytest.mark.outside("java", "tlc")
def test_a_race_is_judged_where_nothing_else_is_wrong(tools: Tools) -> None:
    """A wrong token goes before the race that TLC meets one step sooner, as in our engines."""
    instance = made("StopAndWait", quiet=False, **SPARSE)
    asked = question_of(instance, "sw", properties=("happens-before", "race-free"))
    assert violated(check(instance, asked, "tla", Budget(), tools)) == ["happens-before"]
    alone = question_of(instance, "sw", properties=("race-free",))
    ours = check_explicitly(instance, alone, "reference")
    theirs = check(instance, alone, "tla", Budget(), tools)
    assert violated(theirs) == violated(ours) == ["race-free"]
    assert theirs.trace is not None and ours.trace is not None
    assert len(theirs.trace.steps) == len(ours.trace.steps)


# Bad input to TLC


@pytest.mark.outside("java", "tlc")
def test_broken_jar(tmp_path: Path, tools: Tools) -> None:
    """A jar that is none is named, with Java's own words."""
    jar = tmp_path / "tla2tools.jar"
    jar.write_bytes(b"no jar")
    with scratch() as folder, pytest.raises(UserError, match="Java cannot run TLC") as caught:
        tlc.check(model_of(made("StopAndWait")), Tools(tools.java, str(jar)), folder, Limits())
    assert str(jar) in str(caught.value) and "tlc2.TLC" in caught.value.what


@pytest.mark.outside("java", "tlc")
def test_module_that_does_not_parse(tools: Tools) -> None:
    """TLC's own words about a parse error are kept, with the file and what to do; no crash."""
    model = replace(model_of(made("StopAndWait")), text="---- MODULE Run ----\nX == {\n====\n")
    with scratch() as folder, pytest.raises(UserError, match="150") as caught:
        tlc.check(model, tools, folder, Limits())
    assert "mend Run.tla" in str(caught.value) and "Parse Error" in caught.value.what


@pytest.mark.outside("java", "tlc")
def test_constant_without_a_value(tools: Tools) -> None:
    """A constant that the cfg leaves out is named, in TLC's own words."""
    model = model_of(made("StopAndWait"))
    fewer = tuple(each for each in model.constants if each[0] != "Windows")
    with scratch() as folder, pytest.raises(UserError, match="Windows"):
        tlc.check(replace(model, constants=fewer), tools, folder, Limits())


@pytest.mark.outside("java", "tlc")
def test_setting_that_a_module_does_not_state(tools: Tools) -> None:
    """What an ASSUME of a module leaves out is refused with its line, never judged regardless."""
    model = model_of(made("BulkSynchronous", syncall="software"))
    with scratch() as folder, pytest.raises(UserError, match="is false") as caught:
        tlc.check(model, tools, folder, Limits())
    assert "BulkSynchronous.tla" in caught.value.where and "ASSUME" in str(caught.value)


@pytest.mark.outside("java", "tlc")
def test_no_time_is_undecided(capsys: pytest.CaptureFixture[str], tools: Tools) -> None:
    """A budget that TLC cannot keep is exit 3, and names the flag to raise."""
    assert run(["sw", "--rounds", "2", "--engine", "tla", "--budget-seconds", "0.2"]) == 3
    assert "--budget-seconds" in capsys.readouterr().out


# The command line


@pytest.mark.outside("java", "tlc")
def test_engine_tla_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tools: Tools
) -> None:
    """``--engine tla`` refutes a mutant, and its trace is one that ``replay`` reproduces."""
    asked = ["sw", "--rounds", "1", "--routing", "balanced", "--set", "counts=no"]
    file = tmp_path / "trace.json"
    asked += ["--set", "quiet=no", "--property", "happens-before"]
    assert run([*asked, "--engine", "tla", "--trace", str(file)]) == 1
    assert "engine=tla property=happens-before steps=5" in capsys.readouterr().out
    assert run(["replay", str(file)]) == 1
    assert "reproduced" in capsys.readouterr().out


@pytest.mark.outside("java", "tlc")
def test_compare_shows_both_runs(capsys: pytest.CaptureFixture[str], tools: Tools) -> None:
    """``compare`` shows the two counterexamples of a mutant side by side, equally long."""
    asked = ["sw", "--rounds", "1", "--routing", "balanced", "--set", "counts=no"]
    assert run(["compare", *asked, "--set", "quiet=no", "--property", "happens-before"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].count("happens-before violated") == 2
    # put, put, landing, wait, load: nothing shorter can read a token that has not landed
    steps = [line.split() for line in lines if re.match(r" {3}\d ", line)]
    assert [row[0] for row in steps] == ["1", "2", "3", "4", "5"]
    assert all(row.count("=") == 1 for row in steps)


@pytest.mark.outside("java", "tlc")
def test_protocol_without_a_module(capsys: pytest.CaptureFixture[str], tools: Tools) -> None:
    """A protocol that no module states is named, with the modules that there are."""
    assert run(["barrier", "--engine", "tla"]) == 2
    assert "no TLA+ module Barrier" in capsys.readouterr().err
