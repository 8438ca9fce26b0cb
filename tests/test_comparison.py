"""Comparisons of methods: costs, tables, profiles, files, reports, refusals, interruption and processes."""

from __future__ import annotations

import csv
import json
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import refused
from tests.problems import EXPECTATIONS, case

import condgrad as cg
from condgrad.cli import main
from condgrad.comparison import run_all
from condgrad.comparison.costs import Comparison
from condgrad.comparison.performed import COLUMNS, ComparedRun
from condgrad.comparison.requested import requested
from condgrad.solvers import METHODS

SPEC = """
[problem]
objective = "robust-regression"
terms = 60
dimension = 5

[set]
name = "l1-ball"

[method]
name = "{method}"

[stop]
mapping = 1e-4
lo = 300
fo = 300
"""


def problem(seed: int = 0) -> cg.Problem:
    rng = np.random.default_rng(seed)
    return cg.Problem(cg.LinearModel(rng.standard_normal((40, 6)), rng.standard_normal(40), cg.Welsch()), cg.L1Ball(6))


def made(**costs: list[float]) -> Comparison:
    """A comparison whose runs reach the targets 1e-1 and 1e-2 at given CPU times, on two seeds each: [a, b, c, d]."""
    runs = []
    for label, (a, b, c, d) in costs.items():
        for seed, times in enumerate(((a, b), (c, d))):
            rows = [(time, aim) for time, aim in zip(times, (0.09, 0.009), strict=True) if time < inf]
            trace = {name: np.zeros(len(rows)) for name in COLUMNS}
            trace |= {"cpu": np.array([row[0] for row in rows]), "mapping": np.array([row[1] for row in rows])}
            runs.append(ComparedRun(label, seed, trace, "converged", ""))
    return Comparison(list(costs), [0, 1], [1e-1, 1e-2], runs, {}, 1.0)


# -------------------------------------------------------------------------------------------------------------- numbers


def test_profiles_and_winners_follow_from_the_costs() -> None:
    found = made(fast=[1.0, 2.0, 1.0, 8.0], slow=[3.0, 4.0, 2.0, inf], late=[inf, inf, inf, 4.0])
    x, share = found.profile()["fast"]
    assert x.tolist() == [1.0, 1.0, 1.0, 1.0, 2.0] and share.tolist() == [0.75, 0.75, 0.75, 0.75, 1.0]
    x, share = found.profile()["slow"]
    assert x.tolist() == [1.0, 2.0, 2.0, 3.0] and share.tolist() == [0.0, 0.5, 0.5, 0.75]
    assert found.winner(1e-1) == found.winner(1e-2) == "fast"
    assert found.median("slow", 1e-2) == inf and found.cost("slow", 1e-2).tolist() == [4.0, inf]
    assert found.median("fast", 1e-1) == 1.0
    header, rows = found.table(1e-2)
    assert header[:3] == ["method", "reached", "CPU s"] and [row[0] for row in rows] == ["fast", "slow", "late"]
    assert rows[1][1:3] == ["1 of 2", "-"]


def test_a_seed_that_was_left_out_counts_as_missed() -> None:
    found = made(one=[1.0, 2.0, 1.0, 2.0])
    found.runs.pop()
    assert found.median("one", 1e-1) == inf
    found.interrupted = True  # then it is not known
    assert found.median("one", 1e-1) == 1.0


def test_a_cost_is_that_of_the_first_measured_iterate_within_the_target() -> None:
    found = cg.compare(problem(), ["ncgs", "frank-wolfe"], [3], targets=[1e-2, 1e-4], budget=cg.Calls(500, "fo"))
    for run in found.runs:
        trace = run.trace
        assert set(trace) == set(COLUMNS) and (np.diff(trace["fo"]) >= 0).all() and np.isfinite(trace["fun"]).all()
        first = int(np.argmax(trace["mapping"] <= 1e-2))
        assert run.cost(1e-2, "fo") == trace["fo"][first] and not (trace["mapping"][:first] <= 1e-2).any()
        assert run.cost(1e-2, "fo") <= run.cost(1e-4, "fo") or run.best > 1e-4
    F = problem().objective
    assert found.smoothness == F.smoothness
    alone = cg.minimize(F, cg.L1Ball(6), seed=3, tol=1e-4, measure=True)
    assert found.cost("ncgs", 1e-4, "fo")[0] == alone.counts["fo"]


def test_the_mapping_of_all_methods_has_one_step_size_where_L_is_not_known() -> None:
    F = problem().objective
    nameless = cg.Function(F.value, F.grad, 6)
    found = cg.compare((nameless, cg.L1Ball(6)), "ncgs,frank-wolfe,projected-gradient", 1, targets=1e-3)
    starts = {run.trace["mapping"][0] for run in found.runs}
    assert len(starts) == 1, "the methods estimate L, each its own, but are measured with the same"


def test_auto_pays_for_its_choice() -> None:
    found = cg.compare(problem(), "auto", 1, targets=1e-3, budget=cg.Steps(50))
    (run,) = found.runs
    assert run.choice is not None and run.choice["reason"].startswith("Method '")
    assert run.trace["fo"][0] >= run.choice["counts"]["fo"] == 2


# --------------------------------------------------------------------------------------------------- who takes part


def test_all_compares_what_fits_and_says_of_the_rest_why() -> None:
    found = cg.compare(case("indefinite lp").problem, "all", 1, targets=1e-1, budget=cg.Steps(2))
    assert set(found.labels) | set(found.skipped) == set(METHODS) and "ncgs" in found.labels
    assert all(why.endswith(".") and "\n" not in why for why in found.skipped.values())
    assert "projects" in found.skipped["projected-gradient"] and "convex" in found.skipped["cgs"]
    assert "cgs" in cg.compare(case("indefinite lp").problem, "cgs", 1, targets=1e-1, budget=cg.Steps(1)).labels
    convex = cg.compare(cg.Problem(cg.Quadratic(np.eye(3)), cg.Simplex(3)), "all", 1, targets=1e-3, budget=cg.Steps(1))
    assert "cgs" in convex.labels


def test_an_expectation_is_compared_on_one_batch() -> None:
    asked: dict[str, Any] = {"targets": 1e-9, "budget": cg.Steps(3), "validate": 100}
    found = cg.compare(case(EXPECTATIONS[0]).problem, "stochastic-ncgs,sfw,ncgs", [2], **asked)
    assert set(found.labels) == {"stochastic-ncgs", "sfw"} and set(found.skipped) == {"ncgs"}
    assert len({run.trace["mapping"][0] for run in found.runs}) == 1


def test_options_belong_to_methods() -> None:
    one, two, three = requested("ncgs, frank-wolfe:rule=short:step_scale=0.5 ,auto")
    assert (one.label, two.method, three.method) == ("ncgs", "frank-wolfe", "auto")
    assert dict(two.settings) == {"rule": "short", "step_scale": 0.5}
    labelled = requested({"mine": ("ncgs", {"adaptive": False}), "theirs": "ncgs:inner=condg"})
    assert [each.label for each in labelled] == ["mine", "theirs"] and dict(labelled[1].settings) == {"inner": "condg"}
    found = cg.compare(problem(), {"a": "ncgs:inner=corrective", "b": "ncgs"}, 1, targets=1e-3)
    assert found.cost("a", 1e-3, "lo")[0] > 0 == found.cost("b", 1e-3, "lo")[0]


BAD = {
    "a name": (lambda: cg.compare(problem(), "ncsg"), "did you mean 'ncgs'"),
    "an option": (lambda: cg.compare(problem(), "ncgs:rule=short"), "Method 'ncgs' has no option 'rule': it takes"),
    "half an option": (lambda: cg.compare(problem(), "ncgs:rule"), "name=value was expected"),
    "twice": (lambda: cg.compare(problem(), "ncgs,ncgs"), "'ncgs' is given twice"),
    "none": (lambda: cg.compare(problem(), []), "There is no method to compare"),
    "no seed": (lambda: cg.compare(problem(), "ncgs", 0), "The number of seeds"),
    "seeds twice": (lambda: cg.compare(problem(), "ncgs", [1, 1]), "give at least one, and each once"),
    "a target": (lambda: cg.compare(problem(), "ncgs", 1, targets=0.0), "A target must be positive"),
    "no target": (lambda: cg.compare(problem(), "ncgs", 1, targets=[]), "There is no target"),
    "a budget": (lambda: cg.compare(problem(), "ncgs", 1, budget=-1.0), "The budget, in CPU seconds,"),
    "a problem": (lambda: cg.compare(7, "ncgs"), "a Problem, a pair"),  # type: ignore[arg-type]
    "an option for all": (
        lambda: cg.compare(problem(), "ncgs", rule="short"),
        "Unknown setting for all methods 'rule'",
    ),
    "a method": (lambda: cg.compare(problem(), [7]), "'name:option=value' or"),
    "nothing fits": (
        lambda: cg.compare(case("indefinite lp").problem, "svfw"),
        "No method fits the problem: Method 'svfw'",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_in_one_sentence(what: str) -> None:
    call, sentence = BAD[what]
    with pytest.raises((ValueError, TypeError)) as refusal:
        call()
    assert sentence in str(refusal.value) and "\n" not in str(refusal.value)


def test_targets_are_chosen_from_the_start() -> None:
    found = cg.compare(problem(), "ncgs", 1, budget=cg.Steps(3))
    start = found.runs[0].trace["mapping"][0]
    shares = [target / start for target in found.targets]
    assert np.allclose(shares, [1e-2, 1e-4, 1e-6], rtol=0.5) and found.targets == sorted(found.targets, reverse=True)


def test_a_function_of_the_seed_gives_the_data() -> None:
    found = cg.compare(problem, "ncgs,frank-wolfe", [0, 5], targets=1e-2, budget=cg.Steps(20))
    starts = {run.seed: run.trace["mapping"][0] for run in found.runs}
    assert starts[0] != starts[5]


def test_a_method_that_misses_most_seeds_is_not_run_on_the_others() -> None:
    asked: dict[str, Any] = {"targets": 1e-12, "budget": cg.Steps(3), "all_seeds": False}
    found = cg.compare(problem(), "frank-wolfe", 5, **asked)
    assert [run.seed for run in found.runs] == [0, 1, 2] and found.median("frank-wolfe") == inf


def test_a_method_that_fails_does_not_stop_the_others() -> None:
    F = case("welsch simplex").objective
    found = cg.compare((F, cg.user_set(lambda g: np.eye(5)[np.argmin(g)], 5)), "sfw,ncgs", 2, targets=1e-2)
    assert "diameter" in found.failed["sfw"]
    assert len(found.of("ncgs")) == 2 and not found.of("sfw") and "sfw: failed." in str(found)


# ------------------------------------------------------------------------------------------------ files, report, command


def test_the_comparison_is_written(tmp_path: Path) -> None:
    found = cg.compare(problem(), "ncgs,auto,svfw-s", 2, targets=[1e-2, 1e-3], budget=cg.Calls(2000, "ifo"))
    found.to_csv(tmp_path / "c.csv")
    rows = list(csv.DictReader((tmp_path / "c.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 6 and {row["method"] for row in rows} == set(found.labels)
    assert float(rows[0]["fo"]) == found.median(rows[0]["method"], 1e-2, "fo")
    found.to_json(tmp_path / "c.json")
    stored = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert stored["targets"] == [1e-2, 1e-3] and len(stored["runs"]) == 6 and "skipped" in stored
    page = found.report(tmp_path / "report").read_text(encoding="utf-8")
    for text in ("Convergence", "Performance profile", "Cost to a squared mapping of 0.001", "was chosen"):
        assert text in page
    pandas = pytest.importorskip("pandas")
    frame = found.to_dataframe()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 6


@pytest.mark.parametrize("method", ["ncgs", "auto"])
def test_the_command_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str) -> None:
    spec = tmp_path / "p.toml"
    spec.write_text(SPEC.format(method=method), encoding="utf-8")
    assert main(["compare", str(spec), "--methods", "ncgs,frank-wolfe:rule=short,svfw", "--seeds", "2", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "Cost to a squared mapping of 0.0001" in out and "frank-wolfe:rule=short" in out
    assert {file.name for file in (tmp_path / "p-compared").iterdir()} == {"comparison.csv", "data.json", "report.html"}
    assert main(["compare", str(spec), "--methods", "ncgs", "--seeds", "1", "--json", "--targets", "1e-1,1e-2"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"] == [0.1, 0.01]
    assert "did you mean" in refused(capsys, "compare", spec, "--methods", "ncsg")
    assert "expected" in refused(capsys, "compare", tmp_path)
    assert "give numbers, separated by commas" in refused(capsys, "compare", spec, "--targets", "low")


def test_an_interruption_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    perform, done = run_all.perform, []

    def interrupted(*args: Any) -> Any:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(perform(*args))
        return done[-1]

    monkeypatch.setattr(run_all, "perform", interrupted)
    asked: dict[str, Any] = {"targets": 1e-2, "budget": cg.Steps(3)}
    found = cg.compare(problem(), "ncgs,frank-wolfe", 5, on_interrupt="return", **asked)
    assert found.interrupted and len(found.runs) == 3 and "Interrupted after 3 runs." in str(found)
    done.clear()
    with pytest.raises(KeyboardInterrupt) as caught:
        cg.compare(problem(), "ncgs,frank-wolfe", 5, on_interrupt="raise", **asked)
    assert len(caught.value.comparison.runs) == 3  # type: ignore[attr-defined]
    done.clear()
    spec = tmp_path / "p.toml"
    spec.write_text(SPEC.format(method="ncgs"), encoding="utf-8")
    assert main(["compare", str(spec), "--methods", "ncgs,frank-wolfe", "--quiet"]) == 130
    assert (tmp_path / "p-compared" / "report.html").exists()
    done[:] = [None] * 3
    assert main(["compare", str(spec), "--methods", "ncgs", "--out", str(tmp_path / "none"), "--quiet"]) == 130
    assert "Nothing was written." in capsys.readouterr().out and not (tmp_path / "none").exists()


OWN = """
[problem]
objective = "breaking:F"
calls = {calls}
[set]
name = "l1-ball"
[method]
name = "ncgs"
[stop]
mapping = 1e-20
steps = 50
"""
BREAKING = """
import condgrad as cg
def F(calls):
    left = [calls]
    def grad(x):
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("the simulator has ended")
        return 2 * (x - 0.7) * [1, 2, 3]
    return cg.Function(lambda x: ((x - 0.7) ** 2) @ [1, 2, 3], grad, (3,), smoothness=6.0)
"""


@pytest.mark.parametrize("command", ["compare", "solve"])
@pytest.mark.parametrize("calls", [0, 12])
def test_an_error_of_a_users_own_function_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, calls: int
) -> None:
    (tmp_path / "breaking.py").write_text(BREAKING, encoding="utf-8")
    spec = tmp_path / "p.toml"
    spec.write_text(OWN.format(calls=calls), encoding="utf-8")
    options = ["--methods", "ncgs:adaptive=false", "--seeds", "1"] if command == "compare" else []
    code = main([command, str(spec), "--quiet", *options])
    said = capsys.readouterr()
    assert code in (2, 3) and "RuntimeError: the simulator has ended" in said.out + said.err


def test_processes_give_the_runs_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_all, "cores", lambda: 2)
    asked: dict[str, Any] = {"targets": 1e-3, "budget": cg.Calls(3000, "ifo"), "methods": "ncgs,svfw", "seeds": 2}
    one, two = cg.compare(problem(), **asked), cg.compare(problem(), jobs=2, **asked)

    def known(found: Comparison) -> dict[Any, list[float]]:
        return {(run.label, run.seed): [*run.trace["mapping"], *run.trace["ifo"]] for run in found.runs}

    assert known(one) == known(two) and not two.failed
    spec = tmp_path / "p.toml"
    spec.write_text(SPEC.format(method="ncgs"), encoding="utf-8")
    assert len(cg.compare(spec, "ncgs", 2, jobs=2).runs) == 2
    F = cg.Function(lambda x: float(x @ x), lambda x: 2 * x, 6, smoothness=2.0)
    with pytest.raises(ValueError, match="can't be sent to other processes"):
        cg.compare((F, cg.L1Ball(6)), "ncgs", 2, jobs=2, targets=1e-3)


def test_progress_tells_the_time_left(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONDGRAD_PROGRESS", raising=False)
    monkeypatch.setattr("condgrad.runtime.workers.SECONDS_TO_FIRST_LINE", 0.0)
    monkeypatch.setattr("condgrad.runtime.progress.EVERY_ELSEWHERE", 0.0)
    cg.compare(problem(), "ncgs", 3, targets=1e-1, budget=cg.Steps(2), progress=True)
    assert "compare: 1/3 runs, about" in capsys.readouterr().err


def test_a_new_method_takes_part_without_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "twin", type(METHODS["ncgs"])("twin", "Twin", METHODS["ncgs"].make, slides=True))
    found = cg.compare(problem(), "all", 1, targets=1e-1, budget=cg.Steps(1))
    assert "twin" in found.labels
