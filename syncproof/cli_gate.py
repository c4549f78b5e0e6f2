"""The command ``gate`` of the command line, in a file of its own."""

from __future__ import annotations

import os
from typing import Any

import click


@click.command()
@click.argument("file", metavar="[FILE.yaml]", default="")
@click.option("--only", multiple=True, metavar="GLOB", help="Obligations with such a name only.")
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: one a core]"
)
@click.option(
    "--cluster",
    default="",
    metavar="tcp://HOST:PORT",
    help="The Dask cluster that answers.  [default: this machine]",
)
@click.option(
    "--cache",
    default="",
    metavar="DIR",
    help="Where answers are kept.  [default: the user's cache]",
)
@click.option("--no-cache", is_flag=True, help="Answer everything anew and keep nothing.")
@click.option("--baseline", default="", metavar="FILE", help="What --json wrote before.")
@click.option("--strict-kernels", is_flag=True, help="Fail where a kernel file has changed.")
@click.option("--out", default="", metavar="DIR", help="All files below, an index, failing runs.")
@click.option("--json", default="", metavar="FILE", help="Every obligation; - is stdout.")
@click.option("--junit", default="", metavar="FILE", help="JUnit XML.")
@click.option("--sarif", default="", metavar="FILE", help="SARIF 2.1.0, for code reviews.")
@click.option("--markdown", default="", metavar="FILE", help="A summary.")
@click.option("-q", "--quiet", is_flag=True, help="One line.")
def gate(file: str, workers: int | None, cache: str, no_cache: bool, **asked: Any) -> int:
    """Answer every obligation of a gate file, by default those that ship with us.

    Exit code 0 only if each has the verdict that it must have (docs/gate.md). The summary is also
    added to $GITHUB_STEP_SUMMARY.
    """
    from syncproof.commands.gate import Options, run

    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    kept = "" if no_cache else cache or os.path.join(caches, "syncproof", "gate")
    summary = os.environ.get("GITHUB_STEP_SUMMARY", "")
    return run(file, Options(workers=workers or 0, cache=kept, summary=summary, **asked))
