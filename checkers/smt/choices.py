"""The assignments of the free choices, one for each way in which they may come out.

Which choices there are shows when a role asks for one that is not made: then a table was made in
vain. So once a choice was seen to be asked next behind another that came out so, it is made ahead
the next time, with the options that it had. One that is not asked after all repeats an assignment;
one that is asked among other options is asked again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from syncproof.models.core import Unresolved, expected
from syncproof.models.instance import Choices


class Assignments:
    """What is left to look at, in the order of the options."""

    def __init__(self, first: Iterable[Choices]) -> None:
        self._pending = [dict(each) for each in first]
        self._next: dict[Hashable, Unresolved] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def take(self) -> dict[Hashable, Hashable]:
        """The next assignment, with the choices that will probably be asked for."""
        choices = self._pending.pop(0)
        while (choice := self._next.get(_last(choices))) and choice.name not in choices:
            ahead = {expected(choice.name): choice.values}
            choices, *others = [{**choices, **ahead, choice.name: value} for value in choice.values]
            self._pending[:0] = others
        return choices

    def fork(self, choices: Choices, choice: Unresolved) -> None:
        """Look at each answer to a choice that an assignment does not make."""
        self._next.setdefault(_last(choices), choice)
        about = (choice.name, expected(choice.name))
        others = {name: value for name, value in choices.items() if name not in about}
        self._pending[:0] = [{**others, choice.name: value} for value in choice.values]


def _last(choices: Choices) -> Hashable:
    return next(reversed(tuple(choices.items())), None)


def made(choices: Choices) -> dict[Hashable, Hashable]:
    """The same assignment without what is only expected to be asked for."""
    ahead = {expected(name) for name in choices}
    return {name: value for name, value in choices.items() if name not in ahead}
