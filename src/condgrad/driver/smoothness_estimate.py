"""`estimate_smoothness`: estimates the smoothness constant L from differences of gradients at points of the set."""

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

RELATIVE_DISTANCE = 1e-2
"""Gradients are compared at x and at a point y on the segment from x to a vertex. |x - y| is this share of the length of the
segment: small enough to measure the curvature of F locally, and large enough that rounding does not matter."""
MIN_CHANGE_IN_ULPS = 1e3
"""Minimum change of a gradient, in units in the last place. A smaller change is treated as a rounding error."""
MIN_RELATIVE_DISTANCE = 1e-12
"""Minimum distance |x - y| of a pair of points, relative to |x|. A smaller distance is treated as a rounding error."""
MAX_HALVINGS = 100
"""Maximum number of times that one segment is halved."""
MIN_GROWTH = 1.1
"""Halving ends when two quotients |grad F(x) - grad F(y)| / |x - y| in a row are each at most this factor times the largest
quotient before."""


Gradients = tuple[Point, list[Point]]
"""Gradient of F, and gradients of some of its terms."""


class SmoothnessEstimate(float):
    """Estimate of L. It is a float, with further estimates and the number of oracle calls as attributes.

    Attributes
    ----------
    term_smoothness : float or None
        The estimate of a constant that is a smoothness constant of every term of a finite sum; None for other objectives.
    mean_square_smoothness : float or None
        The estimate of K with (1/n) sum_i |grad f_i(x) - grad f_i(y)|^2 <= K^2 |x - y|^2; None for other objectives.
    seen : float
        The largest measured |grad F(x) - grad F(y)| / |x - y|, a lower bound on L.
    counts : dict of str to int
        Number of oracle calls: ``fo``, ``sfo``, ``ifo``, ``lo``, and the other counters in ``condgrad.protocols.COUNTERS``.
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
        """The estimates for the terms, by attribute name; empty if the objective is not a finite sum."""
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

    The largest quotient is a lower bound on L. The safety factor c allows for pairs of points that were not sampled. **The result
    is an estimate, not a bound**: if F has a large curvature only in a narrow region, all samples may miss this region. A run
    warns if its gradients contradict the estimate (:class:`condgrad.SmoothnessWarning`). Deterministic methods do not need an
    estimate, because they find L by backtracking.

    Parameters
    ----------
    objective : Objective, FiniteSum or Expectation
        F. Its own smoothness constant, if any, is not used.
    domain : Domain
        The set. F is evaluated at points of the set only.
    samples : int, default 20
        Number of random points x of the set. The gradient at each x is compared with the gradients at several points y.
    rounds : int, default 3
        For each x there are 1 + ``rounds`` points y, each on the segment from x to the vertex that is farthest in a direction d.
        For the first y, d is random. For each further y, d is the change of the gradient from x to the previous y, as in the
        power method. After the last round, the segment from x to the last vertex is halved repeatedly, and the half on which the
        gradient changes more is kept, until the quotient stops growing. The halving finds curvature on a much smaller scale than
        the diameter of the set.
    terms : int, default 100
        For a finite sum, the number of terms whose gradients are compared one by one; they are drawn without replacement. For an
        expectation, the number of samples in the batch whose mean gradient replaces the gradient of F.
    safety : float, default 2.0
        The factor c, above 0.
    seed : int, default 0
        Seed of all random choices.

    Returns
    -------
    SmoothnessEstimate
        The estimate of L, a float that ``Function(smoothness=)`` and ``minimize(smoothness=)`` accept. Its attributes
        ``term_smoothness`` and ``mean_square_smoothness`` are for ``FunctionSum``, and ``counts`` has the oracle calls.

    Raises
    ------
    ValueError
        If the gradient is the same at all sampled points: F looks linear on the set.

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
    quotients = _Quotients(counted.objective, terms, rng)
    for _ in range(samples):
        x = _random_point(counted.domain, rng)
        here = quotients.gradients(x)
        direction = rng.standard_normal(problem.domain.shape)
        for _ in range(rounds + 1):
            vertex = counted.domain.lmo(-1.0 * direction)
            y = x + RELATIVE_DISTANCE * (vertex - x)
            change = quotients.compare(x, here, y, quotients.gradients(y))
            direction = rng.standard_normal(problem.domain.shape) if change is None else change
        quotients.bisect(x, here, vertex)
    if not quotients.F:
        raise ValueError(
            f"The gradient of {type(objective).__name__} does not change between any of {quotients.pairs} pairs of points "
            "of the set: F looks linear there. Give any positive number as smoothness."
        )
    return SmoothnessEstimate(quotients.F, safety, quotients.of_terms(), asdict(counts))


def _random_point(domain: Any, rng: np.random.Generator) -> Point:
    """Random convex combination of the start of the set and three random vertices."""
    weights = rng.dirichlet(np.ones(4))
    x = weights[0] * domain.start()
    for weight in weights[1:]:
        x = x + weight * domain.lmo(rng.standard_normal(domain.shape))
    return x


class _Quotients:
    """Largest quotients |grad f(x) - grad f(y)| / |x - y| so far, for F and for its terms."""

    def __init__(self, objective: Any, terms: int, rng: np.random.Generator):
        self.objective, self.F, self.term, self.mean_square, self.pairs = objective, 0.0, 0.0, 0.0, 0
        self.batch: Any = None
        if fits(objective, FiniteSum):
            self.batch = rng.choice(objective.n_terms, min(terms, objective.n_terms), replace=False)
        elif not fits(objective, Objective):
            self.batch = objective.draw(terms, rng)

    def gradients(self, x: Point) -> Gradients:
        """Gradient of F, or of the mean over a batch if F is an expectation; and gradients of some terms of a finite sum."""
        if not fits(self.objective, Objective):
            return self.objective.grad_terms(x, self.batch), []
        if self.batch is None:
            return self.objective.grad(x), []
        return self.objective.grad(x), [self.objective.grad_terms(x, self.batch[[i]]) for i in range(len(self.batch))]

    def compare(self, x: Point, here: Gradients, y: Point, there: Gradients) -> Point | None:
        """Update the quotients with a pair of points. Returns the change of the gradient, or None if it is a rounding error."""
        self.pairs += 1
        distance = sqrt(norm2(y - x))
        if distance <= MIN_RELATIVE_DISTANCE * sqrt(norm2(x)):
            return None
        (grad_x, terms_x), (grad_y, terms_y) = here, there
        change = grad_y - grad_x
        length, rounding = sqrt(norm2(change)), MIN_CHANGE_IN_ULPS * precision(self.objective, grad_x)
        if terms_x:
            squares = [norm2(b - a) for a, b in zip(terms_x, terms_y, strict=True)]
            self.term = max(self.term, sqrt(max(squares)) / distance)
            self.mean_square = max(self.mean_square, sqrt(float(np.mean(squares))) / distance)
        if length <= rounding * sqrt(norm2(grad_x)):
            return None
        self.F = max(self.F, length / distance)
        return change

    def bisect(self, x: Point, here: Gradients, y: Point) -> None:
        """Find the part of a segment on which the gradient changes fastest, by bisection.

        On one of the two halves, the quotient is at least as large as on the whole segment.
        """
        there, best, halvings_without_growth = self.gradients(y), 0.0, 0
        for _ in range(MAX_HALVINGS):
            change = self.compare(x, here, y, there)
            quotient = 0.0 if change is None else sqrt(norm2(change) / norm2(y - x))
            halvings_without_growth = 0 if quotient > MIN_GROWTH * best else halvings_without_growth + 1
            best = max(best, quotient)
            if halvings_without_growth == 2 or best == 0.0:
                return
            middle = 0.5 * x + 0.5 * y
            at_middle = self.gradients(middle)
            if norm2(at_middle[0] - here[0]) >= norm2(there[0] - at_middle[0]):
                y, there = middle, at_middle
            else:
                x, here = middle, at_middle

    def of_terms(self) -> dict[str, float]:
        """Largest quotients of the terms.

        The true constants satisfy L <= mean_square_smoothness <= term_smoothness. Quotients that violate this order are
        increased.
        """
        if not fits(self.objective, FiniteSum):
            return {}
        mean_square = max(self.mean_square, self.F)
        return {"term_smoothness": max(self.term, mean_square), "mean_square_smoothness": mean_square}
