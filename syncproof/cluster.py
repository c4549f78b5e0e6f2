"""A Dask cluster that is already there, as an executor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager
from typing import Any

from syncproof.models.errors import UserError

PATIENCE_S = 5.0
"""How long a cluster may take to answer."""

Losses = tuple[type[BaseException], ...]


class ClusterMissing(Exception):
    """No cluster answers; the message says where and why."""


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
        yield client.get_executor(), (KilledWorker, CancelledError, OSError)
    finally:
        client.close(timeout=1)
