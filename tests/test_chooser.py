"""method="auto": what it chooses, that it says why, and that a resumed run keeps the choice."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf, isclose
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problems import EXPECTATIONS, PLAIN, SUMS, case

import condgrad as cg
from condgrad.driver import chooser
from condgrad.driver.chooser import FIXED_TRIAL, MODELS, NOMINAL, TRIED, Offer, choose, chosen_start, first_vertex
from condgrad.driver.resolve import check_problem, with_smoothness
from condgrad.solvers import METHODS

EVERY = list(METHODS.values())


def regression(n: int, d: int = 20) -> cg.Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)) / np.sqrt(d)
    return check_problem(cg.Problem(cg.LinearModel(A, A @ rng.standard_normal(d), cg.Welsch()), cg.L1Ball(d, 2.0)))


def chosen(problem: cg.Problem, eps: float, start: Any = None, free_start: bool = False) -> cg.Choice:
    start = problem.domain.start() if start is None else start
    return choose(problem, start, eps, EVERY, clock=False, free_start=free_start)[0]


def test_accuracy_and_terms_decide_between_full_gradients_and_batches() -> None:
    assert chosen(regression(20_000), 1e-4).method == "ncgs-spider"
    assert chosen(regression(20_000), 1e-14).method == "ncgs"
    assert chosen(regression(500), 1e-4).method != "ncgs-spider"
    told = regression(20_000)
    untold = cg.Problem(with_smoothness(told.objective, None), told.domain)
    assert "ncgs-spider" not in chosen(untold, 1e-4).predicted, "its prediction is for runs with a given L"


def test_the_price_of_a_projection_and_of_a_gradient_decide() -> None:
    offer = Offer(0, True, 1e2)
    dear = {**NOMINAL, "project": 1.0, "grad": 1e-5}
    assert MODELS["frank-wolfe"](offer, dear) < MODELS["ncgs"](offer, dear)
    cheap = {**NOMINAL, "project": 1e-5, "grad": 1.0}
    assert MODELS["frank-wolfe"](offer, cheap) > MODELS["ncgs"](offer, cheap)
    large = replace(offer, n_terms=10**8)
    assert MODELS["ncgs-spider"](large, cheap) < MODELS["ncgs"](large, cheap)


def test_a_vertex_that_is_nearly_stationary_is_the_start() -> None:
    F = cg.Function(lambda x: float(x @ np.arange(4.0)), lambda x: np.arange(4.0), 4, smoothness=1e-3)
    result = cg.minimize(F, cg.Simplex(4), method="auto", tol=1e-20)
    assert result.choice is not None and result.choice.at_vertex and result.choice.method == "frank-wolfe"
    assert result.x.tolist() == [1.0, 0.0, 0.0, 0.0]
    given = cg.minimize(F, cg.Simplex(4), np.full(4, 0.25), method="auto", tol=1e-20)
    assert given.choice is not None and not given.choice.at_vertex, "a start that is given is kept"


def test_spectral_sets_and_samples_have_methods_of_their_own() -> None:
    nuclear, expectation = case("completion nuclear").problem, case(EXPECTATIONS[0]).problem
    assert chosen(check_problem(nuclear), 1e-3).method == "ncgs"
    assert chosen(check_problem(expectation), 1e-3).method == "stochastic-ncgs"


@pytest.mark.parametrize("name", [*PLAIN, *SUMS, *EXPECTATIONS])
def test_every_problem_has_a_choice_that_runs_and_is_told(name: str, tmp_path: Path) -> None:
    problem = case(name).problem
    result = cg.minimize(problem.objective, problem.domain, method="auto", tol=1e-3, max_steps=20, progress=False)
    assert result.choice is not None and result.method == result.choice.method
    assert result.message.endswith(result.choice.reason)
    assert f"Method '{result.method}' was chosen" in result.choice.reason and result.choice.reason.endswith(".")
    result.to_json(tmp_path / "result.json")
    stored = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["choice"]
    assert stored["method"] == result.method and stored["reason"] == result.choice.reason


def test_a_given_method_has_no_choice() -> None:
    result = cg.minimize(case("indefinite l1").objective, case("indefinite l1").domain, max_steps=2)
    assert result.choice is None and result.summary()["choice"] is None


def test_the_calls_of_the_choice_are_counted_apart() -> None:
    problem = regression(2_000)
    result = cg.minimize(problem.objective, problem.domain, method="auto", tol=1e-12)
    alone = cg.minimize(problem.objective, problem.domain, method=result.method, tol=1e-12)
    assert result.choice is not None and result.counts == alone.counts
    assert result.choice.counts == {"fo": 2, "ifo": 2 * 2_000 + 2 * 44, "lo": 2, "po": 2}
    assert set(result.choice.seconds) == {"grad", "lmo", "project", "batch"} and result.choice.cpu > 0


def test_without_a_clock_two_runs_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chooser, "process_time", iter(range(1_000)).__next__)  # a clock would decide otherwise
    problem = regression(1_500)
    one, two = (cg.minimize(problem.objective, problem.domain, method=cg.Auto(clock=False), tol=1e-8) for _ in range(2))
    assert one.choice == two.choice and one.choice is not None and one.choice.cpu == 0
    assert one.x.tobytes() == two.x.tobytes()


def test_a_resumed_run_keeps_the_choice_of_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, path = regression(1_500), tmp_path / "run"
    asked: dict[str, Any] = {"method": "auto", "tol": 1e-13, "checkpoint": cg.Checkpoint(path, steps=1)}
    whole = cg.minimize(problem.objective, problem.domain, method="auto", tol=1e-13)
    first = cg.minimize(problem.objective, problem.domain, max_steps=3, **asked)
    assert first.choice is not None and first.status == "out_of_budget"
    monkeypatch.setitem(MODELS, "away-step", lambda offer, seconds: 0.0)  # a new run would choose this
    assert cg.minimize(problem.objective, problem.domain, method="auto", tol=1e-13).method == "away-step"
    second = cg.minimize(problem.objective, problem.domain, resume=True, **asked)
    assert second.choice == first.choice and second.method == first.method == whole.method
    assert second.x.tobytes() == whole.x.tobytes() and second.counts == whole.counts


def test_a_resumed_run_starts_at_the_same_vertex(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    F = cg.Quadratic(0.02 * np.eye(6), rng.standard_normal(6))
    asked: dict[str, Any] = {"method": "auto", "checkpoint": cg.Checkpoint(tmp_path / "run", steps=1), "tol": 1e-30}
    first = cg.minimize(F, cg.L2Ball(6), max_steps=2, **asked)
    assert first.choice is not None and first.choice.at_vertex
    again = cg.minimize(F, cg.L2Ball(6), max_steps=5, resume=True, **asked)
    alone = cg.minimize(
        F,
        cg.L2Ball(6),
        first_vertex(cg.Problem(F, cg.L2Ball(6)), cg.L2Ball(6).start()),
        method="frank-wolfe",
        max_steps=5,
        tol=1e-30,
    )
    assert again.choice == first.choice and again.x.tobytes() == alone.x.tobytes()


def test_options_restrict_the_choice() -> None:
    problem = case("indefinite l1").problem
    result = cg.minimize(problem.objective, problem.domain, method="auto", rounds=3, max_steps=5)
    assert result.method == "boosted-frank-wolfe"
    with pytest.raises(ValueError, match="No method that fits the problem has the options colour: leave them out"):
        cg.minimize(problem.objective, problem.domain, method="auto", colour=3)


@pytest.mark.parametrize("n", [1, 30])
def test_an_option_of_batches_is_for_sums_of_few_terms_too(n: int) -> None:
    problem = regression(n)
    result = cg.minimize(problem.objective, problem.domain, method=cg.Auto(clock=False), batch=1, max_steps=5)
    assert result.choice is not None and result.choice.method == "ncgs-spider" and result.choice.predicted


class Listed:
    """A class of the user's own, with gradients that are lists."""

    def value(self, x: np.ndarray) -> float:
        return float(x @ x)

    def grad(self, x: np.ndarray) -> list[float]:
        return list(2 * x)


def test_gradients_that_are_lists_are_accepted_as_by_every_method() -> None:
    assert cg.minimize(Listed(), cg.Simplex(3), method="auto").status == "converged"


def test_a_random_output_restricts_the_choice() -> None:
    problem = regression(30)
    asked: dict[str, Any] = {"method": "auto", "output": "random", "max_steps": 5}
    result = cg.minimize(problem.objective, problem.domain, **asked)
    assert METHODS[result.method].output_law is not None
    plain = case("indefinite l1").problem
    with pytest.raises(ValueError, match="No method that fits has a random output in its theorem: use output='best'"):
        cg.minimize(plain.objective, plain.domain, **asked)


def test_a_method_that_is_added_to_the_models_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "pairwise", lambda offer, seconds: 0.0)
    assert chosen(check_problem(case("indefinite l1").problem), 1e-6).method == "pairwise"
    rest = [METHODS["boosted-frank-wolfe"], METHODS["dca-frank-wolfe"]]
    problem = check_problem(case("indefinite l1").problem)
    found = choose(problem, problem.domain.start(), 1e-6, rest, clock=False)[0]
    assert found.method == "boosted-frank-wolfe" and "no time is predicted" in found.reason


def test_an_interrupted_run_has_its_choice() -> None:
    problem = regression(1_500)

    def interrupt(record: Any, x: Any) -> None:
        if record.k == 2:
            raise KeyboardInterrupt

    result = cg.minimize(
        problem.objective, problem.domain, method="auto", tol=1e-13, callback=interrupt, on_interrupt="return"
    )
    assert result.status == "interrupted" and result.choice is not None
    with pytest.raises(KeyboardInterrupt) as caught:
        cg.minimize(
            problem.objective, problem.domain, method="auto", tol=1e-13, callback=interrupt, on_interrupt="raise"
        )
    assert caught.value.result.choice.method == result.method  # type: ignore[attr-defined]


def test_a_measured_mapping_has_the_constant_that_is_given() -> None:
    problem = case("indefinite l1").problem
    asked: dict[str, Any] = {"method": "projected-gradient", "max_steps": 3}
    one = cg.minimize(problem.objective, problem.domain, measure=True, **asked)
    same = cg.minimize(problem.objective, problem.domain, measure=float(problem.objective.smoothness), **asked)
    more = cg.minimize(problem.objective, problem.domain, measure=10.0 * problem.objective.smoothness, **asked)
    assert np.array_equal(one.trace["mapping"], same.trace["mapping"])
    assert one.certificate and more.certificate and isclose(more.certificate.gamma, one.certificate.gamma / 10)
    with pytest.raises(ValueError, match="measure, a smoothness constant if it is not a bool,"):
        cg.minimize(problem.objective, problem.domain, measure=-1.0)


def matching(seed: int = 2) -> cg.Problem:
    """Two graphs whose matching the trial steps find."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((10, 10)) < 0.3, 1).astype(float)
    p = rng.permutation(10)
    A = A + A.T
    return cg.Problem(cg.GraphMatching(A, A[np.ix_(p, p)], convexity=0.7), cg.Birkhoff(10))


def test_where_a_trial_reaches_the_tolerance_the_run_continues_there() -> None:
    problem = matching()
    result = cg.minimize(problem.objective, problem.domain, method=cg.Auto(clock=False))
    assert result.choice is not None and result.choice.method == TRIED and result.choice.predicted[TRIED] == 0
    assert (
        0 < result.choice.trial_steps < FIXED_TRIAL
        and "the run starts at the last point of the trial" in result.choice.reason
    )
    assert result.status == "converged" and result.steps <= 2, "its own steps do not begin from the start of the set"
    # the start: two gradients and two linear minimisations; then the trial, with one of each for the first curvature
    assert result.choice.counts["lo"] == 2 + 1 + result.choice.trial_steps
    assert cg.minimize(problem.objective, problem.domain, method="auto").choice.method == TRIED  # type: ignore[union-attr]


def test_a_trial_that_comes_to_no_end_leaves_the_predicted_method() -> None:
    rng = np.random.default_rng(0)
    F = cg.Quadratic(np.diag(np.linspace(0.1, 2.0, 30)), rng.standard_normal(30))
    hull = cg.ConvexHull(rng.standard_normal((80, 30)))
    result = cg.minimize(F, hull, method=cg.Auto(clock=False))
    assert result.choice is not None and result.choice.method == "ncgs"
    assert result.choice.trial_steps == FIXED_TRIAL and result.choice.predicted[TRIED] == inf
    assert f"{FIXED_TRIAL} trial steps of {TRIED} brought the Frank-Wolfe gap to" in result.choice.reason
    last = chosen_start(cg.Problem(F, hull), hull.start(), result.choice)
    assert F.value(last) < F.value(hull.start())
    alone = cg.minimize(F, hull, last, method="ncgs")
    assert alone.x.tobytes() == result.x.tobytes() and alone.counts == result.counts


def test_a_start_that_is_given_is_kept_by_a_trial() -> None:
    problem = matching()
    start = problem.domain.start()
    result = cg.minimize(problem.objective, problem.domain, start, method=cg.Auto(clock=False))
    assert result.choice is not None and result.choice.method == TRIED and result.choice.trial_steps == 0
    alone = cg.minimize(problem.objective, problem.domain, start, method=TRIED)
    assert alone.x.tobytes() == result.x.tobytes() and alone.counts == result.counts


def test_nothing_is_tried_on_a_set_that_projects_or_without_the_method() -> None:
    assert TRIED not in chosen(check_problem(case("indefinite l1").problem), 1e-6).predicted
    problem = check_problem(matching())
    rest = [method for method in EVERY if method.name != TRIED]
    found = choose(problem, problem.domain.start(), 1e-6, rest, clock=False, free_start=True)[0]
    assert found.trial_steps == 0 and "trial" not in found.reason


def test_a_trial_without_time_for_a_few_steps_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "ncgs", lambda offer, seconds: 1e-9)
    problem = matching()
    result = cg.minimize(problem.objective, problem.domain, method="auto", max_steps=2)
    assert result.choice is not None and result.choice.method == "ncgs" and TRIED not in result.choice.predicted


def test_a_resumed_run_starts_after_the_same_trial_steps(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    Q = rng.standard_normal((30, 30))
    F, hull = cg.Quadratic((Q + Q.T) / 8, rng.standard_normal(30)), cg.ConvexHull(rng.standard_normal((80, 30)))
    asked: dict[str, Any] = {"method": "auto", "tol": 1e-30, "checkpoint": cg.Checkpoint(tmp_path / "run", steps=1)}
    first = cg.minimize(F, hull, max_steps=2, **asked)
    assert first.choice is not None and first.choice.trial_steps > 0
    again = cg.minimize(F, hull, max_steps=6, resume=True, **asked)
    alone = cg.minimize(
        F,
        hull,
        chosen_start(cg.Problem(F, hull), hull.start(), first.choice),
        method=first.method,
        max_steps=6,
        tol=1e-30,
    )
    assert again.choice == first.choice and again.x.tobytes() == alone.x.tobytes() and again.counts == alone.counts


@pytest.mark.parametrize(
    ("gaps", "steps"),
    [
        ([8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625], 6.0),  # 0.0625 / 2^6 is less than a thousandth
        ([8.0, 4.0, 2.0, 1e-3], 0.0),
        ([8.0, 4.0, 2.0, 1.0], inf),  # not a tenth of the first
        ([8.0, 0.5, 0.5, 0.5], inf),
    ],
)
def test_the_steps_left_follow_the_last_quarter_of_the_gaps(gaps: list[float], steps: float) -> None:
    found = chooser._steps_left(gaps, 1e-3)
    assert found == steps or np.ceil(found) == steps
