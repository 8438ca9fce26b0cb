"""Exponents of growth: least-squares fits on logarithms, and confidence intervals over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite, nan
from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """Mean over ``n`` seeds, with the half width of its 95 % confidence interval."""

    mean: float
    half: float
    n: int

    def __str__(self) -> str:
        if not isfinite(self.mean):
            return "-"
        mean = f"{round(self.mean, 2) + 0.0:.2f}"
        return f"{mean}±{self.half:.2f}" if isfinite(self.half) else f"{mean} (one seed)"


def estimate(values: Iterable[float]) -> Estimate:
    """Mean and Student's confidence interval of the finite values.

    Pass one slope per seed: seeds are independent, points of the same seed are not.
    """
    from scipy.stats import t as student  # local, because importing scipy.stats takes longer than importing condgrad

    known = np.array([v for v in values if isfinite(v)])
    if len(known) < 2:
        return Estimate(float(known.mean()) if len(known) else nan, nan, len(known))
    half = student.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))
    return Estimate(float(known.mean()), float(half), len(known))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Exponent p of y = c x^p, by least squares on the logarithms; NaN for fewer than three points."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0]) if len(x) >= 3 else nan


class Growth(NamedTuple):
    """Exponents of the model cost ~ (1/eps)^in_eps n^in_n."""

    in_eps: float
    in_n: float


def growth(eps: Sequence[float], cost: Sequence[float], n: Sequence[float] | None = None) -> Growth:
    """Fit the exponents of runs whose cost was fixed and whose eps was measured.

    log(1/eps) = a + b log(cost) + c log(n) by least squares; then cost ~ (1/eps)^(1/b) n^(-c/b). A regression of the cost on
    eps would underestimate the exponents, since eps is noisy. NaN for too few points, or if eps does not decrease.
    """
    regressors = [np.ones(len(eps)), np.log(cost)] + ([np.log(n)] if n is not None else [])
    if len(eps) <= len(regressors):
        return Growth(nan, nan)
    found = np.linalg.lstsq(np.column_stack(regressors), -np.log(eps), rcond=None)[0]
    if found[1] <= 0:
        return Growth(nan, nan)
    return Growth(float(1 / found[1]), float(-found[2] / found[1]) if n is not None else nan)
