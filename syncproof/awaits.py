"""Code of a protocol file that makes an operation and does not await it: it does nothing.

``core.fence()`` without ``await`` is a fence that the protocol does not have, and its proof would
be one of another kernel; ``if core.load(slot):`` is a condition that always holds.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator

from syncproof.models.core import Core
from syncproof.models.errors import UserError


def awaited_methods() -> frozenset[str]:
    """The methods of `Core` that do nothing unless they are awaited."""
    return frozenset(
        name
        for name, method in vars(Core).items()
        if inspect.isfunction(method)
        and (inspect.iscoroutinefunction(method) or method.__annotations__["return"] == "Operation")
    )


def check_awaits(source: str, where: str) -> None:
    """Refuse a call of an operation, or of a function of the same file that gives one, where what
    it gives is lost: as a statement, or as a condition or a value, of which it would be none."""
    file = _File(ast.parse(source))
    for line, text in sorted(file.left_alone()):
        raise UserError(
            f"{text} is not awaited, so it does nothing",
            where=f"{where}:{line}",
            expected=f"await {text}",
        )


Function = ast.FunctionDef | ast.AsyncFunctionDef
Made = tuple[ast.Call, str]
"""A call of which something has to be awaited, and what is called in words."""


class _File:
    """A file with its functions; ``own`` are those that give what has to be awaited, by name."""

    def __init__(self, tree: ast.Module) -> None:
        self.parents = {
            child: each for each in ast.walk(tree) for child in ast.iter_child_nodes(each)
        }
        self.functions = [each for each in ast.walk(tree) if isinstance(each, Function)]
        self.own: dict[str, Function] = {
            each.name: each for each in self.functions if isinstance(each, ast.AsyncFunctionDef)
        }
        known: set[str] = set()
        while known != {*self.own}:
            known = {*self.own}
            self.own |= {each.name: each for each in self.functions if self._hands_on(each)}

    def left_alone(self) -> Iterator[tuple[int, str]]:
        """The lines on which something is called and its operation is lost.

        As a statement nothing but an operation is likely; a value may be that of a dict's ``get``.
        """
        for function in self.functions:
            likely = _may_be_core if isinstance(function, ast.AsyncFunctionDef) else _is_core
            for call, text in self._made(function, likely):
                if isinstance(self.parents[call], ast.Expr):
                    yield call.lineno, text
            for call, text in self._made(function, _is_core):
                if self._is_lost(call):
                    yield call.lineno, text

    def _made(self, function: Function, of_core: Callable[[ast.arg], bool]) -> Iterator[Made]:
        names = {each.arg for each in function.args.args if of_core(each)} - {"self"}
        for each in ast.walk(function):
            if not isinstance(each, ast.Call):
                continue
            called = each.func
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                whose = called.value.id
                is_operation = whose in names and called.attr in awaited_methods()
                if is_operation or (whose == "self" and called.attr in self.own):
                    yield each, f"{ast.unparse(called)}(...)"
            elif isinstance(called, ast.Name) and self._is_function(called.id):
                yield each, f"{called.id}(...)"

    def _is_function(self, name: str) -> bool:
        """Whether a name is that of a function of ``own``, and not of a method."""
        return name in self.own and not isinstance(self.parents[self.own[name]], ast.ClassDef)

    def _hands_on(self, function: Function) -> bool:
        """Whether a function returns what has to be awaited."""
        calls = [call for call, _ in self._made(function, _is_core)]
        returned = [each for each in calls if isinstance(self.parents[each], ast.Return)]
        return any(self._function_of(each) is function for each in returned)

    def _function_of(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, Function | ast.Lambda):
            node = self.parents[node]
        return node

    def _is_lost(self, node: ast.AST, is_kept: bool = False) -> bool:
        """Whether nobody can await what an expression gives: what is done with it is no await.

        What is returned, kept, or handed to a function may be awaited elsewhere. ``is_kept``: it is
        in a list or a tuple, which may be gone through, put together and chosen from.
        """
        parent = self.parents[node]
        if isinstance(parent, PASSING) or (isinstance(parent, ast.IfExp) and node != parent.test):
            return self._is_lost(parent, is_kept or isinstance(parent, KEEPING))
        if isinstance(parent, ast.BoolOp) and node is parent.values[-1]:
            return self._is_lost(parent, is_kept)
        if is_kept and isinstance(parent, ast.BinOp):
            return self._is_lost(parent, is_kept)
        if is_kept and isinstance(parent, ast.Subscript) and node is parent.value:
            return self._is_lost(parent)
        if isinstance(parent, ast.comprehension):
            return node in parent.ifs
        if isinstance(parent, ast.Call):
            return node is not parent.func and getattr(parent.func, "attr", "") in TRUSTING
        return isinstance(parent, LOSING) and not (is_kept and isinstance(parent, ast.For))


TRUSTING = ("check", "consume")
"""Methods of a core that take a value, which no operation is."""
PASSING = (ast.List, ast.Tuple, ast.Starred, ast.ListComp, ast.NamedExpr)
"""Expressions of which what is inside is lost if they are."""
KEEPING = (ast.List, ast.Tuple, ast.ListComp)
LOSING = (
    ast.Expr, ast.Compare, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.If, ast.While, ast.Assert,
    ast.IfExp, ast.Subscript, ast.FormattedValue, ast.For,
)  # fmt: skip


def _is_core(argument: ast.arg) -> bool:
    """Whether an argument surely is a core, from its name or from what is written of its type."""
    if argument.annotation is None:
        return argument.arg == "core"
    return _type_of(argument) == "Core"


def _may_be_core(argument: ast.arg) -> bool:
    """Whether an argument may be a core, from what is written of its type."""
    return argument.annotation is None or _type_of(argument) in ("Core", "Any")


def _type_of(argument: ast.arg) -> str:
    return ast.unparse(argument.annotation or argument).strip("'\"").rpartition(".")[2]
