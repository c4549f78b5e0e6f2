"""A place of a state: positions that change together, and the contents that they were met with."""

from __future__ import annotations

from collections.abc import Sequence

Content = tuple[int, ...]


class Place:
    """Positions of a state that change together, and the contents that they were met with."""

    def __init__(self, positions: tuple[int, ...]) -> None:
        self.positions = positions
        self.contents: list[Content] = []
        self._code: dict[Content, int] = {}
        self.bits = self.word = self.shift = 0

    def of(self, state: Sequence[int]) -> Content:
        """The content in a state."""
        return tuple([state[position] for position in self.positions])

    def code(self, content: Content) -> int:
        """The number of a content."""
        found = self._code.get(content)
        if found is None:
            found = self._code[content] = len(self.contents)
            self.contents.append(content)
        return found

    def known(self, content: Content) -> int | None:
        """The number of a content, if it was met."""
        return self._code.get(content)

    @property
    def needed(self) -> int:
        """The bits that its contents need so far."""
        return (len(self.contents) - 1).bit_length() if self.contents else 0
