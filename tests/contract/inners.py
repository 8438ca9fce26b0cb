"""What the tests of inner solvers share: sets, subproblems, a linear oracle that is counted, and what honest gaps are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import condgrad as cg
from condgrad.inner import INNERS, absolute, relative
from condgrad.protocols import fits

POLYTOPES = {
    "simplex": cg.Simplex(6, 2.0),
    "l1": cg.L1Ball(5, 2.0),
    "linf": cg.LinfBall(4, 1.5),
    "box": cg.Box([-1.0, 0.0, 2.0, -3.0], [1.0, 0.0, 5.0, -2.9]),
    "big simplex": cg.Simplex(40),
}
CURVED = {
    "l2": cg.L2Ball((2, 3), 0.5),
    "l3": cg.LpBall(5, 3.0, 2.0),
    "nuclear": cg.NuclearBall((4, 3), 2.0),
    "nuclear wide": cg.NuclearBall((3, 7), 2.0),
    "spectrahedron": cg.Spectrahedron(4, 2.0),
    "spectrahedron up to": cg.Spectrahedron(4, 2.0, equal=False),
    "fantope": cg.Fantope(5, 2),
}
POINTS = {
    "simplex of size 1": cg.Simplex(1, 3.0),
    "box of no width": cg.Box([1.0, 2.0], [1.0, 2.0]),
    "spectrahedron of size 1": cg.Spectrahedron(1, 4.0),
}
DOMAINS = POLYTOPES | CURVED | POINTS


def pairs(domains, names=tuple(INNERS)):
    """Each inner solver with each set that it can work on."""
    return pytest.mark.parametrize(
        ("name", "domain"),
        [
            pytest.param(name, domain, id=f"{name}-{label}")
            for name in names
            for label, domain in domains.items()
            if fits(domain, INNERS[name].needs)
        ],
    )


FRUGAL = tuple(name for name in INNERS if name != "exact")
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())
every_pair, every_frugal_pair = pairs(DOMAINS), pairs(DOMAINS, FRUGAL)
every_polytope = pytest.mark.parametrize("domain", POLYTOPES.values(), ids=POLYTOPES.keys())
every_seed = pytest.mark.parametrize("seed", range(4))
every_rule = pytest.mark.parametrize(
    "stop", [absolute(3e-2), relative(0.3, 1e-3)], ids=["absolute", "relative"]
)  # condg is sublinear: what is moderate here is a thousand calls there


def watched(domain):
    """(the set with its linear oracle counted, in all its forms, the calls so far)"""
    calls = []
    members = {name: getattr(domain, name) for name in dir(domain) if not name.startswith("_")}

    def counted(oracle):
        def ask(direction, *how):
            calls.append(direction)
            return oracle(direction, *how)

        return ask

    oracles = {
        name: counted(members[name]) for name in ("lmo", "atom", "atoms", "lmo_near", "beyond") if name in members
    }
    return SimpleNamespace(**members | oracles), calls


def subproblem(domain, seed):
    """A gradient, a centre and a step size, the first two of any size and read-only."""
    rng = np.random.default_rng(seed)
    g = 10.0 ** rng.integers(-1, 2) * rng.standard_normal(domain.shape)
    u = 0.5 * domain.start() + 0.3 * domain.lmo(rng.standard_normal(domain.shape))
    u = u + 0.2 * domain.lmo(rng.standard_normal(domain.shape))
    g.setflags(write=False)
    u.setflags(write=False)
    return g, u, float(rng.uniform(0.05, 0.5))


def solve(name, domain, g, u, gamma, stop, max_calls=None):
    """The prox point, and how many linear oracle calls it took."""
    solver = INNERS[name].factory() if name == "exact" else INNERS[name].factory(max_calls)
    region, calls = watched(domain)
    return solver.solve(region, g, u, gamma, stop, solver.init(region, u)), len(calls)


def true_gap(domain, g, u, gamma, p):
    direction = g + (p - u) / gamma
    return float(np.sum(direction * (p - domain.lmo(direction))))


def rounding(domain, g, gamma):
    """What rounding can do to a gap on this problem."""
    return 1e-12 * (1 + np.linalg.norm(g) + domain.diameter / gamma) * (1 + domain.max_norm)


def moved(p, u, gamma):
    return float(np.sum((p - u) ** 2)) / gamma


def assert_honest(name, domain, g, u, gamma, p, gap):
    """The gap is the true one; spectral's is a bound."""
    noise, true = rounding(domain, g, gamma), true_gap(domain, g, u, gamma, p)
    assert gap >= 0 and true <= gap + noise
    assert name == "spectral" or gap - noise <= true
