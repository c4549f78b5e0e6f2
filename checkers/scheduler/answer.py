"""All contracts of a scheduler for given sizes and every routing, each with what decides it."""

from __future__ import annotations

from collections.abc import Iterator

from syncproof.checkers.scheduler.capacity import (
    breaking_counts,
    load_keeps_the_bound,
    staggered,
)
from syncproof.checkers.scheduler.contracts import CONTRACTS
from syncproof.checkers.scheduler.induction import Induction, induction
from syncproof.checkers.scheduler.question import Finding, Load, SchedulerQuestion
from syncproof.checkers.scheduler.symbolic import SearchVerdict, check_search

ALL_SIZES = "any number of experts, cores, tokens and hop classes, any routing"
DIRECT = "computed for these sizes (the routing has no part in it)"
INDUCTION = "induction by z3 without bound"


def check(question: SchedulerQuestion) -> list[Finding]:
    """One finding a contract, in the order of ``contracts.CONTRACTS``.

    With 256 experts, 48 cores and 128 tokens this takes a second or two. Without a token each
    contract is computed on the only routing there is.
    """
    if question.tokens == 0:
        return [_on_the_empty_routing(question, contract) for contract in CONTRACTS]
    proof = induction(question.scheduler.search)
    answer = check_search(question.scheduler.search, question.experts)
    findings = {
        finding.contract: finding
        for finding in (
            _direct(question, "orders-all-experts"),
            _terminates(question, proof, answer),
            _finds(question, proof, answer),
            *_slices(question),
            _hop_bound(question),
        )
    }
    findings["exactly-once"] = _exactly_once(question, findings, answer)
    return [findings[contract] for contract in CONTRACTS]


def _meaning(contract: str) -> str:
    return (CONTRACTS[contract].__doc__ or "").strip()


def _on_the_empty_routing(question: SchedulerQuestion, contract: str) -> Finding:
    load = Load((0,) * question.experts, question.classes, question.cores)
    return _computed(question, contract, [load], "computed on the only routing: no tokens")


def _computed(
    question: SchedulerQuestion, contract: str, loads: list[Load], method: str
) -> Finding:
    for load in loads:
        if wrong := CONTRACTS[contract](question.scheduler, load):
            return Finding(contract, "violated", question.sizes, "run", wrong, _plain(load, wrong))
    return Finding(contract, "proved", question.sizes, method, _meaning(contract))


def _plain(load: Load, wrong: str) -> dict[str, object]:
    return {"counts": load.counts, "hops": load.hops, "cores": load.cores, "wrong": wrong}


def _all_to_first(question: SchedulerQuestion) -> Load:
    counts = (question.tokens, *[0] * (question.experts - 1))
    return Load(counts, question.classes, question.cores)


def _by_expert(question: SchedulerQuestion, in_sending_order: tuple[int, ...]) -> Load:
    """A routing that the search, which numbers experts as they are sent, meets on core 0."""
    order = question.scheduler.view(0, _all_to_first(question)).order
    counts = [0] * question.experts
    for expert, count in zip(order, in_sending_order, strict=True):
        counts[expert] = count
    return Load(tuple(counts), question.classes, question.cores)


def _direct(question: SchedulerQuestion, contract: str) -> Finding:
    return _computed(question, contract, [_all_to_first(question)], DIRECT)


def _search_scope(question: SchedulerQuestion, proof: Induction) -> tuple[str, str]:
    fixed = f"experts={question.experts}, any number of tokens, any routing"
    query = "z3: unsatisfiable over all prefix sums and targets"
    return (ALL_SIZES, f"{query}; {INDUCTION}") if proof.right else (fixed, query)


def _terminates(question: SchedulerQuestion, proof: Induction, answer: SearchVerdict) -> Finding:
    name = "terminates"
    if proof.terminates:
        return Finding(
            name,
            "proved",
            ALL_SIZES,
            INDUCTION,
            "each turn keeps the target within the window and makes the window smaller",
        )
    if answer.counts is None:
        return Finding(name, "proved", *_search_scope(question, proof), _meaning(name))
    if not answer.endless:
        return Finding(
            name,
            "undecided",
            question.sizes,
            "z3",
            "a wrong result was found before a run without end; whether there is one was not asked",
        )
    always = (
        " No search for any token of any routing ever ends (induction by z3): with one expert "
        "left the gap is still one, and the window becomes itself."
        if proof.never_terminates
        else ""
    )
    load = _by_expert(question, answer.counts)
    why = answer.wrong + "." + always
    return Finding(
        name,
        "violated",
        question.sizes,
        "z3, confirmed by a run",
        why,
        {**_plain(load, answer.wrong), "target": answer.target},
    )


def _finds(question: SchedulerQuestion, proof: Induction, answer: SearchVerdict) -> Finding:
    name = "finds-expert-and-offset"
    if answer.counts is None:
        return Finding(name, "proved", *_search_scope(question, proof), _meaning(name))
    if answer.endless:
        return Finding(name, "undecided", question.sizes, "z3", "the search does not return")
    load = _by_expert(question, answer.counts)
    return Finding(
        name,
        "violated",
        question.sizes,
        "z3, confirmed by a run",
        answer.wrong,
        {**_plain(load, answer.wrong), "target": answer.target},
    )


def _slices(question: SchedulerQuestion) -> Iterator[Finding]:
    names = ("slices-partition", "loads-differ-by-at-most-one", "same-on-every-core")
    if question.scheduler.placement != "staggered":
        yield from (_direct(question, name) for name in names)
        return
    proof = staggered()
    hold = (proof.meets and proof.within_bound, proof.loads and proof.within_bound, proof.meets)
    for name, holds in zip(names, hold, strict=True):
        finding = _direct(question, name)
        if finding.verdict == "violated":
            yield finding
        elif holds and name == "same-on-every-core":
            method = f"order computed for these sizes; slices by {INDUCTION}"
            scope = f"{question.sizes}, any routing"
            yield Finding(name, "proved", scope, method, _meaning(name))
        elif holds:
            yield Finding(name, "proved", ALL_SIZES, INDUCTION, _meaning(name))
        else:
            yield _undecided(question, name)


def _undecided(question: SchedulerQuestion, name: str) -> Finding:
    return Finding(name, "undecided", question.sizes, "none", "no proof and no counterexample")


def _hop_bound(question: SchedulerQuestion) -> Finding:
    name = "per-hop-bound"
    if question.scheduler.placement == "staggered":
        if staggered().within_bound:
            return Finding(name, "proved", ALL_SIZES, INDUCTION, _meaning(name))
        return _undecided(question, name)
    hops, cores = question.classes, question.cores
    view = question.scheduler.view(0, _all_to_first(question))
    fewest = breaking_counts(view.order, hops, cores, cores + 1)
    if fewest is not None and question.tokens > cores:
        return _computed(question, name, [Load(fewest, hops, cores)], "")
    greatest = max(
        sum(map(len, question.scheduler.view(core, _all_to_first(question)).slices))
        for core in range(cores)
    )
    if load_keeps_the_bound(cores, question.tokens, len(set(hops)), greatest):
        method = "z3: unsatisfiable for these sizes, from the loads alone"
        return Finding(name, "proved", question.sizes, method, _meaning(name))
    return _undecided(question, name)


def _candidates(question: SchedulerQuestion, answer: SearchVerdict) -> Iterator[Load]:
    if answer.counts is not None:
        yield _by_expert(question, answer.counts)
    yield _all_to_first(question)
    even, odd = divmod(question.tokens, question.experts)
    counts = tuple(even + (expert < odd) for expert in range(question.experts))
    yield Load(counts, question.classes, question.cores)


def _exactly_once(
    question: SchedulerQuestion, findings: dict[str, Finding], answer: SearchVerdict
) -> Finding:
    """Follows from the other contracts; where one of them fails, a few routings are tried."""
    name = "exactly-once"
    needs = (
        "orders-all-experts",
        "terminates",
        "finds-expert-and-offset",
        "slices-partition",
        "same-on-every-core",
    )
    parts = [findings[part] for part in needs]
    if all(part.verdict == "proved" for part in parts):
        return Finding(
            name, "proved", question.sizes, "follows from " + ", ".join(needs), _meaning(name)
        )
    if findings["terminates"].verdict != "proved":
        return Finding(name, "undecided", question.sizes, "none", "the search does not return")
    finding = _computed(question, name, list(_candidates(question, answer)), "")
    return finding if finding.verdict == "violated" else _undecided(question, name)
