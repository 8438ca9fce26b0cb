"""The image of a set under a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls import L1Ball, L2Ball
from condgrad.domains.combinators._combination import (
    Combination,
    check_set,
    contained,
    diameter_of,
    max_norm_of,
    only_if,
    reached,
    start_of,
)
from condgrad.domains.combinators._examples import a_point_of, known_minimum
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.simplices import Simplex
from condgrad.points import SparseArray
from condgrad.protocols import Point, Projectable, fits, vertex_oracle

ISOMETRY = 1e-12
"""A'A may differ from a multiple of the identity by this, relative to the multiple: rounding."""


@final
@dataclass(frozen=True, eq=False)
class LinearImage(Combination):
    """{A x : x in S}, for a matrix A with a column for each entry of x

    One linear minimisation over S, of A'd, and two products with A. ``diameter`` and ``max_norm`` are those of S times the
    largest singular value of A: upper bounds, exact where A is a multiple of an isometry (A'A = c I). There is a projection in
    that case only, if S has one. Where the columns of A are independent, membership is that of the one x with A x = y; else it
    is found by linear minimisations (16,500 at most, 80 for each entry).

    Parameters
    ----------
    matrix : array_like or scipy sparse matrix of float, shape (m, n)
        The matrix A.
    domain : Domain
        The set S of n entries; points of other shapes than (n,) are read row by row.

    Raises
    ------
    ValueError
        If the number of columns is not the number of entries of a point of S.

    Examples
    --------
    The convex hull of the columns of a matrix:

    >>> import numpy as np, condgrad as cg
    >>> triangle = cg.LinearImage([[0.0, 4.0, 0.0], [0.0, 0.0, 3.0]], cg.Simplex(3))
    >>> triangle.lmo(np.array([-1.0, 0.0])), triangle.contains(np.array([1.0, 1.0]))
    (array([4., 0.]), True)
    """

    matrix: Any
    domain: Any

    def __post_init__(self) -> None:
        shape = checks.as_shape(check_set(self.domain, "LinearImage").shape, "LinearImage")
        if hasattr(self.matrix, "tocsr"):
            matrix = self.matrix.tocsr().astype(float)
            checks.finite_array(matrix.data, "The matrix of LinearImage")
        else:
            matrix = checks.finite_array(self.matrix, "The matrix of LinearImage")
        size = int(np.prod(shape))
        if matrix.ndim != 2 or matrix.shape[1] != size:
            raise ValueError(
                f"The matrix of LinearImage has shape {matrix.shape}, but points of {type(self.domain).__name__} have {size} "
                f"entries: give a matrix with {size} columns."
            )
        checks.settle(self, matrix=matrix)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.matrix.shape[0],)

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.domain,)

    @cached_property
    def _gram(self) -> np.ndarray:
        gram = self.matrix.T @ self.matrix
        return np.asarray(gram.todense() if hasattr(gram, "todense") else gram)

    @cached_property
    def _stretch(self) -> float:
        """The largest singular value of A."""
        return sqrt(max(float(np.linalg.eigvalsh(self._gram)[-1]), 0.0))

    @cached_property
    def _isometry(self) -> bool:
        c = float(np.trace(self._gram)) / len(self._gram)
        return c > 0 and bool(np.abs(self._gram - c * np.eye(len(self._gram))).max() <= ISOMETRY * c)

    @cached_property
    def _inverse(self) -> np.ndarray | None:
        """A matrix B with B A = I; None if the columns of A are not independent."""
        values = np.linalg.eigvalsh(self._gram)
        if values[0] <= 1e-12 * values[-1]:
            return None
        return np.linalg.pinv(self.matrix.toarray() if hasattr(self.matrix, "toarray") else self.matrix)

    @property
    def diameter(self) -> float:
        """An upper bound, exact for a multiple of an isometry."""
        return self._stretch * diameter_of(self.domain)

    @property
    def max_norm(self) -> float:
        """An upper bound, exact for a multiple of an isometry."""
        return self._stretch * max_norm_of(self.domain)

    def _image(self, x: Point) -> np.ndarray:
        if isinstance(x, SparseArray) and isinstance(self.matrix, np.ndarray):
            return self.matrix[:, x.indices] @ x.values
        return np.asarray(self.matrix @ np.asarray(x, dtype=float).ravel())

    def _preimage(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x).reshape(self.domain.shape)

    def lmo(self, direction: Point) -> np.ndarray:
        direction = np.asarray(self._direction(direction))
        return self._image(vertex_oracle(self.domain)(self._preimage(self.matrix.T @ direction)))

    @only_if(lambda image: image._isometry and fits(image.domain, Projectable))
    def project(self, x: Point) -> np.ndarray:
        """A times the projection of A'x / c onto S, where A'A = c I."""
        pulled = self.matrix.T @ np.asarray(self._point(x)) / self._stretch**2
        return self._image(self.domain.project(self._preimage(pulled)))

    def start(self) -> np.ndarray:
        """The image of the start of S."""
        return self._image(start_of(self.domain))

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        """Whether x is in the set, up to the tolerance of S, or relative to ``max_norm``."""
        x = np.asarray(self._point(x))
        if not np.isfinite(x).all():
            return False
        if self._inverse is None:
            return reached((self,), x, tolerance * self.max_norm)
        pulled = self._inverse @ x
        off = float(np.linalg.norm(self.matrix @ pulled - x))
        near = off <= max(tolerance, ISOMETRY) * self.max_norm
        return near and contained(self.domain, self._preimage(pulled), tolerance)


def _linear_images() -> Examples:
    rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    return {
        "": LinearImage([[1.0, 0.0, -2.0], [0.0, 3.0, 1.0]], Simplex(3, 2.0)),
        "of a ball": LinearImage([[1.0, 0.5], [0.0, 0.2]], L2Ball(2, 1.5)),
        "turned": LinearImage(2 * rotation, L1Ball(3)),
        "taller": LinearImage([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]], L1Ball(2)),
    }


def _in_linear_image(domain: LinearImage, rng: np.random.Generator) -> np.ndarray:
    return domain._image(a_point_of(domain.domain, rng))


def _linear_image_minimum(domain: LinearImage, g: np.ndarray) -> float:
    return known_minimum(domain.domain, domain._preimage(domain.matrix.T @ g))


ENTRY = DomainEntry(
    "linear-image", LinearImage, "{A x : x in S}", "A times the answer of S to A'd",
    _linear_images, _in_linear_image, _linear_image_minimum,
    arrays=("matrix",), sets=("domain",), bounds=("diameter", "max_norm"),
)  # fmt: skip
