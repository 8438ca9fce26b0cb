r"""DCA-FW: Frank-Wolfe for a difference of convex functions, F = f - g (cf. Maskan, Hou, Sra and Yurtsever 2025).

    phi(x) = f(x) - <grad g(a), x>,  with the anchor a, at first x_0
    G = grad F(x) + grad g(x) - grad g(a) = grad phi(x),  s = lmo(G)
    if <G, x - s> <= theta Phi:  a = x,  G = grad F(x),  s = lmo(G),  Phi = <G, x - s>
    x = x + t (s - x),  t = min(1, <G, x - s>/((L + L_g) |s - x|^2))

The convex phi, which majorises F up to a constant and touches it at a, is minimised by Frank-Wolfe to the share theta of its gap
at a; then a moves. Any F that is l-lower-smooth is such a difference with g(x) = l |x|^2/2, the default: phi is then the proximal
subproblem F(x) + l |x - a|^2/2. With C = (L + L_g) diam^2, h_0 = F(x_0) - F* and theta <= 1 a gap of at most eps is found within

    max(2 h_0/(theta eps), 2 C h_0/(theta eps)^2) + 1 steps

(docs/methods/dca.md has the derivation). Where a moves, the certificate is the Frank-Wolfe gap of F at a; elsewhere it is open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, final

from condgrad.certificate import Certificate
from condgrad.checks import positive
from condgrad.points import distance2
from condgrad.points.rounding import gap_rounding
from condgrad.protocols import Point, Problem, vertex_oracle
from condgrad.solvers.evaluation import cached, grad_at
from condgrad.solvers.frank_wolfe import FrankWolfe, FrankWolfeState, advance, slope
from condgrad.solvers.schedules import Setup
from condgrad.solvers.states import Descent
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class DCAState(FrankWolfeState):
    """State of :class:`DCAFrankWolfe`."""

    anchor: Any = None
    """The point at which g is linearised; None before the first step."""
    Phi: float = 0.0
    """The Frank-Wolfe gap of F there."""


@final
@dataclass(frozen=True)
class DCAFrankWolfe:
    """Frank-Wolfe for a difference of convex functions, F = f - g.

    Parameters
    ----------
    concave : object, default None
        g, with ``grad(x)`` and ``smoothness``: an objective of the library, such as ``Quadratic``, or one's own. F + g must be
        convex. Its gradients are not counted. None: l |x|^2/2 with the objective's ``lower_smoothness`` l, or L if it has none.
    share : float, default 0.5
        theta: the convex subproblem is solved to this share of its gap at the anchor. With a huge one the anchor moves in every
        step.
    """

    concave: Any = None
    share: float = 0.5

    def __post_init__(self) -> None:
        check_concave(self.concave, "concave")
        positive(self.share, "The share of DCAFrankWolfe")

    def init(self, problem: Problem, x0: Point) -> DCAState:
        """Return the initial state at x0."""
        return DCAState(**vars(FrankWolfe("short").init(problem, x0)))

    def step(self, problem: Problem, state: DCAState) -> DCAState:
        """Return the state after one step."""
        x, L, a, Phi = state.x, state.L, state.anchor, state.Phi
        _, fun, grad = grad_at(cached(problem.objective, state.known), x)
        lmo = vertex_oracle(problem.domain)

        gap, rounding, G, s, promised = inf, 0.0, grad, None, 0.0
        if a is not None:
            G = grad + self.bend(problem, L, x, a)
            s = lmo(G)
            promised = max(slope(G, x, s), 0.0)
        if a is None or promised <= self.share * Phi:
            a, G, s = x, grad, lmo(grad)
            gap, rounding = max(slope(grad, x, s), 0.0), gap_rounding(grad, x, s)
            promised = Phi = gap

        upper = replace(state, L=L + self.curvature(problem, L))
        (x_next, fun_next, grad_next), _ = advance(
            "short", problem, upper, G, own=-1.0, parts=((1.0, s),), gap=promised, length2=distance2(s, x)
        )
        return DCAState(
            k=state.k + 1,
            x=x_next,
            L=L,
            curvature=state.curvature,
            anchor=a,
            Phi=Phi,
            certificate=Certificate(x, x, 1 / (2 * L), gap + rounding, noise=rounding),
            descent=Descent(x, grad, x_next),
            fun=fun_next,
            grad=grad_next,
            descent_fun=fun,
        )

    def bend(self, problem: Problem, L: float, x: Point, a: Point) -> Point:
        """Return grad g(x) - grad g(a)."""
        if self.concave is None:
            return self.curvature(problem, L) * (x - a)
        return self.concave.grad(x) - self.concave.grad(a)

    def curvature(self, problem: Problem, L: float) -> float:
        """Return L_g, a smoothness of g."""
        if self.concave is not None:
            return float(self.concave.smoothness)
        lower = getattr(problem.objective, "lower_smoothness", None)
        return L if lower is None else float(lower)


def check_concave(concave: Any, what: str) -> None:
    """Raise TypeError if ``concave`` is given and has no gradient or no smoothness."""
    if concave is None:
        return
    if not callable(getattr(concave, "grad", None)) or getattr(concave, "smoothness", None) is None:
        raise TypeError(
            f"{what} is {type(concave).__name__}, which lacks grad(x) or smoothness: give the convex g of F = f - g as an "
            "objective with both, or leave it out for l |x|^2/2."
        )


def dca_frank_wolfe(problem: Problem, setup: Setup, concave: Any = None, share: float | None = None) -> DCAFrankWolfe:
    """Build the method from the options of the registry."""
    return DCAFrankWolfe(concave, 0.5 if share is None else share)
