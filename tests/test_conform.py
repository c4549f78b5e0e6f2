"""Conformance: what the emulator does the model allows; what it must not do is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from syncproof.checkers.emulator import fabric, operations
from syncproof.checkers.emulator.fabric import Fabric
from syncproof.checkers.emulator.machine import Machine, RoleRaised
from syncproof.checkers.emulator.results import Result
from syncproof.checkers.emulator.run import Options, run
from syncproof.checkers.emulator.schedule import ADVERSARIES
from syncproof.cli import run as command
from syncproof.models.automaton import Automaton
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.system import System
from tests.random_protocols import instance_of, plan_of
from tests.test_emulator import instance_of as protocol

SEEDS = 60
MANY_SEEDS = 3_000
NAMES = list(ADVERSARIES)
JUDGED = {"happens-before", "checks", "quiescent"}
"""What a step breaks is judged by both; the end of a run by the emulator alone."""


def random_run(seed: int) -> Result | None:
    """A run of the random protocol of a seed, on the fabric that belongs to it; None if a role
    goes wrong by itself."""
    made = instance_of(plan_of(seed, lines=seed % 3 == 0), Instance)
    options = Options(seed, adversary=NAMES[seed % len(NAMES)], steps=600)
    try:
        return run(made, options)
    except RoleRaised:
        return None


def disagreements(seeds: range) -> list[int]:
    """The seeds whose run the model does not allow, or judges in another way."""
    found = []
    for seed in seeds:
        result = random_run(seed)
        if result is None:
            continue
        at_once = {each.property for each in result.wrong if each.process} & JUDGED
        if result.refused is not None or at_once != set(result.in_model):
            found.append(seed)
    return found


def test_random_protocols_conform() -> None:
    """On random protocols and fabrics every step is the model's, and so is every judgement."""
    assert disagreements(range(SEEDS)) == []


@pytest.mark.long
def test_many_random_protocols_conform() -> None:
    """The same for many more."""
    assert disagreements(range(SEEDS, MANY_SEEDS)) == []


class Untrue(Protocol):
    """A check that never holds."""

    def memory(self) -> None:
        self.flag = Region(owner=0, block=8)

    @role(on=[0])
    async def worker(self, core: Core) -> None:
        await core.quiet()
        core.check(False, "one is two")


def test_what_the_model_alone_sees_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in which the machine overlooks what the model says is broken is not complete."""
    made = Instance(Untrue, Bounds(ranks=1), load_profile("cm384"), {})
    assert run(made, Options()).outcome == "wrong"
    monkeypatch.setattr(Machine, "fail", lambda *_: None)
    found = run(made, Options())
    assert found.outcome == "not conforming" and "one is two" in str(found.refused)
    assert run(made, Options(properties=("quiescent",))).outcome == "complete"


def _unordered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "lands_behind", lambda early, late, profile: False)


def _no_fences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "is_fenced", lambda early, late, fences: False)


def _no_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fabric, "is_quiet", lambda self, process, target: True)


def _nothing_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fabric, "holds_back", lambda self, process, probe: False)


def _lost_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Fabric.landing

    def landing(self: Fabric, write: Any) -> bytes:
        return self.memory.read(write.cell) if write.is_add else right(self, write)

    monkeypatch.setattr(Fabric, "landing", landing)


def _early_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_holds", lambda process, operation, result: True)


def _stale_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fabric, "seen", lambda self, rank, cell: self.memory.initial[cell])


def _clean_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fabric, "write_back", lambda self, cells, held: None)


class Rung(Protocol):
    """A payload and its flag, in order by a fence, or by way of a cache that is cleaned."""

    cached: bool = parameter(False, "the payload is stored through a cache")

    def memory(self) -> None:
        self.slot = Region(owner=0, block=64, fields={"payload": 64}, compared=(), line=64)
        self.flag = Region(owner=0, block=32)

    @role(on=[0])
    async def producer(self, core: Core) -> None:
        value = core.payload(1, 0, 0)
        await core.store(self.slot[0], value, cached=self.cached)
        if self.cached:
            await core.clean_and_invalidate(self.slot[0])
        await core.fence()
        await core.put(self.flag[0], 1)
        await core.quiet()

    @role(on=[1])
    async def consumer(self, core: Core) -> None:
        await core.wait_until(self.flag[0], lambda flag: flag == 1)
        core.consume(await core.load(self.slot[0]), 0, 0, 0)


def rung_conforms(cached: bool) -> bool:
    """Whether several runs of `Rung` go as the model has them, and are right."""
    made = Instance(Rung, Bounds(2, 1, 1), load_profile("nvlink"), {"cached": cached})
    results = [
        run(made, Options(seed, adversary=name)) for seed in range(4) for name in ADVERSARIES
    ]
    return all(each.outcome == "complete" for each in results)


def test_crafted_protocols_conform() -> None:
    """Without a fault the protocols that are to show one are right."""
    assert rung_conforms(True) and rung_conforms(False)


FAULTS: list[Callable[[pytest.MonkeyPatch], None]] = [
    _unordered,
    _no_fences,
    _no_quiet,
    _nothing_held_back,
    _lost_adds,
    _early_waits,
    _stale_twins,
    _clean_keeps,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.__name__.strip("_"))
def test_fault_in_the_emulator_is_noticed(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fabric that does more than the profile allows takes a step that the model refuses."""
    fault(monkeypatch)
    if fault in (_no_fences, _clean_keeps):
        assert not rung_conforms(cached=fault is _clean_keeps)
    elif fault is _lost_adds:
        made = replace(protocol("barrier", 2, 1, 2), settings={"scheme": "count_at_least"})
        assert run(made, Options()).outcome == "not conforming"
    else:
        assert any(disagreements(range(seed, seed + 10)) for seed in range(0, 100, 10))


# Logs


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of a log of Sentinel Polling, header included."""
    path = tmp_path_factory.mktemp("log") / "sp.jsonl"
    words = ["run", "sp", "--seed", "1", "--rounds", "2", "--routing", "balanced", "-q"]
    assert command([*words, "--schedule", "deterministic", "--log", str(path)]) == 0
    return path.read_text().splitlines()


def conform(lines: list[str], tmp_path: Path, name: str = "sp") -> int:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines))
    return command(["conform", name, str(path)])


def steps(lines: list[str], do: str) -> list[int]:
    return [i for i, line in enumerate(lines) if json.loads(line).get("do") == do]


def test_own_log_conforms(log: list[str], tmp_path: Path) -> None:
    """What ``run --log`` writes, ``conform`` accepts."""
    assert conform(log, tmp_path) == 0


def test_a_choice_without_a_value_may_have_any(log: list[str], tmp_path: Path) -> None:
    """A log that names a choice and not what was chosen is held against all that it can be; what
    it says was chosen must be among them."""
    head = log[0].replace('"routing": "balanced"', '"routing": "all"', 1)
    choice = {"do": "choice", "name": "tokens from rank 0 to expert 1 in round 0", "value": {}}
    assert conform([head, json.dumps(choice), *log[1:]], tmp_path) == 0
    for value, code in ((1, 0), (7, 2)):
        assert conform([head, json.dumps({**choice, "value": value}), *log[1:]], tmp_path) == code


def test_log_without_what_a_kernel_cannot_see_conforms(log: list[str], tmp_path: Path) -> None:
    """Landings, quiets and syncs are searched for where they are not recorded."""
    hidden = {*steps(log, "land"), *steps(log, "quiet"), *steps(log, "sync")}
    assert len(hidden) > 10
    kept = [line for i, line in enumerate(log) if i not in hidden]
    kept[0] = json.dumps({**json.loads(log[0]), "complete": False})
    assert conform(kept, tmp_path) == 0


@pytest.mark.parametrize("do", ("issue", "land", "quiet", "sync", "wait"))
def test_log_with_a_step_left_out_does_not_conform(
    log: list[str], tmp_path: Path, do: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where every step is recorded, each is needed; the answer says what was expected."""
    gone = steps(log, do)[1]
    assert conform(log[:gone] + log[gone + 1 :], tmp_path) == 4
    out = capsys.readouterr().out
    assert "refused" in out and "expected" in out
    accepted = int(out.split("conform: ")[1].split(" of ")[0])
    assert accepted >= gone - 1


def test_log_with_another_value_does_not_conform(
    log: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wait that is said to have read what is not there is refused at its line."""
    changed = steps(log, "wait")[-1]
    entry = json.loads(log[changed])
    entry["values"] = {name: "SENTINEL" for name in entry["values"]}
    assert conform([*log[:changed], json.dumps(entry), *log[changed + 1 :]], tmp_path) == 4
    assert f"refused  line {changed + 1}:" in capsys.readouterr().out


def test_early_consume_is_refused(log: list[str], tmp_path: Path) -> None:
    """A token that is trusted before it is read does not conform."""
    late = steps(log, "consume")[0]
    line = log[late]
    rest = log[:late] + log[late + 1 :]
    assert conform([rest[0], line, *rest[1:]], tmp_path) == 4


def test_step_that_the_fabric_cannot_take_is_refused(log: list[str], tmp_path: Path) -> None:
    """The fabric delivers, and does not wait."""
    waits = [i for i in steps(log, "wait")]
    entry = {**json.loads(log[waits[0]]), "process": "the fabric"}
    assert conform([*log[: waits[0]], json.dumps(entry)], tmp_path) == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: ["{}", *lines[1:]], "kind None"),
        (lambda lines: [lines[0].replace('"schema": 1', '"schema": 7', 1), *lines[1:]], "schema 7"),
        (lambda lines: [lines[0].replace('"sp"', '"tff"', 1), *lines[1:]], "is of 'tff'"),
        (lambda lines: [*lines, "no json"], "is no JSON"),
        (lambda lines: [*lines, "[1]"], "no JSON object"),
        (lambda lines: [*lines, '{"do": "jump", "process": "sender@rank0"}'], "no step 'jump'"),
        (lambda lines: [*lines, '{"do": "quiet", "process": "x"}'], "no process 'x'"),
        (
            lambda lines: [*lines, '{"do": "wait", "process": "sender@rank0", "slot": "x"}'],
            "no block 'x'",
        ),
        (lambda lines: [*lines, '{"do": "quiet", "process": "x", "when": 3}'], "unknown key when"),
        (lambda lines: [lines[0].replace('"ranks": 2', '"ranks": "many"', 1)], "bounds"),
        (lambda lines: [lines[0].replace('"windows": 2', '"windows": {}', 1)], "windows is {}"),
    ],
)
def test_log_that_is_none_is_refused(
    log: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[list[str]], list[str]],
    said: str,
) -> None:
    """A log of another version, protocol or shape is a user's error that says what is wrong."""
    assert conform(change(log), tmp_path) == 2
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err and err.count("\n") == 1


def test_walk_forgets_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk that forgets every few steps allows the same steps as one that never does."""
    monkeypatch.setattr("syncproof.checkers.emulator.conform.STEPS_REMEMBERED", 7)
    for name in ("sp", "barrier", "cumsum"):
        found = run(protocol(name, 2, 1, 3), Options(seed=1))
        assert found.outcome == "complete" and found.walked
    assert disagreements(range(30)) == []


@pytest.mark.parametrize("hidden", ((), ("land", "quiet", "sync")))
@pytest.mark.parametrize("name", ("sp", "bsp"))
def test_work_grows_with_the_log_alone(
    name: str, hidden: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four times the rounds are at most five times the steps of roles and of the system."""
    done: list[int] = []
    for rounds in ("5", "20"):
        path = tmp_path / "long.jsonl"
        words = ["run", name, "--rounds", rounds, "--routing", "balanced", "-q", "--no-conform"]
        assert command([*words, "--schedule", "deterministic", "--log", str(path)]) == 0
        first, *lines = path.read_text().splitlines()
        first = json.dumps({**json.loads(first), "complete": not hidden})
        lines = [line for line in lines if json.loads(line)["do"] not in hidden]
        done.append(0)
        with monkeypatch.context() as context:
            for kind, method in ((Automaton, "_next_operation"), (System, "process_transitions")):
                context.setattr(kind, method, _counted(getattr(kind, method), done))
            assert conform([first, *lines], tmp_path, name) == 0
    assert 0 < done[1] <= 5 * done[0]


def _counted(right: Callable[..., Any], counts: list[int]) -> Callable[..., Any]:
    def counted(*arguments: Any) -> Any:
        counts[-1] += 1
        return right(*arguments)

    return counted
