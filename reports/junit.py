"""A gate as JUnit XML, for the test page of a CI: one test case an obligation, no times."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from syncproof.models.gate import GateReport, Remark, Result, Standing
from syncproof.reports.text import printable

FAILURE, ERROR = "failure", "error"
TAGS = {
    Standing.UNEXPECTED: FAILURE,
    Standing.UNDECIDED: ERROR,
    Standing.REFUSED: ERROR,
    Standing.BROKEN: ERROR,
}


def junit_xml(report: GateReport) -> str:
    """The report as JUnit XML. What is not decided is an error, not a failure, and never passes."""
    cases = [_case(each) for each in report.results]
    suites = [_suite("obligations", cases)]
    if report.remarks:
        suites.append(_suite("remarks", [_remark(each) for each in report.remarks]))
    top = _with_counts(ElementTree.Element("testsuites", name="check-protocol gate"), suites)
    ElementTree.indent(top)
    text = ElementTree.tostring(top, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(name: str, cases: list[ElementTree.Element]) -> ElementTree.Element:
    suite = _with_counts(ElementTree.Element("testsuite", name=name), cases)
    suite.set("skipped", "0")
    return suite


def _with_counts(
    parent: ElementTree.Element, children: Iterable[ElementTree.Element]
) -> ElementTree.Element:
    parent.extend(children)
    parent.set("tests", str(len(list(parent.iter("testcase")))))
    parent.set("failures", str(len(list(parent.iter(FAILURE)))))
    parent.set("errors", str(len(list(parent.iter(ERROR)))))
    return parent


def _case(result: Result) -> ElementTree.Element:
    obligation = result.obligation
    case = ElementTree.Element(
        "testcase", name=printable(obligation.name), classname=printable(obligation.protocol)
    )
    tag = TAGS.get(result.standing)
    if tag is not None:
        kind = result.property or result.standing.value
        lines = [*result.message.splitlines(), f"again: {obligation.command}"]
        if result.line is not None:
            lines.insert(0, f"{result.line.file}:{result.line.line}: {result.line.text}")
        problem = ElementTree.SubElement(case, tag, type=printable(kind), message=_first(result))
        problem.text = "\n".join(printable(each) for each in lines)
    return case


def _first(result: Result) -> str:
    lines = result.message.splitlines()
    return printable(lines[0]) if lines else result.standing.value


def _remark(remark: Remark) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", name=printable(remark.name), classname=printable(remark.kind)
    )
    text = printable(remark.text)
    if remark.fails:
        ElementTree.SubElement(case, FAILURE, type=remark.kind, message=text)
    else:
        ElementTree.SubElement(case, "system-out").text = text
    return case
