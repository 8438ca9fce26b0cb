"""Every method of the registry, cut and resumed, goes on bit for bit: iterates, counts, trace, answer."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from tests.resuming import Walk

import condgrad as cg
from condgrad.certificate import Certificate
from condgrad.driver.checkpoint import SAVED
from condgrad.driver.reached import Reached
from condgrad.solvers import METHODS

STEPS, CUTS = 6, (1, 3)
INNERS = {
    "completion": {"condg": cg.CondG(3), "corrective": cg.Corrective(3), "spectral": "spectral"},
    "linear-model": {"condg": cg.CondG(3), "corrective": cg.Corrective(3), "exact": "exact"},
}
WALKS = [
    pytest.param(
        *(method.name, problem, schedule, inner),
        id=f"{method.name}-{problem}-{schedule}-{name}",
        marks=[] if problem == "linear-model" or quick else [pytest.mark.slow],
    )
    for method in METHODS.values()
    for problem in INNERS
    for schedule in ("practical", "theory")
    for name, inner in (INNERS[problem].items() if method.slides else [("", "auto")])
    # on low-rank points: with the spectral solver, and the schedule matters for methods that slide alone
    for quick in [
        name == "spectral" or (schedule == "practical" and (not method.slides or method.name in ("ncgs", "ncgs-vr")))
    ]
]


@pytest.mark.parametrize(("method", "problem", "schedule", "inner"), WALKS)
def test_a_resumed_run_is_the_same_run(method, problem, schedule, inner, tmp_path):
    walked(tmp_path, problem, method=method, schedule=schedule, inner=inner, max_steps=STEPS, tol=1e-12)


@pytest.mark.parametrize(
    "asked",
    [
        {"method": "ncgs", "smoothness": "estimate"},
        {"method": "cgs", "smoothness": "estimate", "inner": cg.Corrective(3)},
        {"method": "frank-wolfe", "rule": "adaptive", "every": 3},
        {"method": "frank-wolfe", "rule": "line-search", "measure": True},
        {"method": "frank-wolfe", "stop": cg.Gap(1e-9) | cg.Steps(9)},
        {"method": "ncgs", "output": "last", "adaptive": False},
        {"method": "ncgs-ii", "output": "lowest"},
        {"method": "frank-wolfe", "output": "lowest", "every": 2},
        {"method": "ncgs-vr", "store": True, "epoch": 3, "replace": False},
        {"method": "stochastic-ncgs", "output": "random", "batch": 5},
        {"method": "svfw", "stop": cg.Calls(700, "ifo") | cg.Gap(1e-9)},
    ],
    ids=str,
)
@pytest.mark.parametrize("problem", INNERS)
def test_whatever_is_asked(problem, asked, tmp_path):
    walked(tmp_path, problem, **{"max_steps": STEPS, "tol": 1e-12, "warm_start": None, **asked})


def walked(folder: Path, problem: str, cuts: tuple[int, ...] = CUTS, **asked) -> Walk:
    whole = Walk(problem, **asked)
    saved = Walk(problem, folder / "c", cuts, **asked)
    saved.same_as(whole)
    assert len(saved.iterates) == len(whole.iterates)
    there = [k for k in cuts if (folder / f"c-{k}").exists()]
    assert there or len(whole.iterates) <= 2
    for k in there:
        resumed = Walk(problem, folder / f"c-{k}", resume=True, **asked)
        assert resumed.steps == whole.steps[whole.steps.index(k) + 1 :]
        resumed.same_as(whole)
    return whole


LATE = {"problem": "linear-model", "cuts": (24,), "max_steps": 30}
"""Measures and checks are ever further apart: after step 24 the next ones are due in step 27."""


def test_measures_are_due_on_the_same_steps(tmp_path):
    whole = walked(tmp_path, method="cgs", tol=1e-30, **LATE)
    measured = [row.k for row in whole.result.trace if row.mapping == row.mapping]
    assert measured[-3:] == [24, 27, 30]


def test_gaps_are_due_on_the_same_steps(tmp_path):
    never = cg.Gap(1e-30) | cg.Mapping(1e-30)
    whole = walked(tmp_path, method="ncgs", adaptive=False, stop=never | cg.Steps(30), **LATE)
    assert [row.k for row in whole.result.trace if row.gap == row.gap][-3:] == [24, 27, 30]


def test_claims_are_checked_on_the_same_steps(tmp_path, monkeypatch):
    """No check confirms what is claimed. The budget ends before the next one is due: the result speaks of that before the cut."""
    honest, checked = Certificate.verify, []

    def harsher(self, problem):
        checked.append(1)
        return replace(honest(self, problem), gap=1e6)

    monkeypatch.setattr(Certificate, "verify", harsher)
    asked = {"method": "ncgs", "adaptive": False, "tol": 1.0, "max_steps": 26}
    whole = Walk("linear-model", tmp_path / "c", (24,), **asked)
    assert whole.result.status == "unverified" and len(checked) > 10
    checked.clear()
    Walk("linear-model", tmp_path / "c-24", resume=True, **asked).same_as(whole)
    assert len(checked) == 1, "that of what is returned"


def test_what_was_noticed_is_still_said(tmp_path):
    """The steepest curvature was seen before the cut."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cg.SmoothnessWarning)
        whole = walked(tmp_path, "linear-model", method="ncgs", smoothness=0.05, max_steps=STEPS)
    assert "is too small" in whole.result.warnings[0]


def test_what_has_converged_is_the_same_once_more(tmp_path):
    whole = Walk("linear-model", tmp_path / "c", method="ncgs", tol=1e-2)
    again = Walk("linear-model", tmp_path / "c", resume=True, method="ncgs", tol=1e-2)
    assert whole.result.status == "converged" and not again.iterates
    again.same_as(whole)


CHILD = """
import sys, numpy as np
from pathlib import Path
from tests.resuming import Walk
walk = Walk("completion", Path(sys.argv[1]), resume=True, method=sys.argv[2], max_steps=6, tol=1e-12)
sys.stdout.buffer.write(b"".join(walk.iterates) + np.asarray(walk.result.x).tobytes())
"""


@pytest.mark.parametrize("method", ["ncgs", "ncgs-vr"])
def test_in_another_process(method, tmp_path):
    whole = Walk("completion", tmp_path / "c", (2,), method=method, max_steps=STEPS, tol=1e-12)
    assert whole.steps[-1] > 2, "no step after the cut"
    said = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "c-2"), method],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert said.stdout == b"".join(whole.iterates[whole.steps.index(2) + 1 :]) + np.asarray(whole.result.x).tobytes()


def test_all_that_was_reached_is_saved():
    """As it is, or, for these three, as numbers and columns."""
    assert {field.name for field in fields(Reached)} - set(SAVED) == {"watch", "counts", "trace"}
