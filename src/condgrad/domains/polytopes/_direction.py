"""What every oracle of this family does with a direction before it looks at it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from condgrad import checks
from condgrad.linalg.selection import largest_size

MODERATE = (1e-280, 1e280)
"""Sums of the squares of a direction that needs no factor."""


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
    given, top = _with_size(direction, shape, owner)
    return _times_power(given, -math.frexp(top)[1])


def moderate(direction: Any, shape: tuple[int, ...], owner: str) -> np.ndarray:
    """The direction as it is, if sums of its entries neither overflow nor vanish, else as :func:`scaled` returns it.

    For oracles whose answer does not depend on a factor that is a power of 2.
    """
    given, square = checks.direction_and_square(direction, shape, owner)
    if MODERATE[0] < square < MODERATE[1]:
        return given
    return _times_power(given, -math.frexp(largest_size(given))[1])


def _with_size(direction: Any, shape: tuple[int, ...], owner: str) -> tuple[np.ndarray, float]:
    given = checks.point(direction, shape, owner)
    top = largest_size(given)
    if not math.isfinite(top):
        found = checks.not_finite(given)
        raise checks.NonFinite(f"The direction given to {owner} holds NaN or Inf ({found}): check the gradient.")
    return given, top


def _times_power(given: np.ndarray, exponent: int) -> np.ndarray:
    """2^exponent times an array; a product is faster than ldexp, if the power is a number."""
    if exponent == 0:
        return given
    return checks.read_only(given * math.ldexp(1.0, exponent) if exponent < 1024 else np.ldexp(given, exponent))
