"""Statements of a protocol file that make an operation and do not await it: they do nothing.

``core.fence()`` without ``await`` is a fence that the protocol does not have, and its proof would
be one of another kernel.
"""

from __future__ import annotations

import ast
import inspect

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
    """Refuse a call of an operation, or of an async function of the same file, left as it is."""
    tree = ast.parse(source)
    own = {each.name for each in ast.walk(tree) if isinstance(each, ast.AsyncFunctionDef)}
    for function in ast.walk(tree):
        if isinstance(function, ast.AsyncFunctionDef):
            for line, text in _left_alone(function, own):
                raise UserError(
                    f"{text} is not awaited, so it does nothing",
                    where=f"{where}:{line}",
                    expected=f"await {text}",
                )


def _left_alone(function: ast.AsyncFunctionDef, own: set[str]) -> list[tuple[int, str]]:
    """The lines of a function on which something is called and its operation is lost."""
    names = {each.arg for each in function.args.args if _may_be_core(each)}
    found = []
    for each in ast.walk(function):
        call = each.value if isinstance(each, ast.Expr) else None
        if not isinstance(call, ast.Call):
            continue
        called = call.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            is_operation = called.attr in awaited_methods() and called.value.id in names - {"self"}
            if is_operation or (called.value.id == "self" and called.attr in own):
                found.append((call.lineno, f"{ast.unparse(called)}(...)"))
        elif isinstance(called, ast.Name) and called.id in own:
            found.append((call.lineno, f"{called.id}(...)"))
    return sorted(found)


def _may_be_core(argument: ast.arg) -> bool:
    """Whether an argument may be a core, from what is written of its type."""
    if argument.annotation is None:
        return True
    return ast.unparse(argument.annotation).strip("'\"").rpartition(".")[2] in ("Core", "Any")
