r"""Boosted Frank-Wolfe: a direction that is better aligned with -grad F than a vertex is (Combettes and Pokutta 2020).

    d_0 = 0,  Lambda = 0;  for k = 0 .. K - 1:
        r_k = -grad F(x) - d_k,  v_k = the vertex with the largest <r_k, v>,  u_k = v_k - x
        if <r_k, -d_k>/|d_k| > <r_k, u_k>: end
        lambda_k = <r_k, u_k>/|u_k|^2,  d_{k+1} = d_k + lambda_k u_k,  and end with d_k if this aligns by less than delta more
        Lambda = Lambda + lambda_k
    g = d/Lambda,  x = x + t g

align(d) = <-grad F(x), d>/(|grad F(x)| |d|), and -1 for d = 0. x + g is a point of the set. v_0 is Frank-Wolfe's vertex, and
g is taken only where its short step promises at least the decrease of the step towards v_0; this is not in the paper. So, with
short steps, C = L diam^2 and F not necessarily convex, a gap of at most eps is found within max(2 h_0/eps, 2 C h_0/eps^2) steps,
as by Frank-Wolfe, with up to K linear minimisations each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple, final

from condgrad.certificate import Certificate
from condgrad.checks import real, whole
from condgrad.points import distance2, inner, norm2
from condgrad.points.rounding import gap_rounding
from condgrad.protocols import Point, Problem, vertex_oracle
from condgrad.solvers.evaluation import cached, grad_at
from condgrad.solvers.frank_wolfe import FrankWolfe, FrankWolfeState, advance, slope
from condgrad.solvers.schedules import Setup
from condgrad.solvers.states import Descent
from condgrad.solvers.step_rules import Rule, check_minimising_rule, rule_of


class Aligned(NamedTuple):
    """g = -x + sum of c_i v_i, with c_i of at least 0 and the sum 1."""

    parts: tuple[tuple[float, Point], ...]
    gap: float
    """-<grad, g>"""
    length2: float
    """|g|^2"""


@final
@dataclass(frozen=True)
class BoostedFrankWolfe:
    """Boosted Frank-Wolfe. The certificate of a step is the Frank-Wolfe gap at the iterate before it, for gamma = 1/(2L).

    Parameters
    ----------
    rule : str, StepRule or callable, default "short"
        "short", "adaptive", "line-search", "golden-section", "secant", or a function ``rule(direction) -> t`` of a
        :class:`condgrad.solvers.Direction`.
    rounds : int, default 10
        K, the maximum number of linear minimisations of a step. With 1 the method is Frank-Wolfe.
    delta : float, default 1e-3
        The improvement of the alignment, between 0 and 1, that a further vertex must bring.
    """

    rule: str | Rule = "short"
    rounds: int = 10
    delta: float = 1e-3

    def __post_init__(self) -> None:
        check_boosted_rule(self.rule, "rule")
        whole(self.rounds, "The rounds of BoostedFrankWolfe")
        check_delta(self.delta, "The delta of BoostedFrankWolfe")

    @property
    def relies_on_smoothness(self) -> bool:
        """Whether the length of a step is computed from L."""
        return rule_of(self.rule).uses_smoothness

    def init(self, problem: Problem, x0: Point) -> FrankWolfeState:
        """Return the initial state at x0."""
        return FrankWolfe(self.rule).init(problem, x0)

    def step(self, problem: Problem, state: FrankWolfeState) -> FrankWolfeState:
        """Return the state after one step."""
        x, L = state.x, state.L
        _, fun, grad = grad_at(cached(problem.objective, state.known), x)
        s = vertex_oracle(problem.domain)(grad)
        gap, rounding = max(slope(grad, x, s), 0.0), gap_rounding(grad, x, s)

        plain = Aligned(((1.0, s),), gap, distance2(s, x))
        g = self.aligned(problem, grad, x, plain)
        if promised(g, L) < promised(plain, L):
            g = plain
        (x_next, fun_next, grad_next), curvature = advance(self.rule, problem, state, grad, -1.0, *g)
        return FrankWolfeState(
            k=state.k + 1,
            x=x_next,
            L=L,
            curvature=curvature,
            certificate=Certificate(x, x, 1 / (2 * L), gap + rounding, noise=rounding),
            descent=Descent(x, grad, x_next if self.relies_on_smoothness else None),
            fun=fun_next,
            grad=grad_next,
            descent_fun=fun,
        )

    def aligned(self, problem: Problem, grad: Point, x: Point, plain: Aligned) -> Aligned:
        """Return the boosted direction g, which begins with the one towards the Frank-Wolfe vertex."""
        steepest, (_, s) = sqrt(norm2(grad)), plain.parts[0]
        if plain.gap <= 0 or plain.length2 <= 0 or steepest <= 0:
            return plain
        lam = plain.gap / plain.length2
        parts, d = [(lam, s)], lam * (s - x)
        Lambda, align = lam, plain.gap / (steepest * sqrt(plain.length2))
        for _ in range(1, self.rounds):
            v = vertex_oracle(problem.domain)(grad + d)
            u = v - x
            falls, length2, turn = -inner(grad, d), norm2(d), -inner(grad, u) - inner(d, u)
            if turn <= 0 or (length2 - falls) / sqrt(length2) > turn:
                break
            lam = turn / norm2(u)
            further = d + lam * u
            better = -inner(grad, further) / (steepest * sqrt(norm2(further)))
            if better - align < self.delta:
                break
            d, align, Lambda = further, better, Lambda + lam
            parts.append((lam, v))
        if len(parts) == 1:
            return plain
        return Aligned(tuple((c / Lambda, v) for c, v in parts), -inner(grad, d) / Lambda, norm2(d) / Lambda**2)


def promised(g: Aligned, L: float) -> float:
    """Return the decrease of F along a direction that L guarantees for the short step."""
    t = min(1.0, g.gap / (L * g.length2)) if g.length2 > 0 else 0.0
    return t * g.gap - t**2 * L * g.length2 / 2


def check_boosted_rule(rule: Any, what: str) -> None:
    """Raise ValueError if ``rule`` does not minimise F or its upper bound along a direction."""
    check_minimising_rule(rule, "rule of boosted Frank-Wolfe")


def check_delta(delta: Any, what: str) -> None:
    """Raise ValueError unless ``delta`` is a number between 0 and 1."""
    if not 0 < real(delta, what) < 1:
        raise ValueError(f"{what} is {delta}, a number between 0 and 1 was expected.")


def boosted_frank_wolfe(
    problem: Problem, setup: Setup, rule: str | Rule = "short", rounds: int = 10, delta: float = 1e-3
) -> BoostedFrankWolfe:
    """Build the method from the options of the registry."""
    return BoostedFrankWolfe(rule, rounds, delta)
