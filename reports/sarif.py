"""A gate as SARIF 2.1.0: what is wrong, at the protocol's source line, for a code review.

Rule ids are ``syncproof/<property>`` and what stands in `OTHER_RULES`; they only change with a
major version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from syncproof.models.gate import GateReport, Remark, Result, Standing
from syncproof.models.transitions import PROPERTIES
from syncproof.models.verdict import Line, Trace

SCHEMA_URI = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "%SRCROOT%"
RULES = {
    "deadlock-free": "From every reachable state all processes can still finish.",
    "happens-before": "What is consumed is the whole block that was put for that token and round.",
    "exactly-once": "Each token is consumed exactly once.",
    "race-free": "Conflicting accesses are ordered or both synchronize.",
    "quiescent": "At the end nothing is in flight and what must be clean is.",
    "checks": "The protocol's own conditions hold.",
    "reached": "Each place that the protocol names is reached by some run.",
}
OTHER_RULES = {
    "expected-violation": "A protocol that must be refuted is not refuted as it must be.",
    "not-decided": "Within its budget no engine could decide.",
    "bad-input": "An obligation cannot be asked.",
    "error": "An engine broke, or two disagree.",
    "baseline": "Something became worse than in the baseline.",
    "kernel": "A kernel file is not the one that was modelled.",
}
RULE_OF = {
    Standing.UNEXPECTED: "expected-violation",
    Standing.UNDECIDED: "not-decided",
    Standing.REFUSED: "bad-input",
    Standing.BROKEN: "error",
}


def sarif_data(report: GateReport, root: Path, version: str) -> dict[str, Any]:
    """The report as SARIF. Files below ``root``, the repository, are named relative to it.

    What is as expected is no result: a code review shows whatever is one.
    """
    rules = {**RULES, **OTHER_RULES}
    results = [_result(each, report.file, root) for each in report.failed]
    results += [_remark(each, report, root) for each in report.remarks]
    index = list(rules)
    for each in results:
        each["ruleIndex"] = index.index(str(each["ruleId"]).partition("/")[2])
    driver = {
        "name": "syncproof",
        "version": version,
        "rules": [
            {"id": f"syncproof/{name}", "shortDescription": {"text": text}}
            for name, text in rules.items()
        ],
    }
    is_whole = not report.count(Standing.BROKEN)
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": is_whole, "exitCode": report.code}],
        "results": results,
    }
    return {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}


def _result(result: Result, gate_file: str, root: Path) -> dict[str, Any]:
    obligation = result.obligation
    rule = result.property or RULE_OF[result.standing]
    line = result.line if result.property else None
    told: dict[str, Any] = {
        "ruleId": f"syncproof/{rule}",
        "level": "warning" if result.standing is Standing.UNDECIDED else "error",
        "message": {"text": f"{obligation.name}: {result.message}\n{obligation.command}"},
        "locations": [
            _location(line.file, line.line, root)
            if line is not None
            else _location(gate_file, obligation.line, root)
        ],
        "partialFingerprints": {"syncproof/v1": _fingerprint(obligation.name, rule)},
    }
    trace = result.verdict.trace if result.verdict is not None else None
    if trace is not None and line is not None:
        told["codeFlows"] = [{"threadFlows": [{"locations": list(_flow(trace, root))}]}]
    return told


def _flow(trace: Trace, root: Path) -> Iterable[dict[str, Any]]:
    """The steps that explain the failure, each at its line; a landing at that of its put."""
    fallback = next((each.line for each in trace.steps if each.line is not None), None)
    for number in trace.shown or range(len(trace.steps)):
        step = trace.steps[number]
        issue = trace.steps[step.put] if step.put >= 0 else step
        line: Line | None = step.line or issue.line or fallback
        if line is None:
            continue
        location = _location(line.file, line.line, root)
        location["message"] = {"text": f"{step.actor}: {step.text}"}
        yield {"executionOrder": number + 1, "location": location}


def _remark(remark: Remark, report: GateReport, root: Path) -> dict[str, Any]:
    rule = "kernel" if remark.kind == "kernel" else "baseline"
    line = next((r.obligation.line for r in report.results if r.obligation.name == remark.name), 1)
    return {
        "ruleId": f"syncproof/{rule}",
        "level": "error" if remark.fails else "warning",
        "message": {"text": f"{remark.kind}: {remark.name}: {remark.text}"},
        "locations": [_location(report.file, line, root)],
        "partialFingerprints": {"syncproof/v1": _fingerprint(remark.name, remark.kind)},
    }


def _location(file: str, line: int, root: Path) -> dict[str, Any]:
    resolved = (root / file).resolve()
    if resolved.is_relative_to(root.resolve()):
        relative = resolved.relative_to(root.resolve()).as_posix()
        artifact = {"uri": quote(relative), "uriBaseId": ROOT}
    else:
        artifact = {"uri": resolved.as_uri()}
    return {
        "physicalLocation": {"artifactLocation": artifact, "region": {"startLine": max(line, 1)}}
    }


def _fingerprint(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()


assert set(PROPERTIES) <= set(RULES)
