"""The compiled loops once more, as plain as numpy and scipy have them: whole arrays, one formula each."""

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit


def sample(indptr, indices, U, V):
    """(U V')_ij at the entries, from the whole product."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return (U @ V.T)[rows, indices]


def sample_at(rows, cols, U, V):
    return (U @ V.T)[rows, cols]


def matrix(indptr, indices, values, columns):
    return csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, columns))


def times(indptr, indices, values, W):
    return matrix(indptr, indices, values, len(W)) @ W


def transposed_times(indptr, indices, values, Q, columns):
    return matrix(indptr, indices, values, columns).T @ Q


def inlier_weights(indptr, left, slopes, smoothness):
    """Weights, and for each row their sum and that of weight times residual."""
    at_zero = np.abs(left) < 1e-150
    weights = np.where(at_zero, 1, np.clip(slopes / np.where(at_zero, 1, left) / smoothness, 0, 1))
    return weights, _row_sums(indptr, weights), _row_sums(indptr, weights * left)


def row_weighted_sums(indptr, indices, weights, left, cols):
    return _row_sums(indptr, weights * (left - cols[indices]))


def column_weighted_sums(indptr, indices, weights, left, rows, columns):
    apart = left - np.repeat(rows, np.diff(indptr))
    return np.bincount(indices, weights, columns), np.bincount(indices, weights * apart, columns)


def _row_sums(indptr, values):
    return np.bincount(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), values, len(indptr) - 1)


def cuts(indptr, indices, columns, width):
    """Where each row's entries pass from one stripe of ``width`` columns to the next, row by row and stripe by stripe."""
    stripes = -(-columns // width)
    answer = np.zeros((stripes + 1, len(indptr) - 1), dtype=np.int64)
    for i in range(len(indptr) - 1):
        row = indices[indptr[i] : indptr[i + 1]]
        for s in range(stripes + 1):
            answer[s, i] = indptr[i] + np.sum(row < s * width)
    return answer


def squared(c, z, y):
    return (z - y) ** 2 / 2, z - y


def welsch(c, z, y):
    t = z - y
    return 1 - np.exp(-(t**2) / c), 2 / c * t * np.exp(-(t**2) / c)


def huber(c, z, y):
    t = z - y
    return np.where(np.abs(t) <= c, t**2 / 2, c * (np.abs(t) - c / 2)), np.where(np.abs(t) <= c, t, c * np.sign(t))


def cauchy(c, z, y):
    t = z - y
    return np.log(1 + t**2 / c), 2 * t / (c + t**2)


def geman_mcclure(c, z, y):
    t = z - y
    return t**2 / (c + t**2), 2 * c * t / (c + t**2) ** 2


def logistic(c, z, y):
    return np.log(1 + np.exp(-y * z)), -y / (1 + np.exp(y * z))


def sigmoid(c, z, y):
    return expit(-y * z), -y * expit(y * z) * expit(-y * z)


FORMULAS = {
    "squared": squared,
    "welsch": welsch,
    "huber": huber,
    "cauchy": cauchy,
    "geman-mcclure": geman_mcclure,
    "logistic": logistic,
    "sigmoid": sigmoid,
}


def loss(name, c, z, y, weights):
    """sum w phi(z, y) and the w phi'(z, y)."""
    value, deriv = FORMULAS[name](c, z, y)
    w = weights if len(weights) else np.ones(len(z))
    return np.sum(w * value), w * deriv
