"""Instances of each set for the contract checks, with random points, minima and vertices that are computed without its oracle."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from condgrad.domains.box import Box
from condgrad.domains.fantope import Fantope
from condgrad.domains.group_ball import GroupBall
from condgrad.domains.ky_fan_ball import KyFanBall
from condgrad.domains.l1_ball import L1Ball
from condgrad.domains.l2_ball import L2Ball
from condgrad.domains.linf_ball import LinfBall
from condgrad.domains.lp_ball import LpBall
from condgrad.domains.nuclear_ball import NuclearBall
from condgrad.domains.simplex import Simplex
from condgrad.domains.spectrahedron import Spectrahedron
from condgrad.domains.spectral_ball import SpectralBall
from condgrad.domains.user import user_set

Examples = dict[str, Any]


def sparse_normal(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Normal entries, of which about a third are 0."""
    return rng.standard_normal(shape) * (rng.random(shape) < 0.7)


def in_ball(ball: Any, x: np.ndarray, norm: float, rng: np.random.Generator) -> np.ndarray:
    """x, of this norm, scaled into the ball: half of the time to its boundary."""
    return ball.radius * rng.choice([1.0, rng.random()]) * x / (norm or 1.0)


# ------------------------------------------------------------------------------------------------------------ polytopes


def simplexes() -> Examples:
    return {"": Simplex(5, 2.0), "of one": Simplex(1, 3.0), "of matrices": Simplex((2, 3))}


def in_simplex(simplex: Simplex, rng: np.random.Generator) -> np.ndarray:
    return simplex.radius * rng.dirichlet(np.full(math.prod(simplex.shape), 0.5)).reshape(simplex.shape)


def simplex_vertices(simplex: Simplex) -> np.ndarray:
    return simplex.radius * np.eye(math.prod(simplex.shape)).reshape(-1, *simplex.shape)


def l1_balls() -> Examples:
    return {"": L1Ball(5, 2.0), "of matrices": L1Ball((2, 2), 0.1)}


def in_l1_ball(ball: L1Ball, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, np.abs(x).sum(), rng)


def l1_vertices(ball: L1Ball) -> np.ndarray:
    one = np.eye(math.prod(ball.shape))
    return ball.radius * np.concatenate([one, -one]).reshape(-1, *ball.shape)


def linf_balls() -> Examples:
    return {"": LinfBall(4, 1.5), "of one": LinfBall(1)}


def in_linf_ball(ball: LinfBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, np.abs(x).max(), rng)


def linf_vertices(ball: LinfBall) -> np.ndarray:
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=math.prod(ball.shape))))
    return ball.radius * signs.reshape(-1, *ball.shape)


def boxes() -> Examples:
    return {
        "": Box([-1.0, 0.0, 2.0], [1.0, 0.0, 5.0]),
        "far away": Box(np.full(3, 1e6), 1e6 + np.array([1e-3, 1.0, 2.0])),
        "of matrices": Box(-1.0, np.ones((2, 3))),
    }


def in_box(box: Box, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(box.lower, box.upper)


def box_vertices(box: Box) -> np.ndarray:
    ends = zip(box.lower.ravel(), box.upper.ravel(), strict=True)
    return np.array(list(itertools.product(*ends))).reshape(-1, *box.shape)


# ---------------------------------------------------------------------------------------------------------- curved balls


def l2_balls() -> Examples:
    return {"": L2Ball((2, 3), 0.5), "of one": L2Ball(1, 7.0)}


def in_l2_ball(ball: L2Ball, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.linalg.norm(x)), rng)


def l2_minimum(ball: L2Ball, g: np.ndarray) -> float:
    return -ball.radius * float(np.linalg.norm(g))


def lp_balls() -> Examples:
    return {
        "": LpBall(5, 3.0, 2.0),
        "1.5": LpBall(4, 1.5, 0.5),
        "1.01": LpBall(3, 1.01),
        "80 of matrices": LpBall((2, 2), 80.0, 3.0),
    }


def in_lp_ball(ball: LpBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.linalg.norm(x.ravel(), ball.p)), rng)


def lp_minimum(ball: LpBall, g: np.ndarray) -> float:
    return -ball.radius * float(np.linalg.norm(g.ravel(), ball.p / (ball.p - 1)))


def group_balls() -> Examples:
    return {
        "": GroupBall((4, 3), 2.0),
        "with labels": GroupBall(6, 0.5, groups=["a", "b", "a", "c", "b", "a"]),
        "of rows together": GroupBall((3, 2), 3.0, groups=[1, 0, 1]),
        "of one": GroupBall(1, 7.0),
        "of one group": GroupBall(3, groups=[5, 5, 5]),
    }


def group_norms(ball: GroupBall, x: np.ndarray) -> np.ndarray:
    return np.array([np.linalg.norm(x[ball.groups == label]) for label in np.unique(ball.groups)])


def in_group_ball(ball: GroupBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, group_norms(ball, x).sum(), rng)


def group_minimum(ball: GroupBall, g: np.ndarray) -> float:
    return -ball.radius * float(group_norms(ball, g).max())


# ---------------------------------------------------------------------------------------------------- matrices by their values


def nuclear_balls() -> Examples:
    return {"": NuclearBall((5, 4), 3.0), "wide": NuclearBall((2, 6), 0.5)}


def in_nuclear_ball(ball: NuclearBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.linalg.norm(x, "nuc")), rng)


def nuclear_minimum(ball: NuclearBall, g: np.ndarray) -> float:
    return -ball.radius * float(np.linalg.norm(g, 2))


def spectral_balls() -> Examples:
    return {
        "": SpectralBall((4, 3), 1.5),
        "wide": SpectralBall((2, 5), 0.3),
        "of a row": SpectralBall((1, 4), 7.0),
        "of one": SpectralBall((1, 1)),
    }


def in_spectral_ball(ball: SpectralBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.linalg.norm(x, 2)), rng)


def spectral_minimum(ball: SpectralBall, g: np.ndarray) -> float:
    return -ball.radius * float(np.linalg.norm(g, "nuc"))


def ky_fan_balls() -> Examples:
    return {
        "": KyFanBall((4, 5), 2, 3.0),
        "tall": KyFanBall((7, 3), 2, 0.5),
        "like spectral": KyFanBall((4, 6), 1, 2.0),
        "like nuclear": KyFanBall((5, 3), 3, 2.0),
        "of more ranks": KyFanBall((6, 6), 4),
        "of one": KyFanBall((1, 1), 1, 4.0),
    }


def in_ky_fan_ball(ball: KyFanBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.linalg.svd(x, compute_uv=False)[: ball.k].sum()), rng)


def ky_fan_minimum(ball: KyFanBall, g: np.ndarray) -> float:
    return -ball.radius * float(max(np.linalg.norm(g, 2), np.linalg.norm(g, "nuc") / ball.k))


def spectrahedra() -> Examples:
    return {
        "": Spectrahedron(4, 2.0),
        "up to": Spectrahedron((3, 3), 0.5, equal=False),
        "of one": Spectrahedron(1, 3.0),
        "of one up to": Spectrahedron(1, 3.0, equal=False),
    }


def in_spectrahedron(domain: Spectrahedron, rng: np.random.Generator) -> np.ndarray:
    n = domain.shape[0]
    factor = rng.standard_normal((n, rng.integers(1, n + 1)))
    share = 1.0 if domain.equal else rng.choice([1.0, rng.random()])
    return domain.radius * share * factor @ factor.T / np.sum(factor**2)


def spectrahedron_minimum(domain: Spectrahedron, g: np.ndarray) -> float:
    lowest = float(np.linalg.eigvalsh((g + g.T) / 2)[0])
    return domain.radius * (lowest if domain.equal else min(0.0, lowest))


def fantopes() -> Examples:
    return {
        "": Fantope(5, 2),
        "of rank 1": Fantope((4, 4), 1),
        "of high rank": Fantope(6, 4),
        "of full rank": Fantope(3, 3),
        "of one": Fantope(1, 1),
    }


def in_fantope(domain: Fantope, rng: np.random.Generator) -> np.ndarray:
    n, basis = domain.shape[0], np.linalg.qr(rng.standard_normal(domain.shape))[0]
    corners = rng.permuted(np.tile(np.arange(n), (4, 1)), axis=1) < domain.rank
    values = rng.dirichlet(np.full(4, 0.3)) @ corners
    return np.eye(n) - (basis * (1 - values)) @ basis.T


def fantope_minimum(domain: Fantope, g: np.ndarray) -> float:
    return float(np.linalg.eigvalsh((g + g.T) / 2)[: domain.rank].sum())


# --------------------------------------------------------------------------------------------------------- a user's own


def user_sets() -> Examples:
    """A disc that is not symmetric, with everything but a projection; and a box with a projection and no membership."""
    centre = np.array([1.0, -2.0, 0.5])
    disc = user_set(
        lmo=lambda g: centre - g / np.linalg.norm(g),
        shape=3,
        diameter=2.0,
        start=centre,
        contains=lambda x, tolerance: np.linalg.norm(x - centre) <= 1 + tolerance,
    )
    box = user_set(lambda g: -np.sign(g), 3, diameter=2 * math.sqrt(3), project=lambda x: x.clip(-1, 1))
    return {"": disc, "with project": box}
