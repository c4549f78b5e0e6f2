"""Formulas as text in SMT-LIB, which z3 reads far faster than Python can build its terms.

Every name says which processes it is about, so that a part of a formula can be cut out by process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

Term = str
"""A proposition, a clock or a formula over them."""

TRUE, FALSE = "true", "false"
NAMES = re.compile(r"[a-z]+![0-9]+")


def any_of(terms: Iterable[Term]) -> Term:
    """A disjunction, as short as it can be written."""
    found = [term for term in terms if term != FALSE]
    if TRUE in found:
        return TRUE
    return f"(or {' '.join(found)})" if len(found) > 1 else found[0] if found else FALSE


def all_of(terms: Iterable[Term]) -> Term:
    """A conjunction, as short as it can be written."""
    found = [term for term in terms if term != TRUE]
    if FALSE in found:
        return FALSE
    return f"(and {' '.join(found)})" if len(found) > 1 else found[0] if found else TRUE


def negated(term: Term) -> Term:
    """The opposite."""
    return FALSE if term == TRUE else TRUE if term == FALSE else f"(not {term})"


def implies(condition: Term, consequence: Term) -> Term:
    """If the condition holds, so does the consequence."""
    if condition == FALSE or consequence == TRUE:
        return TRUE
    return consequence if condition == TRUE else f"(=> {condition} {consequence})"


def precedes(one: Term, other: Term) -> Term:
    """One clock is before another."""
    return f"(< {one} {other})"


def at_most(most: int, terms: Sequence[Term]) -> Term:
    """No more than so many of the terms hold."""
    return f"((_ at-most {most}) {' '.join(terms)})"


def at_least(least: int, terms: Sequence[Term]) -> Term:
    """At least so many of the terms hold."""
    return f"((_ at-least {least}) {' '.join(terms)})"


def sums_to(total: int, weighted: Sequence[tuple[Term, int]]) -> Term:
    """The weights of the terms that hold have this sum."""
    weights = " ".join(str(weight) for _, weight in weighted)
    return f"((_ pbeq {total} {weights}) {' '.join(term for term, _ in weighted)})"


def names_in(term: Term) -> dict[str, None]:
    """The propositions and clocks of a formula."""
    return dict.fromkeys(NAMES.findall(term))


class Names:
    """The names of one formula: of each its sort, and the processes that it is about."""

    def __init__(self) -> None:
        self.sort: dict[str, str] = {}
        self.about: dict[str, frozenset[int]] = {}

    def new(self, name: str, sort: str, about: Iterable[int]) -> Term:
        """A name that is not used yet."""
        made = f"{name}!{len(self.sort)}"
        self.sort[made], self.about[made] = sort, frozenset(about)
        return made

    def processes(self, term: Term) -> frozenset[int]:
        """All processes that a formula is about."""
        return frozenset[int]().union(*(self.about[name] for name in names_in(term)))

    def declared(self, names: Mapping[str, None]) -> str:
        """The declarations of some names."""
        return "".join(f"(declare-const {name} {self.sort[name]})\n" for name in names)
