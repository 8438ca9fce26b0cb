"""What every set in the registry must do. A new set: one line in DOMAINS, and these tests run on it."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condgrad.domains import (
    DOMAINS,
    Box,
    Fantope,
    GroupBall,
    KyFanBall,
    L1Ball,
    L2Ball,
    LinfBall,
    LpBall,
    NuclearBall,
    ProjectableUserSet,
    Simplex,
    Spectrahedron,
    SpectralBall,
    UserSet,
    user_set,
)
from condgrad.linalg import lanczos
from condgrad.protocols import Domain, Projectable, fits

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)

MORE = {
    "simplex of one": Simplex(1, 3.0),
    "simplex of matrices": Simplex((2, 3)),
    "l1 of matrices": L1Ball((2, 2), 0.1),
    "l2 of one": L2Ball(1, 7.0),
    "linf of one": LinfBall(1),
    "lp 1.5": LpBall(4, 1.5, 0.5),
    "lp 1.01": LpBall(3, 1.01),
    "lp 80 of matrices": LpBall((2, 2), 80.0, 3.0),
    "group with labels": GroupBall(6, 0.5, groups=["a", "b", "a", "c", "b", "a"]),
    "group of rows together": GroupBall((3, 2), 3.0, groups=[1, 0, 1]),
    "group of one": GroupBall(1, 7.0),
    "one group": GroupBall(3, groups=[5, 5, 5]),
    "box far away": Box(np.full(3, 1e6), 1e6 + np.array([1e-3, 1.0, 2.0])),
    "box of matrices": Box(-1.0, np.ones((2, 3))),
    "nuclear wide": NuclearBall((2, 6), 0.5),
    "spectral wide": SpectralBall((2, 5), 0.3),
    "spectral row": SpectralBall((1, 4), 7.0),
    "spectral of one": SpectralBall((1, 1)),
    "ky fan tall": KyFanBall((7, 3), 2, 0.5),
    "ky fan like spectral": KyFanBall((4, 6), 1, 2.0),
    "ky fan like nuclear": KyFanBall((5, 3), 3, 2.0),
    "ky fan more ranks": KyFanBall((6, 6), 4),
    "ky fan of one": KyFanBall((1, 1), 1, 4.0),
    "spectrahedron up to": Spectrahedron((3, 3), 0.5, equal=False),
    "spectrahedron of one": Spectrahedron(1, 3.0),
    "spectrahedron of one up to": Spectrahedron(1, 3.0, equal=False),
    "fantope of rank 1": Fantope((4, 4), 1),
    "fantope of high rank": Fantope(6, 4),
    "fantope of full rank": Fantope(3, 3),
    "fantope of one": Fantope(1, 1),
    "user with project": user_set(lambda g: -np.sign(g), 3, diameter=2 * math.sqrt(3), project=lambda x: x.clip(-1, 1)),
}
SETS = {name: entry.example() for name, entry in DOMAINS.items()} | MORE
PROJECTABLE = {name: domain for name, domain in SETS.items() if fits(domain, Projectable)}
OURS = {name: domain for name, domain in SETS.items() if not isinstance(domain, UserSet | ProjectableUserSet)}
POLYTOPES = {name: domain for name, domain in SETS.items() if isinstance(domain, Simplex | L1Ball | LinfBall | Box)}


def over(sets):
    return pytest.mark.parametrize("domain", sets.values(), ids=sets.keys())


every_set, every_projectable, every_set_of_ours, every_polytope = map(over, (SETS, PROJECTABLE, OURS, POLYTOPES))


def group_norms(domain, x):
    return np.array([np.linalg.norm(x[domain.groups == label]) for label in np.unique(domain.groups)])


def sample(domain, rng):
    """A random point of the set, made without its oracle where the set is one of ours."""
    g = rng.standard_normal(domain.shape) * (rng.random(domain.shape) < 0.7)
    flat, r = g.ravel(), getattr(domain, "radius", 1.0) * rng.choice([1.0, rng.random()])
    match domain:
        case Simplex():
            return domain.radius * rng.dirichlet(np.full(g.size, 0.5)).reshape(domain.shape)
        case Box():
            return rng.uniform(domain.lower, domain.upper)
        case L1Ball() | L2Ball() | LinfBall() | LpBall():
            p = {L1Ball: 1, L2Ball: 2, LinfBall: np.inf}.get(type(domain)) or domain.p
            return r * g / (np.linalg.norm(flat, p) or 1.0)
        case GroupBall():
            return r * g / (group_norms(domain, g).sum() or 1.0)
        case NuclearBall():
            return r * g / (np.linalg.norm(g, "nuc") or 1.0)
        case SpectralBall():
            return r * g / (np.linalg.norm(g, 2) or 1.0)
        case KyFanBall():
            return r * g / (np.linalg.svd(g, compute_uv=False)[: domain.k].sum() or 1.0)
        case Spectrahedron():
            factor = rng.standard_normal((len(g), rng.integers(1, len(g) + 1)))
            return (domain.radius if domain.equal else r) * factor @ factor.T / np.sum(factor**2)
        case Fantope():
            n, basis = len(g), np.linalg.qr(rng.standard_normal(domain.shape))[0]
            values = rng.dirichlet(np.full(4, 0.3)) @ (
                rng.permuted(np.tile(np.arange(n), (4, 1)), axis=1) < domain.rank
            )
            return np.eye(n) - (basis * (1 - values)) @ basis.T
        case _:
            weights = rng.dirichlet(np.ones(3))
            return sum(w * domain.lmo(rng.standard_normal(domain.shape)) for w in weights)


def vertices(domain):
    """All of them, for the polytopes."""
    size = math.prod(domain.shape)
    match domain:
        case Simplex():
            rows = domain.radius * np.eye(size)
        case L1Ball():
            rows = domain.radius * np.concatenate([np.eye(size), -np.eye(size)])
        case LinfBall():
            rows = domain.radius * np.array(list(itertools.product([-1.0, 1.0], repeat=size)))
        case Box():
            rows = np.array(list(itertools.product(*zip(domain.lower.ravel(), domain.upper.ravel(), strict=True))))
    return rows.reshape(-1, *domain.shape)


def least(domain, g):
    """min <g, x> over the set, in closed form for the curved ones."""
    match domain:
        case L2Ball():
            return -domain.radius * np.linalg.norm(g)
        case LpBall():
            return -domain.radius * np.linalg.norm(g.ravel(), domain.p / (domain.p - 1))
        case GroupBall():
            return -domain.radius * group_norms(domain, g).max()
        case NuclearBall():
            return -domain.radius * np.linalg.norm(g, 2)
        case SpectralBall():
            return -domain.radius * np.linalg.norm(g, "nuc")
        case KyFanBall():
            return -domain.radius * max(np.linalg.norm(g, 2), np.linalg.norm(g, "nuc") / domain.k)
        case Spectrahedron():
            lowest = np.linalg.eigvalsh((g + g.T) / 2)[0]
            return domain.radius * (lowest if domain.equal else min(0.0, lowest))
        case Fantope():
            return np.linalg.eigvalsh((g + g.T) / 2)[: domain.rank].sum()
        case _:
            return min(np.vdot(g, v) for v in vertices(domain))


seeds = st.integers(0, 2**32 - 1)


def direction(domain, seed):
    """Normal, or with many zeros and ties."""
    rng = np.random.default_rng(seed)
    g = rng.standard_normal(domain.shape) if seed % 2 else rng.integers(-2, 3, domain.shape).astype(float)
    g.setflags(write=False)  # an oracle that writes into its input fails
    return g


@pytest.mark.parametrize("entry", DOMAINS.values(), ids=DOMAINS.keys())
def test_registry_says_what_is_so(entry):
    domain = entry.example()
    assert fits(domain, Domain)
    assert fits(domain, Projectable) == entry.projects
    assert (entry.name in POLYTOPES) == entry.polytope
    assert tuple(inspect.signature(entry.factory).parameters) == entry.parameters
    assert DOMAINS[entry.name] is entry and entry.notation and entry.oracle


@every_set
def test_frozen(domain):
    with pytest.raises(dataclasses.FrozenInstanceError):
        domain.shape = (1,)


@every_set
@quick
@given(seed=seeds)
def test_lmo_is_optimal_over_the_set(domain, seed):
    rng, g = np.random.default_rng(seed), direction(domain, seed)
    v = domain.lmo(g)
    slack = 1e-12 * np.linalg.norm(g) * domain.max_norm
    assert all(np.vdot(g, v) <= np.vdot(g, sample(domain, rng)) + slack for _ in range(20))


@every_set_of_ours
@quick
@given(seed=seeds)
def test_lmo_reaches_the_known_minimum(domain, seed):
    g = direction(domain, seed)
    assert np.vdot(g, domain.lmo(g)) == pytest.approx(least(domain, g), rel=1e-9, abs=1e-12 * domain.max_norm)


@every_set
@quick
@given(seed=seeds)
def test_lmo_answers_with_a_point_of_the_set_and_always_the_same(domain, seed):
    g = direction(domain, seed)
    v = domain.lmo(g)
    assert v.shape == domain.shape and v.dtype == np.float64
    assert domain.contains(v)
    assert np.array_equal(v, domain.lmo(g.copy()))
    assert not np.shares_memory(v, g)


@every_set_of_ours
@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e-8, 1e8, 1e200, 1e300])
def test_lmo_sees_the_direction_and_not_its_size(domain, scale):
    g = np.round(direction(domain, 1), 1) if scale > 1e-300 else np.sign(direction(domain, 1))
    assert np.allclose(domain.lmo(scale * g), domain.lmo(g), rtol=1e-9, atol=1e-9 * domain.max_norm)


@every_set
def test_lmo_is_total(domain):
    zero = np.zeros(domain.shape)
    assert domain.contains(domain.lmo(zero))
    assert np.array_equal(domain.lmo(zero), domain.lmo(zero))


@every_polytope
@pytest.mark.parametrize("seed", range(20))
def test_polytopes_answer_with_vertices(domain, seed):
    g = direction(domain, seed) * (seed > 0)
    assert any(np.array_equal(domain.lmo(g), corner) for corner in vertices(domain))


@every_set
@quick
@given(seed=seeds)
def test_diameter_and_max_norm_are_upper_bounds(domain, seed):
    rng = np.random.default_rng(seed)
    x, y = sample(domain, rng), sample(domain, rng)
    assert np.linalg.norm(x - y) <= domain.diameter * (1 + 1e-9) + 1e-15 * domain.max_norm
    assert np.linalg.norm(x) <= domain.max_norm * (1 + 1e-9)


@every_set
def test_diameter_and_max_norm_are_attained(domain):
    size, rng = math.prod(domain.shape), np.random.default_rng(0)
    trials = np.concatenate([np.ones((1, size)), np.eye(size), -np.eye(size), rng.standard_normal((100, size))])
    pairs = [(domain.lmo(g), domain.lmo(-g)) for g in trials.reshape(-1, *domain.shape)]
    assert max(np.linalg.norm(v - w) for v, w in pairs) == pytest.approx(domain.diameter, rel=1e-9)
    if not isinstance(domain, UserSet | ProjectableUserSet):  # theirs is a bound
        assert max(np.linalg.norm(v) for v, _ in pairs) == pytest.approx(domain.max_norm, rel=1e-9)


@every_set
def test_start(domain):
    assert domain.start().shape == domain.shape
    assert domain.contains(domain.start())


def test_start_is_the_middle():
    assert np.array_equal(Simplex(4, 2.0).start(), np.full(4, 0.5))
    assert np.array_equal(Box([0.0, -1.0], [1.0, 5.0]).start(), [0.5, 2.0])
    assert not L1Ball(3).start().any()
    assert np.array_equal(Spectrahedron(2, 3.0).start(), 1.5 * np.eye(2))
    assert not Spectrahedron(2, equal=False).start().any()
    assert np.array_equal(Fantope(4, 2).start(), 0.5 * np.eye(4))


@every_set
@quick
@given(seed=seeds)
def test_contains_its_points_and_no_others(domain, seed):
    rng, g = np.random.default_rng(seed), direction(domain, seed)
    assert domain.contains(sample(domain, rng))
    assert isinstance(domain.contains(domain.start()), bool)
    if g.any():
        outside = domain.lmo(g) - 1e-4 * (domain.diameter or domain.max_norm) * g / np.linalg.norm(g)
        assert not domain.contains(outside)
        assert domain.contains(outside, tolerance=10.0)


@every_set_of_ours
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_contains_nothing_that_is_not_finite(domain, bad):
    x = domain.start().copy()
    x.flat[0] = bad
    assert not domain.contains(x)


@every_projectable
@quick
@given(seed=seeds, scale=st.sampled_from([0.1, 1.0, 10.0, 1e5]))
def test_projection(domain, seed, scale):
    x = domain.start() + scale * direction(domain, seed)
    x.setflags(write=False)
    p = domain.project(x)
    size = np.linalg.norm(x) + domain.max_norm
    assert p.shape == domain.shape and domain.contains(p)
    assert np.linalg.norm(domain.project(p) - p) <= 1e-12 * size
    # p is nearest exactly if no point of the set makes an acute angle with x - p
    assert np.vdot(x - p, domain.lmo(p - x) - p) <= 1e-11 * size * (domain.diameter or domain.max_norm)


@every_projectable
@quick
@given(seed=seeds)
def test_projection_leaves_the_set_as_it_is(domain, seed):
    x = sample(domain, np.random.default_rng(seed))
    assert np.allclose(domain.project(x), x, rtol=1e-12, atol=1e-12 * domain.max_norm)


def test_projecting_a_far_point_keeps_the_sum():
    p = Simplex(3).project(1e12 + np.array([0.0, 0.25, -0.25]))
    assert p.sum() == pytest.approx(1.0, abs=1e-15)
    assert np.linalg.norm(L2Ball(2, 3.0).project(np.array([1e200, -1e200]))) == pytest.approx(3.0)


@pytest.mark.parametrize("shape", [(80, 70), (70, 90)])
@pytest.mark.parametrize("steps", [100, 12], ids=["by Lanczos", "with restarts"])
def test_nuclear_ball_of_large_matrices(shape, steps, monkeypatch):
    monkeypatch.setattr(lanczos, "STEPS", steps)
    restarts, restart = [], lanczos._Bidiagonal.restart
    monkeypatch.setattr(lanczos._Bidiagonal, "restart", lambda self: (restarts.append(1), restart(self)))
    D, ball = np.random.default_rng(5).standard_normal(shape), NuclearBall(shape, 2.0)
    v = ball.lmo(D)
    assert bool(restarts) == (steps == 12)
    assert np.vdot(D, v) == pytest.approx(-2 * np.linalg.norm(D, 2), rel=1e-12)
    assert np.array_equal(v, ball.lmo(D)) and ball.contains(v)
    assert ball.contains(ball.lmo(np.zeros(shape)))
    for scale in (1e-250, 1e250):
        assert np.allclose(ball.lmo(scale * D), v, atol=1e-9)


SPECIAL = {
    "identity": np.eye(90, 80),
    "orthogonal": np.linalg.qr(np.random.default_rng(6).standard_normal((80, 80)))[0],
    "many equal": np.diag(np.r_[np.ones(5), np.full(5, 0.999), np.zeros(80)]),
    "rank 1": np.outer(np.arange(80.0), np.ones(90)),
    "rank 3": np.random.default_rng(7).standard_normal((80, 3)) @ np.random.default_rng(8).standard_normal((3, 70)),
    "one entry": np.eye(1, 6400).reshape(80, 80),
    "close": np.diag(1 + 1e-9 * np.arange(80.0)),
}


@pytest.mark.parametrize("D", SPECIAL.values(), ids=SPECIAL.keys())
def test_nuclear_ball_where_singular_values_meet(D):
    """Where the minimiser is not unique, the answer is one of them, and always the same one."""
    ball = NuclearBall(D.shape)
    v = ball.lmo(D)
    assert ball.contains(v)
    assert np.vdot(D, v) == pytest.approx(-np.linalg.norm(D, 2), rel=1e-12)
    assert all(np.array_equal(v, ball.lmo(D)) for _ in range(5))


def test_given_arrays_are_copied():
    lower, upper = np.zeros(2), np.ones(2)
    box = Box(lower, upper)
    upper[:] = 9.0
    assert np.array_equal(box.upper, [1.0, 1.0]) and not box.upper.flags.writeable


def test_user_set_without_a_diameter_is_a_set_all_the_same():
    bare = user_set(lambda g: -g / np.linalg.norm(g), 2)
    assert fits(bare, Domain) and not fits(bare, Projectable)
    assert fits(user_set(lambda g: -g, 2, project=lambda x: x), Projectable)
