"""Gate files: what is read from them, what is made of it, and what is refused, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from syncproof.gate.file import json_schema, read_gate, shipped_gate
from syncproof.gate.obligations import MOST, Task, tasks_of
from syncproof.models.errors import UserError


def tasks(text: str, folder: Path) -> list[Task]:
    """The tasks of a gate file with this content."""
    (folder / "g.yaml").write_text(text)
    return tasks_of(read_gate(folder / "g.yaml"))


def names(text: str, folder: Path) -> list[str]:
    return [each.obligation.name for each in tasks(text, folder)]


# What is made of it


def test_lists_and_ranges_are_multiplied_out(tmp_path: Path) -> None:
    """One obligation for each combination, in the order in which they are written."""
    text = "obligations: [{protocol: sp, ranks: [2, 4..5], set: {windows: [1, 2]}}]"
    found = tasks(text, tmp_path)
    assert [(t.request.ranks, t.request.settings) for t in found] == [
        (ranks, (f"windows={windows}",)) for ranks in (2, 4, 5) for windows in (1, 2)
    ]


def test_rounds_may_be_unbounded_beside_numbers(tmp_path: Path) -> None:
    """``unbounded`` alone or in a list with numbers and ranges, by name and in the command."""
    found = tasks("obligations: [{protocol: sp, rounds: [1..2, unbounded]}]", tmp_path)
    assert [t.request.rounds for t in found] == [1, 2, "unbounded"]
    assert found[-1].obligation.name == "sp rounds=unbounded"
    assert "--rounds unbounded" in found[-1].obligation.command
    (alone,) = tasks("obligations: [{protocol: sp, ranks: any}]", tmp_path)
    assert alone.request.ranks == "any" and "--ranks any" in alone.obligation.command
    (alone,) = tasks("obligations: [{protocol: sp, rounds: unbounded}]", tmp_path)
    assert alone.request.unbounded


def test_defaults_are_filled_in_and_yield(tmp_path: Path) -> None:
    """Keys of ``defaults`` hold where an obligation does not say otherwise; settings are joined."""
    text = (
        "defaults: {protocol: sp, rounds: 5, fabric: sc, set: {counts: no}, budget: {states: 9}}\n"
        "obligations: [{ranks: 3, fabric: nvlink, set: {windows: 1}, budget: {seconds: 2}}]"
    )
    (task,) = tasks(text, tmp_path)
    request = task.request
    assert (request.protocol, request.ranks, request.rounds) == ("sp", 3, 5)
    assert (request.fabric, request.settings) == ("nvlink", ("counts=no", "windows=1"))
    assert (request.budget_states, request.budget_seconds) == (9, 2.0)


def test_every_key_reaches_the_question(tmp_path: Path) -> None:
    """Nothing that is written is lost on the way."""
    text = (
        "obligations: [{protocol: k.py, ranks: 2, tokens: 3, rounds: 4, experts: 6, topk: 1,"
        " routing: r.yaml, fabric: 'sc,in_flight=3', engine: reference, set: {a: yes, b: x},"
        " drop: [c], properties: [checks], budget: {memory: 2G}, expect: {checks: violated},"
        f" at: load, kernels: [{{file: k.cu, sha256: '{'0' * 64}'}}]}}]"
    )
    (task,) = tasks(text, tmp_path)
    request, obligation = task.request, task.obligation
    assert (request.ranks, request.tokens, request.rounds) == (2, 3, 4)
    assert (request.experts, request.topk, request.routing) == (6, 1, "r.yaml")
    assert (request.fabric, request.engine) == ("sc,in_flight=3", "reference")
    assert (request.settings, request.dropped) == (("a=yes", "b=x"), ("c",))
    assert (request.properties, request.memory) == (("checks",), "2G")
    assert dict(obligation.expected) == {"checks": "violated"}
    assert (obligation.at, obligation.kernels[0].file) == ("load", "k.cu")
    assert (obligation.line, obligation.command) == (1, request.command())


def test_mutants_must_be_refuted_unless_it_says_otherwise(tmp_path: Path) -> None:
    """What is left out is expected to be missed; everything else to be proved."""
    found = tasks("obligations: [{protocol: sp}, {protocol: sp, mutants: all}]", tmp_path)
    assert [dict(each.obligation.expected) for each in found] == [{"": "proved"}, {"": "violated"}]


def test_names_tell_what_is_asked(tmp_path: Path) -> None:
    """The keys that an entry gives and the default keys with several values."""
    text = (
        "defaults: {rounds: [1, 2], routing: all}\n"
        "obligations: [{protocol: sp, ranks: 2, drop: [x]}, {name: mine, protocol: sw, ranks: 3}]"
    )
    assert names(text, tmp_path) == [
        "sp ranks=2 rounds=1 without x",
        "sp ranks=2 rounds=2 without x",
        "mine rounds=1",
        "mine rounds=2",
    ]


def test_shipped_file_fits_its_schema() -> None:
    """The schema is one, the shipped obligations are valid, and there are enough of them."""
    Draft202012Validator.check_schema(json_schema())
    data = yaml.safe_load(shipped_gate().read_text())
    Draft202012Validator(json_schema()).validate(data)
    found = tasks_of(read_gate(shipped_gate()))
    proved = {(t.request.protocol, t.request.ranks) for t in found if not t.mutants}
    for name in ("sp", "sw", "tff", "bsp", "cumsum", "ubep"):
        assert {(name, 2), (name, 3), (name, 8)} <= proved


# What is refused

HEAD = "obligations:\n  - protocol: sp\n"
REFUSED = (
    (f"{HEAD}    rank: 2\n", r"g\.yaml:3:5: unknown key 'rank' \(perhaps ranks"),
    (f"{HEAD}defalts: {{}}\n", r"g\.yaml:3:1: unknown key 'defalts' \(perhaps defaults"),
    (f"{HEAD}    ranks: two\n", r"g\.yaml:3:5: ranks is 'two' \(a whole number from 1 on"),
    (f"{HEAD}    ranks: 0\n", r"g\.yaml:3:5: ranks is 0 \(a whole number"),
    (f"{HEAD}    ranks: []\n", r"g\.yaml:3:5: ranks is an empty list \("),
    (f"{HEAD}    ranks: 1.5\n", r"g\.yaml:3:5: ranks is 1\.5 \("),
    (f"{HEAD}    ranks: 8..2\n", r"g\.yaml:2:5: the range 8\.\.2 \(such as 2\.\.8"),
    (f"{HEAD}    ranks: 1..999999999\n", r"g\.yaml:2:5: the range 1\.\.999999999"),
    (f"{HEAD}    ranks: 1..9000\n    tokens: 1..9000\n", r"g\.yaml:2:5: more than 10000"),
    (f"{HEAD}    expect: prooved\n", r"g\.yaml:3:5: expect is 'prooved' \(proved, violated,"),
    (
        f"{HEAD}    expect: {{happens-befor: proved}}\n",
        r"g\.yaml:3:14: no property 'happens-befor' \(perhaps happens-before",
    ),
    (
        f"{HEAD}    expect: {{hang: proved}}\n",
        r"g\.yaml:3:14: no property 'hang' \(one of deadlock-free,",
    ),
    (
        f"{HEAD}    expect: {{checks: prove}}\n",
        r"g\.yaml:3:14: checks is 'prove' \(proved, violated",
    ),
    (
        f"{HEAD}    properties: [race-fre]\n",
        r"g\.yaml:3:18: no property 'race-fre' \(perhaps race-free",
    ),
    (f"{HEAD}    ranks: [2, two]\n", r"g\.yaml:3:16: ranks is 'two' \(a whole number"),
    (
        f"{HEAD}    rounds: unbound\n",
        r"g\.yaml:3:5: rounds is 'unbound' \(a whole .* such as 2\.\.8, unbounded, or a list",
    ),
    (f"{HEAD}    ranks: unbounded\n", r"g\.yaml:3:5: ranks is 'unbounded' \(a whole number"),
    (f"{HEAD}    budget: {{seconds: 0}}\n", r"g\.yaml:3:14: seconds is 0 \(a number above 0"),
    (f"{HEAD}    budget: {{second: 1}}\n", r"g\.yaml:3:14: unknown key 'second' \(perhaps sec"),
    (f"{HEAD}    set: [a]\n", r"g\.yaml:3:5: set is a list \(a mapping of the protocol's"),
    (f"{HEAD}    drop: x\n", r"g\.yaml:3:5: drop is 'x' \(a list of assumptions"),
    (f"{HEAD}    at: load\n", r"g\.yaml:2:5: at without a violation"),
    (f"{HEAD}    kernels: [{{file: k}}]\n", r"g\.yaml:3:15: no sha256 \(a mapping with file"),
    (f"{HEAD}    kernels: [{{file: k, sha256: '0'}}]\n", r"g\.yaml:3:25: sha256 is '0' \(64"),
    (f"{HEAD}    ranks: 2\n    ranks: 3\n", r"g\.yaml:4: ranks is given twice"),
    (f"{HEAD}  - protocol: sp\n", r"g\.yaml:3:5: 'sp' is also what line 2 asks"),
    (f"{HEAD}  - ranks: 2\n", r"g\.yaml:3:5: no protocol \(protocol: NAME"),
    (f"{HEAD}  - sp\n", r"g\.yaml:3:5: obligations is 'sp' \(a mapping such as"),
    ("obligations: []\n", r"g\.yaml:1:1: obligations is an empty list \(a list of obl"),
    ("obligations: [\n", r"g\.yaml:2:1: malformed YAML"),
    ("defaults: {}\n", r"g\.yaml:1:1: no obligations \(a mapping with a list"),
    ("[1, 2]\n", r"g\.yaml:1:1: a list \(a mapping with a list"),
    ("", r"g\.yaml: is empty"),
    ("!!python/object/apply:os.getcwd []", r"g\.yaml:1:1: malformed YAML"),
    ("obligations: &a [*a]\n", r"a value that holds itself"),
)


@pytest.mark.parametrize(("text", "pattern"), REFUSED, ids=[each[1] for each in REFUSED])
def test_mistake_is_told_with_line_and_column(text: str, pattern: str, tmp_path: Path) -> None:
    """Unknown keys, wrong types and all that cannot be meant, and what would be right."""
    with pytest.raises(UserError, match=pattern) as refused:
        tasks(text, tmp_path)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    """A short file that means a billion values costs nothing."""
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    with pytest.raises(UserError, match="more than 100000 values"):
        tasks("\n".join(layers), tmp_path)


def test_first_mistake_of_a_file_is_the_one_that_is_told(tmp_path: Path) -> None:
    """By line, not by what the validator happens to meet first."""
    text = f"{HEAD}    ranks: x\n    zzz: 1\n  - protocol: 5\n"
    with pytest.raises(UserError, match=r"g\.yaml:3:5"):
        tasks(text, tmp_path)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b" " * (2 << 20)])
def test_what_is_no_text_is_refused(content: bytes | None, tmp_path: Path) -> None:
    """A file that is not there, not UTF-8 or far too long."""
    if content is not None:
        (tmp_path / "g.yaml").write_bytes(content)
    with pytest.raises(UserError, match=r"g\.yaml: "):
        read_gate(tmp_path / "g.yaml")


def test_most_obligations_is_what_the_message_says() -> None:
    """The bound of the test above is the code's."""
    assert MOST == 10_000
