"""What the spectral inner solver must do besides test_inners.py: on every kind of spectrum and shape, and at low rank."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tests.contract.inners import moved, rounding, watched

import condgrad as cg
from condgrad.inner import absolute, relative
from condgrad.inner.spectral import SMALL_BLOCK, SPARE, BlockResidual, kept_vectors
from condgrad.linalg.lanczos import singular_ritz
from condgrad.points import LowRank, Pattern, SparsePlusLowRank, norm2

SMALL = {
    "tall": cg.NuclearBall((90, 7), 3.0),
    "wide": cg.NuclearBall((7, 90), 3.0),
    "nuclear": cg.NuclearBall((40, 30), 3.0),
    "row": cg.NuclearBall((1, 6), 2.0),
    "column": cg.NuclearBall((6, 1), 2.0),
    "spectrahedron": cg.Spectrahedron(30, 3.0),
    "spectrahedron up to": cg.Spectrahedron(30, 3.0, equal=False),
    "fantope": cg.Fantope(30, 4),
    "fantope of high rank": cg.Fantope(20, 17),
}
"""Here the linear oracle is a full decomposition."""
LARGE = {
    "nuclear": cg.NuclearBall((90, 80), 3.0),
    "spectrahedron": cg.Spectrahedron(80, 3.0),
    "fantope": cg.Fantope(80, 6),
}
"""Here it is a Lanczos method, to an accuracy."""
SIZES = (1e-2, 1.0, 1e2, 1e8)
GAMMA = 0.1


def over(sets):
    return pytest.mark.parametrize("domain", sets.values(), ids=sets.keys())


def with_values(domain, values, rng):
    m, n = domain.shape
    U = np.linalg.qr(rng.standard_normal((m, len(values))))[0]
    V = U if domain.spectrum == "eigen" else np.linalg.qr(rng.standard_normal((n, len(values))))[0]
    return (U * values) @ V.T


def gradients(domain, rng):
    """By what is hard about their spectra."""
    k = min(domain.shape)
    return {
        "random": rng.standard_normal(domain.shape),
        "clustered": with_values(domain, np.r_[np.ones(k // 2), np.full(k - k // 2, 0.999)], rng),
        "equal": with_values(domain, np.ones(k), rng),
        "close": with_values(domain, 1 + 1e-9 * np.arange(k), rng),
        "falling": with_values(domain, -(0.7 ** np.arange(k)), rng),
        "of rank 2": with_values(domain, np.array([-1.0, -0.5])[:k], rng),
        "zero": np.zeros(domain.shape),
    }


def centres(domain, rng):
    vertices = [domain.lmo(rng.standard_normal(domain.shape)) for _ in range(3)]
    return {
        "start": domain.start(),
        "low-rank start": np.asarray(domain.low_rank_start()),
        "vertex": vertices[0],
        "of low rank": 0.5 * vertices[1] + 0.5 * vertices[2],
        "of any rank": domain.project(0.2 * domain.max_norm * rng.standard_normal(domain.shape)),
    }


def cases(domain, seed=0, sizes=SIZES):
    """Every spectrum from every centre, in one size each: the sizes take turns, so that each spectrum and each centre has all."""
    rng = np.random.default_rng(seed)
    pairs = product(enumerate(gradients(domain, rng).items()), enumerate(centres(domain, rng).items()))
    sized = [(*spectrum, *centre, sizes[(i + j) % len(sizes)]) for (i, spectrum), (j, centre) in pairs]
    return [(f"{spectrum}, {centre}, {size}", size * g, u) for spectrum, g, centre, u, size in sized]


def least(domain, direction):
    """min <direction, x> over the set, by a full decomposition."""
    if domain.spectrum == "singular":
        return -domain.radius * np.linalg.norm(direction, 2)
    values = np.linalg.eigvalsh((direction + direction.T) / 2)
    if isinstance(domain, cg.Fantope):
        return values[: domain.rank].sum()
    return domain.radius * (values[0] if domain.equal else min(0.0, values[0]))


def true_gap(domain, g, u, p):
    direction = g + (p - u) / GAMMA
    return float(np.sum(direction * p)) - least(domain, direction)


def noise(domain, g):
    return 10 * rounding(domain, g, GAMMA)


def solved(solver, domain, g, u, stop, memory=None):
    return solver.solve(domain, g, u, GAMMA, stop, solver.init(domain, u) if memory is None else memory)


# --------------------------------------------------------------------------------------------------------------- arrays


def rules(g):
    """Absolute and relative, and one that nothing but rounding ends; scaled along with the gradient."""
    size = max(np.abs(g).max(), 1.0)
    return absolute(1e-6 * size), relative(0.1, 1e-9 * size), absolute(0.0), absolute(-1.0)


@over(SMALL)
def test_every_spectrum_from_every_centre(domain):
    for name, g, u in cases(domain):
        for stop in rules(g):
            p, gap, _ = solved(cg.Spectral(), domain, g, u, stop)
            allowed, slack, true = stop(moved(p, u, GAMMA)), noise(domain, g), true_gap(domain, g, u, p)
            assert domain.contains(p, 1e-8), name
            assert true <= gap + slack and gap <= max(allowed, 0.0) + slack, name
            exact = domain.project(u - GAMMA * g)
            lemma = np.sqrt(gap / GAMMA) + np.sqrt(slack / GAMMA) + 1e-9 * np.linalg.norm(g)
            assert np.linalg.norm(p - exact) / GAMMA <= lemma, name


@over(LARGE)
def test_every_spectrum_of_larger_matrices(domain):
    """The stated gap is a bound, however rough the accuracy."""
    for name, g, u in cases(domain, sizes=(1e-2, 1e8)):
        for stop in rules(g)[1:3]:
            p, gap, _ = solved(cg.Spectral(), domain, g, u, stop)
            slack = noise(domain, g)
            assert domain.contains(p, 1e-8), name
            assert true_gap(domain, g, u, p) <= gap + slack, name
            assert gap <= max(stop(moved(p, u, GAMMA)), 0.0) + slack, name


@over(SMALL | {f"{name}, large": domain for name, domain in LARGE.items()})
@pytest.mark.parametrize("solver", [cg.Spectral(1), cg.Spectral(3), cg.Spectral(4, 1.25)], ids=str)
def test_what_ends_early_is_nearer_than_the_centre(domain, solver):
    """So F goes down with it: its prox objective is below that of the centre."""
    for name, g, u in cases(domain, sizes=(0.1, 10.0)):
        p, gap, _ = solved(solver, domain, g, u, relative(0.5, 0.0))
        z = u - GAMMA * g
        assert domain.contains(p, 1e-8), name
        assert np.linalg.norm(p - z) <= np.linalg.norm(u - z) * (1 + 1e-9) + 1e-13 * domain.max_norm, name
        assert true_gap(domain, g, u, p) <= gap + noise(domain, g), name


@over(SMALL)
def test_memory_saves_calls(domain):
    """The same problem again is one call and the same point; memory is not written to."""
    for name, g, u in cases(domain, sizes=(1.0,)):
        region, calls = watched(domain)
        solver, stop = cg.Spectral(), absolute(1e-6)
        cold = solved(solver, region, g, u, stop)
        before, kept = len(calls), cold.memory.copy()
        cold.memory.setflags(write=False)
        again = solved(solver, region, g, u, stop, cold.memory)
        assert len(calls) == before + 1, name
        assert np.linalg.norm(again.point - cold.point) <= 2e-3 * np.sqrt(GAMMA), name
        assert np.array_equal(cold.memory, kept)
        assert np.linalg.norm(kept.T @ kept - np.eye(kept.shape[1])) <= 1e-10, name


def test_any_memory_will_do():
    """Of another problem, too narrow, too wide, empty, or with the same column many times."""
    domain, rng = SMALL["nuclear"], np.random.default_rng(0)
    g, u = rng.standard_normal(domain.shape), domain.start()
    exact = domain.project(u - GAMMA * g)
    one = np.linalg.qr(rng.standard_normal((30, 1)))[0]
    for memory in (np.zeros((30, 0)), one, np.eye(30), np.repeat(one, 40, axis=1), np.linalg.qr(np.ones((30, 9)))[0]):
        p, gap, _ = solved(cg.Spectral(), domain, g, u, absolute(1e-10), memory)
        assert gap <= 1e-10 and np.linalg.norm(p - exact) <= 1e-5


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spectrum", ["eigen", "singular"])
def test_with_the_outside_at_its_limit_nothing_is_beyond_y(spectrum, seed):
    """And at y itself is the largest value of the whole: the limit is a Schur complement, which gives nothing away. Of singular
    values it bounds both signs at once, so what they may be is the geometric mean of it and y."""
    rng = np.random.default_rng(seed)
    rest, coupling, y = rng.uniform(0, 1, 4), 0.3 * rng.standard_normal((6, 4)), 2 + rng.uniform()
    seen = BlockResidual(spectrum, rest, coupling, 1.0)
    limit = seen.limit(y)
    if spectrum == "eigen":
        whole = np.block([[np.diag(rest), coupling.T], [coupling, limit * np.eye(6)]])
    else:
        whole = np.block([[np.diag(rest), np.zeros((4, 6))], [coupling, np.sqrt(y * limit) * np.eye(6)]])
    assert np.linalg.norm(whole, 2) == pytest.approx(y, rel=1e-12)
    reach = seen.least_bound(limit)
    assert seen.limit(reach) >= limit and y * (1 - 1e-12) <= reach <= y + 0.02 * (y - 1)


@pytest.mark.parametrize("growth", [1, 0.5, 0])
def test_growth_is_above_1(growth):
    with pytest.raises(ValueError, match="growth of Spectral must be above 1"):
        cg.Spectral(growth=growth)
    with pytest.raises(ValueError, match="max_calls"):
        cg.Spectral(0)


# --------------------------------------------------------------------------------------------------- points of low rank


def structured(domain, rng, rank=3, density=0.2):
    """(g sparse + low rank, u of low rank) as they are and as arrays; symmetric where the set is."""
    m, n = domain.shape
    eigen = domain.spectrum == "eigen"
    seen = rng.random((m, n)) < density
    seen = seen | seen.T if eigen else seen
    rows, cols = np.nonzero(seen)
    S = rng.standard_normal((m, n))
    S = S + S.T if eigen else S
    low = LowRank(rng.standard_normal((m, rank)), rng.standard_normal((n, rank)))
    g = SparsePlusLowRank(Pattern(rows, cols, (m, n)), S[rows, cols], 0.1 * low)
    u = domain.low_rank_start()
    for weight in (0.5, 0.3):
        v = domain.lmo(rng.standard_normal(domain.shape))
        left, sigma, right = np.linalg.svd(v)
        k = int(np.sum(sigma > 1e-9))
        u = (1 - weight) * u + weight * LowRank(left[:, :k] * sigma[:k], right[:k].T)
    return g, u, np.asarray(g), np.asarray(u)


@over({name: SMALL[name] for name in SMALL if name not in ("row", "column")} | {"large": LARGE["nuclear"]})
@pytest.mark.parametrize("seed", range(4))
def test_points_of_low_rank_are_the_arrays_that_they_stand_for(domain, seed):
    g, u, G, U = structured(domain, np.random.default_rng(seed))
    exact = domain.project(U - GAMMA * G)
    for stop in (absolute(1e-8), relative(0.1, 1e-9)):
        p, gap, memory = solved(cg.Spectral(), domain, g, u, stop)
        assert isinstance(p, LowRank) and p.rank <= max(np.linalg.matrix_rank(exact, 1e-6) + 8, min(domain.shape) / 2)
        P, slack = np.asarray(p), noise(domain, G)
        assert domain.contains(p, 1e-8) and domain.contains(P, 1e-8)
        assert true_gap(domain, G, U, P) <= gap + slack
        assert gap <= stop(norm2(p - u) / GAMMA) + slack
        assert np.linalg.norm(P - exact) <= np.sqrt(gap * GAMMA) + 1e-6
        again = solved(cg.Spectral(), domain, g, p, stop, memory)
        assert domain.contains(again.point, 1e-8)


# -------------------------------------------------------------------------------------------------------- at the edges


def test_many_equal_values_from_zero():
    """The proof goes through many narrow blocks."""
    domain = cg.NuclearBall((51, 95), 3.0)
    for seed in range(15):
        rng = np.random.default_rng(seed)
        g = with_values(domain, rng.choice([0.0, 0.99, 1.0], 51), rng)
        p, gap, _ = solved(cg.Spectral(), domain, g, np.zeros(domain.shape), absolute(-1.0))
        assert true_gap(domain, g, np.zeros(domain.shape), p) <= gap + noise(domain, g)


@over(LARGE)
@pytest.mark.parametrize("size", [1e-90, 1e-40, 1e15, 1e40, 1e90])
def test_any_scale(domain, size):
    rng = np.random.default_rng(0)
    g, u = size * gradients(domain, rng)["random"], centres(domain, rng)["of low rank"]
    for stop in (relative(0.1, 0.0), absolute(1e-3 * size), absolute(1e100)):
        p, gap, _ = solved(cg.Spectral(), domain, g, u, stop)
        assert domain.contains(p, 1e-8)
        assert true_gap(domain, g, u, p) <= gap + noise(domain, g) and np.isfinite(gap)


def test_a_narrow_memory_and_a_set_that_needs_more():
    domain = cg.Fantope(80, 30)
    g, u = np.random.default_rng(0).standard_normal((80, 80)), domain.start()
    for columns in (0, 1, 5):
        p, gap, _ = solved(cg.Spectral(4, growth=1.25), domain, g, u, relative(0.5, 0.0), np.eye(80, columns))
        assert domain.contains(p, 1e-8) and true_gap(domain, g, u, p) <= gap + noise(domain, g)


@over({name: SMALL[name] for name in ("nuclear", "spectrahedron up to", "fantope")})
@pytest.mark.parametrize("times", [2.0**-30, 2.0**30])
def test_a_longer_step_along_a_shorter_gradient(domain, times):
    """The same z, to the bit: so the same point, and the gap is on the gradient's scale."""
    for (name, g, u), allowed in product(cases(domain, sizes=(1.0,)), (1e-6, 0.0)):
        solver = cg.Spectral(6)
        p, gap, _ = solved(solver, domain, g, u, absolute(allowed))
        same = solver.solve(domain, g / times, u, times * GAMMA, absolute(allowed / times), solver.init(domain, u))
        assert np.array_equal(same.point, p) and same.gap * times == gap, name


@pytest.mark.parametrize("times", [2.0**-20, 2.0**20])
def test_a_larger_set(times):
    """All is as much larger, to the bit, and the gap, which is a product of two, by the square."""
    domain, larger = SMALL["nuclear"], cg.NuclearBall((40, 30), 3.0 * times)
    for (name, g, u), allowed in product(cases(domain, sizes=(1.0,)), (1e-6, 0.0)):
        if not (g.any() or u.any()):
            continue  # 0 has no scale
        for solver in (cg.Spectral(1), cg.Spectral(6)):
            p, gap, _ = solved(solver, domain, g, u, absolute(allowed))
            same = solved(solver, larger, times * g, times * u, absolute(allowed * times**2))
            assert np.array_equal(same.point, times * p) and same.gap == times**2 * gap, name


@over(SMALL | LARGE)
@pytest.mark.parametrize("size", SIZES)
def test_a_full_decomposition_gives_the_projection(domain, size):
    """With ``full_below`` a prox needs no passes; the point is the projection up to rounding."""
    rng = np.random.default_rng(0)
    u = domain.start()
    g = size * rng.standard_normal(domain.shape)
    g = g if domain.spectrum == "singular" else g + g.T
    inner = cg.Spectral(4, 1.12, full_below=100)
    prox = inner.solve(domain, g, u, GAMMA, absolute(1e-12), inner.init(domain, u))
    exact = domain.project(u - GAMMA * g)
    np.testing.assert_allclose(np.asarray(prox.point), exact, atol=1e-9 * (1 + GAMMA * size))
    assert 0 <= prox.gap <= 1e-9 * (1 + size) * domain.trace * np.sqrt(max(domain.shape)) + 1e-12


def test_when_a_prox_decomposes_its_matrix():
    """After as many passes as take the predicted work of the decomposition.

    At once if z is small or the block wide; never if z is too large or the solver does not allow it.
    """
    inner, narrow, z = cg.Spectral(full_below=600), np.zeros((600, 16)), np.zeros
    passes = [inner.passes_before_decomposition(z((n, n)), narrow) for n in (30, 100, 200, 400, 600, 601)]
    assert passes[:2] == [0, 0] and 1 <= passes[2] <= 4 and passes[2] < passes[3] < passes[4] < passes[5] == np.inf
    assert inner.passes_before_decomposition(z((200, 200)), np.zeros((200, 80))) == 0
    assert inner.passes_before_decomposition(z((600, 2400)), narrow) < np.inf
    assert inner.passes_before_decomposition(z((600, 2401)), narrow) == np.inf
    assert cg.Spectral().passes_before_decomposition(z((2, 2)), z((2, 2))) == np.inf


@pytest.mark.parametrize("shape", [(90, 70), (70, 90)])
def test_a_decomposition_after_passes_finds_what_they_miss(shape):
    """The warm block is orthogonal to all that the projection keeps."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((n, 70)))[0] for n in shape)
    z = (left * np.geomspace(1.0, 1e-3, 70)) @ right.T
    domain, u = cg.NuclearBall(shape, 1.0), np.zeros(shape)
    memory = right[:, 40:56]
    exact = domain.project(z)
    found = {
        below: cg.Spectral(1, full_below=below).solve(domain, -z, u, 1.0, absolute(1e-9), memory) for below in (0, 90)
    }
    assert np.linalg.norm(found[0].point - exact) > 0.1
    assert np.linalg.norm(found[90].point - exact) <= 1e-9 and found[90].gap <= 1e-9


@pytest.mark.parametrize("shape", [(90, 70), (70, 90)])
@pytest.mark.parametrize("rank", [0, 1, 20, 70])
@pytest.mark.parametrize("radius", [1e-9, 5.0, 1e4])
def test_a_block_for_the_vectors_that_a_set_keeps(shape, rank, radius):
    """One pass from the block gives the projection, whether fewer or more columns are expected. Values may be equal, or 0."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((n, 70)))[0][:, :rank] for n in shape)
    z = (left * np.linspace(2.0, 1.0, rank).round(1)) @ right.T
    domain = cg.NuclearBall(shape, radius)
    exact = domain.project(z)
    for columns in (0, 12, 40, 1000):
        block = kept_vectors(domain, z, columns)
        U, values, V = singular_ritz(z, block)
        np.testing.assert_allclose((U * domain.shrink(values)) @ V.T, exact, rtol=0, atol=1e-13)
        assert block.shape[1] <= max(int(np.sum(domain.shrink(values) > 0)), 1) + SPARE


def test_the_rank_of_an_estimate_grows_by_half_where_blocks_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The set keeps all values, so that nothing but the limit bounds the rank."""
    rng, rank, most = np.random.default_rng(0), 40, {}
    g, u = rng.standard_normal((300, 300)), np.zeros((300, 300))
    memory = np.linalg.qr(rng.standard_normal((300, rank + SPARE)))[0]
    for numbers in (SMALL_BLOCK, 0):
        monkeypatch.setattr("condgrad.inner.spectral.SMALL_BLOCK", numbers)
        p = cg.Spectral().estimate(cg.NuclearBall((300, 300), 1e9), g, u, GAMMA, memory)[0]
        most[numbers] = np.linalg.matrix_rank(np.asarray(p))
    assert rank < most[0] <= 1.5 * rank + SPARE < most[SMALL_BLOCK] <= 2.5 * rank + SPARE
