"""z3 with the constraints of a formula, or with those about some processes alone.

A part of a conjunction has every run that the whole has. So what a part excludes the whole does
too: a proof. What a part allows is asked of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import z3

from syncproof.checkers.smt.encoding import Encoding
from syncproof.checkers.smt.terms import TRUE, Term, implies, names_in

DIFFERENCE_LOGIC = 1
"""z3's solver for constraints that only compare two clocks, which are all that we have."""

NO_LIMIT = 2**32 - 1


DEFINED = re.compile(r"\(define-fun (\S+) \(\) (?:Bool|Int)\s+(?:\((- )(\d+)\)|(\w+))\)")


class Model:
    """What a satisfying assignment says of the names of a formula; what it leaves open is false
    or 0."""

    def __init__(self, found: z3.ModelRef) -> None:
        self._values = {
            name: minus.strip() + digits + plain
            for name, minus, digits, plain in DEFINED.findall(found.sexpr())
        }

    def holds(self, proposition: Term) -> bool:
        """Whether a proposition holds."""
        return proposition == TRUE or self._values.get(proposition) == TRUE

    def time(self, clock: Term) -> int:
        """What a clock shows."""
        return int(self._values.get(clock, 0))


class Solver:
    """The constraints in z3; every condition that was asked keeps its name."""

    def __init__(self, encoding: Encoding, constraints: Iterable[Term]) -> None:
        self._names = encoding.names
        self._solver = z3.SimpleSolver()
        self._solver.set("arith.solver", DIFFERENCE_LOGIC)
        self._declared: dict[str, None] = {}
        self._assumed: dict[Term, str] = {}
        self.require(constraints)

    def require(self, terms: Iterable[Term]) -> None:
        """Add constraints for good."""
        text = "".join(f"(assert {term})\n" for term in terms)
        self._solver.from_string(self._declared_first(text) + text)

    def _declared_first(self, text: str) -> str:
        new = dict.fromkeys(name for name in names_in(text) if name not in self._declared)
        self._declared |= new
        return self._names.declared(new)

    def answer(
        self, conditions: Iterable[Term], milliseconds: int = 0, steps: int = 0
    ) -> z3.CheckSatResult:
        """Whether the constraints have a run that meets all conditions; 0 is no limit."""
        self._solver.set("timeout", milliseconds or NO_LIMIT)
        self._solver.set("rlimit", steps)
        names = [self._assumption(each) for each in conditions]
        return self._solver.check(*map(z3.Bool, names))

    def _assumption(self, condition: Term) -> str:
        """A name for a condition: what was learned from one query then serves the next."""
        name = self._assumed.get(condition)
        if name is None:
            is_name = condition in self._names.sort
            name = condition if is_name else self._names.new("asked", "Bool", ())
            self._assumed[condition] = name
            self._solver.from_string(self._declared_first(name))
            if not is_name:
                self.require([implies(name, condition)])
        return name

    def spent(self) -> int:
        """How many of its own steps z3 has made so far."""
        return int(self._solver.statistics().get_key_value("rlimit count"))

    def model(self) -> Model:
        """The run that the last query has found."""
        return Model(self._solver.model())

    def core(self) -> list[str]:
        """The conditions, by name, that the last query was refuted by."""
        return [str(each) for each in self._solver.unsat_core()]

    def why_unknown(self) -> str:
        """z3's reason for its last answer."""
        return str(self._solver.reason_unknown())


class Parts:
    """Solvers for the parts of a formula that are about the processes of some ranks alone."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        processes = [each.process for each in encoding.system.automata]
        self._rank = {process.number: process.rank for process in processes}
        self._about: list[frozenset[int]] | None = None
        self._solvers: dict[frozenset[int], Solver] = {}

    def solver(self, term: Term, cells: Iterable[int] = ()) -> Solver | None:
        """That for the ranks which a condition is about, and those whose processes write to
        ``cells``; None if these are all."""
        encoding = self._encoding
        about = set(encoding.names.processes(term))
        for cell in cells:
            origins = (write.origin for write in encoding.location[cell].writes)
            about |= {point.process for point in origins if point is not None}
        ranks = frozenset(self._rank[process] for process in about)
        if 2 * len(ranks) >= len(set(self._rank.values())):
            return None
        if ranks not in self._solvers:
            self._solvers[ranks] = Solver(encoding, self._within(ranks))
        return self._solvers[ranks]

    def _within(self, ranks: frozenset[int]) -> list[Term]:
        constraints = self._encoding.constraints
        if self._about is None:
            self._about = [self._encoding.names.processes(each) for each in constraints]
        return [
            constraint
            for constraint, about in zip(constraints, self._about, strict=True)
            if all(self._rank[process] in ranks for process in about)
        ]
