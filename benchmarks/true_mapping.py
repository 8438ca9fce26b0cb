"""The squared gradient mapping at a point in extended precision, with a bound on its own error.

Everything is computed in numpy's longdouble from the same float64 data as the library's run: the gradient, the prox point, and a
certificate for that prox point. Singular values and eigenvalues come from Jacobi rotations, as LAPACK has no longdouble. The
error is what Lemma 1 makes of the prox point's gap, which goes by support functions written here, plus rounding: so a mistake in
a projection shows as a large error, and never as a wrong truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

import numpy as np

import condgrad as cg
from condgrad.domains.spectral._spectra import onto_top_sum
from condgrad.linalg.simplex_projection import onto_simplex

Long = np.longdouble
EPS = float(np.finfo(Long).eps)
SWEEPS = 20


def long(x: Any) -> np.ndarray:
    return np.asarray(x, dtype=Long)


def dense(x: Any) -> np.ndarray:
    """A point as an array of longdouble; of a LowRank, the product of its factors."""
    if isinstance(x, cg.LowRank):
        total = np.zeros(x.shape, dtype=Long)
        for factor, term in x.terms:
            total = total + Long(factor) * (long(term.U) @ long(term.V).T)
        return total
    return long(x)


# ------------------------------------------------------------------------------------------- singular values, eigenvalues


def svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s (falling), V with A = U diag(s) V', by one-sided Jacobi rotations: of all pairs of a round at once."""
    if A.shape[0] < A.shape[1]:
        V, s, U = svd(A.T)
        return U, s, V
    W, V = A.copy(), np.eye(A.shape[1], dtype=Long)
    least = (EPS * norm(A)) ** 2  # columns below are rounding, and have no direction
    for _ in range(SWEEPS):
        turned = False
        for i, j in rounds(A.shape[1]):
            a, b, c = (W[:, i] ** 2).sum(axis=0), (W[:, j] ** 2).sum(axis=0), (W[:, i] * W[:, j]).sum(axis=0)
            skewed = (np.abs(c) > EPS * np.sqrt(a * b)) & (np.minimum(a, b) > least)
            if not skewed.any():
                continue
            turned, (i, j) = True, (i[skewed], j[skewed])
            tau = (b - a)[skewed] / (2 * c[skewed])
            t = np.where(tau >= 0, 1, -1) / (np.abs(tau) + np.sqrt(1 + tau * tau))
            cosine = 1 / np.sqrt(1 + t * t)
            for M in (W, V):
                left, right = M[:, i].copy(), M[:, j].copy()
                M[:, i], M[:, j] = cosine * (left - t * right), cosine * (t * left + right)
        if not turned:
            break
    s = np.sqrt((W * W).sum(axis=0))
    order = np.argsort(-s)
    s, W, V = s[order], W[:, order], V[:, order]
    return W / np.where(s > 0, s, 1), s, V


def rounds(n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All pairs of n columns, in rounds of pairs that share none."""
    ring = [*range(n), *([-1] if n % 2 else [])]
    for _ in range(len(ring) - 1):
        pairs = [sorted(pair) for pair in zip(ring[: len(ring) // 2], ring[::-1], strict=False) if -1 not in pair]
        if pairs:
            i, j = np.array(pairs).T
            yield i, j
        ring = [ring[0], ring[-1], *ring[1:-1]]


def eigh(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (falling) and vectors of a symmetric matrix, by Jacobi rotations."""
    A, n = (A + A.T) / 2, len(A)
    V, size = np.eye(n, dtype=Long), np.sqrt((A * A).sum())
    for _ in range(SWEEPS):
        if max((abs(A[i, j]) for i in range(n - 1) for j in range(i + 1, n)), default=Long(0)) <= EPS * size / n:
            break
        for i in range(n - 1):
            for j in range(i + 1, n):
                if A[i, j] != 0:
                    R = rotation(A[i, i], A[j, j], A[i, j])
                    A[:, [i, j]] = A[:, [i, j]] @ R
                    A[[i, j]] = R.T @ A[[i, j]]
                    V[:, [i, j]] = V[:, [i, j]] @ R
    order = np.argsort(-np.diag(A))
    return np.diag(A)[order], V[:, order]


def rotation(a: np.longdouble, b: np.longdouble, c: np.longdouble) -> np.ndarray:
    """The rotation that makes [a c; c b] diagonal."""
    tau = (b - a) / (2 * c)
    t = (1 if tau >= 0 else -1) / (abs(tau) + np.sqrt(1 + tau * tau))
    cosine = 1 / np.sqrt(1 + t * t)
    return np.array([[cosine, t * cosine], [-t * cosine, cosine]], dtype=Long)


# --------------------------------------------------------------------------------------------------- projections, supports


SETS = (
    *(
        "Simplex",
        "L1Ball",
        "L2Ball",
        "LinfBall",
        "Box",
        "LpBall",
        "GroupBall",
        "Spectrahedron",
        "Fantope",
        "NuclearBall",
    ),
    *("SpectralBall", "KyFanBall", "UserSet"),
)
"""Classes of the sets on which ``project`` and ``lowest`` are written out here; the user's set is the disc of its example."""


def known_sets() -> list[str]:
    """Names in ``cg.DOMAINS`` of the sets on which the true mapping can be computed."""
    return [name for name, entry in cg.DOMAINS.items() if type(entry.example()).__name__ in SETS]


def project(domain: Any, z: np.ndarray) -> np.ndarray:
    """The point of the set nearest to z, or one that is near it: ``Truth`` says how near."""
    name, r = type(domain).__name__, Long(getattr(domain, "radius", 1.0))
    if name == "Simplex":
        return onto_simplex(z.ravel(), r).reshape(z.shape)
    if name == "L1Ball":
        inside = np.abs(z).sum() <= r
        return z if inside else np.sign(z) * onto_simplex(np.abs(z).ravel(), r).reshape(z.shape)
    if name == "L2Ball":
        return z * min(Long(1), r / max(norm(z), Long(1e-4000)))
    if name == "LinfBall":
        return np.clip(z, -r, r)
    if name == "Box":
        return np.clip(z, long(domain.lower), long(domain.upper))
    if name == "LpBall":
        return onto_lp_ball(z, Long(domain.p), r)
    if name == "GroupBall":
        norms = group_norms(domain, z)
        if norms.sum() <= r:
            return z
        return (onto_simplex(norms, r) / np.where(norms > 0, norms, 1))[domain.groups] * z
    if name in ("Spectrahedron", "Fantope"):
        values, V = eigh(z)
        return (V * shrunk(domain, values)) @ V.T
    if name in ("NuclearBall", "SpectralBall", "KyFanBall"):
        U, s, V = svd(z)
        return (U * shrunk(domain, s)) @ V.T
    return DISC + (z - DISC) * min(Long(1), 1 / max(norm(z - DISC), Long(1e-4000)))


def shrunk(domain: Any, values: np.ndarray) -> np.ndarray:
    name, r = type(domain).__name__, Long(getattr(domain, "radius", 1.0))
    if name == "Fantope":
        return onto_capped_simplex(values, domain.rank)
    if name == "SpectralBall":
        return np.minimum(values, r)
    if name == "KyFanBall":
        return onto_top_sum(values, domain.k, r)
    if name == "NuclearBall":
        return values if values.sum() <= r else onto_simplex(values, r)
    return onto_simplex(values, r)


def onto_capped_simplex(values: np.ndarray, total: int) -> np.ndarray:
    """clip(values - theta, 0, 1) with the theta for which it sums to ``total``, by bisection."""
    falling = values - np.sort(values)[-total]
    low, high = Long(-1), Long(0)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(falling - middle, 0, 1).sum() > total else (low, middle)
    return np.clip(falling - high, 0, 1)


def onto_lp_ball(z: np.ndarray, p: np.longdouble, r: np.longdouble) -> np.ndarray:
    """v + lam p |v|^(p-1) sign(v) = z, entry by entry, with the lam for which |v|_p = r; both by bisection."""
    size = np.abs(z)
    if (size**p).sum() <= r**p:
        return z

    def at(lam: np.longdouble) -> np.ndarray:
        low, high = np.zeros_like(size), size.copy()
        for _ in range(80):
            middle = (low + high) / 2
            above = middle + lam * p * middle ** (p - 1) > size
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return (low + high) / 2

    low, high = Long(0), Long(1)
    while (at(high) ** p).sum() > r**p:
        high = 4 * high
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if (at(middle) ** p).sum() > r**p else (low, middle)
    v = at(high)
    return np.sign(z) * v * min(Long(1), r / ((v**p).sum()) ** (1 / p))


DISC = long([1.0, -2.0, 0.5])
"""The centre of the user's set in the registry, a disc of radius 1."""


def group_norms(domain: Any, x: np.ndarray) -> np.ndarray:
    return np.array([norm(x[domain.groups == g]) for g in range(int(domain.groups.max()) + 1)], dtype=Long)


def lowest(domain: Any, d: np.ndarray) -> np.longdouble:
    """min <d, v> over the set, by its support function."""
    name, r = type(domain).__name__, Long(getattr(domain, "radius", 1.0))
    size = np.abs(d)
    if name == "Simplex":
        return r * d.min()
    if name == "L1Ball":
        return -r * size.max()
    if name == "L2Ball":
        return -r * norm(d)
    if name == "LinfBall":
        return -r * size.sum()
    if name == "Box":
        return np.minimum(d * long(domain.lower), d * long(domain.upper)).sum()
    if name == "LpBall":
        q, top = Long(domain.p) / (Long(domain.p) - 1), size.max()
        return -r * top * (((size / top) ** q).sum()) ** (1 / q) if top > 0 else Long(0)
    if name == "GroupBall":
        return -r * group_norms(domain, d).max()
    if name == "Spectrahedron":
        return r * eigh(d)[0][-1]
    if name == "Fantope":
        return eigh(d)[0][-domain.rank :].sum()
    if name in ("NuclearBall", "SpectralBall", "KyFanBall"):
        s = svd(d)[1]
        dual = {"NuclearBall": s[0], "SpectralBall": s.sum()}.get(name)
        return -r * (max(s[0], s.sum() / domain.k) if dual is None else dual)
    return (d * DISC).sum() - norm(d)


def norm(x: np.ndarray) -> np.longdouble:
    return np.sqrt((x * x).sum())


class Truth(NamedTuple):
    """The norm of the mapping lies within ``error`` of ``norm``."""

    norm: float
    error: float

    @property
    def least(self) -> float:
        """The squared mapping is at least this."""
        return max(self.norm - self.error, 0.0) ** 2

    @property
    def square(self) -> float:
        return self.norm**2


def true_mapping(domain: Any, x: Any, grad: np.ndarray, gamma: float) -> Truth:
    """The gradient mapping at x with step size gamma, given the gradient in longdouble."""
    at, step = dense(x), Long(gamma)
    p = project(domain, at - step * grad)
    d = grad + (p - at) / step
    gap = max((d * p).sum() - lowest(domain, d), Long(0))
    rounding = 8 * (at.size + 20) * EPS * (norm(grad) + (norm(at) + norm(p)) / step)
    found = Truth(float(norm(at - p) / step), float(np.sqrt(gap / step) + rounding))
    return found if np.isfinite(found.error) else Truth(0.0, inf)
