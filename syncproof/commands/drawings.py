"""A verdict or a run for other eyes: the files that ``--html`` and its like name."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from syncproof.models.errors import UserError
from syncproof.models.verdict import Trace, Verdict
from syncproof.registry import is_file
from syncproof.reports.files import STANDARD_OUTPUT, check_writable, write_text


@dataclass(frozen=True)
class Drawings:
    """The file of each kind of drawing, or nothing."""

    html: str = ""
    text: str = ""
    perfetto: str = ""
    mermaid: str = ""
    save_test: str = ""

    @property
    def files(self) -> list[tuple[str, str]]:
        """Option and file of each drawing that was asked for."""
        names = [each.name for each in fields(self)]
        named = [(f"--{name.replace('_', '-')}", getattr(self, name)) for name in names]
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
        trace = thing if isinstance(thing, Trace) else thing.trace
        if trace is None:
            for path in filter(None, (self.mermaid, self.save_test)):
                print(f"no run to draw in {path}: nothing is violated", file=sys.stderr)
            return
        if self.mermaid:
            from syncproof.reports.mermaid import mermaid_of

            write_text(self.mermaid, mermaid_of(trace))
        if self.save_test:
            from syncproof.reports.saved_test import saved_test

            write_text(self.save_test, saved_test(_beside(trace, Path(self.save_test))))


def _beside(trace: Trace, file: Path) -> Trace:
    """The trace for a file elsewhere: a protocol in a file is named from that file's folder."""
    name = trace.question.protocol
    if not is_file(name):
        return trace
    near = os.path.relpath(name, file.parent)
    return replace(trace, question=replace(trace.question, protocol=near))
