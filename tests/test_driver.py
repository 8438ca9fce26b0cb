"""The loop: how runs end, what they may spend, what they give back, and that measuring costs them nothing."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
from dataclasses import asdict
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.certificate import witness
from condgrad.driver import clock, wolfe_gap
from condgrad.driver.progress import Progress, duration
from condgrad.driver.trace import COLUMNS
from condgrad.protocols import Record

X0 = np.array([0.5, 0.2, 0.3])
CONVEX = cg.Quadratic(np.diag([1.0, 2.0, 3.0]))
SIMPLEX = cg.Simplex(3)
NEVER = cg.Mapping(1e-300)
"""A tolerance that no run below reaches."""


def function(value: Any = CONVEX.value, grad: Any = CONVEX.grad, L: float | None = 3.0) -> cg.Function:
    return cg.Function(value, grad, (3,), smoothness=L)


def on_call(number: int, act: Any, answer: Any) -> Any:
    """A function that answers, but does ``act`` first when it is called for the ``number``-th time."""
    calls = [0]

    def asked(x: np.ndarray) -> Any:
        calls[0] += 1
        if calls[0] == number:
            act()
        return answer(x)

    return asked


def interrupt() -> None:
    raise KeyboardInterrupt


def a_sum(n: int = 27) -> cg.LinearModel:
    rng = np.random.default_rng(3)
    return cg.LinearModel(rng.standard_normal((n, 3)), rng.standard_normal(n), cg.Squared())


def an_expectation() -> cg.FunctionExpectation:
    """E |x - xi|^2 / 2 for xi around (1, 2)."""
    return cg.FunctionExpectation(
        lambda size, rng: rng.normal((1.0, 2.0), size=(size, 2)), lambda x, batch: x - batch, (2,), 1.0, 0.0
    )


@pytest.fixture
def fake_clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time that passes only when a test says so: timings never decide a test."""
    time = [0.0]
    monkeypatch.setattr(clock, "perf_counter", lambda: time[0])
    monkeypatch.setattr(clock, "process_time", lambda: 2 * time[0])
    return time


def passing(time: list[float], seconds: float, answer: Any) -> Any:
    def slow(*args: Any) -> Any:
        time[0] += seconds
        return answer(*args)

    return slow


# ---------------------------------------------------------------------------------------------------------- how it ends


def test_converged() -> None:
    result = cg.minimize(CONVEX, SIMPLEX, X0)
    assert (result.status, result.success) == ("converged", True)
    assert "squared gradient mapping is at most" in result.message and "tolerance is 1e-06" in result.message
    assert f"from step {result.trace[-1].k}" in result.message
    assert result.certificate.upper <= 1e-6 * (1 + 1e-5)


@pytest.mark.parametrize(
    ("method", "stop", "said"),
    [
        ("ncgs", cg.Steps(4), "4 steps"),
        ("ncgs", cg.Steps(0), "0 steps"),
        ("ncgs", cg.Calls(5, "fo"), "5 FO calls"),
        ("ncgs", cg.Calls(5, "po"), "5 PO calls"),
        ("frank-wolfe", cg.Calls(5, "lo"), "5 LO calls"),
        ("ncgs-vr", cg.Calls(100, "ifo"), "100 IFO calls"),
        ("sfw", cg.Calls(100, "ifo"), "100 IFO calls"),
    ],
)
def test_out_of_budget(method: str, stop: Any, said: str) -> None:
    objective = a_sum() if method in ("ncgs-vr", "sfw") else CONVEX
    result = cg.minimize(objective, SIMPLEX, X0, method=method, stop=NEVER | stop)
    assert (result.status, result.success) == ("out_of_budget", False)
    assert f"The budget of {said} is used up." in result.message
    if isinstance(stop, cg.Calls):
        assert 0.5 * stop.limit < result.counts[stop.oracle] <= stop.limit


def test_out_of_sample_gradients() -> None:
    result = cg.minimize(an_expectation(), cg.L2Ball(2), method="stochastic-ncgs", stop=cg.Calls(50, "sfo"), validate=9)
    assert (result.status, result.counts["sfo"]) == ("out_of_budget", 45)


def test_out_of_values() -> None:
    result = cg.minimize(function(L=None), SIMPLEX, X0, stop=NEVER | cg.Calls(11, "values"))
    assert result.status == "out_of_budget" and result.counts["values"] == 11


@pytest.mark.parametrize(
    ("rule", "said", "done"), [(cg.Seconds(10.0), "10 seconds", 40), (cg.CpuSeconds(10.0), "10 CPU seconds", 20)]
)
def test_out_of_time(fake_clock: list[float], rule: Any, said: str, done: int) -> None:
    slow = function(grad=passing(fake_clock, 0.25, CONVEX.grad))
    result = cg.minimize(slow, SIMPLEX, X0, stop=NEVER | rule)
    assert result.status == "out_of_budget" and said in result.message
    assert result.counts["fo"] == done


def test_stalled_by_the_mapping() -> None:
    """An L that is far too large makes tiny steps: no half of the mapping is gained in five of them."""
    result = cg.minimize(function(L=3000.0), SIMPLEX, X0, stop=NEVER | cg.Stagnation(5, rtol=0.5) | cg.Steps(5000))
    assert (result.status, result.success, result.steps) == ("stalled", False, 6)
    assert "The squared gradient mapping has not improved by 0.5 of itself in 5 steps." in result.message


def test_stalled_by_the_value() -> None:
    """Where there is no mapping, the value is looked at; rows that were not measured do not count."""
    rows = cg.Trace([a_record(k=k, fun=1.0) for k in range(5)])
    assert cg.Stagnation(5)(a_record(k=5, fun=0.9), rows) is None
    assert cg.Stagnation(5)(a_record(k=5, fun=0.9999), rows).status == "stalled"
    assert cg.Stagnation(6)(a_record(k=5, fun=0.9999), rows) is None
    assert cg.Stagnation(5)(a_record(k=5), rows).status == "stalled"


def test_stopped_by_the_callback() -> None:
    seen = []
    result = cg.minimize(CONVEX, SIMPLEX, X0, stop=NEVER, callback=lambda record, x: seen.append(x) or record.k == 3)
    assert (result.status, result.steps, len(seen)) == ("stopped", 3, 4)
    assert result.message.startswith("The callback asked to stop.")
    assert np.array_equal(seen[0], X0)


def test_a_callback_that_stops_a_converged_run_changes_nothing() -> None:
    plain = cg.minimize(CONVEX, SIMPLEX, X0)
    both = cg.minimize(CONVEX, SIMPLEX, X0, callback=lambda record, x: record.k == plain.steps)
    assert both.status == "converged"


@pytest.mark.parametrize("where", ["grad", "value", "lmo", "callback"])
def test_interrupted(where: str) -> None:
    """Ctrl-C anywhere: the best so far comes back, with a certificate that verifies."""
    again = {"grad": CONVEX.grad, "value": CONVEX.value, "lmo": SIMPLEX.lmo, "callback": lambda record: None}
    asked = on_call(6, interrupt, again[where])
    objective = function(**{where: asked}) if where in ("grad", "value") else function()
    domain = cg.user_set(asked if where == "lmo" else SIMPLEX.lmo, 3, 2.0, contains=SIMPLEX.contains)
    callback = (lambda record, x: asked(record)) if where == "callback" else None
    result = cg.minimize(objective, domain, X0, method="frank-wolfe", stop=NEVER, callback=callback)
    assert (result.status, result.success) == ("interrupted", False)
    assert result.message.startswith("Interrupted from the keyboard.")
    assert 3 <= result.steps <= 6 and result.counts["fo"] >= result.steps
    assert result.certificate.verify(cg.Problem(objective, domain)).upper == result.certificate.upper
    assert [row.k for row in result.trace][:4] == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["ncgs", "cgs", "frank-wolfe"])
def test_interrupted_before_the_first_step(method: str) -> None:
    """In the very first call: the start comes back, and its summary is JSON all the same."""
    objective = function(grad=on_call(1, interrupt, CONVEX.grad), L=None)
    result = cg.minimize(objective, SIMPLEX, X0, method=method)
    assert (result.status, result.steps, result.certificate) == ("interrupted", 0, None)
    assert np.array_equal(result.x, X0) and result.fun == CONVEX.value(X0) and len(result.trace) == 0


def test_the_summary_of_a_run_without_a_state_is_json() -> None:
    objective = function(grad=on_call(1, interrupt, CONVEX.grad), L=None)
    json.dumps(cg.minimize(objective, SIMPLEX, X0).summary(), allow_nan=False)


def test_interrupted_by_a_signal(tmp_path: Path) -> None:
    """A real SIGINT to a process in the middle of an endless inner solve."""
    script = tmp_path / "endless.py"
    script.write_text(
        "import numpy as np, condgrad as cg\n"
        "Q = np.diag(np.arange(1.0, 21.0))\n"
        "def lmo(g, calls=[0]):\n"
        "    calls[0] += 1\n"
        "    if calls[0] == 500: print('ready', flush=True)\n"
        "    return cg.Simplex(20).lmo(g)\n"
        "endless = cg.user_set(lmo, 20)\n"
        "never = cg.practical(1e-300, 1e-300)\n"
        "r = cg.minimize(cg.Quadratic(Q), endless, inner=cg.CondG(), schedule=never, stop=cg.Mapping(1e-300))\n"
        "print(r.status, r.steps, r.counts['lo'], flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    status, _, calls = said.split()
    assert status == "interrupted" and int(calls) >= 499 and process.returncode == 0


def test_finished_by_the_random_index() -> None:
    result = cg.minimize(a_sum(), SIMPLEX, X0, method="ncgs-vr", schedule="theory", max_steps=30, seed=4)
    assert (result.status, result.success, result.certificate) == ("finished", False, None)
    assert result.message.startswith(f"The random stopping index, {result.steps} of 30 steps, is reached.")


def test_failed_keeps_what_stood_before() -> None:
    """NaN at a place that a later iterate reaches: the run ends with the iterate before it, certified."""
    objective = function(grad=lambda x: CONVEX.grad(x) if x[0] < 0.52 else np.full(3, nan), L=300.0)
    result = cg.minimize(objective, SIMPLEX, np.array([0.5, 0.1, 0.4]), stop=NEVER | cg.Steps(10_000))
    assert (result.status, result.success) == ("failed", False)
    assert result.message.startswith(f"In step {result.steps + 1}: ") and "NaN" in result.message
    assert result.steps > 0 and result.x[0] < 0.52 and np.isfinite(result.fun) and np.isfinite(result.certificate.upper)
    assert len(result.trace) >= result.steps


# ----------------------------------------------------------------------------------------- budgets inside a long step


ENDLESS: dict[str, Any] = {"inner": cg.CondG(), "schedule": cg.practical(eps=1e-300, c=1e-300)}
"""An accuracy that condg, without a limit of its own, never reaches."""


def long_problem() -> tuple[Any, Any]:
    return cg.Quadratic(np.diag(np.arange(1.0, 21.0))), cg.Simplex(20)


@pytest.mark.parametrize("method", ["ncgs", "ncgs-ii", "cgs"])
@pytest.mark.parametrize("calls", [1, 7, 500])
def test_a_long_inner_solve_stays_within_its_calls(method: str, calls: int) -> None:
    result = cg.minimize(*long_problem(), method=method, stop=NEVER | cg.Calls(calls, "lo"), **ENDLESS)
    assert (result.status, result.counts["lo"]) == ("out_of_budget", calls)
    assert result.trace[-1].lo == calls  # what was spent inside the last step is in the trace


def test_a_long_inner_solve_stays_within_its_time(fake_clock: list[float]) -> None:
    objective, domain = long_problem()
    slow = cg.user_set(passing(fake_clock, 0.001, domain.lmo), 20)
    result = cg.minimize(objective, slow, stop=NEVER | cg.Seconds(0.3), **ENDLESS)
    assert result.status == "out_of_budget" and "0.3 seconds" in result.message
    assert 300 <= result.counts["lo"] <= 302 and result.seconds == pytest.approx(0.3, abs=0.002)


def test_a_long_inner_solve_ends_by_the_real_clock_too() -> None:
    result = cg.minimize(*long_problem(), stop=NEVER | cg.Seconds(0.3), **ENDLESS)
    assert result.status == "out_of_budget"  # that it ended at all is the test


@pytest.mark.parametrize("method", ["ncgs-vr", "svfw", "sagafw", "sfw", "stochastic-ncgs"])
@pytest.mark.parametrize("oracle", ["ifo", "lo"])
def test_no_count_ever_exceeds_its_budget(method: str, oracle: str) -> None:
    for calls in (27, 40, 123):
        result = cg.minimize(
            a_sum(), SIMPLEX, X0, method=method, inner=cg.CondG(5), stop=NEVER | cg.Calls(calls, oracle)
        )
        assert result.status == "out_of_budget" and result.counts[oracle] <= calls
        assert all(row.ifo <= 123 or oracle == "lo" for row in result.trace)


# --------------------------------------------------------------------------------------------------- rules, combined


def a_record(**known: Any) -> Record:
    return Record(**dict.fromkeys(COLUMNS[:9], 0) | dict.fromkeys(COLUMNS[9:], nan) | known)


YES, NO = cg.Steps(0), cg.Steps(10**9)
CLOSE, FAR = cg.Mapping(1.0), cg.Mapping(1e-9)
NOW = a_record(k=5, mapping=0.5, gap=0.5)


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        (YES | NO, "out_of_budget"),
        (NO | YES, "out_of_budget"),
        (NO | NO, None),
        (YES & NO, None),
        (NO & YES, None),
        (YES & YES, "out_of_budget"),
        (CLOSE | YES, "converged"),
        (YES | CLOSE, "out_of_budget"),
        (CLOSE & YES, "out_of_budget"),
        (YES & CLOSE, "out_of_budget"),
        (FAR & YES, None),
        (FAR | YES, "out_of_budget"),
        (CLOSE & cg.Gap(1.0), "converged"),
        (CLOSE & cg.Gap(0.1), None),
        (FAR & CLOSE, None),
        ((CLOSE & cg.Gap(0.1)) | YES, "out_of_budget"),
        ((CLOSE | cg.Gap(0.1)) & YES, "out_of_budget"),
        (CLOSE & cg.Gap(1.0) & CLOSE, "converged"),
    ],
)
def test_rules_combine(rule: Any, status: str | None) -> None:
    reason = rule(NOW, cg.Trace())
    assert (reason and reason.status) == status


def test_both_reasons_are_given() -> None:
    reason = (CLOSE & YES)(NOW, cg.Trace())
    assert "squared gradient mapping" in reason.message and "And: The budget of 0 steps" in reason.message


def test_stalled_is_less_than_out_of_budget() -> None:
    rows = cg.Trace([a_record(k=0, mapping=0.5)])
    assert (cg.Stagnation(5) & YES & CLOSE)(NOW, rows).status == "stalled"


def test_nan_satisfies_no_tolerance() -> None:
    assert CLOSE(a_record(mapping=nan), cg.Trace()) is None and CLOSE(a_record(mapping=inf), cg.Trace()) is None


def test_a_budget_in_an_and_does_not_end_a_step_inside() -> None:
    """Calls & Steps goes on until both are used up; alone, or with |, Calls is a limit."""
    result = cg.minimize(CONVEX, SIMPLEX, X0, method="frank-wolfe", stop=cg.Calls(3, "lo") & cg.Steps(20))
    assert result.steps == 20 and (cg.Calls(3) & cg.Steps(20)).budgets() == ()
    assert (cg.Calls(3) | cg.Steps(20)).budgets() == (cg.Calls(3),)


def test_progress_of_rules() -> None:
    rows = cg.Trace([a_record(k=0, mapping=1.0)])
    halfway = a_record(k=5, mapping=1e-3)
    assert cg.Steps(10).progress(halfway, rows) == 0.5
    assert cg.Mapping(1e-6).progress(halfway, rows) == pytest.approx(0.5)
    assert (cg.Steps(10) | cg.Steps(20)).progress(halfway, rows) == 0.5
    assert (cg.Steps(10) & cg.Steps(20)).progress(halfway, rows) == 0.25
    assert cg.Mapping(1e-6).progress(a_record(mapping=nan), rows) == 0.0
    assert cg.Gap(1e-6).progress(halfway, cg.Trace()) == 0.0
    assert cg.Steps(0).progress(halfway, rows) == 1.0


# -------------------------------------------------------------------------------------------------------- gap and best


@pytest.mark.parametrize("method", ["ncgs", "ncgs-ii", "cgs", "projected-gradient", "accelerated-gradient"])
def test_a_gap_can_be_asked_of_a_method_that_has_none(method: str) -> None:
    result = cg.minimize(CONVEX, SIMPLEX, X0, method=method, stop=cg.Gap(1e-5) | cg.Steps(500))
    assert result.status == "converged" and "Frank-Wolfe gap is at most" in result.message
    assert "smallest certified gap" in result.message
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
    assert result.certificate.upper <= np.nanmin(result.trace["mapping"]) * (1 + 1e-6)
    c = result.certificate
    assert c.x is result.x and c.verify(problem) == witness(problem, c.x, c.prox, c.gamma)
    assert result.fun == problem.objective.value(result.x)
    assert f"from step {int(np.nanargmin(result.trace['mapping']))}." in result.message


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
    for name in COLUMNS:
        assert np.array_equal([float(row[name]) for row in rows], trace[name], equal_nan=True)


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
    for name in COLUMNS:
        assert np.array_equal(again[name], trace[name], equal_nan=True)
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
    result = cg.minimize(
        slow, SIMPLEX, X0, stop=cg.Steps(10), callback=passing(fake_clock, 5.0, lambda record, x: None)
    )
    assert (result.seconds, result.cpu) == (2.5, 5.0)
    assert result.trace["seconds"].tolist() == [0.25 * k for k in range(11)]
    assert fake_clock[0] > 60


def test_values_that_the_method_asks_for_do_count(fake_clock: list[float]) -> None:
    slow = function(value=passing(fake_clock, 1.0, CONVEX.value), L=None)
    result = cg.minimize(slow, SIMPLEX, X0, stop=cg.Steps(10))
    assert result.seconds == result.counts["values"] > 0


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
    monkeypatch.setattr("condgrad.driver.progress.monotonic", lambda: next(time))
    records = [a_record(k=k, fun=0.5, mapping=1e-3, lo=7) for k in (10, 11, 30)]
    text = told(Terminal(), records, cg.Steps(40))
    first, second = text.removesuffix("\n").split("\r\x1b[K")[1:]
    assert first == "ncgs: step 10  F 0.5  mapping^2 1.00e-03  LO 7  [10 s, about 30 s left]"
    assert second.endswith("[30 s, about 10 s left]") and text.endswith("\n")  # step 11 came too soon after step 10


def test_progress_elsewhere_is_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    time = iter([0.0, 1.0, 5.0, 12.0])
    monkeypatch.setattr("condgrad.driver.progress.monotonic", lambda: next(time))
    text = told(io.StringIO(), [a_record(k=k, lo=k) for k in (1, 2, 3)], cg.Steps(4))
    assert text.splitlines() == [
        "ncgs: step 1  LO 1  [1 s, about 3 s left]",
        "ncgs: step 3  LO 3  [12 s, about 4 s left]",
    ]
    assert "\r" not in text and "\x1b" not in text


def test_no_progress_for_short_runs() -> None:
    for stream in (Terminal(), io.StringIO()):
        assert told(stream, [a_record(k=k) for k in range(50)], cg.Steps(50), quiet_for=60.0) == ""


def test_progress_of_minimize(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default on a terminal only; never on standard output."""
    for stream, progress, expected in (
        (Terminal(), None, True),
        (Terminal(), False, False),
        (io.StringIO(), True, True),
        (io.StringIO(), None, False),
    ):
        clock_hand = iter(range(0, 10**6, 3))
        monkeypatch.setattr("condgrad.driver.progress.monotonic", lambda hand=clock_hand: next(hand))
        monkeypatch.setattr(sys, "stderr", stream)
        cg.minimize(CONVEX, SIMPLEX, X0, stop=cg.Steps(20), progress=progress)
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
    """After numpy and scipy, which everyone has loaded: no plotting, no tables, and quick (printed, a generous limit)."""
    code = (
        "import sys, time, numpy, scipy.optimize, scipy.sparse.linalg, scipy.special\n"
        "t = time.perf_counter(); import condgrad; t = time.perf_counter() - t\n"
        "heavy = [m for m in ('matplotlib', 'pandas', 'pyarrow', 'sklearn', 'torch') if m in sys.modules]\n"
        "print(f'{t:.3f}', heavy)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    seconds, heavy = said.split(maxsplit=1)
    print(f"import condgrad: {seconds} s")
    assert heavy.strip() == "[]"
    assert float(seconds) < 20
