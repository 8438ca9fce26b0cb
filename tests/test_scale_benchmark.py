"""The parts of benchmarks.scale: each kernel of a gradient and a pass is timed alone, and the parts of a step are all of it."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.scale import shares
from benchmarks.scale_measurements import Alone, Log
from benchmarks.scale_problem import problem

import condgrad as cg


def test_every_kernel_of_a_gradient_and_a_pass_is_timed_alone() -> None:
    objective, _ = problem(300, 30_000)  # compiled from 20,000 entries on
    with Log() as log:
        grad = objective.grad(cg.LowRank(np.ones((300, 2)), np.ones((300, 2))))
        grad.T @ (grad @ np.ones((300, 3)))
    calls = set(log.calls)
    assert calls == {("sample", 2), ("welsch", 0), ("times", 3), ("transposed_times", 3)}
    alone = Alone(objective)
    assert all(alone(*call, repeats=1) > 0 for call in calls)


def test_the_parts_of_a_step_add_up() -> None:
    steps = [
        {"seconds": 2.0, "by_kernel": {"times": 1.0}},
        {"seconds": 4.0, "by_kernel": {"times": 2.0, "sample": 1.0}},
    ]
    found = {name: (seconds, share) for name, seconds, share in shares(steps)}
    assert found["the step"] == (3.0, 1.0)
    assert found["times"] == (1.5, 0.5) and found["sample"][0] == 0.5
    assert found["all else"][0] == pytest.approx(1.0)
