"""What carries each block to where it is consumed: ``show NAME --why``, and pages of proofs."""

from __future__ import annotations

import sys

from syncproof.checkers.smt.uncovered import Uncovered
from syncproof.checkers.smt.why import Effort, TooLarge, explain
from syncproof.models.errors import UserError
from syncproof.models.verdict import Chains
from syncproof.registry import find
from syncproof.reports.chains import print_carried
from syncproof.reports.terminal import console_on
from syncproof.request import Asked, Request, resolve

UNASKED = Effort(points=1_500, steps=15_000_000)
"""What is spent on a page whose reader has not asked for more: seconds."""


def run(request: Request) -> int:
    """Explain every consume; 1 if one of them is not proved."""
    asked = resolve(request, find(request.protocol))
    try:
        explained, _ = explain(asked.instance)
    except Uncovered as why:
        raise UserError(str(why), where="--why") from None
    console = console_on(sys.stdout)
    for each in explained:
        print_carried(console, each)
    return 1 if any(not each.chain for each in explained) else 0


def chains_of(asked: Asked, request: Request, is_why: bool) -> Chains:
    """The chains of a proof: of every consume, or the last of each line as far as it is cheap."""
    if request.unbounded:
        return Chains(missing="of all numbers of rounds at once there is none: ask with --rounds 3")
    try:
        effort = Effort() if is_why else UNASKED
        carried, consumes = explain(asked.instance, effort=effort, is_every=is_why)
    except (Uncovered, UserError) as why:
        return Chains(missing=str(why))
    except TooLarge as why:
        return Chains(missing=f"{why}; --why computes it, however long it takes")
    if not all(each.events for each in carried):
        raise RuntimeError("the engines disagree: z3 finds a run with a wrong consume")
    return Chains(carried, consumes)
