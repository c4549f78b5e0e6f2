"""Assignments of free choices that are guessed ahead are all that there are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

import pytest

from syncproof.checkers.smt.choices import Assignments, made
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core, Unresolved, expected
from syncproof.models.values import typed

Choose = Callable[[Hashable, tuple[Hashable, ...]], Hashable]


def independent(choose: Choose) -> None:
    for name in "abcd":
        choose(name, (0, 1, 2))


def fewer_options(choose: Choose) -> None:
    """What may be chosen depends on an earlier choice."""
    left = 3
    for name in "abc":
        took = choose(name, tuple(range(left + 1)))
        assert isinstance(took, int)
        left -= took
        if not left:
            return


def other_names(choose: Choose) -> None:
    """Which choices there are depends on an earlier one, not only on the last."""
    first = choose("a", (False, True))
    choose("b", (0, 1))
    for name in "cd" if first else "dc":
        if choose(name, (0, 1)) and first:
            return


def core_with(choices: Mapping[Hashable, Hashable]) -> Core:
    return Core("r", 0, 0, 1, Bounds(), {}, choices, lambda _: None)


def one_by_one(program: Callable[[Choose], None]) -> list[dict[Hashable, Hashable]]:
    """Every way through a program, asked for one choice after the other."""
    found, pending = [], [dict[Hashable, Hashable]()]
    while pending:
        choices = pending.pop(0)
        try:
            program(core_with(choices).choose)
            found.append(choices)
        except Unresolved as choice:
            pending[:0] = [{**choices, choice.name: value} for value in choice.values]
    return found


@pytest.mark.parametrize("program", [independent, fewer_options, other_names])
def test_each_way_is_looked_at(program: Callable[[Choose], None]) -> None:
    """Whatever is guessed ahead, each way through a program is taken, and few of them again."""
    ways = one_by_one(program)
    taken, tries = [], 0
    pending = Assignments([{}])
    while pending:
        choices, asked = pending.take(), dict[Hashable, Hashable]()
        tries += 1
        core = core_with(choices)

        def choose(
            name: Hashable,
            options: tuple[Hashable, ...],
            core: Core = core,
            asked: dict[Hashable, Hashable] = asked,
        ) -> Hashable:
            asked[name] = core.choose(name, options)
            return asked[name]

        try:
            program(choose)
            assert asked.items() <= made(choices).items()
            taken.append(asked)
        except Unresolved as choice:
            pending.fork(choices, choice)
    assert {typed(tuple(each.items())) for each in taken} == {
        typed(tuple(each.items())) for each in ways
    }
    assert len(taken) < 3 * len(ways)
    if program is independent:
        assert len(taken) == 81 and tries < 100  # one by one it takes 121


def test_other_options_than_expected_are_asked_again() -> None:
    """An answer that was made ahead does not hide that there are more options."""
    core = core_with({"a": 0, expected("a"): (0, 1)})
    assert core.choose("a", (0, 1)) == 0
    with pytest.raises(Unresolved) as found:
        core.choose("a", (0, 1, 2))
    assert found.value.values == (0, 1, 2)
