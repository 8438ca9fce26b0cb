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
