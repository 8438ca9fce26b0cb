"""The parts of benchmarks.scale: every kernel that a step calls can be timed alone, and the parts of a step are all of it."""

from __future__ import annotations

import pytest
from benchmarks.scale import shares
from benchmarks.scale_measurements import near_steps
from benchmarks.scale_problem import problem

import condgrad as cg


def test_the_kernels_of_a_step_are_timed_alone_and_their_shares_add_up() -> None:
    objective, domain = problem(60, 1500)
    start = cg.minimize(objective, domain, tol=1e-2, progress=False).x
    steps = near_steps(objective, domain, start, steps=2)
    assert len(steps) == 2 and all("welsch" in step["by_kernel"] for step in steps)
    for step in steps:
        assert step["passes"] == pytest.approx(sum(step["by_kernel"].values()))
    *parts, whole = shares(steps)
    assert whole[0] == "the step" and sum(part[1] for part in parts) == pytest.approx(whole[1])
    assert whole[2] == 1.0
