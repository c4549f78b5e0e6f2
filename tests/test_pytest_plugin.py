"""Ways in beside the command line: pytest fixture, collected gates, saved tests, CI definitions."""

from __future__ import annotations

import importlib.metadata
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from syncproof.asserts import check_protocol
from syncproof.cli import run
from syncproof.models.errors import UserError
from tests.small import FlagAfterData

ROOT = Path(__file__).parents[1]
DOORBELL = ROOT / "tests" / "data" / "doorbell.py"
PLUGIN = "syncproof.pytest_plugin"


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Runs pytest with the plugin, as installed or by name, in a folder with a protocol."""
    shutil.copy(DOORBELL, pytester.path)
    installed = importlib.metadata.entry_points(group="pytest11", name=PLUGIN)
    plugin = [] if installed else ["-p", PLUGIN]

    def go(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", *arguments)

    return go


def test_fixture_passes_fails_and_shows_the_run(
    suite: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    """A protocol beside the test is found; what is not as expected fails with swim-lanes."""
    pytester.makepyfile(
        """
        def test_proof(check_protocol):
            assert check_protocol("doorbell.py", rounds=2).states > 10

        def test_refuted(check_protocol):
            check_protocol("doorbell.py", settings={"fence": False}, expect="violated", at="load")

        def test_fault(check_protocol):
            check_protocol("doorbell.py", settings={"fence": False})
        """
    )
    found = suite()
    found.assert_outcomes(passed=2, failed=1)
    found.stdout.fnmatch_lines(["*happens-before is violated at doorbell.py:34*", "*✗*"])


def test_obligations_of_a_gate_file_are_items(
    suite: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    """Each obligation is collected under its name, passes or fails, and shows its run."""
    (pytester.path / "gate.yaml").write_text(
        "obligations:\n"
        "  - {protocol: doorbell.py, rounds: [1, 2]}\n"
        "  - {protocol: doorbell.py, set: {fence: no}}\n"
        "  - {protocol: doorbell.py, rounds: 2, mutants: [no-fence@doorbell.py:26]}\n"
    )
    (pytester.path / "other.gate.yaml").write_text("doors: 2\n")
    found = suite()
    found.assert_outcomes(passed=3, failed=1)
    found.stdout.fnmatch_lines(
        ["*happens-before is violated*", "*✗*", "FAILED gate.yaml::doorbell.py fence=no*"]
    )


def test_mistake_in_a_gate_file_is_an_error_of_collection(
    suite: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    """With its line and column, and without a traceback of ours."""
    (pytester.path / "my.gate.yaml").write_text("obligations:\n  - {protocol: sp, rank: 2}\n")
    found = suite()
    found.assert_outcomes(errors=1)
    found.stdout.fnmatch_lines(["*my.gate.yaml:2:20: unknown key 'rank' (perhaps ranks*"])
    found.stdout.no_fnmatch_line("*Traceback*")


def test_classes_are_checked_too() -> None:
    """A protocol that is defined in the test itself; the question is checked like a command."""
    assert check_protocol(FlagAfterData, rounds=1).states > 0
    with pytest.raises(AssertionError, match=r"(?s)happens-before is violated.*✗"):
        check_protocol(FlagAfterData, rounds=1, settings={"quiet": False})
    with pytest.raises(UserError, match="no parameter 'quit'"):
        check_protocol(FlagAfterData, settings={"quit": False})


# A counterexample as a test


def test_saved_test_fails_until_the_fault_is_mended(
    suite: Callable[..., pytest.RunResult],
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run is possible and the property violated; after the repair neither is so."""
    faulty = DOORBELL.read_text().replace(
        "                await core.fence()", "                pass"
    )
    (pytester.path / "bell.py").write_text(faulty)
    folder = pytester.mkdir("saved")
    assert run(["bell.py", "-q", "--save-test", "saved/test_bell.py"]) == 1
    text = (folder / "test_bell.py").read_text()
    compile(text, "test_bell.py", "exec")
    suite("saved").assert_outcomes(failed=2)
    shutil.copy(DOORBELL, pytester.path / "bell.py")
    suite("saved").assert_outcomes(passed=2)


def test_nothing_is_saved_where_nothing_is_violated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A proof leaves no test behind."""
    target = tmp_path / "test_x.py"
    assert run([str(DOORBELL), "--rounds", "1", "-q", "--save-test", str(target)]) == 0
    assert not target.exists() and "nothing is violated" in capsys.readouterr().err


# Definitions for CI


def test_action_and_hook_call_the_gate_with_options_that_exist() -> None:
    """They are data that nothing here runs, so their commands are held against the program."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    script = action["runs"]["steps"][-1]["run"]
    assert "check-protocol gate" in script and "--out syncproof-reports" in script
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "check-protocol gate" and hook["pass_filenames"] is False
    for step in action["runs"]["steps"]:
        assert "${{ inputs." not in step.get("run", ""), "a script would run what an input holds"
