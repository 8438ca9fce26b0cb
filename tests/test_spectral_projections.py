"""Projections and linear oracles of the sets of matrices, from products alone: those of the same matrix written out."""

from __future__ import annotations

import numpy as np
import pytest

import condgrad as cg
from condgrad.points import LowRank, Pattern, SparsePlusLowRank


def sparse(m, n, share, rng, size=1.0, symmetric=False):
    matrix = size * rng.standard_normal((m, n)) * (rng.random((m, n)) < share)
    if symmetric:
        matrix = matrix + matrix.T
    rows, cols = np.nonzero(matrix)
    return SparsePlusLowRank(Pattern(rows, cols, (m, n)), matrix[rows, cols])


def assert_projects(domain, z):
    p, expected = domain.project(z), domain.project(np.asarray(z))
    assert isinstance(p, LowRank)
    assert np.linalg.norm(np.asarray(p) - expected) <= 1e-9 * domain.max_norm
    assert domain.contains(p)


@pytest.mark.parametrize("shape", [(60, 45), (45, 60), (200, 6), (1, 30)])
@pytest.mark.parametrize("share", [0.02, 0.15, 0.6, 1.5], ids=lambda share: f"{share} of its norm")
@pytest.mark.parametrize("rank", [0, 1, 4])
def test_projecting_on_the_nuclear_ball(shape, share, rank):
    rng = np.random.default_rng(rank)
    z = sparse(*shape, 0.2, rng) + LowRank(rng.standard_normal((shape[0], rank)), rng.standard_normal((shape[1], rank)))
    assert_projects(cg.NuclearBall(shape, share * float(np.linalg.norm(np.asarray(z), "nuc"))), z)


EIGEN = {
    "spectrahedron": cg.Spectrahedron(50, 4.0),
    "large spectrahedron": cg.Spectrahedron(50, 60.0),
    "spectrahedron up to": cg.Spectrahedron(50, 20.0, equal=False),
    "much room": cg.Spectrahedron(50, 1e4, equal=False),
    "fantope of one": cg.Fantope(50, 1),
    "fantope": cg.Fantope(50, 7),
    "fantope of many": cg.Fantope(50, 44),
}


@pytest.mark.parametrize("domain", EIGEN.values(), ids=EIGEN.keys())
@pytest.mark.parametrize("size", [0.01, 1.0])
@pytest.mark.parametrize("rank", [0, 3])
def test_projecting_on_sets_of_eigenvalues(domain, size, rank):
    rng = np.random.default_rng(rank)
    U = rng.standard_normal((50, rank))
    assert_projects(domain, sparse(50, 50, 0.1, rng, size, symmetric=True) + LowRank(U, U))
    assert_projects(domain, sparse(50, 50, 0.1, rng, size) + LowRank(U, rng.standard_normal((50, rank))))


@pytest.mark.parametrize("share", [0.999, 0.97, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_projecting_sees_what_its_first_block_does_not(share, seed):
    """A low-rank part and a sparse one that live on different rows and columns, where the second just reaches the threshold."""
    rng, n = np.random.default_rng(seed), 100
    rows, cols = np.nonzero(np.triu(rng.random((n // 2, n // 2)) < 0.1))
    matrix = np.zeros((n, n))
    matrix[rows + n // 2, cols + n // 2] = rng.standard_normal(len(rows))
    matrix += matrix.T
    rows, cols = np.nonzero(matrix)
    corner = np.eye(n, 2)
    for domain_of, values in (
        (cg.NuclearBall, np.linalg.svd(matrix, compute_uv=False)),
        (cg.Spectrahedron, np.linalg.eigvalsh(matrix)[::-1]),
    ):
        z = SparsePlusLowRank(Pattern(rows, cols, (n, n)), matrix[rows, cols])
        z = z + LowRank(corner * (values[0] * np.array([3.0, 2.0])), corner)
        threshold = share * values[0]
        radius = 5 * values[0] - 2 * threshold + np.maximum(values - threshold, 0).sum()
        assert_projects(domain_of((n, n), float(radius)), z)


@pytest.mark.parametrize("name", ["nuclear", "spectrahedron", "fantope"])
def test_linear_oracles_agree_with_those_of_arrays(name):
    domain = {"nuclear": cg.NuclearBall((70, 70), 3.0), "spectrahedron": cg.Spectrahedron(70, 3.0)}.get(
        name, cg.Fantope(70, 4)
    )
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-8, 1e8):
        d = scale * (sparse(70, 70, 0.1, rng) - LowRank(rng.standard_normal((70, 2)), rng.standard_normal((70, 2))))
        vertex, expected = domain.lmo(d), domain.lmo(np.asarray(d))
        assert isinstance(vertex, LowRank) and domain.contains(vertex)
        assert d.inner(vertex) == pytest.approx(np.vdot(np.asarray(d), expected), rel=1e-12)
        seen = domain.lmo_near(d, None, 0.0)[1]
        assert seen.shape[0] == 70 and np.allclose(seen.T @ seen, np.eye(seen.shape[1]), rtol=0, atol=1e-9)
