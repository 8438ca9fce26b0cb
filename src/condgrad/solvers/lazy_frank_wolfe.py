r"""Lazy Frank-Wolfe: vertices that are known already, in place of a linear minimisation (Braun, Pokutta and Zink 2017).

    v = the best of the known vertices
    if <grad F(x), x - v> >= Phi/K:  s = v
    else:  s = lmo(grad F(x)), which is remembered,  and  if <grad F(x), x - s> < Phi/K:  Phi = min(Phi/2, <grad F(x), x - s>)
    x = x + t (s - x)

Phi begins with the Frank-Wolfe gap of x_0, K is the ``factor``. Unlike in the paper, a step is also taken where Phi falls: its
vertex is at hand. With short steps, K' = max(K, 2), h_0 = F(x_0) - F*, C = L diam^2, and F not necessarily convex, a linear
minimisation finds a gap of at most eps within

    max(2 K' h_0/eps, 2 K'^2 C h_0/eps^2) + log2(gap(x_0)/eps) + 2

steps (docs/methods/lazy.md has the derivation). The certificate of a step with a linear minimisation is the Frank-Wolfe gap at
the iterate before it; other steps have a certificate whose gap is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, final

import numpy as np

from condgrad.certificate import Certificate
from condgrad.checks import positive, whole
from condgrad.points import distance2, inner
from condgrad.points.rounding import gap_rounding
from condgrad.points.stack import Stack
from condgrad.protocols import Point, Problem, vertex_oracle
from condgrad.solvers.evaluation import cached, grad_at
from condgrad.solvers.frank_wolfe import FrankWolfe, FrankWolfeState, advance, slope
from condgrad.solvers.schedules import Setup
from condgrad.solvers.states import Descent
from condgrad.solvers.step_rules import Rule, check_rule, rule_of
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class LazyState(FrankWolfeState):
    """State of :class:`LazyFrankWolfe`."""

    vertices: Stack | None = None
    """Answers of the linear oracle, the oldest first; None before the first one."""
    Phi: float = inf
    """The gap that a known vertex must reach K times over."""


@final
@dataclass(frozen=True)
class LazyFrankWolfe:
    """Frank-Wolfe that takes a known vertex where one is good enough, and calls the linear oracle elsewhere.

    It pays where a linear minimisation costs more than the inner products of the gradient with all known vertices.

    Parameters
    ----------
    rule : str, StepRule or callable, default "short"
        The step rule, as for :class:`FrankWolfe`.
    factor : float, default 2.0
        K, at least 1: a known vertex is taken if it promises at least the share 1/K of the gap Phi.
    cache : int, default 100
        Maximum number of vertices that are remembered; then the oldest one is dropped. With 0 the method is Frank-Wolfe.
    """

    rule: str | Rule = "short"
    factor: float = 2.0
    cache: int = 100

    def __post_init__(self) -> None:
        check_rule(self.rule)
        check_factor(self.factor, "The factor of LazyFrankWolfe")
        whole(self.cache, "The cache of LazyFrankWolfe", least=0)

    @property
    def relies_on_smoothness(self) -> bool:
        """Whether the length of a step is computed from L."""
        return rule_of(self.rule).uses_smoothness

    def init(self, problem: Problem, x0: Point) -> LazyState:
        """Return the initial state at x0."""
        first = FrankWolfe(self.rule).init(problem, x0)
        return LazyState(x=first.x, L=first.L, curvature=first.curvature, fun=first.fun, grad=first.grad)

    def step(self, problem: Problem, state: LazyState) -> LazyState:
        """Return the state after one step."""
        x, L, Phi, vertices = state.x, state.L, state.Phi, state.vertices
        _, fun, grad = grad_at(cached(problem.objective, state.known), x)

        v, promised = best_of(vertices, grad, x)
        gap, rounding = inf, 0.0
        if promised > 0 and promised >= Phi / self.factor:
            s = v
        else:
            s = vertex_oracle(problem.domain)(grad)
            gap, rounding = max(slope(grad, x, s), 0.0), gap_rounding(grad, x, s)
            if gap > promised and self.cache:
                vertices = remembered(vertices, s, self.cache)
            promised = gap
            Phi = gap if Phi == inf else min(Phi / 2, gap) if gap < Phi / self.factor else Phi

        (x_next, fun_next, grad_next), curvature = advance(
            self.rule, problem, state, grad, own=-1.0, parts=((1.0, s),), gap=promised, length2=distance2(s, x)
        )
        return LazyState(
            k=state.k + 1,
            x=x_next,
            L=L,
            curvature=curvature,
            vertices=vertices,
            Phi=Phi,
            certificate=Certificate(x, x, 1 / (2 * L), gap + rounding, noise=rounding),
            descent=Descent(x, grad, x_next if self.relies_on_smoothness else None),
            fun=fun_next,
            grad=grad_next,
            descent_fun=fun,
        )


def check_factor(factor: Any, what: str) -> None:
    """Raise ValueError unless ``factor`` is a number of at least 1."""
    if positive(factor, what) < 1:
        raise ValueError(
            f"{what} is {factor}, a number of at least 1 was expected: with cache=0 every vertex is asked for."
        )


def best_of(vertices: Stack | None, grad: Point, x: Point) -> tuple[Any, float]:
    """Return the known vertex v with the largest <grad, x - v>, and this number; None and minus infinity if none is known."""
    if vertices is None:
        return None, -inf
    products = vertices.products(grad)
    best = int(np.argmin(products))
    return vertices[best], inner(grad, x) - float(products[best])


def remembered(vertices: Stack | None, s: Point, limit: int) -> Stack:
    """Return the vertices with one more, without the oldest if they are more than ``limit``."""
    if vertices is None:
        return Stack.of(s)
    more = vertices.with_points([s])
    return more if len(more) <= limit else more.kept(np.arange(1, len(more)))


def lazy_frank_wolfe(
    problem: Problem, setup: Setup, rule: str | Rule = "short", factor: float | None = None, cache: int | None = None
) -> LazyFrankWolfe:
    """Build the method from the options of the registry."""
    return LazyFrankWolfe(rule, 2.0 if factor is None else factor, 100 if cache is None else cache)
