"""A function known by its values only, as a simulator or a black box is: gradients are estimated from two values."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.objectives.sums import Sampled
from condgrad.objectives.user import Value, _function, _settle, _Value
from condgrad.protocols import Batch, Point

DIRECTIONS = ("gaussian", "coordinate")
"""Distributions of the direction u, with E u u' = I: normal, or sqrt(d) times a random unit vector."""


@final
@dataclass(frozen=True, eq=False)
class FunctionValues(Sampled):
    r"""F known by its values only. It is seen through samples, so that every method for samples minimises it without gradients.

    A sample is a random direction u with E u u' = I, and its gradient is the two-point estimate

    .. math:: \frac{F(x + \mu u) - F(x - \mu u)}{2 \mu} \, u,

    which is counted as two values of F. On a quadratic F its mean is the gradient. Otherwise its bias is at most
    L mu (d + 3)^(3/2)/2 for gaussian directions and L mu d/2 for coordinates, d the number of variables.

    Parameters
    ----------
    value : callable
        ``value(x) -> float``, also at points up to mu |u| outside of the set.
    shape : int or tuple of int
        Shape of the points.
    smoothness : float, default None
        L: the gradient of F is L-Lipschitz. Methods for samples need it.
    lower_smoothness : float, default None
        l: F + l/2 |x|^2 is convex. None: not used.
    directions : {"gaussian", "coordinate"}, default "gaussian"
        Distribution of u.
    mu : float, default 1e-4
        The distance. Smaller ones have less bias, but the rounding of F is divided by mu.
    lower_bound : float, default None
        A number below every value of F, for the first step size. None: not used.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> centre = np.array([0.7, 0.2, 0.9])
    >>> F = cg.FunctionValues(lambda x: (x - centre) @ (x - centre) / 2, 3, smoothness=1.0)
    >>> result = cg.minimize(F, cg.Simplex(3), method="momentum-sfw", batch=20, max_steps=300, validate=500)
    >>> float(np.abs(result.x - [0.4, 0.0, 0.6]).max()) < 0.1, result.counts["sfo"]
    (True, 0)

    References
    ----------
    Nesterov and Spokoiny 2017; Balasubramanian and Ghadimi 2018, 2022 (zeroth-order conditional gradient).
    """

    value: Value
    shape: Any
    smoothness: float | None = None
    lower_smoothness: float | None = None
    directions: str = "gaussian"
    mu: float = 1e-4
    lower_bound: float | None = None

    values_per_sample = 2
    """Values of F that one sample gradient takes: they are counted in place of sample gradients."""

    def __post_init__(self) -> None:
        _settle(self)
        if self.shape is None:
            raise TypeError("FunctionValues draws directions of the shape of the points, and has none: give shape=.")
        checks.choice(self.directions, DIRECTIONS, "distribution of directions")
        checks.positive(self.mu, "The mu of FunctionValues")
        checks.settle(self, value=_Value(_function(self.value, "value"), self.shape))

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Return ``size`` directions, or for coordinates their flat indices."""
        if self.directions == "coordinate":
            return rng.integers(prod(self.shape), size=size)
        return rng.standard_normal((size, *self.shape))

    def term_rows(self, x: Point, batch: Batch) -> np.ndarray:
        """Return the two-point estimates of the directions of a batch, stacked."""
        rows = np.array([self._estimate(x, u) for u in batch], dtype=float)
        return rows.reshape(len(batch), *self.shape)

    def assemble(self, rows: np.ndarray, batch: Batch) -> np.ndarray:
        """Return the mean of the estimates."""
        return rows.mean(axis=0)

    def _estimate(self, x: Point, u: Any) -> np.ndarray:
        if self.directions == "coordinate":
            unit = np.zeros(self.shape)
            unit.flat[u] = sqrt(prod(self.shape))
            u = unit
        return (self.value(x + self.mu * u) - self.value(x - self.mu * u)) / (2 * self.mu) * u
