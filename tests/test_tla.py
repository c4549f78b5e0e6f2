"""The TLA+ modules: their form, the tools' output, and what TLC says against what we say.

Verdicts and state counts are compared with TLC, which we did not write, on modules that are
written by hand from the papers; formats with what the tools' own documents print.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.checkers.explicit.replay import replay
from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.tla import apalache, tlc
from syncproof.checkers.tla.check import check, scratch, verdict_of
from syncproof.checkers.tla.compare import compare
from syncproof.checkers.tla.model import (
    INVARIANTS,
    TERMINATION,
    WITHIN,
    model_of,
    omittable,
    omitted_steps,
    operations_of,
    specs_folder,
    step_name,
    texts_of,
)
from syncproof.checkers.tla.tlc import Found, Limits
from syncproof.checkers.tla.tools import Ended, Tools, found_tools
from syncproof.checkers.tla.translate import Disagreement, followed
from syncproof.checkers.tla.values import Unreadable, from_itf, from_tlc
from syncproof.cli import run
from syncproof.models.bounds import Bounds
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.system import PROPERTIES
from syncproof.models.verdict import Answer, Verdict
from tests.tla_obligations import KINDS, OBLIGATIONS, Obligation

MODULES = sorted(specs_folder().glob("*.tla"))
FIXED = {"Ranks", "Tokens", "Rounds", "Routings", "Ordering", "InFlight", "Omitted"}
NOT_RACES = tuple(each for each in PROPERTIES if each != "race-free")
SPARSE = {"counts": False}


def made(
    module: str, rounds: int = 1, ranks: int = 2, fabric: str = "cm384", **settings: Any
) -> Instance:
    return Instance(KINDS[module], Bounds(ranks, 1, rounds), load_profile(fabric), settings)


# The modules


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.stem)
def test_module_parses(path: Path) -> None:
    """The package `tla` parses each module: syntax only, it knows no names, arities or levels."""
    parser = pytest.importorskip("tla", reason="needs the package tla (extra [tla])")
    assert parser.parse(path.read_text(encoding="utf-8")) is not None


def declared(module: str, word: str) -> dict[str, str]:
    """The names that a module and those it extends declare, each with the comment before it."""
    found: dict[str, str] = {}
    for text in texts_of(module):
        block = re.search(rf"^{word}S\n((?:    .*\n)+)", text, re.MULTILINE)
        comment = ""
        for line in block[1].splitlines() if block else ():
            if line.strip().startswith("\\*"):
                comment += line
            else:
                found[line.strip().rstrip(",")] = comment
                comment = ""
    return found


@pytest.mark.parametrize("module", KINDS)
def test_constants_are_the_parameters(module: str) -> None:
    """A module's CONSTANTS are its protocol's parameters and the bounds of an instance, no more."""
    parameters = {
        "".join(w.capitalize() for w in name.split("_")) for name in KINDS[module].parameters()
    }
    assert set(declared(module, "CONSTANT")) == parameters | FIXED


@pytest.mark.parametrize("module", KINDS)
def test_constants_and_variables_have_types_for_apalache(module: str) -> None:
    """Each CONSTANT and VARIABLE carries the type annotation that Apalache asks for."""
    names = declared(module, "CONSTANT") | declared(module, "VARIABLE")
    assert len(names) > len(FIXED) + 5
    assert [name for name, comment in names.items() if "@type: " not in comment] == []


@pytest.mark.parametrize("module", KINDS)
def test_each_step_of_the_roles_is_named_by_an_action(module: str) -> None:
    """The steps that the comments on actions name are exactly those that the Python roles take."""
    instances = [made(module)]
    if module == "TokenFlagFusion":
        instances.append(made(module, reuse="reset"))
    steps = {
        step_name(role, operation, text)
        for instance in instances
        for role, operation, _, _, text in operations_of(instance)
    }
    named = {
        name
        for text in texts_of(module)
        for comment in re.findall(r'^\(\* ("[^"]+"(?:, "[^"]+")*)', text, re.MULTILINE)
        for name in re.findall(r'"([^"]+)"', comment)
    }
    assert named == steps


@pytest.mark.parametrize("module", KINDS)
def test_each_mutant_has_its_omission(module: str) -> None:
    """Every mutant that leaves an operation out is one that the module can leave out too."""
    instance = made(module)
    mutants = [each for each in find_mutants(instance) if each.setting is None]
    assert len(mutants) >= 6
    for mutant in mutants:
        steps = set(omitted_steps(mutant.applied(instance)))
        assert steps and steps <= omittable(module), mutant.name


def test_every_module_has_a_sound_obligation_and_two_mutants() -> None:
    """Each module has obligations that hold and at least two that are violated."""
    for module in KINDS:
        expected = [o.expected for o in OBLIGATIONS.values() if o.module == module]
        assert expected.count("everything holds") >= 2
        assert sum(each != "everything holds" for each in expected) >= 2


# Values


def printed(value: Any) -> str:
    """A value as TLC prints it."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return "<<" + ", ".join(map(printed, value)) + ">>"
    if isinstance(value, frozenset):
        return "{" + ", ".join(map(printed, value)) + "}"
    if isinstance(value, dict):
        return "(" + " @@ ".join(f"{printed(k)} :> {printed(v)}" for k, v in value.items()) + ")"
    return str(value)


def as_itf(value: Any) -> Any:
    """A value as ITF has it (ADR-015)."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, tuple):
        return {"#tup": [as_itf(each) for each in value]}
    if isinstance(value, frozenset):
        return {"#set": [as_itf(each) for each in value]}
    if isinstance(value, dict):
        return {"#map": [[as_itf(k), as_itf(v)] for k, v in value.items()]}
    return {"#bigint": str(value)}


HASHABLE = st.recursive(
    st.integers() | st.booleans() | st.text("ab \\\"", max_size=4),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)
VALUES = HASHABLE | st.dictionaries(HASHABLE, HASHABLE, min_size=1, max_size=3)


@given(VALUES)
def test_values_survive_both_notations(value: Any) -> None:
    """What TLC prints and what ITF writes of a value is read as that value."""
    assert from_tlc(printed(value)) == value
    assert from_itf(json.loads(json.dumps(as_itf(value)))) == value


def test_documented_itf_expressions() -> None:
    """The expressions of ADR-015 are read as it says."""
    assert from_itf({"#bigint": "-1000000000000000000"}) == -(10**18)
    assert from_itf([{"#bigint": "3"}, "x"]) == (3, "x")
    assert from_itf({"#map": [[{"#bigint": "1"}, "a"]]}) == {1: "a"}
    assert from_itf({"foo": {"#set": []}, "bar": True}) == {"foo": frozenset(), "bar": True}


@pytest.mark.parametrize("text", ["", "<<1", "{1, }", "(1 :> )", "[a |-> 1", "1 2", "@@", "[a 1]"])
def test_malformed_tlc_value(text: str) -> None:
    """A text that is no value is refused, never guessed at."""
    with pytest.raises(Unreadable):
        from_tlc(text)


@pytest.mark.parametrize(
    "data", [None, {"#bigint": "x"}, {"#map": [[1]]}, {"#unserializable": "Int"}, {"#set": 3}, 1.5]
)
def test_malformed_itf(data: Any) -> None:
    """An expression that ITF does not have is refused."""
    with pytest.raises(Unreadable):
        from_itf(data)


# What the tools say


def message(code: int, severity: int, text: str) -> str:
    return f"@!@!@STARTMSG {code}:{severity} @!@!@\n{text}\n@!@!@ENDMSG {code} @!@!@\n"


def told(code: int, output: str, in_time: bool = True) -> Found:
    return tlc.found_in(Ended(code, output, in_time), Tools("java", "the.jar"), Path("/nowhere"))


def test_tlc_counts_and_counterexample_are_read() -> None:
    """The messages of TLC's -tool mode give the violated formula, the states and the counts."""
    output = (
        message(2110, 1, "Invariant HappensBefore is violated.")
        + message(2217, 4, '1: <Initial predicate>\n/\\ x = (0 :> 1)\n/\\ y = "a"')
        + message(2217, 4, '2: <Step line 3>\n/\\ x = (0 :> 2)\n/\\ y = "a"')
        + message(2199, 0, "7 states generated, 5 distinct states found, 2 states left on queue.")
    )
    found = told(12, output)
    assert (found.violated, found.distinct, found.generated) == ("HappensBefore", 5, 7)
    assert found.states == ({"x": {0: 1}, "y": "a"}, {"x": {0: 2}, "y": "a"})
    lasso = told(13, message(2116, 1, "") + output[output.index("\n@!@!@ENDMSG 2110") + 25 :]
                 + message(2122, 4, "1: <Step line 3>"))
    assert (lasso.violated, lasso.back_to) == ("temporal", 0)


@pytest.mark.parametrize(
    ("output", "in_time", "reason"),
    [
        ("", False, "--budget-seconds"),
        (message(1001, 1, "Java ran out of memory."), True, "--memory"),
        ("Exception in thread main java.lang.OutOfMemoryError: Java heap space", True, "--memory"),
    ],
)
def test_tlc_without_time_or_memory_is_undecided(output: str, in_time: bool, reason: str) -> None:
    """Out of time and out of memory are no answer, and say which limit to raise."""
    assert reason in told(1, output, in_time).undecided


def test_apalache_names_what_it_violates() -> None:
    """Apalache's outcome lines, as its own integration tests print them, name the formula."""
    names = ["Within", "HappensBefore"]
    new = "State 1: state invariant 0 [Inv2] violated."
    old = "State 7: state invariant 1 violated.\nThe outcome is: Error"
    assert apalache.violated_in(new, names) == "Inv2"
    assert apalache.violated_in(old, names) == "HappensBefore"
    assert apalache.violated_in("The outcome is: Deadlock", names) == "deadlock"


def test_apalache_command_line() -> None:
    """The options are those of "Running the Tool"; deadlocks are let be only where nobody asks."""
    tools = Tools(apalache="apalache-mc")
    command = apalache.command_line(tools, Path("/f"), ["A", "B"], True)
    assert command[:2] == ["apalache-mc", "check"] and command[-1] == "Run.tla"
    assert {"--inv=A,B", "--config=Run.cfg", "--run-dir=/f/out"} <= set(command)
    assert "--no-deadlock=1" in apalache.command_line(tools, Path("/f"), ["A"], False)


@pytest.mark.parametrize(
    ("code", "words"),
    [(75, "fragment"), (120, "type annotations"), (150, "parses"), (255, "specs/tla")],
)
def test_apalache_errors_keep_its_words(code: int, words: str) -> None:
    """Each exit code of Apalache's that is an error is one line with its words and what to do."""
    ended = Ended(code, "EXITCODE: ERROR\n  the reason", True)
    with pytest.raises(UserError, match="the reason") as caught:
        apalache.found_in(ended, Path("/f"), Tools(apalache="a"), ["A"])
    assert words in str(caught.value) and str(code) in str(caught.value)


def test_apalache_that_finds_nothing_proves_nothing() -> None:
    """A bounded search without a counterexample is no proof."""
    found = apalache.found_in(Ended(0, "", True), Path("/f"), Tools(apalache="a"), ["A"])
    assert "up to" in found.undecided and not found.violated


# What is not here


def test_tools_that_are_not_here_are_named() -> None:
    """No Java, no jar and no Apalache are each one sentence that says what to install."""
    with pytest.raises(UserError, match="needs Java"):
        Tools().for_tlc()
    with pytest.raises(UserError, match="TLA2TOOLS_JAR"):
        Tools(java="java").for_tlc()
    with pytest.raises(UserError, match=r"no file /no\.jar"):
        Tools(java="java", jar="/no.jar").for_tlc()
    with pytest.raises(UserError, match="Apalache is not here"):
        Tools().for_apalache()


def test_environment_names_the_tools(tmp_path: Path) -> None:
    """TLA2TOOLS_JAR, JAVA_HOME and APALACHE_HOME are heeded."""
    for program in ("java", "apalache-mc"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / program).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / program).chmod(0o755)
    home = str(tmp_path)
    tools = found_tools({"JAVA_HOME": home, "APALACHE_HOME": home, "TLA2TOOLS_JAR": "/x.jar"})
    assert tools.java == f"{home}/bin/java" and tools.apalache == f"{home}/bin/apalache-mc"
    assert tools.jar == "/x.jar"


def test_apalache_absent_is_one_line_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--tool apalache`` without Apalache ends with 2 and one sentence; our engines go on."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("APALACHE_HOME", raising=False)
    assert run(["sw", "--rounds", "1", "--engine", "tla", "--tool", "apalache"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "Apalache is not here" in error
    assert run(["sw", "--rounds", "1", "-q"]) == 0


def test_tool_without_its_engine(capsys: pytest.CaptureFixture[str]) -> None:
    """``--tool`` means nothing to the other engines and is refused there."""
    assert run(["sw", "--tool", "tlc"]) == 2
    assert "--engine tla" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("instance", "words"),
    [
        (made("StopAndWait", fabric="cm384,store_atomicity=128"), "atoms smaller"),
        (made("StopAndWait", fabric="sc"), "at once"),
        (made("StopAndWait", fabric="cm384,load_order=none"), "loads out of order"),
        (made("StopAndWait", fabric="cm384,quiet=local"), "quiet: local"),
        (made("StopAndWait", fabric="cm384,same_address_order=false"), "one address"),
        (made("StopAndWait", ranks=1), "two ranks"),
    ],
)
def test_what_the_modules_do_not_state_is_refused(instance: Instance, words: str) -> None:
    """A fabric or size beyond the modules is an error, never a verdict about something else."""
    with pytest.raises(UserError, match=words):
        model_of(instance)


def test_protocol_without_a_module(capsys: pytest.CaptureFixture[str]) -> None:
    """A protocol that no module states is named, with the modules that there are."""
    if not found_tools(os.environ).java or not found_tools(os.environ).jar:
        pytest.skip("needs Java and TLC (extra [tla])")
    assert run(["barrier", "--engine", "tla"]) == 2
    assert "no TLA+ module Barrier" in capsys.readouterr().err


# TLC against our own engines


@pytest.fixture(scope="module")
def tools() -> Tools:
    here = found_tools(os.environ)
    try:
        here.for_tlc()
    except UserError as missing:
        pytest.skip(f"needs Java and TLC (extra [tla]): {missing}")
    return here


QUICK = (
    "sp-sound", "sp-one-window", "sp-no-cover", "sw-three-ranks", "sw-no-quiet", "sw-no-flag",
    "tff-sound", "tff-never-reset", "tff-one-window", "dc-three-ranks", "dc-arrival-alone",
    "dc-leads-repeat",
)


def judged(name: str) -> Any:
    return pytest.param(name, marks=() if name in QUICK else pytest.mark.long)


@pytest.mark.outside
@pytest.mark.parametrize("name", [judged(name) for name in OBLIGATIONS])
def test_obligation(name: str, tools: Tools) -> None:
    """TLC and `reference` both give the expected verdict, in the same number of steps.

    TLC's run then replays in our model and breaks the same property there.
    """
    it = OBLIGATIONS[name]
    theirs, ours = ask_both(it, tools)
    holds = it.expected == "everything holds"
    expected = {"HappensBefore is violated": "happens-before", "deadlock": "deadlock-free"}
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
            invariants=[WITHIN, *(INVARIANTS[p] for p in asked if p in INVARIANTS)],
            temporal=[TERMINATION],
            deadlock=True,
        )
    theirs = verdict_of(instance, question, "tla", found)
    return theirs, check_explicitly(instance, question, "reference")


def violated(verdict: Verdict) -> list[str]:
    wrong = (Answer.VIOLATED, Answer.BROKEN)
    return [each.property for each in verdict.properties if each.answer in wrong]


def test_cfg_files_ask_for_every_property() -> None:
    """Each cfg names all invariants (races only where all is well) and termination."""
    for it in OBLIGATIONS.values():
        asked = re.findall(r"^INVARIANTS? (.+)$", it.text, re.MULTILINE)
        names = {name for line in asked for name in line.split()}
        wanted = {WITHIN, *INVARIANTS.values()}
        assert names == (wanted if it.expected == "everything holds" else wanted - {"RaceFree"})
        assert f"PROPERTY {TERMINATION}" in it.text


COMPARED = [
    pytest.param(module, settings, omitted, id=f"{module} {omitted or settings or 'sound'}")
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
    }.items()
    for settings, omitted in variants
]


def omitting(instance: Instance, step: str) -> Instance:
    """The instance with the mutant that leaves out this step."""
    if not step:
        return instance
    return next(
        changed
        for changed in (each.applied(instance) for each in find_mutants(instance))
        if omitted_steps(changed) == [step]
    )


@pytest.mark.outside
@pytest.mark.parametrize(("module", "settings", "omitted"), COMPARED)
def test_observable_states_are_equal(
    module: str, settings: dict[str, Any], omitted: str, tools: Tools
) -> None:
    """TLC and our model reach the same observable states.

    Where no wrong token is taken they also have as many states and steps in all: a module tells
    apart what was taken, which our model, for which the run is over then, does not.
    """
    instance = omitting(made(module, **{**SPARSE, **settings}), omitted)
    found = compare(instance, tools, Limits())
    assert found.is_equal, (found.ours.shortest, found.theirs.shortest)
    if not settings and not omitted:
        sizes = [(side.states, side.steps) for side in (found.ours, found.theirs)]
        assert sizes[0] == sizes[1]
    assert found.ours.observable > 20


@pytest.mark.outside
@pytest.mark.long
@pytest.mark.parametrize("module", KINDS)
def test_observable_states_with_counts(module: str, tools: Tools) -> None:
    """With the exchange of counts, for the protocol and for every mutant of an operation."""
    instance = made(module)
    mutants = [each for each in find_mutants(instance) if each.setting is None]
    for each in [instance, *(mutant.applied(instance) for mutant in mutants)]:
        found = compare(each, tools, Limits())
        assert found.is_equal, (omitted_steps(each), found)


@pytest.mark.outside
@pytest.mark.long
@pytest.mark.parametrize("module", KINDS)
def test_every_mutant_has_one_verdict(module: str, tools: Tools) -> None:
    """TLC and `reference` give every mutant the same verdict, in the same number of steps."""
    instance = made(module, 3, **SPARSE)
    for mutant in find_mutants(instance):
        changed = mutant.applied(instance)
        question = question_of(changed, module, mutant=mutant.name, properties=NOT_RACES)
        theirs = check(changed, question, "tla", Budget(), tools)
        ours = check_explicitly(changed, question, "reference")
        assert violated(theirs) == violated(ours) != [], mutant.name
        assert theirs.trace is not None and ours.trace is not None
        assert len(theirs.trace.steps) == len(ours.trace.steps), mutant.name


@pytest.mark.outside
def test_a_difference_is_shown_by_its_shortest_run(
    monkeypatch: pytest.MonkeyPatch, tools: Tools
) -> None:
    """Where the module has another constant than our instance, each side shows a run of its own."""
    from syncproof.checkers.tla import compare as comparing

    other = made("StopAndWait", quiet=False, **SPARSE)
    monkeypatch.setattr(comparing, "model_of", lambda _: model_of(other))
    found = compare(made("StopAndWait", **SPARSE), tools, Limits())
    assert not found.is_equal and found.theirs.only_here and not found.ours.only_here
    # put, then the flag without a quiet: the fewest steps to two puts in flight of one sender
    assert len(found.theirs.shortest) == 2


@pytest.mark.outside
def test_apalache_counterexample_is_a_trace_of_ours(tmp_path: Path, tools: Tools) -> None:
    """A program that answers as Apalache does, with TLC's run in ITF, gives the same trace."""
    it = OBLIGATIONS["sw-no-flag"]
    instance = it.instance()
    question = question_of(instance, it.module, properties=("deadlock-free",))
    theirs, _ = ask_both(it, tools)
    with scratch() as folder:
        found = tlc.check(it.model, tools, folder, Limits(), deadlock=True)
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
    by_apalache = check(
        instance, question, "tla-apalache", Budget(), Tools(apalache=str(program))
    )
    assert violated(by_apalache) == ["deadlock-free"]
    assert by_apalache.trace is not None and theirs.trace is not None
    assert by_apalache.trace.steps == theirs.trace.steps


@pytest.mark.outside
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


# Bad input to TLC


@pytest.mark.outside
def test_broken_jar(tmp_path: Path, tools: Tools) -> None:
    """A jar that is none is named, with Java's own words."""
    jar = tmp_path / "tla2tools.jar"
    jar.write_bytes(b"no jar")
    with scratch() as folder, pytest.raises(UserError, match="Java cannot run TLC") as caught:
        tlc.check(model_of(made("StopAndWait")), Tools(tools.java, str(jar)), folder, Limits())
    assert str(jar) in str(caught.value) and "jar" in caught.value.what


@pytest.mark.outside
@pytest.mark.parametrize(
    ("text", "constant", "words"),
    [
        ("---- MODULE Run ----\nEXTENDS StopAndWait\nRunRoutings == {\n====\n", None, "Run.tla"),
        (None, ("Nonsense", "= 1"), "Nonsense"),
    ],
)
def test_bad_module_and_bad_constant(
    text: str | None, constant: tuple[str, str] | None, words: str, tools: Tools
) -> None:
    """A module that does not parse and an unknown constant keep TLC's words, and are no crash."""
    model = model_of(made("StopAndWait"))
    bad = tlc.Model(
        model.module, text or model.text, (*model.constants, *([constant] if constant else []))
    )
    with scratch() as folder, pytest.raises(UserError) as caught:
        tlc.check(bad, tools, folder, Limits())
    assert words in str(caught.value) and "TLC ended with code" in str(caught.value)


@pytest.mark.outside
def test_no_time_is_undecided(capsys: pytest.CaptureFixture[str], tools: Tools) -> None:
    """A budget that TLC cannot keep is exit 3, and names the flag to raise."""
    assert run(["sw", "--rounds", "2", "--engine", "tla", "--budget-seconds", "0.2"]) == 3
    assert "--budget-seconds" in capsys.readouterr().out


# The command line


@pytest.mark.outside
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


@pytest.mark.outside
def test_compare_shows_both_runs(capsys: pytest.CaptureFixture[str], tools: Tools) -> None:
    """``compare`` shows the two counterexamples of a mutant side by side, equally long."""
    asked = ["sw", "--rounds", "1", "--routing", "balanced", "--set", "counts=no"]
    assert run(["compare", *asked, "--set", "quiet=no", "--property", "happens-before"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].count("happens-before violated") == 2
    # put, put, landing, wait, load: nothing shorter can read a token that has not landed
    steps = [line.split() for line in lines if re.match(r" +\d ", line)]
    assert [row[0] for row in steps] == ["1", "2", "3", "4", "5"]
    assert all(row.count("=") == 1 for row in steps)
