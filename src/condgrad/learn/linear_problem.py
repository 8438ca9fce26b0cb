"""Fits of linear models to one data set under a norm constraint, in units in which the data have scale 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, issparse

from condgrad.checks import choice
from condgrad.domains import GroupBall, L1Ball, L2Ball, NuclearBall
from condgrad.driver import Result, Session, minimize
from condgrad.learn.completion.robust_scale import median_scale, quantization_step
from condgrad.learn.robust_start import robust_start, supports_robust_start
from condgrad.objectives import LinearModel, Loss, Squared
from condgrad.objectives._matrices import is_single, spectral_norm, times, transposed_times

CONSTRAINTS = ("l1", "l2", "group", "nuclear")
MAX_RADIUS_GROWTHS = 30
"""Maximum number of times the radius is multiplied by 4 to find a ball that does not limit the coefficients."""
MIN_RELATIVE_DEVIATION = 1e-12
"""A feature with a smaller standard deviation, relative to its mean, is constant up to rounding."""
MAX_FLOAT32_FEATURE, MIN_FLOAT32_FEATURE = 1e12, 1e-12
"""Float32 features whose largest absolute value is outside of these bounds become float64: their squares must not overflow."""


@dataclass(frozen=True, eq=False)
class Design:
    """Design matrix: the features, divided by a common unit, and a column of ones if there is an intercept.

    If there is an intercept, dense features are centred first, which changes the intercept only and improves the condition
    number. With ``scale``, dense features are then divided by their root mean squares (with ``largest``: by their largest
    absolute values), and sparse features, which are never centred, by their largest absolute values. Then neither the ball nor
    the tolerance depends on the units of the features. The common unit is such that a linear combination of the features with
    coefficients of norm 1 has a mean square over the rows of at most 1, and some combination attains 1.

    A coefficient for A is the coefficient of the given feature, multiplied by the scale of the feature and by ``unit`` (see
    :meth:`to_user`). The last row of the coefficients has the intercepts.

    A has the type of the features, float32 or float64. ``centre``, ``scales`` and ``unit`` are rounded to this type before A is
    computed with them, so that only the entries of A have rounding errors.
    """

    A: Any
    centre: np.ndarray
    scales: np.ndarray
    unit: float
    intercept: bool

    @classmethod
    def of(
        cls, X: Any, intercept: bool, weights: np.ndarray | None = None, scale: bool = False, largest: bool = False
    ) -> Design:
        """The design matrix of the features X. With ``largest``, dense features too are divided by their largest values."""
        n, d = X.shape
        sparse: bool = issparse(X)
        if is_single(X) and not MIN_FLOAT32_FEATURE <= abs(X).max() <= MAX_FLOAT32_FEATURE:
            X = X.astype(float)
        dtype = X.dtype
        centre = _column_means(X, weights).astype(dtype) if intercept and not sparse else np.zeros(d, dtype)
        A: Any = csr_array(X) if sparse else X - centre
        scales = np.ones(d, dtype)
        if scale:
            if sparse:
                scales = abs(A).max(axis=0).toarray()
            else:
                scales = abs(A).max(axis=0) if largest else np.sqrt(_column_means(A**2, weights)).astype(dtype)
            smallest = max(MIN_RELATIVE_DEVIATION, 4 * float(np.finfo(dtype).eps)) * np.abs(centre)
            scales = np.where(scales > smallest, scales, dtype.type(1.0))  # a constant feature has no scale
            A = A @ diags_array(1 / scales) if sparse else A / scales
        row_scales = None if weights is None else np.sqrt(weights / weights.mean())
        unit = float(dtype.type(spectral_norm(A, row_scales) / math.sqrt(n) or 1.0))
        A = (A / dtype.type(unit)).astype(dtype, copy=False)  # scipy divides in float64
        if intercept:
            ones: Any = np.ones((n, 1), dtype)
            A = csr_array(hstack([A, csr_array(ones)])) if sparse else np.hstack([A, ones])
        return cls(A, centre, scales, unit, intercept)

    def select_rows(self, chosen: np.ndarray) -> Design:
        """The design matrix of some rows, in the same units."""
        return replace(self, A=self.A[chosen])

    def to_user(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (features x tasks) and intercepts, for the features as they were given."""
        coef = W[: len(self.scales)] / (self.unit * self.scales)[:, None]
        return coef, W[-1] - self.centre @ coef if self.intercept else np.zeros(W.shape[1])


class Fit(NamedTuple):
    """One fit: the coefficients, and the result of the run of the solver."""

    x: Any
    """The coefficients; of several folds, a tuple with those of each fold."""
    result: Result
    binding: bool
    """Whether the constraint is active, that is, x is on the boundary of the ball."""


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Linear regression of Y, with a column for each task, under one kind of constraint."""

    design: Design
    Y: np.ndarray
    constraint: str | None
    groups: Any
    tol: float
    max_iter: int
    weights: np.ndarray | None = None
    """Weights of the rows; None: all are equal."""
    seed: int = 0
    """Decides which subsets of rows are drawn for a robust start."""
    phase: str = "final"
    """Name of the phase in the trace: "path, fold 1" and so on for fits that are compared on held-out rows, else "final"."""
    session: Session = field(default_factory=Session)
    """Trace and counts of all runs, on these rows or some of them."""
    last_fit: list[tuple[float, Fit]] = field(default_factory=list)
    """Radius and fit of the last run that has finished, on these rows or some of them. They are returned if the search is
    interrupted."""

    def __post_init__(self) -> None:
        if self.constraint is not None:
            choice(self.constraint, CONSTRAINTS, "constraint")

    @cached_property
    def _model(self) -> LinearModel:
        """The data, with the norms of the rows, which all fits share."""
        return LinearModel(self.design.A, self.Y, Squared(), self.weights)

    def select_rows(self, chosen: np.ndarray, tol: float) -> LinearProblem:
        """The problem of some rows, with another tolerance."""
        weights = None if self.weights is None else self.weights[chosen]
        design = self.design.select_rows(chosen)
        return replace(self, design=design, Y=self.Y[chosen], tol=tol, weights=weights, phase="path")

    def with_constraint(self, constraint: str | None) -> LinearProblem:
        """The same problem with another constraint."""
        return replace(self, constraint=constraint)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the coefficients in the ball, which are all except the intercepts."""
        return self.design.A.shape[1] - self.design.intercept, self.Y.shape[1]

    def zero(self) -> np.ndarray:
        """Coefficients and intercepts of 0."""
        return np.zeros((self.design.A.shape[1], self.Y.shape[1]))

    def ball(self, radius: float) -> Any:
        """The domain of the coefficients; an l2 ball if there is no constraint."""
        match self.constraint:
            case "l1":
                return L1Ball(self.shape, radius)
            case "group":
                return GroupBall(self.shape, radius, self.groups)
            case "nuclear":
                return NuclearBall(self.shape, radius)
            case _:
                return L2Ball(self.shape, radius)

    def fit(self, loss: Loss, radius: float | None, start: np.ndarray, scale: float = 1.0) -> Fit:
        """Fit Y divided by the scale; the coefficients returned are multiplied by the scale.

        Without a radius the ball is enlarged until it is not binding.
        """
        if radius is not None:
            return self._fit_in_ball(loss, radius, start, scale)
        radius = max(2 * self.norm(start), self._mean_absolute(), scale)  # the ball must contain the start
        for _ in range(MAX_RADIUS_GROWTHS):
            fit = self._fit_in_ball(loss, radius, start, scale)
            if not fit.binding:
                break
            radius, start = 4 * radius, fit.x
        return fit

    def _fit_in_ball(self, loss: Loss, radius: float, start: np.ndarray, scale: float) -> Fit:
        """Fit with this radius, and record the fit in ``last_fit``."""
        F = self._model.replaced(self.Y / scale, loss)
        ball = self.ball(radius / scale)
        domain = ball
        if self.design.intercept:
            intercept_bound = float(np.abs(F.y).max()) + ball.radius * float(F._row_norms.max())
            domain = BallWithIntercept(ball, intercept_bound)
        x0 = domain.project(start / scale)
        options: dict[str, Any] = {"tol": self.tol, "max_steps": self.max_iter, "every": 10}
        result = minimize(F, domain, x0, progress=False, on_interrupt="raise", **options)
        name, given = type(loss).__name__.lower(), radius / self.design.unit
        self.session.add(result, f"{self.phase}, {name} loss, {self.constraint or 'no'} constraint, radius {given:.4g}")
        binding = ball.norm(result.x[: self.shape[0]]) >= (1 - 1e-6) * ball.radius
        self.last_fit[:] = [(radius, Fit(scale * result.x, result, bool(binding)))]
        return self.last_fit[0][1]

    def errors(self, W: np.ndarray) -> np.ndarray:
        """Predictions minus targets, of shape (rows, tasks)."""
        return times(self.design.A, W) - self.Y

    def median_scale(self) -> float:
        """Robust scale of the targets, never 0."""
        return median_scale(self.Y, self.weights) or self._mean_absolute() or 1.0

    def _mean_absolute(self) -> float:
        return float(np.average(np.abs(self.Y).mean(axis=1), weights=self.weights))

    def robust_start(self) -> np.ndarray | None:
        """Coefficients from which a redescending loss can start; None if there are too few rows or too many features."""
        return self._robust_start if supports_robust_start(*self.design.A.shape) else None

    @cached_property
    def _robust_start(self) -> np.ndarray:
        """The robust start, which the searches with all losses share."""
        return robust_start(self.design.A, self.Y, self.seed, self.weights)

    def quantization_step(self) -> float:
        """Smallest quantization step of any task; 0 if one is not quantized."""
        return min(quantization_step(y) for y in self.Y.T)

    def norm(self, W: np.ndarray) -> float:
        """Norm of the coefficients without the intercepts."""
        return float(self.ball(1.0).norm(W[: self.shape[0]]))

    def first_radius(self, scale: float) -> float:
        """Length of the first Frank-Wolfe step of least squares, from 0 towards a vertex by exact line search.

        The targets are clipped to [-scale, scale].
        """
        A, n = self.design.A, len(self.Y)
        weights = np.ones(n) if self.weights is None else self.weights / self.weights.mean()
        down = transposed_times(A, weights[:, None] * np.clip(self.Y, -scale, scale)) / n
        vertex = np.zeros_like(down)
        vertex[: self.shape[0]] = self.ball(1.0).lmo(down[: self.shape[0]])
        curvature = float(np.sum(weights[:, None] * times(A, vertex) ** 2)) / n
        return (-float(np.vdot(vertex, down)) / curvature if curvature > 0 else 0.0) or 1.0


def _column_means(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The weighted mean of each column, in float64."""
    if not is_single(X):
        return np.average(X, axis=0, weights=weights)
    shares = np.ones(len(X)) if weights is None else weights
    return transposed_times(X, shares) / shares.sum()


@dataclass(frozen=True, eq=False)
class BallWithIntercept:
    """{W : the first d rows in the ball, |w| <= bound for each w in the last row}. The bound is so large that it never binds.

    Parameters
    ----------
    ball : set of shape (d, k)
        The set of the coefficients.
    bound : float
        Largest absolute value of an intercept.
    """

    ball: Any
    bound: float

    @property
    def shape(self) -> tuple[int, int]:
        d, k = self.ball.shape
        return d + 1, k

    @property
    def diameter(self) -> float:
        return math.hypot(self.ball.diameter, 2 * self.bound * math.sqrt(self.shape[1]))

    @property
    def max_norm(self) -> float:
        """The largest norm of a point."""
        return math.hypot(self.ball.max_norm, self.bound * math.sqrt(self.shape[1]))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """A point of the set with the smallest inner product with the direction."""
        return np.vstack([self.ball.lmo(direction[:-1]), -self.bound * np.sign(direction[-1:])])

    def project(self, W: np.ndarray) -> np.ndarray:
        """The nearest point of the set."""
        return np.vstack([self.ball.project(W[:-1]), W[-1:].clip(-self.bound, self.bound)])

    def start(self) -> np.ndarray:
        """The point 0."""
        return np.zeros(self.shape)

    def contains(self, W: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether W is in the set, up to the tolerance."""
        intercepts = np.abs(W[-1:]).max() <= self.bound * (1 + tolerance)
        return bool(intercepts and self.ball.contains(W[:-1], tolerance))
