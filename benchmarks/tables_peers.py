"""SoftImpute and iterative SVD, written flat, with their settings chosen on a tenth of the observed entries, held out.

Both fill the missing entries of a matrix and replace them again and again by a low-rank fit of the filled matrix: SoftImpute
(Mazumder, Hastie and Tibshirani 2010) subtracts lambda from all singular values, iterative SVD (Troyanskaya et al. 2001) keeps
the first k as they are. The penalty or the rank, and whether the columns are centred, have the smallest root mean squared error
on the held-out entries; the chosen setting is then fitted to all observed entries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

LAMBDAS = np.geomspace(0.5, 1e-3, 14)
"""Penalties of SoftImpute, as shares of the largest singular value of the matrix with zeros in place of missing entries."""
RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16)
ITERATIONS, TOLERANCE = 150, 1e-4
"""A fit ends after this number of iterations, or when one changes the fit by less than this share."""

Shrink = Callable[[np.ndarray], np.ndarray]


def iterate(X: np.ndarray, seen: np.ndarray, start: np.ndarray, shrink: Shrink) -> np.ndarray:
    """The fixed point of: fill the holes of X from the low-rank fit, and fit again."""
    fit, observed = start, np.where(seen, X, 0.0)
    for _ in range(ITERATIONS):
        left, values, right = np.linalg.svd(np.where(seen, observed, fit), full_matrices=False)
        before, fit = fit, (left * shrink(values)) @ right
        if np.linalg.norm(fit - before) <= TOLERANCE * np.linalg.norm(fit):
            break
    return fit


def soft(X: np.ndarray, seen: np.ndarray) -> list[Callable[[np.ndarray], np.ndarray]]:
    """SoftImpute for each penalty, largest first: each continues from the one before."""
    top = np.linalg.norm(np.where(seen, X, 0.0), 2)
    return [
        partial(iterate, X, seen, shrink=partial(lambda size, s: np.maximum(s - size, 0.0), share * top))
        for share in LAMBDAS
    ]


def hard(X: np.ndarray, seen: np.ndarray) -> list[Callable[[np.ndarray], np.ndarray]]:
    """Iterative SVD for each rank, smallest first."""
    return [
        partial(iterate, X, seen, shrink=partial(lambda k, s: np.where(np.arange(len(s)) < k, s, 0.0), rank))
        for rank in RANKS
        if rank < min(X.shape)
    ]


def tuned(X: np.ndarray, path: Callable[[np.ndarray, np.ndarray], list], seed: int) -> np.ndarray:
    """The matrix of predictions, with the setting that the held-out entries choose."""
    seen = ~np.isnan(X)
    held = seen & (np.random.default_rng((seed, 7)).random(X.shape) < 0.1)
    train, best = seen & ~held, (np.inf, False, 0)
    for centred in (False, True):
        means = column_means(X, train) if centred else np.zeros(X.shape[1])
        fit, worse, last = np.zeros(X.shape), 0, np.inf
        for number, step in enumerate(path(X - means, train)):
            fit = step(fit)
            error = float(np.mean((fit + means - X)[held] ** 2))
            best = min(best, (error, centred, number))
            worse, last = (worse + 1 if error > last else 0), error
            if worse == 3:  # the errors of later settings grow too
                break
    _, centred, number = best
    means = column_means(X, seen) if centred else np.zeros(X.shape[1])
    fit = np.zeros(X.shape)
    for step in path(X - means, seen)[: number + 1]:
        fit = step(fit)
    return fit + means


def column_means(X: np.ndarray, seen: np.ndarray) -> np.ndarray:
    return np.where(seen, X, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)


def soft_impute(X: np.ndarray, seed: int) -> np.ndarray:
    return tuned(X, soft, seed)


def iterative_svd(X: np.ndarray, seed: int) -> np.ndarray:
    return tuned(X, hard, seed)
