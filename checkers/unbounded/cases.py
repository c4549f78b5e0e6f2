"""A role at a local state, for all numbers of rounds at once: what it does, by cases.

The role is run on chosen rounds, and the tests that it makes on the way say for which other
rounds it does the same. Then it is run on rounds of which that is not known yet, until nothing is
left. A round is held as ``B * quotient + residue``; residues belong to the shape of a value.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import z3

from syncproof.checkers.unbounded.channel import Needed, NotCovered, RoundValues
from syncproof.checkers.unbounded.frames import HomeAutomaton, HomeEdge
from syncproof.models.nodes import Node
from syncproof.models.rounds import Old, Round, mapped, rounds_in
from syncproof.models.values import typed

OWN = -1
"""The role's own round among the rounds that it reads, which are counted from 0."""

MOST_CASES = 40

Test = tuple[int, int, str, int]
"""(i, j, relation, c): the quotient of round i less that of round j is so related to c."""


@dataclass(frozen=True)
class Case:
    """A step on all rounds that pass the tests; ``edge`` is None where a wait does not pass."""

    tests: tuple[Test, ...]
    edge: HomeEdge


class Shapes:
    """Values up to the quotients of their rounds, by number."""

    def __init__(self, values: RoundValues, modulus: int) -> None:
        self.values, self.modulus = values, modulus
        self._known: dict[Hashable, int] = {}
        self._values: list[Hashable] = []
        self.residues: list[tuple[int, ...]] = []

    def split(self, value: Hashable) -> tuple[int, tuple[int, ...]]:
        """The shape of a value, and the quotients of its rounds."""
        numbers = [each.number_ for each in rounds_in(value)]
        residues = tuple(each % self.modulus for each in numbers)
        key = (typed(mapped(value, lambda r: ("round", r.least_))), residues)
        if key not in self._known:
            self._known[key] = len(self._values)
            self._values.append(value)
            self.residues.append(residues)
        return self._known[key], tuple(each // self.modulus for each in numbers)

    def any_residues(self, value: Hashable) -> list[int]:
        """The shapes of a value if of the rounds that are long past it is not known when."""
        places = [i for i, each in enumerate(rounds_in(value)) if type(each) is Old]
        found = []
        for residues in product(range(self.modulus), repeat=len(places)):
            known = dict(zip(places, residues, strict=True))
            count = iter(range(len(rounds_in(value))))

            def settled(each: Round, known: dict[int, int] = known, count: Any = count) -> Round:
                return Round(known.get(next(count), each.number_), each.least_)

            found.append(self.split(mapped(value, settled))[0])
        return found

    def with_rounds(self, shape: int, numbers: Iterator[int]) -> int:
        """The number of the value of a shape with these rounds."""
        value = mapped(self._values[shape], lambda r: Round(next(numbers), r.least_))
        return self.values.number(value)


class Role:
    """The steps of one process, by cases."""

    def __init__(self, home: HomeAutomaton, shapes: Shapes) -> None:
        self.home, self.shapes = home, shapes
        self.modulus = shapes.modulus
        self._cases: dict[tuple[int, int, tuple[int, ...]], list[Case]] = {}

    def residue(self, node: Node) -> int:
        """The residue of the role's own round at a local state; before it counts it is 0."""
        return (self.home.base(node) or 0) % self.modulus

    def has_begun(self, node: Node) -> bool:
        """Whether the role has begun to count its rounds."""
        return self.home.base(node) is not None

    def moves_on(self, node: Node, edge: HomeEdge) -> int:
        """By how much the quotient of the role's own round grows with a step."""
        assert edge.edge is not None
        target = edge.edge.target
        if target.state != "run":
            return 0
        after = (self.home.base(target) or 0) + edge.delta - (self.home.base(node) or 0)
        return (self.residue(node) + after - self.residue(target)) // self.modulus

    def written(self, node: Node, number: int) -> tuple[int, tuple[int, ...]]:
        """The shape of a value that a step writes, and its quotients less that of the own round."""
        value = self.shapes.values.plain(number)
        own = (self.home.base(node) or 0) - self.residue(node)
        shape, _ = self.shapes.split(value)
        found = [(each.number_ - own) // self.modulus for each in rounds_in(value)]
        return shape, tuple(found)

    def cases(self, node: Node, action: int, shapes: tuple[int, ...]) -> list[Case]:
        """All that an action may do on values of these shapes, whatever is chosen."""
        key = (node.number, action, shapes)
        if key not in self._cases:
            self._cases[key] = self._all_cases(node, action, shapes)
        return self._cases[key]

    def _all_cases(self, node: Node, action: int, shapes: tuple[int, ...]) -> list[Case]:
        found: list[Case] = []
        pending: list[dict[int, int]] = [{}]
        numbers = self.home.channel.values
        while pending:
            answers = pending.pop()
            try:
                found += self._cases_under(answers, node, action, shapes)
            except Needed as choice:
                name = numbers.number(choice.name)
                pending += [{**answers, name: numbers.number(each)} for each in choice.values]
        return found

    def _cases_under(
        self, answers: dict[int, int], node: Node, action: int, shapes: tuple[int, ...]
    ) -> list[Case]:
        count = sum(len(self.shapes.residues[each]) for each in shapes)
        names = [z3.Int(f"k{i}") for i in range(count)]
        rest, found = z3.SolverFor("QF_LIA"), list[Case]()
        while rest.check() == z3.sat:
            model = rest.model()
            chosen = [model.eval(each, model_completion=True).as_long() for each in names]
            case = self._run(answers, node, action, shapes, chosen)
            found.append(case)
            rest.add(z3.Not(holds(case.tests, z3.IntVal(0), names)))
            if len(found) > MOST_CASES:
                raise NotCovered(f"a role tells too many rounds apart at {node.place}")
        return found

    def _run(
        self,
        answers: dict[int, int],
        node: Node,
        action: int,
        shapes: tuple[int, ...],
        quotients: Sequence[int],
    ) -> Case:
        base, channel = self.home.base(node) or 0, self.home.channel
        residues = [each for shape in shapes for each in self.shapes.residues[shape]]
        start = base - self.residue(node)
        rounds = [
            self.modulus * k + residue + start
            for k, residue in zip(quotients, residues, strict=True)
        ]
        left = iter(rounds)
        values = tuple([self.shapes.with_rounds(shape, left) for shape in shapes])
        channel.answers = answers
        edge = self.home.home_edge(node, action, values, 0)
        read = self._rounds_read(shapes, values, rounds)
        tests = [self._test(test, base, start, read) for test in edge.tests]
        for origin in edge.kept:
            i, was = _found(origin, read)
            residue = (was - start) % self.modulus
            tests.append(self._difference((i, residue), (OWN, base - start), was - base))
        return Case(tuple(dict.fromkeys(each for each in tests if each is not None)), edge)

    def _rounds_read(
        self, shapes: tuple[int, ...], values: tuple[int, ...], rounds: Sequence[int]
    ) -> dict[Hashable, tuple[int, int]]:
        """Which of the rounds that were read each origin is, and its number."""
        found: dict[Hashable, tuple[int, int]] = {}
        i = 0
        for shape, value in zip(shapes, values, strict=True):
            for j in range(len(self.shapes.residues[shape])):
                if (value, j) in found:
                    raise NotCovered("two cells that are read at once hold one round")
                found[value, j] = (i, rounds[i])
                i += 1
        return found

    def _test(
        self, test: Any, base: int, start: int, read: dict[Hashable, tuple[int, int]]
    ) -> Test | None:
        """A test as one on quotients; None where its outcome is the same for all of them."""
        name, one, other, result = test
        if name == "%":
            return None  # the modulus divides B, and residues belong to the shape
        if name not in ("==", "<", "-"):
            raise NotCovered(f"a test {name!r} on rounds")
        left, right = (self._place(each, start, read) for each in (one, other))
        if name == "-":
            return self._difference(left, right, result)
        (i, a), (j, b) = left, right
        if i == j:
            return None
        if name == "==":
            if (b - a) % self.modulus:
                return None
            return i, j, "==" if result else "!=", (b - a) // self.modulus
        most = (b - a - 1) // self.modulus
        return (i, j, "<=", most) if result else (i, j, ">", most)

    def _place(
        self, term: Any, start: int, read: dict[Hashable, tuple[int, int]]
    ) -> tuple[int, int]:
        """Which round a term of a test is, and what is added to ``B`` times its quotient."""
        origin, value = term
        if origin is None:
            return OWN, value - start
        i, was = _found(origin, read)
        residue = (was - start) % self.modulus
        return i, residue + value - was

    def _difference(
        self, left: tuple[int, int], right: tuple[int, int], result: int
    ) -> Test | None:
        (i, a), (j, b) = left, right
        if i == j:
            return None
        return i, j, "==", (result - a + b) // self.modulus


def _found(origin: Hashable, read: dict[Hashable, tuple[int, int]]) -> tuple[int, int]:
    """The round of an origin that was read in this step, and its number."""
    if origin not in read:
        raise NotCovered("the cut does not cover a block that is read in several steps")
    return read[origin]


def holds(tests: Sequence[Test], own: Any, read: Sequence[Any]) -> Any:
    """That the quotients pass the tests."""
    found = []
    for i, j, relation, c in tests:
        left, right = (own if each == OWN else read[each] for each in (i, j))
        difference = left - right
        found.append(
            {
                "==": difference == c,
                "!=": difference != c,
                "<=": difference <= c,
                ">": difference > c,
            }[relation]
        )
    return z3.And(found)
