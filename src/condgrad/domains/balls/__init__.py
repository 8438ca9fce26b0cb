"""Balls of norms of vectors."""

from condgrad.domains.balls import group_ball, l1_ball, l2_ball, linf_ball, lp_ball
from condgrad.domains.balls.group_ball import GroupBall
from condgrad.domains.balls.l1_ball import L1Ball
from condgrad.domains.balls.l2_ball import L2Ball
from condgrad.domains.balls.linf_ball import LinfBall
from condgrad.domains.balls.lp_ball import LpBall

__all__ = ["ENTRIES", "GroupBall", "L1Ball", "L2Ball", "LinfBall", "LpBall"]

ENTRIES = (l1_ball.ENTRY, l2_ball.ENTRY, linf_ball.ENTRY, lp_ball.ENTRY, group_ball.ENTRY)
