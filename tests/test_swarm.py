"""The swarm: it finds what is wrong, repeats itself, survives lost workers, and never proves."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.swarm.check import check
from syncproof.checkers.swarm.dive import Filter, dive
from syncproof.cli import run
from syncproof.models.verdict import Answer, Verdict
from syncproof.registry import find
from syncproof.request import Asked, Request, resolve
from syncproof.swarm import executor_of, search
from tests.clusters import cluster_of_two

FEW = Budget(states=3_000)


def asked(**request: Any) -> Asked:
    """A request resolved; two ranks of ``sp`` unless it says otherwise."""
    made = Request(**{"protocol": "sp", **request})
    return resolve(made, find(made.protocol))


def swarmed(of: Asked, wanted: int, executor: Executor | None = None) -> Verdict:
    """The verdict of a swarm in this process."""

    def job(seed: int) -> dict[str, Any]:
        return dive(of.instance, of.question, seed, FEW).as_data()

    with executor or ThreadPoolExecutor(1) as used:
        return check(of.instance, of.question, used, job, wanted)


@pytest.mark.parametrize(
    ("name", "settings", "dropped", "property"),
    [
        ("sp", ("windows=1",), (), "happens-before"),
        ("sp", ("quiet=no",), (), "happens-before"),
        ("sp", (), ("reserved_sentinel",), "deadlock-free"),
        ("sw", ("quiet=no",), (), "happens-before"),
    ],
)
def test_a_known_violation_is_found(
    name: str, settings: tuple[str, ...], dropped: tuple[str, ...], property: str
) -> None:
    """A swarm on a broken protocol violates one of its properties, with a trace that says which."""
    of = asked(protocol=name, settings=settings, dropped=dropped, properties=(property,))
    found = swarmed(of, 8)
    assert found.answer is Answer.VIOLATED
    assert found.trace is not None and found.trace.property == property


def test_choices_are_drawn() -> None:
    """A violation that needs a certain routing is found: assignments are drawn, not fixed."""
    of = asked(settings=("counts=no",), dropped=("dense_traffic",), routing="all")
    assert swarmed(of, 16).answer is Answer.VIOLATED


def test_a_swarm_never_proves() -> None:
    """A sound protocol of 36 states, searched to its end many times over, is still not decided."""
    found = swarmed(asked(settings=("counts=no",), rounds=1, routing="balanced"), 4)
    assert found.states > 4 * 30
    assert {each.answer for each in found.properties} == {Answer.UNDECIDED}
    assert "no proof" in found.properties[0].detail


def test_equal_seeds_see_the_same() -> None:
    """A seed makes the search; different seeds make different ones."""
    of = asked()
    one, again, other = (dive(of.instance, of.question, seed, FEW) for seed in (3, 3, 4))
    assert one == again
    assert one.transitions != other.transitions


def test_the_filter_forgets_nothing() -> None:
    """A state that was added is never new again, and a full filter takes new ones for known."""
    small = Filter(7, bits=1 << 10)
    states = [(n, n * n) for n in range(2_000)]
    new = [small.add(each) for each in states]
    assert not any(small.add(each) for each in states)
    assert all(new[:20]) and not all(new)
    assert small.load > 0.9


class Fragile(ThreadPoolExecutor):
    """Loses every search with an odd seed."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if args[0] % 2:
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor("the worker is gone"))
            return future
        return super().submit(fn, *args, **kwargs)


def test_what_is_lost_is_said() -> None:
    """Searches lost with their worker leave a partial answer that says so."""
    found = swarmed(asked(), 4, Fragile(1))
    assert found.answer is Answer.UNDECIDED
    assert found.states > 0
    assert "partial: 2 of 4 searches were lost (BrokenExecutor: the worker is gone)" in found.notes


def test_our_own_errors_are_not_losses() -> None:
    """An exception of a search itself is raised, not counted as a lost worker."""

    def job(seed: int) -> dict[str, Any]:
        raise AssertionError(seed)

    of = asked()
    with ThreadPoolExecutor(1) as executor, pytest.raises(AssertionError):
        check(of.instance, of.question, executor, job, 2)


def test_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Local processes find the violation, exit code 1, and its trace replays."""
    trace = str(tmp_path / "trace.json")
    code = run(["sp", "--set", "windows=1", "--swarm", "4", "-q", "--trace", trace])
    assert code == 1
    assert "engine=swarm" in capsys.readouterr().out
    assert run(["replay", trace]) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--swarm", "-1"], "--swarm"),
        (["--swarm", "2", "--engine", "reduced"], "--swarm together with --engine reduced"),
        (["--cluster", "tcp://127.0.0.1:1"], "--cluster without --swarm"),
    ],
)
def test_bad_input(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What does not fit together is one line and exit code 2."""
    assert run(["sp", *words]) == 2
    assert message in capsys.readouterr().err


class TestCluster:
    """A real Dask cluster of two workers on this machine."""

    pytestmark = pytest.mark.outside("dask")

    def test_a_violation_is_found(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The searches run on the cluster and find what local ones find."""
        with cluster_of_two() as cluster:
            words = ["--swarm", "4", "-q", "--cluster", cluster.scheduler_address]
            assert run(["sp", "--set", "windows=1", *words]) == 1
        assert "engine=swarm" in capsys.readouterr().out

    def test_nobody_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A cluster that does not answer is not decided, exit code 3, with its address."""
        assert run(["sp", "--swarm", "2", "--cluster", "tcp://127.0.0.1:9"]) == 3
        assert "no cluster answers at tcp://127.0.0.1:9" in capsys.readouterr().out

    def test_it_dies_half_way(self) -> None:
        """What came back before the cluster went away is kept, and the rest is said to be lost."""
        request = Request("sp", routing="balanced")
        of = resolve(request, find("sp"))
        with (
            cluster_of_two() as cluster,
            executor_of(cluster.scheduler_address, 2) as (executor, losses),
        ):

            def report(states: int, left: int, depth: int) -> None:
                if states:
                    cluster.close(timeout=5)

            found = check(of.instance, of.question, executor, Job(request), 40, losses, report)
        assert found.answer is Answer.UNDECIDED
        assert found.states > 0
        assert any(each.startswith("partial: ") for each in found.notes)


class Job:
    """A search of 20,000 states, as something that can travel."""

    def __init__(self, request: Request) -> None:
        self.request = request

    def __call__(self, seed: int) -> dict[str, Any]:
        return search(self.request, Budget(states=20_000), seed)
