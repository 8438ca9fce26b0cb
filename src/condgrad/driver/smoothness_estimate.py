"""An estimate of the smoothness, from differences of gradients inside the set."""

from __future__ import annotations

from dataclasses import asdict
from math import sqrt
from typing import Any

import numpy as np

from condgrad.checks import positive, whole
from condgrad.driver.counting import Counts, count
from condgrad.driver.resolve import check_problem
from condgrad.points import norm2
from condgrad.points.rounding import precision
from condgrad.protocols import FiniteSum, Objective, Point, Problem, fits

DISTANCE = 1e-2
"""How far apart two points are, as a share of the way from one to a vertex: near enough to see F's curvature where it is, far
enough that rounding does not matter."""
ROUNDING = 1e3
"""A change of the gradient of less than this many units in its last place is not a measurement, but rounding."""
SHORTEST = 1e-12
"""The same for the distance of two points, relative to them."""
HALVINGS = 100
"""How often at most a segment is halved."""
GROWTH = 1.1
"""A quotient that grows by less than this factor in two halvings has been found."""


Gradients = tuple[Point, list[Point]]
"""Of F, and of some of its terms."""


class SmoothnessEstimate(float):
    """An estimate of L, which is a number, with the constants of the terms of a finite sum and what it cost.

    Attributes
    ----------
    term_smoothness : float or None
        The estimate for the terms of a finite sum; None for other objectives.
    mean_square_smoothness : float or None
        The estimate of K with (1/n) sum_i |grad f_i(x) - grad f_i(y)|^2 <= K^2 |x - y|^2; None for other objectives.
    seen : float
        The largest |grad F(x) - grad F(y)| / |x - y| that was seen: L is at least this.
    counts : dict of str to int
        Oracle calls that were made for it: ``fo``, ``sfo``, ``ifo``, ``lo``, and the others of ``condgrad.protocols.COUNTERS``.
    """

    term_smoothness: float | None
    mean_square_smoothness: float | None
    seen: float
    counts: dict[str, int]

    def __new__(
        cls, seen: float, safety: float, of_terms: dict[str, float], counts: dict[str, int]
    ) -> SmoothnessEstimate:
        estimate = super().__new__(cls, safety * seen)
        estimate.seen, estimate.counts = seen, counts
        estimate.term_smoothness = estimate.mean_square_smoothness = None
        for name, value in of_terms.items():
            setattr(estimate, name, safety * value)
        return estimate

    @property
    def of_terms(self) -> dict[str, float]:
        """The constants of the terms, by the names that objectives have for them; empty where there are no terms."""
        named = {name: getattr(self, name) for name in ("term_smoothness", "mean_square_smoothness")}
        return {name: value for name, value in named.items() if value is not None}

    def __getnewargs__(self) -> tuple[Any, ...]:
        safety = float(self) / self.seen
        return self.seen, safety, {name: value / safety for name, value in self.of_terms.items()}, self.counts


def estimate_smoothness(
    objective: Any,
    domain: Any,
    *,
    samples: int = 20,
    rounds: int = 3,
    terms: int = 100,
    safety: float = 2.0,
    seed: int = 0,
) -> SmoothnessEstimate:
    r"""Estimate the smoothness L of F over a set, from gradients at points of the set.

    .. math:: L \approx c \max \frac{|\nabla F(x) - \nabla F(y)|}{|x - y|}

    Every quotient is a lower bound on L, so the largest is one, too; the safety factor c is to make up for the pairs that
    were not looked at. **This is an estimate, not a bound**: where F has a narrow region of large curvature, all samples may
    miss it. A run whose gradients contradict it says so (:class:`condgrad.SmoothnessWarning`). Deterministic methods do not
    need it: they find L by backtracking.

    Parameters
    ----------
    objective : Objective, FiniteSum or Expectation
        F. Its own smoothness constant, if any, is not used.
    domain : Domain
        The set. F is only asked at points of it.
    samples : int, default 20
        Number of random points of the set around which pairs are taken.
    rounds : int, default 3
        Number of further pairs around each point: the vertex that the linear oracle finds for the last change of the gradient
        gives the next direction, as in the power method. The segment to the last vertex is then halved, each time into the
        half on which the gradient changes more, as long as the quotient grows: F may be curved on a far smaller scale than that
        of the set.
    terms : int, default 100
        Number of terms of a finite sum, drawn without replacement, whose gradients are looked at one by one; of an
        expectation, the number of samples in the batch whose mean gradient stands for F's.
    safety : float, default 2.0
        The factor c.
    seed : int, default 0
        All randomness follows from it.

    Returns
    -------
    SmoothnessEstimate
        A float, which ``Function(smoothness=)`` and ``minimize(smoothness=)`` take, with ``term_smoothness`` and
        ``mean_square_smoothness`` for ``FunctionSum``, and the oracle calls in ``counts``.

    Raises
    ------
    ValueError
        Where no pair of gradients differs: F looks linear on the set.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> rng = np.random.default_rng(0)
    >>> A, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    >>> F = cg.FunctionSum(
    ...     value=lambda x: np.mean((A @ x - y) ** 2) / 2,
    ...     term_grads=lambda x, batch: (A[batch] @ x - y[batch])[:, None] * A[batch],
    ...     n_terms=200, shape=5,
    ... )
    >>> S = cg.L1Ball(5, 2.0)
    >>> L = cg.estimate_smoothness(F, S)
    >>> true = np.linalg.norm(A, 2) ** 2 / 200
    >>> bool(true <= L <= 2 * true), L.counts["fo"]
    (True, 160)
    >>> cg.minimize(F, S, method="ncgs-vr", smoothness=L, tol=1e-3).status
    'converged'
    """
    whole(samples, "The number of samples")
    whole(rounds, "The number of rounds", least=0)
    whole(terms, "The number of terms")
    whole(seed, "The seed", least=0)
    positive(safety, "The safety factor")
    problem = check_problem(Problem(objective, domain))
    counts = Counts()
    counted, rng = count(problem, counts, lambda price: None), np.random.default_rng((seed, 0, 6))
    looking = _Quotients(counted.objective, terms, rng)
    for _ in range(samples):
        x = _random_point(counted.domain, rng)
        here = looking.gradients(x)
        direction = rng.standard_normal(problem.domain.shape)
        for _ in range(rounds + 1):
            vertex = counted.domain.lmo(-1.0 * direction)
            y = x + DISTANCE * (vertex - x)
            change = looking.between(x, here, y, looking.gradients(y))
            direction = rng.standard_normal(problem.domain.shape) if change is None else change
        looking.along(x, here, vertex)
    if not looking.F:
        raise ValueError(
            f"The gradient of {type(objective).__name__} does not change between any of {looking.pairs} pairs of points "
            "of the set: F looks linear there, and any positive smoothness will do."
        )
    return SmoothnessEstimate(looking.F, safety, looking.of_terms(), asdict(counts))


def _random_point(domain: Any, rng: np.random.Generator) -> Point:
    """A random convex combination of the set's start and three random vertices."""
    weights = rng.dirichlet(np.ones(4))
    x = weights[0] * domain.start()
    for weight in weights[1:]:
        x = x + weight * domain.lmo(rng.standard_normal(domain.shape))
    return x


class _Quotients:
    """The largest |grad f(x) - grad f(y)| / |x - y| so far, of F and of its terms."""

    def __init__(self, objective: Any, terms: int, rng: np.random.Generator):
        self.objective, self.F, self.term, self.mean_square, self.pairs = objective, 0.0, 0.0, 0.0, 0
        self.batch: Any = None
        if fits(objective, FiniteSum):
            self.batch = rng.choice(objective.n_terms, min(terms, objective.n_terms), replace=False)
        elif not fits(objective, Objective):
            self.batch = objective.draw(terms, rng)

    def gradients(self, x: Point) -> Gradients:
        """Of F (of a batch's mean, for an expectation), and of some terms of a finite sum."""
        if not fits(self.objective, Objective):
            return self.objective.grad_terms(x, self.batch), []
        if self.batch is None:
            return self.objective.grad(x), []
        return self.objective.grad(x), [self.objective.grad_terms(x, self.batch[[i]]) for i in range(len(self.batch))]

    def between(self, x: Point, here: Gradients, y: Point, there: Gradients) -> Point | None:
        """Look at a pair of points; the change of the gradient, None where it is not more than rounding."""
        self.pairs += 1
        distance = sqrt(norm2(y - x))
        if distance <= SHORTEST * sqrt(norm2(x)):
            return None
        (grad_x, terms_x), (grad_y, terms_y) = here, there
        change = grad_y - grad_x
        length, rounding = sqrt(norm2(change)), ROUNDING * precision(self.objective, grad_x)
        if terms_x:
            squares = [norm2(b - a) for a, b in zip(terms_x, terms_y, strict=True)]
            self.term = max(self.term, sqrt(max(squares)) / distance)
            self.mean_square = max(self.mean_square, sqrt(float(np.mean(squares))) / distance)
        if length <= rounding * sqrt(norm2(grad_x)):
            return None
        self.F = max(self.F, length / distance)
        return change

    def along(self, x: Point, here: Gradients, y: Point) -> None:
        """Look for the part of a segment on which the gradient changes fastest: of two halves, one has at least the quotient of
        the whole."""
        there, best, stale = self.gradients(y), 0.0, 0
        for _ in range(HALVINGS):
            change = self.between(x, here, y, there)
            quotient = 0.0 if change is None else sqrt(norm2(change) / norm2(y - x))
            stale = 0 if quotient > GROWTH * best else stale + 1
            best = max(best, quotient)
            if stale == 2 or best == 0.0:
                return
            middle = 0.5 * x + 0.5 * y
            inside = self.gradients(middle)
            if norm2(inside[0] - here[0]) >= norm2(there[0] - inside[0]):
                y, there = middle, inside
            else:
                x, here = middle, inside

    def of_terms(self) -> dict[str, float]:
        """With F's <= the mean square's <= the terms', as the constants themselves are."""
        if not fits(self.objective, FiniteSum):
            return {}
        mean_square = max(self.mean_square, self.F)
        return {"term_smoothness": max(self.term, mean_square), "mean_square_smoothness": mean_square}
