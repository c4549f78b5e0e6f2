"""Options that several commands have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class NumberOr(click.ParamType["int | str"]):
    """A whole number, or a word for all of them."""

    def __init__(self, word: str) -> None:
        self.word = self.name = word

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        if value == self.word:
            return self.word
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor {self.word!r}.", param, ctx)


def options(*of_one_kind: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, listed by ``--help`` in this order."""

    def decorate(command: F) -> F:
        for option in reversed(of_one_kind):
            command = option(command)
        return command

    return decorate


INSTANCE = options(
    click.option(
        "--ranks",
        default=2,
        type=NumberOr("any"),
        metavar="N|any",
        help="Ranks (NPU dies, GPUs).  [default: 2]",
    ),
    click.option("--tokens", default=1, show_default=True, help="Tokens per rank and round."),
    click.option(
        "--rounds",
        default=3,
        type=NumberOr("unbounded"),
        metavar="R|unbounded",
        help="Rounds.  [default: 3]",
    ),
    click.option("--experts", default=0, help="Experts in all.  [default: one per rank]"),
    click.option("--topk", default=0, help="Experts per token.  [default: all]"),
    click.option(
        "--routing",
        default="",
        metavar="all|balanced|FILE.yaml",
        help="Tokens per source, expert and round.  [default: all up to 2 ranks, else balanced]",
    ),
    click.option(
        "--fabric",
        default="cm384",
        show_default=True,
        metavar="NAME|FILE.yaml[,KEY=VALUE...]",
        help="What the interconnect guarantees.",
    ),
    click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A variant of the protocol."
    ),
    click.option(
        "--drop", "dropped", multiple=True, metavar="NAME", help="Do without an assumption."
    ),
)

SEARCH = options(
    click.option(
        "--property",
        "properties",
        multiple=True,
        metavar="NAME",
        help="Ask for this property only; may be repeated.",
    ),
    click.option(
        "--mutant", default="", metavar="NAME", help="Leave one operation out (see show)."
    ),
    click.option(
        "--engine",
        default="auto",
        show_default=True,
        metavar="auto|reference|reduced|fast|certificate|smt|all",
        help="What answers; all compares every engine. Also tla: the TLA+ module, by --tool.",
    ),
    click.option(
        "--tool",
        default="",
        type=click.Choice(["", "tlc", "apalache"]),
        metavar="tlc|apalache",
        help="What --engine tla runs.  [default: tlc]",
    ),
    click.option("--full", is_flag=True, help="No reduction: every interleaving."),
    click.option(
        "--memory", default="", metavar="SIZE", help="Such as 4G.  [default: 3/4 of what there is]"
    ),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Threads of the fast engine.  [default: one a core]",
    ),
    click.option(
        "--budget-states", type=click.IntRange(min=1), metavar="N", help="States at most."
    ),
    click.option(
        "--budget-seconds",
        type=click.FloatRange(min=0, min_open=True),
        metavar="S",
        help="Seconds at most.",
    ),
    click.option(
        "--swarm",
        default=0,
        type=click.IntRange(min=0),
        metavar="N",
        help="N bounded searches in random orders, for what is too large: finds, never proves.",
    ),
    click.option(
        "--cluster",
        default="",
        metavar="tcp://HOST:PORT",
        help="The Dask cluster that makes them.  [default: this machine]",
    ),
)

OUTPUT = options(
    click.option(
        "--json", "json_file", default="", metavar="FILE", help="The verdict; - is stdout."
    ),
    click.option(
        "--trace", default="", metavar="FILE", help="The violating run, for show and replay."
    ),
    click.option("--save-test", default="", metavar="FILE.py", help="That run as a pytest."),
    click.option("-q", "--quiet", is_flag=True, help="One line."),
    click.option("-v", "--verbose", is_flag=True, help="All steps, all changes, all fabric keys."),
    click.option("--timings", is_flag=True, help="Say how long it took, in files too."),
    click.option("--why", "is_why", is_flag=True, help="What carries each block of a proof."),
)


DRAWINGS = options(
    click.option("--html", default="", metavar="FILE", help="A page to step through; - is stdout."),
    click.option("--text", default="", metavar="FILE", help="Plain text, for mail."),
    click.option("--perfetto", default="", metavar="FILE", help="For ui.perfetto.dev."),
    click.option("--mermaid", default="", metavar="FILE", help="A diagram to paste in an issue."),
)
