"""Problems whose smoothness, lower smoothness and global minimum are known."""

from __future__ import annotations

from itertools import combinations, islice
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

import condgrad as cg


class Known(NamedTuple):
    """A problem with its start, a global minimiser and the minimum."""

    objective: Any
    domain: Any
    x0: np.ndarray
    argmin: np.ndarray

    @property
    def problem(self) -> cg.Problem:
        return cg.Problem(self.objective, self.domain)

    @property
    def h0(self) -> float:
        return self.objective.value(self.x0) - self.objective.value(self.argmin)

    def states(self, solver: Any, steps: int) -> list[Any]:
        """The states after 0, 1 .. ``steps`` steps."""
        return list(islice(cg.iterate(self.problem, solver, self.x0), steps + 1))

    def mapping2(self, x: np.ndarray, w: np.ndarray, gamma: float) -> float:
        """|g(x, w, gamma)|^2, exactly."""
        return float(np.sum((x - self.domain.project(x - gamma * w)) ** 2)) / gamma**2

    def true_mapping2(self, x: np.ndarray, gamma: float) -> float:
        return self.mapping2(x, self.objective.grad(x), gamma)


# ------------------------------------------------------------------------------------------- problems with known minima


def concave_simplex() -> Known:
    """Diagonal Q with a negative entry over the simplex: x'Qx >= q_min |x|^2 >= q_min, reached at a vertex."""
    q = 30 * np.array([1.0, 0.5, -0.8, 0.2, -0.3])
    return Known(cg.Quadratic(np.diag(q)), cg.Simplex(5), np.eye(5)[0], np.eye(5)[2])


def general_simplex() -> Known:
    """Any indefinite Q over a small simplex, by trying every face."""
    rng = np.random.default_rng(11)
    A = 20 * rng.standard_normal((5, 5))
    objective = cg.Quadratic((A + A.T) / 2, 5 * rng.standard_normal(5))
    x0 = max(np.eye(5), key=objective.value)
    return Known(objective, cg.Simplex(5), x0, least_on_simplex(objective))


def box() -> Known:
    """Diagonal Q: the minimum is found in each coordinate alone."""
    q, b = 10 * np.array([1.0, -1.0, 2.0, -0.5]), 10 * np.array([-0.3, 0.1, 3.0, -0.2])
    lower, upper = np.array([-1.0, -1.0, 0.0, -2.0]), np.array([1.0, 2.0, 1.0, 1.0])
    return Known(
        cg.Quadratic(np.diag(q), b),
        cg.Box(lower, upper),
        np.array([-1.0, 0.5, 1.0, 0.0]),
        least_on_box(q, b, lower, upper),
    )


def l1_ball() -> Known:
    """As on the simplex: the vertex of the most negative entry."""
    q = 30 * np.array([1.0, -0.4, 0.7, -0.9])
    return Known(cg.Quadratic(np.diag(q)), cg.L1Ball(4, 1.5), 1.5 * np.eye(4)[0], 1.5 * np.eye(4)[3])


def l2_ball() -> Known:
    """x'Qx / 2 over the ball of radius r is least at r times the lowest eigenvector."""
    A = 5 * np.random.default_rng(12).standard_normal((4, 4))
    _, vectors = np.linalg.eigh((A + A.T) / 2)
    x0 = 2 * (0.999 * vectors[:, -1] + sqrt(1 - 0.999**2) * vectors[:, 0])
    return Known(cg.Quadratic((A + A.T) / 2), cg.L2Ball(4, 2.0), x0, 2 * vectors[:, 0])


def completion() -> Known:
    """Problem (5) with the truth inside the ball and no noise: the minimum is 0."""
    data = cg.paper_data(4, 3, 2, seed=13, observe=0.7, corrupt=0.0)
    objective = cg.Completion(data.rows, data.cols, 2 * data.values, (4, 3), cg.Welsch(0.3))
    return Known(objective, cg.NuclearBall((4, 3), 4.1), np.zeros((4, 3)), 2 * data.truth)


NONCONVEX = [concave_simplex, general_simplex, box, l1_ball, l2_ball, completion]


def least_on_simplex(objective: Any) -> np.ndarray:
    """On the right face the minimiser is the stationary point inside; so try the stationary point of each."""
    Q, b = objective.Q, objective.b
    candidates = []
    for size in range(1, len(b) + 1):
        for face in combinations(range(len(b)), size):
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[size, size] = Q[np.ix_(face, face)], 0.0
            weights = np.linalg.solve(system, np.append(-b[list(face)], 1.0))[:size]
            if weights.min() >= 0:
                candidates.append(np.zeros(len(b)))
                candidates[-1][list(face)] = weights
    return min(candidates, key=objective.value)


def least_on_box(q: np.ndarray, b: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    stationary = np.clip(-b / q, lower, upper)
    choices = np.stack([lower, upper, stationary])
    return np.take_along_axis(choices, np.argmin(q / 2 * choices**2 + b * choices, axis=0)[None], 0)[0]
