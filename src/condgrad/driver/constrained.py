"""`minimize_constrained`: minimises a convex function over a set with constraints h_i(x) <= 0, and certifies a lower bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from condgrad.checks import not_negative, positive, real, whole
from condgrad.driver.counting import Counted, Counts
from condgrad.driver.resolve import check_problem, check_start, checked_answers
from condgrad.points import inner
from condgrad.protocols import COUNTERS, Domain, Objective, Point, Problem, missing
from condgrad.solvers.level_conditional_gradient import ConstrainedProblem, LevelConditionalGradient, LevelState
from condgrad.solvers.smoothness import VALUE_NOISE


@dataclass(frozen=True)
class ConstrainedResult:
    """The answer of :func:`minimize_constrained`."""

    x: Point
    fun: float
    """f(x)"""
    infeasibility: float
    """The largest h_i(x), or 0 if all h_i(x) are negative."""
    lower_bound: float
    """Proven lower bound on the minimum of f over the feasible points; infinite if no point is feasible."""
    status: str
    """"converged", "infeasible" or "out_of_budget"."""
    message: str
    steps: int
    witness: Point
    """The point w that proves ``lower_bound`` together with ``multipliers``; see ``verify``."""
    multipliers: tuple[float, ...]
    """The multipliers m_i, one for each constraint; see ``verify``."""
    counts: dict[str, int] = field(default_factory=dict)
    """Number of oracle calls. ``fo`` and ``values`` include the gradients and the values of all constraints."""

    @property
    def gap(self) -> float:
        """f(x) - lower_bound: an upper bound on the difference between f(x) and the minimum.

        f(x) is below the minimum only if x is infeasible.
        """
        return self.fun - self.lower_bound

    def verify(self, objective: Any, domain: Any, constraints: Sequence[Any]) -> float:
        """Compute the lower bound again, from one gradient of each function at the witness and one linear minimisation.

        Parameters
        ----------
        objective, domain, constraints
            The arguments with which :func:`minimize_constrained` was called.

        Returns
        -------
        float
            The bound f(w) + sum_i m_i h_i(w) - max_s <grad f(w) + sum_i m_i grad h_i(w), w - s>, with the witness w and the
            multipliers m. If the status is "infeasible", the terms with f are left out. A positive number then proves that no
            point of the set is feasible.
        """
        w, weights = self.witness, [*self.multipliers]
        parts = list(zip(weights, constraints, strict=True))
        parts += [] if self.status == "infeasible" else [(1.0, objective)]
        slope: Any = sum(weight * part.grad(w) for weight, part in parts)
        value = sum(weight * part.value(w) for weight, part in parts)
        return float(value - inner(slope, w - domain.lmo(slope)))


def minimize_constrained(
    objective: Any,
    domain: Any,
    constraints: Any,
    x0: Point | None = None,
    *,
    tol: float = 1e-2,
    tol_constraints: float | None = None,
    max_steps: int = 100_000,
    lower_bound: float | None = None,
) -> ConstrainedResult:
    """Minimise a convex f over a set subject to h_i(x) <= 0, by the level conditional gradient method.

    No projection, no multipliers and no smoothness constants are needed: each step takes a gradient of f and of each violated
    constraint, and one linear minimisation.

    Parameters
    ----------
    objective : Objective
        f, convex and smooth; an objective of condgrad or any object with ``value`` and ``grad``.
    domain : Domain
        The set.
    constraints : Objective or sequence of Objective
        The functions h_i, convex and smooth.
    x0 : array, default None
        Starting point in the set, which need not be feasible. By default ``domain.start()``.
    tol : float, default 1e-2
        The run ends when f(x) is certified to be at most tol above the minimum and no constraint is violated by more than tol.
    tol_constraints : float, default None
        Maximum violation of a constraint at the end of the run. By default ``tol``.
    max_steps : int, default 100_000
        Maximum number of steps.
    lower_bound : float, default None
        A lower bound on f at all feasible points. By default it is computed from one gradient and one linear minimisation at x0.

    Returns
    -------
    ConstrainedResult
        With the certified ``gap`` and ``infeasibility``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, or if a function states that it is not convex.

    Examples
    --------
    The point of the simplex nearest to (1, 0, 0) whose first entry is at most 0.6:

    >>> import numpy as np, condgrad as cg
    >>> f = cg.Quadratic(np.eye(3), np.array([-1.0, 0.0, 0.0]))
    >>> h = cg.Quadratic(np.zeros((3, 3)), np.array([1.0, 0.0, 0.0]), -0.6)
    >>> result = cg.minimize_constrained(f, cg.Simplex(3), h, tol=1e-3)
    >>> result.status, result.x.round(2), result.infeasibility <= 1e-3
    ('converged', array([0.6, 0.2, 0.2]), True)
    >>> bool(result.lower_bound <= -0.38 <= result.fun + 1e-3)
    True

    References
    ----------
    Cheng, Lan, Masiha and Romeijn, arXiv 2210.05108; docs/methods/level.md.
    """
    constraints = tuple(constraints) if isinstance(constraints, list | tuple) else (constraints,)
    _check(objective, domain, constraints)
    tol = positive(tol, "tol")
    weight = 1.0 if tol_constraints is None else tol / positive(tol_constraints, "tol_constraints")
    bound = None if lower_bound is None else real(lower_bound, "lower_bound")
    whole(max_steps, "max_steps")
    checked = check_problem(Problem(objective, domain))
    objective, domain = checked.objective, checked.domain
    constraints = tuple(check_problem(Problem(h, domain)).objective for h in constraints)
    x0 = domain.start() if x0 is None else check_start(checked, x0)

    counts = Counts()
    functions = map(checked_answers, (objective, *constraints))
    f, S, *hs = (Counted(part, counts, lambda price: None) for part in (next(functions), domain, *functions))
    problem, solver = ConstrainedProblem(f, S, tuple(hs), weight), LevelConditionalGradient(bound)
    state = solver.init(problem, x0)
    while not (done := max(state.residuals) <= tol or state.infeasible) and state.k < max_steps:
        state = solver.step(problem, state)
    _check_level(state, lower_bound)
    status = "infeasible" if state.infeasible else "converged" if done else "out_of_budget"
    return _result(state, weight, status, tol, {name: getattr(counts, name) for name in COUNTERS})


def _check(objective: Any, domain: Any, constraints: tuple[Any, ...]) -> None:
    if missing(domain, Domain):
        raise TypeError(
            f"The set is of type {type(domain).__name__} and has no lmo: give one such as Simplex or user_set."
        )
    if not constraints:
        raise ValueError("There are no constraints: give functions h with h(x) <= 0, or use minimize.")
    for noun, part in [("objective", objective), *(("constraint", h) for h in constraints)]:
        if missing(part, Objective):
            raise TypeError(
                f"The {noun} is of type {type(part).__name__}, an object with value and grad was expected: use condgrad.Function."
            )
        if not_negative(getattr(part, "lower_smoothness", None) or 0.0, "lower_smoothness") > 0:
            raise ValueError(
                f"The {noun} {type(part).__name__} states that it is not convex (lower_smoothness > 0), the level conditional "
                "gradient method needs convex functions: use minimize with a penalty instead."
            )


def _check_level(state: LevelState, given: float | None) -> None:
    """Raise ValueError if f is below its lower bound at a feasible point."""
    fun, *h = state.values
    if max(h) <= 0 and fun < state.level - VALUE_NOISE * (abs(fun) + abs(state.level)):
        why = "lower_bound is too high" if given is not None else "f or a constraint is not convex"
        raise ValueError(
            f"f is {fun:.6g} at a feasible point, below its lower bound {state.level:.6g}: {why}, or a gradient does not match "
            "its function."
        )


def _result(state: LevelState, weight: float, status: str, tol: float, counts: dict[str, int]) -> ConstrainedResult:
    fun, *h = state.values
    violated = max([0.0, *(value / weight for value in h)])
    said = {
        "converged": f"f(x) is at most {max(fun - state.level, 0.0):.3g} above the minimum, and constraints hold up to "
        f"{violated:.3g}.",
        "infeasible": "No point of the set meets the constraints.",
        "out_of_budget": f"After {state.k} steps f(x) is {fun - state.level:.3g} above the lower bound, and constraints are "
        f"violated by up to {violated:.3g}: give more max_steps, or a larger tol than {tol:g}.",
    }
    return ConstrainedResult(
        state.x, fun, violated, state.level, status, said[status], state.k, *state.witness, counts=counts
    )
