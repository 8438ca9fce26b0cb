"""Groups of entries by labels, for the balls of group norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from condgrad import checks


def group_numbers(groups: Any, shape: tuple[int, ...], owner: str) -> np.ndarray:
    """Return the number of its group for each entry, an array of ``shape``.

    ``groups`` has one label for each index of the first axis; without it every index is a group.
    """
    labels = np.arange(shape[0]) if groups is None else np.asarray(groups)
    checks.same_shape(labels.shape, shape[:1], f"The list of groups of {owner} (a label for each index)")
    if labels.dtype.kind not in "biuUS":
        raise ValueError(f"The groups of {owner} must be labels, whole numbers or names, but got {labels.dtype}.")
    _, numbers = np.unique(labels, return_inverse=True)
    return checks.read_only(np.repeat(numbers, math.prod(shape[1:])).reshape(shape))


def rows_are_groups(numbers: np.ndarray) -> bool:
    """Return whether the groups are the indices of the first axis, in their order."""
    return bool(np.array_equal(numbers.reshape(len(numbers), -1)[:, 0], np.arange(len(numbers))))


def members(numbers: np.ndarray, group: int, by_row: bool) -> np.ndarray:
    """Return the flat indices of the entries of a group, increasing; ``by_row`` is the answer of :func:`rows_are_groups`."""
    if not by_row:
        return np.flatnonzero(numbers == group)
    width = numbers.size // len(numbers)
    return np.arange(group * width, (group + 1) * width)
