"""Certificates against the truth in extended precision, in small; and that the measurement would notice a false one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import certificates
from benchmarks.true_mapping import eigh, known_sets, long, svd, true_mapping

import condgrad as cg


def test_no_certificate_of_some_random_problems_is_false() -> None:
    rows = [certificates.solve(task) for task in certificates.tasks(36) if task.number % 9 != 8 or task.number < 10]
    assert {row["set"] for row in rows} == set(known_sets()) and len(rows) > 30
    assert not [row for row in rows if certificates.false_upper(row) or certificates.false_lower(row)]
    assert not [row for row in rows if certificates.false_converged(row) or row["status"] == "failed"]
    assert any(row["status"] == "converged" for row in rows) and any(row["status"] == "unverified" for row in rows)


def test_a_false_bound_would_be_noticed() -> None:
    tasks = (t for t in certificates.tasks(200) if t.set_name == "simplex" and t.method == "ncgs" and t.known)
    rows = (certificates.solve(replace(t, model=replace(t.model, scale=1.0, offset=0.0))) for t in tasks)
    row = next(row for row in rows if row["true"] > 0)  # not a vertex, where the mapping is 0
    assert certificates.sharp(row) and not certificates.false_upper(row)
    assert certificates.false_upper({**row, "upper": 0.99 * row["true"]})
    assert certificates.false_lower({**row, "lower": 1.01 * row["true"]})
    assert certificates.false_converged({**row, "status": "converged", "tol": 0.99 * row["true"]})


@pytest.mark.parametrize("name", [name for name in known_sets() if cg.DOMAINS[name].projects])
def test_the_true_mapping_is_that_of_the_projection(name: str) -> None:
    domain, rng = cg.DOMAINS[name].example(), np.random.default_rng(0)
    for _ in range(5):
        x, grad = domain.project(rng.standard_normal(domain.shape)), rng.standard_normal(domain.shape)
        truth = true_mapping(domain, x, long(grad), 0.3)
        assert truth.error < 1e-7
        assert truth.norm == pytest.approx(float(np.linalg.norm(x - domain.project(x - 0.3 * grad))) / 0.3, rel=1e-12)


def test_decompositions_in_extended_precision() -> None:
    A = long(np.random.default_rng(0).standard_normal((6, 5)))
    U, s, V = svd(A)
    assert np.abs((U * s) @ V.T - A).max() < 1e-17 and np.abs(V.T @ V - np.eye(5)).max() < 1e-17
    values, vectors = eigh(A.T @ A)
    assert np.abs((vectors * values) @ vectors.T - A.T @ A).max() < 1e-16 and np.allclose(values, s**2, rtol=1e-15)
