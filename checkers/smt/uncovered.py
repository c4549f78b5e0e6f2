"""What the encoding does not cover: said by name, with its line and the engine that does."""

from __future__ import annotations


class Uncovered(Exception):
    """A construct that the formula cannot say; ``where`` is its line, if it has one."""

    def __init__(self, what: str, where: str, engine: str = "reference") -> None:
        at = f" ({where})" if where else ""
        super().__init__(f"not in the encoding: {what}{at}; --engine {engine} can decide it")
        self.what, self.where, self.engine = what, where, engine
