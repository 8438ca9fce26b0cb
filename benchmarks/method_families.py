"""The families of problems of `benchmarks.methods`: finite sums, and deterministic functions on polytopes.

Each is a function of a seed, which draws the data (for a9a and w8a: a half of the rows), so that also the runs of deterministic
methods differ between seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import condgrad as cg
from condgrad.data.libsvm import load_labelled
from condgrad.spec import robust_regression

LIBSVM = Path(__file__).parents[2] / "shared" / "data" / "libsvm"


@dataclass(frozen=True)
class Family:
    """A family of problems.

    Parameters
    ----------
    name : str
        Its name in tables.
    make : callable
        ``make(seed) -> Problem``.
    target : float
        Certified squared gradient mapping at which a run ends.
    budget : float
        CPU seconds of a run.
    x0 : callable, default None
        ``x0() -> Point``, the start; None: that of the set.
    held_out : bool, default False
        Whether the rules of ``method="auto"`` were made without it.
    """

    name: str
    make: Callable[[int], cg.Problem]
    target: float
    budget: float
    x0: Callable[[], np.ndarray] | None = None
    held_out: bool = False


# -------------------------------------------------------------------------------------------------------- finite sums


def regression(seed: int, terms: int = 20_000, dimension: int = 50) -> cg.Problem:
    """Robust (Welsch) regression over the l1 ball."""
    F = robust_regression(Path(), terms, dimension, seed=seed)
    return cg.Problem(F, cg.L1Ball(dimension, 2.0))


@cache
def labelled(name: str) -> tuple[Any, np.ndarray]:
    data = load_labelled(LIBSVM / f"{name}.gz")
    return data.X.tocsr(), np.where(data.y > 0, 1.0, -1.0)


def sigmoid(seed: int, data: str, ball: Callable[[int], Any]) -> cg.Problem:
    """The sigmoid loss, which ignores examples that are far on the wrong side, on half of the rows of a data set."""
    A, y = labelled(data)
    rows = np.sort(np.random.default_rng(seed).permutation(len(y))[: len(y) // 2])
    return cg.Problem(cg.LinearModel(A[rows], y[rows], cg.Sigmoid()), ball(A.shape[1]))


def problem5(seed: int, size: int = 200, rank: int = 5) -> cg.Problem:
    """Problem (5) of the paper: robust matrix completion over the nuclear-norm ball."""
    data = cg.paper_data(size, size, rank, seed=seed)
    F = cg.Completion(data.rows, data.cols, data.values, data.truth.shape, cg.Welsch())
    return cg.Problem(F, cg.NuclearBall(data.truth.shape, float(np.linalg.norm(data.truth, "nuc"))))


def mixture(seed: int, nodes: int = 30, groups: int = 4, terms: int = 4_000) -> cg.Problem:
    """A logistic mixture: each node has a distribution over groups, and a pair (u, v) is linked with the log odds x_u' B x_v.

    The logistic loss of a bilinear function is not convex. A term depends on two rows of x, so that F is far smoother than its
    terms: a row occurs in deg of n terms, hence L = L_term max deg / n.
    """
    rng = np.random.default_rng(seed)
    B = 8 * np.eye(groups) - 4 + rng.standard_normal((groups, groups))  # not symmetric: the centre is not stationary
    truth = rng.dirichlet(np.full(groups, 0.3), size=nodes)
    u, v = rng.integers(nodes, size=terms), rng.integers(nodes - 1, size=terms)
    v += v >= u
    odds = np.sum((truth[u] @ B) * truth[v], axis=1)
    y = np.where(rng.random(terms) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)

    def margins(x: np.ndarray, batch: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        left, right = x[u[batch]] @ B, x[v[batch]] @ B.T
        return left, right, y[batch] * np.sum(left * x[v[batch]], axis=1)

    def value(x: np.ndarray) -> float:
        return float(np.mean(np.logaddexp(0, -margins(x, slice(None))[2])))

    def slopes(x: np.ndarray, batch: Any) -> tuple[np.ndarray, np.ndarray]:
        left, right, margin = margins(x, batch)
        slope = (-y[batch] / (1 + np.exp(margin)))[:, None]
        return slope * right, slope * left

    def mean_grad(x: np.ndarray, batch: Any) -> np.ndarray:
        of_u, of_v = slopes(x, batch)
        ends, slope = np.concatenate([u[batch], v[batch]]), np.concatenate([of_u, of_v])
        sums = [np.bincount(ends, slope[:, group], nodes) for group in range(groups)]
        return np.stack(sums, axis=1) / len(of_u)

    def term_grads(x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        of_u, of_v = slopes(x, batch)
        found = np.zeros((len(batch), *x.shape))
        rows = np.arange(len(batch))
        found[rows, u[batch]] += of_u
        found[rows, v[batch]] += of_v
        return found

    size = np.linalg.norm(B, 2)
    of_term = (
        size**2 / 2 + size
    )  # the loss has a slope of at most 1 and a curvature of at most 1/4; rows of x have norm <= 1
    share = (np.bincount(u, minlength=nodes) + np.bincount(v, minlength=nodes)).max() / terms
    F = cg.FunctionSum(
        value,
        term_grads,
        terms,
        (nodes, groups),
        smoothness=of_term * share,
        term_smoothness=of_term,
        mean_square_smoothness=of_term * np.sqrt(share),
        mean_grad=mean_grad,
        grad=lambda x: mean_grad(x, slice(None)),
    )
    return cg.Problem(F, cg.SimplexProduct((nodes, groups)))


# ------------------------------------------------------------------------------------- deterministic, on polytopes


def symmetric(n: int, low: float, high: float, rng: np.random.Generator) -> np.ndarray:
    """A symmetric matrix with eigenvalues from ``low`` to ``high`` in random directions."""
    V = np.linalg.qr(rng.standard_normal((n, n)))[0]
    Q = (V * np.linspace(low, high, n)) @ V.T
    return (Q + Q.T) / 2


def birkhoff(seed: int, nodes: int = 10) -> cg.Problem:
    """Matching of two noisy graphs over the Birkhoff polytope, half-way between the convex and the indefinite relaxation."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((nodes, nodes)) < 0.3, 1).astype(float)
    moved = np.triu(rng.random((nodes, nodes)) < 0.05, 1)
    B, p = np.abs(A - moved), rng.permutation(nodes)
    A, B = A + A.T, B + B.T
    return cg.Problem(cg.GraphMatching(A, B[np.ix_(p, p)], convexity=0.7), cg.Birkhoff(nodes))


def hypersimplex(seed: int, size: int = 400, k: int = 40) -> cg.Problem:
    """An indefinite quadratic over the hypersimplex: which k of n to take."""
    rng = np.random.default_rng(seed)
    return cg.Problem(
        cg.Quadratic(symmetric(size, -1.0, 4.0, rng), rng.standard_normal(size)), cg.Hypersimplex(size, k)
    )


def flows(seed: int, side: int = 4) -> cg.Problem:
    """Traffic on a grid of two-way roads: travel times grow with the fourth power of the flow (BPR), supplies are random."""
    rng = np.random.default_rng(seed)
    at = np.arange(side * side).reshape(side, side)
    right, down = (
        np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], 1),
        np.stack([at[:-1].ravel(), at[1:].ravel()], 1),
    )
    roads = np.concatenate([right, down])
    edges = np.concatenate([roads, roads[:, ::-1]])
    supply = rng.integers(-2, 3, side * side).astype(float)
    supply[-1] -= supply.sum()
    capacity = np.abs(supply).sum() + 1
    time, width = rng.uniform(1, 2, len(edges)), rng.uniform(2, 4, len(edges))

    def value(x: np.ndarray) -> float:
        return float(np.sum(time * (x + 0.15 * x**5 / (5 * width**4))))

    def grad(x: np.ndarray) -> np.ndarray:
        return time * (1 + 0.15 * (x / width) ** 4)

    return cg.Problem(cg.Function(value, grad, len(edges)), cg.FlowPolytope(edges, supply, capacity))


# -------------------------------------------------------------------------------------- not used to make the rules


def ranking(seed: int, size: int = 100) -> cg.Problem:
    """An indefinite quadratic over the permutahedron: which order of n jobs to take."""
    rng = np.random.default_rng(seed)
    weights = np.arange(1.0, size + 1) / size
    F = cg.Quadratic(symmetric(size, -0.5, 2.0, rng), rng.standard_normal(size))
    return cg.Problem(F, cg.Permutahedron(weights))


def grouped(seed: int, terms: int = 5_000, features: int = 40, groups: int = 8) -> cg.Problem:
    """Robust (Cauchy) regression with coefficients in groups, over the ball of the group norm."""
    rng = np.random.default_rng(seed)
    w = np.zeros((groups, features // groups))
    w[:2] = rng.standard_normal((2, features // groups))
    A = rng.standard_normal((terms, features))
    y = A @ w.ravel() + 0.1 * rng.standard_normal(terms)
    y += np.where(rng.random(terms) < 0.2, 10 * rng.standard_normal(terms), 0.0)
    radius = 0.8 * float(np.linalg.norm(w, axis=1).sum())
    return cg.Problem(
        cg.LinearModel(A, y, cg.Cauchy()),
        cg.GroupBall(features, radius, np.repeat(np.arange(groups), features // groups)),
    )


def transport(seed: int, size: int = 12) -> cg.Problem:
    """An indefinite quadratic over transport plans, with a small linear part: a larger one makes the first vertex a solution."""
    rng = np.random.default_rng(seed)
    a, b = rng.dirichlet(np.full(size, 5.0)), rng.dirichlet(np.full(size, 5.0))
    Q, c = symmetric(size * size, -0.5, 2.0, rng), 0.02 * rng.standard_normal((size, size))

    def value(X: np.ndarray) -> float:
        return float(X.ravel() @ (Q @ X.ravel()) / 2 + np.sum(c * X))

    def grad(X: np.ndarray) -> np.ndarray:
        return (Q @ X.ravel()).reshape(size, size) + c

    return cg.Problem(cg.Function(value, grad, (size, size), smoothness=2.0), cg.TransportPolytope(a, b))


def sparse_sigmoid(seed: int, terms: int = 5_000, features: int = 100) -> cg.Problem:
    """The sigmoid loss of labels by a few features, a tenth of them wrong, over the k-sparse polytope."""
    rng = np.random.default_rng(seed)
    A, w = rng.standard_normal((terms, features)), np.zeros(features)
    w[:8] = rng.standard_normal(8)
    y = np.sign(A @ w) * np.where(rng.random(terms) < 0.1, -1.0, 1.0)
    return cg.Problem(cg.LinearModel(A, y, cg.Sigmoid()), cg.KSparsePolytope(features, 10, 1.0))


def sensing(seed: int, size: int = 20, terms: int = 400) -> cg.Problem:
    """Robust (Cauchy) sensing of a positive semidefinite matrix of rank 2 from random linear measurements."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((terms, size, size))
    A = ((A + A.transpose(0, 2, 1)) / 2).reshape(terms, -1)
    U = rng.standard_normal((size, 2)) / np.sqrt(2 * size)
    y = A @ (U @ U.T).ravel() + np.where(rng.random(terms) < 0.1, rng.standard_normal(terms), 0.0)
    vector, trace = cg.LinearModel(A, y, cg.Cauchy()), float(np.sum(U**2))

    def value(X: np.ndarray) -> float:
        return vector.value(X.ravel())

    def grad(X: np.ndarray) -> np.ndarray:
        return np.asarray(vector.grad(X.ravel())).reshape(size, size)

    F = cg.Function(value, grad, (size, size), smoothness=vector.smoothness)
    return cg.Problem(F, cg.Spectrahedron(size, trace))


def ball_of(kind: str, size: int) -> Any:
    """The balls of the sigmoid losses. In larger ones the loss saturates: one Frank-Wolfe step reaches a stationary vertex."""
    radius = {"a9a l1": 10.0, "w8a l1": 10.0, "a9a k-support": 1.0, "w8a k-support": 10.0}[kind]
    return cg.L1Ball(size, radius) if kind.endswith("l1") else cg.KSupportBall(size, 10, radius)


def on_data(kind: str) -> Callable[[int], cg.Problem]:
    return lambda seed: sigmoid(seed, kind.split()[0], lambda size: ball_of(kind, size))


def mixed_start() -> np.ndarray:
    """A random start: the centre is near a saddle point."""
    return np.random.default_rng(7).dirichlet(np.ones(4), size=30)


FAMILIES = (
    Family("robust regression, l1 ball", regression, 1e-8, 0.1),
    Family("sigmoid a9a, l1 ball", on_data("a9a l1"), 1e-7, 0.2),
    Family("sigmoid a9a, k-support ball", on_data("a9a k-support"), 1e-7, 0.08),
    Family("sigmoid w8a, l1 ball", on_data("w8a l1"), 1e-7, 0.15),
    Family("sigmoid w8a, k-support ball", on_data("w8a k-support"), 1e-7, 0.2),
    Family("problem (5), nuclear-norm ball", problem5, 1e-3, 0.15),
    Family("logistic mixture, product of simplices", mixture, 1e-6, 0.15, mixed_start),
    Family("graph matching, Birkhoff polytope", birkhoff, 1e-3, 0.2),
    Family("indefinite quadratic, hypersimplex", hypersimplex, 1e-3, 0.06),
    Family("traffic, flow polytope", flows, 1e-2, 0.1),
    Family("robust regression, group ball", grouped, 1e-7, 0.08),
    Family("indefinite quadratic, permutahedron", ranking, 1e-4, 0.05, held_out=True),
    Family("indefinite quadratic, transport plans", transport, 1e-6, 0.2, held_out=True),
    Family("sigmoid loss, k-sparse polytope", sparse_sigmoid, 1e-7, 0.1, held_out=True),
    Family("matrix sensing, spectrahedron", sensing, 1e-4, 0.1, held_out=True),
)
