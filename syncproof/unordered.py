"""Places of a protocol file that go through a set, the order of which Python draws anew.

Texts, enum members and objects lie in a set by a hash that is another in each run of Python: a
proof would be that of one order, drawn by lot. Numbers that are written out are let pass.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TypeGuard

from syncproof.models.errors import UserError

IN_ORDER = frozenset(
    ("list", "tuple", "enumerate", "zip", "iter", "next", "map", "filter", "str", "repr", "dict")
)
"""Functions whose result tells the order of what they are given."""

OF_ALL = frozenset(("all", "any", "sum", "len", "min", "max", "sorted", "set", "frozenset"))
"""Functions that say the same whatever the order is."""

MAKING_SETS = frozenset(("union", "intersection", "difference", "symmetric_difference", "copy"))

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def check_order(source: str, where: str) -> None:
    """Refuse a file that goes through a set whose elements are not numbers, written out."""
    tree = ast.parse(source)
    shared = _named_sets(_outside_functions(tree), ())
    shared |= {name for name in _named_sets(ast.walk(tree), shared) if "." in name}
    _check(list(_outside_functions(tree)), shared, where)
    for each in ast.walk(tree):
        if isinstance(each, Function):
            inside, others = list(ast.walk(each)), shared - _own_names(each)
            _check(inside, others | _named_sets(inside, others), where)


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for each in ast.iter_child_nodes(tree):
        if not isinstance(each, Function):
            yield each
            yield from _outside_functions(each)


def _own_names(function: Function) -> set[str]:
    """The arguments and variables of a function, which may have the names of others outside."""
    inside = list(_outside_functions(function))
    stored = (each for each in inside if isinstance(each, ast.Name))
    return {each.arg for each in inside if isinstance(each, ast.arg)} | {
        each.id for each in stored if isinstance(each.ctx, ast.Store)
    }


def _named_sets(nodes: Collection[ast.AST] | Iterator[ast.AST], known: Collection[str]) -> set[str]:
    """The variables and attributes that sets are assigned to, as they are written."""
    found: set[str] = set()
    for each in nodes:
        if isinstance(each, ast.Assign | ast.AnnAssign | ast.NamedExpr) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            if _is_set(each.value, {*known, *found}):
                found.update(ast.unparse(target) for target in targets)
    return found


def _check(nodes: list[ast.AST], named: Collection[str], where: str) -> None:
    unordered = {
        id(argument)
        for each in nodes
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in OF_ALL
        for argument in each.args
    }
    for each in nodes:
        if id(each) in unordered or isinstance(each, ast.SetComp):
            continue
        for gone_through in _gone_through(each):
            if _is_set(gone_through, named):
                text = ast.unparse(gone_through)
                raise UserError(
                    f"{text} is gone through, but Python draws the order of a set anew each time",
                    where=f"{where}:{gone_through.lineno}",
                    expected=f"a tuple, or sorted({text})",
                )


def _gone_through(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement or an expression takes the elements of, one after the other."""
    if isinstance(node, ast.For):
        yield node.iter
    elif isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
        yield from (each.iter for each in node.generators)
    elif isinstance(node, ast.Starred | ast.YieldFrom) or _unpacks(node):
        yield node.value
    elif isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Name) and called.id in IN_ORDER:
            yield from node.args
        elif isinstance(called, ast.Attribute):
            if called.attr in ("join", "extend", "fromkeys"):
                yield from node.args
            elif called.attr == "pop" and not node.args:
                yield called.value


def _unpacks(node: ast.AST) -> TypeGuard[ast.Assign]:
    """Whether a statement gives names to elements; of a set of one there is one order."""
    to = node.targets[0] if isinstance(node, ast.Assign) else None
    return isinstance(to, ast.Tuple | ast.List) and len(to.elts) > 1


def _is_set(value: ast.expr, named: Collection[str]) -> bool:
    """Whether an expression is plainly a set, of other things than numbers that are written out."""
    if isinstance(value, ast.Set):
        return not all(map(_is_number, value.elts))
    if isinstance(value, ast.SetComp):
        return True
    if isinstance(value, ast.Name | ast.Attribute):
        return ast.unparse(value) in named
    if isinstance(value, ast.BinOp):
        return _is_set(value.left, named) or _is_set(value.right, named)
    if isinstance(value, ast.IfExp):
        return _is_set(value.body, named) or _is_set(value.orelse, named)
    if isinstance(value, ast.NamedExpr):
        return _is_set(value.value, named)
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute):
        return value.func.attr in MAKING_SETS and _is_set(value.func.value, named)
    is_made = isinstance(value.func, ast.Name) and value.func.id in ("set", "frozenset")
    return is_made and not all(map(_are_numbers, value.args or [value]))


def _are_numbers(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id == "range"
    return isinstance(value, ast.List | ast.Tuple) and all(map(_is_number, value.elts))


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    return isinstance(value, ast.Constant) and type(value.value) in (int, bool)
