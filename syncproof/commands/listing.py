"""``check-protocol list``: the protocols that can be checked by name."""

from __future__ import annotations

import sys

from rich.text import Text

from syncproof.models.protocol import Assumption, Protocol
from syncproof.registry import built_ins, third_parties
from syncproof.reports.columns import print_columns
from syncproof.reports.terminal import console_on
from syncproof.reports.text import printable


def run(is_long: bool) -> int:
    """Print the names of all protocols with what they are; ``is_long`` adds how they vary."""
    ours = built_ins()
    rows: list[tuple[Text, Text]] = []
    for name, kind in ours.items():
        rows.append((Text(name, style="bold"), Text(summary(kind))))
        for label, words in _variants(kind) if is_long else []:
            rows.append((Text(), Text(f"{label}: {words}", style="dim")))
    for name, entry in third_parties().items():
        origin = entry.dist.name if entry.dist else "elsewhere"
        hidden = "; hidden by ours, use FILE.py:CLASS" if name in ours else ""
        text = printable(f"{entry.value}, from {origin}{hidden}")
        rows.append((Text(printable(name), style="bold"), Text(text)))
    print_columns(console_on(sys.stdout), rows, indent=0)
    return 0


def summary(kind: type[Protocol]) -> str:
    """The first line of a protocol's docstring."""
    return printable((kind.__doc__ or "").strip().partition("\n")[0])


def _variants(kind: type[Protocol]) -> list[tuple[str, str]]:
    known = kind.parameters()
    settings = [n for n, p in known.items() if not isinstance(p, Assumption)]
    assumptions = [n for n, p in known.items() if isinstance(p, Assumption)]
    roles = [role.name for role in kind.roles()]
    named = (("settings", settings), ("assumptions", assumptions), ("roles", roles))
    return [(label, ", ".join(names)) for label, names in named if names]
