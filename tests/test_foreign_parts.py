"""Own classes that do what they must not: write into their arguments, change a state in place, leave out what is asked late."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.solvers.states import State

TARGET = np.array([0.5, 0.4, 0.1, -0.3])


class Distance:
    def value(self, x: np.ndarray) -> float:
        return float((x - TARGET) @ (x - TARGET)) / 2

    def grad(self, x: np.ndarray) -> np.ndarray:
        return x - TARGET


class Overwriting:
    """The simplex, by a linear oracle that centres its argument in place."""

    shape = (4,)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        g -= g.mean()
        return np.eye(4)[np.argmin(g)]


@pytest.mark.parametrize("method", ["ncgs", "frank-wolfe", "cgs"])
def test_no_oracle_writes_into_its_argument(method: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        cg.minimize(Distance(), Overwriting(), method=method, max_steps=50)


@pytest.mark.filterwarnings("ignore::condgrad.SmoothnessWarning")
@pytest.mark.parametrize("L", [1e-9, 1e-7, 1e-6])
@pytest.mark.parametrize("x0", [None, np.array([0.0, 0.0, 1.0]), np.full(3, 1 / 3)], ids=["start", "vertex", "middle"])
def test_a_tiny_smoothness_is_refuted_where_the_prox_point_equals_the_point(L: float, x0: Any) -> None:
    """The prox point was another array with the same numbers: its gradient told nothing of L."""
    F = cg.Function(value=lambda x: float(x @ (H * x) / 2 + B @ x), grad=lambda x: H * x + B, shape=3, smoothness=L)
    result = cg.minimize(F, cg.user_set(lambda g: np.eye(3)[np.argmin(g)], 3), x0, tol=1e-4, max_steps=50)
    assert result.status != "converged" or result.fun < -3.52


H, B = np.array([1.0, 10.0, 100.0]), np.array([-1.0, -5.0, -20.0])


@dataclass
class Moving:
    k: int
    x: np.ndarray
    L: float = 1.0
    certificate: Any = None
    descent: Any = None


class InPlace:
    """A method whose step changes the state that it was given."""

    def init(self, problem: cg.Problem, x0: np.ndarray) -> Moving:
        return Moving(0, x0)

    def step(self, problem: cg.Problem, state: Moving) -> Moving:
        state.x = 0.9 * state.x + 0.1 * problem.domain.lmo(problem.objective.grad(state.x))
        state.k += 1
        return state


def test_a_state_that_is_changed_in_place_is_refused() -> None:
    """The run went on for ever: no step was seen."""
    with pytest.raises(TypeError, match=r"InPlace\.step changes its state in place: return a new state"):
        cg.minimize(Distance(), cg.Simplex(4), method=InPlace(), smoothness=1.0, max_steps=7)


@cg.stored
@dataclass(frozen=True, kw_only=True)
class Laden(State):
    load: Any = None


class NotStored:
    pass


class LateLoad:
    """Frank-Wolfe whose state gets an object that can't be stored in its third step."""

    def init(self, problem: cg.Problem, x0: np.ndarray) -> Laden:
        return Laden(k=0, x=x0, L=1.0)

    def step(self, problem: cg.Problem, state: Laden) -> Laden:
        x = state.x + 2 / (state.k + 3) * (problem.domain.lmo(problem.objective.grad(state.x)) - state.x)
        return replace(state, k=state.k + 1, x=x, load=NotStored() if state.k >= 2 else None)


def test_what_can_not_be_stored_later_costs_a_warning_and_not_the_run(tmp_path: Path) -> None:
    saving = {"checkpoint": cg.Checkpoint(tmp_path / "c", steps=1), "smoothness": 1.0}
    with pytest.warns(cg.CheckpointWarning, match="NotStored"):
        result = cg.minimize(Distance(), cg.Simplex(4), method=LateLoad(), max_steps=6, **saving)
    assert result.steps == 6 and any("NotStored" in sentence for sentence in result.warnings)


def test_a_textbook_projection_and_a_contains_without_default_pass() -> None:
    class Simplex:
        shape = (6,)

        def lmo(self, g: np.ndarray) -> np.ndarray:
            return np.eye(6)[np.argmin(g)]

        def contains(self, x: np.ndarray, tolerance: float) -> bool:
            return bool(np.all(x >= -tolerance) and abs(x.sum() - 1) <= tolerance)

        def project(self, x: np.ndarray) -> np.ndarray:
            u = np.sort(x)[::-1]
            c = np.cumsum(u) - 1
            rho = np.flatnonzero(u * np.arange(1, 7) > c)[-1]
            return np.maximum(x - c[rho] / (rho + 1), 0)

    for seed in range(4):
        report = cg.testing.check_domain(Simplex(), sample=lambda domain, rng: rng.dirichlet(np.ones(6)), seed=seed)
        assert not report.failures, report


def test_a_set_that_wraps_another_is_asked_by_its_own_lmo() -> None:
    """It passes `atom` on with all other attributes: its own `lmo` was never called."""

    class Wrapper:
        def __init__(self, domain: Any):
            self.domain, self.asked = domain, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.domain, name)

        def lmo(self, direction: np.ndarray) -> np.ndarray:
            self.asked += 1
            return self.domain.lmo(direction)

    wrapper = Wrapper(cg.Simplex(4))
    result = cg.minimize(cg.Quadratic(np.eye(4)), wrapper, method="pairwise", stop=cg.Steps(5))
    assert wrapper.asked >= result.counts["lo"] > 0
