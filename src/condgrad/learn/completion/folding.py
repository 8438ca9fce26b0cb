"""New rows for a model whose columns stay as they are: a small robust regression for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.learn.completion.biases import belief
from condgrad.objectives.losses import Loss

FIRST, TURNS = 10, 40
"""Turns of reweighting with a convex loss, and in all."""
WIDEST = 60
"""So often, twice each, a loss gets wider at most."""
LEAST = 1e-12
"""A price in any case, in units of the factors."""
BLOCK = 2**21
"""Numbers that the regressions which are solved together take, about."""


def folded(
    columns: np.ndarray,
    singular: np.ndarray,
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    m: int,
    loss: Loss,
    price: Any,
    ridge: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Biases and factors of m rows, given by entries: rows, columns, and what mean and column biases leave over there.

    At a solution over a nuclear ball with multiplier ``price``, the row u of U = P S^(1/2) minimises sum phi(b + <u, v_j>, t_j) +
    price |u|^2 / 2, v_j the rows of Q S^(1/2): so a row that was fitted is folded in where it stood. By reweighted squares.
    A bias b is drawn to 0 as if it had ``ridge`` more entries that say 0; with None there is none.
    """
    rows, cols, left = entries
    order = np.argsort(rows, kind="stable")
    cols, left = cols[order], left[order]
    ends = np.searchsorted(rows[order], np.arange(m + 1))
    root = np.sqrt(singular)
    V = np.column_stack([np.full(len(columns), float(ridge is not None)), columns * root])
    prices = np.append(loss.smoothness * (ridge or 0.0), np.full(len(root), price))
    prices += loss.smoothness * np.append(LEAST, LEAST * singular)  # so that there is one answer, in any unit
    found, counts = np.zeros((m, V.shape[1])), np.diff(ends)
    by_size, at = np.argsort(counts, kind="stable"), m  # rows of about one length are solved together
    while at:
        longest = max(counts[by_size[at - 1]], 1)
        part = by_size[max(at - max(BLOCK // (longest * V.shape[1]), 1), 0) : at]
        A, T = np.zeros((len(part), longest, V.shape[1])), np.zeros((len(part), longest))
        for a, row in enumerate(part):
            its = slice(ends[row], ends[row + 1])
            A[a, : counts[row]], T[a, : counts[row]] = V[cols[its]], left[its]
        found[part] = _regressions(A, T, counts[part], loss, prices)
        at -= len(part)
    return found[:, 0], found[:, 1:] * root


def _regressions(A: np.ndarray, T: np.ndarray, counts: np.ndarray, loss: Loss, prices: np.ndarray) -> np.ndarray:
    """argmin over u of sum phi(A_i u, T_i) + <u, prices u> / 2, for each i; beyond ``counts``, A and T are 0.

    A loss that is not convex would stay where it begins, drawn to outliers: it begins where Huber's loss ends that is as narrow
    as the row's median error. Where that is large the loss is too, so that at least half of a row is looked at.
    """
    found, weights, width = np.zeros((len(A), A.shape[2])), np.ones_like(T), np.ones(len(A))
    first = 0 if loss.lower_smoothness == 0 else FIRST
    going = np.arange(len(A))
    for turn in range(TURNS):
        A_, T_ = A[going], T[going]
        pull = loss.smoothness * (A_ * weights[:, :, None]).transpose(0, 2, 1)
        before, u = found[going], np.linalg.solve(pull @ A_ + np.diag(prices), pull @ T_[:, :, None])
        found[going], left = u[:, :, 0], T_ - (A_ @ u)[:, :, 0]
        if turn < first:
            size = np.maximum(_medians(np.abs(left), counts), 1e-300)
            weights = size[:, None] / np.maximum(np.abs(left), size[:, None])
            if turn == first - 1:
                width = _widths(loss, size)
            continue
        moving = np.abs(found[going] - before).max(axis=1) > 1e-6 * np.abs(found[going]).max(axis=1)
        if turn == first:
            moving[:] = True
        going, left, width, counts = going[moving], left[moving], width[moving], counts[moving]
        if not len(going):
            break
        weights = belief(loss, (left / width[:, None]).ravel()).reshape(left.shape)
    return found


def _medians(sizes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Of the first ``counts`` of each row."""
    sizes = np.sort(np.where(np.arange(sizes.shape[1]) < counts[:, None], sizes, np.inf), axis=1)
    return np.where(counts > 0, sizes[np.arange(len(sizes)), np.maximum(counts - 1, 0) // 2], 0.0)


def _widths(loss: Loss, sizes: np.ndarray) -> np.ndarray:
    """How many times as wide, by powers of 2, the loss has to be to believe an error of this size by half."""
    width = np.ones(len(sizes))
    for _ in range(WIDEST):
        width[belief(loss, sizes / width) < 0.5] *= 2
    return width
