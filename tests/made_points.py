"""Structured points of all kinds, and the arrays that they stand for."""

from __future__ import annotations

import numpy as np

from condgrad.points import LowRank, Pattern, SparsePlusLowRank


def pattern_of(m, n, rng, share=0.4):
    return Pattern(*np.nonzero(rng.random((m, n)) < share), (m, n))


def low_rank(m, n, r, rng):
    return LowRank(rng.standard_normal((m, r)), rng.standard_normal((n, r)))


def direction(pattern, r, rng, scale=1.0):
    low = low_rank(*pattern.shape, r, rng) if r else None
    return SparsePlusLowRank(pattern, rng.standard_normal(pattern.size), low, scale)


def points(m, n, rng, r=2):
    """One of each kind, the array last."""
    pattern, x = pattern_of(m, n, rng), low_rank(m, n, r, rng)
    return [
        x,
        low_rank(m, n, 0, rng),
        LowRank.zeros((m, n)),
        0.3 * x - low_rank(m, n, 1, rng) / 7,
        direction(pattern, 0, rng),
        direction(pattern, r, rng, -2.0),
        rng.standard_normal((m, n)),
    ]


def dense(x):
    """The matrix, written out here and not by the point."""
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, LowRank):
        return sum((c * f.U @ f.V.T for c, f in x.terms), np.zeros(x.shape))
    matrix = np.zeros(x.shape)
    for i, j, value in zip(x.pattern.rows, x.pattern.cols, x.values, strict=True):
        matrix[i, j] += x.scale * value
    return matrix + dense(x.low)


def size(*things):
    return sum(np.linalg.norm(dense(thing)) for thing in things) + 1e-300


def same(found, expected, scale):
    """To 1e-12 of the scale of what went into it."""
    found = np.asarray(found) if isinstance(found, np.ndarray) else dense(found)
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected), initial=0.0) <= 1e-12 * scale
