"""``result_`` of an estimator: the trace and the counts of all runs of its fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.driver import Session
from condgrad.learn import RobustCompletion, RobustLinearRegressor, RobustPCA, SigmoidClassifier, linear_problem
from condgrad.solvers import NCGS, WarmStart

rng = np.random.default_rng(3)
MATRIX = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + 0.1 * rng.normal(size=(30, 20))
FEATURES = rng.normal(size=(80, 4))
TARGETS = FEATURES @ np.array([2.0, -1.0, 0.0, 0.0]) + 0.1 * rng.normal(size=80)
FITS = {
    "completion": lambda: RobustCompletion().fit(np.where(rng.random(MATRIX.shape) < 0.7, MATRIX, np.nan)),
    "certified completion": lambda: RobustCompletion(certify=1e-1).fit(MATRIX),
    "given radius": lambda: RobustCompletion(loss=cg.Huber(), radius=20.0).fit(MATRIX),
    "pca": lambda: RobustPCA().fit(MATRIX),
    "regressor": lambda: RobustLinearRegressor("huber").fit(FEATURES, TARGETS),
    "classifier": lambda: SigmoidClassifier().fit(FEATURES, TARGETS > 0),
}
COUNTED = ("fo", "ifo", "lo", "ub", "po", "values")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each step that the solver takes, wherever it is called."""
    taken: list[int] = []
    step = NCGS.step

    def counting(self: NCGS, problem: cg.Problem, state: Any) -> Any:
        taken.append(1)
        return step(self, problem, state)

    monkeypatch.setattr(NCGS, "step", counting)
    return taken


@pytest.mark.parametrize("kind", FITS)
def test_the_trace_and_the_counts_are_of_the_whole_fit(kind: str, steps: list[int]) -> None:
    result = FITS[kind]().result_
    trace = result.trace
    assert result.steps == trace[-1].k == len(steps)
    assert {name: getattr(trace[-1], name) for name in COUNTED} == {name: result.counts[name] for name in COUNTED}
    for name in ("k", "seconds", "cpu", "wall", *COUNTED):
        assert (np.diff(trace[name]) >= 0).all(), name
    assert result.counts["fo"] >= result.steps and result.counts["values"] > 0
    phases = list(dict.fromkeys(trace["phase"].tolist()))
    assert len(phases) > 2 * (kind != "pca") and "main" not in phases  # the start of RobustPCA is no run of a solver
    assert (kind == "pca" or phases[0].startswith("path, ")) and phases[-1].startswith(
        ("final, ", "all entries", "certificate")
    )
    assert np.isfinite(trace["fun"][trace["phase"] == phases[0]]).any()


def test_counts_of_linear_fits_are_the_sum_of_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[cg.Result] = []
    monkeypatch.setattr(linear_problem, "minimize", lambda *a, **k: runs.append(cg.minimize(*a, **k)) or runs[-1])
    model = RobustLinearRegressor().fit(FEATURES, TARGETS)
    assert len(runs) > 5 and model.result_.x is runs[-1].x
    assert model.result_.counts == {name: sum(run.counts[name] for run in runs) for name in runs[0].counts}
    assert len(model.result_.trace) == sum(len(run.trace) for run in runs)
    assert model.n_iter_ == max(1, runs[-1].steps) < model.result_.steps
    assert len(set(model.result_.trace["phase"].tolist())) == len(runs), "each radius has its own name"


def test_phases_of_a_certified_completion() -> None:
    trace = FITS["certified completion"]().result_.trace
    certified = trace["phase"] == "certificate"
    assert np.isfinite(trace["mapping"][certified]).any() and not np.isfinite(trace["mapping"][~certified]).any()


@pytest.mark.parametrize("kind", ["pca", "regressor", "classifier"])
def test_a_file_holds_the_model_without_its_runs(kind: str, tmp_path: Path) -> None:
    model = FITS[kind]()
    model.save(tmp_path / "m")
    assert type(model).load(tmp_path / "m").result_ is None


def test_steps_in_parts_are_the_same_steps() -> None:
    """A session takes the steps that ``iterate`` takes, and counts them as ``run`` does."""
    problem = cg.Problem(cg.Quadratic(np.diag([1.0, 2.0, 3.0])), cg.Simplex(3))
    solver, session, x0 = NCGS(cg.practical(), cg.Exact(), adaptive=True), Session(), np.eye(3)[0]
    state = solver.init(session.counted(problem), x0)
    for part in ("first", "second"):
        state = session.advance(problem, solver, state, 3, part)
    result = cg.run(problem, solver, x0, cg.Steps(6), output="last")
    assert state.k == 6 and np.array_equal(state.x, result.x)
    assert vars(session.counts) == result.counts
    assert session.trace["fun"].tolist() == result.trace["fun"][1:].tolist()
    assert session.trace["phase"].tolist() == ["first"] * 3 + ["second"] * 3
    assert np.isnan(session.trace["mapping"]).all(), "only the last run of a fit is certified"


def test_the_warm_start_of_a_part_has_its_own_name() -> None:
    data = cg.paper_data(20, 15, 2, seed=1, observe=0.4)
    F = cg.Completion(data.rows, data.cols, data.values, (20, 15))
    problem, session = cg.Problem(F, cg.NuclearBall((20, 15), 2.0)), Session()
    solver = WarmStart(NCGS(cg.practical(), cg.Spectral()), 2)
    session.advance(problem, solver, solver.init(problem, problem.domain.start()), 3, "first")
    assert session.trace["phase"].tolist() == ["first, warm-start", "first", "first"]


def test_a_fault_and_an_interruption_in_a_part_are_raised() -> None:
    problem = cg.Problem(cg.Quadratic(np.diag([1.0, 2.0, 3.0])), cg.Simplex(3))

    class Failing:
        def __init__(self, error: BaseException):
            self.error = error

        def init(self, problem: cg.Problem, x0: Any) -> Any:
            return NCGS(cg.practical(), cg.Exact()).init(problem, x0)

        def step(self, problem: cg.Problem, state: Any) -> Any:
            raise self.error

    for error in (KeyboardInterrupt(), ZeroDivisionError("a fault")):
        with pytest.raises(type(error)) as raised:
            Session().advance(problem, Failing(error), Failing(error).init(problem, np.eye(3)[0]), 2, "part")
        assert raised.value is error
