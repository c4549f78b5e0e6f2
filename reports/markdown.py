"""A gate as Markdown, for the summary page of a CI: what is wrong first, then the table."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from syncproof.models.gate import GateReport, Result, Standing
from syncproof.reports.text import printable

MARKS = {
    Standing.HELD: "✅",
    Standing.UNEXPECTED: "❌",
    Standing.UNDECIDED: "❔",
    Standing.REFUSED: "⚠️",
    Standing.BROKEN: "💥",
}
SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$@])")


def markdown(report: GateReport) -> str:
    """The report as Markdown in which nothing of a protocol's text is markup."""
    counts = ", ".join(
        f"{report.count(each)} {each.value}" for each in Standing if report.count(each)
    )
    lines = [f"## Proof gate: {report.answer}", "", f"{escaped(report.file)}: {counts}", ""]
    for remark in report.remarks:
        mark = "❌" if remark.fails else "⚠️"
        said = f"{escaped(remark.kind)}: {escaped(remark.name)}: {escaped(remark.text)}"
        lines += [f"- {mark} {said}"]
    lines += [""] if report.remarks else []
    for result in report.failed:
        lines += _failure(result)
    lines += ["<details><summary>All obligations</summary>", "", *_table(report.results), ""]
    return "\n".join([*lines, "</details>", ""])


def _failure(result: Result) -> Iterable[str]:
    yield f"### {MARKS[result.standing]} {escaped(result.obligation.name)}"
    yield ""
    for line in result.message.splitlines():
        yield f"{escaped(line)}  "
    if result.line is not None:
        where = f"{result.line.file}:{result.line.line}: {result.line.text}"
        yield f"<code>{html.escape(printable(where))}</code>  "
    yield f"<code>{html.escape(printable(result.obligation.command))}</code>"
    yield ""


def _table(results: Iterable[Result]) -> Iterable[str]:
    yield "| | obligation | expected | found | states | engine |"
    yield "|---|---|---|---|---|---|"
    for each in results:
        found = [each.standing.value, "", ""]
        if each.verdict is not None:
            found = [each.verdict.answer.value, f"{each.verdict.states:,}", each.verdict.engine]
        words = [each.obligation.name, each.obligation.expectation, *found]
        yield "| " + " | ".join([MARKS[each.standing], *map(escaped, words)]) + " |"


def escaped(text: object) -> str:
    """Text as it is, whatever Markdown or HTML it looks like."""
    return SPECIAL.sub(r"\\\1", html.escape(printable(text), quote=False))
