"""Every method of the registry, cut and resumed, goes on bit for bit: iterates, counts, trace, answer."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path

import numpy as np
import pytest
from tests.resuming import Walk

import condgrad as cg
from condgrad.driver.checkpoint import MOVES
from condgrad.driver.run import _Run
from condgrad.solvers import METHODS

STEPS, CUTS = 7, (1, 4)
INNERS = {
    "completion": {"condg": cg.CondG(3), "corrective": cg.Corrective(3), "spectral": "spectral"},
    "linear-model": {"condg": cg.CondG(3), "corrective": cg.Corrective(3), "exact": "exact"},
}
WALKS = [
    pytest.param(
        *(method.name, problem, schedule, inner),
        id=f"{method.name}-{problem}-{schedule}-{name}",
        marks=[pytest.mark.slow] if (problem, schedule) == ("completion", "theory") and inner != "spectral" else [],
    )
    for method in METHODS.values()
    for problem in INNERS
    for schedule in ("practical", "theory")
    for name, inner in (INNERS[problem].items() if method.slides else [("", "auto")])
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
        {"method": "ncgs-vr", "store": True, "epoch": 3, "replace": False},
        {"method": "stochastic-ncgs", "output": "random", "batch": 5},
        {"method": "svfw", "stop": cg.Calls(700, "ifo") | cg.Gap(1e-9)},
    ],
    ids=str,
)
@pytest.mark.parametrize("problem", INNERS)
def test_whatever_is_asked(problem, asked, tmp_path):
    walked(tmp_path, problem, **{"max_steps": STEPS, "tol": 1e-12, "warm_start": None, **asked})


def walked(folder: Path, problem: str, **asked) -> None:
    whole = Walk(problem, **asked)
    saved = Walk(problem, folder / "c", CUTS, **asked)
    saved.same_as(whole)
    assert len(saved.iterates) == len(whole.iterates)
    cuts = [k for k in CUTS if (folder / f"c-{k}").exists()]
    assert cuts or len(whole.iterates) <= 2
    for k in cuts:
        resumed = Walk(problem, folder / f"c-{k}", resume=True, **asked)
        assert len(resumed.iterates) == len(whole.iterates) - k - 1
        resumed.same_as(whole)


CHILD = """
import sys, numpy as np
from pathlib import Path
from tests.resuming import Walk
walk = Walk("completion", Path(sys.argv[1]), resume=True, method=sys.argv[2], max_steps=7, tol=1e-12)
sys.stdout.buffer.write(b"".join(walk.iterates) + np.asarray(walk.result.x).tobytes())
"""


@pytest.mark.parametrize("method", ["ncgs", "ncgs-vr"])
def test_in_another_process(method, tmp_path):
    whole = Walk("completion", tmp_path / "c", (4,), method=method, max_steps=STEPS, tol=1e-12)
    said = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "c-4"), method],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert said.stdout == b"".join(whole.iterates[5:]) + np.asarray(whole.result.x).tobytes()


def test_all_that_moves_is_saved():
    """A new field of a run that moves must be saved, or be named here."""
    moving = {f.name for f in fields(_Run) if f.default is not MISSING or f.default_factory is not MISSING}
    assert moving - set(MOVES) == {"next_beat", "watch", "counts", "trace", "saving"}
