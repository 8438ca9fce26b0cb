"""The logger condgrad: silent by default, and no line is written twice."""

from __future__ import annotations

import itertools
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.completions import problem

import condgrad as cg
from condgrad.data import load
from condgrad.learn import RobustCompletion, RobustLinearRegressor

F = cg.Quadratic(np.diag([1.0, 2.0]), np.ones(2))


def test_a_run_logs_its_end(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="condgrad"):
        result = cg.minimize(F, cg.Simplex(2))
        cg.minimize(F, cg.Simplex(2), progress=False)
    assert [record.levelname for record in caplog.records] == ["INFO", "DEBUG"]
    assert caplog.records[0].name == "condgrad.driver.minimize"
    assert caplog.messages[0] == f"ncgs: {result.status} after {result.steps} steps. {result.message}"


def test_a_file_with_faults_is_a_warning_and_a_clean_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "r.csv"
    with caplog.at_level(logging.INFO, logger="condgrad"):
        for last in ("b,y,2", "b,y,two"):
            path.write_text("user,item,rating\na,x,1\na,y,1\n" + last + "\n")
            load(path)
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert "3 entries from 3 lines" in caplog.messages[0] and "not a number: 1 dropped" in caplog.messages[1]


def test_fits_log_their_rounds_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="condgrad"):
        RobustCompletion().fit(problem(noise=0.1)[1])
        X = np.random.default_rng(0).normal(size=(30, 2))
        RobustLinearRegressor(radius=2.0, sigma=1.0).fit(X, X[:, 0])
    assert any("on held-out entries" in message for message in caplog.messages)
    assert "RobustCompletion: fitted, rank" in caplog.messages[-2]
    assert caplog.messages[-1].startswith("RobustLinearRegressor: converged after")


def test_what_is_logged_is_not_shown_again(
    progress: None,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = itertools.count(step=100.0)
    monkeypatch.setattr("condgrad.runtime.progress.monotonic", lambda: next(clock))
    model, holes = RobustCompletion(verbose=True), problem(noise=0.1)[1]
    model.fit(holes)
    assert "RobustCompletion: " in capsys.readouterr().err and not caplog.records
    with caplog.at_level(logging.INFO, logger="condgrad"):
        model.fit(holes)
    assert capsys.readouterr().err == "" and caplog.records


def test_without_a_set_up_nothing_is_printed() -> None:
    code = (
        "import logging, condgrad as cg, numpy as np\n"
        "assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger('condgrad').handlers)\n"
        "logging.getLogger('condgrad').setLevel(logging.DEBUG)\n"
        "cg.minimize(cg.Quadratic(np.eye(2), np.ones(2)), cg.Simplex(2))\n"
        "logging.getLogger('condgrad').error('nobody has set logging up')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
