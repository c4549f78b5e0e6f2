"""A verdict or a run for other eyes: the files that ``--html`` and its like name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields

from syncproof.models.errors import UserError
from syncproof.models.verdict import Trace, Verdict
from syncproof.reports.files import STANDARD_OUTPUT, check_writable, write_text


@dataclass(frozen=True)
class Drawings:
    """The file of each kind of drawing, or nothing."""

    html: str = ""
    text: str = ""
    perfetto: str = ""
    mermaid: str = ""

    @property
    def files(self) -> list[tuple[str, str]]:
        """Option and file of each drawing that was asked for."""
        named = [(f"--{each.name}", getattr(self, each.name)) for each in fields(self)]
        return [(option, path) for option, path in named if path]

    @property
    def to_standard_output(self) -> bool:
        """Whether one goes to standard output."""
        return any(path == STANDARD_OUTPUT for _, path in self.files)

    def check(self, others: Sequence[tuple[str, str]] = ()) -> None:
        """Refuse what cannot be written, and one file for two things."""
        taken = {path: option for option, path in others if path}
        for option, path in self.files:
            if path in taken:
                raise UserError(f"{taken[path]} and {option} are one file", where=option)
            taken[path] = option
            check_writable(path, option)

    def write(
        self,
        thing: Verdict | Trace,
        *,
        about: str = "",
        again: str = "",
        engines: Sequence[Verdict] = (),
    ) -> None:
        """Draw a verdict or a run; a sequence diagram is left out where there is no run."""
        if self.html:
            from syncproof.reports.page import page_of

            write_text(self.html, page_of(thing, about=about, again=again, engines=engines))
        if self.text:
            from syncproof.reports.plain import text_of

            write_text(self.text, text_of(thing))
        if self.perfetto:
            from syncproof.reports.perfetto import perfetto_of

            write_text(self.perfetto, perfetto_of(thing))
        if self.mermaid:
            from syncproof.reports.mermaid import mermaid_of

            trace = thing if isinstance(thing, Trace) else thing.trace
            if trace is None:
                print(f"no run to draw in {self.mermaid}: nothing is violated", file=sys.stderr)
            else:
                write_text(self.mermaid, mermaid_of(trace))
