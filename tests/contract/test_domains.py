"""What every set in the registry must do. A new set: one entry in DOMAINS, and these tests run on it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import condgrad as cg
from condgrad.checks import NonFinite
from condgrad.domains import (
    DOMAINS,
    Box,
    Fantope,
    KyFanBall,
    L1Ball,
    L2Ball,
    NuclearBall,
    Product,
    ProjectableUserSet,
    Simplex,
    Spectrahedron,
    SpectralBall,
    UserSet,
    simplices,
    user_set,
)
from condgrad.domains.spectral import _spectra
from condgrad.linalg import lanczos
from condgrad.points import Structured
from condgrad.protocols import Domain, Projectable, fits
from condgrad.testing import check_domain

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)

SETS = {f"{e.name} {label}".strip(): domain for e in DOMAINS.values() for label, domain in e.examples().items()}
ENTRIES = {f"{e.name} {label}".strip(): e for e in DOMAINS.values() for label in e.examples()}
OURS = {name: domain for name, domain in SETS.items() if not isinstance(domain, UserSet | ProjectableUserSet)}


def over(sets):
    return pytest.mark.parametrize("domain", sets.values(), ids=sets.keys())


every_set, every_set_of_ours = over(SETS), over(OURS)


def entry_of(domain):
    return next(ENTRIES[name] for name, other in SETS.items() if other is domain)


def sample(domain, rng):
    """A random point of one of the sets, made without its oracle."""
    return entry_of(domain).sample(domain, rng)


seeds = st.integers(0, 2**32 - 1)


def direction(domain, seed):
    """Normal, or with many zeros and ties."""
    rng = np.random.default_rng(seed)
    g = rng.standard_normal(domain.shape) if seed % 2 else rng.integers(-2, 3, domain.shape).astype(float)
    g.setflags(write=False)  # an oracle that writes into its input fails
    return g


@pytest.mark.parametrize("entry", DOMAINS.values(), ids=DOMAINS.keys())
def test_registry_says_what_is_so(entry):
    first = next(iter(entry.examples()))
    assert DOMAINS[entry.name] is entry and entry.notation and entry.oracle and first == ""
    assert all(fits(domain, Domain) for domain in entry.examples().values())
    assert not entry.in_specs or (entry.sample and (entry.least or entry.vertices)), "something to compare with"


@every_set
def test_frozen(domain):
    with pytest.raises(dataclasses.FrozenInstanceError):
        domain.shape = (1,)


@pytest.mark.parametrize("name", SETS)
def test_every_set_keeps_its_contract(name):
    entry = ENTRIES[name]
    facts = {"sample": entry.sample, "least": entry.least, "vertices": entry.vertices}
    exact = "diameter" not in entry.bounds
    report = check_domain(SETS[name], **facts, exact_diameter=exact, tolerance=entry.accuracy, trials=20)
    assert report.passed and not report.notes, str(report)


@every_set_of_ours
@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e-8, 1e8, 1e200, 1e300])
def test_lmo_sees_the_direction_and_not_its_size(domain, scale):
    g = np.round(direction(domain, 1), 1) if scale > 1e-300 else np.sign(direction(domain, 1))
    answer, expected = domain.lmo(scale * g), domain.lmo(g)
    tied = abs(np.vdot(g, answer - expected)) <= 1e-14 * np.linalg.norm(g) * domain.max_norm  # another minimiser
    assert tied or np.allclose(answer, expected, rtol=1e-9, atol=1e-9 * domain.max_norm)


@over({name: domain for name, domain in OURS.items() if "max_norm" not in ENTRIES[name].bounds})
def test_max_norm_is_attained(domain):
    """By linear minimisations in the direction of the last answer, until the norm stays."""
    size, rng, largest = math.prod(domain.shape), np.random.default_rng(0), 0.0
    trials = np.concatenate([np.ones((1, size)), np.eye(size), -np.eye(size), rng.standard_normal((30, size))])
    for v in trials.reshape(-1, *domain.shape):
        for _ in range(300):
            v, last = domain.lmo(-v), v
            if np.array_equal(v, last):
                break
        largest = max(largest, np.linalg.norm(v))
        if largest >= domain.max_norm * (1 - 1e-9):
            break
    assert largest == pytest.approx(domain.max_norm, rel=1e-9)


@every_set_of_ours
def test_directions_that_are_not_numbers_are_refused_in_one_sentence(domain):
    for oracle in ("lmo", "atom") if hasattr(domain, "atom") else ("lmo",):
        for place in (0, -1):
            g = np.ones(domain.shape)
            g.flat[place] = np.nan
            with pytest.raises(NonFinite, match=r"^The direction given to .* holds NaN or Inf.*: check [^.]*\.$"):
                getattr(domain, oracle)(g)
        for shape in ((3, *domain.shape), (domain.shape[0] + 1, *domain.shape[1:])):
            with pytest.raises(ValueError, match=r"^The point given to .* has shape .* was expected[^.]*\.$"):
                getattr(domain, oracle)(np.ones(shape))


@every_set_of_ours
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_that_are_not_numbers_are_neither_projected_nor_contained(domain, bad):
    x = np.ones(domain.shape)
    x.flat[0] = bad
    if hasattr(domain, "contains"):
        assert not domain.contains(x)
    if hasattr(domain, "project"):
        with pytest.raises(NonFinite, match=r"^The point given to .* holds NaN or Inf.*: check [^.]*\.$"):
            domain.project(x)


@every_set_of_ours
def test_complex_directions_and_points_are_refused_in_one_sentence(domain):
    for oracle in ("lmo", "atom", "project", "contains"):
        if hasattr(domain, oracle):
            with pytest.raises(ValueError, match=r"^The point given to .* is complex, .*: give its real part\.$"):
                getattr(domain, oracle)(np.ones(domain.shape) + 1j)


@over(
    {
        name: d
        for name, d in OURS.items()
        if ENTRIES[name] in simplices.ENTRIES and hasattr(d, "atom") and math.prod(d.shape) > 1
    }
)
def test_no_entry_of_a_simplex_is_chosen_at_an_infinite_price(domain):
    g = np.zeros(domain.shape)
    g.flat[0] = np.inf
    try:
        vertex = domain.lmo(g)
    except NonFinite:
        first = np.eye(1, g.size).reshape(g.shape)
        assert domain.lmo(first).flat[0] > 0  # the set has no point without it
    else:
        assert vertex.flat[0] == 0 and domain.contains(vertex)


@over({name: d for name, d in OURS.items() if hasattr(d, "atom") and not isinstance(d, Product)})  # as its direction is
def test_atoms_keep_their_structure_and_equal_the_dense_answer(domain):
    for seed in range(6):
        g = direction(domain, seed)
        atom = domain.atom(g)
        assert isinstance(atom, Structured) and atom.shape == domain.shape
        assert np.array_equal(atom.to_dense(), domain.lmo(g))
        single = g.astype(np.float32)
        assert np.array_equal(domain.atom(single).to_dense(), domain.lmo(single.astype(float)))


def test_start_is_the_middle():
    assert np.array_equal(Simplex(4, 2.0).start(), np.full(4, 0.5))
    assert np.array_equal(Box([0.0, -1.0], [1.0, 5.0]).start(), [0.5, 2.0])
    assert not L1Ball(3).start().any()
    assert np.array_equal(Spectrahedron(2, 3.0).start(), 1.5 * np.eye(2))
    assert not Spectrahedron(2, equal=False).start().any()
    assert np.array_equal(Fantope(4, 2).start(), 0.5 * np.eye(4))


@over({name: domain for name, domain in OURS.items() if hasattr(domain, "project")})
@pytest.mark.parametrize("seed", range(4))
def test_the_projection_of_a_far_point_is_in_the_set(domain, seed):
    """At 1e8 diameters half of the digits of a point are lost, and none of those of the constraints may be."""
    rng = np.random.default_rng((seed, 5))
    far = 1e8 * (domain.diameter or domain.max_norm) * rng.standard_normal(domain.shape)
    assert domain.contains(domain.project(far))


@pytest.mark.parametrize("size", [1e4, 1e7, 1e10, 1e15])
def test_the_elliptope_projects_a_far_point_where_the_linear_minimum_is(size):
    """p is the projection of x exactly if p minimises <p - x, .> over the set."""
    for seed in range(3):
        domain, x = cg.Elliptope(12), size * np.random.default_rng(seed).standard_normal((12, 12))
        x = x + x.T
        p = domain.project(x)
        assert np.vdot(x - p, domain.lmo(p - x) - p) <= 1e-9 * np.linalg.norm(x)


def test_projecting_a_far_point_keeps_the_sum():
    p = Simplex(3).project(1e12 + np.array([0.0, 0.25, -0.25]))
    assert p.sum() == pytest.approx(1.0, abs=1e-15)
    assert np.linalg.norm(L2Ball(2, 3.0).project(np.array([1e200, -1e200]))) == pytest.approx(3.0)


@pytest.mark.parametrize("shape", [(80, 70), (70, 90)])
@pytest.mark.parametrize("steps", [100, 12], ids=["by Lanczos", "with restarts"])
def test_nuclear_ball_of_large_matrices(shape, steps, monkeypatch):
    monkeypatch.setattr(lanczos, "STEPS", steps)
    for size in ("MAX_GRAM_SIZE", "MAX_DENSE_GRAM_SIZE"):
        monkeypatch.setattr(_spectra, size, 0)
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
    "zero": np.zeros((80, 70)),
    "close": np.diag(1 + 1e-9 * np.arange(80.0)),
}


@pytest.mark.parametrize("gram", [400, 0], ids=["by a Gram matrix", "by Lanczos"])
@pytest.mark.parametrize("D", SPECIAL.values(), ids=SPECIAL.keys())
def test_nuclear_ball_where_singular_values_meet(D, gram, monkeypatch):
    """Where the minimiser is not unique, the answer is one of them, and always the same one."""
    monkeypatch.setattr(_spectra, "MAX_GRAM_SIZE", gram)
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


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [5, 100, 260])
def test_spectral_sets_refuse_directions_that_are_not_numbers_in_one_sentence(n, bad):
    """Small matrices are decomposed as a whole, larger ones by LAPACK for the lowest vectors or by a Lanczos method."""
    direction = np.ones((n, n))
    direction[1, 2] = bad
    for domain in (Spectrahedron(n), NuclearBall((n, n)), Fantope(n, 2), KyFanBall((n, n), 2), SpectralBall((n, n))):
        with pytest.raises(NonFinite, match=r"^The direction given to .* holds NaN or Inf.*\.$"):
            domain.lmo(direction)


@pytest.mark.parametrize("n", [64, 65, 256, 257])
def test_the_lowest_eigenvector_is_found_by_each_of_three_methods(n):
    g = np.random.default_rng(n).standard_normal((n, n))
    values, vectors = np.linalg.eigh((g + g.T) / 2)
    answer = Spectrahedron(n, 2.0).lmo(g)
    assert np.allclose(answer, 2.0 * np.outer(vectors[:, 0], vectors[:, 0]), atol=1e-6)
    assert float(np.vdot(g, answer)) == pytest.approx(2.0 * values[0], rel=1e-12)


@pytest.mark.parametrize(
    "matrix",
    [
        [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]],  # columns sum to 1, rows do not
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],  # rows sum to 1, columns do not
        [[1.5, -0.5, 0.0], [-0.5, 1.5, 0.0], [0.0, 0.0, 1.0]],  # both do, with entries below 0
    ],
)
def test_birkhoff_contains_no_matrix_with_a_wrong_sum_or_sign(matrix):
    assert not cg.Birkhoff(3).contains(np.array(matrix))
    assert cg.Birkhoff(3).contains(np.eye(3))
