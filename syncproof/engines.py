"""The engines that can answer a question, and what several answers are together.

A new engine is a new module in ``checkers/`` and one row of `ENGINES` here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from syncproof.checkers.explicit.search import Budget
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Verdict, without_proof

Report = Callable[[int, int, int], None]
Check = Callable[[Instance, Question, str, Budget, Report], Verdict]


@dataclass(frozen=True)
class Engine:
    """An engine by name: what it does, and ``module:function`` of its check."""

    name: str
    text: str
    function: str

    def check(
        self, instance: Instance, question: Question, budget: Budget, report: Report
    ) -> Verdict:
        """The engine's verdict; its module is imported only now.

        Whichever engine it is, nothing is proved of roles that refer to what cannot be watched.
        """
        module, _, name = self.function.partition(":")
        function: Check = getattr(importlib.import_module(module), name)
        unwatched = instance.unwatched()  # before a role runs, which might hide it
        verdict = function(instance, question, self.name, budget, report)
        return without_proof(verdict, f"{unwatched}: {KEEP_LOCAL}") if unwatched else verdict


KEEP_LOCAL = (
    "roles may tell each other something by it that no engine sees (a role keeps what it changes "
    "in local variables, and refers only to plain values, functions and objects of plain classes)"
)

CERTIFICATE = "syncproof.checkers.certificate.check:check"
SMT = "syncproof.checkers.smt.check"
EXPLICIT = "syncproof.checkers.explicit.check:check"
FAST = "syncproof.checkers.fast.check:check"
ENGINES = {
    each.name: each
    for each in (
        Engine("reference", "every interleaving, breadth-first, fewest steps", EXPLICIT),
        Engine("reduced", "persistent sets of steps, same verdicts", EXPLICIT),
        Engine("fast", "every interleaving that matters, in compiled loops", FAST),
        Engine("certificate", "one run, shown to be the only one", CERTIFICATE),
        Engine("smt", "all schedules as one formula, by z3", f"{SMT}:check"),
    )
}
FULL = {"fast-full": Engine("fast-full", "every interleaving, in compiled loops", FAST)}
"""Engines that ``--full`` stands for."""
SMT_AMONG_ALL = Engine("smt", "the same for at most a minute", f"{SMT}:check_for_a_minute")
"""What ``--engine all`` runs: formulas of large instances take longer than all else together."""

AUTOMATIC = Engine(
    "auto",
    "a certificate, else what two ranks prove for all, else reduced and fast by turns; of many "
    "processes random runs first",
    "syncproof.checkers.automatic:check",
)
"""What answers when no engine is named."""

QUOTIENT = "syncproof.checkers.unbounded.check:check"
UNBOUNDED = {
    "auto": Engine("quotient", "all numbers of rounds, by moving them together", QUOTIENT),
    "reference": Engine("quotient-full", "the same without any reduction", QUOTIENT),
    "smt": Engine(
        "smt",
        "the same, checked by z3 as an invariant over unbounded integers",
        "syncproof.checkers.unbounded.invariant_check:check",
    ),
    "spacer": Engine(
        "spacer",
        "a second opinion on each slot, by Spacer on Horn clauses",
        "syncproof.checkers.unbounded.spacer_check:check",
    ),
}
"""What answers for rounds without bound, by the name that is asked for."""

ANY_RANKS = Engine(
    "pairs",
    "any number of ranks, from every interleaving of two",
    "syncproof.checkers.any_ranks.check:check",
)
"""What answers for any number of ranks."""

UNREDUCED = "reference"
REFERENCE = ENGINES[UNREDUCED]

OUTSIDE = {
    each.name: each
    for each in (
        Engine("tla", "TLC on the protocol's TLA+ module", "syncproof.outside:check"),
        Engine("tla-apalache", "Apalache on the protocol's TLA+ module", "syncproof.outside:check"),
    )
}
"""Engines that need programs from outside, and so are asked only by name."""


def engines_for(name: str) -> list[Engine]:
    """The engines that ``--engine NAME`` runs."""
    if name == "all":
        return [SMT_AMONG_ALL if each.name == "smt" else each for each in ENGINES.values()]
    if name == "auto":
        return [AUTOMATIC]
    known = {**ENGINES, **FULL, **OUTSIDE}
    if name not in known:
        expected = " or ".join(["auto", *known, "all"])
        raise UserError(f"no engine {name!r}", where="--engine", expected=expected)
    return [known[name]]


def engine_asked(name: str, is_full: bool, tool: str = "") -> str:
    """The engine that ``--engine``, ``--full`` (no reduction) and ``--tool`` ask for together."""
    if tool and name != "tla":
        raise UserError(
            f"--tool {tool} with --engine {name}", where="--tool", expected="--engine tla"
        )
    if tool == "apalache":
        name = "tla-apalache"
    if not is_full:
        return name
    if name == "fast":
        return "fast-full"
    if name not in ("auto", UNREDUCED):
        raise UserError(
            f"--full together with --engine {name}", where="--full", expected="one of the two"
        )
    return UNREDUCED


def unbounded_engines_for(name: str) -> list[Engine]:
    """The engines that ``--rounds unbounded --engine NAME`` runs."""
    if name not in UNBOUNDED:
        raise UserError(
            f"--rounds unbounded with --engine {name}",
            where="--engine",
            expected=" or ".join(UNBOUNDED),
        )
    return [UNBOUNDED[name]]


def any_ranks_engines_for(name: str) -> list[Engine]:
    """The engine that ``--ranks any`` runs."""
    if name != "auto":
        raise UserError(f"--ranks any with --engine {name}", where="--engine", expected="auto")
    return [ANY_RANKS]


# Several answers to one question


def combined(verdicts: Sequence[Verdict]) -> tuple[PropertyVerdict, ...]:
    """The answer for each property from all engines; contradictions are errors of ours."""
    names = dict.fromkeys(each.property for verdict in verdicts for each in verdict.properties)
    return tuple(_combined(name, verdicts) for name in names)


def _combined(name: str, verdicts: Sequence[Verdict]) -> PropertyVerdict:
    given = {verdict.engine: _on(name, verdict) for verdict in verdicts}
    answers = {each.answer for each in given.values()}
    if {Answer.PROVED, Answer.VIOLATED} <= answers:
        said = ", ".join(f"{engine} says {each.answer.value}" for engine, each in given.items())
        return PropertyVerdict(name, Answer.BROKEN, f"the engines disagree: {said}")
    order = (Answer.BROKEN, Answer.VIOLATED, Answer.PROVED, Answer.UNDECIDED)
    return min(given.values(), key=lambda each: order.index(each.answer))


def _on(name: str, verdict: Verdict) -> PropertyVerdict:
    """What a verdict says about a property; ``reached`` is listed only when it is violated."""
    for each in verdict.properties:
        if each.property == name:
            return each
    proved = verdict.answer is Answer.PROVED
    return PropertyVerdict(name, Answer.PROVED if proved else Answer.UNDECIDED)


def unfinished(
    instance: Instance, question: Question, engine: str, counts: tuple[int, int], reason: str
) -> Verdict:
    """The verdict of an engine that was cut off after ``counts``: states and depth."""
    states, depth = counts
    undecided = [PropertyVerdict(each, Answer.UNDECIDED, reason) for each in question.properties]
    assumed = instance.protocol().assumptions()
    return Verdict(question, engine, tuple(undecided), states, 0, depth, assumed)
