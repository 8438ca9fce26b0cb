"""`condgrad complete` with --workers or --scheduler: the entries are read and kept by the workers of a Dask cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condgrad.checks import counted
from condgrad.cli.terminal import say

if TYPE_CHECKING:
    from condgrad.data import Cleanup
    from condgrad.distributed import ShardedCompletion

NOT_ON_A_CLUSTER = ("filled", "keep", "wide", "delimiter", "no_header", "format", "strict", "period")
"""Options of `condgrad complete` that need the entries in this process."""


@dataclass(frozen=True)
class ReadByWorkers:
    """What the report says of entries that this process has not read."""

    shape: tuple[int, int]
    cleanup: Cleanup

    def __len__(self) -> int:
        return self.cleanup.entries


def add_cluster_options(command: Any) -> None:
    """Add the options that choose a cluster."""
    command.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="start N worker processes on this machine, which read and keep the data",
    )
    command.add_argument(
        "--scheduler", metavar="ADDRESS", help="use the workers of this Dask scheduler, such as tcp://10.0.0.1:8786"
    )
    command.add_argument(
        "--scratch",
        type=Path,
        metavar="FOLDER",
        help="with workers: folder for a copy of the entries, which all workers can read (default: the folder of the model)",
    )
    command.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="with workers: give up a shard if there is no answer within this time",
    )


def on_cluster(arguments: Any) -> bool:
    """Whether the entries are read by workers; raises ValueError for options that do not go together."""
    asked = arguments.workers is not None or arguments.scheduler is not None
    if arguments.workers is not None and arguments.scheduler is not None:
        raise ValueError("--workers starts processes and --scheduler uses others: give one of them.")
    if arguments.workers is not None and arguments.workers < 1:
        raise ValueError(f"--workers is {arguments.workers}: give a number of at least 1.")
    alone = [name for name in ("scratch", "timeout") if getattr(arguments, name) is not None]
    if alone and not asked:
        raise ValueError(f"--{alone[0]} is about workers: give --workers or --scheduler too.")
    refused = [name for name in NOT_ON_A_CLUSTER if getattr(arguments, name)]
    if asked and refused:
        option = refused[0].replace("_", "-")
        raise ValueError(f"--{option} is not possible if workers read the data: leave it out, or leave --workers out.")
    return asked


@contextmanager
def entries_on_workers(arguments: Any) -> Iterator[tuple[ShardedCompletion, ReadByWorkers]]:
    """The entries of the files, on workers, and what the report says of them. Errors of shards are bad input."""
    from condgrad.data import Cleanup
    from condgrad.distributed import EntryFolder, ShardedCompletion, ShardError
    from condgrad.distributed.folders import column_names
    from condgrad.distributed.start import connected
    from condgrad.objectives.losses import Squared

    data, scratch = str(arguments.data), arguments.scratch or arguments.out.parent
    scratch.mkdir(parents=True, exist_ok=True)
    given = None if arguments.columns is None else [name.strip() for name in arguments.columns.split(",")]
    try:
        folder = EntryFolder(data, str(scratch.resolve()), column_names(data, given), names=True)
        with connected(arguments.workers, arguments.scheduler) as client:
            objective = ShardedCompletion(folder, None, Squared(), client=client, timeout=arguments.timeout)
            size = objective.pattern.size
            cleanup = Cleanup(data, "utf-8", size, size, 0, 0, (0, 0), (), "row")
            workers = counted(len(objective.pattern.cluster.workers()), "worker")
            shards = counted(objective.pattern.n_shards, "shard")
            say(f"condgrad: {counted(size, 'entry')} in {shards} on {workers}.", stream=sys.stderr)
            yield objective, ReadByWorkers(objective.shape, cleanup)
    except ShardError as error:
        raise ValueError(str(error)) from error
