"""Checks of the contract of an objective."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from condgrad.checks import as_shape
from condgrad.points import inner, norm2
from condgrad.protocols import Expectation, FiniteSum, Objective, fits, has, missing
from condgrad.testing.report import Check, CheckReport, Noted, Skipped, report, require

STEP = 1e-5
"""Step size of the difference quotients of F with which a gradient is compared, as a multiple of the direction."""


def check_objective(
    objective: Any,
    domain: Any = None,
    *,
    tolerance: float = 1e-6,
    trials: int = 20,
    seed: int = 0,
    strict: bool = False,
) -> CheckReport:
    """Check an objective against the contract of objectives, finite sums or expectations.

    Parameters
    ----------
    objective : Objective, FiniteSum or Expectation
        The objective, with at least ``value`` and ``grad``, or ``draw``, ``grad_terms``, ``term_rows`` and ``assemble``. Its
        other members are checked too.
    domain : Domain, default None
        The set from which points are drawn. None: points with normal entries, of the shape ``objective.shape``.
    tolerance : float, default 1e-6
        Tolerated relative error of a gradient, compared with difference quotients of values.
    trials : int, default 20
        Number of random points.
    seed : int, default 0
        Seed of all random numbers.
    strict : bool, default False
        Raise ContractError if a check fails.

    Returns
    -------
    CheckReport
        The result of each check. ``print(report)`` shows it as a table.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad.testing import check_objective
    >>> wrong = cg.Function(lambda x: float(x @ x), lambda x: x, 3, smoothness=2.0)
    >>> [finding.check for finding in check_objective(wrong).failures]
    ['the gradient is that of the value', 'smoothness']
    """
    checks = _Objective(objective, domain, tolerance, trials, seed).checks()
    return report(f"Objective {type(objective).__name__}", checks, strict)


class _Objective:
    def __init__(self, objective: Any, domain: Any, tolerance: float, trials: int, seed: int):
        self.f, self.domain, self.tolerance, self.trials, self.seed = objective, domain, tolerance, trials, seed

    def checks(self) -> Iterator[Check]:
        yield "members", self.members
        if missing(self.f, Objective, Expectation):
            return
        if fits(self.f, Objective):
            yield "value is a finite number", self.values
            yield "grad is a finite point of the shape", self.gradients
            yield "value and grad repeat their answers and do not write into points", self.repeats
            yield "an answer of grad is a value", self.buffers
            yield "the gradient is that of the value", self.differences
            yield "value_and_grad agrees with value and grad", self.both
            yield "smoothness", self.smoothness
            yield "lower_smoothness", self.lower_smoothness
            yield "lower_bound", self.lower_bound
        if fits(self.f, Expectation):
            yield "draw is seeded", self.draws
            yield "grad_terms is the mean over the batch, and assemble(term_rows)", self.rows
        if fits(self.f, FiniteSum):
            yield "the terms average to the gradient", self.average
            yield "draw is uniform over the terms", self.uniform
            yield "term_smoothness and mean_square_smoothness", self.of_terms

    # ------------------------------------------------------------------------------------------------------- helpers

    def rng(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *numbers))

    def points(self, count: int = 1) -> Iterator[list[np.ndarray]]:
        """Yield lists of ``count`` random points. They are read-only, so that an objective that writes into its input fails."""
        for i in range(self.trials):
            rng = self.rng(1, i)
            made = [self.point(rng) for _ in range(count)]
            for x in made:
                x.setflags(write=False)
            yield made

    def point(self, rng: np.random.Generator) -> np.ndarray:
        if self.domain is not None:
            shape = as_shape(self.domain.shape, "the set")
            corners = [np.asarray(self.domain.lmo(rng.standard_normal(shape)), dtype=float) for _ in range(4)]
            return np.array(sum(w * v for w, v in zip(rng.dirichlet(np.ones(4)), corners, strict=True)))
        own = getattr(self.f, "shape", None)
        if own is None:
            raise Skipped("give a domain of which points can be taken: the objective has no shape")
        return rng.standard_normal(as_shape(own, "the objective")) * 10.0 ** rng.integers(-2, 2)

    def grad(self, x: np.ndarray) -> Any:
        """A copy of the gradient at x, because the objective may overwrite its array in the next call."""
        grad = self.f.grad(x)
        return grad.copy() if isinstance(grad, np.ndarray) else grad

    def constant(self, name: str) -> float:
        value = getattr(self.f, name, None)
        if value is None:
            raise Skipped(f"the objective has no {name}")
        return float(value)

    # -------------------------------------------------------------------------------------------------------- checks

    def members(self) -> None:
        lacking = missing(self.f, Objective, Expectation)
        require(not lacking, f"it has no {' and no '.join(lacking)}")

    def values(self) -> None:
        for (x,) in self.points():
            value = self.f.value(x)
            require(np.ndim(value) == 0 and math.isfinite(float(value)), f"value is {value!r}, a number was expected")

    def gradients(self) -> None:
        for (x,) in self.points():
            grad = self.f.grad(x)
            require(tuple(grad.shape) == x.shape, f"grad has shape {tuple(grad.shape)} at a point of shape {x.shape}")
            require(math.isfinite(norm2(grad)), "grad holds NaN or Inf")

    def repeats(self) -> None:
        for (x,) in self.points():
            require(self.f.value(x) == self.f.value(x.copy()), "two values at one point")
            one, two = np.array(self.f.grad(x)), np.array(self.f.grad(x.copy()))
            require(np.array_equal(one, two), "two gradients at one point")

    def differences(self) -> None:
        for i, (x,) in enumerate(self.points()):
            rng = self.rng(2, i)
            d = self.point(rng) - x if self.domain is not None else rng.standard_normal(x.shape)
            middle = x + 0.5 * d if self.domain is not None else x
            grad = np.array(self.f.grad(middle))
            found = float(inner(grad, d))
            slope, rounding = self.slope(middle, d, STEP)
            # for a smooth F this is three times the error of ``slope``
            bent = abs(self.slope(middle, d, 2 * STEP)[0] - slope)
            slack = self.tolerance * max(abs(slope), abs(found)) + 2 * bent + rounding
            slack += 1e-12 * math.sqrt(norm2(grad) * float(norm2(d)))
            require(
                abs(slope - found) <= slack,
                f"differences of values make a slope of {slope:.6g}, grad makes {found:.6g}",
            )

    def slope(self, x: np.ndarray, d: np.ndarray, h: float) -> tuple[float, float]:
        """Central difference quotient of F at x along d, and its rounding error."""
        ends = float(self.f.value(x + h * d)), float(self.f.value(x - h * d))
        digits = 4e-15 * (abs(ends[0]) + abs(ends[1]))
        return (ends[0] - ends[1]) / (2 * h), digits / h

    def buffers(self) -> None:
        (x, y), *_ = self.points(2)
        grad = self.f.grad(x)
        before = np.array(grad)
        self.f.grad(y)
        if not np.array_equal(np.asarray(grad), before):
            raise Noted("an answer of grad changes when grad is called again: runs copy it, other callers must too")

    def both(self) -> None:
        if getattr(self.f, "value_and_grad", None) is None:
            raise Skipped("the objective has no value_and_grad")
        for (x,) in self.points():
            value, grad = self.f.value_and_grad(x)
            scale = math.sqrt(norm2(self.grad(x)))
            require(math.isclose(value, self.f.value(x), rel_tol=1e-9, abs_tol=1e-12), "another value")
            require(math.sqrt(norm2(grad - self.grad(x))) <= 1e-9 * scale + 1e-12, "another gradient")

    def smoothness(self) -> str:
        L, largest = self.constant("smoothness"), 0.0
        for x, y in self.points(2):
            step, change = math.sqrt(norm2(x - y)), math.sqrt(norm2(self.grad(x) - self.grad(y)))
            largest = max(largest, change / step) if step else largest
            require(
                change <= L * step * (1 + 1e-9) + 1e-12,
                f"it is {L:.6g}, but gradients change by {change / step:.6g} times",
            )
            bend, noise = self.bend(x, y)
            require(
                bend <= L / 2 * step**2 * (1 + 1e-9) + noise, f"it is {L:.6g}, but F bends up more than that allows"
            )
        return f"the largest quotient seen is {largest:.6g} of {L:.6g}"

    def bend(self, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """F(y) - F(x) - <grad F(x), y - x>, and its rounding error."""
        one, two = float(self.f.value(x)), float(self.f.value(y))
        slope = float(inner(self.grad(x), y - x))
        return two - one - slope, 1e-12 * (1 + abs(one) + abs(two) + abs(slope))

    def lower_smoothness(self) -> None:
        low = self.constant("lower_smoothness")
        for x, y in self.points(2):
            bend, noise = self.bend(x, y)
            require(-low / 2 * norm2(x - y) * (1 + 1e-9) - noise <= bend, f"it is {low:.6g}, but F bends down more")

    def lower_bound(self) -> None:
        bound = self.constant("lower_bound")
        for (x,) in self.points():
            require(self.f.value(x) >= bound, f"it is {bound:.6g}, but F is {self.f.value(x):.6g} at a point")

    def draws(self) -> None:
        one, two, other = (self.f.draw(50, np.random.default_rng(seed)) for seed in (1, 1, 2))
        require(len(one) == 50, f"{len(one)} samples, 50 were asked for")
        require(np.array_equal(one, two), "two batches from one seed")
        few = has(self.f, "n_terms") and self.f.n_terms == 1
        require(few or not np.array_equal(one, other), "the same batch from two seeds")

    def rows(self) -> None:
        for i, (x,) in enumerate(self.points()):
            rng = self.rng(3, i)
            batch = self.f.draw(3, rng)[[0, 1, 1, 2, 1]]  # a repeated sample counts each time
            rows, found = self.f.term_rows(x, batch), np.asarray(self.f.grad_terms(x, batch))
            mean = np.mean([np.asarray(self.f.grad_terms(x, batch[[k]])) for k in range(5)], axis=0)
            scale = 1e-9 * float(np.abs(mean).max()) + 1e-12
            require(len(rows) == 5, f"term_rows has {len(rows)} rows for a batch of 5")
            require(np.allclose(found, mean, rtol=1e-9, atol=scale), "grad_terms is not the mean over the batch")
            made = np.asarray(self.f.assemble(rows, batch))
            require(np.allclose(made, found, rtol=1e-9, atol=scale), "assemble(term_rows) is not grad_terms")
            other = rng.standard_normal(rows.shape)
            linear = 2 * made - np.asarray(self.f.assemble(other, batch))
            twice = np.asarray(self.f.assemble(2 * rows - other, batch))
            slack = 1e-9 * float(np.abs(linear).max()) + 1e-10
            require(np.allclose(twice, linear, rtol=1e-9, atol=slack), "assemble is not linear in the rows")

    def average(self) -> None:
        for (x,) in self.points():
            grad = np.asarray(self.grad(x))
            terms = [np.asarray(self.f.grad_terms(x, np.array([i]))) for i in range(self.f.n_terms)]
            slack = 1e-9 * float(np.abs(terms).max()) + 1e-12
            require(
                np.allclose(np.mean(terms, axis=0), grad, rtol=1e-9, atol=slack), "grad is not the mean of the terms'"
            )
            whole = np.asarray(self.f.grad_terms(x, np.arange(self.f.n_terms)))
            require(np.allclose(whole, grad, rtol=1e-9, atol=slack), "grad_terms of all terms is not grad")

    def uniform(self) -> None:
        n = self.f.n_terms
        counts = np.bincount(self.f.draw(2000 * n, np.random.default_rng(0)), minlength=n)
        require(len(counts) == n, f"a term number of {len(counts) - 1} was drawn, of {n} terms")
        require(np.abs(counts - 2000).max() < 6 * math.sqrt(2000), "some terms are drawn more often than others")

    def of_terms(self) -> None:
        each, mean_square = self.constant("term_smoothness"), self.constant("mean_square_smoothness")
        for x, y in self.points(2):
            pairs = [[np.array(self.f.grad_terms(at, np.array([i]))) for at in (x, y)] for i in range(self.f.n_terms)]
            changes = [math.sqrt(norm2(a - b)) for a, b in pairs]
            step = math.sqrt(norm2(x - y)) * (1 + 1e-9)
            require(
                max(changes) <= each * step + 1e-12, f"term_smoothness is {each:.6g}, a term's gradient changes faster"
            )
            root = math.sqrt(float(np.mean(np.square(changes))))
            require(
                root <= mean_square * step + 1e-12, f"mean_square_smoothness is {mean_square:.6g}, which is too small"
            )
        require(mean_square <= each * (1 + 1e-9), "mean_square_smoothness is larger than term_smoothness")
        L = getattr(self.f, "smoothness", None)
        require(L is None or mean_square >= L * (1 - 1e-9), "mean_square_smoothness is smaller than smoothness")
