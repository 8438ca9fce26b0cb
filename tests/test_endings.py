"""How runs end, what they may spend, and how stopping rules combine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import HUNG
from tests.driving import (
    CONVEX,
    NEVER,
    SIMPLEX,
    X0,
    a_record,
    a_sum,
    an_expectation,
    function,
    interrupt,
    on_call,
    passing,
)

import condgrad as cg

# ---------------------------------------------------------------------------------------------------------- how it ends


def test_converged() -> None:
    result = cg.minimize(CONVEX, SIMPLEX, X0)
    assert (result.status, result.success) == ("converged", True)
    assert "squared gradient mapping is at most" in result.message and "tolerance is 1e-06" in result.message
    assert f"from step {result.trace[-1].k - 1}" in result.message, "the last step certified where it started"
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
    result = cg.minimize(slow, SIMPLEX, X0, stop=NEVER | rule, adaptive=False)
    assert result.status == "out_of_budget" and said in result.message
    assert result.counts["fo"] == result.steps == done, "a step that ends on the second is within the time"


def test_stalled_by_the_mapping() -> None:
    """An L that is far too large makes tiny steps: no half of the mapping is gained in five of them."""
    stop = NEVER | cg.Stagnation(5, rtol=0.5) | cg.Steps(5000)
    result = cg.minimize(function(L=3000.0), SIMPLEX, X0, stop=stop, adaptive=False)
    assert (result.status, result.success, result.steps) == ("stalled", False, 6)
    assert "The squared gradient mapping has not improved by a relative 0.5 in 5 steps." in result.message


def test_stalled_by_the_value() -> None:
    """Where there is no mapping, the value is looked at; rows that were not measured do not count."""
    rows = cg.Trace([a_record(k=k, fun=1.0) for k in range(5)])
    assert cg.Stagnation(5)(a_record(k=5, fun=0.9), rows) is None
    assert cg.Stagnation(5)(a_record(k=5, fun=0.9999), rows).status == "stalled"
    assert cg.Stagnation(6)(a_record(k=5, fun=0.9999), rows) is None
    assert cg.Stagnation(5)(a_record(k=5), rows).status == "stalled"


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_stalled_on_any_scale(scale: float) -> None:
    """A share of what there is, whatever the scale of F is, and whatever its sign."""
    rule = cg.Stagnation(5)
    by_mapping = cg.Trace([a_record(k=k, mapping=scale) for k in range(5)])
    assert rule(a_record(k=5, mapping=0.9 * scale), by_mapping) is None
    assert rule(a_record(k=5, mapping=0.9999 * scale), by_mapping).status == "stalled"
    by_value = cg.Trace([a_record(k=k, fun=-scale) for k in range(5)])
    assert rule(a_record(k=5, fun=-1.1 * scale), by_value) is None
    assert rule(a_record(k=5, fun=-1.0001 * scale), by_value).status == "stalled"


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
    given: dict[str, Any] = {"method": "frank-wolfe", "stop": NEVER, "callback": callback, "on_interrupt": "return"}
    result = cg.minimize(objective, domain, X0, **given)
    assert (result.status, result.success) == ("interrupted", False)
    assert result.message.startswith("Interrupted from the keyboard.")
    assert 3 <= result.steps <= 6 and result.counts["fo"] >= result.steps
    assert result.certificate.verify(cg.Problem(objective, domain)).upper == result.certificate.upper
    assert [row.k for row in result.trace][:4] == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["ncgs", "cgs", "frank-wolfe"])
def test_interrupted_before_the_first_step(method: str) -> None:
    """In the very first call: the start comes back, and its summary is JSON all the same."""
    objective = function(grad=on_call(1, interrupt, CONVEX.grad), L=None)
    result = cg.minimize(objective, SIMPLEX, X0, method=method, on_interrupt="return")
    assert (result.status, result.steps, result.certificate) == ("interrupted", 0, None)
    assert np.array_equal(result.x, X0) and result.fun == CONVEX.value(X0) and len(result.trace) == 0


def test_the_summary_of_a_run_without_a_state_is_json() -> None:
    objective = function(grad=on_call(1, interrupt, CONVEX.grad), L=None)
    json.dumps(cg.minimize(objective, SIMPLEX, X0, on_interrupt="return").summary(), allow_nan=False)


def test_interrupted_by_a_signal(tmp_path: Path) -> None:
    """A real SIGINT to a process in the middle of an endless inner solve."""
    script = tmp_path / "endless.py"
    script.write_text(
        "import signal, numpy as np, condgrad as cg\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background may have it ignored\n"
        "Q = np.diag(np.arange(1.0, 21.0))\n"
        "def lmo(g, calls=[0]):\n"
        "    calls[0] += 1\n"
        "    if calls[0] == 500: print('ready', flush=True)\n"
        "    return cg.Simplex(20).lmo(g)\n"
        "endless = cg.user_set(lmo, 20)\n"
        "never = cg.practical(1e-300, 1e-300)\n"
        "asked = dict(inner=cg.CondG(), schedule=never, stop=cg.Mapping(1e-300), on_interrupt='return')\n"
        "r = cg.minimize(cg.Quadratic(Q), endless, **asked)\n"
        "print(r.status, r.steps, r.counts['lo'], flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=HUNG)
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
        (YES | CLOSE, "converged"),
        (CLOSE & YES, "converged"),
        (YES & CLOSE, "converged"),
        (FAR & YES, None),
        (FAR | YES, "out_of_budget"),
        (CLOSE & cg.Gap(1.0), "converged"),
        (CLOSE & cg.Gap(0.1), None),
        (FAR & CLOSE, None),
        ((CLOSE & cg.Gap(0.1)) | YES, "out_of_budget"),
        ((CLOSE | cg.Gap(0.1)) & YES, "converged"),
        (CLOSE & cg.Gap(1.0) & CLOSE, "converged"),
    ],
)
def test_rules_combine(rule: Any, status: str | None) -> None:
    reason = rule(NOW, cg.Trace())
    assert (reason and reason.status) == status


def test_both_reasons_are_given() -> None:
    reason = (CLOSE & YES)(NOW, cg.Trace())
    assert "squared gradient mapping" in reason.message and "And: The budget of 0 steps" in reason.message


def test_of_two_statuses_the_one_that_says_more_is_told() -> None:
    rows = cg.Trace([a_record(k=0, mapping=0.5)])
    assert (cg.Stagnation(5) & YES)(NOW, rows).status == "out_of_budget"
    assert (cg.Stagnation(5) | YES)(NOW, rows).status == "out_of_budget"
    assert (cg.Stagnation(5) & YES & CLOSE)(NOW, rows).status == "converged"


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
