"""The per-hop bound ceil(V_h / n): when the printed remapping keeps it, and a proof of the fix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import z3

from syncproof.checkers.scheduler.question import Hop


def breaking_counts(
    order: Sequence[int], hops: Sequence[Hop], cores: int, tokens: int
) -> tuple[int, ...] | None:
    """A routing in which the first core's contiguous slice breaks the bound, or None if none can.

    The exact condition for one contiguous slice a core, over all routings of ``tokens`` tokens:
    the bound is kept by all of them if and only if there is one core, or one hop class, or at
    most one token a core. Otherwise give two tokens to the first expert in the order and the
    rest to one of another class: the first slice has ceil(m / n) >= 2 tokens, so both of that
    class, of which ceil(2 / n) = 1 is allowed.
    """
    other = next((expert for expert in order if hops[expert] != hops[order[0]]), None)
    if cores == 1 or tokens <= cores or other is None:
        return None
    counts = [0] * len(order)
    counts[order[0]] = 2
    counts[other] = tokens - 2
    return tuple(counts)


def load_keeps_the_bound(cores: int, tokens: int, classes: int, greatest_load: int) -> bool:
    """Whether no routing of ``tokens`` tokens can break the bound, by the loads alone (z3).

    A core's tokens of a class are at most its load and at most the class's tokens V, and V is all
    tokens where there is one class. Unsatisfiable in each of the cases of ``breaking_counts``.
    """
    of_class, all_of_class, bound = z3.Ints("of_class all_of_class bound")
    domain = [of_class >= 0, of_class <= greatest_load, of_class <= all_of_class]
    domain += [all_of_class <= tokens, *([all_of_class == tokens] if classes == 1 else [])]
    domain += [cores * bound >= all_of_class, cores * (bound - 1) < all_of_class]
    return _unsat(*domain, of_class > bound)


@dataclass(frozen=True)
class Staggered:
    """What holds of staggered slices for every number of cores, classes and tokens."""

    within_bound: bool
    meets: bool
    loads: bool


def _unsat(*constraints: z3.BoolRef) -> bool:
    solver = z3.Solver()
    solver.add(*constraints)
    answer = solver.check()
    if answer == z3.unknown:
        raise RuntimeError(f"z3 does not decide: {solver.reason_unknown()}")
    return bool(answer == z3.unsat)


Before = Callable[[z3.ArithRef, z3.ArithRef, z3.ArithRef], z3.ArithRef]


def before(core: z3.ArithRef, turns_core: z3.ArithRef, rest: z3.ArithRef) -> z3.ArithRef:
    """``dealt_before``: of ``turns * n + rest`` tokens dealt, those of the cores below ``core``."""
    return turns_core + z3.If(rest < core, rest, core)


def staggered(before: Before = before) -> Staggered:
    """Prove, without bound, what staggered slices promise; ``before`` can be replaced by a fault.

    ``within_bound``: floor(V / n) <= share <= ceil(V / n) for each block of V tokens, wherever it
    starts. ``meets``: the first core starts at the block's first token, the last ends at its last,
    and each core ends where the next one, by its own computation, starts. ``loads``: over all
    blocks together a core's shares are its share of the whole (the sum telescopes), so loads are
    floor(m / n) or ceil(m / n) as well.
    """
    return Staggered(_within_bound(before), _meets(before), _telescopes())


def _within_bound(before: Before) -> bool:
    """A block from a = u n + r to b = w n + s holds V = (w - u) n + (s - r) tokens.

    ``u core`` and ``w core`` are terms of their own; ``u (core + 1)`` is ``u core + u``. A bound of
    ``w - u + excess`` times n is ``(w - u) n + product`` with product = excess * n, of which only
    the rules of ``product_rules`` are used.
    """
    n, core, u, w, r, s, u_core, w_core = z3.Ints("n core u w r s u_core w_core")
    excess, product = z3.Ints("excess product")
    share = (before(core + 1, w_core + w, s) - before(core + 1, u_core + u, r)) - (
        before(core, w_core, s) - before(core, u_core, r)
    )
    domain = [n >= 1, core >= 0, core < n, r >= 0, r < n, s >= 0, s < n, u >= 0, u <= w]
    domain += [z3.Or(w > u, s >= r), *product_rules(n, excess, product)]
    beyond = product - (s - r)
    ceiling = [beyond >= 0, beyond < n]
    floor = [beyond <= 0, beyond > -n]
    return _unsat(*domain, *ceiling, share > w - u + excess) and _unsat(
        *domain, *floor, share < w - u + excess
    )


def product_rules(
    n: z3.ArithRef, excess: z3.ArithRef, product: z3.ArithRef
) -> tuple[z3.BoolRef, ...]:
    """Linear consequences of ``product == excess * n`` for n >= 1 (see ``product_rules_hold``)."""
    return (
        z3.Implies(excess == 0, product == 0),
        z3.Implies(excess == 1, product == n),
        z3.Implies(excess >= 2, product >= 2 * n),
        z3.Implies(excess == -1, product == -n),
        z3.Implies(excess <= -2, product <= -2 * n),
    )


def product_rules_hold() -> bool:
    """Whether z3's nonlinear arithmetic proves each of the rules for all integers, n >= 1."""
    n, excess = z3.Ints("n excess")
    rules = product_rules(n, excess, excess * n)
    return all(_unsat(n >= 1, z3.Not(rule)) for rule in rules)


def _meets(before: Before) -> bool:
    """Core 0 starts at 0, core n - 1 ends at a = u n + r, and the edges between are the same."""
    n, core, after, u, r, u_core, u_after, u_n = z3.Ints("n core after u r u_core u_after u_n")
    domain = [n >= 1, r >= 0, r < n, u >= 0]
    first = _unsat(*domain, before(z3.IntVal(0), z3.IntVal(0), r) != 0)
    last = _unsat(*domain, before(n, u_n, r) != u_n + r)
    neighbours = [core >= 0, after == core + 1, after < n, u_after == u_core + u]
    between = _unsat(
        *domain, *neighbours, before(core + 1, u_core + u, r) != before(after, u_after, r)
    )
    return first and last and between


def _telescopes() -> bool:
    """One more block: shares so far (before(b) - before(0)) plus its share is before(c)."""
    so_far, at_b, at_c, at_0 = z3.Ints("so_far at_b at_c at_0")
    return _unsat(so_far == at_b - at_0, so_far + (at_c - at_b) != at_c - at_0)
