"""Spacer on the one-slot cut: is there an invariant by which no consume goes wrong?

One relation for each control state, over the quotients of the rounds in it. Control states are
collected without regard to guards; which of them can be reached on which integers is Spacer's
question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.checkers.unbounded.cut import BAD, CONSUMED, OVERFULL, Control, Cut

MOST_CONTROLS = 4_000


@dataclass
class Asked:
    """What Spacer says of one cut: "holds", "fails", "bound" (a slot has too many puts on their
    way), "vacuous" (nothing is consumed) or "unknown", and the size of what it was asked."""

    answer: str
    relations: int
    rules: int
    queries: int


class Horn:
    """The clauses of a cut."""

    def __init__(self, cut: Cut) -> None:
        self.cut = cut
        self.rules = 0
        self._fixed = z3.Fixedpoint()
        self._fixed.set(
            engine="spacer",
            **{"xform.inline_eager": False, "xform.inline_linear": False, "xform.slice": False},
        )
        self._relations: dict[Control, Any] = {}
        self._failures = {
            name: z3.Function(name, z3.BoolSort()) for name in (BAD, OVERFULL, CONSUMED)
        }
        for each in self._failures.values():
            self._fixed.register_relation(each)
        self._variables: list[Any] = []
        self._build()

    def _relation(self, control: Control, work: list[Control]) -> Any:
        if control not in self._relations:
            if len(self._relations) >= MOST_CONTROLS:
                raise NotCovered(f"the cut has more than {MOST_CONTROLS} control states")
            count = len(self.cut.keys(control))
            sorts = [z3.IntSort()] * count
            made = z3.Function(f"at {len(self._relations)}", *sorts, z3.BoolSort())
            self._fixed.register_relation(made)
            self._relations[control] = made
            work.append(control)
        return self._relations[control]

    def _variable(self, i: int) -> Any:
        while len(self._variables) <= i:
            made = z3.Int(f"x{len(self._variables)}")
            self._fixed.declare_var(made)
            self._variables.append(made)
        return self._variables[i]

    def _build(self) -> None:
        work: list[Control] = []
        first, values = self.cut.first()
        start = [values[key] for key in self.cut.keys(first)]
        self._fixed.fact(self._relation(first, work)(*start))
        while work:
            control = work.pop()
            keys = self.cut.keys(control)
            held = {key: self._variable(i) for i, key in enumerate(keys)}
            here = self._relations[control](*held.values())
            for rule in self.cut.rules(control, held):
                self.rules += 1
                if isinstance(rule.target, str):
                    head = self._failures[rule.target]()
                else:
                    there = [rule.values[key] for key in self.cut.keys(rule.target)]
                    head = self._relation(rule.target, work)(*there)
                self._fixed.rule(head, [here, rule.guard])

    def ask(self, milliseconds: int) -> Asked:
        """Whether some run of the cut fails, meets the in-flight bound, consumes anything at all.

        ``milliseconds`` is the time for each of these.
        """
        self._fixed.set(timeout=milliseconds)
        answers = (
            (BAD, z3.unsat, "fails"),
            (OVERFULL, z3.unsat, "bound"),
            (CONSUMED, z3.sat, "vacuous"),
        )
        for queries, (name, right, word) in enumerate(answers, 1):
            found = self._query(name)
            if found != right:
                answer = "unknown" if found == z3.unknown else word
                return Asked(answer, len(self._relations), self.rules, queries)
        return Asked("holds", len(self._relations), self.rules, len(answers))

    def _query(self, name: str) -> z3.CheckSatResult:
        try:
            return self._fixed.query(self._failures[name]())
        except z3.Z3Exception as error:
            if "canceled" in str(error):
                return z3.unknown
            raise
