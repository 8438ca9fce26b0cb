"""Active sets, and points of a type of one's own in a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.checks import BadOracle
from condgrad.points import inner, norm2
from condgrad.points.stack import Stack, key


class Sparse(cg.Structured):
    """A vector of few entries that are not 0."""

    def __init__(self, entries: dict[int, float], size: int):
        self.entries, self.shape = entries, (size,)

    def scaled(self, factor: float) -> Sparse:
        return Sparse({i: factor * v for i, v in self.entries.items()}, *self.shape)

    def plus(self, other: Any) -> Any:
        if not isinstance(other, Sparse):
            return NotImplemented
        keys = self.entries | other.entries
        return Sparse({i: self.entries.get(i, 0.0) + other.entries.get(i, 0.0) for i in keys}, *self.shape)

    def inner(self, other: Any) -> float:
        if isinstance(other, Sparse):
            return sum(v * other.entries.get(i, 0.0) for i, v in self.entries.items())
        return float(sum(v * other[i] for i, v in self.entries.items()))

    def to_dense(self) -> np.ndarray:
        return np.array([self.entries.get(i, 0.0) for i in range(*self.shape)])


N, CENTRE = 6, np.array([0.5, 0.7, 0.0, -0.3, 0.1, 0.0])


class SparseSimplex:
    shape = (N,)

    def lmo(self, direction: Any) -> Sparse:
        return Sparse({int(np.argmin(np.asarray(direction))): 1.0}, N)


@dataclass(frozen=True)
class Distance:
    smoothness: float = 1.0

    def value(self, x: Any) -> float:
        return float(np.sum((np.asarray(x) - CENTRE) ** 2)) / 2

    def grad(self, x: Any) -> Any:
        return np.asarray(x) - CENTRE


NEAREST = cg.Simplex(N).project(CENTRE)


@pytest.mark.parametrize(
    "asked",
    [
        {"method": "frank-wolfe", "rule": "line-search", "tol": 1e-4},
        {"method": "frank-wolfe", "rule": "short", "tol": 1e-4},
        {"method": "ncgs", "inner": "corrective", "tol": 1e-8},
        {"method": "ncgs-ii", "inner": "corrective", "tol": 1e-6},
        {"method": "cgs", "inner": "condg", "tol": 1e-3},
    ],
    ids=str,
)
@pytest.mark.parametrize("L", [1.0, None])
def test_a_foreign_point_runs(asked: dict[str, Any], L: float | None) -> None:
    result = cg.minimize(Distance(L), SparseSimplex(), max_steps=3000, **asked)  # type: ignore[arg-type]
    assert result.status == "converged", result.message
    assert np.allclose(np.asarray(result.x), NEAREST, atol=0.05)
    dense = cg.minimize(cg.Function(Distance().value, Distance().grad, N, L), cg.Simplex(N), np.eye(N)[0], **asked)
    assert dense.status == "converged"


def test_iterates_keep_their_type_where_steps_only_combine_points() -> None:
    seen: list[Any] = []
    cg.minimize(
        Distance(), SparseSimplex(), method="frank-wolfe", rule="short", max_steps=5, tol=1e-12,
        callback=lambda record, x: seen.append(type(x)),
    )  # fmt: skip
    assert set(seen) == {Sparse}


def test_a_structured_point_without_a_part_of_low_rank_says_so() -> None:
    x = Sparse({0: 1.0}, 3)
    assert (
        x.ndim == 1 and np.array_equal(np.ones(3) + x, [2.0, 1.0, 1.0]) and np.array_equal(x - np.ones(3), [0, -1, -1])
    )
    with pytest.raises(TypeError, match="A Sparse has no part of low rank, which spectral sets need"):
        x.low_rank_part()


@pytest.mark.parametrize("kind", ["arrays", "structured"])
def test_atoms_are_found_again(kind: str) -> None:
    corners = [np.eye(N)[i] if kind == "arrays" else Sparse({i: 1.0}, N) for i in range(N)]
    hull = cg.ActiveSet.at(corners[0])
    for corner in corners[1:4]:
        hull = hull.with_atom(corner)
    for i in range(4):
        again = np.eye(N)[i] if kind == "arrays" else Sparse({i: 1.0}, N)
        assert hull.find(again) == i and norm2(hull.atom(i) - again) == 0.0
    assert hull.find(corners[4]) is None
    assert np.array_equal(np.asarray(hull.point()), np.eye(N)[0]), "atoms that are added have no weight"


def test_weights_are_set_and_atoms_without_one_are_dropped() -> None:
    hull = cg.ActiveSet.at(np.eye(3)[0]).with_atom(np.eye(3)[1]).with_atom(np.eye(3)[2])
    moved = hull.with_weights([0.25, 0.0, 0.75])
    assert np.allclose(moved.point(), [0.25, 0.0, 0.75]) and len(moved.atoms) == 2 == len(moved.gram)
    assert moved.find(np.eye(3)[1]) is None and moved.find(np.eye(3)[2]) == 1
    exact = [[inner(a, b) for b in moved.atoms] for a in moved.atoms]
    assert np.array_equal(moved.gram, exact) and len(hull.atoms) == 3
    for wrong in ([1.0, 0.0], [1.5, -0.5, 0.0], [0.5, 0.1, 0.1], [np.nan, 0.5, 0.5]):
        with pytest.raises(
            ValueError, match=r"^The weights are .* but 3 numbers of at least 0 with the sum 1 were expected, one"
        ):
            hull.with_weights(wrong)


def test_the_nearest_point_of_the_hull() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        z = rng.standard_normal(4)
        hull = cg.ActiveSet.at(np.eye(4)[0])
        for corner in np.eye(4)[1:]:
            hull = hull.with_atom(corner)
        nearest = hull.nearest(z)
        assert np.allclose(nearest.point(), cg.Simplex(4).project(z), atol=1e-9) and nearest.weights.min() > 0


def mixed_points() -> list[Any]:
    """Arrays, sparse arrays (one of them 0) and other structured points of one shape."""
    rng = np.random.default_rng(1)
    rows = [rng.standard_normal(N) for _ in range(2)]
    sparse = [cg.SparseArray([1, 4], [2.0, -1.0], (N,)), cg.SparseArray([], [], (N,)), cg.SparseArray([0], 3.0, (N,))]
    return [rows[0], sparse[0], Sparse({2: 1.5}, N), sparse[1], rows[1], sparse[2]]


def test_a_stack_keeps_points_of_every_kind() -> None:
    points = mixed_points()
    stack = Stack.of(points[0])
    for point in points[1:]:
        stack = stack.with_points([point])
    dense = np.array([np.asarray(point) for point in points])
    assert [type(a) for a in stack] == [type(p) for p in points] and np.array_equal(
        [np.asarray(a) for a in stack], dense
    )
    z = np.random.default_rng(2).standard_normal(N)
    assert np.allclose(stack.products(z), dense @ z)
    few = cg.SparseArray([0, 4], [1.0, 2.0], (N,))
    assert np.allclose(stack.kept(np.array([0, 1, 3, 4, 5])).products(few), dense[[0, 1, 3, 4, 5]] @ np.asarray(few))
    assert np.allclose(np.asarray(stack.combined(np.arange(6.0))), np.arange(6.0) @ dense)
    kept = stack.kept(np.array([1, 3, 5]))
    assert kept.all_sparse and np.array_equal([np.asarray(a) for a in kept], dense[[1, 3, 5]])
    last = stack.kept(np.array([0, 5]))  # its sparse point was the third of its kind and is the first now
    assert np.array_equal([np.asarray(a) for a in last], dense[[0, 5]]) and np.allclose(
        last.products(z), dense[[0, 5]] @ z
    )


def test_sparse_atoms_are_not_made_dense() -> None:
    """Of ten million variables, in an active set of sparse atoms from a sparse start."""
    n = 10_000_000
    hull = cg.ActiveSet.at(cg.SparseArray([0], 1.0, (n,)))
    for i in range(1, 20):
        hull = hull.with_atom(cg.SparseArray([i], 1.0, (n,)))
    nearest = hull.nearest(cg.SparseArray(np.arange(20), 0.05, (n,)))
    assert nearest.origin is None and nearest.atoms.all_sparse and np.allclose(nearest.weights, 0.05)
    assert isinstance(nearest.point(), cg.SparseArray) and nearest.find(cg.SparseArray([7], 1.0, (n,))) == 7


def test_an_equal_array_and_sparse_array_are_one_atom() -> None:
    hull = cg.ActiveSet.at(np.eye(N)[0], origin=False).with_atom(cg.SparseArray([1], 1.0, (N,)))
    assert hull.find(cg.SparseArray([0], 1.0, (N,))) == 0 and hull.find(np.eye(N)[1]) == 1
    assert (
        hull.with_weights([0.0, 1.0]).find(np.eye(N)[1]) == 0
        and hull.with_weights([0.0, 1.0]).find(np.eye(N)[0]) is None
    )


def test_atoms_are_found_after_others_came_and_went() -> None:
    """The numbers of atoms are kept from the first search on, and follow each change."""
    corners = np.eye(N)
    hull = cg.ActiveSet.at(corners[0])
    for i in range(1, 4):
        assert hull.find(corners[i]) is None
        hull = hull.with_atom(corners[i])
        assert hull.find(corners[i]) == i and hull.find(corners[0]) == 0
    fewer = hull.with_weights([0.0, 0.5, 0.0, 0.5])
    assert [fewer.find(corner) for corner in corners[:4]] == [None, 0, None, 1]
    assert fewer.with_atom(corners[0]).find(corners[0]) == 2


def test_products_of_sparse_points_with_few_entries() -> None:
    """Entries that the other point lacks, between its own and behind the last of them, count as 0."""
    n = 1000
    points = [
        cg.SparseArray([3, 500], [1.0, 2.0], (n,)),
        cg.SparseArray([4, 10], [5.0, -3.0], (n,)),
        cg.SparseArray([999], 7.0, (n,)),
    ]
    stack = Stack.of(points[0])
    for point in points[1:]:
        stack = stack.with_points([point])
    z = cg.SparseArray([3, 4, 600], [2.0, 10.0, 1.0], (n,))
    assert stack.products(z).tolist() == [2.0, 50.0, 0.0]
    assert stack.products(z.to_dense()).tolist() == [2.0, 50.0, 0.0]
    assert stack.products(cg.SparseArray([], [], (n,))).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_sparse_point_without_entries_is_0(empty: int) -> None:
    points = [cg.SparseArray([1, 4], [2.0, -1.0], (6,)), cg.SparseArray([0], [3.0], (6,))]
    points.insert(empty, cg.SparseArray([], [], (6,)))
    stack, z = Stack.of(points[0]).with_points(points[1:]), np.arange(1.0, 7.0)
    np.testing.assert_array_equal(stack.products(z), [float(np.asarray(x) @ z) for x in points])
    weights = np.array([0.5, 2.0, 3.0])
    expected = sum(w * np.asarray(x) for w, x in zip(weights, points, strict=True))
    np.testing.assert_array_equal(np.asarray(stack.combined(weights)), expected)


def test_keys_are_equal_for_equal_points_only() -> None:
    x = np.array([1.0, 0.0, 2.0])
    equal = [cg.SparseArray([0, 2], [1.0, 2.0], (3,)), cg.SparseArray([0, 1, 2], [1.0, 0.0, 2.0], (3,))]
    assert all(key(y) == key(x) for y in equal)
    others = [np.array([1.0, 0.0, 3.0]), np.array([1.0, 2.0, 0.0]), cg.SparseArray([0, 1], [1.0, 2.0], (3,))]
    assert all(key(y) != key(x) for y in others)
    assert key(Sparse({0: 1.0}, 3)) is None


def test_a_sparse_atom_takes_the_origin_away() -> None:
    start = np.full(N, 1 / N)
    hull = cg.ActiveSet.at(start).with_atom(np.eye(N)[2])
    assert hull.origin is start
    larger = hull.with_atom(cg.SparseArray([3], 1.0, (N,)))
    dense = np.array([start, np.eye(N)[2], np.eye(N)[3]])
    assert larger.origin is None and np.allclose(larger.gram, dense @ dense.T)
    assert np.allclose(
        np.asarray(larger.nearest(CENTRE).point()), np.asarray(hull.with_atom(np.eye(N)[3]).nearest(CENTRE).point())
    )


class Worst:
    """A user's set whose ``atom`` maximises; its ``lmo`` is right."""

    shape = (N,)

    def lmo(self, direction: Any) -> np.ndarray:
        return np.eye(N)[np.argmin(direction)]

    def atom(self, direction: Any) -> cg.SparseArray:
        return cg.SparseArray([int(np.argmax(direction))], 1.0, (N,))


@pytest.mark.parametrize("asked", [{"method": "pairwise"}, {"method": "ncgs", "inner": "corrective"}], ids=str)
def test_a_wrong_atom_of_a_users_set_is_noticed(asked: dict[str, Any]) -> None:
    try:
        result = cg.minimize(Distance(), Worst(), np.eye(N)[4], max_steps=50, tol=1e-9, **asked)
    except BadOracle as error:
        assert "worse than" in str(error)
    else:
        assert result.status == "failed" and "worse than" in result.message


@pytest.mark.parametrize("kinds", ["sparse", "rows", "mixed"])
def test_products_of_two_stacks_are_those_of_their_points(kinds):
    """Also of points without a common index, and of a stack that was joined from two."""
    rng = np.random.default_rng(0)

    def points(number):
        dense = rng.standard_normal((number, 40)) * (rng.random((number, 40)) < 0.1)
        sparse = [cg.SparseArray(np.flatnonzero(x), x[x != 0], (40,)) for x in dense]
        return [
            x if kinds == "rows" or (kinds == "mixed" and i % 2) else y
            for i, (x, y) in enumerate(zip(dense, sparse, strict=True))
        ]

    first, second = points(5), points(7)
    one, other = Stack.of(first[0]).with_points(first[1:]), Stack.of(second[0]).with_points(second[1:])
    flat = np.array([np.asarray(x) for x in (*first, *second)])
    np.testing.assert_allclose(one.products_with(other), flat[:5] @ flat[5:].T, atol=1e-13)
    joined = one.with_points(other)
    np.testing.assert_array_equal(np.array([np.asarray(x) for x in joined]), flat)
    np.testing.assert_allclose(joined.products_with(joined), flat @ flat.T, atol=1e-13)
