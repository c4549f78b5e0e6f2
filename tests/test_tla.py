"""The TLA+ modules' form, and what the tools print: all that needs no program from outside.

Formats are those of the tools' own documents and tests. What TLC says is in ``test_tla_tlc.py``.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.checkers.tla import apalache, tlc
from syncproof.checkers.tla.model import (
    TERMINATION,
    check_constants,
    invariants_for,
    model_of,
    omittable,
    omitted_steps,
    specs_folder,
    steps_of_roles,
    texts_of,
)
from syncproof.checkers.tla.tlc import Found, Limits
from syncproof.checkers.tla.tools import Ended, Tools, found_tools
from syncproof.checkers.tla.values import Unreadable, from_itf, from_tlc
from syncproof.cli import run
from syncproof.models.bounds import Bounds
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol
from syncproof.models.transitions import PROPERTIES
from syncproof.protocols.sw import StopAndWait
from tests.tla_obligations import KINDS, OBLIGATIONS, exchange, made
from tests.tla_values import as_itf, printed

MODULES = sorted(specs_folder().glob("**/*.tla"))
FIXED = {"Ranks", "Tokens", "Rounds", "Routings", "Ordering", "InFlight", "Omitted"}
SCHEDULED = {"Ranks", "Schedule", "Ordering", "InFlight", "Omitted"}
NOT_RACES = tuple(each for each in PROPERTIES if each != "race-free")
SPARSE = {"counts": False}


# The modules


@pytest.mark.parametrize("path", MODULES, ids=lambda p: f"{p.parent.name}-{p.stem}")
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
    fixed = SCHEDULED if module == "Taskflow" else FIXED
    assert set(declared(module, "CONSTANT")) == parameters | fixed


@pytest.mark.parametrize("module", KINDS)
def test_constants_and_variables_have_types_for_apalache(module: str) -> None:
    """Each CONSTANT and VARIABLE carries the type annotation that Apalache asks for."""
    names = declared(module, "CONSTANT") | declared(module, "VARIABLE")
    assert len(names) > len(SCHEDULED) + 4
    assert [name for name, comment in names.items() if "@type: " not in comment] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_what_only_tlc_understands_is_not_written(path: Path) -> None:
    """A definition that could be a tuple or a sequence says by its type which; no joined strings.

    Apalache's type checker asks for the first, and has no strings to join.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    begins = [n for n, line in enumerate(lines) if re.match(r"\w+(\([^)]*\))? ==( *<<|$)", line)]
    ambiguous = [
        n for n in begins if f"{lines[n]} {lines[n + 1]}".partition("==")[2].lstrip()[:2] == "<<"
    ]
    assert [lines[n] for n in ambiguous if "@type: " not in lines[n - 1]] == []
    assert not re.search(r'\\o "[a-z.]+"|"[a-z.]+" \\o', "\n".join(lines))


@pytest.mark.parametrize("module", KINDS)
def test_each_step_of_the_roles_is_named_by_an_action(module: str) -> None:
    """The steps that the comments on actions name are exactly those that the Python roles take."""
    instances = [made(module)]
    if module == "TokenFlagFusion":
        instances.append(made(module, reuse="reset"))
    steps = {step.name for instance in instances for step in steps_of_roles(instance)}
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


def test_cfg_files_ask_for_every_property() -> None:
    """Each cfg names all invariants (races only where all is well) and termination."""
    for it in OBLIGATIONS.values():
        asked = re.findall(r"^INVARIANTS? (.+)$", it.text, re.MULTILINE)
        names = {name for line in asked for name in line.split()}
        wanted = set(invariants_for(it.module, PROPERTIES))
        assert names == (wanted if it.expected == "everything holds" else wanted - {"RaceFree"})
        assert f"PROPERTY {TERMINATION}" in it.text


def test_constant_that_no_module_declares() -> None:
    """A constant that the module does not declare is refused; TLC 2.15 is silent about it."""
    model = model_of(made("StopAndWait"))
    check_constants(model)
    with pytest.raises(UserError, match="declares no constant Nonsense"):
        check_constants(replace(model, constants=(*model.constants, ("Nonsense", "= 1"))))


# Values


HASHABLE = st.recursive(
    st.integers() | st.booleans() | st.text('ab \\"', max_size=4),
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
    lasso = told(
        13,
        message(2116, 1, "")
        + output[output.index("\n@!@!@ENDMSG 2110") + 25 :]
        + message(2122, 4, "1: <Step line 3>"),
    )
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


def test_apalache_gets_a_joining_without_recursion(tmp_path: Path) -> None:
    """Apalache, which has no recursion, is given the module that says the same with folds."""
    program = tmp_path / "apalache-mc"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    given = tmp_path / "given"
    given.mkdir()
    model = model_of(made("BulkSynchronous"))
    apalache.check(model, Tools(apalache=str(program)), given, Limits(), ["Within"], True)
    assert all((given / path.name).is_file() for path in MODULES)
    texts = {path.name: path.read_text(encoding="utf-8") for path in given.glob("*.tla")}
    assert [name for name, text in texts.items() if "RECURSIVE" in text] == []
    assert "ApaFoldSeqLeft" in texts["Joining.tla"]


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


def test_class_of_somebody_else_with_the_name_of_one_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed copy of a protocol is refused: the module would answer for ours."""
    ours = Path(inspect.getfile(StopAndWait)).read_text(encoding="utf-8")
    copy = tmp_path / "copy_of_sw.py"
    copy.write_text(ours.replace("await core.quiet()", "pass"), encoding="utf-8")
    assert run([f"{copy}:StopAndWait", "--engine", "tla"]) == 2
    assert "not your StopAndWait" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "bounds", "words"),
    [
        (exchange(), Bounds(2), "the generated layer"),
        (KINDS["Taskflow"], Bounds(2, experts=4), "one expert for each rank"),
    ],
)
def test_schedule_that_the_module_does_not_state(
    kind: type[Protocol], bounds: Bounds, words: str
) -> None:
    """A schedule of somebody else, and a layer with more experts, are refused."""
    instance = Instance(kind, bounds, load_profile("cm384"), {})
    with pytest.raises(UserError, match=words):
        model_of(instance)


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
