"""What every oracle of this family does with a direction before it looks at it."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad import checks


def scaled(direction: Any, shape: tuple[int, ...], owner: str) -> np.ndarray:
    """The direction, multiplied by a power of 2 so that its largest absolute entry is between 1/2 and 1; 0 stays 0.

    Tolerances of a solver behind the oracle are then relative, and no sum of entries overflows. The product is exact.

    Parameters
    ----------
    direction : array_like of float
        A direction.
    shape : tuple of int
        The shape of the points of the set.
    owner : str
        Name of the set, for messages.

    Returns
    -------
    np.ndarray
        A read-only array.

    Raises
    ------
    ValueError
        If the direction has another shape.
    NonFinite
        If it holds NaN or Inf.
    """
    given = checks.point(direction, shape, owner)
    top = float(np.abs(given).max())
    if not np.isfinite(top):
        found = checks.not_finite(given)
        raise checks.NonFinite(f"The direction given to {owner} holds NaN or Inf ({found}): check the gradient.")
    return checks.read_only(np.ldexp(given, -int(np.frexp(top)[1])))
