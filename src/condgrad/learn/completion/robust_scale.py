"""Robust statistics of matrix completion: the scale of errors, and the range and quantization step of data.

The losses of `RobustCompletion` are defined here too. Their width is proportional to the scale of the errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.checks import choice
from condgrad.learn.sample_weights import weighted_median
from condgrad.objectives import Cauchy, GemanMcClure, Huber, Loss, Squared, Welsch

LOSSES: dict[str, Any] = {
    "welsch": lambda sigma: Welsch((2.985 * sigma) ** 2),
    "geman-mcclure": lambda sigma: GemanMcClure((3.787 * sigma) ** 2),
    "cauchy": lambda sigma: Cauchy((2.385 * sigma) ** 2),
    "huber": lambda sigma: Huber(1.345 * sigma),
    "squared": lambda sigma: Squared(),
}
"""Functions that make a loss, by name. Their argument sigma is the standard deviation of the errors of inliers. The factors give
an efficiency of 95 % relative to least squares under normal errors."""
ALIASES = {"smoothed-l0": "welsch"}
"""Other names of losses."""
AUTO = "auto"
"""Name that a user gives instead of a loss, so that the fit chooses the loss on held-out entries."""
CONVEX_LOSSES = ("huber", "squared")
MIN_COMMON_SHARE = 1e-3
"""A value is common if more than one entry, and at least this share of the entries, have this value. If the largest or smallest
value is common, it is treated as a hard limit of the range."""
MAX_SPORADIC_SHARE = 0.15
"""If most entries have the same value and at most this share of the entries differ from it, the differing entries may all be
outliers. They then do not define a quantization step."""
MAX_SAMPLED_VALUES = 100_000
"""Approximate number of values that are searched for a quantization step."""
OUTLIER_THRESHOLD = 3.0
"""In ``RobustPCA`` and the linear models, an error above this multiple of sigma is an outlier."""
MIN_SCALE = 1e-110
"""Smaller scales are set to 0, because the derivatives of a loss with such a small width would overflow."""


def loss_name(name: str) -> str:
    """Return the name of a loss, without aliases. Raises ValueError if there is no such loss."""
    return choice(ALIASES.get(str(name), name), LOSSES, "loss")


def loss_or_auto(name: str) -> str:
    """Return the name of a loss, without aliases, or "auto". Raises ValueError if the name is unknown."""
    known = choice(ALIASES.get(str(name), name), (AUTO, *LOSSES), "loss")
    return str(known)


def loss_for(name: str, sigma: float) -> Loss:
    """Make the loss with this name or alias. Its width fits errors with standard deviation sigma."""
    return LOSSES[loss_name(name)](sigma)


def median_scale(errors: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Standard deviation of normal errors with the same median absolute value as ``errors``, of which up to half may be outliers.

    ``weights`` are the weights of the rows of ``errors``. The weight of a row applies to all entries of the row.
    """
    sizes = np.abs(errors)
    if weights is None:
        middle = float(np.median(sizes, overwrite_input=True))
    else:
        middle = float(weighted_median(sizes.reshape(-1, 1), np.repeat(weights, sizes[0].size))[0])
    scale = 1.4826 * middle
    return scale if scale > MIN_SCALE else 0.0


def data_scale(values: np.ndarray) -> float:
    """Scale of the values around their median; never 0."""
    deviations = values - np.median(values)
    return median_scale(deviations) or float(np.abs(deviations).mean()) or 1.0


def value_range(values: np.ndarray, among: np.ndarray) -> tuple[float, float]:
    """Minimum and maximum of the values in the mask ``among``. An extreme value that is not common is replaced by -inf or inf."""
    many = max(2, MIN_COMMON_SHARE * np.count_nonzero(among))
    least, most = values.min(where=among, initial=np.inf), values.max(where=among, initial=-np.inf)
    lower = least if np.count_nonzero((values == least) & among) >= many else -np.inf
    upper = most if np.count_nonzero((values == most) & among) >= many else np.inf
    return float(lower), float(upper)


def quantization_step(values: np.ndarray) -> float:
    """Smallest difference between common values, such as 1 for ratings or counts; 0 if the values are not quantized.

    The scale of a loss is at least half of the step. Then an error of one step is not an outlier, even if more than half of the
    errors are 0.

    If only one value is common, such as 0 in data about rain, the step is the median distance of all other values from the common
    value. If the other values are few, they may be outliers; the step is then 0. It is also 0 if they are at least half of the
    values.
    """
    some = values[:: max(len(values) // MAX_SAMPLED_VALUES, 1)]
    distinct, counts = np.unique(some, return_counts=True)
    common = distinct[counts >= max(2, MIN_COMMON_SHARE * len(some))]
    if len(common) > 1:
        return float(np.diff(common).min())
    others = some[some != distinct[counts.argmax()]]
    if MAX_SPORADIC_SHARE * len(some) < len(others) < 0.5 * len(some):
        return float(np.median(np.abs(others - distinct[counts.argmax()])))
    return 0.0
