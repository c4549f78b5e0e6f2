"""A protocol file that goes through a set is refused: the order is drawn by lot."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncproof.models.errors import UserError
from syncproof.registry import find
from syncproof.unordered import check_order

BEFORE = "class Own:\n    parts = frozenset(NAMES)\n    def memory(self):\n"
BEFORE += "        self.all = {self.slot, self.flag}\n"

IN_ORDER = (
    "for name in {'slot', 'flag'}: put(name)",
    "names = {'slot', 'flag'}; names.add(3); put([name for name in names])",
    "put(list({Kind.DATA, Kind.FLAG}))",
    "for region in self.all: put(region)",
    "for part in parts | {1}: put(part)",
    "first = set(names).pop()",
    "one, two = {'slot', 'flag'}",
    "put(*{'slot', 'flag'})",
    "put({name: 0 for name in set(names)})",
    "for number, name in enumerate({each for each in names}): put(name)",
    "put(' '.join({'slot', 'flag'}))",
)
WHATEVER_THE_ORDER = (
    "for name in sorted({'slot', 'flag'}): put(name)",
    "put('slot' in self.all)",
    "for number in {0, -1}: put(number)",
    "(only,) = {'slot'}",
    "parts = ['slot']; put([part for part in parts])",
    "for number in set(range(4)): put(number)",
    "put(all(name for name in set(names)))",
    "put({name for name in set(names)} == set(others))",
    "names = ['slot', 'flag']; put([name for name in names])",
    "put(len(set(names)), max(set(names)))",
    "seen = set(); put(names.pop(), 3 in seen)",
)


@pytest.mark.parametrize("text", IN_ORDER)
def test_what_goes_through_a_set_is_refused(text: str) -> None:
    """Directly, by a name or an attribute, in a role and outside, with its line."""
    for before in (f"{BEFORE}    async def role(self, core):\n        ", f"{BEFORE}    "):
        with pytest.raises(UserError, match="draws the order of a set anew") as error:
            check_order(before + text, "own.py")
        assert error.value.where == f"own.py:{before.count(chr(10)) + 1}"


def test_an_argument_hides_a_set_of_its_name_only_where_it_is_one() -> None:
    """It may be anything; in the function around a nested one it is still the set."""
    check_order(f"{BEFORE}    def names(self, parts):\n        put(list(parts))", "own.py")
    text = "    def names(self):\n        put(lambda parts: 1); put(list(parts))"
    with pytest.raises(UserError, match="parts is gone through"):
        check_order(f"{BEFORE}{text}", "own.py")


@pytest.mark.parametrize("text", WHATEVER_THE_ORDER)
def test_what_says_the_same_in_any_order_is_not(text: str) -> None:
    """Tests, sums, and numbers, which lie in a set as they always do."""
    check_order(f"{BEFORE}    async def role(self, core):\n        {text}", "own.py")


def test_a_file_is_asked(tmp_path: Path) -> None:
    """As it is loaded, so by every command and every engine."""
    file = tmp_path / "own.py"
    file.write_text("NAMES = tuple({'slot', 'flag'})\n")
    with pytest.raises(UserError, match="gone through"):
        find(str(file))
