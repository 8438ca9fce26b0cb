"""Projections of points that are far away, and oracles on data with entries of very different sizes."""

import numpy as np
import pytest

import condgrad as cg
from condgrad.protocols import Projectable, fits

PROJECT = {
    f"{name} {label}": domain
    for name, entry in cg.DOMAINS.items()
    for label, domain in entry.examples().items()
    if fits(domain, Projectable)
}


@pytest.mark.parametrize("distance", [1e8, 1e10, 1e17, 1e25, 1e80, 1e155, 1e307])
@pytest.mark.parametrize("name", PROJECT)
def test_a_far_point_has_a_nearest_point(name: str, distance: float) -> None:
    domain = PROJECT[name]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        g = rng.uniform(-1, 1, domain.shape) if seed < 2 else rng.choice([-1.0, 0.5, 1.0], domain.shape)
        nearest = np.asarray(domain.project(distance * g))
        assert np.isfinite(nearest).all() and domain.contains(nearest, 1e-9)
        # from so far away, the nearest point of the set is the farthest one in the direction of the point
        short = float(np.vdot(g, nearest) + np.vdot(-g, domain.lmo(-g)))
        room = (1e-9 + domain.diameter / distance) * np.linalg.norm(g) * domain.max_norm
        assert short <= room, (short, room)


def test_weights_of_very_different_sizes_leave_the_projection_exact() -> None:
    """The heavy entry is moved nearly to 0. Its rounding is not made up for by the light ones, which stay where they are."""
    ball = cg.WeightedL1Ball([1e-7, 2e-7, 1e6], 1e-6)
    x = np.array([1.7, -2.3, 0.4])
    nearest = ball.project(x)
    assert nearest[:2] == pytest.approx(x[:2], abs=1e-12)
    assert nearest[2] == pytest.approx((1e-6 - 1e-7 * 1.7 - 2e-7 * 2.3) / 1e6, rel=1e-9)


def test_the_ball_in_a_box_takes_entries_of_all_sizes() -> None:
    cut = cg.BoxCut(cg.L2Ball(4), [-0.1, -0.5, 0.0, -0.1], [2.0, 0.001, 0.5, 0.6])
    for small in (1e-3, 1e-20, 1e-300):
        vertex = cut.lmo(np.array([5e-324, 1.0, -1.0, -small]))
        # the entries with large slopes are at their bounds; the last one gets its share of what the others leave
        assert cut.contains(vertex, 1e-12)
        assert vertex[1:3] == pytest.approx([-0.5, 0.5]) and vertex[3] == pytest.approx(0.6)
    cut = cg.BoxCut(cg.L2Ball(3), [-1.0, -0.9, -0.9], 1.0)
    assert cut.lmo(np.array([1e-300, 1.0, 1e-150])) == pytest.approx([0.0, -0.9, -np.sqrt(0.19)])


def test_the_smallest_numbers_in_a_direction_do_not_lead_out_of_the_ball() -> None:
    cut = cg.BoxCut(cg.L2Ball(2), [-1.9, -0.7], [0.7, 0.2])
    assert cut.lmo(np.array([5e-324, -1.0])) == pytest.approx([-np.sqrt(0.96), 0.2])


def test_a_cut_of_a_set_without_a_diameter_keeps_its_points() -> None:
    box = cg.user_set(lambda g: -np.sign(g), 2, project=lambda x: x.clip(-1, 1))
    assert np.array_equal(cg.HalfSpaceCut(box, [1.0, 0.0], 0.5).project(np.array([0.25, 3.0])), [0.25, 1.0])
