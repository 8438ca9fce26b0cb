"""The elliptope: correlation matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.spectral._spectra import eigenvalues, scaled_to_unit, square_shape, symmetric_part
from condgrad.runtime.signals import heartbeat, report_inexact

FAR = 2.0**26
"""Norm of a point, relative to n, above which its projection is that of a multiple. Half of the digits are left there: the
projection, of size 1, is the difference of matrices of the size of the point, and it changes by about 1 / FAR beyond."""
NEAR = 1.0
"""Largest entry of a point, relative to n, with which the search for its projection begins at the diagonal."""
MAX_STEPS = 100
"""Maximum number of Newton steps in a projection; about 8 are usual."""
TARGET, MAX_IDLE = 1e-13, 8
"""The interior-point method goes on until its error is below this, relative to |D| n, or until this number of steps in a row
have not reduced it by a tenth."""
ACCURACY = 1e-10
"""Accuracy of the linear oracle, relative to |direction| n. Certificates include every error; one above this is a warning too."""
CENTRING = 0.2
"""The first target of the product of X and Z, relative to the one now; after long steps it is far smaller."""


class _Answer(NamedTuple):
    """A matrix of the set, with the difference of its value to a dual bound: no other matrix is better by more."""

    matrix: np.ndarray
    error: float


@final
@dataclass(frozen=True)
class Elliptope:
    """{X = X' : lambda_i(X) >= 0, X_ii = 1}, the n x n correlation matrices

    The linear oracle is a semidefinite programme, that of the maximum cut relaxation. It is solved by a primal-dual
    interior-point method: about 20 steps, each with a few factorisations of n x n matrices, so it is for n up to about a
    thousand. Each answer is certified: with y such that Z = D - Diag(y) is positive definite, which a Cholesky factorisation
    shows, no matrix of the set has a value below sum(y), and the difference to it is the error: 1e-12 of |D| n as a rule.
    Certificates include it; one above 1e-10 is a warning too. Answers have full rank, near the solution's low one.

    The projection, the nearest correlation matrix, is found by a semismooth Newton method, in about 8 eigenvalue decompositions;
    it is cheaper than the linear oracle, so ``inner="auto"`` uses it.

    ``max_norm`` is n, exactly. ``diameter`` is n sqrt(2): exact for even n, an upper bound for odd n.

    Parameters
    ----------
    shape : int or tuple of int
        n, or (n, n).

    Examples
    --------
    The correlation matrix nearest to a matrix that is none:

    >>> import numpy as np, condgrad as cg
    >>> S = cg.Elliptope(3)
    >>> S.project(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])).round(4)
    array([[1.    , 0.7607, 0.1573],
           [0.7607, 1.    , 0.7607],
           [0.1573, 0.7607, 1.    ]])

    References
    ----------
    C. Helmberg, F. Rendl, R. Vanderbei, H. Wolkowicz. An interior-point method for semidefinite programming. SIAM Journal on
    Optimization 6, 1996. H. Qi, D. Sun. A quadratically convergent Newton method for computing the nearest correlation
    matrix. SIAM Journal on Matrix Analysis and Applications 28, 2006.
    """

    shape: Shape

    def __post_init__(self) -> None:
        checks.settle(self, shape=square_shape(self.shape, "Elliptope"))

    def _point(self, x: Any) -> np.ndarray:
        return checks.point(x, self.shape, "Elliptope")

    @property
    def diameter(self) -> float:
        """Exact for even n: two products of orthogonal vectors of signs; an upper bound for odd n."""
        n = self.shape[0]
        return n * math.sqrt(2) if n > 1 else 0.0

    @property
    def max_norm(self) -> float:
        return float(self.shape[0])

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        direction = checks.finite_direction(self._point(direction), "Elliptope")
        D = symmetric_part(scaled_to_unit(direction))
        np.fill_diagonal(D, 0.0)  # is the same for all points
        top = float(np.abs(D).max())
        if top == 0.0:
            return np.eye(len(D))
        X, error = _semidefinite(D / top)
        expected = error <= ACCURACY * float(np.linalg.norm(D / top)) * len(D)
        error *= top * float(np.abs(direction).max())
        sentence = (
            f"The linear oracle of Elliptope did not converge: the value of its answer may be above the minimum by up to "
            f"{error:.2g}, which is certified."
        )
        report_inexact(error, "" if expected else sentence)
        return X

    def project(self, x: np.ndarray) -> np.ndarray:
        """The nearest correlation matrix."""
        return _nearest_correlation(
            symmetric_part(checks.finite(self._point(x), type(self).__name__, self.max_norm, FAR))
        )

    def start(self) -> np.ndarray:
        """The identity."""
        return np.eye(*self.shape)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether x is a correlation matrix, up to a tolerance, of the eigenvalues relative to n."""
        x = self._point(x)
        values = eigenvalues(x, tolerance)
        return values is not None and bool(
            values[0] >= -tolerance * len(x) and np.abs(np.diag(x) - 1).max() <= tolerance
        )


def _unit_diagonal(X: np.ndarray) -> np.ndarray:
    """X, scaled by a diagonal matrix from both sides so that its own diagonal is 1."""
    scale = 1 / np.sqrt(np.diag(X))
    X = symmetric_part(scale[:, None] * X * scale)
    np.fill_diagonal(X, 1.0)
    return X


def _positive(matrix: np.ndarray) -> bool:
    """Whether a Cholesky factorisation shows that the matrix is positive definite."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _longest(matrix: np.ndarray, step: np.ndarray) -> float:
    """The longest step up to 1 that leaves the matrix positive definite, less 5 %; 0 if there is none."""
    t = 1.0
    while not _positive(matrix + t * step):
        t *= 0.8
        if t < 1e-8:
            return 0.0
    return 0.95 * t if t < 1.0 else 1.0


def _semidefinite(D: np.ndarray) -> _Answer:
    """Minimise <D, X> over the set, D with a diagonal of 0 and a largest entry of 1."""
    n = len(D)
    X, y = np.eye(n), -1.1 * np.abs(D).sum(axis=1) - 0.1
    best, idle, centring = _Answer(X, math.inf), 0, CENTRING
    while idle < MAX_IDLE:
        heartbeat()
        Z, X, idle = D - np.diag(y), _unit_diagonal(X), idle + 1
        error = float(np.vdot(D, X) - y.sum())
        if error < best.error:
            best, idle = _Answer(X, max(error, 0.0)), idle if error > 0.9 * best.error else 0
        if error <= TARGET * float(np.linalg.norm(D)) * n:
            break
        mu = centring * float(np.vdot(X, Z)) / n
        try:
            inverse = symmetric_part(np.linalg.inv(Z))
            dy = np.linalg.solve(inverse * X, 1.0 - mu * np.diag(inverse))
        except np.linalg.LinAlgError:
            break
        dX = symmetric_part(mu * inverse - X + inverse @ (dy[:, None] * X))
        primal, dual = _longest(X, dX), _longest(Z, -np.diag(dy))
        if primal == dual == 0.0 or not np.isfinite(dX).all():
            break
        X, y = X + primal * dX, y + dual * dy
        centring = 1e-3 if min(primal, dual) > 0.9 else CENTRING
    return best


class _Dual(NamedTuple):
    """The function |(G + Diag(y))_+|^2 / 2 - sum(y) at y, whose minimiser gives the projection, and its gradient."""

    y: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    value: float
    slope: np.ndarray

    @classmethod
    def at(cls, G: np.ndarray, y: np.ndarray) -> _Dual:
        values, vectors = np.linalg.eigh(G + np.diag(y))
        plus = np.maximum(values, 0.0)
        return cls(y, values, vectors, float(plus @ plus) / 2 - float(y.sum()), vectors**2 @ plus - 1.0)

    @property
    def error(self) -> float:
        """The largest entry of the gradient, relative to the terms whose difference it is."""
        return float(np.abs(self.slope).max()) / (1.0 + float(np.abs(self.values).max()))

    def above(self, other: _Dual, fall: float) -> bool:
        """Whether the value exceeds that of ``other`` plus ``fall`` by more than rounding errors."""
        return self.value > other.value + fall + 1e-13 * abs(other.value)

    @property
    def projection(self) -> np.ndarray:
        """(G + Diag(y))_+."""
        return (self.vectors * np.maximum(self.values, 0.0)) @ self.vectors.T


def _nearest_correlation(G: np.ndarray) -> np.ndarray:
    """The nearest matrix of the set, (G + Diag(y))_+ with a diagonal of 1: by Newton steps for y with a line search.

    For large G, the y of G / 8 is found first: 8 times that is close to the y of G, at which Newton steps converge without the
    values of the dual function, whose digits are lost.
    """
    return _unit_diagonal(_dual_solution(G).projection)


def _dual_solution(G: np.ndarray) -> _Dual:
    near = float(np.abs(G).max()) <= NEAR * len(G)
    here = _Dual.at(G, 1.0 - np.diag(G) if near else 8 * _dual_solution(G / 8).y)
    for _ in range(MAX_STEPS):
        heartbeat()
        if here.error <= 1e-15:
            break
        move = _newton(here.values, here.vectors, -here.slope)
        descent, step = float(here.slope @ move), 1.0
        there = _Dual.at(G, here.y + move)
        while there.above(here, 1e-4 * step * descent) and there.error > 0.9 * here.error and step > 1e-6:
            step /= 2
            there = _Dual.at(G, here.y + step * move)
        if there.error >= 0.9 * here.error and (here.error <= 1e-11 or step <= 1e-6):  # only rounding is left
            break
        here = there
    return here


def _newton(values: np.ndarray, vectors: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution h of V h = right, V the derivative of diag((G + Diag(y))_+) by y, with conjugate gradients."""
    plus = np.maximum(values, 0.0)
    gaps = values[:, None] - values
    same = np.abs(gaps) <= 1e-12 * (np.abs(values).max() or 1.0)
    weights = np.where(same, (values > 0)[:, None] * 1.0, (plus[:, None] - plus) / np.where(same, 1.0, gaps))
    squares = vectors**2
    diagonal = np.maximum(np.einsum("ik,kl,il->i", squares, weights, squares), 1e-10)

    def times(h: np.ndarray) -> np.ndarray:
        inside = weights * (vectors.T @ (h[:, None] * vectors))
        return np.einsum("ik,kl,il->i", vectors, inside, vectors) + 1e-12 * h

    h, r = np.zeros(len(right)), right
    z = r / diagonal
    p, rz = z, float(r @ z)
    for _ in range(2 * len(right) + 20):
        if float(np.linalg.norm(r)) <= 1e-12 * float(np.linalg.norm(right)):
            break
        q = times(p)
        t = rz / float(p @ q)
        h, r = h + t * p, r - t * q
        z = r / diagonal
        p, rz = z + float(r @ z) / rz * p, float(r @ z)
    return h


def _elliptopes() -> Examples:
    return {"": Elliptope(4), "odd": Elliptope((3, 3)), "of two": Elliptope(2), "of one": Elliptope(1)}


def _in_elliptope(domain: Elliptope, rng: np.random.Generator) -> np.ndarray:
    n = domain.shape[0]
    rows = rng.standard_normal((n, rng.integers(1, n + 1)))
    return _unit_diagonal(rows @ rows.T)


def _elliptope_minimum(domain: Elliptope, g: np.ndarray) -> float:
    """By descent over unit vectors v_i with X_ij = <v_i, v_j>, one after the other, from a few starts (Burer-Monteiro)."""
    n, D = len(g), (g + g.T) / 2
    off = D - np.diag(np.diag(D))
    best = 0.0
    for seed in range(2):
        V = np.random.default_rng(seed).standard_normal((n, n + 1))
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        last = math.inf
        for _ in range(20_000):
            for i in range(n):
                pull = off[i] @ V
                if (size := float(np.linalg.norm(pull))) > 0:
                    V[i] = -pull / size
            now = float(np.vdot(off, V @ V.T))
            if last - now <= 1e-16 * abs(now):
                break
            last = now
        best = min(best, now)
    return best + float(np.trace(D))


ENTRY = DomainEntry(
    "elliptope", Elliptope, "{X = X' : X >= 0, diag X = 1}", "a semidefinite programme, by a certified interior-point method",
    _elliptopes, _in_elliptope, _elliptope_minimum, bounds=("diameter", "max_norm"), accuracy=1e-10,
)  # fmt: skip
