"""Every method of the library beside its flat transcription in tests/reference, iterate by iterate."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import replace
from itertools import islice
from math import ceil, sqrt
from operator import attrgetter

import numpy as np
import pytest
import tests.reference
from tests.problems import EXPECTATIONS, PLAIN, SUMS, WITHOUT_PROJECTION, case
from tests.reference import (
    cgs,
    condg,
    frank_wolfe,
    momentum,
    ncgs,
    ncgs_vr,
    projected,
    recursive,
    stochastic_frank_wolfe,
    stochastic_ncgs,
    storc,
    universal_cgs,
)

import condgrad as cg
from condgrad.solvers import Setup, build

SEED = 3
STEPS = 36
MAX_CALLS = 40
"""A linear oracle budget for each prox, the same on both sides: condg is sublinear."""
THEORY = cg.theory(STEPS)
PRACTICAL = cg.practical(eps=1e-2, c=0.4)
SCHEDULES = (THEORY, PRACTICAL)


# ------------------------------------------------------------------------------------------------ the common ground


class ToSixDigits:
    """A set whose linear oracle looks at a direction to six digits, so that what differs by rounding gets the same answer.

    On a curved set condg is chaotic: its oracle's answers near a tie are as far apart as the set is wide. Started 1e-15
    apart, two runs of the *reference* of NCGS over the nuclear ball are 5e-3 apart after 36 steps of at most 20 oracle calls.
    """

    def __init__(self, domain):
        self.shape, self.diameter, self.max_norm = domain.shape, domain.diameter, domain.max_norm
        self.start, self.contains = domain.start, domain.contains
        self.lmo = lambda direction: domain.lmo(np.round(direction, 6))


def ground(name):
    """The case called ``name``, with a steady oracle where the set is curved."""
    example = case(name)
    if isinstance(example.domain, cg.Simplex | cg.L1Ball):
        return example
    return replace(example, problem=cg.Problem(example.objective, ToSixDigits(example.domain)))


# --------------------------------------------------------------------- what the references need, written out once more


def accurate(schedule, lam, share, eta=None):
    """The stop rule of condg: V <= eta (1/N by default), or V <= max(lam eps/4, c share |u_t - u|^2/lam)."""
    if schedule is THEORY:
        return lambda gap, moved: gap <= (1 / STEPS if eta is None else eta)
    return lambda gap, moved: gap <= max(lam * schedule.eps / 4, schedule.c * share * moved)


def prox_of(example, schedule, *shares):
    """prox(l, u, lam, k) for methods with as many prox steps a step as there are ``shares``, functions of k."""
    calls = iter(range(10**9))

    def prox(l, u, lam, k):
        share = shares[next(calls) % len(shares)](k)
        return condg.condg(example.domain.lmo, l, u, lam, accurate(schedule, lam, share), MAX_CALLS)[0]

    return prox


def reddi_step(example, schedule, initial_gap, each_term=True, power=0.5, shift=0):
    """t(k) = sqrt(h_0 / (L D^2)) / T^power, or / (k + shift)^power in practice, and at most 1.

    L is a smoothness of F, in the theorems of the variance reduced methods (``each_term``) one of every term.
    """
    f, x0, L, D = example.objective, example.x0, example.objective.smoothness, example.domain.diameter
    h0 = initial_gap
    if h0 is None and getattr(f, "lower_bound", None) is not None:
        h0 = f.value(x0) - f.lower_bound
    if h0 is None:
        g = f.grad(x0)
        h0 = np.sum(g * (x0 - example.domain.lmo(g))) + L * D**2 / 2
    if each_term and schedule is THEORY:
        L = getattr(f, "term_smoothness", L)
    return lambda k: min(1.0, sqrt(h0 / (L * D**2)) / (STEPS if schedule is THEORY else k + shift) ** power)


def draws(example):
    """(draw, sample_grads) of an expectation, or of a finite sum seen as one."""
    if example.sample_grads:
        return example.objective.draw, example.sample_grads
    n, term_grad = example.objective.n_terms, example.term_grad
    return lambda size, rng: rng.integers(n, size=size), lambda x, I: np.array([term_grad(x, i) for i in I])


# -------------------------------------------------------------- the references: {attribute of the state: its sequence}


def walk_ncgs(example, schedule, stretch=0.0, adaptive=False):
    def lam(k, beta):
        return (1 + stretch * (2 / (k + 1)) / 4) * beta

    f = example.objective
    prox = prox_of(example, schedule, lambda k: 1.0)
    out = ncgs.option_1(f.grad, prox, example.x0, f.smoothness, STEPS, lam if stretch else None)
    return {"x": out["theta"], "theta_ag": out["ag"], "descent.x": out["md"]}


def walk_ncgs_ii(example, schedule):
    f, prox = example.objective, prox_of(example, schedule, lambda k: 1 / (k + 1), lambda k: 1 / 4)
    out = ncgs.option_2(f.grad, prox, example.x0, f.smoothness, STEPS)
    return {"theta": out["theta"], "x": out["ag"], "descent.x": out["md"]}


def walk_stochastic_ncgs(example, schedule, batch=None):
    prox = prox_of(example, schedule, lambda k: 1 / (k + 1), lambda k: 1 / 4)
    m = batch if callable(batch) else (lambda k: batch or k)
    L = example.objective.smoothness
    out = stochastic_ncgs.run(*draws(example), prox, example.x0, L, STEPS, SEED, m)
    return {"theta": out["theta"], "theta_ag": out["ag"], "x": [example.x0, *out["md"][1:]]}


def walk_ncgs_vr(example, schedule, epoch=None, batch=None, lam=None, store=False, adaptive=False):
    f, n = example.objective, example.objective.n_terms
    m = next(m for m in range(n, 0, -1) if m**3 <= n)
    b = max(m * m, next(b for b in range(1, n + 1) if b**3 >= n**2))
    if schedule is THEORY:
        lam = lam or 1 / (3 * f.term_smoothness)
    else:  # the terms are rougher than F: epochs shorter by K/L, but of 5 steps; batches larger by its square, up to n/4
        excess = f.mean_square_smoothness / f.smoothness
        m, b = max(int(m / excess), min(m, 5)), max(b, min(int(b * excess**2), n // 4))
    m, b = epoch or m, batch or b
    # the largest step with 4 K^2 m^2 lam^2 / b + L lam <= 7/9 and lam <= 1/(3 L)
    root = max(np.roots([4 * f.mean_square_smoothness**2 * m**2 / b, f.smoothness, -7 / 9]))
    lam = lam or min(root, 1 / (3 * f.smoothness))
    prox = prox_of(example, schedule, lambda k: 2 / 9)
    return {"x": ncgs_vr.run(example.term_grad, n, prox, example.x0, lam, m, b, STEPS, SEED)}


def walk_ncgs_spider(example, schedule, epoch=None, batch=None, lam=None, adaptive=False):
    f, n = example.objective, example.objective.n_terms
    root = ceil(sqrt(n) - 1e-9)
    m, b, K, L = epoch or root, batch or root, f.mean_square_smoothness, f.smoothness
    in_theory = 1 / (3 * max(K, L))
    lam = lam or (in_theory if schedule is THEORY else max(np.roots([K**2 * m / b, L, -4 / 9])))
    prox = prox_of(example, schedule, lambda k: 5 / 18)
    move = lambda x, v, k: prox(v, x, lam, k)  # noqa: E731
    return {"x": recursive.spider(example.term_grad, n, move, example.x0, m, b, STEPS, SEED)}


def walk_momentum_ncgs(example, schedule, batch=1, sample=None):
    f, prox = example.objective, prox_of(example, schedule, lambda k: 5 / 16)
    L = getattr(f, "term_smoothness", f.smoothness) if schedule is THEORY else f.smoothness
    r = lambda k: (STEPS if schedule is THEORY else k) ** (-2 / 3)  # noqa: E731
    move = lambda x, v, k: prox(v, x, sqrt(r(k)) / (4 * L), k)  # noqa: E731
    first = sample or ceil(STEPS ** (1 / 3))
    return {"x": momentum.run(*draws(example), move, example.x0, r, batch, first, STEPS, SEED, recursive=True)}


def walk_momentum_sfw(example, schedule, batch=1, initial_gap=None, first=None, power=1 / 2, step_power=3 / 4):
    t, lmo = reddi_step(example, schedule, initial_gap, power > 1 / 2, step_power, 8), example.domain.lmo
    r = lambda k: (STEPS if schedule is THEORY else k + 8) ** -power  # noqa: E731
    move = lambda x, v, k: x + t(k) * (lmo(v) - x)  # noqa: E731
    storm = power > 1 / 2
    return {"x": momentum.run(*draws(example), move, example.x0, r, batch, first or batch, STEPS, SEED, storm)}


def walk_one_sample_sfw(example, schedule, batch=1, sample=None, initial_gap=None):
    first = sample or ceil(STEPS ** (1 / 3))
    return walk_momentum_sfw(example, schedule, batch, initial_gap, first, 2 / 3, 2 / 3)


def walk_frank_wolfe(example, schedule, rule="open-loop", steps=STEPS):
    name = {
        "bounded": "lacoste",
        "open-loop": "open",
        "inverse-sqrt": "sqrt",
        "line-search": "line",
        "golden-section": "golden",
    }.get(rule, rule)
    f, domain = example.objective, example.domain
    return {"x": frank_wolfe.run(f.value, f.grad, domain.lmo, example.x0, steps, name, f.smoothness, domain.diameter)}


def walk_sfw(example, schedule, batch=None, initial_gap=None):
    t, lmo = reddi_step(example, schedule, initial_gap, each_term=False), example.domain.lmo
    if example.sample_grads:  # a snapshot of b fresh samples in every step is SFW
        return {"x": stochastic_frank_wolfe.svfw_s(*draws(example), lmo, example.x0, t, 1, 1, batch, STEPS, SEED)}
    n, b = example.objective.n_terms, batch or STEPS
    return {"x": stochastic_frank_wolfe.sfw(example.term_grad, n, lmo, example.x0, t, b, STEPS, SEED)}


def walk_svfw(example, schedule, epoch=None, batch=None, store=False, initial_gap=None):
    n, t = example.objective.n_terms, reddi_step(example, schedule, initial_gap)
    m = epoch or next(m for m in range(n, 0, -1) if m**3 <= n)
    b = batch or max(m * m, next(b for b in range(1, n + 1) if b**3 >= n**2))
    lmo = example.domain.lmo
    return {"x": stochastic_frank_wolfe.svfw(example.term_grad, n, lmo, example.x0, t, m, b, STEPS, SEED)}


def walk_sagafw(example, schedule, batch=None, initial_gap=None):
    n, t = example.objective.n_terms, reddi_step(example, schedule, initial_gap)
    b = batch or next(b for b in range(1, n + 1) if b**3 >= n)
    return {"x": stochastic_frank_wolfe.sagafw(example.term_grad, n, example.domain.lmo, example.x0, t, b, STEPS, SEED)}


def walk_svfw_s(example, schedule, epoch=3, batch=11, sample=STEPS, initial_gap=None):
    """By default T = 36: m = T^(1/3), b = T^(2/3) and T samples for a snapshot."""
    t, x0, lmo = reddi_step(example, schedule, initial_gap), example.x0, example.domain.lmo
    return {"x": stochastic_frank_wolfe.svfw_s(*draws(example), lmo, x0, t, epoch, batch, sample, STEPS, SEED)}


def walk_sagafw_s(example, schedule, batch=4, sample=STEPS, initial_gap=None):
    t, x0, lmo = reddi_step(example, schedule, initial_gap), example.x0, example.domain.lmo
    return {"x": stochastic_frank_wolfe.sagafw_s(*draws(example), lmo, x0, t, sample, batch, STEPS, SEED)}


def walk_cgs(example, schedule, strong_convexity=0.0, initial_gap=None):
    f, domain, x0, mu = example.objective, example.domain, example.x0, strong_convexity
    N = ceil(2 * sqrt(6 * f.smoothness / mu)) if mu else 10**9
    calls = iter(range(10**9))

    def prox(l, u, lam, eta):
        k = next(calls) % N + 1
        return condg.condg(domain.lmo, l, u, lam, accurate(schedule, lam, 1 / (k + 2), eta), MAX_CALLS)[0]

    if not mu:
        out = cgs.cgs(f.grad, prox, x0, f.smoothness, domain.diameter, STEPS)
    else:
        g = f.grad(x0)
        delta0 = initial_gap or np.sum(g * (x0 - domain.lmo(g)))
        assert N < STEPS / 2, "the walk is to see two restarts"
        out = cgs.cgs_restarted(f.grad, prox, x0, f.smoothness, mu, delta0, ceil(STEPS / N))
    return {"inner_x": out["x"], "x": out["y"], "descent.x": out["z"]}


def walk_storc(example, schedule, strong_convexity=0.0, batch=None):
    f = example.objective
    L = f.term_smoothness if schedule is THEORY else f.smoothness
    sizes = storc.sizes(example, schedule is THEORY, L, strong_convexity, batch)

    def prox(l, u, lam, eta):
        return condg.condg(example.domain.lmo, l, u, lam, accurate(schedule, lam, 1 / 6, eta), MAX_CALLS)[0]

    w0, N, m, D2 = sizes
    out = storc.storc(example.term_grad, f.n_terms, prox, w0, L, N, m, D2, STEPS, SEED)
    return {"inner_x": out["x"], "x": out["y"]}


def walk_universal_cgs(example, schedule, first=None):
    f, lmo, x0 = example.objective, example.domain.lmo, example.x0
    g = f.grad(x0)
    e = np.sum(g * (x0 - lmo(g))) / STEPS**2

    def prox(l, u, lam, eta):
        return condg.condg(lmo, l, u, lam, accurate(schedule, lam, 1 / 2, eta), MAX_CALLS)[0]

    M = first or universal_cgs.first_curvature(f.grad, lmo, x0)
    out = universal_cgs.run(f.value, f.grad, lmo, prox, x0, M, e, STEPS)
    return {"inner_x": out["x"], "x": out["y"], "descent.x": out["z"], "lower": [None, *out["lower"][1:]]}


def walk_projected_gradient(example, schedule):
    f = example.objective
    return {"x": projected.projected_gradient(f.grad, example.project, example.x0, 1 / (2 * f.smoothness), STEPS)}


def walk_accelerated_gradient(example, schedule):
    f = example.objective
    out = projected.accelerated_gradient(f.grad, example.project, example.x0, f.smoothness, STEPS)
    return {"slow": out["x"], "x": out["ag"], "descent.x": out["md"]}


# --------------------------------------------------------------------------------------- which walks, and on what


DETERMINISTIC = (*PLAIN, "welsch simplex", "completion nuclear")
PROJECTABLE = [name for name in (*PLAIN, *SUMS) if name not in WITHOUT_PROJECTION]
SAMPLED = (*SUMS, *EXPECTATIONS)


def odd(k):
    """A batch that grows."""
    return 2 * k + 1


SEARCHES = ("line-search", "golden-section")
"""Rules that compare values of F, whose last bits decide where they end."""
ONCE = (PRACTICAL,)  # for methods that no schedule touches

WALKS = {
    "ncgs": (walk_ncgs, DETERMINISTIC, SCHEDULES, [{}, {"adaptive": False}, {"stretch": 1.0}]),
    "ncgs-ii": (walk_ncgs_ii, DETERMINISTIC, SCHEDULES, [{}]),
    "stochastic-ncgs": (walk_stochastic_ncgs, SAMPLED, SCHEDULES, [{}, {"batch": 4}, {"batch": odd}]),
    "ncgs-vr": (
        walk_ncgs_vr,
        SUMS,
        SCHEDULES,
        [
            {"lam": 0.2},
            {"lam": 0.2, "store": True},
            {"epoch": 4, "batch": 3, "lam": 0.1},
            {"epoch": 4, "batch": 3, "adaptive": False},
            {"adaptive": False},
            {},
        ],
    ),
    "ncgs-spider": (
        walk_ncgs_spider,
        SUMS,
        SCHEDULES,
        [{"epoch": 4, "batch": 3, "lam": 0.1}, {"epoch": 4, "batch": 3, "adaptive": False}, {"adaptive": False}, {}],
    ),
    "momentum-ncgs": (
        walk_momentum_ncgs,
        SAMPLED,
        SCHEDULES,
        [{}, {"batch": 3, "sample": 9}],
    ),
    "momentum-sfw": (walk_momentum_sfw, SAMPLED, SCHEDULES, [{"initial_gap": 2.0}, {"batch": 5, "initial_gap": 2.0}]),
    "one-sample-sfw": (
        walk_one_sample_sfw,
        SAMPLED,
        SCHEDULES,
        [{"initial_gap": 2.0}, {"batch": 3, "sample": 9, "initial_gap": 2.0}],
    ),
    "frank-wolfe": (
        walk_frank_wolfe,
        DETERMINISTIC,
        ONCE,
        [{}, *({"rule": rule} for rule in cg.solvers.RULES if rule not in SEARCHES)],
    ),
    "sfw": (walk_sfw, SAMPLED, SCHEDULES, [{"batch": 5, "initial_gap": 2.0}]),
    "svfw": (walk_svfw, SUMS, SCHEDULES, [{}, {"store": True}, {"epoch": 4, "batch": 3, "initial_gap": 2.0}]),
    "sagafw": (walk_sagafw, SUMS, SCHEDULES, [{}, {"batch": 5, "initial_gap": 2.0}]),
    "svfw-s": (
        walk_svfw_s,
        SAMPLED,
        SCHEDULES,
        [{"initial_gap": 2.0}, {"epoch": 4, "batch": 3, "sample": 20, "initial_gap": 2.0}],
    ),
    "sagafw-s": (
        walk_sagafw_s,
        SAMPLED,
        SCHEDULES,
        [{"initial_gap": 2.0}, {"batch": 3, "sample": 20, "initial_gap": 2.0}],
    ),
    "cgs": (
        walk_cgs,
        DETERMINISTIC,
        SCHEDULES,
        [{}, {"strong_convexity": 1.5}, {"strong_convexity": 1.5, "initial_gap": 3.0}],
    ),
    "universal-cgs": (walk_universal_cgs, DETERMINISTIC, SCHEDULES, [{}, {"first": 0.1}, {"first": 50.0}]),
    "storc": (
        walk_storc,
        SUMS,
        SCHEDULES,
        [{}, {"batch": 4}, {"strong_convexity": 3.0, "batch": 5}],
    ),
    "projected-gradient": (walk_projected_gradient, PROJECTABLE, ONCE, [{}]),
    "accelerated-gradient": (walk_accelerated_gradient, PROJECTABLE, ONCE, [{}]),
}


SEEN = {"gradient": DETERMINISTIC, "terms": SUMS, "samples": SAMPLED}


def of_module(walk):
    """The walk of a reference module, and the schedules that it takes: both if it has an argument ``theory``, else one."""
    if "theory" not in inspect.signature(walk).parameters:
        return (lambda example, schedule, **options: walk(example, STEPS, SEED, **options)), ONCE
    return (
        lambda example, schedule, **options: walk(example, STEPS, SEED, theory=schedule is THEORY, **options)
    ), SCHEDULES


for _, _name, _ in pkgutil.iter_modules(tests.reference.__path__, "tests.reference."):
    # a reference may say itself how to walk beside it: {method: (walk(example, steps, seed[, theory], **options), variants)}
    for _method, (_walk, _variants) in getattr(importlib.import_module(_name), "WALKS", {}).items():
        _on = PROJECTABLE if cg.METHODS[_method].projects else SEEN[cg.METHODS[_method].sees]
        _walk, _schedules = of_module(_walk)
        WALKS[_method] = (_walk, _on, _schedules, _variants)


def label(method, options, schedule, problem):
    given = [f"{option}={getattr(value, '__name__', value)}" for option, value in options.items()]
    return "-".join([method, *given, type(schedule).__name__, problem])


def adapts(method, options, schedule):
    """By default the steps of these adapt in practice, which is not in the paper."""
    return method in ("ncgs", "ncgs-vr", "ncgs-spider") and schedule is PRACTICAL and not options


PARAMETERS = [
    pytest.param(name, options, schedule, problem, id=label(name, options, schedule, problem))
    for name, (_, examples, schedules, variants) in WALKS.items()
    for options in variants
    for schedule in schedules
    for problem in examples
    if not adapts(name, options, schedule)
]


def states_of(method, example, schedule, options, steps):
    solver = build(method, example.problem, Setup(schedule, cg.CondG(MAX_CALLS), STEPS, SEED), options)
    return list(islice(cg.iterate(example.problem, solver, example.x0), steps + 1))


def assert_in_step(states, reference, tolerance=1e-10):
    for attribute, sequence in reference.items():
        read = attrgetter(attribute)
        for k, expected in enumerate(sequence[: len(states)]):
            if expected is not None:  # an intermediate point, which step 0 has not
                error = np.linalg.norm(read(states[k]) - expected)
                assert error <= tolerance, f"{attribute} is off by {error:.2g} after {k} steps"


@pytest.mark.parametrize("method", cg.METHODS)
def test_every_method_has_a_walk(method):
    assert method in WALKS, f"{method} has no flat reference to walk beside: add one to tests/reference, with WALKS."


@pytest.mark.parametrize(("method", "options", "schedule", "problem"), PARAMETERS)
def test_iterate_by_iterate(method, options, schedule, problem):
    example = case(problem) if cg.METHODS[method].projects else ground(problem)
    reference = WALKS[method][0](example, schedule, **options)
    assert np.linalg.norm(reference["x"][STEPS] - example.x0) > 1e-3, "the walk goes nowhere: it would prove nothing"
    assert_in_step(states_of(method, example, schedule, options, STEPS), reference)


@pytest.mark.parametrize("problem", DETERMINISTIC)
@pytest.mark.parametrize("rule", SEARCHES)
def test_line_search(rule, problem):
    """Fifteen steps: the minimiser of a flat function is found to the square root of the rounding of its values only."""
    example = ground(problem)
    reference = walk_frank_wolfe(example, PRACTICAL, rule, 15)
    # the search ends within 1e-8 of the best t, and where it does depends on the last bits of F
    assert_in_step(states_of("frank-wolfe", example, PRACTICAL, {"rule": rule}, 15), reference, 1e-6)


@pytest.mark.parametrize("problem", SUMS)
def test_sfw_with_growing_batches(problem):
    """In practice the default is b_k = k, which the reference, with its one b, does not know."""
    example = ground(problem)
    t, n, x = reddi_step(example, PRACTICAL, None), example.objective.n_terms, [example.x0]
    for k in range(1, STEPS + 1):
        I = np.random.default_rng((SEED, k)).integers(n, size=k)
        v = sum(example.term_grad(x[-1], i) for i in I) / k
        x.append(x[-1] + t(k) * (example.domain.lmo(v) - x[-1]))
    assert_in_step(states_of("sfw", example, PRACTICAL, {}, STEPS), {"x": x})


@pytest.mark.parametrize("problem", SUMS)
def test_sfw_with_the_theorems_batch(problem):
    example = ground(problem)
    assert_in_step(states_of("sfw", example, THEORY, {}, STEPS), walk_sfw(example, THEORY))
