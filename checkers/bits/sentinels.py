"""Can a token's bytes equal the sentinel? Which patterns does finite arithmetic never give?

Formats of 16 bits are asked of z3's floating-point theory, those of 8 bits are tried out whole.
Every witness is computed again in exact arithmetic (`Format.encode`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from syncproof.checkers.bits.formats import Format

OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}
"""What a token's elements usually are results of; division is apart, since 0/0 is no number."""


@dataclass(frozen=True)
class Answered:
    """The answer to a yes-or-no question: ``patterns`` are witnesses, none for a proved no."""

    question: str
    holds: bool
    patterns: tuple[int, ...]
    how: str
    text: str


class NotChecked(Exception):
    """A witness of z3 that exact arithmetic does not confirm: an error of ours."""


def apply(format: Format, operation: str, one: int, other: int) -> int:
    """The rounded result of an operation on two finite patterns, in exact arithmetic."""
    a, b = Fraction(format.decode(one)), Fraction(format.decode(other))
    value = OPERATIONS[operation](a, b)
    return format.encode(value, _is_negative_zero(format, operation, one, other))


def _is_negative_zero(format: Format, operation: str, one: int, other: int) -> bool:
    """The sign of an exact result of zero, rounding to nearest (IEEE 754, 6.3)."""
    first, second = one >> (format.bits - 1), other >> (format.bits - 1)
    if operation == "mul":
        return first != second
    return bool(first and (second if operation == "add" else not second))


def free_patterns(format: Format) -> tuple[int, ...]:
    """The patterns that no sum, difference or product of finite values has, proved to be so."""
    if format.bits > 8:
        for operation in OPERATIONS:
            if _nan_from_finite(format, operation):
                return ()
        return tuple(p for p in range(1 << format.bits) if format.is_nan(p))
    given = set(_all_results(format))
    return tuple(p for p in range(1 << format.bits) if p not in given)


def _all_results(format: Format) -> Iterator[int]:
    """What every operation gives on every pair of finite 8-bit values, until nothing is left."""
    finite = [p for p in range(1 << format.bits) if format.is_finite(p)]
    met: set[tuple[Fraction, bool]] = set()
    value = {p: Fraction(format.decode(p)) for p in finite}
    for operation, function in OPERATIONS.items():
        for one in finite:
            for other in finite:
                exact = function(value[one], value[other])
                sign = not exact and _is_negative_zero(format, operation, one, other)
                if (exact, sign) not in met:
                    met.add((exact, sign))
                    yield format.encode(exact, sign)


def _nan_from_finite(format: Format, operation: str) -> bool:
    """Whether some finite values give no number; z3 says so, or that there are none."""
    import z3

    one, other, result = _operation(format, operation)
    solver = z3.Solver()
    solver.add(_finite(one), _finite(other), z3.fpIsNaN(result))
    return _decided(solver) is not None


def _operation(format: Format, operation: str) -> tuple[Any, Any, Any]:
    import z3

    sort = z3.FPSort(format.exponent, format.mantissa + 1)
    one, other = z3.FP("one", sort), z3.FP("other", sort)
    function = {"add": z3.fpAdd, "sub": z3.fpSub, "mul": z3.fpMul}[operation]
    return one, other, function(z3.RNE(), one, other)


def _finite(term: Any) -> Any:
    import z3

    return z3.Not(z3.Or(z3.fpIsNaN(term), z3.fpIsInf(term)))


def _decided(solver: Any) -> Any:
    """A model, or None for a proof that there is none."""
    import z3

    answer = solver.check()
    if answer == z3.unknown:
        raise NotChecked(f"z3 says unknown: {solver.reason_unknown()}")
    return solver.model() if answer == z3.sat else None


def result_with(format: Format, pattern: int) -> tuple[str, int, int] | None:
    """Finite operands and an operation whose result is ``pattern``; None if there are none."""
    for operation in OPERATIONS:
        found = (
            _operands_by_trial(format, operation, pattern)
            if format.bits <= 8
            else _operands_by_z3(format, operation, pattern)
        )
        if found is not None:
            if apply(format, operation, *found) != pattern:
                raise NotChecked(f"{operation} of {found} is not {format.text(pattern)}")
            return (operation, *found)
    return None


def _operands_by_trial(format: Format, operation: str, pattern: int) -> tuple[int, int] | None:
    finite = [p for p in range(1 << format.bits) if format.is_finite(p)]
    pairs = ((a, b) for a in finite for b in finite)
    return next((p for p in pairs if apply(format, operation, *p) == pattern), None)


def _operands_by_z3(format: Format, operation: str, pattern: int) -> tuple[int, int] | None:
    import z3

    one, other, result = _operation(format, operation)
    a, b = z3.BitVecs("a b", format.bits)
    solver = z3.Solver()
    sort = one.sort()
    solver.add(_finite(one), _finite(other), one == z3.fpBVToFP(a, sort))
    solver.add(other == z3.fpBVToFP(b, sort))
    if format.is_nan(pattern):
        solver.add(z3.fpIsNaN(result))
    else:
        solver.add(result == z3.fpBVToFP(z3.BitVecVal(pattern, format.bits), sort))
    model = _decided(solver)
    if model is None:
        return None
    values = [model.eval(each, model_completion=True).as_long() for each in (a, b)]
    return values[0], values[1]


# Questions about one sentinel


def ask_sentinel(format: Format, sentinel: int) -> tuple[Answered, ...]:
    """Everything that decides whether a pattern will do as a sentinel."""
    return (
        _as_bits(format, sentinel),
        _as_result(format, sentinel),
        _compared(format, sentinel, is_flushing=False),
        _compared(format, sentinel, is_flushing=True),
        _notices_itself(format, sentinel),
    )


def _as_bits(format: Format, sentinel: int) -> Answered:
    return Answered(
        "can raw bytes equal the sentinel",
        True,
        (sentinel,),
        "by example",
        f"a token whose elements are all {format.text(sentinel)} is never noticed",
    )


def _as_result(format: Format, sentinel: int) -> Answered:
    question = "can a sum, difference or product of finite values equal the sentinel"
    found = result_with(format, sentinel)
    how = "tried all" if format.bits <= 8 else "z3"
    if found is None:
        return Answered(question, False, (), how, f"no result is {format.text(sentinel)}")
    operation, one, other = found
    text = f"{operation} of {format.text(one)} and {format.text(other)}"
    return Answered(question, True, (one, other), how, text)


def _compared(format: Format, sentinel: int, *, is_flushing: bool) -> Answered:
    """Other patterns that a comparison of numbers takes for the sentinel."""
    name = "with subnormals flushed to zero" if is_flushing else "as numbers"
    question = f"does another pattern compare equal to the sentinel {name}"

    def seen(pattern: int) -> int:
        return format.flushed(pattern) if is_flushing else pattern

    same = tuple(
        pattern
        for pattern in range(1 << format.bits)
        if pattern != sentinel and format.same_value(seen(pattern), seen(sentinel))
    )
    if not same:
        return Answered(question, False, (), "tried all", "only itself")
    shown = ", ".join(format.text(each) for each in same[:3])
    more = f" and {len(same) - 3} more" if len(same) > 3 else ""
    return Answered(question, True, same, "tried all", f"{shown}{more} would never be noticed")


def _notices_itself(format: Format, sentinel: int) -> Answered:
    """A sentinel that differs from itself is taken for a token before anything has landed."""
    question = "does an untouched window differ from the sentinel, compared as numbers"
    differs = not format.same_value(sentinel, sentinel)
    text = "NaN differs from itself: compare bits" if differs else "it is equal to itself"
    return Answered(question, differs, (sentinel,) if differs else (), "tried all", text)
