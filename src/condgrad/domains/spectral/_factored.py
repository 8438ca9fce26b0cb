r"""Sets of matrices written as the image of factors, without a constraint.

Every X = c(s) U V' with s = (|U|^2 + |V|^2)/2 and c = R/s is in the nuclear ball of radius R, because |U V'|_* <= s; balanced
factors (U'U = V'V) give the points of its boundary. With c = min(1, R/s) the image is the whole ball, as far as the number of
columns allows. Likewise X = c(s) U U' with s = |U|^2 is positive semidefinite, of trace R or at most R. So F can be minimised
over the factors by a method for problems without constraints, which needs no projection and no singular vectors.

The derivative of F at X by the factors, with G the gradient at X and q = <G, U V'> (or <G, U U'>):

    dU = c G V + c' q U,   dV = c G' U + c' q V        (U U':  dU = c (G + G') U + 2 c' q U)

where c' is the derivative of c by s: -c/s where c = R/s, and 0 where c = 1.

The vector w has the entries of U and V, with the j-th column multiplied by a weight d_j. The second derivative of F by a column
of U grows with the squared norm of that column of V, which is the singular value sigma_j near the start. So d_j^2 = sigma_j +
mean(sigma) makes the second derivatives by w more nearly equal, and L-BFGS takes fewer iterations where the singular values
differ much. The mean limits the ratio of the weights: columns of a small singular value may be about to vanish.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condgrad.points import LowRank, inner
from condgrad.points.low_rank import outer, wide
from condgrad.protocols import Point

MIN_VALUE = 1e-13
"""A singular value or eigenvalue below this share of the largest is rounding."""
TINY = 1e-300
ON_BOUNDARY = 1e-9
"""A point whose norm (or trace) is below the radius by at most this share counts as one of the boundary."""


@dataclass(frozen=True)
class Scale:
    """The scalar c(s) of the parametrisation: R/s, or with ``inside`` min(1, R/s)."""

    radius: float
    inside: bool

    def at(self, s: float) -> tuple[float, float]:
        """Return c and its derivative by s."""
        if self.inside and s <= self.radius:
            return 1.0, 0.0
        return self.radius / s, -self.radius / s**2


@dataclass(frozen=True, eq=False)
class _Factored:
    """Abstract: the fields of both forms, in which a matrix X is a function of the vector ``w`` of its weighted factors."""

    shape: tuple[int, int]
    """Shape of X."""
    rank: int
    """Number of columns of a factor."""
    weights: np.ndarray
    """The weights d_j of the columns."""
    scale: Scale
    """The scalar c."""
    start: np.ndarray
    """The vector of the point that was given, up to rounding."""
    like: Point
    """A point of the type that X has: structured or an array."""

    def sizes(self, w: np.ndarray) -> np.ndarray:
        """Return the squared norms of the columns of the factors: |u_j|^2 + |v_j|^2, or |u_j|^2.

        If the columns are orthogonal, and U and V are balanced, they are twice the singular values of X/c, or its eigenvalues.
        """
        return squares(w.reshape(-1, self.rank)) / self.weights**2

    def sizes_and_slopes(self, w: np.ndarray, pulled: np.ndarray, rotate: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return ``sizes``, and the squared norms of the columns of the derivative by the factors.

        With ``rotate``, the factors are first multiplied by the orthogonal matrix that makes their columns orthogonal.
        """
        if not rotate:
            return self.sizes(w), squares(pulled.reshape(-1, self.rank)) * self.weights**2
        factors, slopes = w.reshape(-1, self.rank) / self.weights, pulled.reshape(-1, self.rank) * self.weights
        sizes, Q = np.linalg.eigh(factors.T @ factors)
        return np.maximum(sizes, 0.0), squares(slopes @ Q)


class FactoredBall(_Factored):
    """X = c U V', for the nuclear ball of m x n matrices; ``w`` has the entries of U (m x r), then those of V (n x r)."""

    def split(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return U and V."""
        both = w.reshape(-1, self.rank) / self.weights
        return both[: self.shape[0]], both[self.shape[0] :]

    def point(self, w: np.ndarray) -> Point:
        """Return X."""
        both, c = w.reshape(-1, self.rank), self.scale.at(float(self.sizes(w).sum()) / 2)[0]
        m = self.shape[0]
        return outer(both[:m] * (c / self.weights), both[m:] / self.weights, self.like)

    def pull_back(self, w: np.ndarray, grad: Point) -> np.ndarray:
        """Return the gradient by w of F(point(w)), given the gradient of F at that point."""
        U, V = self.split(w)
        c, slope = self.scale.at(float(self.sizes(w).sum()) / 2)
        GV, GU = grad @ V, grad.T @ U
        pulled = np.concatenate([GV, GU])
        pulled *= c / self.weights
        if slope:
            pulled += w.reshape(pulled.shape) * (slope * float(np.vdot(GV, U)) / self.weights**2)
        return pulled.ravel()

    def squared_mapping(self, w: np.ndarray, pulled: np.ndarray, gamma: float, rotate: bool = False) -> float:
        """Return an estimate of the squared gradient mapping within the span of the factors.

        For balanced factors with columns u_j and v_j of squared norm sigma_j, dU has the columns sqrt(sigma_j) times those of the
        gradient mapping applied to the right singular vectors, and dV likewise on the left. The factors of X are those of X/c
        times sqrt(c), and the gradient by these is divided by sqrt(c).
        """
        sizes, slopes = self.sizes_and_slopes(w, pulled, rotate)
        c = self.scale.at(float(sizes.sum()) / 2)[0]
        return capped(c * sizes, 2 / c * slopes, gamma)


class FactoredSpectrahedron(_Factored):
    """X = c U U', for positive semidefinite matrices of trace R, or of a trace up to R; ``w`` has the entries of U (n x r)."""

    def split(self, w: np.ndarray) -> np.ndarray:
        """Return U."""
        return w.reshape(-1, self.rank) / self.weights

    def point(self, w: np.ndarray) -> Point:
        """Return X."""
        U = self.split(w)
        return outer(self.scale.at(float(self.sizes(w).sum()))[0] * U, U, self.like)

    def pull_back(self, w: np.ndarray, grad: Point) -> np.ndarray:
        """Return the gradient by w of F(point(w)), given the gradient of F at that point."""
        U = self.split(w)
        c, slope = self.scale.at(float(self.sizes(w).sum()))
        both = grad @ U + grad.T @ U
        return ((c * both + (slope * float(np.vdot(both, U))) * U) / self.weights).ravel()

    def squared_mapping(self, w: np.ndarray, pulled: np.ndarray, gamma: float, rotate: bool = False) -> float:
        """Return an estimate of the squared gradient mapping within the span of the factor.

        A column of dU is 2 sqrt(lambda_j) times that of the gradient mapping applied to the eigenvector, which counts as a row
        and as a column of the mapping. The factor of X is that of X/c times sqrt(c), and the gradient by it is divided by
        sqrt(c).
        """
        sizes, slopes = self.sizes_and_slopes(w, pulled, rotate)
        c = self.scale.at(float(sizes.sum()))[0]
        return capped(2 * c * sizes, slopes / c, gamma)


def capped(sizes: np.ndarray, slopes: np.ndarray, gamma: float) -> float:
    """Return the sum of slopes/sizes, where ``sizes`` are twice the singular values.

    A step of size gamma that removes a singular value s changes the point by s, so that its part of the squared mapping is at
    most (s/gamma)^2. Without this limit the estimate is wrong for small values.
    """
    return float(np.minimum(slopes / np.maximum(sizes, TINY), (sizes / (2 * gamma)) ** 2).sum())


def squares(block: np.ndarray) -> np.ndarray:
    """Return the squared norms of the columns."""
    return np.einsum("ij,ij->j", block, block)


def factored_ball(radius: float, x: Point, grad: Point) -> FactoredBall:
    """Return the nuclear ball as the image of factors, which start at the balanced factors of x."""
    left, sigma, right = x.svd() if isinstance(x, LowRank) else thin_svd(x)
    roots, weights = np.sqrt(sigma), column_weights(sigma)
    start = np.concatenate([left, right]) * (roots * weights)
    shape, scale = (len(left), len(right)), scale_near(radius, float(sigma.sum()), inner(grad, x))
    return FactoredBall(shape, len(sigma), weights, scale, start.ravel(), x)


def factored_spectrahedron(radius: float, x: Point, grad: Point, fixed: bool) -> FactoredSpectrahedron:
    """Return the positive semidefinite matrices of trace ``radius`` (``fixed``), or up to it, as the image of a factor."""
    values, vectors = eigen(x)
    kept = values > MIN_VALUE * values.max(initial=0.0)
    vectors, values = vectors[:, kept], values[kept]
    weights = column_weights(values)
    start = vectors * (np.sqrt(values) * weights)
    scale = Scale(radius, False) if fixed else scale_near(radius, float(values.sum()), inner(grad, x))
    return FactoredSpectrahedron((len(vectors), len(vectors)), len(values), weights, scale, start.ravel(), x)


def column_weights(values: np.ndarray) -> np.ndarray:
    """Return the weights of the columns for these singular values or eigenvalues."""
    return np.sqrt(values + values.mean()) if len(values) else values


def scale_near(radius: float, size: float, slope: float) -> Scale:
    """Return the scalar of the parametrisation near a point x of this norm; ``slope`` is the derivative of F(t x) at t = 1."""
    return Scale(radius, inside=size < radius * (1 - ON_BOUNDARY) or slope > 0)


def thin_svd(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the SVD of an array: left vectors, values and right vectors, of the numerical rank."""
    left, sigma, right = np.linalg.svd(x, full_matrices=False)
    k = int(np.sum(sigma > MIN_VALUE * sigma.max(initial=0.0)))
    return left[:, :k], sigma[:k], right[:k].T


def eigen(x: Point) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and eigenvectors of a symmetric matrix; of a LowRank, those in the span of its factors."""
    if not isinstance(x, LowRank):
        return np.linalg.eigh((x + x.T) / 2)
    U, V = map(wide, x.factors())
    Q = np.linalg.qr(np.column_stack([U, V]))[0]
    small = (Q.T @ U) @ (V.T @ Q)
    values, vectors = np.linalg.eigh((small + small.T) / 2)
    return values, Q @ vectors
