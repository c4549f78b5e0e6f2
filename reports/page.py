"""A verdict or a run as one HTML page that needs nothing else: no network, no other file.

The words are laid out by the templates, which escape all that they are given; the script draws the
run from JSON and makes text of it, never markup. A content security policy allows this script and
this style and nothing more.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from syncproof.models.verdict import Answer, Trace, Verdict
from syncproof.reports.chains import NOTHING, place, reasons, short
from syncproof.reports.page_data import missing_edge_text, run_data
from syncproof.reports.terminal import scope, trace_scope
from syncproof.reports.text import many, printable, source_text, violation_text

SCRIPTS = ("run.js", "details.js", "lanes.js", "graph.js", "page.js")
CLASSES = {
    Answer.PROVED: "proved",
    Answer.VIOLATED: "violated",
    Answer.UNDECIDED: "undecided",
    Answer.BROKEN: "broken",
}


def page_of(
    thing: Verdict | Trace,
    *,
    about: str = "",
    again: str = "",
    engines: Sequence[Verdict] = (),
) -> str:
    """The page of a verdict, or of a run alone.

    ``about`` is what the protocol says of itself, ``again`` the command that asks the same;
    ``engines`` are the verdicts that ``thing`` sums up, where several engines were asked.
    """
    verdict, trace = (None, thing) if isinstance(thing, Trace) else (thing, thing.trace)
    style, script = parts()
    return (
        environment(_shown)
        .get_template("page.html")
        .render(
            protocol=thing.question.protocol,
            answer=Answer.VIOLATED if verdict is None else verdict.answer,
            headline=_headline(verdict, trace),
            verdict=verdict,
            trace=trace,
            edge="" if trace is None else missing_edge_text(trace),
            run=None if trace is None else run_data(trace),
            facts=trace_scope(thing) if isinstance(thing, Trace) else scope(thing),
            keys=[*_keys(thing.question.bounds), *_keys(thing.question.fabric)],
            engines=engines if len(engines) > 1 else (),
            about=about,
            again=again,
            classes=CLASSES,
            nothing=NOTHING,
            style=style,
            script=script,
            style_hash=hash_of(style),
            script_hash=hash_of(script),
        )
    )


def _headline(verdict: Verdict | None, trace: Trace | None) -> str:
    if trace is not None:
        return f"{trace.property} {violation_text(trace)}"
    assert verdict is not None
    return {
        Answer.PROVED: "Every run within these bounds was covered",
        Answer.VIOLATED: "A property is violated",
        Answer.UNDECIDED: "Not every run was covered, so nothing is claimed",
        Answer.BROKEN: "The engines disagree, or one broke: an error of Syncproof's own",
    }[verdict.answer]


def _keys(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every key of a mapping as it stands."""
    return [(str(name), json.dumps(value, default=str)) for name, value in given.items()]


@cache
def parts() -> tuple[str, str]:
    """The style and the script, as they stand in every page."""
    templates = environment(_shown)
    sources = [_source(templates, name) for name in SCRIPTS]
    return _source(templates, "page.css"), "\n".join(['"use strict";', *sources])


def _source(templates: Environment, name: str) -> str:
    assert templates.loader is not None
    return templates.loader.get_source(templates, name)[0]


def hash_of(text: str) -> str:
    """How a content security policy names a script or a style."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _shown(value: Any) -> Any:
    """Text without characters that a browser would obey; our own markup as it is."""
    return printable(value) if type(value) is str else value


@cache
def environment(shown: Callable[[Any], Any]) -> Environment:
    """The templates; ``shown`` makes safe what is put into them, beside the escaping."""
    made = Environment(
        loader=PackageLoader("syncproof.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    made.filters["source"] = source_text
    made.filters["many"] = many
    made.filters["short"] = short
    made.filters["place"] = place
    made.globals["reasons"] = reasons
    return made
