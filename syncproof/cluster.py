"""A Dask cluster that is already there, as an executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from functools import partial
from typing import Any

from syncproof.models.errors import UserError

PATIENCE_S = 5.0
"""How long a cluster may take to answer."""

Losses = tuple[type[BaseException], ...]


ANSWER_S = 60.0
"""How long the answer to a job that is done may take to arrive."""


class ClusterMissing(Exception):
    """No cluster answers; the message says where and why."""


class ClusterExecutor(Executor):
    """Hands each job to the client of a cluster; a job always ends, if only as lost.

    The executor that the client offers leaves a job pending for ever when the connection breaks
    while its answer is on the way.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The future of a call on some worker of the cluster."""
        told: Future[Any] = Future()
        self.client.submit(fn, *args, pure=False, **kwargs).add_done_callback(partial(_tell, told))
        return told


def _tell(told: Future[Any], done: Any) -> None:
    try:
        found = done.result(timeout=ANSWER_S)
    except BaseException as error:
        told.set_exception(error)
    else:
        told.set_result(found)


@contextmanager
def cluster_at(address: str) -> Iterator[tuple[Executor, Losses]]:
    """The executor of a cluster, and the exceptions by which it says that a job was lost.

    Raises `UserError` for what is no address and where Dask is not installed, `ClusterMissing`
    where nobody answers.
    """
    try:
        import distributed
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise UserError(
            "Dask is not installed", where="--cluster", expected="pip install 'syncproof[cluster]'"
        ) from None
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout=PATIENCE_S, set_as_default=False)
    except ValueError as error:
        raise UserError(
            f"{address!r}: {error}", where="--cluster", expected="such as tcp://HOST:8786"
        ) from None
    except OSError as error:
        raise ClusterMissing(f"no cluster answers at {address}: {error}") from None
    try:
        yield ClusterExecutor(client), (KilledWorker, CancelledError, OSError)
    finally:
        client.close(timeout=1)
