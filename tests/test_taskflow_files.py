"""The file format: what is read, what is refused, and with which line."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
import yaml

from syncproof.commands.taskflow import combined
from syncproof.models.errors import UserError
from syncproof.models.taskflow.format import json_schema
from syncproof.models.taskflow.moe import BACKWARD, FORWARD, Layer
from syncproof.models.taskflow.reading import read_schedule, schedule_from_data
from syncproof.models.taskflow.scheduling import generate
from syncproof.models.taskflow.writing import to_data, to_text
from syncproof.models.verdict import Answer
from tests import taskflow_faults as faults

GOOD = (Path(__file__).parent / "data" / "two_tiles.yaml").read_text()
DOCUMENT = Path(__file__).parents[1] / "docs" / "taskflow.md"
BAD = {
    # what is replaced by what; the text whose line is to blame; words of the message
    "event nobody triggers": ("triggers: {sent: 1}", "triggers: {}", "waits:", "nobody triggers"),
    "unknown event": ("waits: {sent: 2}", "waits: {snt: 2}", "{snt", "perhaps sent"),
    "overlapping ids": (
        "  sent: {rank: 1, id: 0}",
        "  sent: {rank: 1, id: 0}\n  more: {rank: 1, id: 0}",
        "more:",
        "'more' and 'sent' overlap",
    ),
    "unknown queue": ("queue: aic1", "queue: aic7", "aic7", "unknown queue 'aic7'"),
    "tile out of its tensor": ("[[1, 2]]", "[[1, 3]]", "[[1, 3]]", "within 0 to 2"),
    "unknown tensor": ("{received: 0}", "{recieved: 0}", "recieved", "perhaps received"),
    "negative duration": ("duration: 10", "duration: -10", "-10", "the duration of task 'gemm'"),
    "wrong version": ("taskflow: 1", "taskflow: 2", "taskflow: 2", "version 2"),
    "duplicate name": ("second half", "first half", "first half", "a second task 'first half'"),
    "unknown key": ("duration: 10", "durations: 10", "durations", "perhaps duration"),
    "key twice": ("duration: 10", "queue: aic1", "queue: aic1", "a second 'queue'"),
    "threshold of none": ("{sent: 2}", "{sent: 0}", "{sent: 0}", "1 to"),
    "no number": ("{sent: 2}", "{sent: two}", "two}", "a whole number"),
    "rank": ("aic1: {rank: 1", "aic1: {rank: 2", "aic1: {", "0 to 1"),
    "alias": ("tokens: {rank: 0, tiles: 2, input: true}", "tokens: &a {x: *a}", "&a", "alias"),
    "malformed": ("ranks: 2", "ranks: 2: 3", "ranks:", "is no YAML"),
    "flag of 16": (
        "sent: {rank: 1, id: 0}",
        "sent: {kind: cross_core, rank: 1, id: 16}",
        "id: 16",
        "would take 0",
    ),
    "reserved": (
        "sent: {rank: 1, id: 0}",
        "sent: {kind: cross_core, rank: 1, id: 11}",
        "id: 11",
        "reserved",
    ),
}


SHAPES = ("wrong version", "negative duration", "unknown key", "threshold of none", "no number")
LISTED = (
    "event nobody triggers",
    "unknown queue",
    "overlapping ids",
    "tile out of its tensor",
    "duplicate name",
    "negative duration",
    "wrong version",
)
"""The bad input that the command is asked with, each in a process of its own."""


def command(*arguments: str, memory: int = 0) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, with at most so many bytes of memory."""

    def limit() -> None:
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    line = [sys.executable, "-m", "syncproof", "taskflow", *arguments]
    return subprocess.run(line, capture_output=True, text=True, preexec_fn=limit, check=False)


def line_of(text: str, part: str) -> int:
    """The line of the last occurrence of a part."""
    return text[: text.rindex(part)].count("\n") + 1


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_with_its_place(tmp_path: Path, name: str) -> None:
    """What is wrong with a file is said with the file and the line where it stands."""
    old, new, blamed, words = BAD[name]
    assert old in GOOD
    file = tmp_path / "schedule.yaml"
    text = GOOD.replace(old, new)
    line = line_of(text, blamed)
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        read_schedule(str(file))
    assert str(caught.value).startswith(f"{file}:{line}: "), str(caught.value)
    assert words in str(caught.value)


def test_schema_is_one_and_holds_for_what_ships_and_what_is_written() -> None:
    """The JSON Schema is valid by its own standard; our files and generated ones conform to it."""
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    conforms = jsonschema.Draft202012Validator(schema)
    conforms.validate(yaml.safe_load(GOOD))
    documented = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert documented
    for text in documented:
        conforms.validate(yaml.safe_load(text))
    for direction in (FORWARD, BACKWARD):
        conforms.validate(to_data(generate(Layer(direction=direction), launches=2)))
    for fault in (faults.cross_core(2, 2), faults.flag_set_twice(ordered=True), faults.pool(1)):
        conforms.validate(json.loads(to_text(fault)))


@pytest.mark.parametrize("name", SHAPES)
def test_schema_refuses_what_the_reader_refuses_for_its_shape(tmp_path: Path, name: str) -> None:
    """What is wrong with the shape of a file is wrong by the schema as well."""
    old, new, _, _ = BAD[name]
    data = yaml.safe_load(GOOD.replace(old, new))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json_schema())


def test_nested_too_deeply_is_one_line(tmp_path: Path) -> None:
    """Thousands of brackets are refused, wherever they stand."""
    for place in ("tasks", "events"):
        file = tmp_path / "deep.json"
        deep = "[" * 100_000 + "]" * 100_000
        file.write_text(
            f'{{"syncproof-taskflow": 1, "ranks": 1, "queues": {{}}, "{place}": {deep}}}'
        )
        with pytest.raises(UserError, match="nested too deeply"):
            read_schedule(str(file))


@pytest.mark.parametrize("name", LISTED)
def test_listed_bad_input_ends_with_exit_code_2_and_one_line(tmp_path: Path, name: str) -> None:
    """Each kind of bad input is one line with file and line, and exit code 2."""
    old, new, blamed, _ = BAD[name]
    file = tmp_path / "schedule.yaml"
    file.write_text(GOOD.replace(old, new))
    done = command(str(file))
    assert done.returncode == 2
    line = line_of(GOOD.replace(old, new), blamed)
    assert done.stderr.startswith(f"check-protocol: {file}:{line}: ")
    assert done.stderr.count("\n") == 1


def test_json_has_lines_too(tmp_path: Path) -> None:
    """A JSON file is as exact about lines as a YAML file."""
    text = to_text(generate(Layer()))
    assert '"waits": {' in text
    file = tmp_path / "schedule.json"
    broken = text.replace('"waits": {', '"waits": {"nobody": 1, ', 1)
    file.write_text(broken)
    line = broken[: broken.index("nobody")].count("\n") + 1
    with pytest.raises(UserError) as caught:
        read_schedule(str(file))
    assert str(caught.value).startswith(f"{file}:{line}: ")
    file.write_text(text.replace('"ranks": 2', '"ranks": 2, "ranks": 2'))
    with pytest.raises(UserError, match=r"schedule.json:4: a second 'ranks'"):
        read_schedule(str(file))


def test_schedule_survives_writing_and_reading(tmp_path: Path) -> None:
    """What is written and read again is the same schedule."""
    schedule = generate(Layer(direction=BACKWARD), launches=2)
    assert schedule_from_data(json.loads(json.dumps(to_data(schedule)))) == schedule
    file = tmp_path / "s.json"
    file.write_text(to_text(schedule))
    assert read_schedule(str(file)) == schedule


def test_file_of_200_megabytes_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    """A file of 200 MB is one line and exit code 2, within 1 GiB of address space."""
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.write(b'{"tasks": [')
        stream.truncate(200_000_000)
    done = command(str(file), memory=1 << 30)
    assert done.returncode == 2
    assert done.stderr.startswith(f"check-protocol: {file}:1: too large")
    assert done.stderr.count("\n") == 1


def test_command_proves_and_refutes(tmp_path: Path) -> None:
    """Exit code 0 and 1, and a finding with the names and lines of the file."""
    file = tmp_path / "schedule.yaml"
    file.write_text(GOOD)
    assert command(str(file)).returncode == 0
    file.write_text(GOOD.replace("sent: 2", "sent: 1"))
    done = command(
        str(file), "--svg", str(tmp_path / "s.svg"), "--perfetto", str(tmp_path / "p.json")
    )
    assert done.returncode == 1
    line = line_of(GOOD, "second half")
    assert f"second half ({file}:{line})" in " ".join(done.stdout.split())
    assert "marker-end" in (tmp_path / "s.svg").read_text()
    phases = {e["ph"] for e in json.loads((tmp_path / "p.json").read_text())["traceEvents"]}
    assert {"X", "M", "s", "f"} <= phases


def test_yaml_of_5000_tasks_is_read_in_seconds(tmp_path: Path) -> None:
    """YAML with line numbers: 5,000 tasks within 3 seconds of processor time."""
    task = "  - {name: t%d, queue: aiv0, waits: {sent: 2}, duration: 1}\n"
    head = GOOD.replace("aiv0: {rank: 0}", "aiv0: {rank: 1}").rstrip() + "\n"
    file = tmp_path / "large.yaml"
    file.write_text(head + "".join(task % i for i in range(5000)))
    started = time.process_time()
    assert len(read_schedule(str(file)).tasks) == 5003
    assert time.process_time() - started < 3


@pytest.mark.parametrize("engine", ["auto", "reduced", "smt"])
def test_command_asks_other_engines(tmp_path: Path, engine: str) -> None:
    """`--engine NAME` asks for every interleaving as well; a broken schedule is so by both."""
    file = tmp_path / "schedule.yaml"
    file.write_text(GOOD)
    done = command(str(file), "--engine", engine)
    assert done.returncode == 0
    assert "every interleaving on cm384, by" in done.stdout
    file.write_text(GOOD.replace("sent: 2", "sent: 1"))
    done = command(str(file), "--engine", engine)
    assert done.returncode == 1
    assert "violated" in done.stdout.partition("every interleaving")[2]


def test_what_need_not_go_wrong_in_a_run_is_no_contradiction() -> None:
    """A threshold that either of two tasks meets is a fault, though every run of it is good."""
    graph, runs = Answer.VIOLATED, Answer.PROVED
    assert combined(graph, runs, hangs=False) is Answer.VIOLATED
    assert combined(graph, runs, hangs=True) is Answer.BROKEN
    assert combined(runs, graph, hangs=False) is Answer.BROKEN
    assert combined(Answer.UNDECIDED, runs, hangs=False) is Answer.PROVED


def test_unknown_engine_is_one_line_before_anything_is_checked(tmp_path: Path) -> None:
    """An engine that does not exist is refused at once."""
    file = tmp_path / "schedule.yaml"
    file.write_text(GOOD)
    done = command(str(file), "--engine", "fastest")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "no engine 'fastest'" in done.stderr


FAST_READER = {
    # what JSON may be unlike what the fast parser says of it: text, words of the message
    "key twice in a task": ('{"name": "a", "queue": "q", "name": "b"}', "a second 'name'"),
    "key twice in its tiles": ('{"name": "a", "queue": "q", "reads": {"x": 0, "x": 0}}', "'x'"),
    "blank before a colon": ('{"name": "a", "queue": "q", "name" : "b"}', "a second 'name'"),
    "colon in a name": ('{"name": "\\":", "queue": "q", "queue": "q"}', "a second 'queue'"),
    "number beyond 64 bits": (
        '{"name": "a", "queue": "q", "triggers": {"e": 18446744073709551616}}',
        "by 18446744073709551616",
    ),
    "no number": ('{"name": "a", "queue": "q", "duration": NaN}', "NaN is no number"),
}


@pytest.mark.parametrize("name", FAST_READER)
def test_what_the_fast_parser_passes_over_is_refused(tmp_path: Path, name: str) -> None:
    """Keys that repeat, huge numbers and what is no JSON are refused as by the standard parser."""
    task, words = FAST_READER[name]
    file = tmp_path / "schedule.json"
    head = '{"syncproof-taskflow": 1, "ranks": 1, "queues": {"q": {"rank": 0}}, "events": {"e": {}}'
    file.write_text(f'{head}, "tensors": {{"x": {{"rank": 0, "tiles": 1}}}},\n"tasks": [{task}]}}')
    with pytest.raises(UserError) as caught:
        read_schedule(str(file))
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["plain", '\\"', '\\":', "\\u0022:", ' " : '.replace('"', "'")])
def test_names_with_quotes_and_colons_are_read(tmp_path: Path, name: str) -> None:
    """A name may look like the end of a key; both parsers read the same schedule."""
    file = tmp_path / "schedule.json"
    file.write_text(
        '{"syncproof-taskflow": 1, "ranks": 1, "queues": {"q": {"rank": 0}},'
        f' "tasks": [{{"name": "{name}", "queue": "q"}}]}}'
    )
    assert read_schedule(str(file)).tasks[0].name == json.loads(f'"{name}"')
