"""What every oracle of this family does with a direction before it looks at it."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad import checks


def scaled(direction: Any, shape: tuple[int, ...], owner: str) -> np.ndarray:
    """The direction divided by its largest absolute entry, so that tolerances of a solver behind the oracle are relative.

    Parameters
    ----------
    direction : array_like of float
        A direction; 0 stays 0.
    shape : tuple of int
        The shape of the points of the set.
    owner : str
        Name of the set, for messages.

    Returns
    -------
    np.ndarray
        A read-only array whose largest absolute entry is 1, or 0 everywhere.

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
    if top < np.finfo(float).tiny and top > 0:  # the quotient of two subnormal numbers is exact after this
        given, top = given * 2.0**600, top * 2.0**600
    return checks.read_only(given / top) if top > 0 else given
