"""What the user can mend: exit code 2 and one line: what, where, and what would be right."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from syncproof.cli import run

DATA = Path(__file__).parent / "data"

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def where_the_data_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are run in the folder of the planted protocols."""
    monkeypatch.chdir(DATA)


def refused(command: str, pattern: str, capsys: Captured) -> None:
    """The command is refused by exit code 2 and one line that fits ``pattern``."""
    assert run(shlex.split(command)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1 and said.err.endswith("\n")
    assert re.search(pattern, said.err), said.err


COMMANDS = (
    ("spp", r"no protocol 'spp' \(.*\bsp\b"),
    ("lst", r"no protocol 'lst' \(.*\blist\b"),
    ("''", r"no protocol '' \(.*\bsp\b.*FILE\.py"),
    ("doorbel.py", r"doorbel\.py: there is no such file \(perhaps doorbell\.py"),
    ("planted.py", r"planted\.py: \d+ protocols: Hangs, .*planted\.py:Hangs"),
    ("planted.py:Hang", r"planted\.py: no class 'Hang' \(Hangs"),
    ("planted.py:NoProtocol", r"planted\.py:NoProtocol: a class that is no protocol"),
    ("planted.py:counter", r"planted\.py:counter: a count that is no protocol"),
    ("planted.py:NoRole", r"planted\.py:NoRole: a protocol without a role \(.*@role"),
    ("sp --ranks 0", r"--ranks: ranks 0 is out of range \(1 to"),
    ("sp --ranks -1", r"--ranks: ranks -1 is out of range \(1 to"),
    ("sp --ranks 1000000000", r"--ranks: ranks 1000000000 is out of range \(1 to"),
    ("sp --ranks two", r"'--ranks': 'two' is neither a whole number nor 'any'"),
    ("sp --ranks", r"Option '--ranks' requires an argument"),
    ("sp --rounds 0", r"--rounds: rounds 0 is out of range"),
    ("sp --tokens 0", r"--tokens: tokens 0 is out of range"),
    ("sp --experts 3", r"--experts: 3 experts do not spread .* \(a multiple of 2"),
    ("sp --rank 2", r"No such option:? '?--rank\b.*--ranks"),
    ("sp --set window=1", r"--set: sp has no parameter 'window' \(windows"),
    ("sp --set windows", r"--set: 'windows' has no value \(NAME=VALUE"),
    ("sp --set windows=two", r"--set: windows is 'two' \(a whole number"),
    ("sp --set windows=0", r"--set: windows is 0 \(at least 1"),
    ("sp --set reserved_sentinel=no", r"--set: .* \(--drop reserved_sentinel\)"),
    ("sp --drop sentinel", r"--drop: sp has no assumption 'sentinel' \(.*reserved_sentinel"),
    (
        "planted.py:Hangs --ranks any",
        r"--ranks any does not cover .* at planted\.py:\d+",
    ),
    ("doorbell.py --drop x", r"--drop: Doorbell has no assumption 'x' \(it has no assumptions"),
    ("sp --property deadlock", r"--property: no property 'deadlock' \(deadlock-free"),
    ("doorbell.py --mutant no-fence", r"--mutant: no mutant 'no-fence' \(.*no-fence@doorbell\.py"),
    ("sp --engine fats", r"--engine: no engine 'fats' \(auto or reference"),
    ("sp --engine reduced --full", r"--full: --full together with --engine reduced"),
    ("sp --fabric cm348", r"--fabric: no fabric 'cm348' \(perhaps cm384"),
    ("sp --fabric cm384,atomicity=8", r"unknown key 'atomicity' \(perhaps .*atomicity"),
    ("sp --fabric cm384,ordering=some", r"ordering is 'some' \(none or"),
    ("sp --memory 4", r"--memory: size '4' \(such as 800M"),
    ("sp --budget-states 0", r"'--budget-states': 0 is not in the range x>=1"),
    ("sp --budget-seconds -1", r"'--budget-seconds': -1\.0 is not in the range x>0"),
    ("sp --routing some", r"--routing: routing 'some' \(all, balanced or FILE\.yaml"),
    ("sp --routing no.yaml", r"no\.yaml: cannot be read: No such file"),
    ("sp --json /no/such/v.json", r"--json: there is no folder /no/such \(a file in a folder"),
    ("sp --trace .", r"--trace: \. is a folder"),
    ("sp --json - --trace -", r"--json and --trace are one file"),
    ("show no.json", r"no\.json: cannot be read: No such file"),
    ("replay no.json", r"no\.json: cannot be read: No such file"),
    ("replay", r"Missing argument 'TRACE\.json'"),
    ("init doorbell.py", r"doorbell\.py: exists already \(a new file"),
    ("init kernel.cu", r"kernel\.cu: is no Python file \(a name that ends in \.py"),
    ("init no/such/kernel.py", r"init: there is no folder no/such"),
)


@pytest.mark.parametrize(("command", "pattern"), COMMANDS, ids=[each[0] for each in COMMANDS])
def test_bad_command_is_one_line(command: str, pattern: str, capsys: Captured) -> None:
    """A command that cannot be meant is refused with what would be right."""
    refused(command, pattern, capsys)


FAULTS = (
    ("Outside", "[99]", r"flag\[0\]\[99\] is outside \(indices below"),
    ("Unhashable", "[1, 2]", "a value is or holds a list, which may be changed in place"),
    ("Raises", "1 // (", r"the role rank raised ZeroDivisionError"),
    ("Exits", "sys.exit(0)", r"Exits raised SystemExit"),
    ("BadMemory", "Region(index=wrong)", r"BadMemory raised TypeError"),
)


@pytest.mark.parametrize(("name", "source", "pattern"), FAULTS, ids=[each[0] for each in FAULTS])
def test_fault_in_a_protocol_names_its_line(
    name: str, source: str, pattern: str, capsys: Captured
) -> None:
    """What is wrong in a role or in memory is told with file and line."""
    lines = (DATA / "planted.py").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if source in text)
    refused(f"planted.py:{name}", rf"planted\.py:{line}: {pattern}", capsys)


@pytest.mark.parametrize("engine", ["auto", "reference", "reduced"])
def test_role_that_is_not_deterministic_is_refused(engine: str, capsys: Captured) -> None:
    """A role that does something else when it runs again cannot be checked by any engine."""
    command = f"planted.py:NotDeterministic --engine {engine}"
    refused(command, "not deterministic|changes what other roles and runs see", capsys)


@pytest.mark.parametrize("engine", ["reference", "reduced", "smt"])
@pytest.mark.parametrize("members", ["p.rank == 0", "False"])
def test_sync_of_a_group_of_others_is_refused(
    engine: str, members: str, tmp_path: Path, capsys: Captured
) -> None:
    """A process at a sync of a group without it is a slip, no hang of the model and no error of
    ours; so is a group of nobody."""
    text = ROLE + "    async def f(self, core): await core.sync('some')\n"
    (tmp_path / "x.py").write_text(
        f"{text}    def groups(self): return {{'some': lambda p: {members}}}\n"
    )
    command = f"{tmp_path / 'x.py'} --engine {engine}"
    refused(command, r"x\.py:4: f@rank\d comes to a sync of the group 'some', which", capsys)


ROLE = "from syncproof.models.protocol import Protocol, role\nclass X(Protocol):\n    @role\n"
FILES = (
    ("def f(:\n", r"x\.py:1: does not parse: invalid syntax"),
    ("\nimport nothing_like_it\n", r"x\.py:2: does not import: ModuleNotFoundError: No module"),
    ("import sys\nsys.exit(3)\n", r"x\.py:2: does not import: SystemExit: 3"),
    ("x = 1\n", r"x\.py: no protocol \(a subclass of Protocol with an @role"),
    (f"{ROLE}    def f(self, core): pass\n", r"x\.py:\d: .*role X\.f is not a coroutine"),
    ("\0", r"x\.py:1: does not parse: .*null bytes"),
)


@pytest.mark.parametrize(("text", "pattern"), FILES, ids=[each[1] for each in FILES])
def test_bad_protocol_file_is_one_line(
    text: str, pattern: str, tmp_path: Path, capsys: Captured
) -> None:
    """A user's file that cannot be used is refused with its line."""
    (tmp_path / "x.py").write_text(text)
    refused(str(tmp_path / "x.py"), pattern, capsys)


SETTINGS = (
    ("--routing", "[[1,\n", r"x\.yaml:2:1: malformed YAML"),
    ("--routing", "[[[1]]]", r"the routing table has the wrong shape \(\[round\]\[source\]"),
    ("--routing", "[[[0, 9], [9, 0]]]", r"out of range \(0 to 1"),
    ("--routing", "a: 1", r"x\.yaml: .* is no list \(a list of rounds"),
    ("--routing", "[[[0.5]]]", r"x\.yaml: 0\.5 tokens \(a whole number"),
    ("--routing", "!!python/object/apply:os.getcwd []", r"x\.yaml:1:1: malformed YAML"),
    ("--fabric", "a: [\n", r"x\.yaml:2:1: malformed YAML"),
    ("--fabric", "atomicity: 8\n", r"x\.yaml: unknown key 'atomicity'"),
    ("--fabric", "store_atomicity: wide\n", r"x\.yaml: store_atomicity is 'wide' \(a whole"),
)


@pytest.mark.parametrize(("option", "text", "pattern"), SETTINGS)
def test_bad_yaml_is_one_line(
    option: str, text: str, pattern: str, tmp_path: Path, capsys: Captured
) -> None:
    """A routing or fabric file that cannot be used is refused with its place."""
    (tmp_path / "x.yaml").write_text(text)
    refused(f"sp {option} {tmp_path / 'x.yaml'}", pattern, capsys)


TRACES = (
    ("{,", r"t\.json:1:2: is no JSON"),
    ("\xff", r"t\.json: is no JSON: .*utf-8"),
    ("[" * 100_000, r"t\.json: is no JSON"),
    ("[]", r"t\.json: not a JSON object \(a trace"),
    ('{"schema": 2, "kind": "trace"}', r"t\.json: schema 2 \(schema 1"),
    ('{"schema": 1, "kind": "gate"}', r"t\.json: a 'gate' \(a trace"),
    ('{"schema": 1, "kind": "trace"}', r"t\.json: .*missing"),
    ('{"schema": 1, "kind": "trace", "nonsense": 1}', r"t\.json: unknown key 'nonsense'"),
)


@pytest.mark.parametrize(("text", "pattern"), TRACES, ids=[each[1] for each in TRACES])
@pytest.mark.parametrize("command", ["show", "replay"])
def test_bad_trace_is_one_line(
    command: str, text: str, pattern: str, tmp_path: Path, capsys: Captured
) -> None:
    """A file that is no trace is refused."""
    (tmp_path / "t.json").write_text(text, encoding="latin-1")
    refused(f"{command} {tmp_path / 't.json'}", pattern, capsys)
