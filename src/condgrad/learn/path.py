"""A robust low-rank fit along a path of radii, judged on entries that are held out.

Each radius begins where the last one ended, with a few steps of the engine and biases fitted anew in between. The scale of the
loss is that of the held-out residuals, which no fit has seen: it falls as the model gets better, down to the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from condgrad import kernels
from condgrad.domains import NuclearBall
from condgrad.driver import Result, Steps, minimize
from condgrad.inner import Subspace
from condgrad.learn.biases import Biases, refitted
from condgrad.learn.scale import loss_of, parameter, spread
from condgrad.objectives import Completion
from condgrad.objectives.losses import Loss, value_and_deriv
from condgrad.points import LowRank

GROWTH = 1.3
"""From radius to radius."""
STEPS = 4
"""Of the engine at each radius."""
PATIENCE = 2
"""So many radii in a row that are no better end the path."""
LONGEST = 60
LEAST = 1e-4
"""The scale of the loss never falls below this part of the first one."""


class Radius(NamedTuple):
    """One radius of the path: the held-out error is a root mean square in which an outlier counts as far as it is believed."""

    radius: float
    error: float
    rank: int


@dataclass(frozen=True, eq=False)
class Model:
    """x + biases, and the loss that they were fitted with."""

    x: LowRank
    biases: Biases
    loss: Loss
    sigma: float
    radius: float = 0.0
    result: Result | None = None

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        U, V = self.x.factors()
        return kernels.sample_at(rows, cols, U, V) + self.biases.at(rows, cols)


@dataclass(eq=False)
class Fit:
    """What is fixed for a fit: the entries, all and without those held out, and the loss as it was asked for."""

    everything: Completion
    loss: Any
    sigma: float | None
    """As given; None where it is estimated."""
    biased: bool
    rng: np.random.Generator
    path: list[Radius] = field(default_factory=list)
    tell: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        self.rows = self.everything.pattern.rows

    def start(self, objective: Completion, rows: np.ndarray) -> Model:
        """Biases alone, fitted and scaled by turns."""
        values, pattern = objective.values, objective.pattern
        (m, n), mean = pattern.shape, float(np.median(values)) if self.biased else 0.0
        model = Model(
            LowRank.zeros((m, n)), Biases(mean, np.zeros(m), np.zeros(n)), *self.scaled(spread(values - mean))
        )
        for _ in range(4 if self.biased else 0):
            left = values - model.biases.at(rows, pattern.cols)
            model = replace(model, biases=refitted(model.biases, pattern, left, model.loss, turns=2))
            left = values - model.biases.at(rows, pattern.cols)
            loss, sigma = self.scaled(spread(left))
            model = replace(model, loss=loss, sigma=sigma)
        return model

    def scaled(self, deviation: float) -> tuple[Loss, float]:
        """The loss for residuals of this size, and its parameter."""
        if not isinstance(self.loss, str):
            loss = loss_of(self.loss, 1.0)
            return loss, float(getattr(loss, "sigma", getattr(loss, "delta", np.nan)))
        sigma = parameter(self.loss, deviation or 1.0) if self.sigma is None else self.sigma
        return loss_of(self.loss, sigma), sigma

    def first_radius(self, objective: Completion, rows: np.ndarray, model: Model) -> float:
        """Where the best matrix of rank one would lie, were it spread evenly; a part of it."""
        objective = objective.replaced(self.left(objective, rows, model), model.loss)
        gradient = objective.grad(model.x)
        m, n = objective.shape
        top = NuclearBall((m, n), 1.0).lmo_near(gradient, None, 0.1 * float(np.linalg.norm(gradient.values)))[0]
        return 0.25 * abs(gradient.inner(top)) * m * n / (objective.n_terms * objective.smoothness)

    def left(self, objective: Completion, rows: np.ndarray, model: Model) -> np.ndarray:
        """What the biases leave over of the values."""
        return objective.values - model.biases.at(rows, objective.pattern.cols)

    def improve(self, objective: Completion, rows: np.ndarray, model: Model, radius: float, steps: int) -> Model:
        """A few steps within this radius, on what the biases leave over; then the biases, on what the steps leave over."""
        current = objective.replaced(self.left(objective, rows, model), model.loss)
        result = minimize(
            current,
            NuclearBall(objective.shape, radius),
            model.x,
            stop=Steps(steps),
            inner=Subspace(),
            output="last",
            every=steps,
            progress=False,
        )
        biases = model.biases
        if self.biased:
            left = current.values - result.x.at(objective.pattern)
            biases = refitted(biases, objective.pattern, left, model.loss)
        return replace(model, x=result.x, biases=biases, radius=radius, result=result)

    def follow(self, up_to: float = np.inf) -> Model:
        """The best model of the path, with the scale that its held-out residuals have."""
        everything = self.everything
        out = self.rng.random(everything.n_terms) < 0.1
        rows, held_rows = self.rows[~out], self.rows[out]
        held_cols, held = everything.pattern.cols[out], everything.values[out]
        train = Completion(rows, everything.pattern.cols[~out], everything.values[~out], everything.pattern.shape)
        model = self.start(train, rows)
        first = self.first_radius(train, rows, model)
        radius, best, best_left, worse = min(first, up_to), model, held - model.at(held_rows, held_cols), 0
        floor = LEAST * spread(best_left)
        while worse < PATIENCE and len(self.path) < LONGEST:
            model = self.improve(train, rows, model, radius, STEPS)
            left = held - model.at(held_rows, held_cols)
            loss, sigma = self.scaled(max(spread(left), floor))
            error = mean_loss(best.loss, left)
            self.path.append(Radius(radius, float(np.sqrt(2 * mean_loss(loss, left) / loss.smoothness)), model.x.rank))
            model = replace(model, loss=loss, sigma=sigma)
            if error < mean_loss(best.loss, best_left):
                best, best_left, worse = model, left, 0
            else:
                worse += 1
            if radius >= up_to:
                break
            radius = min(GROWTH * radius, up_to)
        return best

    def finish(self, model: Model, radius: float, steps: int, tol: float) -> Model:
        """On all entries, until a round of steps brings the loss down by less than ``tol`` of itself."""
        before = np.inf
        while steps > 0:
            model = self.improve(self.everything, self.rows, model, radius, min(STEPS, steps))
            steps -= STEPS
            assert model.result is not None
            if model.result.fun > (1 - tol) * before:
                break
            before = model.result.fun
        return model


def mean_loss(loss: Loss, left: np.ndarray) -> float:
    return value_and_deriv(loss, left, np.zeros(len(left)), np.empty(0), slopes=False)[0] / len(left)
