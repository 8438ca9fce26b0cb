"""Warm starts: Frank-Wolfe steps before step 0 of a sliding method. Who takes them, their cost, and their rows in the trace."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.resuming import Walk

import condgrad as cg
from condgrad.driver import mapping
from condgrad.solvers import WarmStart


@pytest.fixture(scope="module")
def papers() -> cg.Problem:
    data = cg.paper_data(40, 30, 2, seed=1, observe=0.3)
    return cg.Problem(
        cg.Completion(data.rows, data.cols, data.values, (40, 30)), cg.NuclearBall((40, 30), data.nuclear_norm)
    )


def method_start(result: cg.Result) -> Any:
    """The row of step 0, where the method itself starts."""
    return next(row for row in result.trace if row.k == 0)


@pytest.mark.parametrize("method", ["ncgs", "ncgs-ii", "ncgs-vr", "stochastic-ncgs", "cgs"])
def test_a_warm_start_is_paid_for(papers: cg.Problem, method: str) -> None:
    """One gradient and one linear oracle call a step, before the first one of the method."""
    n = papers.objective.n_terms
    seen = []
    for warm_start in (0, 7):
        result = cg.minimize(
            papers.objective, papers.domain, method=method, warm_start=warm_start, stop=cg.Steps(1), seed=1
        )
        seen.append(method_start(result))
    assert (seen[0].fo, seen[0].lo, seen[0].ifo) == (0, 0, 0)
    assert (seen[1].fo, seen[1].lo, seen[1].ifo) == (7, 7, 7 * n)
    assert seen[1].fun < seen[0].fun


def test_where_a_warm_start_leads(papers: cg.Problem) -> None:
    """To a point of the set whose rank is at most the number of steps: that of Frank-Wolfe with 2/(k+2)."""
    x = []
    for method, steps, options in (("ncgs", 0, {"warm_start": 6}), ("frank-wolfe", 6, {"output": "last"})):
        record: list[Any] = []
        cg.minimize(
            papers.objective,
            papers.domain,
            method=method,
            stop=cg.Steps(max(steps, 1)),
            callback=lambda row, x, steps=steps, record=record: record.append(x) if row.k == steps else None,
            **options,
        )
        x.append(record[0])
    assert papers.domain.contains(x[0]) and np.linalg.matrix_rank(np.asarray(x[0])) <= 6
    assert papers.objective.value(x[0]) == pytest.approx(papers.objective.value(x[1]), rel=0.05)


class Asked:
    """The set, with what its oracle was asked and answered."""

    def __init__(self, domain: Any):
        self.domain, self.calls = domain, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.domain, name)

    def lmo_near(self, direction: Any, block: Any, accuracy: float) -> Any:
        answer = self.domain.lmo_near(direction, block, accuracy)
        self.calls.append((np.asarray(direction), accuracy, np.asarray(answer[0])))
        return answer


def test_a_warm_start_step_by_step(papers: cg.Problem) -> None:
    """x = x + 2/(k+2) (s - x), with an oracle that is accurate to a tenth of the gap before, at first of a lower bound on it."""
    domain = Asked(papers.domain)
    x = papers.domain.start()
    values = np.linalg.svd(papers.objective.grad(x), compute_uv=False)
    gap = papers.domain.radius * float(np.sqrt(np.mean(values**2)))
    assert not x.any() and 0 < gap < papers.domain.radius * values[0]
    solver = WarmStart(cg.solvers.NCGS(cg.practical(), cg.Exact()), 6)
    states = list(islice(cg.iterate(cg.Problem(papers.objective, domain), solver, x), 7))
    assert [state.k for state in states] == [-6, -5, -4, -3, -2, -1, 0]
    assert len(domain.calls) == 6 and states[0].x is x
    for k, (direction, accuracy, s) in enumerate(domain.calls):
        grad = np.asarray(papers.objective.grad(x))
        assert np.allclose(direction, grad, atol=1e-10)
        assert accuracy == pytest.approx(0.1 * gap)
        gap = float(np.sum(grad * (x - s)))
        x = (1 - 2 / (k + 2)) * x + 2 / (k + 2) * s
    assert np.allclose(np.asarray(states[-1].x), x, atol=1e-10)


def test_who_starts_warm(papers: cg.Problem) -> None:
    def gradients(**options: Any) -> int:
        result = cg.minimize(papers.objective, papers.domain, stop=cg.Steps(1), **options)
        return method_start(result).fo

    x0 = papers.domain.start()
    assert gradients() == 1
    assert gradients(x0=x0) == gradients(inner="exact") == gradients(schedule="theory") == gradients(warm_start=0) == 0
    assert gradients(x0=x0, warm_start=3) == gradients(inner="corrective", warm_start=3) == 3
    assert gradients(method="frank-wolfe") == 0
    other = cg.minimize(cg.Quadratic(np.eye(3)), cg.Simplex(3))
    assert method_start(other).fo == 0


def test_a_method_that_does_not_slide_refuses_a_warm_start(papers: cg.Problem) -> None:
    with pytest.raises(TypeError, match="warm_start is for methods that slide, 'frank-wolfe' does not: leave it out"):
        cg.minimize(papers.objective, papers.domain, method="frank-wolfe", warm_start=3)


def test_a_budget_can_end_inside_a_warm_start(papers: cg.Problem) -> None:
    result = cg.minimize(papers.objective, papers.domain, warm_start=10, stop=cg.Calls(5))
    assert (result.status, result.counts["lo"], result.steps) == ("out_of_budget", 5, 0)
    assert papers.domain.contains(result.x) and np.isfinite(result.fun)
    assert [(row.k, row.phase, row.lo) for row in result.trace] == [(k, "warm-start", 10 + k) for k in range(-10, -4)]
    assert result.fun < papers.objective.value(papers.domain.start()), "the point that was reached"


def test_an_expectation_has_no_full_gradient_to_start_warm_with() -> None:
    f = cg.FunctionExpectation(
        lambda size, rng: rng.normal(size=(size, 3, 4)), lambda x, batch: x - batch - 1, (3, 4), 1.0, 0.0
    )
    result = cg.minimize(f, cg.NuclearBall((3, 4)), method="stochastic-ncgs", max_steps=20, validate=50)
    assert result.counts["fo"] == 0 and result.steps > 0


def test_a_warm_start_under_backtracking(papers: cg.Problem) -> None:
    result = cg.minimize(papers.objective, papers.domain, smoothness="estimate", tol=1e-4)
    assert result.status == "converged" and method_start(result).fo >= 1
    measured = mapping(papers, np.asarray(result.x), result.certificate.gamma)
    assert measured.upper <= 1e-4 * (1 + 1e-5)


def test_the_steps_of_a_warm_start_are_rows_of_the_trace(papers: cg.Problem, tmp_path: Path) -> None:
    seen: list[tuple[int, str, float]] = []
    result = cg.minimize(
        papers.objective,
        papers.domain,
        warm_start=6,
        max_steps=3,
        callback=lambda row, x: seen.append((row.k, row.phase, papers.objective.value(x))),
    )
    rows = [(row.k, row.phase, row.fun) for row in result.trace]
    assert [row[:2] for row in rows] == [row[:2] for row in seen]
    # F of the point as it was stored in the step, and of the point that the callback gets: rounded differently
    assert [row[2] for row in rows] == pytest.approx([row[2] for row in seen], rel=1e-13)
    phases = ["warm-start"] * 6 + ["main", "factored", "factored", "main"]
    assert [row[:2] for row in rows] == list(zip(range(-6, 4), phases, strict=True))
    assert result.trace["fo"][:7].tolist() == result.trace["lo"][:7].tolist() == list(range(7))
    assert result.trace["phase"].tolist() == [row[1] for row in rows]
    assert result.steps == 3
    result.trace.to_csv(tmp_path / "trace.csv")
    lines = (tmp_path / "trace.csv").read_text().splitlines()
    assert lines[0].endswith(",phase") and lines[1].endswith(",warm-start") and lines[-1].endswith(",main")


def test_a_callback_can_stop_a_warm_start(papers: cg.Problem) -> None:
    result = cg.minimize(papers.objective, papers.domain, warm_start=10, callback=lambda row, x: row.k == -7)
    assert (result.status, result.steps, result.counts["lo"]) == ("stopped", 0, 3)


def test_measured_rows_of_a_warm_start(papers: cg.Problem) -> None:
    """With ``measure`` the mapping is measured there too; without, nothing is claimed."""
    for measure in (True, False):
        result = cg.minimize(papers.objective, papers.domain, warm_start=4, max_steps=2, measure=measure)
        warm = [row for row in result.trace if row.k < 0]
        assert all(np.isfinite(row.mapping) == measure for row in warm) and len(warm) == 4


@pytest.mark.parametrize("asked", [{}, {"smoothness": "estimate"}, {"measure": True}, {"method": "ncgs-vr"}], ids=str)
def test_a_run_that_is_resumed_in_its_warm_start_is_the_same_run(asked: Any, tmp_path: Path) -> None:
    asked = {"warm_start": 8, "max_steps": 4, "tol": 1e-300, **asked}  # 1e-12 may be reached sooner
    cuts = (-7, -4, -1, 0, 2)
    whole = Walk("completion", tmp_path / "c", cuts, **asked)
    for cut in cuts:
        resumed = Walk("completion", tmp_path / f"c-{cut}", resume=True, **asked)
        assert len(resumed.iterates) == 4 - cut
        resumed.same_as(whole)


def test_a_checkpoint_of_another_warm_start_is_refused(tmp_path: Path) -> None:
    Walk("completion", tmp_path / "c", (-3,), warm_start=8, max_steps=2)
    with pytest.raises(ValueError, match="is of another run"):
        Walk("completion", tmp_path / "c--3", resume=True, warm_start=5, max_steps=2)


def test_each_call_of_a_warm_start_begins_where_the_last_one_ended(papers: cg.Problem) -> None:
    solver = WarmStart(cg.solvers.NCGS(cg.practical(), cg.Spectral()), 3)
    first, second, third, _ = islice(cg.iterate(papers, solver, papers.domain.start()), 4)
    assert first.block.shape == (30, 0) and papers.objective.smoothness == first.L
    assert second.block.shape[1] > 0 and not np.array_equal(second.block, third.block)


def test_a_warm_start_knows_no_smoothness_that_nobody_has_given(papers: cg.Problem) -> None:
    unknown = cg.Function(papers.objective.value, papers.objective.grad, (40, 30))
    state = WarmStart(cg.solvers.NCGS(cg.practical(), cg.Spectral()), 3).init(
        cg.Problem(unknown, papers.domain), papers.domain.start()
    )
    assert np.isnan(state.L)
