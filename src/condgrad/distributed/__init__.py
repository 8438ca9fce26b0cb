"""Objectives whose data are on the workers of a Dask cluster, which only this folder imports."""

from condgrad.distributed.completion import ShardedCompletion
from condgrad.distributed.folders import EntryFolder, RowFolder
from condgrad.distributed.objective import Sharded
from condgrad.distributed.shards import ShardError
from condgrad.distributed.sources import Loader
from condgrad.distributed.sum import ShardedSum

__all__ = ["EntryFolder", "Loader", "RowFolder", "ShardError", "Sharded", "ShardedCompletion", "ShardedSum"]
