"""A question asked of TLC or Apalache about the TLA+ module of a protocol."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.tla import apalache, tlc
from syncproof.checkers.tla.model import (
    INVARIANTS,
    TERMINATION,
    WITHIN,
    Model,
    invariants_for,
    model_of,
    module_of,
    takes_tokens,
)
from syncproof.checkers.tla.tlc import Found, Limits
from syncproof.checkers.tla.tools import Tools
from syncproof.checkers.tla.translate import Disagreement, trace_of
from syncproof.models.instance import Instance
from syncproof.models.verdict import Answer, PropertyVerdict, Question, Trace, Verdict

Ask = Callable[[Model, Tools, Path, Limits, frozenset[str]], Found]
"""Asks a tool for properties; the folder is empty."""

RACE = "race-free"
FAIRNESS = ("deadlock-free: no state without a step, and termination under weak fairness",)

NO_TOKENS = "happens-before, exactly-once: no process takes a token, so that there is none to judge"


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="syncproof-") as folder:
        yield Path(folder)


def check(
    instance: Instance, question: Question, engine: str, budget: Budget, tools: Tools
) -> Verdict:
    """The verdict of TLC (engine ``tla``) or Apalache (``tla-apalache``).

    Raises `UserError` where the tool is not here, or has something to say that the user can mend.
    """
    ask = ask_apalache if engine == "tla-apalache" else ask_tlc
    (tools.for_apalache if engine == "tla-apalache" else tools.for_tlc)()
    model, limits = model_of(instance), Limits(budget.memory, budget.seconds)
    asked = frozenset(question.properties)
    found = _ask(ask, model, tools, limits, asked)
    if property_of(found.violated) == RACE and asked != {RACE}:
        # A race is judged only where nothing else is wrong, as our own engines do
        without = _ask(ask, model, tools, limits, asked - {RACE})
        found = without if without.violated or without.undecided else found
    return verdict_of(instance, question, engine, found)


def _ask(ask: Ask, model: Model, tools: Tools, limits: Limits, asked: frozenset[str]) -> Found:
    with scratch() as folder:
        return ask(model, tools, folder, limits, asked)


def ask_tlc(
    model: Model, tools: Tools, folder: Path, limits: Limits, asked: frozenset[str]
) -> Found:
    """Ask TLC for properties: invariants, no deadlock, and termination under weak fairness."""
    hangs = "deadlock-free" in asked
    invariants = invariants_for(model.module, asked)
    temporal = [TERMINATION] if hangs else []
    return tlc.check(
        model, tools, folder, limits, invariants=invariants, temporal=temporal, deadlock=hangs
    )


def ask_apalache(
    model: Model, tools: Tools, folder: Path, limits: Limits, asked: frozenset[str]
) -> Found:
    """Ask Apalache for properties in all runs of at most `apalache.LENGTH` steps."""
    invariants = invariants_for(model.module, asked)
    return apalache.check(model, tools, folder, limits, invariants, "deadlock-free" in asked)


def property_of(violated: str) -> str:
    """The property that a violated formula states."""
    if violated in ("deadlock", "temporal"):
        return "deadlock-free"
    return next((name for name, formula in INVARIANTS.items() if formula == violated), violated)


def verdict_of(instance: Instance, question: Question, engine: str, found: Found) -> Verdict:
    """What a tool found, as our verdict; a run that our model does not have is an error of ours."""
    violated, reason = property_of(found.violated), found.undecided
    if violated == WITHIN:
        violated = ""
        reason = "a put met the in-flight bound: raise it with --fabric NAME,in_flight=N"
    trace: Trace | None = None
    broken = ""
    if violated:
        reason = reason or "the search stopped at the first failure"
        try:
            fewest = found.violated != "temporal"
            trace = trace_of(instance, question, violated, run_of(found), fewest=fewest)
        except Disagreement as error:
            broken = f"TLA+ and our model disagree: {error}"
    properties = [
        PropertyVerdict(name, *_answer(name, violated, broken, reason, trace))
        for name in question.properties
    ]
    routing = instance.bounds.routing
    return Verdict(
        question,
        engine,
        tuple(properties),
        found.distinct,
        found.generated,
        found.depth,
        instance.protocol().assumptions(),
        routing=routing if isinstance(routing, str) else "as given",
        notes=_notes(instance, question, engine),
        trace=trace,
    )


def _notes(instance: Instance, question: Question, engine: str) -> tuple[str, ...]:
    fair = FAIRNESS if engine == "tla" and "deadlock-free" in question.properties else ()
    return fair if takes_tokens(module_of(instance.kind)) else (*fair, NO_TOKENS)


def _answer(
    name: str, violated: str, broken: str, reason: str, trace: Trace | None
) -> tuple[Answer, str]:
    if name == violated:
        if broken:
            return Answer.BROKEN, broken
        return Answer.VIOLATED, trace.message if trace is not None else ""
    return (Answer.UNDECIDED, reason) if reason else (Answer.PROVED, "")


def run_of(found: Found) -> tuple[dict[str, object], ...]:
    """The states of a counterexample; of an endless run those before it repeats itself."""
    return found.states if found.back_to < 0 else found.states[: found.back_to + 1]
