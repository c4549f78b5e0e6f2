"""A gate as one HTML page: the table of obligations, what is wrong, links to its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from syncproof.models.gate import GateReport, Standing
from syncproof.reports.text import printable

TEMPLATE = "gate.html"
Links = Mapping[str, Sequence[tuple[str, str]]]
"""For an obligation by name: texts and the files beside the page that they lead to."""


def gate_page(report: GateReport, links: Links) -> str:
    """The page: it needs no network, runs no script, and shows all text as text."""
    environment = Environment(
        loader=PackageLoader("syncproof.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    counts = [(each.value, report.count(each)) for each in Standing if report.count(each)]
    page = environment.get_template(TEMPLATE)
    return page.render(report=report, counts=counts, links=links)


def _shown(value: object) -> object:
    """Text without what is no character of a page, its lines kept."""
    if not isinstance(value, str):
        return value
    return "\n".join(printable(line) for line in value.splitlines())
