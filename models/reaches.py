"""The places that a protocol's roles name with ``core.reach("...")``."""

from __future__ import annotations

import ast
import inspect
import textwrap

from syncproof.models.protocol import Protocol


def declared_reaches(kind: type[Protocol]) -> tuple[str, ...]:
    """Every literal name in a call of ``reach`` in the source of the protocol's roles."""
    found: list[str] = []
    for role in kind.roles():
        try:
            source = textwrap.dedent(inspect.getsource(role.function))
        except OSError:
            continue
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "reach"
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                found.append(str(node.args[0].value))
    return tuple(dict.fromkeys(found))
