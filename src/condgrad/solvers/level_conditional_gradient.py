r"""Level conditional gradient: convex f over a set, subject to convex constraints h_i(x) <= 0 (cf. arXiv 2210.05108).

    a = max(f(x) - l, 0),  c_i = max(h_i(x), 0),  R^2 = a^2 + sum c_i^2                  l: a lower bound on the minimum
    g = a grad f(x) + sum c_i grad h_i(x),  s = lmo(g),  gap = <g, x - s>
    if a > 0 and gap <= R^2/4:  l = l + (R^2 - gap)/a,  which is a lower bound again
    if a = 0 and gap <= 3/4 R^2:  no point of the set is feasible
    else                        x = x + t (s - x), a step that decreases P = R^2/2

t = min(1, gap/(M |s - x|^2)), with M doubled until P falls as a curvature of M promises. R never grows. R <= eps means that
f(x) <= f* + eps and h_i(x) <= eps, and both are certified: by the values, and by l, whose witness is a point with multipliers
c_i/a. It takes at most 16 M D^2/eps^2 + 8 log(R_0/eps) steps and of the order of log(1/eps) changes of the level, M at most twice
the smoothness of P. docs/methods/level.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, NamedTuple, final

from condgrad.checks import BadOracle
from condgrad.points import distance2, inner, norm2
from condgrad.points.rounding import gap_rounding, sum_rounding
from condgrad.protocols import Point
from condgrad.solvers.smoothness import MAX_DOUBLINGS, VALUE_NOISE

LEVEL_SHARE = 1 / 4
"""The level is raised where the gap is at most this share of R^2; the proof needs one below 1/2."""
WRONG_ORACLE = 1e-9
"""An answer of lmo that is worse than the point by more than this, relative to the size of both, shows an error."""
DECAY = 0.9
"""Factor of M after a step, so that it can fall again."""


class ConstrainedProblem(NamedTuple):
    """Minimise ``objective`` over ``domain`` subject to h(x) <= 0 for every h of ``constraints``, each times its weight."""

    objective: Any
    domain: Any
    constraints: tuple[Any, ...]
    weight: float = 1.0
    """Factor of all constraints: the tolerance of f over that of the constraints."""

    def values(self, x: Point) -> tuple[float, ...]:
        """Return f(x) and the weighted constraints at x."""
        return self.objective.value(x), *(self.weight * h.value(x) for h in self.constraints)


class Witness(NamedTuple):
    """A point x with multipliers, from which the level follows: f(x) + sum_i m_i h_i(x) - max_s <its gradient, x - s>."""

    x: Point
    multipliers: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class LevelState:
    """State of :class:`LevelConditionalGradient`."""

    k: int = 0
    x: Point
    level: float
    """Lower bound on the minimum of f over the feasible points."""
    values: tuple[float, ...]
    """f(x) and the weighted constraints."""
    witness: Witness
    M: float = 0.0
    infeasible: bool = False
    """Whether the last step has proven that no point is feasible."""

    @property
    def residuals(self) -> tuple[float, ...]:
        """a and the c_i."""
        fun, *h = self.values
        return max(fun - self.level, 0.0), *(max(value, 0.0) for value in h)


@final
@dataclass(frozen=True)
class LevelConditionalGradient:
    """Level conditional gradient. ``lower_bound`` is the first level. None: f(x_0) minus its Frank-Wolfe gap."""

    lower_bound: float | None = None

    def init(self, problem: ConstrainedProblem, x0: Point) -> LevelState:
        """Return the initial state at x0."""
        values, level = problem.values(x0), -inf if self.lower_bound is None else self.lower_bound
        if self.lower_bound is None:
            grad = problem.objective.grad(x0)
            level = values[0] - upper_gap(grad, x0, problem.domain.lmo(grad), [values[0]], [grad])[0]
        witness = Witness(x0, (0.0,) * len(problem.constraints))
        return LevelState(x=x0, level=level, values=values, witness=witness)

    def step(self, problem: ConstrainedProblem, state: LevelState) -> LevelState:
        """Return the state after one step, which raises the level or decreases R."""
        x, (a, *c) = state.x, state.residuals
        R2 = a**2 + sum(value**2 for value in c)
        parts = [
            (a, problem.objective),
            *((problem.weight * c_i, h) for c_i, h in zip(c, problem.constraints, strict=True)),
        ]
        grads = [weight * part.grad(x) for weight, part in parts if weight > 0]
        g = sum(grads[1:], grads[0])
        s = problem.domain.lmo(g)
        weighted = [a * state.values[0], *(c_i * value for c_i, value in zip(c, state.values[1:], strict=True))]
        gap, noise = upper_gap(g, x, s, weighted, grads)

        if a > 0 and gap <= LEVEL_SHARE * R2:
            multipliers = tuple(problem.weight * c_i / a for c_i in c)
            return replace(state, k=state.k + 1, level=state.level + (R2 - gap) / a, witness=Witness(x, multipliers))
        if a == 0 and gap < (1 - LEVEL_SHARE) * R2:
            multipliers = tuple(problem.weight * c_i for c_i in c)
            return replace(state, k=state.k + 1, level=inf, witness=Witness(x, multipliers), infeasible=True)
        slope, length2 = gap - noise, distance2(s, x)
        if slope <= 0.0 or length2 == 0.0:  # rounding errors are all that is left
            return replace(state, k=state.k + 1)
        M = state.M or slope / length2
        for _ in range(MAX_DOUBLINGS):
            t = min(1.0, slope / (M * length2))
            x_next = x + t * (s - x)
            after = replace(state, k=state.k + 1, x=x_next, values=problem.values(x_next), M=DECAY * M)
            P_next = sum(value**2 for value in after.residuals) / 2
            if P_next <= R2 / 2 - t * slope + M / 2 * t**2 * length2 + VALUE_NOISE * R2 + noise:
                return after
            M = 2 * M
        raise BadOracle(
            "The squared residuals rise along a descent direction of their gradient, however short the step: the gradient of the "
            "objective or of a constraint does not match its value, or is not continuous there."
        )


def upper_gap(g: Point, x: Point, s: Point, values: Sequence[float], grads: Sequence[Point]) -> tuple[float, float]:
    """Return <g, x - s> with the rounding errors that a bound from it has, and these errors.

    Those of the values are a few units of their size and of |grad| |x|, as the terms of a value may cancel.
    """
    sizes = sqrt(norm2(x)) + sqrt(norm2(s))
    terms = sum(map(abs, values)) + 2 * sizes * sum(sqrt(norm2(grad)) for grad in grads)
    noise = gap_rounding(g, x, s) + sum_rounding(g) * terms
    gap = inner(g, x - s)
    if gap < -noise - WRONG_ORACLE * sqrt(norm2(g)) * sizes:
        raise BadOracle(
            f"The answer of lmo is worse than a point of the set, by {-gap:.3g}: check that it minimises <g, v> over the set, "
            "and that x0 is in the set."
        )
    return max(gap, 0.0) + noise, noise
