"""JUnit XML: valid, complete, and nothing that is not proved passes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema

from syncproof.models.gate import GateReport, Result
from syncproof.reports.junit import junit_xml
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

SCHEMA = xmlschema.XMLSchema(str(Path(__file__).parent / "data" / "junit.xsd"))


@pytest.mark.parametrize("each", EACH, ids=lambda each: each.standing.value)
def test_report_is_valid(each: Result) -> None:
    """A proof, a violation, an undecided run and an error are each valid JUnit."""
    SCHEMA.validate(junit_xml(GateReport("g.yaml", (each,))))


def test_report_with_everything_is_valid() -> None:
    """So are all of them together with remarks, and nothing at all."""
    SCHEMA.validate(junit_xml(WHOLE))
    SCHEMA.validate(junit_xml(GateReport("g.yaml", ())))


@pytest.mark.parametrize(
    ("each", "tag", "kind"),
    [
        (PROOF, None, None),
        (REFUTED, None, None),
        (VIOLATION, "failure", "happens-before"),
        (SURVIVOR, "failure", "unexpected"),
        (UNDECIDED, "error", "not decided"),
        (BROKEN, "error", "error"),
        (CRASH, "error", "error"),
        (REFUSED, "error", "bad input"),
    ],
    ids=lambda each: each.standing.value if isinstance(each, Result) else str(each),
)
def test_only_what_is_as_expected_passes(each: Result, tag: str | None, kind: str | None) -> None:
    """A case passes in JUnit if it has neither failure nor error."""
    top = ElementTree.fromstring(junit_xml(GateReport("g.yaml", (each,))))
    (case,) = top.iter("testcase")
    assert [child.tag for child in case] == ([tag] if tag else [])
    assert [child.get("type") for child in case] == ([kind] if kind else [])
    counts = {"failure": "failures", "error": "errors"}
    for suite in (top, *top.iter("testsuite")):
        assert suite.get("tests") == "1"
        for name, attribute in counts.items():
            assert suite.get(attribute) == ("1" if name == tag else "0")


def test_violation_says_where_and_how_to_repeat_it() -> None:
    """The text of a failure has the protocol's file and line and the command."""
    (failure,) = ElementTree.fromstring(junit_xml(GateReport("g", (VIOLATION,)))).iter("failure")
    assert failure.text is not None
    assert failure.text.startswith("protocols/sp.py:27: await core.wait_until(slot, is_here)")
    assert "again: check-protocol check sp" in failure.text


def test_remarks_are_cases_and_fail_if_they_must() -> None:
    """What the baseline or a kernel's hash has to say is a suite of its own."""
    top = ElementTree.fromstring(junit_xml(GateReport("g", (), REMARKS)))
    kernel, lost = top.iter("testcase")
    assert [child.tag for child in kernel] == ["system-out"]
    assert [child.tag for child in lost] == ["failure"]


def test_schema_takes_other_tools_reports_and_refuses_wrong_ones(
    pytester: pytest.Pytester,
) -> None:
    """The schema is not made to measure: pytest's own report fits, a misspelt one does not."""
    pytester.makepyfile("def test_a(): pass\ndef test_b(): assert False")
    pytester.runpytest_inprocess("--junitxml=r.xml", "-p", "no:cacheprovider")
    text = (pytester.path / "r.xml").read_text()
    SCHEMA.validate(text)
    for wrong, right in (("failures", "failure_s"), ("testcase", "test_case"), ("tests=", "test=")):
        assert not SCHEMA.is_valid(text.replace(wrong, right))
        assert not SCHEMA.is_valid(junit_xml(WHOLE).replace(wrong, right))
