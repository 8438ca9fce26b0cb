"""Stopping rules of inner solvers: functions that map |u_t - u|^2 / gamma to the largest gap allowed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class absolute:  # noqa: N801 - read as a verb: stop=absolute(1 / N)
    """Stop when gap <= eta: the rule of the paper. ``eta`` has the scale of F.

    Parameters
    ----------
    eta : float
        Largest gap allowed.
    """

    eta: float

    def __call__(self, moved: float) -> float:
        return self.eta


@dataclass(frozen=True)
class relative:  # noqa: N801
    """Stop when gap <= max(floor, c |u_t - u|^2 / gamma): accuracy in proportion to progress, independent of the scale of F.

    Parameters
    ----------
    c : float
        Factor of the squared distance moved.
    floor : float
        Gap that is always allowed.
    """

    c: float
    floor: float

    def __call__(self, moved: float) -> float:
        return max(self.floor, self.c * moved)
