"""Types of points other than numpy arrays, such as low-rank matrices. They support addition, scaling and inner products."""

from condgrad.points.active_set import ActiveSet
from condgrad.points.base import Structured, distance2, inner, norm2
from condgrad.points.blocks import Blocks
from condgrad.points.low_rank import LowRank
from condgrad.points.pattern import Pattern
from condgrad.points.sparse_array import SparseArray
from condgrad.points.sparse_plus_low_rank import SparsePlusLowRank

__all__ = [
    "ActiveSet",
    "Blocks",
    "LowRank",
    "Pattern",
    "SparseArray",
    "SparsePlusLowRank",
    "Structured",
    "distance2",
    "inner",
    "norm2",
]
