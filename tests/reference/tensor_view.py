"""Completion of a tensor with truncated nuclear norms of its unfoldings, flat: full SVDs and a dense matrix of differences."""

import numpy as np


def run(Y, observed, inliers, truncation, mu, rho, growth, iterations):
    """Yields the mean of the parts after each iteration, without a search for outliers."""
    shape = Y.shape
    n = shape[1] * shape[2]
    D = np.diff(np.eye(n), axis=0)
    known = observed & inliers
    Z = np.where(known, Y, 0.0)
    X = [np.zeros(shape) for _ in range(4 if mu > 0 else 3)]
    T = [np.zeros(shape) for _ in X]
    for _ in range(iterations):
        rho = rho * growth
        for k in range(3):
            A = np.moveaxis(Z - T[k] / rho, k, 0)
            u, s, vt = np.linalg.svd(A.reshape(shape[k], -1), full_matrices=False)
            r = int(np.ceil(truncation * shape[k]))
            s[r:] = np.maximum(s[r:] - 1 / (3 * rho), 0)
            X[k] = np.moveaxis(((u * s) @ vt).reshape(A.shape), 0, k)
        if mu > 0:
            A = (Z - T[3] / rho).reshape(shape[0], n)
            X[3] = np.linalg.solve(np.eye(n) + mu / rho * D.T @ D, A.T).T.reshape(shape)
        mean = sum(X) / len(X)
        Z = np.where(known, Y, mean + sum(T) / len(T) / rho)
        T = [t + rho * (x - Z) for t, x in zip(T, X, strict=True)]
        yield mean
