"""Stopping rules of inner solvers. A rule maps |u_t - u|^2 / gamma, for the centre u and the point u_t, to the allowed gap."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class absolute:  # noqa: N801 - read as a verb: stop=absolute(1 / N)
    """Stop when gap <= eta. This is the rule of the paper; ``eta`` is in the units of F.

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
    """Stop when gap <= max(floor, c |u_t - u|^2 / gamma). The accuracy is proportional to the progress, for every scale of F.

    Parameters
    ----------
    c : float
        Factor of |u_t - u|^2 / gamma.
    floor : float
        Gap that is always allowed.
    """

    c: float
    floor: float

    def __call__(self, moved: float) -> float:
        return max(self.floor, self.c * moved)
