"""A client for commands: of a cluster that runs already, or of worker processes that are started on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from condgrad.distributed.cluster import Client
from condgrad.distributed.shards import ShardError, explain
from condgrad.runtime.extras import needed_for

with needed_for("Objectives on a cluster"):
    from distributed import LocalCluster

LOOPBACK = "127.0.0.1"
"""Only processes on this machine reach a scheduler that is bound to this address."""


@contextmanager
def local_cluster(workers: int, **options: Any) -> Iterator[LocalCluster]:
    """Start worker processes of one thread each, which only this machine reaches; they end with the block."""
    settings = {"dashboard_address": f"{LOOPBACK}:0", "worker_dashboard_address": f"{LOOPBACK}:0"} | options
    threads = {"NUMBA_NUM_THREADS": "1"}
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, host=LOOPBACK, env=threads, **settings
    ) as cluster:
        yield cluster


@contextmanager
def connected(workers: int | None = None, scheduler: str | None = None) -> Iterator[Client]:
    """Connect to a scheduler, or start ``workers`` processes on this machine."""
    if scheduler is None:
        assert workers is not None
        with local_cluster(workers) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(scheduler)
    except (OSError, ValueError, TypeError) as error:
        raise ShardError(
            f"No scheduler could be reached at {scheduler} ({explain(error)}): give an address such as tcp://10.0.0.1:8786."
        ) from None
    with client:
        yield client
