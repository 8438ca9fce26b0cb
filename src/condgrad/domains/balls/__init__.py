"""Balls of norms of vectors."""

from condgrad.domains.balls import (
    ellipsoid,
    group_ball,
    group_linf_ball,
    k_sparse_polytope,
    k_support_ball,
    l1_ball,
    l1_ball_in_box,
    l2_ball,
    latent_group_ball,
    linf_ball,
    lp_ball,
    owl_ball,
    weighted_l1_ball,
)
from condgrad.domains.balls.ellipsoid import Ellipsoid
from condgrad.domains.balls.group_ball import GroupBall
from condgrad.domains.balls.group_linf_ball import GroupLinfBall
from condgrad.domains.balls.k_sparse_polytope import KSparsePolytope
from condgrad.domains.balls.k_support_ball import KSupportBall
from condgrad.domains.balls.l1_ball import L1Ball
from condgrad.domains.balls.l1_ball_in_box import L1BallInBox
from condgrad.domains.balls.l2_ball import L2Ball
from condgrad.domains.balls.latent_group_ball import LatentGroupBall
from condgrad.domains.balls.linf_ball import LinfBall
from condgrad.domains.balls.lp_ball import LpBall
from condgrad.domains.balls.owl_ball import OWLBall
from condgrad.domains.balls.weighted_l1_ball import WeightedL1Ball

__all__ = [
    "ENTRIES",
    "Ellipsoid",
    "GroupBall",
    "GroupLinfBall",
    "KSparsePolytope",
    "KSupportBall",
    "L1Ball",
    "L1BallInBox",
    "L2Ball",
    "LatentGroupBall",
    "LinfBall",
    "LpBall",
    "OWLBall",
    "WeightedL1Ball",
]

ENTRIES = (
    l1_ball.ENTRY,
    l2_ball.ENTRY,
    linf_ball.ENTRY,
    lp_ball.ENTRY,
    weighted_l1_ball.ENTRY,
    l1_ball_in_box.ENTRY,
    k_sparse_polytope.ENTRY,
    k_support_ball.ENTRY,
    owl_ball.ENTRY,
    ellipsoid.ENTRY,
    group_ball.ENTRY,
    group_linf_ball.ENTRY,
    latent_group_ball.ENTRY,
)
