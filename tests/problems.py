"""Small, seeded problems for the tests of methods: non-convex, over sets of several shapes, with all constants known.

Beside the library's objective a case has its term gradients once more, written out from the formula, so that the
reference methods share nothing with the library's sums but the numbers in the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq

import condgrad as cg


@dataclass(frozen=True, eq=False)
class Case:
    problem: cg.Problem
    x0: np.ndarray
    term_grad: Callable | None = None
    """(x, i) -> grad f_i(x), of a finite sum."""
    sample_grads: Callable | None = None
    """(x, batch) -> the samples' gradients, stacked, of an expectation."""
    project: Callable | None = None
    """The exact projection, also where the library's set has none."""

    @property
    def objective(self):
        return self.problem.objective

    @property
    def domain(self):
        return self.problem.domain


def symmetric(n, low, high, rng):
    """A symmetric matrix with eigenvalues from ``low`` to ``high`` in random directions."""
    V = np.linalg.qr(rng.standard_normal((n, n)))[0]
    Q = (V * np.linspace(low, high, n)) @ V.T
    return (Q + Q.T) / 2


def inside(domain, rng):
    """A read-only point of the set that is neither its centre nor a vertex."""
    atoms = [domain.lmo(rng.standard_normal(domain.shape)) for _ in range(3)]
    x = 0.4 * domain.start() + 0.3 * atoms[0] + 0.2 * atoms[1] + 0.1 * atoms[2]
    x.setflags(write=False)
    return x


# ----------------------------------------------------------------------------------------------------- plain functions


def indefinite(domain, seed, low=-3.0, high=6.0):
    """x'Qx/2 + b'x with eigenvalues from -3 to 6: L = 6, l = 3."""
    rng = np.random.default_rng(seed)
    Q, b = symmetric(domain.shape[0], low, high, rng), 2 * rng.standard_normal(domain.shape[0])
    return Case(cg.Problem(cg.Quadratic(Q, b), domain), inside(domain, rng), project=projection(domain))


def convex_simplex():
    """Eigenvalues from 1 to 8: for the methods whose theory is convex."""
    return indefinite(cg.Simplex(6, 2.0), 11, low=1.0, high=8.0)


def indefinite_nuclear():
    """The same as ``indefinite`` for matrices, seen as long vectors by Q."""
    domain, rng = cg.NuclearBall((4, 3), 2.0), np.random.default_rng(4)
    Q, b = symmetric(12, -3.0, 6.0, rng), 2 * rng.standard_normal(12)
    objective = cg.Function(
        lambda X: X.ravel() @ Q @ X.ravel() / 2 + b @ X.ravel(),
        lambda X: (Q @ X.ravel() + b).reshape(4, 3),
        (4, 3),
        smoothness=6.0,
        lower_smoothness=3.0,
    )
    return Case(cg.Problem(objective, domain), inside(domain, rng), project=domain.project)


def projection(domain):
    return onto_l3_ball(domain.radius) if isinstance(domain, cg.LpBall) else domain.project


def onto_l3_ball(radius):
    """The nearest point with sum |x_i|^3 <= r^3: |x_i| + 3 mu |x_i|^2 = |z_i|, with mu found by bisection."""

    def project(z):
        def shrunk(mu):
            return 2 * np.abs(z) / (1 + np.sqrt(1 + 12 * mu * np.abs(z)))

        def excess(mu):
            return np.sum(shrunk(mu) ** 3) - radius**3

        if excess(0.0) <= 0:
            return z
        top = 1.0
        while excess(top) > 0:
            top *= 2
        return np.sign(z) * shrunk(brentq(excess, 0.0, top, xtol=1e-15, rtol=1e-15))

    return project


# -------------------------------------------------------------------------------------------------------- finite sums


def welsch_simplex():
    """(1/20) sum_i 1 - exp(-(a_i'w - y_i)^2 / 2), n = 20: n^(1/3) and n^(2/3) are not whole."""
    rng, domain = np.random.default_rng(5), cg.Simplex(5, 2.0)
    A, y = 1.5 * rng.standard_normal((20, 5)), rng.standard_normal(20)

    def term_grad(w, i):
        z = A[i] @ w - y[i]
        return z * np.exp(-(z**2) / 2) * A[i]

    problem = cg.Problem(cg.LinearModel(A, y, cg.Welsch(2.0)), domain)
    return Case(problem, inside(domain, rng), term_grad, project=domain.project)


def sigmoid_l1():
    """(1/27) sum_i 1/(1 + exp(y_i a_i'w)), n = 27 = 3^3."""
    rng, domain = np.random.default_rng(6), cg.L1Ball(6, 3.0)
    A, y = 3 * rng.standard_normal((27, 6)), rng.choice([-1.0, 1.0], 27)

    def term_grad(w, i):
        p = 1 / (1 + np.exp(y[i] * (A[i] @ w)))
        return -y[i] * p * (1 - p) * A[i]

    problem = cg.Problem(cg.LinearModel(A, y, cg.Sigmoid()), domain)
    return Case(problem, inside(domain, rng), term_grad, project=domain.project)


def completion():
    """Problem (5) for a 6 x 5 matrix: the sum of n terms 1 - exp(-(X_ij - Y_ij)^2), each counted as n of it."""
    data, domain = cg.paper_data(6, 5, 2, seed=7, generator="gaussian", observe=0.5), cg.NuclearBall((6, 5), 3.0)
    rows, cols, Y = data.rows, data.cols, data.values

    def term_grad(X, i):
        grad = np.zeros((6, 5))
        z = X[rows[i], cols[i]] - Y[i]
        grad[rows[i], cols[i]] = len(Y) * 2 * z * np.exp(-(z**2))
        return grad

    x0 = inside(domain, np.random.default_rng(7))
    return Case(cg.Problem(cg.Completion(rows, cols, Y, (6, 5)), domain), x0, term_grad, project=domain.project)


def quadratic_sum():
    """(1/8) sum_i x'Q_i x/2 + b_i'x, every Q_i indefinite, over the l3 ball; no lower bound is declared."""
    rng, domain = np.random.default_rng(8), cg.LpBall(4, 3.0, 1.5)
    Q = np.array([symmetric(4, -rng.uniform(1, 3), rng.uniform(3, 6), rng) for _ in range(8)])
    b = 2 * rng.standard_normal((8, 4))
    mean, squares = Q.mean(axis=0), np.mean([q @ q for q in Q], axis=0)
    objective = cg.FunctionSum(
        lambda x: x @ mean @ x / 2 + b.mean(axis=0) @ x,
        lambda x, batch: Q[batch] @ x + b[batch],
        n_terms=8,
        shape=4,
        smoothness=np.linalg.norm(mean, 2),
        lower_smoothness=max(0.0, -np.linalg.eigvalsh(mean)[0]),
        term_smoothness=max(np.linalg.norm(q, 2) for q in Q),
        mean_square_smoothness=np.sqrt(np.linalg.norm(squares, 2)),
    )
    problem = cg.Problem(objective, domain)
    return Case(problem, inside(domain, rng), lambda x, i: Q[i] @ x + b[i], project=projection(domain))


# ------------------------------------------------------------------------------------------------------- expectations


def expectation():
    """E x'(Q + xi_1 I)x/2 + xi'x, xi normal around (0, 1, -1, 1, -1): noise in the slope and in the curvature."""
    rng, domain = np.random.default_rng(9), cg.Simplex(5, 2.0)
    Q, centre = symmetric(5, -3.0, 6.0, rng), np.array([0.0, 1.0, -1.0, 1.0, -1.0])

    def draw(size, generator):
        return generator.normal(centre, 1.0, (size, 5))

    def sample_grads(x, batch):
        return Q @ x + batch[:, :1] * x + batch

    objective = cg.FunctionExpectation(draw, sample_grads, shape=5, smoothness=6.0, lower_smoothness=3.0)
    return Case(cg.Problem(objective, domain), inside(domain, rng), None, sample_grads, domain.project)


_MAKERS = {
    "indefinite simplex": lambda: indefinite(cg.Simplex(6, 2.0), 1),
    "indefinite l1": lambda: indefinite(cg.L1Ball(6, 2.0), 2),
    "indefinite lp": lambda: indefinite(cg.LpBall(5, 3.0, 1.5), 3),
    "indefinite nuclear": indefinite_nuclear,
    "convex simplex": convex_simplex,
    "welsch simplex": welsch_simplex,
    "sigmoid l1": sigmoid_l1,
    "completion nuclear": completion,
    "quadratic sum lp": quadratic_sum,
    "expectation simplex": expectation,
}

PLAIN = ("indefinite simplex", "indefinite l1", "indefinite lp", "indefinite nuclear", "convex simplex")
SUMS = ("welsch simplex", "sigmoid l1", "completion nuclear", "quadratic sum lp")
EXPECTATIONS = ("expectation simplex",)
WITHOUT_PROJECTION = ("indefinite lp", "quadratic sum lp")


@cache
def case(name: str) -> Case:
    return _MAKERS[name]()
