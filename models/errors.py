"""Errors that a user can mend; everything else is a bug of ours and keeps its traceback."""

from __future__ import annotations


class UserError(Exception):
    """Something the user gave cannot be used.

    ``what`` is wrong, ``where`` (a file, a line, an option), what was ``expected``. The command
    line prints it as one line and ends with exit code 2.
    """

    def __init__(self, what: str, *, where: str = "", expected: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.expected = what, where, expected

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        expected = f" ({self.expected})" if self.expected else ""
        return " ".join(f"{where}{self.what}{expected}".split())
