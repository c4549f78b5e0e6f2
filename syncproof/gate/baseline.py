"""What became worse since a run that was kept: a committed baseline is a gate's own JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from syncproof.models.errors import UserError
from syncproof.models.gate import GateReport, Remark, Result
from syncproof.models.verdict import SCHEMA, Answer, Verdict
from syncproof.reports.files import read_json

GROWTH = 10
"""A state count that became this many times as large is worth a look."""

Kept = Mapping[str, Any]


def read_baseline(path: str) -> dict[str, Kept]:
    """The obligations of a baseline by name; `UserError` if the file is no gate's JSON."""
    data = read_json(path)
    expected = "what check-protocol gate --json wrote"
    if not isinstance(data, dict) or data.get("kind") != "gate" or data.get("schema") != SCHEMA:
        raise UserError("is no baseline", where=path, expected=expected)
    kept = data.get("obligations")
    if not isinstance(kept, list) or not all(_is_kept(each) for each in kept):
        raise UserError("obligations are malformed", where=path, expected=expected)
    return {each["name"]: each.get("verdict", {}) for each in kept}


def _is_kept(each: object) -> bool:
    if not isinstance(each, dict) or not isinstance(each.get("name"), str):
        return False
    verdict = each.get("verdict", {})
    if not isinstance(verdict, dict):
        return False
    states, properties = verdict.get("states", 0), verdict.get("properties", {})
    return isinstance(states, int) and isinstance(properties, dict)


def worse(report: GateReport, baseline: Mapping[str, Kept]) -> Iterator[Remark]:
    """New violations, lost proofs, state counts that grew tenfold, obligations that are gone."""
    for result in report.results:
        kept = baseline.get(result.obligation.name)
        if kept is not None:
            yield from _worse(result, kept)
    names = {each.obligation.name for each in report.results}
    for name in baseline:
        if name not in names:
            yield Remark("gone", name, "it is in the baseline and not asked any more", True)


def _worse(result: Result, kept: Kept) -> Iterator[Remark]:
    name, verdict = result.obligation.name, result.verdict
    now = _answers(verdict)
    for property, before in kept.get("properties", {}).items():
        after = now.get(property, Answer.UNDECIDED.value)
        if after == before:
            continue
        if after == Answer.VIOLATED.value:
            yield Remark("new violation", name, f"{property} was {before}", True)
        elif before == Answer.PROVED.value:
            yield Remark("lost proof", name, f"{property} was proved, is {after}", True)
    for property, after in now.items():
        if after == Answer.VIOLATED.value and property not in kept.get("properties", {}):
            yield Remark("new violation", name, f"{property} was not violated", True)
    states = kept.get("states", 0)
    if verdict is not None and states and verdict.states >= GROWTH * states:
        text = f"{verdict.states:,} states, were {states:,}"
        yield Remark("growth", name, text, True)


def _answers(verdict: Verdict | None) -> dict[str, str]:
    if verdict is None:
        return {}
    return {each.property: each.answer.value for each in verdict.properties}
