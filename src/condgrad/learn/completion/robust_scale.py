"""Losses by name, as wide as the errors are large; and bounds of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.checks import choice
from condgrad.learn.sample_weights import median
from condgrad.objectives import Cauchy, GemanMcClure, Huber, Loss, Squared, Welsch

LOSSES: dict[str, Any] = {
    "welsch": lambda sigma: Welsch((2.985 * sigma) ** 2),
    "geman-mcclure": lambda sigma: GemanMcClure((3.787 * sigma) ** 2),
    "cauchy": lambda sigma: Cauchy((2.385 * sigma) ** 2),
    "huber": lambda sigma: Huber(1.345 * sigma),
    "squared": lambda sigma: Squared(),
}
"""sigma is the standard deviation of ordinary errors; the factors lose 5 % of the efficiency of least squares where all are."""
ALIASES = {"smoothed-l0": "welsch"}
CONVEX = ("huber", "squared")
SHARED = 1e-3
"""A smallest or largest value that this share of the entries have, and more than one, is a bound and no accident."""
FEW = 0.15
"""So small a share of the entries may be outliers, all of them."""
LOOKED_AT = 100_000
"""Values that tell whether there are steps."""
NOT_BELIEVED = 3.0
"""Errors above this multiple of sigma are outliers."""

NOTHING = 1e-110
"""Errors below this are none: a loss as narrow would have slopes beyond floats."""


def loss_name(name: str) -> str:
    """The name as it is known here: of two names of a loss the first."""
    return choice(ALIASES.get(str(name), name), LOSSES, "loss")


def loss_for(name: str, sigma: float) -> Loss:
    return LOSSES[loss_name(name)](sigma)


def spread(errors: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The standard deviation that normal errors of this median size have: half of them may be anything.

    ``weights`` are those of the rows of errors, in which all tasks count.
    """
    sizes = np.abs(errors)
    if weights is None:
        middle = float(np.median(sizes))
    else:
        middle = float(median(sizes.reshape(-1, 1), np.repeat(weights, sizes[0].size))[0])
    found = 1.4826 * middle
    return found if found > NOTHING else 0.0


def bounds(values: np.ndarray, among: np.ndarray) -> tuple[float, float]:
    """Between which some of the values lie, if they have bounds, as ratings do; infinite where they have none."""
    many = max(2, SHARED * np.count_nonzero(among))
    least, most = values.min(where=among, initial=np.inf), values.max(where=among, initial=-np.inf)
    lower = least if np.count_nonzero((values == least) & among) >= many else -np.inf
    upper = most if np.count_nonzero((values == most) & among) >= many else np.inf
    return float(lower), float(upper)


def coarseness(values: np.ndarray) -> float:
    """The smallest step between values that many share, as the 1 of ratings or counts; 0 where values are not on steps.

    An error of a step is no outlier, though more than half of the errors may be 0. Where many share one value only, as days
    without rain, a step is how far off the others commonly are; unless these are few, and may be wrong.
    """
    some = values[:: max(len(values) // LOOKED_AT, 1)]
    distinct, counts = np.unique(some, return_counts=True)
    shared = distinct[counts >= max(2, SHARED * len(some))]
    if len(shared) > 1:
        return float(np.diff(shared).min())
    others = some[some != distinct[counts.argmax()]]
    if FEW * len(some) < len(others) < 0.5 * len(some):
        return float(np.median(np.abs(others - distinct[counts.argmax()])))
    return 0.0
