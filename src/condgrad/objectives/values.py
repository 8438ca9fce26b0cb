"""Functions known by their values only, as simulators and black boxes are: gradients are estimated from differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.objectives.sums import Sampled, Sum
from condgrad.objectives.user import Draw, Value, _Draw, _function, _settle, _Value
from condgrad.points.rounding import TERM_ROUNDING_UNITS, UNIT_ROUNDOFF
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
        _settle_differences(self)
        checks.settle(self, value=_Value(_function(self.value, "value"), self.shape))

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Return ``size`` directions, or for coordinates their flat indices."""
        return _draw_directions(self, size, rng)

    def term_rows(self, x: Point, batch: Batch) -> np.ndarray:
        """Return the two-point estimates of the directions of a batch, stacked."""
        rows = np.array([_two_points(self, x, u, self.value) for u in batch], dtype=float)
        return rows.reshape(len(batch), *self.shape)

    def assemble(self, rows: np.ndarray, batch: Batch) -> np.ndarray:
        """Return the mean of the estimates."""
        return rows.mean(axis=0)


@final
@dataclass(frozen=True, eq=False)
class FunctionValuesExpectation(Sampled):
    r"""F(x) = E f(x, xi), of which only values f(x, xi) are known, such as those of a simulator with random inputs.

    A sample is a pair of xi and a random direction u with E u u' = I. Its gradient is the two-point estimate with one xi,

    .. math:: \frac{f(x + \mu u, \xi) - f(x - \mu u, \xi)}{2 \mu} \, u,

    which is counted as two values. A method that compares two points, such as ``acc-szofw-star``, takes one xi and u at both.

    Parameters
    ----------
    samples : callable
        ``samples(size, rng) -> array``: ``size`` independent samples of xi, along the first axis.
    sample_value : callable
        ``sample_value(x, xi) -> float``, also at points up to mu |u| outside of the set.
    shape : int or tuple of int
        Shape of the points.
    smoothness : float, default None
        L: the gradient of F is L-Lipschitz. Methods for samples need it.
    lower_smoothness : float, default None
        l: F + l/2 |x|^2 is convex. None: not used.
    directions : {"gaussian", "coordinate"}, default "gaussian"
        Distribution of u.
    mu : float, default 1e-4
        The distance.
    lower_bound : float, default None
        A number below every value of F. None: not known.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> F = cg.FunctionValuesExpectation(
    ...     samples=lambda size, rng: rng.normal([0.7, 0.2, 0.9], 0.1, (size, 3)),
    ...     sample_value=lambda x, xi: (x - xi) @ (x - xi) / 2, shape=3, smoothness=1.0,
    ... )
    >>> result = cg.minimize(F, cg.Simplex(3), method="acc-szofw-star", batch=20, max_steps=300, validate=500)
    >>> float(np.abs(result.x - [0.4, 0.0, 0.6]).max()) < 0.1, result.counts["sfo"]
    (True, 0)
    """

    samples: Draw
    sample_value: Callable[[Point, Any], float]
    shape: Any
    smoothness: float | None = None
    lower_smoothness: float | None = None
    directions: str = "gaussian"
    mu: float = 1e-4
    lower_bound: float | None = None

    values_per_sample = 2
    """Values that one sample gradient takes: they are counted in place of sample gradients."""

    def __post_init__(self) -> None:
        _settle_differences(self)
        checks.settle(self, samples=_Draw(_function(self.samples, "samples")))
        _function(self.sample_value, "sample_value")

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Return ``size`` samples, each with its direction: a structured array with the fields xi and u."""
        xi, u = self.samples(size, rng), _draw_directions(self, size, rng)
        batch = np.empty(size, dtype=[("xi", xi.dtype, xi.shape[1:]), ("u", u.dtype, u.shape[1:])])
        batch["xi"], batch["u"] = xi, u
        return batch

    def term_rows(self, x: Point, batch: Batch) -> np.ndarray:
        """Return the two-point estimates of the samples of a batch, stacked."""
        x = checks.point(x, self.shape, "FunctionValuesExpectation")
        rows = [_two_points(self, x, u, self._at(xi)) for xi, u in zip(batch["xi"], batch["u"], strict=True)]
        return np.array(rows, dtype=float).reshape(len(batch), *self.shape)

    def assemble(self, rows: np.ndarray, batch: Batch) -> np.ndarray:
        """Return the mean of the estimates."""
        return rows.mean(axis=0)

    def _at(self, xi: Any) -> Value:
        return lambda x: float(checks.answer(self.sample_value(x, xi), (), "sample_value"))


@final
@dataclass(frozen=True, eq=False)
class FunctionValuesSum(Sum):
    r"""F = (1/n) sum_i f_i, of which only values of the terms are known. Gradients are central differences in all coordinates.

    So every method for finite sums and for plain functions minimises it. The gradient of a term takes 2 d values, d the number of
    variables; all counts are of values of terms, n for a value of F. The bias of the gradient is at most L mu sqrt(d)/2, which
    certificates include.

    Parameters
    ----------
    term_values : callable
        ``term_values(x, batch) -> array`` of length ``len(batch)``: the values of the terms with these numbers, also at points
        up to mu outside of the set.
    n_terms : int
        Number of terms.
    shape : int or tuple of int
        Shape of the points.
    smoothness : float, default None
        L of F. None: ``mean_square_smoothness``.
    lower_smoothness, lower_bound : float, default None
        As for :class:`FunctionValues`.
    term_smoothness : float
        A smoothness that each term has.
    mean_square_smoothness : float, default None
        As for :class:`FunctionSum`. None: ``term_smoothness``.
    mu : float, default 1e-6
        The distance.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> centres = np.random.default_rng(0).normal(size=(100, 3))
    >>> F = cg.FunctionValuesSum(
    ...     lambda x, batch: np.sum((x - centres[batch]) ** 2, axis=1) / 2, n_terms=100, shape=3, term_smoothness=1.0
    ... )
    >>> result = cg.minimize(F, cg.Simplex(3), method="ncgs", tol=1e-6)
    >>> result.status, result.counts["fo"], result.counts["values"] % 100
    ('converged', 0, 0)
    """

    term_values: Callable[[Point, Batch], np.ndarray]
    n_terms: int
    shape: Any
    smoothness: float | None = None
    lower_smoothness: float | None = None
    lower_bound: float | None = None
    term_smoothness: float | None = None
    mean_square_smoothness: float | None = None
    mu: float = 1e-6

    def __post_init__(self) -> None:
        if self.mean_square_smoothness is None:
            checks.settle(self, mean_square_smoothness=self.term_smoothness)
        if self.smoothness is None:
            checks.settle(self, smoothness=self.mean_square_smoothness)
        if self.smoothness is None:
            raise ValueError(
                "FunctionValuesSum needs a smoothness, from which the error of its differences is bounded: give term_smoothness=."
            )
        _settle_differences(self)
        _function(self.term_values, "term_values")
        checks.settle(self, n_terms=checks.whole(self.n_terms, "The n_terms of FunctionValuesSum"))

    @property
    def values_per_sample(self) -> int:
        """Values of a term that its gradient takes: they are counted in place of gradients."""
        return 2 * prod(self.shape)

    def value(self, x: Point) -> float:
        """Return F(x), the mean of all terms."""
        x = checks.point(x, self.shape, "FunctionValuesSum")
        return float(np.mean(self._values(x, np.arange(self.n_terms))))

    def grad(self, x: Point) -> np.ndarray:
        """Return the central differences of F."""
        return self._differences(x, self.value)

    def grad_terms(self, x: Point, batch: Batch) -> np.ndarray:
        """Return the mean of the terms' central differences."""
        return self._differences(x, lambda y: float(np.mean(self._values(y, batch))))

    def term_rows(self, x: Point, batch: Batch) -> np.ndarray:
        """Return the central differences of the terms, stacked."""
        rows = self._differences(x, lambda y: self._values(y, batch), (len(batch),))
        return np.moveaxis(rows, -1, 0)

    def assemble(self, rows: np.ndarray, batch: Batch) -> np.ndarray:
        """Return the mean of the rows."""
        return rows.mean(axis=0)

    def grad_scale(self, x: Point) -> float:
        """Return the error of the differences, in units of what certificates add for it."""
        error = (self.smoothness or 0.0) * self.mu / 2 + 4 * UNIT_ROUNDOFF * abs(self.value(x)) / self.mu
        return sqrt(prod(self.shape)) * error / (TERM_ROUNDING_UNITS * UNIT_ROUNDOFF)

    def _values(self, x: Point, batch: Batch) -> np.ndarray:
        return checks.answer(self.term_values(x, batch), (len(batch),), "term_values")

    def _differences(self, x: Point, value: Callable[[Point], Any], each: tuple[int, ...] = ()) -> np.ndarray:
        x, rows = checks.point(x, self.shape, "FunctionValuesSum"), np.empty((*self.shape, *each))
        for at in np.ndindex(*self.shape):
            move = np.zeros(self.shape)
            move[at] = self.mu
            rows[at] = (value(x + move) - value(x - move)) / (2 * self.mu)
        return rows


def _settle_differences(objective: Any) -> None:
    """The shape, the constants, the distance and the distribution of directions, checked."""
    owner = type(objective).__name__
    _settle(objective)
    if objective.shape is None:
        raise TypeError(
            f"{owner} takes differences in directions of the shape of the points, and has none: give shape=."
        )
    checks.positive(objective.mu, f"The mu of {owner}")
    if hasattr(objective, "directions"):
        checks.choice(objective.directions, DIRECTIONS, "distribution of directions")


def _draw_directions(objective: Any, size: int, rng: np.random.Generator) -> np.ndarray:
    """``size`` directions, or for coordinates their flat indices."""
    if objective.directions == "coordinate":
        return rng.integers(prod(objective.shape), size=size)
    return rng.standard_normal((size, *objective.shape))


def _two_points(objective: Any, x: Point, u: Any, value: Value) -> np.ndarray:
    """The two-point estimate along u, which is a flat index for coordinates."""
    if objective.directions == "coordinate":
        unit = np.zeros(objective.shape)
        unit.flat[u] = sqrt(prod(objective.shape))
        u = unit
    mu = objective.mu
    return (value(x + mu * u) - value(x - mu * u)) / (2 * mu) * u
