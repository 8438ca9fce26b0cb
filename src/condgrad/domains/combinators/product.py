"""The Cartesian product of sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import hypot, prod
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls import L2Ball
from condgrad.domains.combinators._combination import (
    Combination,
    check_set,
    contained,
    diameter_of,
    max_norm_of,
    only_if,
    parts_project,
    start_of,
)
from condgrad.domains.combinators._examples import a_point_of, known_minimum
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes import Box
from condgrad.domains.simplices import Simplex
from condgrad.domains.spectral import NuclearBall
from condgrad.points import Blocks, SparseArray
from condgrad.protocols import Point, has, vertex_oracle


@final
@dataclass(frozen=True, init=False)
class Product(Combination):
    """{(x_1, ..., x_m) : x_i in S_i}, for sets of any shapes

    A point is a :class:`condgrad.Blocks`, whose blocks keep their structure: a matrix and a vector, or a ``LowRank`` and an
    array, are optimised together. ``value(x)`` and ``grad(x)`` of an objective get such a point; a gradient is a ``Blocks``
    too, or a tuple of blocks, or a dict of them by their names. Objectives for vectors work as well: they see all entries,
    one block after the other. A run from an ``x0`` that is such a vector has vectors as points.

    The linear oracle is that of each set on its block. The diameter and the largest norm are those of the sets, added in squares:
    exact where theirs are. There is a projection where every set has one.

    Parameters
    ----------
    *sets : Domain
        The sets, by position.
    **named : Domain
        The sets, by names, which their blocks then have. Give either these or positions.

    Attributes
    ----------
    sets : tuple of Domains
    names : tuple of str or None
    shape : tuple of int
        ``(N,)``, the number of entries of all blocks together.

    Examples
    --------
    The simplex point and the matrix of small nuclear norm nearest to given ones, together:

    >>> import numpy as np, condgrad as cg
    >>> S = cg.Product(weights=cg.Simplex(3), matrix=cg.NuclearBall((2, 2), 1.0))
    >>> def value(x):
    ...     return np.sum((x["weights"] - [0.5, 0.7, 0.0]) ** 2) + np.sum((x["matrix"] - np.diag([2.0, 0.5])) ** 2)
    >>> def grad(x):
    ...     return {"weights": 2 * (x["weights"] - [0.5, 0.7, 0.0]), "matrix": 2 * (x["matrix"] - np.diag([2.0, 0.5]))}
    >>> result = cg.minimize(cg.Function(value, grad, smoothness=2.0), S)
    >>> result.status, result.x["weights"].round(2), result.x["matrix"].round(2)
    ('converged', array([0.4, 0.6, 0. ]), array([[1., 0.],
           [0., 0.]]))

    References
    ----------
    S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher. Block-coordinate Frank-Wolfe optimization for structural SVMs.
    ICML 2013.
    """

    sets: tuple[Any, ...]
    names: tuple[str, ...] | None
    shape: tuple[int, ...]

    def __init__(self, *sets: Any, **named: Any):
        if bool(sets) == bool(named):
            raise ValueError("Product needs at least one set: give all sets by position, or all by name.")
        given = tuple(check_set(one, "Product") for one in sets or tuple(named.values()))
        sizes = [prod(checks.as_shape(one.shape, "Product")) for one in given]
        checks.settle(self, sets=given, names=tuple(named) if named else None, shape=(sum(sizes),))

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.sets

    @property
    def diameter(self) -> float:
        return hypot(*map(diameter_of, self.sets))

    @property
    def max_norm(self) -> float:
        return hypot(*map(max_norm_of, self.sets))

    def lmo(self, direction: Point) -> Point:
        """The answer of each set to its block of the direction; a vector where the direction is one."""
        given = self._blocks(self._passed_on(direction))
        if isinstance(direction, Blocks):
            return self._point_of([one.lmo(block) for one, block in given])
        answers = [vertex_oracle(one)(block) for one, block in given]
        if all(isinstance(x, SparseArray) for x in answers) and not any(has(one, "atom") for one in self.sets):
            return self._joined(answers, direction)  # sets whose own lmo answers so
        vertex = np.zeros(self.shape)
        for answer, (begin, end, _) in zip(answers, self._spans, strict=True):
            if isinstance(answer, SparseArray):
                vertex[begin:end][answer.indices] = answer.values
            else:
                vertex[begin:end] = np.asarray(answer).reshape(-1)
        return vertex

    @only_if(lambda product: any(has(one, "atom") for one in product.sets))
    def atom(self, direction: Point) -> Point:
        """The answer with structured blocks, where the sets have such; of vectors a SparseArray if all blocks are."""
        given = self._blocks(self._passed_on(direction))
        return self._joined([vertex_oracle(one)(block) for one, block in given], direction)

    @only_if(parts_project)
    def project(self, x: Point) -> Point:
        """The projection of each block onto its set."""
        return self._joined([one.project(block) for one, block in self._blocks(x)], x)

    def start(self) -> Blocks:
        """The start of each set."""
        return self._point_of([start_of(one) for one in self.sets])

    def low_rank_start(self) -> Blocks:
        """The start of each set: of low rank where the set has such points."""
        return self._point_of([s.low_rank_start() if has(s, "low_rank_start") else start_of(s) for s in self.sets])

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        """Whether each block is in its set, up to the tolerance that its ``contains`` grants."""
        return all(contained(one, block, tolerance) for one, block in self._blocks(x))

    @cached_property
    def _spans(self) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
        """Where the entries of each block begin and end in a vector of all entries, and its shape."""
        shapes = [checks.as_shape(one.shape, "Product") for one in self.sets]
        ends = [*accumulate(map(prod, shapes))]
        return tuple(zip([0, *ends[:-1]], ends, shapes, strict=True))

    def _blocks(self, x: Any) -> list[tuple[Any, Point]]:
        """Each set with its block of a point, or of a vector of all entries."""
        if isinstance(x, Blocks) and len(x.blocks) == len(self.sets):
            blocks = x.blocks
            for block, (_, _, shape) in zip(blocks, self._spans, strict=True):
                checks.same_shape(tuple(block.shape), shape, "A block given to Product")
        else:
            x = checks.entries(x, self.shape, "Product")
            blocks = tuple(x[begin:end].reshape(shape) for begin, end, shape in self._spans)
        return list(zip(self.sets, blocks, strict=True))

    def _point_of(self, blocks: list[Any]) -> Blocks:
        return Blocks.of(tuple(blocks), self.names)

    def _joined(self, blocks: list[Any], like: Any) -> Point:
        """The blocks as a Blocks, or as a vector where ``like`` is one."""
        if isinstance(like, Blocks):
            return self._point_of(blocks)
        if all(isinstance(block, SparseArray) for block in blocks):
            indices = np.concatenate([span[0] + block.indices for span, block in zip(self._spans, blocks, strict=True)])
            return SparseArray(indices, np.concatenate([block.values for block in blocks]), self.shape)
        return self._point_of(blocks).to_dense()


def product(blocks: Any) -> Product:
    """The product of a list of sets, or of a dict of sets by their names: what a spec gives."""
    return Product(**blocks) if isinstance(blocks, dict) else Product(*blocks)


def _products() -> Examples:
    return {
        "": Product(Simplex(3, 2.0), Box([-1.0, 0.0], [1.0, 3.0])),
        "by name": Product(matrix=NuclearBall((3, 2), 2.0), vector=L2Ball(2, 0.5)),
        "nested": Product(Product(Simplex(2), L2Ball(2)), Simplex(1, 3.0)),
    }


def _in_product(domain: Product, rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([a_point_of(one, rng).ravel() for one in domain.sets])


def _product_minimum(domain: Product, g: np.ndarray) -> float:
    return sum(known_minimum(one, block) for one, block in domain._blocks(g))


ENTRY = DomainEntry(
    "product", product, "{(x_1, ..., x_m) : x_i in S_i}", "the answer of each set to its block",
    _products, _in_product, _product_minimum, sets=("blocks",),
)  # fmt: skip
