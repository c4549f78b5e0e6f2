"""The fast engine: the counts and verdicts of `reference`, for every kind of system."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from syncproof.checkers.explicit.check import check as check_explicitly
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.replay import replay
from syncproof.checkers.explicit.search import Budget, Exploration, Meter, explore
from syncproof.checkers.fast import (
    kernels,
    layout,
    machine_code,
    place,
    search,
    states,
    tabulation,
    walk,
)
from syncproof.checkers.fast.check import check, uncovered
from syncproof.checkers.fast.search import Search
from syncproof.cli import run
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, role
from syncproof.models.system import System
from syncproof.models.verdict import Answer, Verdict, to_data
from syncproof.registry import find
from tests.random_protocols import instance_of, plan_of, systems_of
from tests.small import CM384, FlagAfterData, Meeting, OneRound, instance, with_settings

ROOT = Path(__file__).parents[1]
STATES = 4_000


@dataclass(frozen=True)
class Counts:
    """What both searches count, everything explored."""

    states: int
    transitions: int
    depth: int
    reached: frozenset[str]
    good: frozenset[tuple[int, ...]]
    stuck: frozenset[tuple[int, ...]]
    stopped: str


def counts_of(found: Exploration, meter: Meter) -> Counts:
    return Counts(
        meter.states,
        found.transitions,
        meter.depth,
        frozenset(found.reached),
        frozenset(found.good),
        frozenset(found.stuck),
        found.stopped,
    )


def slowly(system: System) -> Counts:
    """The counts of the search that defines what is right."""
    meter = Meter(Budget(states=STATES))
    return counts_of(explore(system, None, frozenset(), meter, stop_at_first=False), meter)


def quickly(system: System, threads: int = 1) -> Counts:
    """The counts of the fast engine."""
    meter = Meter(Budget(threads=threads))
    return counts_of(Search(system, frozenset(), meter).run(), meter)


def both(made: Instance, **budget: int) -> tuple[Verdict, Verdict]:
    """The verdicts of `reference` and of the fast engine on all properties."""
    question = question_of(made, made.kind.__name__)
    limit = Budget(**budget)
    return check_explicitly(made, question, "reference", limit), check(
        made, question, "fast-full", limit
    )


def differ(one: Verdict, other: Verdict) -> str:
    """How two verdicts contradict each other; which failure is found first may differ."""
    answers = {each.property: each.answer for each in one.properties}
    for each in other.properties:
        pair = {each.answer, answers.get(each.property, each.answer)}
        if pair == {Answer.PROVED, Answer.VIOLATED}:
            return f"{each.property}: {pair}"
    if one.answer is not other.answer:
        return f"{one.answer} and {other.answer}"
    if one.answer is Answer.PROVED:
        seen = [(v.states, v.transitions, v.depth, v.persists, v.notes) for v in (one, other)]
        return "" if seen[0] == seen[1] else f"counts {seen}"
    return ""


def compared(made: Instance) -> str:
    """How both engines come out on an instance: the same, or why it says nothing."""
    if made.profile.quiet == "target" or made.profile.load_order == "none":
        return "uncovered"
    try:
        one, other = both(made, states=STATES)
    except UserError:
        return "error"
    if Answer.UNDECIDED in (one.answer, other.answer):
        assert one.answer is other.answer
        return "undecided"
    why = differ(one, other)
    assert not why, why
    return one.answer.value


# Counts


@pytest.mark.parametrize(("ranks", "states", "steps"), [(2, 36, 60), (3, 10_252, 44_898)])
def test_published_counts(ranks: int, states: int, steps: int) -> None:
    """One-round Sentinel Polling has the states and transitions that SPIN has too."""
    found = quickly(instance(OneRound, ranks=ranks).system({}))
    assert (found.states, found.transitions) == (states, steps)


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
def test_five_million_states(threads: int) -> None:
    """3 ranks, 2 tokens: 5,447,512 states and 41,279,232 transitions, by one thread and by two."""
    found = quickly(instance(OneRound, ranks=3, tokens=2).system({}), threads)
    assert (found.states, found.transitions) == (5_447_512, 41_279_232)


def same_counts(first: int, last: int, threads: int = 1) -> int:
    """Compare everything explored on random systems; how many were compared."""
    compared = 0
    for seed in range(first, last):
        for system in systems_of(plan_of(seed)):
            if uncovered(system.features):
                continue
            try:
                expected = slowly(system)
            except UserError:
                continue
            if not expected.stopped:
                assert quickly(system, threads) == expected, f"seed {seed}"
                compared += 1
    return compared


def test_random_counts() -> None:
    """States, transitions, depth, ends and places reached are those of `reference`."""
    assert same_counts(0, 60) > 40


@pytest.mark.long
def test_many_random_counts() -> None:
    """The same on two thousand more plans."""
    assert same_counts(1_000, 3_000) > 1_000


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """States of many small words, and nothing known before the search begins."""
    monkeypatch.setattr(layout, "WORD", 8)
    monkeypatch.setattr(walk, "RUNS", 0)


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads at every level, and a table and log that grow again and again."""
    monkeypatch.setattr(search, "FEWEST_ROWS_FOR_THREADS", 0)
    monkeypatch.setattr(states, "FIRST_ROWS", 1)
    monkeypatch.setattr(states, "FIRST_SLOTS", 2)
    monkeypatch.setattr(states, "LARGE_TABLE", 64)
    monkeypatch.setattr(search, "BUFFER", 1)


@pytest.mark.usefixtures("narrow")
def test_several_words_and_new_layouts() -> None:
    """The same where states take several words and codes outgrow their places all the time."""
    assert same_counts(60, 75) > 8
    found = quickly(instance(OneRound, ranks=3).system({}))
    assert (found.states, found.transitions) == (10_252, 44_898)


@pytest.mark.usefixtures("crowded")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_and_growth(threads: int) -> None:
    """The same with several threads, one row at a time, and stores that grow at every step."""
    assert same_counts(90, 100, threads) > 5
    found = quickly(instance(OneRound, ranks=3).system({}), threads)
    assert (found.states, found.transitions) == (10_252, 44_898)


@pytest.mark.usefixtures("narrow", "crowded")
def test_several_words_and_threads() -> None:
    """Both at once."""
    assert same_counts(100, 110, 2) > 5
    found = quickly(instance(OneRound, ranks=3).system({}), 2)
    assert (found.states, found.transitions) == (10_252, 44_898)


def put(word: int, slots: Any, alone: bool) -> bool:
    """Put a state of one word into a table; whether it was not there."""
    key = int(kernels.mixed(np.uint64(word), np.uint64(word)))
    return bool(kernels.insert_one(np.uint64(word), key * len(slots) >> 64, slots, alone))


def grow(slots: Any, size: int) -> None:
    """Make a table larger, at first with little room to work in."""
    left, room = len(slots), 1
    slots.resize(size, refcheck=False)
    while left := machine_code.run("spread_table", left, slots, np.zeros(room, np.uint64)):
        room *= 2


def assert_has(slots: Any, known: set[int]) -> None:
    """All states are found in a table, and no others are in it."""
    assert {int(each) - 1 for each in slots if each} == known
    for word in known:
        at = kernels.find(np.array([word], np.uint64), 0, 1, slots, slots)
        assert int(slots[at]) == word + 1


def test_a_table_grows_in_place() -> None:
    """Behind each growth of a very full table all states are found again, and no others."""
    draw = random.Random(5)
    slots, known = np.zeros(11, np.uint64), set[int]()
    for _ in range(60):
        while len(known) < 0.95 * len(slots) - 1:
            word = draw.getrandbits(draw.choice((3, 20, 63)))
            assert put(word, slots, alone=draw.random() < 0.5) == (word not in known)
            known.add(word)
        grow(slots, len(slots) + draw.randint(1, len(slots) // 3))
        assert_has(slots, known)


def test_a_table_grows_whose_end_goes_on_at_its_beginning() -> None:
    """The same where many states belong to the end of the table, and lie at its beginning."""
    draw = random.Random(6)
    words = [draw.getrandbits(63) for _ in range(4000)]
    late = [w for w in words if int(kernels.mixed(np.uint64(w), np.uint64(w))) >> 60 == 15]
    for _ in range(200):
        slots, known = np.zeros(draw.randint(8, 60), np.uint64), set[int]()
        for _ in range(3):
            while len(known) < 0.8 * len(slots):
                word = draw.choice(draw.choice((words, late, late)))
                assert put(word, slots, alone=True) == (word not in known)
                known.add(word)
            grow(slots, len(slots) + draw.randint(1, 4))
            assert_has(slots, known)


CACHED = """
import sys
from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.checkers.fast.search import Search
from tests.small import OneRound, instance

meter = Meter(Budget())
Search(instance(OneRound).system({}), frozenset(), meter).run()
print(meter.states, "numba" in sys.modules)
"""


def test_a_later_start_needs_no_numba() -> None:
    """What one process compiled the next one loads, without numba and without a word."""
    for _ in range(2):
        command = [sys.executable, "-c", CACHED]
        ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert (ended.stdout, ended.stderr) == ("36 False\n", "")


def test_kept_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken only if it is whole and was made from these sources; else it is made again."""
    made, make = list[str](), machine_code._compiled
    monkeypatch.setattr(machine_code, "folder", lambda: tmp_path / "kept")
    monkeypatch.setattr(
        machine_code, "_compiled", lambda *asked: made.append(asked[0]) or make(*asked)
    )

    def marked() -> int:
        machine_code.loaded.cache_clear()
        rows, log, slots = np.zeros(1, np.int64), np.array([6], np.uint64), np.zeros(4, np.uint64)
        slots[int(kernels.mixed(log[0], log[0])) * 4 >> 64] = 7
        alive = np.zeros(4, np.uint8)
        assert machine_code.run("mark", rows, 1, log, slots, alive) == 1
        return int(alive.sum())

    assert (marked(), marked(), made) == (1, 1, ["mark"])
    (file,) = (tmp_path / "kept").iterdir()
    whole = file.read_bytes()
    for spoiled in (whole[:-1], whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], b""):
        file.write_bytes(spoiled)
        made.clear()
        assert (marked(), made) == (1, ["mark"])
        assert file.read_bytes()[32:] != spoiled[32:]
    monkeypatch.setattr(machine_code, "SOURCES", machine_code.SOURCES[1:])
    made.clear()
    assert (marked(), made) == (1, ["mark"])
    monkeypatch.setattr(machine_code, "folder", lambda: file)
    made.clear()
    assert (marked(), made) == (1, ["mark"]), "where nothing can be kept it is made each time"


def test_what_is_forgotten_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """States of one word are kept in their table alone until a run is asked for: a failure comes
    with a run that replays, and the counts of its verdict are as if all had been kept."""
    made, wrong = BROKEN["stale"]
    question = question_of(made, "stale")
    found = check(made, question, "fast-full", Budget())
    assert found.trace is not None and found.trace.property == wrong
    begin = Search._begin
    monkeypatch.setattr(Search, "_begin", lambda self, keeps: begin(self, keeps=True))
    assert to_data(check(made, question, "fast-full", Budget())) == to_data(found)
    sound = instance(OneRound).system({})
    monkeypatch.undo()
    search_of_all = Search(sound, frozenset({"deadlock-free"}), Meter(Budget()))
    assert not search_of_all.run().findings and not search_of_all.keeps


# Verdicts


class Spinning(Protocol):
    """Rank 0 polls two flags in turn for a sum that rank 1 may never bring about."""

    def memory(self) -> None:
        self.flag = Region(owner=0, index=(2,), block=8)

    @role
    async def worker(self, core: Core) -> None:
        if core.rank:
            await core.put(self.flag[0][0], 1)
            await core.put(self.flag[0][1], core.choose("second flag", (0, 1)))
            await core.quiet()
            return

        async def sweep() -> int | None:
            found = int(await core.load(self.flag[0][0])) + int(await core.load(self.flag[0][1]))
            return found if found == 2 else None

        await core.poll_until(sweep)


class Racing(Protocol):
    """A load that nothing orders behind the put that it reads."""

    def memory(self) -> None:
        self.word = Region(owner=0, block=8)

    @role
    async def worker(self, core: Core) -> None:
        if core.rank:
            await core.put(self.word[0], 1)
            await core.quiet()
        else:
            await core.load(self.word[0])


BROKEN: dict[str, tuple[Instance, str]] = {
    "stale": (with_settings(instance(FlagAfterData), quiet=False), "happens-before"),
    "stuck": (with_settings(instance(FlagAfterData), flag=False), "deadlock-free"),
    "hung": (instance(Spinning), "deadlock-free"),
    "race": (instance(Racing), "race-free"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("crowded")
def test_broken(name: str, threads: int) -> None:
    """Each kind of failure is found, as `reference` finds it, with a run that replays."""
    made, wrong = BROKEN[name]
    question = question_of(made, name)
    found = check(made, question, "fast", Budget(threads=threads))
    assert found.trace is not None and found.trace.property == wrong
    assert not differ(check_explicitly(made, question, "reference"), found)
    assert replay(found.trace, made).reproduced
    again = check(made, question, "fast", Budget(threads=3 - threads))
    assert to_data(again) == to_data(found)


@pytest.mark.parametrize("kind", [FlagAfterData, Meeting])
def test_sound(kind: type[Protocol]) -> None:
    """Sound protocols are proved, with the counts of `reference`."""
    one, other = both(instance(kind))
    assert other.answer is Answer.PROVED
    assert not differ(one, other)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("sp", {}),
        ("tff", {"counts": False}),
        ("dc", {"counts": False}),
        ("sw", {"counts": False}),
        ("bsp", {}),
    ],
)
def test_core_protocols(name: str, settings: dict[str, bool]) -> None:
    """Protocols that ship with us, one round of balanced traffic, are proved with equal counts."""
    bounds = Bounds(ranks=2, rounds=1, routing="balanced")
    one, other = both(Instance(find(name, ()).kind, bounds, CM384, settings))
    assert other.answer is Answer.PROVED
    assert not differ(one, other)


def test_random_verdicts() -> None:
    """On random protocols the verdicts never contradict each other."""
    found = [compared(instance_of(plan_of(seed))) for seed in range(200, 240)]
    assert found.count("violated") > 5 and found.count("proved") > 1


@pytest.mark.long
def test_many_random_verdicts() -> None:
    """The same on two thousand more."""
    found = [compared(instance_of(plan_of(seed))) for seed in range(5_000, 7_000)]
    assert found.count("violated") > 500 and found.count("proved") > 80


# Faults planted in the engine


def forgets_the_last_test(made: Any) -> Any:
    def tests(self: Any, *rest: Any) -> Iterator[Any]:
        found = list(dict.fromkeys(made(self, *rest)))
        yield from found[:-1] if len(found) > 1 else found

    return tests


def forgets_a_code(made: Any) -> Any:
    def code(self: Any, content: Any) -> int:
        return int(made(self, content)) & ~1

    return code


def says_nothing(made: Any) -> Any:
    return lambda self, stride: False


def writes_less(made: Any) -> Any:
    return lambda self, state, transition: []


def never_outgrown(made: Any) -> Any:
    return lambda self: True


FAULTS = {
    "a wait that does not look": (tabulation.Tabulation, "_process_tests", forgets_the_last_test),
    "two contents with one code": (place.Place, "code", forgets_a_code),
    "steps that say nothing": (tabulation.Tabulation, "_fails", says_nothing),
    "only what differs is written": (tabulation.Tabulation, "_surely", writes_less),
    "a layout that stays too small": (layout.Layout, "fits", never_outgrown),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.usefixtures("narrow")
def test_planted_faults(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in the engine shows: an assertion of its own, or other counts on a few systems."""
    kind, attribute, fault = FAULTS[name]
    monkeypatch.setattr(kind, attribute, fault(getattr(kind, attribute)))
    caught = 0
    for seed in range(25):
        try:
            same_counts(seed, seed + 1)
            compared(instance_of(plan_of(seed)))
        except (AssertionError, IndexError, StopIteration):
            caught += 1
    assert caught > 1


# Limits and bad input


def test_memory_is_bounded() -> None:
    """A search that would outgrow its memory stops, undecided, and names the option."""
    made = instance(OneRound, ranks=3, tokens=2)
    found = check(made, question_of(made, "big"), "fast-full", Budget(memory=2**20))
    assert found.answer is Answer.UNDECIDED
    assert "--memory" in found.properties[0].detail


@pytest.mark.parametrize("budget", [Budget(states=5_000), Budget(seconds=1e-9)])
def test_other_limits(budget: Budget) -> None:
    """So do limits of states and time."""
    made = instance(OneRound, ranks=3)
    question = question_of(made, "big", properties=("deadlock-free",))
    found = check(made, question, "fast-full", budget)
    assert found.answer is Answer.UNDECIDED
    assert "the search stopped at --budget" in found.properties[0].detail


@pytest.mark.parametrize("key", [{"quiet": "target"}, {"load_order": "none"}])
def test_uncovered_is_undecided(key: dict[str, str]) -> None:
    """A fabric that the engine has no words for is not decided, by name."""
    made = replace(instance(OneRound), profile=Profile("weak").changed(key))
    found = check(made, question_of(made, "weak"), "fast", Budget())
    assert found.answer is Answer.UNDECIDED
    assert next(iter(key)) in found.properties[0].detail


def test_no_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without numba the engine is refused in one line that says what to do."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    made = instance(OneRound)
    with pytest.raises(UserError, match="numba"):
        check(made, question_of(made, "none"), "fast", Budget())


def test_no_threads(capsys: pytest.CaptureFixture[str]) -> None:
    """``--threads 0`` is bad input."""
    assert run(["sp", "--engine", "fast", "--threads", "0"]) == 2
    assert "--threads" in capsys.readouterr().err


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """``--engine fast --full --threads 2`` proves, and says which engine did."""
    asked = ["sp", "--rounds", "1", "--routing", "balanced", "--engine", "fast"]
    assert run([*asked, "--full", "--threads", "2", "-q"]) == 0
    assert "proved" in (out := capsys.readouterr().out) and "engine=fast-full" in out
