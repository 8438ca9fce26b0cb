"""What users hand to other processes, and copy: it comes back whole, read-only where it was, and computes the same bits."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
import pytest
from tests.test_determinism import bits

import condgrad as cg
from condgrad.domains import DOMAINS, ProjectableUserSet, UserSet
from condgrad.learn import RobustCompletion, RobustLinearRegressor, RobustPCA, SigmoidClassifier
from condgrad.objectives.losses import LOSSES
from condgrad.points import LowRank, SparsePlusLowRank

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}
every_copy = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
BALL = cg.NuclearBall((12, 9), 6.0)


def completion(weighted: bool = False) -> cg.Completion:
    rng = np.random.default_rng(0)
    seen = rng.random((12, 9)) < 0.6
    weights = rng.random(seen.sum()) + 0.5 if weighted else None
    return cg.Completion.from_dense(rng.normal(size=(12, 9)), seen, cg.Welsch(2.0), weights=weights)


def run(F: Any, x0: Any = None, **more: Any) -> cg.Result:
    return cg.minimize(F, BALL, x0, **{"stop": cg.Steps(4), "progress": False} | more)


@every_copy
@pytest.mark.parametrize("weighted", [False, True])
def test_an_objective_runs_as_it_did(copied: Any, weighted: bool) -> None:
    F = completion(weighted)
    before = bits(run(F))  # now it has evaluated points
    other = copied(F)
    assert bits(run(other)) == before == bits(run(F))
    for array in (other.values, other.weights):
        assert not array.flags.writeable
    x = LowRank(np.ones((12, 2)), np.ones((9, 2)))
    assert other.value(x) == F.value(x) and other.grad(x).values.tobytes() == F.grad(x).values.tobytes()


@every_copy
def test_a_result_is_whole(copied: Any) -> None:
    F = completion()
    result = run(F)
    other = copied(result)
    assert bits(other) == bits(result) and other.summary() == result.summary() and repr(other) == repr(result)
    assert other.x is other.certificate.x  # one point, as before
    bounds = [(c.lower, c.upper, c.gap) for c in (other.certificate, result.certificate)]
    assert bounds[0] == bounds[1]
    fresh = cg.Problem(copied(F), BALL)
    assert other.certificate.verify(fresh).upper == pytest.approx(result.certificate.upper, rel=1e-9)
    assert all(not part.flags.writeable for part in other.x.factors())


@every_copy
@pytest.mark.parametrize("method", ["ncgs", "frank-wolfe", "ncgs-vr"])
def test_a_run_from_a_copy_has_the_bits_of_one_from_the_original(copied: Any, method: str) -> None:
    """The point that a run found carries values from it; a run that begins there used to go on from these."""
    F = completion()
    x = run(F).x
    combined = 0.5 * x + 0.5 * BALL.lmo(F.grad(x))  # several terms
    for start in (x, combined):
        other = copied(start)
        assert bits(run(copied(F), other, method=method)) == bits(run(F, start, method=method))
    assert len(combined.terms) > 1  # x0 is never changed


@every_copy
def test_points_and_directions_compute_the_same(copied: Any) -> None:
    F, rng = completion(), np.random.default_rng(1)
    x = LowRank(rng.normal(size=(12, 2)), rng.normal(size=(9, 2)))
    y = x - 0.5 * LowRank(rng.normal(size=(12, 1)), rng.normal(size=(9, 1)))
    direction = F.grad(x) + 2.0 * (y - x)
    assert isinstance(direction, SparsePlusLowRank)
    for thing in (x, y, direction, LowRank.zeros((3, 2)), LowRank.zeros((3, 2)).T):
        other = copied(thing)
        assert type(other) is type(thing) and other.shape == thing.shape
        assert np.asarray(other).tobytes() == np.asarray(thing).tobytes()
        assert other.inner(other) == thing.inner(thing)
    both = copied((x, direction))
    assert both[1].inner(both[0]) == pytest.approx(direction.inner(x), rel=1e-12)
    assert not copied(direction).values.flags.writeable


@every_copy
def test_what_is_in_one_copy_together_stays_together(copied: Any) -> None:
    """Two directions of one objective can still be added: they live on one pattern."""
    F = completion()
    x = run(F).x
    first, second = copied((F.grad(x), F.grad(0.5 * x)))
    assert np.allclose(np.asarray(first + second), np.asarray(F.grad(x) + F.grad(0.5 * x)))


@every_copy
def test_traces_sets_losses_and_certificates(copied: Any) -> None:
    result = cg.minimize(cg.Quadratic(np.diag([1.0, 2.0])), cg.Simplex(2))
    assert str(list(copied(result.trace))) == str(list(result.trace))
    assert copied(result.certificate).upper == result.certificate.upper
    for loss in (entry.factory() for entry in LOSSES.values()):
        assert type(copied(loss)) is type(loss) and copied(loss).value(0.3, 1.0) == loss.value(0.3, 1.0)
    for domain in (entry.example() for entry in DOMAINS.values()):
        if not isinstance(domain, UserSet | ProjectableUserSet):  # their functions are the user's
            other, direction = copied(domain), np.random.default_rng(0).normal(size=domain.shape)
            direction = (
                direction + direction.T if hasattr(domain, "shrink") and len({*domain.shape}) == 1 else direction
            )
            assert np.asarray(other.lmo(direction)).tobytes() == np.asarray(domain.lmo(direction)).tobytes()


@every_copy
def test_fitted_estimators_predict_as_they_did(copied: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=40)
    holes = np.where(rng.random((20, 15)) < 0.7, rng.normal(size=(20, 1)) @ rng.normal(size=(1, 15)), np.nan)
    for model in (RobustLinearRegressor().fit(X, y), SigmoidClassifier().fit(X, y > 0)):
        assert copied(model).predict(X).tobytes() == model.predict(X).tobytes()
    completion = RobustCompletion(certify=1.0, max_steps=4).fit(holes)
    other = copied(completion)
    assert other.fill().tobytes() == completion.fill().tobytes()
    assert bits(other.result_) == bits(completion.result_)
    assert other.partial_fit(holes).fill().tobytes() == copied(completion).partial_fit(holes).fill().tobytes()
    pca = RobustPCA().fit(np.nan_to_num(holes))
    assert copied(pca).transform(np.ones((2, 15))).tobytes() == pca.transform(np.ones((2, 15))).tobytes()


def test_a_checkpoint_of_the_original_is_continued_with_a_copy(tmp_path: Any) -> None:
    F = completion()
    asked: dict[str, Any] = {"checkpoint": tmp_path / "run.ckpt"}
    run(F, stop=cg.Steps(2), **asked)
    rest = run(pickle.loads(pickle.dumps(F)), resume=True, **asked)
    assert bits(rest) == bits(run(F))


def _solved(F: cg.Completion, seed: int) -> cg.Result:
    return run(F, method="ncgs-vr", seed=seed)


@pytest.mark.parametrize("way", ["loky", "spawn", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_runs_in_other_processes(way: str) -> None:
    F = completion()
    alone = [bits(_solved(F, seed)) for seed in range(2)]
    if way == "loky":
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(_solved)(F, seed) for seed in range(2))
    else:
        import multiprocessing

        with multiprocessing.get_context(way).Pool(2) as pool:
            found = pool.starmap(_solved, [(F, seed) for seed in range(2)])
    assert [bits(result) for result in found] == alone
    assert replace(found[0], warnings=("x",)).warnings == ("x",)
