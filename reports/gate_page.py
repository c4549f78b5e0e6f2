"""A gate as one HTML page: the table of obligations, what is wrong, links to its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from syncproof.models.gate import GateReport, Standing
from syncproof.reports.page import environment, hash_of, parts
from syncproof.reports.text import printable

TEMPLATE = "gate.html"
CLASSES = {
    Standing.HELD: "proved",
    Standing.UNEXPECTED: "violated",
    Standing.UNDECIDED: "undecided",
    Standing.REFUSED: "broken",
    Standing.BROKEN: "broken",
}
COLOURS = {0: "proved", 3: "undecided"}
"""Of the gate's answer, by its exit code; all others are those of a violation."""

Links = Mapping[str, Sequence[tuple[str, str]]]
"""For an obligation by name: texts and the files beside the page that they lead to."""


def gate_page(report: GateReport, links: Links) -> str:
    """The page: it needs no network, runs no script, and shows all text as text."""
    style, _ = parts()
    return (
        environment(_shown)
        .get_template(TEMPLATE)
        .render(
            report=report,
            colour=COLOURS.get(report.code, "violated"),
            counts=[(each.value, report.count(each)) for each in Standing if report.count(each)],
            links=links,
            classes=CLASSES,
            style=style,
            style_hash=hash_of(style),
        )
    )


def _shown(value: object) -> object:
    """Text without what is no character of a page, its lines kept; our own style as it is."""
    if type(value) is not str:
        return value
    return "\n".join(printable(line) for line in value.splitlines())
