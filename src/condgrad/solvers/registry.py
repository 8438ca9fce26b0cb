"""The registry of methods: one entry here buys the contract tests, a CLI name and a row in the docs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.checks import choice, not_negative, positive, whole, yes_or_no
from condgrad.protocols import Expectation, FiniteSum, Objective, Problem, Projectable, Solver, fits
from condgrad.solvers.accelerated_gradient import accelerated_gradient
from condgrad.solvers.cgs import cgs
from condgrad.solvers.frank_wolfe import check_rule, frank_wolfe
from condgrad.solvers.ncgs import ncgs
from condgrad.solvers.ncgs_ii import ncgs_ii
from condgrad.solvers.ncgs_vr import ncgs_vr
from condgrad.solvers.projected_gradient import projected_gradient
from condgrad.solvers.sagafw import sagafw, sagafw_s
from condgrad.solvers.schedules import Setup
from condgrad.solvers.sfw import sfw
from condgrad.solvers.smoothness import Backtracking
from condgrad.solvers.stochastic_frank_wolfe import random_iterate
from condgrad.solvers.stochastic_ncgs import stochastic_ncgs, stopping_index
from condgrad.solvers.svfw import svfw, svfw_s
from condgrad.solvers.warm_start import WarmStart


@dataclass(frozen=True)
class Method:
    """A row of the registry."""

    name: str
    title: str
    make: Callable[..., Solver]
    """(problem, setup, **options) -> solver"""
    sees: str
    """gradient, terms (of a finite sum) or samples (of an expectation)."""
    assumes: str
    oracles: str
    bound: str
    file: str
    reference: str
    slides: bool = False
    """It solves prox subproblems, so it takes an inner solver."""
    projects: bool = False
    output_law: Callable[[int, np.random.Generator], int] | None = None
    """The paper's random output: how many of N steps to run before reporting."""

    @property
    def deterministic(self) -> bool:
        return self.sees == "gradient"

    @property
    def options(self) -> list[str]:
        return list(inspect.signature(self.make).parameters)[2:]


_NCGS_PAPER = "Qu, Li, Xu 2017"
_REDDI = "Reddi, Sra, Poczos, Smola 2016"

_ENTRIES = (
    Method(
        "ncgs", "NCGS, option I", ncgs, "gradient", "F L-smooth", "FO, LO", "FO 1/eps, LO 1/eps^2",
        "solvers/ncgs.py", f"{_NCGS_PAPER}, Algorithm 1", slides=True,
    ),
    Method(
        "ncgs-ii", "NCGS, option II", ncgs_ii, "gradient", "F L-smooth, l-lower-smooth", "FO, LO", "FO 1/eps, LO 1/eps^2",
        "solvers/ncgs_ii.py", f"{_NCGS_PAPER}, Algorithm 1", slides=True,
    ),
    Method(
        "stochastic-ncgs", "Stochastic NCGS", stochastic_ncgs, "samples", "F L-smooth, variance bounded", "SFO, LO",
        "SFO 1/eps^2, LO 1/eps^2", "solvers/stochastic_ncgs.py", f"{_NCGS_PAPER}, Algorithm 3", slides=True,
        output_law=stopping_index,
    ),
    Method(
        "ncgs-vr", "NCGS-VR", ncgs_vr, "terms", "each term L-smooth", "IFO, LO", "IFO n^(2/3)/eps, LO 1/eps^2",
        "solvers/ncgs_vr.py", f"{_NCGS_PAPER}, Algorithm 4", slides=True, output_law=random_iterate,
    ),
    Method(
        "frank-wolfe", "Frank-Wolfe, non-convex", frank_wolfe, "gradient", "F L-smooth", "FO, LO",
        "FO 1/eps^2, LO 1/eps^2", "solvers/frank_wolfe.py", "Lacoste-Julien 2016",
    ),
    Method(
        "sfw", "SFW", sfw, "samples", "F L-smooth, gradients bounded", "SFO, LO", "SFO 1/eps^4, LO 1/eps^2",
        "solvers/sfw.py", _REDDI, output_law=random_iterate,
    ),
    Method(
        "svfw", "SVFW", svfw, "terms", "each term L-smooth", "IFO, LO", "IFO n + n^(2/3)/eps^2, LO 1/eps^2",
        "solvers/svfw.py", _REDDI, output_law=random_iterate,
    ),
    Method(
        "sagafw", "SAGAFW", sagafw, "terms", "each term L-smooth", "IFO, LO",
        "IFO n + n^(1/3)/eps^2 (claimed), LO 1/eps^2", "solvers/sagafw.py", _REDDI, output_law=random_iterate,
    ),
    Method(
        "svfw-s", "SVFW-S", svfw_s, "samples", "each sample L-smooth, variance bounded", "SFO, LO",
        "SFO 1/eps^(10/3), LO 1/eps^2", "solvers/svfw.py", _REDDI, output_law=random_iterate,
    ),
    Method(
        "sagafw-s", "SAGAFW-S", sagafw_s, "samples", "each sample L-smooth, variance bounded", "SFO, LO",
        "SFO 1/eps^(8/3) (claimed), LO 1/eps^2", "solvers/sagafw.py", _REDDI, output_law=random_iterate,
    ),
    Method(
        "cgs", "Conditional gradient sliding", cgs, "gradient", "F convex, L-smooth (restarts: strongly convex)",
        "FO, LO", "FO 1/sqrt(eps), LO 1/eps in F - F*", "solvers/cgs.py", "Lan, Zhou 2016", slides=True,
    ),
    Method(
        "projected-gradient", "Projected gradient", projected_gradient, "gradient", "F L-smooth, set projects", "FO, PO",
        "FO 1/eps", "solvers/projected_gradient.py", "Goldstein 1964; Levitin, Polyak 1966", projects=True,
    ),
    Method(
        "accelerated-gradient", "Accelerated gradient, non-convex", accelerated_gradient, "gradient",
        "F L-smooth, set projects", "FO, PO", "FO 1/eps", "solvers/accelerated_gradient.py", "Ghadimi, Lan 2016",
        projects=True,
    ),
)  # fmt: skip

METHODS: dict[str, Method] = {method.name: method for method in _ENTRIES}


OPTIONS: dict[str, Callable[[Any, str], Any]] = {
    "batch": whole,
    "epoch": whole,
    "sample": whole,
    "lam": positive,
    "initial_gap": positive,
    "strong_convexity": not_negative,
    "stretch": not_negative,
    "step_scale": positive,
    "rule": lambda rule, what: check_rule(rule),
    "adaptive": yes_or_no,
    "store": yes_or_no,
    "replace": yes_or_no,
}
"""What each option must be; None always means the method's own choice."""


def build(name: str, problem: Problem, setup: Setup, options: dict[str, Any]) -> Solver:
    """The solver called ``name`` for this problem; what it needs and does not find is said in one sentence."""
    method = METHODS[choice(name, METHODS, "method")]
    require(method, problem)
    for option in options:
        if option not in method.options:
            known = ", ".join(method.options) or "none"
            raise TypeError(f"Method '{name}' has no option '{option}': its options are {known}.")
        grows = name == "stochastic-ncgs" and option == "batch" and callable(options[option])
        if options[option] is not None and not grows:
            OPTIONS[option](options[option], f"The option {option}")
    if options.get("replace") is False and not fits(problem.objective, FiniteSum):
        raise TypeError(
            f"replace=False draws terms of a finite sum, {type(problem.objective).__name__} has none: leave it out."
        )
    solver = method.make(problem, setup, **options)
    if setup.warm_start and method.slides:
        solver = WarmStart(solver, setup.warm_start)
    return Backtracking(solver) if problem.objective.smoothness is None else solver


def require(method: Method, problem: Problem) -> None:
    """Refuse a problem that the method cannot see, in a sentence that names both sides and a way out."""
    objective, domain = problem.objective, problem.domain
    contract = {"gradient": Objective, "terms": FiniteSum, "samples": Expectation}
    needed = {"gradient": "value and grad", "terms": "a finite sum", "samples": "samples (draw, grad_terms)"}
    if not fits(objective, contract[method.sees]):
        others = [
            m.name for m in METHODS.values() if fits(objective, contract[m.sees]) and not m.projects and m.name != "cgs"
        ]
        fit = f"use {', '.join(others)}" if others else "see condgrad.Function, FunctionSum and FunctionExpectation"
        raise TypeError(
            f"Method '{method.name}' needs {needed[method.sees]}, {type(objective).__name__} has none: {fit}."
        )
    if method.projects and not fits(domain, Projectable):
        raise TypeError(
            f"Method '{method.name}' projects, {type(domain).__name__} has no projection: use ncgs, which needs only its lmo."
        )
    if method.name == "ncgs-vr" and objective.term_smoothness is None and objective.mean_square_smoothness is None:
        raise ValueError(
            f"Method 'ncgs-vr' needs the terms' smoothness: give term_smoothness= to {type(objective).__name__}."
        )
    if not method.deterministic and not objective.smoothness:
        raise ValueError(
            f"Method '{method.name}' needs the smoothness L, which can't be found by backtracking from noisy gradients: "
            f"give smoothness= to {type(objective).__name__} or to minimize."
        )


def cheapest_for_sum(n_terms: int, eps: float) -> str:
    """Of stochastic NCGS (1/eps^2 term gradients) and NCGS-VR (n^(2/3)/eps) the one with the smaller bound."""
    return "stochastic-ncgs" if 1 / eps**2 < n_terms ** (2 / 3) / eps else "ncgs-vr"
