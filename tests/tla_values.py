"""Values of TLA+ states as the tools write them, for what the project only reads."""

from __future__ import annotations

from typing import Any


def printed(value: Any) -> str:
    """A value as TLC prints it."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return "<<" + ", ".join(map(printed, value)) + ">>"
    if isinstance(value, frozenset):
        return "{" + ", ".join(map(printed, value)) + "}"
    if isinstance(value, dict):
        return "(" + " @@ ".join(f"{printed(k)} :> {printed(v)}" for k, v in value.items()) + ")"
    return str(value)


def as_itf(value: Any) -> Any:
    """A value as ITF has it (ADR-015)."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, tuple):
        return {"#tup": [as_itf(each) for each in value]}
    if isinstance(value, frozenset):
        return {"#set": [as_itf(each) for each in value]}
    if isinstance(value, dict):
        return {"#map": [[as_itf(k), as_itf(v)] for k, v in value.items()]}
    return {"#bigint": str(value)}
