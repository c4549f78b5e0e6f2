"""``run``, ``conform``, ``replay --emulate``: exit codes, what they say, and what they refuse."""

from __future__ import annotations

import gc
import re
import sys
import threading
import time
from pathlib import Path

import pytest

from syncproof.checkers.emulator.machine import RoleRaised
from syncproof.checkers.emulator.run import Options, run
from syncproof.checkers.emulator.soak import soak
from syncproof.checkers.emulator.virtual import Costs, simulate
from syncproof.cli import run as command
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol, parameter, role
from tests.test_emulator import instance_of

Captured = pytest.CaptureFixture[str]
IN_TURN = ("--schedule", "deterministic")


def test_complete_run_says_so_and_how_to_repeat_it(capsys: Captured) -> None:
    """Exit code 0, the counts, and a command that gives the same again."""
    assert command(["run", "sp", "--rounds", "2", "--seed", "7", *IN_TURN]) == 0
    first = capsys.readouterr().out
    assert re.search(r"^sp: complete steps=\d+ blocks=\d+ walked=\d+ seed=7", first, re.M)
    again = re.search(r"^again: check-protocol (.*)$", first, re.M)
    assert again is not None
    assert command(again[1].split()) == 0
    steps = re.compile(r"^sp: complete .*$", re.M)
    assert steps.findall(capsys.readouterr().out) == steps.findall(first)


def test_wrong_bytes_are_shown(capsys: Captured) -> None:
    """Exit code 1, with the line that trusted them and the bytes that differ."""
    words = ["run", "sp", "--set", "windows=1", "--rounds", "2", "--runs", "60"]
    words += ["--adversary", "stop-rank", *IN_TURN, "--property", "happens-before"]
    assert command(words) == 1
    out = capsys.readouterr().out
    assert "happens-before is broken" in out
    assert re.search(r"sp\.py:\d+  core\.consume", out)
    expected, found = re.findall(r"(?:expected|found) +((?:[0-9a-f]{2} ?){16})", out)[:2]
    assert expected != found


def test_hang_is_explained(capsys: Captured) -> None:
    """Exit code 1, with who waits for what, and what is in flight."""
    words = ["run", "sp", "--domain", "1", "--no-conform", "--routing", "balanced"]
    assert command([*words, *IN_TURN]) == 1
    out = capsys.readouterr().out
    assert "nobody can go on" in out
    assert re.search(r"receiver@rank0 +wait_until window\[0\]\[1, 0, 0\] +sees .*SENTINEL", out)
    assert "in flight: 0 puts" in out


def test_real_bytes_that_the_model_does_not_know_do_not_conform(capsys: Captured) -> None:
    """Tokens that look like the sentinel are outside of the assumption, and a hang there."""
    words = ["run", "sp", "--drop", "reserved_sentinel", "--routing", "balanced"]
    codes = {command([*words, "--seed", str(seed), "-q", *IN_TURN]) for seed in range(6)}
    assert codes == {1}


def test_trace_is_replayed_on_the_emulator(tmp_path: Path, capsys: Captured) -> None:
    """A counterexample's file becomes wrong bytes, or a hang."""
    trace = str(tmp_path / "t.json")
    assert command(["sp", "--set", "windows=1", "--rounds", "2", "-q", "--trace", trace]) == 1
    capsys.readouterr()
    assert command(["replay", trace, "--emulate"]) == 1
    out = capsys.readouterr().out
    assert "reproduced" in out and "expected" in out
    hang = ["sp", "--drop", "reserved_sentinel", "--rounds", "1", "--routing", "balanced"]
    assert command([*hang, "-q", "--trace", trace]) == 1
    assert command(["replay", trace, "--emulate"]) == 1
    assert "nobody can go on" in capsys.readouterr().out


def test_run_that_does_not_end_in_time_is_not_finished(capsys: Captured) -> None:
    """Exit code 3: nothing is said about what was not run."""
    words = ["run", "sp", "--ranks", "4", "--rounds", "100000", "--seconds", "1", "-q"]
    assert command(words) == 3
    assert "not finished" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--adversary", "kind"], "no adversary"),
        (["--schedule", "some"], "no schedule"),
        (["--payload", "fp4"], "no payload"),
        (["--runs", "0"], "--seconds"),
        (["--ranks", "4096", "--tokens", "8"], "GiB"),
        (["--time", "virtual", "--fabric", "sc"], "latency_ns"),
        (["--runs", "2", "--log", "x.jsonl"], "one run"),
        (["--time", "virtual", "--payload", "bf17"], "--payload says nothing together with"),
        (["--time", "virtual", "--no-conform"], "--conform says nothing together with"),
        (["--cores", "3"], "--cores says nothing together with --time real"),
        (["bsp", "--time", "virtual", "--cores", "3"], "--set cores=N"),
        (["cumsum", "--time", "virtual", "--cores", "3"], "--set token_cores=N"),
    ],
)
def test_bad_options_are_refused(words: list[str], said: str, capsys: Captured) -> None:
    """One line that says what is wrong and what would be right."""
    protocol = [] if words[0] in ("bsp", "cumsum") else ["sp"]
    assert command(["run", *protocol, *words]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


# Roles that go wrong by themselves


class Unruly(Protocol):
    """A role of which one instance misbehaves."""

    how: str = parameter(
        "raises", "what it does", ("raises", "returns", "sleeps", "loops", "locks")
    )

    @role
    async def member(self, core: Core) -> None:
        await core.quiet()
        if core.rank == 1:
            if self.how == "raises":
                raise ValueError("of its own")
            if self.how == "returns":
                return
            if self.how == "sleeps":
                time.sleep(3600)
            if self.how == "locks":
                lock = threading.Lock()
                lock.acquire()
                lock.acquire()
            while self.how == "loops":
                pass
        await core.sync("all")


def unruly(how: str) -> Instance:
    return Instance(Unruly, Bounds(2, 1, 1), load_profile("cm384"), {"how": how})


@pytest.mark.parametrize("schedule", ("deterministic", "free"))
def test_role_that_raises_ends_the_run(schedule: str) -> None:
    """The process and the line are named, and no thread is left."""
    before = threading.active_count()
    with pytest.raises(RoleRaised, match=r"member@rank1 at .*test_emulator_commands.py:\d+.*own"):
        run(unruly("raises"), Options(schedule=schedule))
    assert threading.active_count() == before


@pytest.mark.parametrize("schedule", ("deterministic", "free"))
def test_role_that_returns_early_is_waited_for(schedule: str) -> None:
    """The run is stuck, and the table says who is not there any more."""
    found = run(unruly("returns"), Options(schedule=schedule))
    assert found.outcome == "stuck"
    (blocked,) = found.blocked
    assert blocked.process == "member@rank0" and "member@rank1 (has returned)" in blocked.sees


@pytest.mark.parametrize(
    ("how", "schedule"),
    [
        ("sleeps", "deterministic"),
        ("locks", "deterministic"),
        ("loops", "deterministic"),
        ("loops", "free"),
    ],
)
def test_role_that_blocks_outside_its_core_is_ended(how: str, schedule: str) -> None:
    """After its patience the run names the process and the line, and leaves no thread."""
    before = threading.active_count()
    with pytest.raises(RoleRaised, match=r"member@rank1 at .*:\d+: it blocks outside"):
        run(unruly(how), Options(schedule=schedule, patience=0.4))
    assert threading.active_count() == before


def test_command_says_which_role_raised(tmp_path: Path, capsys: Captured) -> None:
    """Exit code 2 and one line for what its author can mend."""
    file = tmp_path / "bad.py"
    file.write_text(
        "from syncproof.models.protocol import Protocol, role\n"
        "class Bad(Protocol):\n"
        "    @role\n"
        "    async def member(self, core):\n"
        "        await core.quiet()\n"
        "        1 / 0\n"
    )
    assert command(["run", str(file), *IN_TURN]) == 2
    err = capsys.readouterr().err
    assert "bad.py:6" in err and "ZeroDivisionError" in err and "Traceback" not in err


# Many runs, and virtual time


def test_series_stops_at_the_first_run_that_fails() -> None:
    """A soak counts what it has run, and its last run can be repeated."""
    sound = soak(instance_of("sp", 3, 1, 2), Options(adversary="all"), runs=5)
    assert sound.runs == 5 and sound.last.outcome == "complete" and sound.blocks == 60
    assert 0 < sound.walked < sound.steps
    made = Instance(type(instance_of("sp", 2, 1, 2).protocol()), Bounds(2, 1, 2), CM384, ONE_WINDOW)
    found = soak(made, Options(adversary="all"), runs=100)
    assert found.runs < 100 and found.last.outcome in ("wrong", "stuck")
    assert run(made, found.options).outcome == found.last.outcome


CM384 = load_profile("cm384")
ONE_WINDOW = {"windows": 1}


@pytest.mark.long
def test_soak_of_half_a_minute() -> None:
    """16 ranks, every adversary in turn: no wrong byte, and no more memory than at first."""
    found = soak(instance_of("sp", 16, 1, 3), Options(adversary="all", seconds=30))
    assert found.last.outcome == "complete" and found.blocks > 1000
    assert found.peak <= 1.1 * found.first_peak


def blocks_in_use() -> int:
    """How many pieces of memory are in use."""
    gc.collect()
    return sys.getallocatedblocks()


def test_memory_of_many_runs_is_constant() -> None:
    """Twenty more runs leave no more behind than the first ten."""
    made, options = instance_of("sp", 2, 1, 2), Options(adversary="all")
    in_use = []
    for runs in (10, 20):
        assert soak(made, options, runs=runs).last.outcome == "complete"
        in_use.append(blocks_in_use())
    assert in_use[1] <= in_use[0] + 1_000


def test_memory_of_a_long_run_is_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run and model forget what lies behind them."""
    monkeypatch.setattr("syncproof.checkers.emulator.content.MOST_KNOWN", 500)
    monkeypatch.setattr("syncproof.checkers.emulator.machine.MOST_TOKENS", 100)
    monkeypatch.setattr("syncproof.checkers.emulator.conform.STEPS_REMEMBERED", 500)
    in_use: list[int] = []
    options = Options(seed=1)
    found = run(
        instance_of("sp", 2, 1, 450), options, report=lambda _: in_use.append(blocks_in_use())
    )
    assert found.outcome == "complete" and len(in_use) > 8
    assert max(in_use[-3:]) <= 1.1 * max(in_use[1:4])


@pytest.mark.parametrize("name", ("sw", "tff", "dc", "sp"))
def test_a_single_token_takes_what_can_be_added_up(name: str) -> None:
    """One token from rank to rank, as computed by hand from the table of costs.

    A put of 512 B keeps its core for 50 + 32 ns and lands 929 ns later; one of 32 B for 52. A
    read of 512 B takes 218 + 32 ns, of 32 B 220, of 480 B 248. In DC a sweep of 440 ns begins when
    the token has landed and misses the checksum, 52 ns later; the next one finds both.
    """
    routing = (((0, 1), (0, 0)),)
    kind = type(instance_of(name, 2, 1, 1).protocol())
    settings = {"counts": False, "dense_traffic": False}
    made = Instance(kind, Bounds(2, 1, 1, routing=routing), CM384, settings)
    expected = {
        "sp": 82 + 929 + 250,
        "tff": 82 + 929 + 220 + 248,
        "sw": 82 + 929 + 52 + 929 + 220 + 250,
        "dc": 82 + 929 + 440 + 440 + 250,
    }
    timed = simulate(made)
    assert not timed.wrong and not timed.blocked and timed.blocks == 1
    assert timed.latency == pytest.approx(expected[name])


@pytest.mark.long
def test_order_of_the_schemes_at_16_ranks() -> None:
    """UBEP, figure 10 and its text: each data-as-flag scheme is faster than stop-and-wait, SP is
    the fastest, DC slower than the other two where the data is small; 16 ranks take 2 to 4 µs."""
    times = {n: simulate(instance_of(n, 16, 1, 1), lanes=24).latency for n in ("sw", "tff", "sp")}
    times["dc"] = simulate(instance_of("dc", 16, 1, 1), lanes=24).latency
    assert times["sp"] < times["tff"] < times["dc"] < times["sw"]
    assert 2000 <= times["sw"] <= 4000


def test_virtual_time_needs_latencies_and_lists_its_parameters(capsys: Captured) -> None:
    """Every number of a run in virtual time is printed with where it is from."""
    assert command(["run", "bsp", "--rounds", "1", "--time", "virtual"]) == 0
    out = capsys.readouterr().out
    for text in ("929 ns", "UBEP, table 2", "assumed", "cores per rank", "latency="):
        assert text in out
    with pytest.raises(UserError, match="latency_ns"):
        simulate(instance_of("sp", 2, 1, 1, "nvlink"))


def test_strided_reads_of_offsets_are_what_decomposition_lives_on() -> None:
    """UBEP, figure 8: decomposed is faster than bulk-synchronous where all offsets are read in one
    copy, as the kernel does; read source by source they cost what the SyncAll did."""
    bounds = Bounds(8, 4, 1, topk=4)
    kinds = {name: type(instance_of(name, 2, 1, 1).protocol()) for name in ("bsp", "cumsum")}
    bulk = Instance(kinds["bsp"], bounds, CM384, {"cores": 8})
    split = Instance(kinds["cumsum"], bounds, CM384, {"token_cores": 6, "count_cores": 2})
    apart, together = (simulate(split, Costs(loop=loop)) for loop in (4, 64))
    assert together.latency < simulate(bulk).latency
    assert together.latency < 0.9 * apart.latency
    waits = [
        sum(each.total for key, each in found.phases.items() if key[1] == "wait_offset")
        for found in (together, apart)
    ]
    assert waits[0] < 0.8 * waits[1]
