"""Fits of linear models to the same data: in units in which data and tolerances have the scale 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, issparse

from condgrad.checks import choice
from condgrad.domains import GroupBall, L1Ball, L2Ball, NuclearBall, user_set
from condgrad.driver import minimize
from condgrad.learn.completion.robust_scale import coarseness, spread
from condgrad.learn.radius_search import Fit
from condgrad.learn.robust_start import robust_start, suits
from condgrad.objectives import LinearModel, Loss, Squared
from condgrad.objectives._matrices import spectral_norm

CONSTRAINTS = ("l1", "l2", "group", "nuclear")
GROWTHS = 30
"""Maximum number of times the radius is quadrupled to find one that is not active."""
ROUNDING = 1e-12
"""A feature that varies by less than this, relative to its mean, is constant but for rounding."""


@dataclass(frozen=True, eq=False)
class Design:
    """The features in units in which they have a largest mean square of 1, and a column of ones where there is an intercept.

    Dense features are centred first: that changes the intercept only, and a much better conditioned problem remains. With
    ``scale`` each feature is then divided by its standard deviation (a sparse one, which is not centred, by its largest absolute
    value), so that neither the ball nor the tolerance depends on units. A coefficient of A is the user's times the scale of
    its feature, times ``unit``; the intercepts are the last row.
    """

    A: Any
    centre: np.ndarray
    scales: np.ndarray
    unit: float
    intercept: bool

    @classmethod
    def of(cls, X: Any, intercept: bool, weights: np.ndarray | None = None, scale: bool = False) -> Design:
        n, d = X.shape
        sparse: bool = issparse(X)
        centre = np.average(X, axis=0, weights=weights) if intercept and not sparse else np.zeros(d)
        A: Any = csr_array(X) if sparse else X - centre
        scales = np.ones(d)
        if scale:
            scales = abs(A).max(axis=0).toarray() if sparse else np.sqrt(np.average(A**2, axis=0, weights=weights))
            scales = np.where(scales > ROUNDING * np.abs(centre), scales, 1.0)  # a constant feature says nothing
            A = A @ diags_array(1 / scales) if sparse else A / scales
        weighted = A if weights is None else diags_array(np.sqrt(weights / weights.mean())) @ A
        unit = spectral_norm(weighted) / math.sqrt(n) or 1.0
        A = A / unit
        if intercept:
            ones: Any = np.ones((n, 1))
            A = csr_array(hstack([A, csr_array(ones)])) if sparse else np.hstack([A, ones])
        return cls(A, centre, scales, unit, intercept)

    def rows(self, chosen: np.ndarray) -> Design:
        return replace(self, A=self.A[chosen])

    def to_user(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (features x tasks) and intercepts, for the features as they were given."""
        coef = W[: len(self.scales)] / (self.unit * self.scales)[:, None]
        return coef, W[-1] - self.centre @ coef if self.intercept else np.zeros(W.shape[1])


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits of Y, a column for each task, under one kind of constraint."""

    design: Design
    Y: np.ndarray
    constraint: str | None
    groups: Any
    tol: float
    max_iter: int
    weights: np.ndarray | None = None
    """Of the rows; None where all are equal."""
    seed: int = 0
    """Decides which subsets of rows give a robust start."""
    reached: list[tuple[float, Fit]] = field(default_factory=list)
    """The radius and the fit that was finished last, on these rows or some of them: what there is when a fit is interrupted."""

    def __post_init__(self) -> None:
        if self.constraint is not None:
            choice(self.constraint, CONSTRAINTS, "constraint")

    @cached_property
    def _model(self) -> LinearModel:
        """The data, with norms of the features that all fits share."""
        return LinearModel(self.design.A, self.Y, Squared(), self.weights)

    def rows(self, chosen: np.ndarray, tol: float) -> Fits:
        weights = None if self.weights is None else self.weights[chosen]
        return replace(self, design=self.design.rows(chosen), Y=self.Y[chosen], tol=tol, weights=weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the coefficients under the constraint."""
        return self.design.A.shape[1] - self.design.intercept, self.Y.shape[1]

    def zero(self) -> np.ndarray:
        return np.zeros((self.design.A.shape[1], self.Y.shape[1]))

    def ball(self, radius: float) -> Any:
        match self.constraint:
            case "l1":
                return L1Ball(self.shape, radius)
            case "group":
                return GroupBall(self.shape, radius, self.groups)
            case "nuclear":
                return NuclearBall(self.shape, radius)
            case _:
                return L2Ball(self.shape, radius)

    def at(self, loss: Loss, radius: float | None, start: np.ndarray, scale: float = 1.0) -> Fit:
        """The fit of Y / scale, times the scale. Without a radius the ball grows until it does not bind."""
        if radius is not None:
            return self._within(loss, radius, start, scale)
        radius = max(2 * self.norm(start), self._mean_size(), scale)  # a smaller ball would cut the start off
        for _ in range(GROWTHS):
            fit = self._within(loss, radius, start, scale)
            if not fit.binding:
                break
            radius, start = 4 * radius, fit.x
        return fit

    def _within(self, loss: Loss, radius: float, start: np.ndarray, scale: float) -> Fit:
        F = self._model.replaced(self.Y / scale, loss)
        ball = self.ball(radius / scale)
        domain = ball
        if self.design.intercept:
            reach = float(np.abs(F.y).max()) + ball.radius * float(F._row_norms.max())
            domain = with_intercept(ball, reach)
        x0 = domain.project(start / scale)
        asked: dict[str, Any] = {"tol": self.tol, "max_steps": self.max_iter, "every": 10}
        result = minimize(F, domain, x0, progress=False, on_interrupt="raise", **asked)
        held = ball.norm(result.x[: self.shape[0]]) >= (1 - 1e-6) * ball.radius
        self.reached[:] = [(radius, Fit(scale * result.x, result, bool(held)))]
        return self.reached[0][1]

    def errors(self, W: np.ndarray) -> np.ndarray:
        return self.design.A @ W - self.Y

    def spread(self) -> float:
        return spread(self.Y, self.weights) or self._mean_size() or 1.0

    def _mean_size(self) -> float:
        return float(np.average(np.abs(self.Y).mean(axis=1), weights=self.weights))

    def robust_start(self) -> np.ndarray | None:
        return robust_start(self.design.A, self.Y, self.seed, self.weights) if suits(*self.design.A.shape) else None

    def coarseness(self) -> float:
        return min(coarseness(y) for y in self.Y.T)

    def norm(self, W: np.ndarray) -> float:
        return float(self.ball(1.0).norm(W[: self.shape[0]]))

    def first_radius(self, scale: float) -> float:
        A, n = self.design.A, len(self.Y)
        weights = np.ones(n) if self.weights is None else self.weights / self.weights.mean()
        down = A.T @ (weights[:, None] * np.clip(self.Y, -scale, scale)) / n
        vertex = np.zeros_like(down)
        vertex[: self.shape[0]] = self.ball(1.0).lmo(down[: self.shape[0]])
        curvature = float(np.sum(weights[:, None] * (A @ vertex) ** 2)) / n
        return (-float(np.vdot(vertex, down)) / curvature if curvature > 0 else 0.0) or 1.0


def with_intercept(ball: Any, reach: float) -> Any:
    """The ball for all rows but the last, and for that one, the intercepts, an interval so large that it never binds."""
    d, k = ball.shape

    def each(of_ball: Callable[..., Any], of_last: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: np.vstack([of_ball(x[:d]), of_last(x[d:])])

    return user_set(
        lmo=each(ball.lmo, lambda g: -reach * np.sign(g)),
        project=each(ball.project, lambda b: b.clip(-reach, reach)),
        shape=(d + 1, k),
        diameter=math.hypot(ball.diameter, 2 * reach * math.sqrt(k)),
        start=np.zeros((d + 1, k)),
        contains=lambda x, tolerance: (
            ball.contains(x[:d], tolerance) and np.abs(x[d:]).max() <= reach * (1 + tolerance)
        ),
    )
