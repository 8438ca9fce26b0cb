"""Objectives whose data are on the workers of a Dask cluster, which only this folder imports."""

from condgrad.distributed.completion import ShardedCompletion
from condgrad.distributed.parquet import ParquetFolder
from condgrad.distributed.shards import ShardError
from condgrad.distributed.sources import Loader

__all__ = ["Loader", "ParquetFolder", "ShardError", "ShardedCompletion"]
