"""The bounds of the methods that the paper compares with, on problems with known minima."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from tests.minima import (
    NONCONVEX,
    Known,
    least_on_box,
    least_on_simplex,
)

import condgrad as cg
from condgrad.solvers import CGS, FrankWolfe

# ------------------------------------------------------------------------------------------------------- the baselines


def convex_box() -> Known:
    q, b = np.array([50.0, 1.0, 0.1, 20.0]), np.array([-10.0, 0.5, -1.0, 30.0])
    return Known(
        cg.Quadratic(np.diag(q), b),
        cg.Box(-np.ones(4), np.ones(4)),
        np.array([1.0, 1.0, -1.0, 1.0]),
        least_on_box(q, b, -np.ones(4), np.ones(4)),
    )


def convex_simplex() -> Known:
    A = np.random.default_rng(17).standard_normal((5, 5))
    objective = cg.Quadratic(10 * A @ A.T + 0.5 * np.eye(5), np.random.default_rng(18).standard_normal(5))
    return Known(objective, cg.Simplex(5), max(np.eye(5), key=objective.value), least_on_simplex(objective))


def convex_ball() -> Known:
    """With its minimum inside the ball."""
    A = np.random.default_rng(19).standard_normal((4, 4))
    Q, argmin = A @ A.T + 0.1 * np.eye(4), np.array([0.5, -0.3, 0.2, 0.4])
    return Known(cg.Quadratic(Q, -Q @ argmin), cg.L2Ball(4), np.array([0.0, 0.0, -1.0, 0.0]), argmin)


CONVEX = [convex_box, convex_simplex, convex_ball]


@pytest.mark.parametrize("make", CONVEX)
def test_cgs(make: Any) -> None:
    """Lan and Zhou: F(y_k) - F* <= 15 L D^2 / (2 (k+1)(k+2)) for every k."""
    known = make()
    L, D, steps = known.objective.smoothness, known.domain.diameter, 60
    least = known.objective.value(known.argmin)
    states = known.states(CGS(cg.theory(steps), cg.CondG()), steps)
    for state in states[1:]:
        k = state.k
        assert -1e-9 <= known.objective.value(state.x) - least <= 15 * L * D**2 / (2 * (k + 1) * (k + 2))
    assert known.h0 > 15 * L * D**2 / (2 * (steps + 1) * (steps + 2))


@pytest.mark.parametrize("make", CONVEX)
@pytest.mark.parametrize("told", [True, False])
def test_cgs_with_restarts(make: Any, told: bool) -> None:
    """F(y) - F* <= delta_0 2^(-s) after phase s, with delta_0 given or taken from the Frank-Wolfe gap."""
    known = make()
    L, mu = known.objective.smoothness, float(np.linalg.eigvalsh(known.objective.Q)[0])
    least, N = known.objective.value(known.argmin), int(np.ceil(2 * sqrt(6 * L / mu)))
    phases = 6 if mu > 0.3 else 3
    states = known.states(CGS(cg.theory(1), cg.CondG(), mu, known.h0 if told else None), phases * N)
    delta = states[0].first_gap
    assert delta == known.h0 if told else delta >= known.h0
    for s in range(1, phases + 1):
        assert states[s * N].restart == s
        assert known.objective.value(states[s * N].x) - least <= delta * 2.0**-s
    assert states[-1].k == phases * N


@pytest.mark.parametrize("make", NONCONVEX + CONVEX)
def test_frank_wolfe(make: Any) -> None:
    """Lacoste-Julien: the best gap of x_0 .. x_k is at most max(2 h_0, C) / sqrt(k + 1), with C = L D^2."""
    known = make()
    C, h0 = known.objective.smoothness * known.domain.diameter**2, known.h0
    best = np.inf
    for state in known.states(FrankWolfe("bounded"), 150)[1:]:
        x = state.certificate.x
        grad = known.objective.grad(x)
        gap = float(np.sum(grad * (x - known.domain.lmo(grad))))
        assert gap == pytest.approx(state.certificate.gap, abs=1e-12) and gap >= -1e-12
        best = min(best, gap)
        assert best <= max(2 * h0, C) / sqrt(state.k)
    assert best < cg.driver.wolfe_gap(known.problem, known.x0)


def test_the_line_search_of_frank_wolfe_reaches_the_end_of_a_segment() -> None:
    """The bounded search ends within 1e-8 of t = 1, where this linear function is least: the vertex itself is tried too."""
    linear = cg.Quadratic(np.zeros((3, 3)), np.array([1.0, 2.0, 3.0]))
    result = cg.minimize(
        linear,
        cg.Simplex(3),
        np.full(3, 1 / 3),
        method="frank-wolfe",
        rule="line-search",
        tol=1e-30,
        max_steps=1,
        output="last",
    )
    assert np.array_equal(result.x, [1.0, 0.0, 0.0])
