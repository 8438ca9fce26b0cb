"""The registry of methods: one entry here gives a method the contract checks, a name for minimize, specs and listings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from condgrad.checks import choice, not_negative, positive, whole, yes_or_no
from condgrad.estimators import check_estimator
from condgrad.estimators.clipped import LEVEL_SAMPLES
from condgrad.protocols import Expectation, FiniteSum, Objective, Problem, Projectable, Solver, fits
from condgrad.solvers.acc_szofw import acc_szofw, acc_szofw_star
from condgrad.solvers.accelerated_gradient import accelerated_gradient
from condgrad.solvers.active_steps import check_active_rule
from condgrad.solvers.away_step import away_step
from condgrad.solvers.blended_pairwise import blended_pairwise
from condgrad.solvers.boosted_frank_wolfe import boosted_frank_wolfe, check_boosted_rule, check_delta
from condgrad.solvers.boosted_sfw import boosted_sfw
from condgrad.solvers.cgs import cgs
from condgrad.solvers.clipped_sfw import check_level, check_tail, clipped_sfw
from condgrad.solvers.dca_frank_wolfe import check_concave, dca_frank_wolfe
from condgrad.solvers.face import OnFaces, on_faces
from condgrad.solvers.frank_wolfe import frank_wolfe
from condgrad.solvers.fully_corrective import fully_corrective
from condgrad.solvers.igt_sfw import igt_sfw
from condgrad.solvers.lazy_frank_wolfe import check_factor, lazy_frank_wolfe
from condgrad.solvers.momentum_ncgs import MomentumNCGS, momentum_ncgs
from condgrad.solvers.momentum_sfw import momentum_sfw, one_sample_sfw
from condgrad.solvers.ncgs import NCGS, ncgs
from condgrad.solvers.ncgs_ii import ncgs_ii
from condgrad.solvers.ncgs_spider import ncgs_spider
from condgrad.solvers.ncgs_vr import ncgs_vr
from condgrad.solvers.pairwise import pairwise
from condgrad.solvers.parameter_free_frank_wolfe import parameter_free_frank_wolfe
from condgrad.solvers.polish import Polished
from condgrad.solvers.projected_gradient import projected_gradient
from condgrad.solvers.sagafw import sagafw, sagafw_s
from condgrad.solvers.schedules import Setup, practical
from condgrad.solvers.sfw import sfw
from condgrad.solvers.smoothness import Backtracking, SampledSmoothness
from condgrad.solvers.spider_fw import sarah_fw, spider_fw, zero_sarah_fw
from condgrad.solvers.step_rules import check_rule
from condgrad.solvers.stochastic_frank_wolfe import random_iterate
from condgrad.solvers.stochastic_ncgs import StochasticNCGS, stochastic_ncgs, stopping_index
from condgrad.solvers.storc import phases, storc
from condgrad.solvers.svfw import svfw, svfw_s
from condgrad.solvers.universal_cgs import universal_cgs
from condgrad.solvers.warm_start import WarmStart


@dataclass(frozen=True)
class Option:
    """An option of a method.

    Parameters
    ----------
    check : callable
        ``check(value, what)``, which raises ValueError with a sentence about ``what``; None always means the method's own choice.
    example : Any
        A value other than the default, with which the method takes other steps or has other costs.
    needs : mapping, default {}
        Other options without which this one changes nothing.
    """

    check: Callable[[Any, str], Any]
    example: Any
    needs: Mapping[str, Any] = field(default_factory=dict)


class Cost(NamedTuple):
    """What the cost of a stochastic method depends on."""

    steps: int
    n: int
    """Number of terms of a finite sum; 0 for an expectation."""
    batch: int
    epoch: int
    sample: int
    distinct: Callable[[int], int]
    """``distinct(n)``: number of different terms in the second batches of all steps, if these are drawn from n terms."""


@dataclass(frozen=True)
class Method:
    """A method as ``minimize``, the documentation, the command line, specs and the contract checks see it.

    Parameters
    ----------
    name : str
        Its name in ``minimize(method=)``, specs and listings.
    title : str
        Its name in text.
    make : callable
        ``make(problem, setup, **options) -> Solver``; each option has a default.
    sees : {"gradient", "terms", "samples"}, default "gradient"
        What it asks of the objective: full gradients, terms of a finite sum, samples of an expectation.
    assumes : str, default "F L-smooth"
        Assumptions of its theorem.
    oracles : str, default "FO, LO"
        Counters of the oracles that it calls.
    bound : str, default ""
        Oracle calls to a criterion of eps.
    file : str, default ""
        Its file, relative to the package; empty for a method that is registered from outside.
    reference : str, default ""
        Where it comes from.
    slides : bool, default False
        It solves prox subproblems, so it takes an inner solver.
    projects : bool, default False
        It needs a set with a projection.
    output_law : callable, default None
        ``output_law(steps, rng)``, the paper's random output: how many of N steps to run before reporting.
    options : mapping of str to Option, default {}
        The options of ``make``, in its order.
    cost : callable, default None
        ``cost(Cost)``, its term or sample gradients by the paper's arithmetic, to compare with.
    convex : bool, default False
        It is made for convex F only.
    certifies : bool, default True
        Deterministic methods: its steps prove a bound on the gradient mapping on their way.
    needs_term_smoothness : bool, default False
        It needs ``term_smoothness`` or ``mean_square_smoothness`` of a finite sum.
    finds_smoothness : bool, default False
        Stochastic methods: with the practical schedule it finds L, and needs no constants of the objective.
    """

    name: str
    title: str
    make: Callable[..., Solver]
    sees: str = "gradient"
    assumes: str = "F L-smooth"
    oracles: str = "FO, LO"
    bound: str = ""
    file: str = ""
    reference: str = ""
    slides: bool = False
    projects: bool = False
    output_law: Callable[[int, np.random.Generator], int] | None = None
    options: Mapping[str, Option] = field(default_factory=dict)
    cost: Callable[[Cost], int] | None = None
    convex: bool = False
    certifies: bool = True
    needs_term_smoothness: bool = False
    finds_smoothness: bool = False

    @property
    def deterministic(self) -> bool:
        return self.sees == "gradient"


def batch_or_law(value: Any, what: str) -> Any:
    """A batch size, or a function of the step that returns one."""
    return value if callable(value) else whole(value, what)


def recursive_cost(c: Cost, restart: int) -> int:
    """Term gradients of a recursive estimator: ``restart`` every ``epoch`` steps, two batches in every other step."""
    restarts = ceil(c.steps / c.epoch)
    return restarts * restart + 2 * c.batch * (c.steps - restarts)


_ESTIMATOR = Option(check_estimator, "momentum")
_BATCH, _EPOCH, _SAMPLE = Option(whole, 4), Option(whole, 3), Option(whole, 7)
_GAP, _LAM, _STRETCH, _SCALE = (
    Option(positive, 0.3),
    Option(positive, 0.05),
    Option(not_negative, 1.0),
    Option(positive, 2.0),
)
_ADAPTIVE, _STORE, _REPLACE = Option(yes_or_no, False), Option(yes_or_no, True), Option(yes_or_no, False)

_NCGS_PAPER = "Qu, Li, Xu 2017"
_ACTIVE_OPTIONS = {"rule": Option(check_active_rule, "adaptive")}
_ACTIVE_ASSUMES = "F L-smooth (rate: strongly convex, on a polytope)"
_ACTIVE_BOUND = "FO log(1/eps), LO log(1/eps)"
_REDDI = "Reddi, Sra, Poczos, Smola 2016"
_BEZNOSIKOV = "Beznosikov, Dobre, Gidel 2023; bound derived here"

_ENTRIES = (
    Method(
        "ncgs", "NCGS, option I", ncgs, "gradient", "F L-smooth", "FO, LO", "FO 1/eps, LO 1/eps^2",
        "solvers/ncgs.py", f"{_NCGS_PAPER}, Algorithm 1", slides=True,
        options={"stretch": _STRETCH, "adaptive": _ADAPTIVE, "step_scale": _SCALE, "momentum": _ADAPTIVE},
    ),
    Method(
        "ncgs-ii", "NCGS, option II", ncgs_ii, "gradient", "F L-smooth, l-lower-smooth", "FO, LO", "FO 1/eps, LO 1/eps^2",
        "solvers/ncgs_ii.py", f"{_NCGS_PAPER}, Algorithm 1", slides=True,
        options={"step_scale": _SCALE, "monotone": Option(yes_or_no, True)},
    ),
    Method(
        "stochastic-ncgs", "Stochastic NCGS", stochastic_ncgs, "samples", "F L-smooth, variance bounded", "SFO, LO",
        "SFO 1/eps^2, LO 1/eps^2", "solvers/stochastic_ncgs.py", f"{_NCGS_PAPER}, Algorithm 3", slides=True,
        output_law=stopping_index, options={"batch": Option(batch_or_law, 5), "replace": _REPLACE, "estimator": _ESTIMATOR},
        cost=lambda c: c.batch * c.steps, finds_smoothness=True,
    ),
    Method(
        "ncgs-vr", "NCGS-VR", ncgs_vr, "terms", "each term L-smooth", "IFO, LO", "IFO n^(2/3)/eps, LO 1/eps^2",
        "solvers/ncgs_vr.py", f"{_NCGS_PAPER}, Algorithm 4", slides=True, output_law=random_iterate,
        options={
            "epoch": _EPOCH, "batch": _BATCH, "lam": _LAM, "store": _STORE, "replace": _REPLACE, "adaptive": _ADAPTIVE,
        },
        cost=lambda c: c.steps // c.epoch * c.n + 2 * c.batch * c.steps, needs_term_smoothness=True, finds_smoothness=True,
    ),
    Method(
        "ncgs-spider", "NCGS-SPIDER", ncgs_spider, "terms", "terms L-smooth in the mean square", "IFO, LO",
        "IFO n + sqrt(n)/eps, LO 1/eps^2 (derived here)", "solvers/ncgs_spider.py", "docs/methods/recursive.md",
        slides=True, output_law=random_iterate,
        options={"epoch": _EPOCH, "batch": _BATCH, "lam": _LAM, "replace": _REPLACE, "adaptive": _ADAPTIVE},
        cost=lambda c: recursive_cost(c, c.n), needs_term_smoothness=True, finds_smoothness=True,
    ),
    Method(
        "momentum-ncgs", "Momentum NCGS", momentum_ncgs, "samples", "each sample L-smooth, variance bounded", "SFO, LO",
        "SFO 1/eps^(3/2), LO 1/eps^(7/2) (derived here)", "solvers/momentum_ncgs.py", "docs/methods/momentum.md",
        slides=True, output_law=random_iterate, options={"batch": _BATCH, "sample": _SAMPLE, "replace": _REPLACE},
        cost=lambda c: c.sample + 2 * c.batch * (c.steps - 1), finds_smoothness=True,
    ),
    Method(
        "frank-wolfe", "Frank-Wolfe, non-convex", frank_wolfe, "gradient", "F L-smooth", "FO, LO",
        "FO 1/eps^2, LO 1/eps^2", "solvers/frank_wolfe.py", "Lacoste-Julien 2016",
        options={
            "rule": Option(lambda rule, what: check_rule(rule), "short"),
            "step_scale": Option(positive, 2.0, needs={"rule": "short"}),
        },
    ),
    Method(
        "away-step", "Away-step Frank-Wolfe", away_step, "gradient", _ACTIVE_ASSUMES, "FO, LO", _ACTIVE_BOUND,
        "solvers/away_step.py", "Guelat, Marcotte 1986; Lacoste-Julien, Jaggi 2015", options=_ACTIVE_OPTIONS,
    ),
    Method(
        "pairwise", "Pairwise Frank-Wolfe", pairwise, "gradient", _ACTIVE_ASSUMES, "FO, LO", _ACTIVE_BOUND,
        "solvers/pairwise.py", "Lacoste-Julien, Jaggi 2015", options=_ACTIVE_OPTIONS,
    ),
    Method(
        "blended-pairwise", "Blended pairwise conditional gradients", blended_pairwise, "gradient", _ACTIVE_ASSUMES,
        "FO, LO", _ACTIVE_BOUND, "solvers/blended_pairwise.py", "Tsuji, Tanaka, Pokutta 2022", options=_ACTIVE_OPTIONS,
    ),
    Method(
        "fully-corrective", "Fully corrective Frank-Wolfe", fully_corrective, "gradient", "F L-smooth", "FO, LO",
        "FO 1/eps^2, LO 1/eps^2 (derived here)", "solvers/fully_corrective.py", "Lacoste-Julien, Jaggi 2015",
        options={**_ACTIVE_OPTIONS, "share": Option(positive, 0.05)},
    ),
    Method(
        "lazy-frank-wolfe", "Lazy Frank-Wolfe", lazy_frank_wolfe, "gradient", "F L-smooth", "FO, LO",
        "FO 1/eps^2, LO at most 1/eps^2 (derived here)", "solvers/lazy_frank_wolfe.py", "Braun, Pokutta, Zink 2017",
        options={
            "rule": Option(lambda rule, what: check_rule(rule), "open-loop"), "factor": Option(check_factor, 6.0),
            "cache": Option(lambda size, what: whole(size, what, least=0), 0),
        },
    ),
    Method(
        "boosted-frank-wolfe", "Boosted Frank-Wolfe", boosted_frank_wolfe, "gradient", "F L-smooth", "FO, LO",
        "FO 1/eps^2, LO K/eps^2 (derived here)", "solvers/boosted_frank_wolfe.py", "Combettes, Pokutta 2020",
        options={
            "rule": Option(check_boosted_rule, "adaptive"), "rounds": Option(whole, 1), "delta": Option(check_delta, 0.5),
        },
    ),
    Method(
        "parameter-free-frank-wolfe", "Parameter-free Frank-Wolfe", parameter_free_frank_wolfe, "gradient",
        "F L-smooth, L not known", "FO, LO", "FO 1/eps^2, LO 1/eps^2 (derived here)",
        "solvers/parameter_free_frank_wolfe.py", "docs/methods/parameter-free.md", options={"first": Option(positive, 0.05)},
    ),
    Method(
        "dca-frank-wolfe", "DCA-FW, for a difference of convex functions", dca_frank_wolfe, "gradient",
        "F L-smooth, l-lower-smooth (or F + g convex)", "FO, LO", "FO 1/eps^2, LO 1/eps^2 (derived here)",
        "solvers/dca_frank_wolfe.py", "Maskan, Hou, Sra, Yurtsever 2025",
        options={
            "concave": Option(check_concave, SimpleNamespace(grad=lambda x: 30.0 * x, smoothness=30.0)),
            "share": Option(positive, 20.0),
        },
    ),
    Method(
        "sfw", "SFW", sfw, "samples", "F L-smooth, gradients bounded", "SFO, LO", "SFO 1/eps^4, LO 1/eps^2",
        "solvers/sfw.py", _REDDI, output_law=random_iterate,
        options={"batch": _BATCH, "initial_gap": _GAP, "replace": _REPLACE, "estimator": _ESTIMATOR},
        cost=lambda c: c.batch * c.steps,
    ),
    Method(
        "boosted-sfw", "Boosted stochastic Frank-Wolfe", boosted_sfw, "samples", "F L-smooth, gradients bounded", "SFO, LO",
        "SFO 1/eps^4, LO K/eps^2 (derived here)", "solvers/boosted_sfw.py", "Combettes, Pokutta 2020; arXiv 2605.25255",
        output_law=random_iterate, cost=lambda c: c.batch * c.steps,
        options={
            "batch": _BATCH, "rounds": Option(whole, 1), "delta": Option(check_delta, 0.5), "initial_gap": _GAP,
            "replace": _REPLACE, "estimator": _ESTIMATOR,
        },
    ),
    Method(
        "svfw", "SVFW", svfw, "terms", "each term L-smooth", "IFO, LO", "IFO n + n^(2/3)/eps^2, LO 1/eps^2",
        "solvers/svfw.py", _REDDI, output_law=random_iterate,
        options={"epoch": _EPOCH, "batch": _BATCH, "store": _STORE, "initial_gap": _GAP, "replace": _REPLACE},
        cost=lambda c: c.steps // c.epoch * c.n + 2 * c.batch * c.steps,
    ),
    Method(
        "sagafw", "SAGAFW", sagafw, "terms", "each term L-smooth", "IFO, LO",
        "IFO n + n^(1/3)/eps^2 (claimed), LO 1/eps^2", "solvers/sagafw.py", _REDDI, output_law=random_iterate,
        options={"batch": _BATCH, "initial_gap": _GAP, "replace": _REPLACE},
        cost=lambda c: c.n + c.batch * c.steps + c.distinct(c.n),
    ),
    Method(
        "svfw-s", "SVFW-S", svfw_s, "samples", "each sample L-smooth, variance bounded", "SFO, LO",
        "SFO 1/eps^(10/3), LO 1/eps^2", "solvers/svfw.py", _REDDI, output_law=random_iterate,
        options={"epoch": _EPOCH, "batch": _BATCH, "sample": _SAMPLE, "initial_gap": _GAP},
        cost=lambda c: c.steps // c.epoch * c.sample + 2 * c.batch * c.steps,
    ),
    Method(
        "sagafw-s", "SAGAFW-S", sagafw_s, "samples", "each sample L-smooth, variance bounded", "SFO, LO",
        "SFO 1/eps^(8/3) (claimed), LO 1/eps^2", "solvers/sagafw.py", _REDDI, output_law=random_iterate,
        options={"batch": _BATCH, "sample": _SAMPLE, "initial_gap": _GAP},
        cost=lambda c: c.sample + c.batch * c.steps + c.distinct(c.sample),
    ),
    Method(
        "spider-fw", "SPIDER-FW", spider_fw, "terms", "terms L-smooth in the mean square", "IFO, LO",
        "IFO n + sqrt(n)/eps^2, LO 1/eps^2", "solvers/spider_fw.py", "Yurtsever, Sra, Cevher 2019",
        output_law=random_iterate, cost=lambda c: recursive_cost(c, c.n),
        options={"epoch": _EPOCH, "batch": _BATCH, "initial_gap": _GAP, "replace": _REPLACE},
    ),
    Method(
        "sarah-fw", "SARAH-FW", sarah_fw, "terms", "terms L-smooth in the mean square", "IFO, LO",
        "IFO n + sqrt(n)/eps^2, LO 1/eps^2", "solvers/spider_fw.py", _BEZNOSIKOV, output_law=random_iterate,
        options={"epoch": Option(whole, 2), "batch": _BATCH, "initial_gap": _GAP, "replace": _REPLACE},
    ),
    Method(
        "zero-sarah-fw", "ZeroSARAH-FW", zero_sarah_fw, "terms", "terms L-smooth in the mean square", "IFO, LO",
        "IFO n + sqrt(n)/eps^2, LO 1/eps^2", "solvers/spider_fw.py", _BEZNOSIKOV, output_law=random_iterate,
        options={"batch": _BATCH, "initial_gap": _GAP}, cost=lambda c: c.batch + 2 * c.batch * (c.steps - 1),
    ),
    Method(
        "momentum-sfw", "Momentum SFW", momentum_sfw, "samples", "F L-smooth, variance bounded", "SFO, LO",
        "SFO 1/eps^4, LO 1/eps^4 (derived here)", "solvers/momentum_sfw.py", "Mokhtari, Hassani, Karbasi 2020",
        output_law=random_iterate, options={"batch": _BATCH, "initial_gap": _GAP, "replace": _REPLACE},
        cost=lambda c: c.batch * c.steps,
    ),
    Method(
        "one-sample-sfw", "One-sample SFW", one_sample_sfw, "samples", "each sample L-smooth, variance bounded", "SFO, LO",
        "SFO 1/eps^3, LO 1/eps^3", "solvers/momentum_sfw.py", "Zhang, Shen, Mokhtari, Hassani, Karbasi 2020",
        output_law=random_iterate, cost=lambda c: c.sample + 2 * c.batch * (c.steps - 1),
        options={"batch": _BATCH, "sample": _SAMPLE, "initial_gap": _GAP, "replace": _REPLACE},
    ),
    Method(
        "igt-sfw", "SFW with implicit gradient transport", igt_sfw, "samples",
        "F L-smooth with Lipschitz Hessian, variance bounded", "SFO, LO", "SFO 1/eps^(7/2), LO 1/eps^(7/2) (derived here)",
        "solvers/igt_sfw.py", "Jang, Lee 2026", output_law=random_iterate,
        options={"batch": _BATCH, "initial_gap": _GAP, "replace": _REPLACE}, cost=lambda c: c.batch * c.steps,
    ),
    Method(
        "clipped-sfw", "SFW with clipped momentum", clipped_sfw, "samples", "F L-smooth, p-th moment of the noise bounded",
        "SFO, LO", "SFO eps^(-(3p-2)/(p-1)), LO the same (derived here)", "solvers/clipped_sfw.py", "arXiv 2506.04192",
        output_law=random_iterate, cost=lambda c: LEVEL_SAMPLES + c.batch * c.steps,
        options={
            "batch": _BATCH, "level": Option(check_level, 0.05), "tail": Option(check_tail, 1.5), "initial_gap": _GAP,
            "replace": _REPLACE,
        },
    ),
    Method(
        "acc-szofw", "Acc-SZOFW", acc_szofw, "terms", "terms L-smooth in the mean square", "IFO, LO",
        "IFO n + sqrt(n)/eps^2, LO 1/eps^2 (derived here)", "solvers/acc_szofw.py", "Huang, Tao, Chen 2020",
        output_law=random_iterate, cost=lambda c: recursive_cost(c, c.n),
        options={"epoch": _EPOCH, "batch": _BATCH, "initial_gap": _GAP, "replace": _REPLACE},
    ),
    Method(
        "acc-szofw-star", "Acc-SZOFW*", acc_szofw_star, "samples", "each sample L-smooth, variance bounded", "SFO, LO",
        "SFO 1/eps^3, LO 1/eps^3 (derived here)", "solvers/acc_szofw.py", "Huang, Tao, Chen 2020",
        output_law=random_iterate, cost=lambda c: c.sample + 2 * c.batch * (c.steps - 1),
        options={"batch": _BATCH, "sample": _SAMPLE, "initial_gap": _GAP, "replace": _REPLACE},
    ),
    Method(
        "cgs", "Conditional gradient sliding", cgs, "gradient", "F convex, L-smooth (restarts: strongly convex)",
        "FO, LO", "FO 1/sqrt(eps), LO 1/eps in F - F*", "solvers/cgs.py", "Lan, Zhou 2016", slides=True,
        convex=True, certifies=False,
        options={
            "strong_convexity": Option(not_negative, 2.0),
            "initial_gap": Option(positive, 0.3, needs={"strong_convexity": 1.5}),
        },
    ),
    Method(
        "universal-cgs", "Universal conditional gradient sliding", universal_cgs, "gradient", "F convex, L-smooth, L not known",
        "FO, LO", "FO 1/sqrt(eps), LO log(1/eps)/eps in F - F* (derived here)", "solvers/universal_cgs.py",
        "docs/methods/universal-cgs.md", slides=True, convex=True, certifies=False, options={"first": Option(positive, 0.05)},
    ),
    Method(
        "storc", "STORC, stochastic variance-reduced sliding", storc, "terms", "F convex, each term L-smooth", "IFO, LO",
        "IFO n log(1/eps) + 1/eps^(3/2), LO 1/eps in F - F*", "solvers/storc.py", "Hazan, Luo 2016", slides=True, convex=True,
        options={"strong_convexity": Option(not_negative, 2.0), "batch": _BATCH, "replace": _REPLACE},
        cost=lambda c: phases(c.steps) * c.n + 2 * c.batch * c.steps,
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

CONTRACTS: dict[str, type] = {"gradient": Objective, "terms": FiniteSum, "samples": Expectation}
"""The contract that an objective must fit, by ``Method.sees``."""
METHODS: dict[str, Method] = {method.name: method for method in _ENTRIES}


def build(name: str, problem: Problem, setup: Setup, options: dict[str, Any]) -> Solver:
    """The solver called ``name`` for this problem; raises TypeError or ValueError if the problem or an option does not fit."""
    method = METHODS[choice(name, METHODS, "method")]
    found = method.finds_smoothness and isinstance(setup.schedule, practical) and not problem.objective.smoothness
    require(method, problem, found)
    for option in options:
        if option not in method.options:
            if option == "constraints":
                raise TypeError(
                    "minimize has no constraints other than the set: give them to condgrad.minimize_constrained."
                )
            known = ", ".join(method.options) or "none"
            raise TypeError(f"Method '{name}' has no option '{option}': its options are {known}.")
        if options[option] is not None:
            method.options[option].check(options[option], f"The option {option}")
    if options.get("replace") is False and not fits(problem.objective, FiniteSum):
        raise TypeError(
            f"replace=False draws terms of a finite sum, {type(problem.objective).__name__} has none: leave it out."
        )
    solver = method.make(problem, setup, **options)
    polish = getattr(solver, "polish", False)
    faces = isinstance(solver, NCGS) and on_faces(solver, setup)
    if setup.polish is True and not (polish or faces):
        raise TypeError(f"polish=True is for method 'ncgs', '{name}' has no factored phase: leave polish out.")
    if found and isinstance(solver, MomentumNCGS | StochasticNCGS):
        solver = SampledSmoothness(solver, setup.seed)
    elif problem.objective.smoothness is None and method.deterministic:
        solver = Backtracking(solver)
    if polish and isinstance(setup.schedule, practical):
        solver = Polished(solver, setup.inner, setup.schedule.eps, arrays=setup.polish is True)
    if faces:
        solver = OnFaces(solver, setup.mapping, setup.gap)
    return WarmStart(solver, setup.warm_start) if setup.warm_start and method.slides else solver


def require(method: Method, problem: Problem, found: bool = False) -> None:
    """Raise TypeError or ValueError if the method can't be used for the problem. The message says why, and what to do.

    ``found`` says that the method finds the smoothness itself.
    """
    objective, domain = problem.objective, problem.domain
    needed = {"gradient": "value and grad", "terms": "a finite sum", "samples": "samples (draw, grad_terms)"}
    if not fits(objective, CONTRACTS[method.sees]):
        others = [
            m.name for m in METHODS.values() if fits(objective, CONTRACTS[m.sees]) and not m.projects and not m.convex
        ]
        fit = f"use {', '.join(others)}" if others else "see condgrad.Function, FunctionSum and FunctionExpectation"
        raise TypeError(
            f"Method '{method.name}' needs {needed[method.sees]}, {type(objective).__name__} has none: {fit}."
        )
    if method.projects and not fits(domain, Projectable):
        raise TypeError(
            f"Method '{method.name}' projects, {type(domain).__name__} has no projection: use ncgs, which needs only its lmo."
        )
    if found:
        return
    if not method.deterministic and not objective.smoothness:
        fitting = [m.name for m in METHODS.values() if m.finds_smoothness and fits(objective, CONTRACTS[m.sees])]
        practically = " with schedule='practical'" if method.finds_smoothness else ""
        finds = f"{', '.join(fitting)}, which find it{practically}"
        raise ValueError(
            f"Method '{method.name}' needs the smoothness L, which can't be found by backtracking from noisy gradients: "
            f"give smoothness= to {type(objective).__name__} or to minimize, or use {finds}."
        )
    constants = ("term_smoothness", "mean_square_smoothness")
    if method.needs_term_smoothness and all(getattr(objective, name) is None for name in constants):
        raise ValueError(
            f"Method '{method.name}' needs the terms' smoothness: give term_smoothness= to {type(objective).__name__}."
        )
