"""New rows for a model whose columns stay as they are: a small robust regression for each."""

from __future__ import annotations

import numpy as np

from condgrad.learn.biases import ROWS, belief
from condgrad.objectives.losses import Loss

TURNS = 30


def folded(
    columns: np.ndarray,
    singular: np.ndarray,
    rows: list[tuple[np.ndarray, np.ndarray]],
    loss: Loss,
    price: float,
    biased: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Biases and factors of rows, each given as what mean and column biases leave over, and in which columns.

    At a solution over a nuclear ball with multiplier ``price``, the row u of U = P S^(1/2) minimises sum phi(b + <u, v_j>, t_j) +
    price |u|^2 / 2, v_j the rows of Q S^(1/2): so a row that was fitted is folded in where it stood. By reweighted squares.
    """
    root = np.sqrt(singular)
    V = np.column_stack([np.ones(len(columns)), columns * root])
    ridge = np.append(loss.smoothness * ROWS, np.full(len(root), price))
    biases, factors = np.zeros(len(rows)), np.zeros((len(rows), len(root)))
    for i, (t, where) in enumerate(rows):
        A, u = V[where], np.zeros(V.shape[1])
        if not biased:
            A = A * np.append(0.0, np.ones(len(root)))
        weights = np.ones(len(t))
        for _ in range(TURNS):
            pull = loss.smoothness * (A.T * weights)
            system = pull @ A + np.diag(ridge + 1e-12 * loss.smoothness)
            before, u = u, np.linalg.solve(system, pull @ t)
            if np.abs(u - before).max(initial=0.0) <= 1e-6 * np.abs(u).max(initial=1e-300):
                break
            weights = belief(loss, t - A @ u)
        biases[i], factors[i] = u[0], u[1:] * root
    return biases, factors
