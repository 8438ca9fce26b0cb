"""What every inner solver must do: a prox point of the set, to the accuracy that was asked for, with its true gap."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.problems import projection

import condgrad as cg
from condgrad.inner import INNERS, absolute, inner_solver, relative
from condgrad.inner.corrective import Hull
from condgrad.inner.simplex_qp import factored, nearest_weights
from condgrad.protocols import Projectable, SpectralSet, fits

quick = settings(max_examples=150, deadline=None, derandomize=True, database=None)

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
NEEDS = {"exact": Projectable, "spectral": SpectralSet}


def pairs(domains, names=tuple(INNERS)):
    """Each inner solver with each set that it can work on."""
    return pytest.mark.parametrize(
        ("name", "domain"),
        [
            pytest.param(name, domain, id=f"{name}-{label}")
            for name in names
            for label, domain in domains.items()
            if name not in NEEDS or fits(domain, NEEDS[name])
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

    oracles = {name: counted(members[name]) for name in ("lmo", "lmo_near", "beyond") if name in members}
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
    solver = INNERS[name]() if name == "exact" else INNERS[name](max_calls)
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


# ------------------------------------------------------------------------------------------------------------ contracts


@every_pair
@every_rule
@every_seed
def test_the_point_is_what_it_is_said_to_be(name, domain, stop, seed):
    g, u, gamma = subproblem(domain, seed)
    (p, gap, _), _ = solve(name, domain, g, u, gamma, stop)
    noise = rounding(domain, g, gamma)
    assert domain.contains(p)
    assert_honest(name, domain, g, u, gamma, p, gap)
    assert gap - noise <= stop(moved(p, u, gamma))


@every_pair
@every_rule
@every_seed
def test_lemma_1(name, domain, stop, seed):
    """|g~ - g|^2 <= V/gamma, against the exact projection."""
    g, u, gamma = subproblem(domain, seed)
    (p, gap, _), _ = solve(name, domain, g, u, gamma, stop)
    psi = projection(domain)(u - gamma * g)
    assert np.linalg.norm(p - psi) / gamma <= np.sqrt(gap / gamma) + 1e-9 * (1 + np.linalg.norm(g))


@every_frugal_pair
@pytest.mark.parametrize("max_calls", [1, 2, 3, 7])
def test_the_budget_is_kept_to_the_call(name, domain, max_calls):
    never = absolute(-1.0)
    for seed in range(4):
        g, u, gamma = subproblem(domain, seed)
        (p, gap, _), calls = solve(name, domain, g, u, gamma, never, max_calls)
        assert calls <= max_calls
        assert domain.contains(p)
        assert_honest(name, domain, g, u, gamma, p, gap)
        if calls < max_calls:  # then it ended because nothing was left to gain
            assert gap <= rounding(domain, g, gamma)


def test_condg_uses_the_budget_up():
    domain = POLYTOPES["simplex"]
    g, u, gamma = subproblem(domain, 1)
    for max_calls in (1, 2, 5, 50):
        (p, _, _), calls = solve("condg", domain, g, u, gamma, absolute(1e-12), max_calls)
        assert calls == max_calls
        assert (max_calls == 1) == np.array_equal(p, u), "one call only finds out how good u is"


@every_frugal_pair
def test_more_calls_do_not_hurt(name, domain):
    g, u, gamma = subproblem(domain, 2)

    def prox_value(max_calls):
        p = solve(name, domain, g, u, gamma, absolute(0.0), max_calls)[0].point
        return np.sum(g * p) + np.sum((p - u) ** 2) / (2 * gamma)

    values = np.array([prox_value(max_calls) for max_calls in range(1, 12)])
    assert np.all(np.diff(values) <= 1e-12 * (1 + np.abs(values).max()))


@every_pair
def test_zero_gradient(name, domain):
    _, u, gamma = subproblem(domain, 0)
    (p, gap, _), calls = solve(name, domain, np.zeros(domain.shape), u, gamma, absolute(1e-9))
    assert np.allclose(p, u, atol=1e-9)
    assert gap <= 1e-9
    assert calls <= 1


@every_pair
@every_rule
@every_seed
def test_from_a_vertex(name, domain, stop, seed):
    g, _, gamma = subproblem(domain, seed)
    vertex = domain.lmo(-g)  # the worst one
    (p, gap, _), _ = solve(name, domain, g, vertex, gamma, stop)
    assert domain.contains(p)
    assert_honest(name, domain, g, vertex, gamma, p, gap)
    best = domain.lmo(g)  # is optimal for a large gradient, and known to be after one call
    (p, gap, _), calls = solve(name, domain, 1e3 * g, best, gamma, absolute(1e-6))
    assert np.allclose(p, best, atol=1e-6)
    assert calls <= 1


@pairs(POINTS)
@every_seed
def test_a_set_of_one_point(name, domain, seed):
    g, u, gamma = subproblem(domain, seed)
    for stop in (absolute(0.0), relative(0.1, 0.0)):
        (p, gap, _), calls = solve(name, domain, g, u, gamma, stop)
        assert np.array_equal(p, domain.start()) and gap == 0 and calls <= 1


@every_pair
def test_inputs_and_memory_are_not_written_to(name, domain):
    g, u, gamma = subproblem(domain, 3)
    solver = inner_solver(name, domain, 20)
    memory = solver.init(domain, u)
    for _ in range(3):
        if isinstance(memory, Hull):
            for array in (*memory.atoms, memory.gram, memory.weights):
                array.setflags(write=False)
        once = solver.solve(domain, g, u, gamma, absolute(1e-3), memory)
        twice = solver.solve(domain, g, u, gamma, absolute(1e-3), memory)
        assert once.point.tobytes() == twice.point.tobytes() and once.gap == twice.gap
        memory = once.memory


def test_a_stop_rule_says_how_large_a_gap_may_be_after_this_way():
    assert absolute(0.5)(0.0) == absolute(0.5)(100.0) == 0.5
    rule = relative(0.25, 0.1)
    assert rule(0.0) == rule(0.4) == 0.1 and rule(1.0) == 0.25


def test_inner_solvers_by_name():
    simplex, l3 = POLYTOPES["simplex"], CURVED["l3"]
    assert inner_solver("auto", simplex) == cg.Exact()
    assert inner_solver("auto", l3, 7) == cg.Corrective(7)
    assert inner_solver("condg", simplex, 7) == cg.CondG(7)
    for spectral in (CURVED["nuclear"], CURVED["spectrahedron"], CURVED["fantope"]):
        assert inner_solver("auto", spectral) == inner_solver("spectral", spectral) == cg.Spectral()
        limited = inner_solver("auto", spectral, 7)
        assert isinstance(limited, cg.Spectral) and limited.max_calls <= 7 and limited.growth > 1
        assert inner_solver("exact", spectral) == cg.Exact()
    assert inner_solver("auto", cg.SpectralBall((3, 3))) == cg.Exact(), "whose projections have full rank"
    with pytest.raises(TypeError, match=r"^The exact inner solver needs a set that projects, LpBall does not: use '"):
        inner_solver("exact", l3)
    with pytest.raises(
        TypeError, match=r"^The spectral inner solver needs a spectral set .*, Simplex is none: use 'auto'"
    ):
        inner_solver("spectral", simplex)
    with pytest.raises(ValueError, match="Unknown inner solver 'correctiv': did you mean 'corrective'"):
        inner_solver("correctiv", simplex)


# ----------------------------------------------------------------------------------------------------------- corrective


@every_polytope
@pytest.mark.parametrize("seed", range(12))
def test_corrective_is_exact_on_polytopes(domain, seed):
    g, u, gamma = subproblem(domain, seed)
    (p, gap, _), calls = solve("corrective", domain, g, u, gamma, absolute(1e-12))
    assert np.linalg.norm(p - domain.project(u - gamma * g)) <= 1e-6
    assert gap <= 1e-12
    assert calls <= 2 * np.prod(domain.shape) + 2, "a handful of atoms, not a sublinear crawl"


@every_polytope
@every_seed
def test_corrective_remembers(domain, seed):
    """The same problem again is one call; one close by is a few."""
    g, u, gamma = subproblem(domain, seed)
    solver = cg.Corrective()
    region, calls = watched(domain)
    cold = solver.solve(region, g, u, gamma, absolute(1e-10), solver.init(region, u))
    n_cold = len(calls)
    again = solver.solve(region, g, u, gamma, absolute(1e-10), cold.memory)
    assert len(calls) == n_cold + 1
    assert np.allclose(again.point, cold.point, atol=1e-5)
    solver.solve(region, 1.001 * g, u, gamma, absolute(1e-10), cold.memory)
    assert len(calls) - n_cold - 1 <= max(3, n_cold / 2)


@every_domain
@every_seed
def test_what_corrective_remembers_is_its_point(domain, seed):
    g, u, gamma = subproblem(domain, seed)
    hull = solve("corrective", domain, g, u, gamma, absolute(1e-3))[0].memory
    p = solve("corrective", domain, g, u, gamma, absolute(1e-3))[0].point
    assert hull.weights.min() > 0 and hull.weights.sum() == pytest.approx(1, abs=1e-12)
    combined = sum(w * a for w, a in zip(hull.weights, hull.atoms, strict=True))
    assert np.allclose(hull.origin + combined, p, atol=1e-12)
    exact = [[np.sum(a * b) for b in hull.atoms] for a in hull.atoms]
    assert np.allclose(hull.gram, exact, atol=1e-12 * (1 + domain.max_norm**2))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("domain", POLYTOPES.values(), ids=POLYTOPES.keys())
def test_corrective_is_no_worse_than_its_centre_whatever_it_remembers(domain, seed):
    """The centre is an atom too: with the memory of another point and one call, the prox objective does not go up."""
    rng = np.random.default_rng(seed)
    u, elsewhere = domain.project(rng.standard_normal(domain.shape)), domain.lmo(rng.standard_normal(domain.shape))
    g = 0.1 * rng.standard_normal(domain.shape)
    solver = cg.Corrective(1)
    p = solver.solve(domain, g, u, 0.5, absolute(0.0), solver.init(domain, elsewhere)).point
    z = u - 0.5 * g
    assert np.linalg.norm(p - z) <= np.linalg.norm(u - z) + 1e-12


# ------------------------------------------------------------------------------------------- the small quadratic programme


def nearest_in_hull(P, z):
    """The distance from z to the hull of the rows of P, by trying the affine hull of every subset of them."""
    best = np.inf
    for size in range(1, len(P) + 1):
        for chosen in combinations(range(len(P)), size):
            base, edges = P[chosen[0]], P[list(chosen[1:])] - P[chosen[0]]
            steps = np.linalg.lstsq(edges.T, z - base, rcond=None)[0] if size > 1 else np.zeros(0)
            if steps.min(initial=0.0) >= -1e-9 and steps.sum() <= 1 + 1e-9:
                best = min(best, np.linalg.norm(base + steps @ edges - z))
    return best


def check_weights(P, z, start):
    w, _ = nearest_weights(P @ P.T, P @ z, start)
    assert w.min() >= 0 and w.sum() == pytest.approx(1, abs=1e-12)
    scale = 1 + np.abs(P).max() + np.abs(z).max()
    slope = P @ (w @ P - z)  # optimal where no atom is better than the mix
    assert slope @ w - slope.min() <= 1e-11 * scale**2
    return w, scale


@quick
@given(data=st.data())
def test_nearest_weights_by_trying_all_supports(data):
    """Atoms with small whole entries: many are equal, many are affinely dependent, many problems are ties."""
    n, d = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    entries = st.lists(st.integers(-3, 3), min_size=n * d, max_size=n * d)
    P = np.array(data.draw(entries), dtype=float).reshape(n, d)
    z = np.array(data.draw(st.lists(st.integers(-8, 8), min_size=d, max_size=d))) / 2
    start = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=float)
    start[data.draw(st.integers(0, n - 1))] += 1
    w, scale = check_weights(P, z, start / start.sum())
    assert np.linalg.norm(w @ P - z) <= nearest_in_hull(P, z) + 1e-7 * scale


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), d=st.integers(1, 8), inside=st.booleans())
def test_nearest_weights_on_random_atoms(seed, n, d, inside):
    """Up to 30 atoms in up to 8 dimensions, one of them twice, one of them between two others; also with z in the hull."""
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((n, d))
    P[rng.integers(n)] = P[rng.integers(n)]
    P[rng.integers(n)] = (P[rng.integers(n)] + P[rng.integers(n)]) / 2
    z = rng.dirichlet(np.ones(n)) @ P if inside else 2 * rng.standard_normal(d)
    w, _ = check_weights(P, z, rng.dirichlet(np.ones(n)))
    if inside:
        assert np.linalg.norm(w @ P - z) <= 1e-6


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_factor_takes_up_what_is_independent_whatever_its_scale(scale):
    atoms = scale * np.random.default_rng(0).standard_normal((4, 6))
    gram = atoms @ atoms.T
    factor = factored(gram, np.arange(3)).with_atom(gram, 3)
    assert np.allclose(factor.R.T @ factor.R, gram + factor.shift, rtol=1e-12, atol=0)
    atoms[3] = atoms[:3].mean(axis=0)
    gram = atoms @ atoms.T
    with pytest.raises(np.linalg.LinAlgError, match="depends"):
        factored(gram, np.arange(3)).with_atom(gram, 3)


# ------------------------------------------------------------------------------------------------------------------- at the edges


@pytest.mark.parametrize("offset", [1e5, 1e6])
def test_corrective_far_from_the_origin(offset):
    """Without max_calls, as in the theory schedule, this does not end."""
    near, far = cg.Box(np.zeros(8), 1.0), cg.Box(np.full(8, offset), offset + 1.0)
    g, _, gamma = subproblem(near, 0)
    (p, gap, _), calls = solve("corrective", far, g, far.start(), gamma, absolute(1e-8), 2000)
    assert calls < 2000 and gap <= 1e-8
    assert np.linalg.norm(p - far.project(far.start() - gamma * g)) <= 1e-4


@pytest.mark.parametrize("domain", [CURVED[name] for name in ("l2", "l3", "nuclear", "nuclear wide")], ids=repr)
def test_corrective_ends_at_the_rounding_of_an_interior_solution(domain):
    g, u, gamma = subproblem(domain, 0)
    g, u = 1e-2 * g / np.linalg.norm(g), 0.1 * u
    (_, gap, _), calls = solve("corrective", domain, g, u, gamma, absolute(0.0), 2000)
    assert gap <= rounding(domain, g, gamma)
    assert calls < 2000


def test_corrective_ends_where_the_oracle_has_nothing_new():
    """With a step far beyond the set the answer is a vertex, known after two calls; what seems left of the gap is rounding."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        region, calls = watched(cg.LinfBall(25, 10.0))
        u, g = region.project(10 * rng.standard_normal(25)), rng.standard_normal(25)
        solver = cg.Corrective(100)
        solver.solve(region, g, u, 1e4, absolute(0.0), solver.init(region, u))
        assert len(calls) <= 5, seed


def test_corrective_where_atoms_are_a_rounding_apart():
    """And the gradient is 1e16 times as large as the set is wide."""
    one, other = np.array([np.nextafter(0.01, 1.0)]), np.array([0.01])
    domain = cg.Box(other, one)
    for u, start in ((one, other), (other, one), (other, other)):
        for slope in (-0.5, 0.5):
            solver = cg.Corrective(20)
            p, gap, _ = solver.solve(domain, np.array([slope]), u, 1.0, absolute(1e-3), solver.init(domain, start))
            assert domain.contains(p, 1e-15) and 0 <= gap <= 1e-3


def test_a_budget_of_no_calls():
    domain = POLYTOPES["simplex"]
    g, u, gamma = subproblem(domain, 1)
    with pytest.raises(ValueError, match="max_calls"):
        solve("condg", domain, g, u, gamma, absolute(1e-2), 0)


@pytest.mark.parametrize("seed", range(20))
def test_a_factor_from_before_changes_nothing(seed):
    """Atoms come one by one and the target moves, as in a run; the factor is carried along or made anew each time."""
    rng = np.random.default_rng(seed)
    P, z = rng.standard_normal((1, 6)), 2 * rng.standard_normal(6)
    weights, factor = np.ones(1), None
    for step in range(12):
        P, weights = np.vstack([P, rng.standard_normal(6)]), np.append(weights, 0.0)
        z = z + (0.3 * rng.standard_normal(6) if step % 4 == 3 else 0)
        anew, _ = nearest_weights(P @ P.T, P @ z, weights)
        weights, factor = nearest_weights(P @ P.T, P @ z, weights, factor)
        assert np.allclose(weights @ P, anew @ P, atol=1e-9)
        assert np.array_equal(factor.index, np.flatnonzero(weights))
        assert np.allclose(factor.R.T @ factor.R, (P @ P.T)[np.ix_(factor.index, factor.index)] + factor.shift)
