"""``--swarm N``: the searches as jobs of local processes, or of a Dask cluster that is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

from syncproof.checkers.explicit.search import Budget
from syncproof.checkers.swarm.check import check
from syncproof.checkers.swarm.dive import dive
from syncproof.cluster import ClusterMissing, Losses, cluster_at
from syncproof.engines import Engine, unfinished
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.verdict import Question, Verdict
from syncproof.registry import blaming, find
from syncproof.request import Request, resolve

STATES_OF_ONE_SEARCH = 200_000
"""Unless ``--budget-states`` says otherwise: a search is bounded, that is its point."""


def search(request: Request, budget: Budget, seed: int) -> dict[str, Any]:
    """One search, in a worker: a request travels there, plain data comes back."""
    asked = resolve(request, find(request.protocol))
    with blaming(asked.subject, innermost=True):
        return dive(asked.instance, asked.question, seed, budget).as_data()


@dataclass(frozen=True)
class Swarm(Engine):
    """The engine that ``--swarm`` asks for."""

    request: Request

    def check(
        self, instance: Instance, question: Question, budget: Budget, report: Callable[..., None]
    ) -> Verdict:
        """The verdict of all searches that came back; never a proof."""
        workers = os.cpu_count() or 1
        each = Budget(
            budget.states or STATES_OF_ONE_SEARCH, budget.seconds, budget.memory // workers
        )
        job = partial(search, self.request, each)
        try:
            with executor_of(self.request.cluster, workers) as (executor, losses):
                return check(instance, question, executor, job, self.request.swarm, losses, report)
        except ClusterMissing as error:
            return unfinished(instance, question, self.name, (0, 0), str(error))


def swarm_of(request: Request) -> Swarm:
    """The engine of a request for a swarm."""
    if request.engine != "auto":
        raise UserError(
            f"--swarm together with --engine {request.engine}",
            where="--swarm",
            expected="one of the two",
        )
    return Swarm("swarm", "many bounded searches, no proof", "", request)


@contextmanager
def executor_of(cluster: str, workers: int) -> Iterator[tuple[Executor, Losses]]:
    """An executor, and the exceptions by which it says that a job was lost with its worker."""
    if cluster:
        with cluster_at(cluster) as found:
            yield found
        return
    # A fork would copy whatever threads and locks this process has
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield pool, (BrokenExecutor, CancelledError)
