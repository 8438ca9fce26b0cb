"""The same seed, the same bits, whatever the number of threads; and what a result says of how it was made."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from tests.contract.methods import every_method
from tests.driving import CONVEX, SIMPLEX, X0, function

import condgrad as cg
from condgrad.driver.environment import threads, versions
from condgrad.points import LowRank

TWO = pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="numba has one thread here")


@pytest.fixture(scope="module")
def large() -> cg.Completion:
    """Too large for a full SVD, so that Lanczos vectors and their products are asked for too."""
    data = cg.paper_data(90, 80, 3, seed=1, generator="gaussian", observe=0.4)
    return cg.Completion(data.rows, data.cols, data.values, data.truth.shape)


def bits(result: cg.Result) -> list[Any]:
    x = result.x.factors() if isinstance(result.x, LowRank) else (result.x,)
    clocks = ("seconds", "cpu", "wall")
    rows = [[str(value) for name, value in asdict(row).items() if name not in clocks] for row in result.trace]
    return [result.status, result.counts, rows, *(part.tobytes() for part in x)]


@TWO
@every_method
def test_the_same_bits_with_one_thread_and_with_two(method: Any, large: cg.Completion, monkeypatch: Any) -> None:
    """Every loop is made to use all threads that there are, and every sum to be taken in many chunks."""
    monkeypatch.setattr("condgrad.kernels.MIN_PARALLEL_WORK", 0)
    monkeypatch.setattr("condgrad.kernels.SUM_CHUNK", 64)
    domain = cg.NuclearBall(large.shape, 20.0)
    x0 = np.zeros(large.shape) if method.projects else None
    found = []
    before = numba.get_num_threads()
    try:
        for number in (1, 2):
            numba.set_num_threads(number)
            options = {"warm_start": 0} if method.slides else {}
            result = cg.minimize(
                large, domain, x0, method=method.name, stop=cg.Steps(1), seed=3, validate=50, progress=False, **options
            )
            assert result.made_with["threads"]["numba"] == number
            found.append(bits(result))
    finally:
        numba.set_num_threads(before)
    assert found[0] == found[1]


def test_a_result_says_how_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    result = cg.minimize(CONVEX, SIMPLEX, X0, seed=7)
    assert result.seed == 7 and len(result.spec) == 16
    made = result.made_with
    assert made["condgrad"] == cg.__version__ and made["numpy"] == np.__version__
    assert made["Python"] == platform.python_version() and made["numba"] == numba.__version__
    assert set(made["threads"]) == {"numba", "blas"}
    told = json.loads(json.dumps(result.summary(), allow_nan=False))
    assert (told["seed"], told["spec"], told["made_with"]) == (7, result.spec, made)
    versions()["condgrad"] = "changed"
    assert versions()["condgrad"] == cg.__version__


def test_the_threads_of_the_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "threadpoolctl", raising=False)
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert threads()["blas"] is None
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads()["blas"] == 3
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    assert threads()["blas"] == 2
    sizes, searches = [5], []

    class Controller:
        def __init__(self) -> None:
            searches.append(1)

        def info(self) -> list[dict[str, Any]]:
            return [{"user_api": "blas", "num_threads": sizes[0]}, {"user_api": "openmp"}]

    known = ModuleType("threadpoolctl")
    known.ThreadpoolController = Controller
    monkeypatch.setitem(sys.modules, "threadpoolctl", known)
    assert threads()["blas"] == 5
    sizes[0] = 4  # as threadpool_limits does
    assert threads()["blas"] == 4 and len(searches) == 1  # a search for libraries takes longer than a short run


def test_the_spec_is_the_same_for_the_same_and_another_for_another() -> None:
    def spec(objective: Any = CONVEX, domain: Any = SIMPLEX, x0: Any = X0, **options: Any) -> str:
        return cg.minimize(objective, domain, x0, **{"max_steps": 1} | options).spec

    same = spec()
    assert same == spec(cg.Quadratic(np.diag([1.0, 2.0, 3.0])), cg.Simplex(3), X0.copy())
    others = [
        spec(cg.Quadratic(np.diag([1.0, 2.0, 3.1]))),
        spec(domain=cg.Simplex(3, 1.5), x0=None),
        spec(x0=np.eye(3)[0]),
        spec(seed=1),
        spec(method="frank-wolfe"),
        spec(method="frank-wolfe", rule="short"),
        spec(tol=1e-3),
        spec(smoothness=4.0),
        spec(inner="condg"),
        spec(function()),
    ]
    assert len({same, *others}) == 1 + len(others)
