"""The loop: what runs give back, and that measuring costs them nothing."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import asdict
from itertools import pairwise
from math import ceil, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.driving import (
    CONVEX,
    NEVER,
    SIMPLEX,
    X0,
    a_record,
    a_sum,
    an_expectation,
    function,
    passing,
)

import condgrad as cg
from condgrad.certificate import witness
from condgrad.driver import wolfe_gap
from condgrad.driver.progress import Progress
from condgrad.driver.trace import COLUMNS, NUMERIC_COLUMNS
from condgrad.protocols import Record
from condgrad.runtime.progress import SWITCH, duration

# -------------------------------------------------------------------------------------------------------- gap and best


@pytest.mark.parametrize("method", ["ncgs", "ncgs-ii", "cgs", "projected-gradient", "accelerated-gradient"])
def test_a_gap_can_be_asked_of_a_method_that_has_none(method: str) -> None:
    result = cg.minimize(CONVEX, SIMPLEX, X0, method=method, stop=cg.Gap(1e-5) | cg.Steps(500))
    assert result.status == "converged" and "Frank-Wolfe gap is at most" in result.message
    assert "the iterate that was certified" in result.message
    assert result.certificate.wolfe_gap <= 1e-5 and wolfe_gap(cg.Problem(CONVEX, SIMPLEX), result.x) <= 1.001e-5


@pytest.mark.parametrize("method", ["ncgs-vr", "svfw", "stochastic-ncgs"])
def test_a_gap_can_be_asked_of_a_stochastic_method(method: str) -> None:
    objective = a_sum()
    result = cg.minimize(objective, SIMPLEX, X0, method=method, stop=cg.Gap(0.05) | cg.Steps(3000), every=100)
    assert result.status == "converged" and wolfe_gap(cg.Problem(objective, SIMPLEX), result.x) <= 0.0501


def test_frank_wolfe_stops_by_its_own_gap() -> None:
    result = cg.minimize(CONVEX, SIMPLEX, X0, method="frank-wolfe", stop=cg.Gap(1e-2) | cg.Steps(5000))
    assert result.status == "converged" and result.certificate.prox is result.certificate.x
    assert result.counts["lo"] == result.counts["fo"] == result.steps  # nothing was asked for the gap alone


def test_gap_and_mapping_can_both_be_asked_for() -> None:
    stop = (cg.Gap(1e-3) & cg.Mapping(1e-3)) | cg.Steps(500)
    assert cg.minimize(CONVEX, SIMPLEX, X0, stop=stop).status == "converged"


@pytest.mark.parametrize("method", ["ncgs", "ncgs-ii", "frank-wolfe", "accelerated-gradient", "cgs"])
def test_the_best_certified_iterate_is_returned(method: str) -> None:
    """Not the last one: no row of the trace has a smaller certificate, and what is returned verifies."""
    rng = np.random.default_rng(8)
    A = rng.standard_normal((6, 6))
    problem = cg.Problem(cg.Quadratic((A + A.T) / 2, rng.standard_normal(6)), cg.L2Ball(6))
    result = cg.minimize(problem.objective, problem.domain, method=method, stop=NEVER | cg.Steps(25))
    # a projection is taken to be exact on the way; the check at the end goes by a gap, whose rounding comes under a root
    rounding = 2 * result.certificate.floor**0.5
    assert result.certificate.upper**0.5 <= np.nanmin(result.trace["mapping"]) ** 0.5 * (1 + 1e-6) + rounding
    c = result.certificate
    assert c.x is result.x and c.verify(problem) == witness(problem, c.x, c.prox, c.gamma, step=c.step)
    assert result.fun == problem.objective.value(result.x)
    certified_in = int(np.nanargmin(result.trace["mapping"]))
    before = method in ("ncgs", "frank-wolfe")  # a step of theirs certifies the iterate that it starts from
    assert f"from step {certified_in - before}." in result.message


@pytest.mark.parametrize(("method", "elsewhere"), [("ncgs", True), ("cgs", False)])
def test_where_F_was_lower_is_said(method: str, elsewhere: bool) -> None:
    result = cg.minimize(CONVEX, SIMPLEX, X0, method=method, stop=NEVER | cg.Steps(7))
    values = result.trace["fun"]
    assert (values.min() < result.fun) == elsewhere
    said = f"F was lower at step {int(values.argmin())}, {values.min():.6g}"
    assert said in result.message if elsewhere else "lower" not in result.message


def test_last_is_the_last() -> None:
    last = []
    result = cg.minimize(
        CONVEX, SIMPLEX, X0, method="frank-wolfe", output="last", max_steps=7, callback=lambda record, x: last.append(x)
    )
    assert np.array_equal(result.x, last[-1]) and result.certificate is None and len(last) == 8


@pytest.mark.parametrize("method", list(cg.METHODS))
def test_x0_is_never_changed(method: str) -> None:
    objective = a_sum() if cg.METHODS[method].sees != "gradient" else CONVEX
    x0 = X0.copy()
    cg.minimize(objective, SIMPLEX, x0, method=method, max_steps=5)
    assert np.array_equal(x0, X0) and x0.flags.writeable


def test_what_the_callback_gets_may_be_kept() -> None:
    """Points are values: those of earlier steps do not change later."""
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    cg.minimize(CONVEX, SIMPLEX, X0, max_steps=10, stop=cg.Steps(10), callback=lambda r, x: kept.append((x, x.copy())))
    assert len(kept) == 11 and all(np.array_equal(x, copy) for x, copy in kept)


# ----------------------------------------------------------------------------------------------------------- the trace


@pytest.mark.parametrize("every", [1, 3, 100])
def test_every(every: int) -> None:
    result = cg.minimize(CONVEX, SIMPLEX, X0, stop=cg.Steps(10), every=every)
    wanted = sorted({*range(0, 11, every), 10})
    assert [row.k for row in result.trace] == wanted
    assert list(result.trace["lo"]) == sorted(result.trace["lo"])
    plain = cg.minimize(CONVEX, SIMPLEX, X0, stop=cg.Steps(10))
    assert np.array_equal(plain.x, result.x) and plain.counts == result.counts


@pytest.fixture
def trace() -> cg.Trace:
    """With NaN in it: an expectation has no value, and is not measured in every step."""
    result = cg.minimize(
        an_expectation(), cg.L2Ball(2), method="stochastic-ncgs", max_steps=30, stop=cg.Steps(30), validate=50
    )
    assert len(result.trace) == 31 and isnan(result.trace[5].fun)
    assert np.isnan(result.trace["mapping"]).any() and np.isfinite(result.trace["mapping"]).any()
    return result.trace


def test_csv(trace: cg.Trace, tmp_path: Path) -> None:
    trace.to_csv(tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    for name in NUMERIC_COLUMNS:
        assert np.array_equal([float(row[name]) for row in rows], trace[name], equal_nan=True)
    assert [row["phase"] for row in rows] == trace["phase"].tolist() == ["main"] * 31


def test_json_lines(trace: cg.Trace, tmp_path: Path) -> None:
    trace.to_jsonl(tmp_path / "t.jsonl")
    text = (tmp_path / "t.jsonl").read_text()
    assert "NaN" not in text
    rows = [json.loads(line) for line in text.splitlines()]
    for row, record in zip(rows, trace, strict=True):
        assert {k: nan if v is None else v for k, v in row.items()} == pytest.approx(asdict(record), nan_ok=True, abs=0)
    assert rows[0]["fun"] is None and rows[0]["k"] == 0


def test_dataframe_and_parquet(trace: cg.Trace, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = trace.to_dataframe()
    trace.to_parquet(tmp_path / "t.parquet")
    again = pandas.read_parquet(tmp_path / "t.parquet")
    assert list(frame.columns) == COLUMNS and frame["k"].dtype.kind == again["k"].dtype.kind == "i"
    pandas.testing.assert_frame_equal(frame, again)
    for name in NUMERIC_COLUMNS:
        assert np.array_equal(again[name], trace[name], equal_nan=True)
    assert again["phase"].tolist() == trace["phase"].tolist()
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(tmp_path / "t.parquet")["fun"].null_count == len(trace)


def test_a_trace_is_a_sequence(trace: cg.Trace) -> None:
    assert trace[-1].k == 30 and len(trace[:4]) == 4 and isinstance(trace[:4], cg.Trace)
    assert trace["k"].tolist() == [row.k for row in trace] == list(range(31))
    assert "31 rows" in repr(trace)
    assert cg.Trace().to_dataframe().empty


@pytest.mark.parametrize("method", ["ncgs", "frank-wolfe", "stochastic-ncgs"])
def test_the_summary_is_json(method: str, tmp_path: Path) -> None:
    objective = a_sum()
    result = cg.minimize(objective, SIMPLEX, X0, method=method, max_steps=20)
    summary = json.loads(json.dumps(result.summary(), allow_nan=False))
    assert summary["status"] == result.status and summary["counts"] == result.counts
    assert summary["mapping_lower"] <= summary["mapping_upper"] == result.certificate.upper
    assert summary["certified_on"] == "F" and summary["fun"] == result.fun
    result.to_json(tmp_path / "result.json")
    assert json.loads((tmp_path / "result.json").read_text()) == summary


def test_the_summary_of_an_expectation_has_no_value() -> None:
    result = cg.minimize(an_expectation(), cg.L2Ball(2), method="sfw", max_steps=20, validate=50)
    assert isnan(result.fun) and json.loads(json.dumps(result.summary(), allow_nan=False))["fun"] is None


def test_a_result_is_readable() -> None:
    text = repr(cg.minimize(CONVEX, SIMPLEX, X0))
    assert text.startswith("ncgs: converged.") and "|g|^2" in text and "FO" in text and "on F" in text


# ----------------------------------------------------------------------------------------------------------- the watch


def test_metrics_and_callbacks_do_not_count(fake_clock: list[float]) -> None:
    """Values take 1 s and the callback 5 s; only the 10 gradients of 0.25 s are the method's own time."""
    slow = function(value=passing(fake_clock, 1.0, CONVEX.value), grad=passing(fake_clock, 0.25, CONVEX.grad))
    callback = passing(fake_clock, 5.0, lambda record, x: None)
    result = cg.minimize(slow, SIMPLEX, X0, stop=cg.Steps(10), callback=callback, adaptive=False)
    assert (result.seconds, result.cpu) == (2.5, 5.0)
    assert result.trace["seconds"].tolist() == [0.25 * k for k in range(11)]
    assert fake_clock[0] > 60


@pytest.mark.parametrize("L", [3.0, None])
def test_values_that_the_method_asks_for_do_count(fake_clock: list[float], L: float | None) -> None:
    """For steps that adapt, and where L is unknown."""
    slow = function(value=passing(fake_clock, 1.0, CONVEX.value), L=L)
    result = cg.minimize(slow, SIMPLEX, X0, stop=cg.Steps(10))
    assert result.seconds == result.counts["values"] > 0


def test_the_step_on_which_a_run_ends_has_its_row_with_its_measures() -> None:
    result = cg.minimize(CONVEX, SIMPLEX, X0, tol=1e-6, every=1000)
    assert result.status == "converged" and [row.k for row in result.trace] == [0, result.steps]
    assert result.trace[-1].mapping <= 1e-6


def test_steps_that_are_measured_are_a_tenth_apart() -> None:
    """So a run goes on for a tenth too long at most, and measuring takes a number of steps that grows like a logarithm."""
    result = cg.minimize(CONVEX, SIMPLEX, X0, method="cgs", stop=NEVER | cg.Steps(300))
    measured = [row.k for row in result.trace if not isnan(row.mapping)]
    assert measured[:10] == list(range(1, 11)) and measured[-1] == 300, "and where it ended"
    for earlier, later in pairwise(measured[:-1]):
        assert later == max(earlier + 1, ceil(1.1 * earlier))
    assert max(measured[-2] + 1, ceil(1.1 * measured[-2])) >= 300


def test_measuring_from_outside_does_not_count(fake_clock: list[float]) -> None:
    """A method without a certificate of its own is measured on the uncounted problem."""
    slow = function(grad=passing(fake_clock, 0.25, CONVEX.grad))
    result = cg.minimize(slow, SIMPLEX, X0, method="cgs", stop=cg.Steps(10))
    assert result.counts["fo"] == 10 and result.seconds == 2.5 and fake_clock[0] > 2.5
    assert result.certificate is not None


# -------------------------------------------------------------------------------------------------------- the progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO, records: list[Record], stop: Any, quiet_for: float = 0.0) -> str:
    bar = Progress("ncgs", stop, stream, quiet_for)
    for record in records:
        bar(record, cg.Trace(records[:1]))
    bar.close()
    return stream.getvalue()


def test_progress_on_a_terminal_has_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    time = iter([0.0, 10.0, 10.1, 30.0])
    monkeypatch.setattr("condgrad.runtime.progress.monotonic", lambda: next(time))
    records = [a_record(k=k, fun=0.5, mapping=1e-3, lo=7) for k in (10, 11, 30)]
    text = told(Terminal(), records, cg.Steps(40))
    first, second = text.removesuffix("\n").split("\r\x1b[K")[1:]
    assert first == "ncgs: step 10  F 0.5  mapping^2 1.00e-03  LO 7  [10 s, about 30 s left]"
    assert second.endswith("[30 s, about 10 s left]") and text.endswith("\n")  # step 11 came too soon after step 10


def test_progress_elsewhere_is_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    time = iter([0.0, 1.0, 5.0, 12.0])
    monkeypatch.setattr("condgrad.runtime.progress.monotonic", lambda: next(time))
    text = told(io.StringIO(), [a_record(k=k, lo=k) for k in (1, 2, 3)], cg.Steps(4))
    assert text.splitlines() == [
        "ncgs: step 1  LO 1  [1 s, about 3 s left]",
        "ncgs: step 3  LO 3  [12 s, about 4 s left]",
    ]
    assert "\r" not in text and "\x1b" not in text


def test_no_progress_for_short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condgrad.runtime.progress.monotonic", lambda: 1.0)
    for stream in (Terminal(), io.StringIO()):
        assert told(stream, [a_record(k=k) for k in range(50)], cg.Steps(50), quiet_for=60.0) == ""


def test_progress_of_minimize(progress: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default on a terminal only; never on standard output; switched off by the environment."""
    for stream, shown, switch, expected in (
        (Terminal(), None, "", True),
        (Terminal(), False, "", False),
        (io.StringIO(), True, "1", True),
        (io.StringIO(), None, "", False),
        (Terminal(), None, "0", False),
        (io.StringIO(), True, "off", False),
    ):
        monkeypatch.setenv(SWITCH, switch)
        clock_hand = iter(range(0, 10**6, 3))
        monkeypatch.setattr("condgrad.runtime.progress.monotonic", lambda hand=clock_hand: next(hand))
        monkeypatch.setattr(sys, "stderr", stream)
        cg.minimize(CONVEX, SIMPLEX, X0, stop=cg.Steps(20), progress=shown)
        assert ("step" in stream.getvalue()) == expected


def test_no_guess_of_the_time_left_without_ground() -> None:
    bar = Progress("ncgs", NEVER, io.StringIO())
    assert "left" not in bar.line(a_record(k=1), 0.0, 5.0)
    assert [duration(s) for s in (3.2, 59, 61, 5399, 7200)] == ["3 s", "59 s", "1 min", "90 min", "2.0 h"]


# ------------------------------------------------------------------------------------------------------- randomness


@pytest.mark.parametrize("method", ["stochastic-ncgs", "ncgs-vr", "sfw", "svfw", "sagafw"])
def test_the_same_seed_gives_the_same_run(method: str) -> None:
    def once(seed: int) -> cg.Result:
        return cg.minimize(
            a_sum(), SIMPLEX, X0, method=method, schedule="theory", max_steps=40, seed=seed, inner="exact"
        )

    runs = [once(seed) for seed in range(12)]
    again = [once(seed) for seed in range(12)]
    assert [r.steps for r in runs] == [r.steps for r in again]
    assert all(np.array_equal(a.x, b.x) for a, b in zip(runs, again, strict=True))
    assert len({r.steps for r in runs}) > 5
    first = 1 if method == "stochastic-ncgs" else 0
    assert all(first <= r.steps < 40 + first and r.status == "finished" for r in runs)


def test_random_output_can_be_asked_for_and_refused() -> None:
    random = cg.minimize(a_sum(), SIMPLEX, X0, method="ncgs-vr", output="random", max_steps=40)
    best = cg.minimize(a_sum(), SIMPLEX, X0, method="ncgs-vr", schedule="theory", output="best", max_steps=40)
    assert random.status == "finished" and best.status in ("converged", "out_of_budget")


def test_expectations_are_certified_on_a_validation_batch_and_say_so() -> None:
    kinds = {"method": "stochastic-ncgs", "tol": 1e-2, "max_steps": 400, "every": 50}
    result = cg.minimize(an_expectation(), cg.L2Ball(2), validate=777, **kinds)
    assert result.certificate.on == "a validation batch of 777 samples" == result.summary()["certified_on"]
    assert "777 samples" in repr(result)
    expected = np.array([1.0, 2.0]) / np.sqrt(5)
    assert result.status == "converged" and result.x == pytest.approx(expected, abs=0.1)
    assert result.counts["sfo"] == result.steps * (result.steps + 1) // 2  # the batch is not counted
    again = cg.minimize(an_expectation(), cg.L2Ball(2), validate=777, **kinds)
    assert np.array_equal(again.x, result.x) and again.certificate.upper == result.certificate.upper


def test_finite_sums_are_certified_on_F() -> None:
    result = cg.minimize(a_sum(), SIMPLEX, X0, method="ncgs-vr", max_steps=50)
    assert result.certificate.on == "F"


# ----------------------------------------------------------------------------------------------------------- importing


def test_importing_is_light() -> None:
    """No plotting, no tables: what takes long to import is not imported. Seconds are not measured, they are the machine's."""
    code = (
        "import sys, condgrad\n"
        "heavy = [m for m in ('matplotlib', 'pandas', 'pyarrow', 'sklearn', 'torch') if m in sys.modules]\n"
        "print(heavy)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


# ------------------------------------------------------------------------------------------------- order of arguments


@pytest.mark.parametrize("function", [cg.run, cg.iterate])
def test_the_problem_comes_before_the_solver(function: Any) -> None:
    problem, solver = cg.Problem(cg.Quadratic(np.eye(3)), SIMPLEX), cg.solvers.FrankWolfe()
    more = (cg.Steps(2),) if function is cg.run else ()
    assert function(problem, solver, X0, *more) is not None
    with pytest.raises(TypeError, match=r"^The first argument is of type FrankWolfe, a Problem.*was expected\.$"):
        function(solver, problem, X0, *more)
    with pytest.raises(TypeError, match=r"^The solver is of type int, which has no init and no step: give .*\.$"):
        function(problem, 3, X0, *more)
