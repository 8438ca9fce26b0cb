r"""Losses that are Moreau envelopes of non-smooth ones, e(t) = min_s p(s) + (s - t)^2/(2 mu), each with its smoothing error.

If p + rho s^2/2 is convex, mu < 1/rho and p is G-Lipschitz, then  e' = (t - prox)/mu,  -rho/(1 - mu rho) <= e'' <= 1/mu  and
e <= p <= e + mu G^2/2. docs/methods/smoothing.md has the proof, and how mu is chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from condgrad import checks
from condgrad.storage.stored import stored


def _validate(loss: Any) -> None:
    loss.__post_init__()


def _settle(loss: Any, largest_mu: float) -> None:
    """The parameters as positive floats; mu below ``largest_mu``."""
    name = type(loss).__name__
    for parameter, value in vars(loss).items():
        checks.settle(loss, **{parameter: checks.positive(value, f"The {parameter} of {name}")})
    if not loss.mu < largest_mu:
        raise ValueError(
            f"The mu of {name} is {loss.mu:g}, a number below {largest_mu:g} was expected: for a larger one the envelope is not "
            "smooth."
        )


@dataclass(frozen=True)
class _Smoothed(ABC):
    """Abstract: the Moreau envelope of a convex loss t = ``excess(z, y)`` >= 0: t^2/(2 mu) if t <= mu, else t - mu/2."""

    mu: float = 0.5

    lower_bound: ClassVar[float] = 0.0
    lower_smoothness: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        _settle(self, np.inf)

    @property
    def smoothness(self) -> float:
        """max |phi''|, attained for 0 < t < mu."""
        return 1 / self.mu

    @property
    def smoothing_error(self) -> float:
        """The largest difference to the loss that is not smoothed."""
        return self.mu / 2

    @abstractmethod
    def excess(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the loss that is not smoothed, elementwise."""

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = self.excess(z, y)
        pull = np.minimum(t, self.mu)
        return pull / self.mu * (t - pull / 2)


@stored(validate=_validate)
@final
@dataclass(frozen=True)
class SmoothedAbsolute(_Smoothed):
    """The Moreau envelope of |z - y|: (z - y)^2/(2 mu) if |z - y| <= mu, else |z - y| - mu/2. It is Huber(mu)/mu.

    Parameters
    ----------
    mu : float, default 0.5
        Smoothing; positive. The envelope is at most mu/2 below |z - y|.
    """

    labels: ClassVar[str] = "real"

    def excess(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.abs(z - y)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.clip(z - y, -self.mu, self.mu) / self.mu


@stored(validate=_validate)
@final
@dataclass(frozen=True)
class SmoothedHinge(_Smoothed):
    """The Moreau envelope of the hinge loss max(0, 1 - y z), for labels -1 and 1.

    With m = 1 - y z it is 0 if m <= 0, m^2/(2 mu) if m <= mu, and m - mu/2 above.

    Parameters
    ----------
    mu : float, default 0.5
        Smoothing; positive. The envelope is at most mu/2 below the hinge loss.
    """

    labels: ClassVar[str] = "+-1"

    def excess(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(1 - y * z, 0.0)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -y * np.clip(1 - y * z, 0.0, self.mu) / self.mu


@stored(validate=_validate)
@final
@dataclass(frozen=True)
class MCP:
    """The Moreau envelope of the minimax concave penalty of z - y (Zhang 2010).

    The penalty of t = |z - y| is lam t - t^2/(2 gamma) up to t = gamma lam, and constant above. Its envelope is t^2/(2 mu) up to
    t = mu lam, and gamma lam^2/2 - (gamma lam - t)^2/(2 (gamma - mu)) up to gamma lam.

    Parameters
    ----------
    lam : float, default 1.0
        Slope of the penalty at 0; positive.
    gamma : float, default 3.0
        The penalty is constant from gamma lam on.
    mu : float, default 0.5
        Smoothing; below gamma. The envelope is at most mu lam^2/2 below the penalty.
    """

    lam: float = 1.0
    gamma: float = 3.0
    mu: float = 0.5

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        _settle(self, self.gamma)

    @property
    def smoothness(self) -> float:
        """max |phi''|."""
        return max(1 / self.mu, self.lower_smoothness)

    @property
    def lower_smoothness(self) -> float:
        """-min phi'', attained for mu lam < |z - y| < gamma lam."""
        return 1 / (self.gamma - self.mu)

    @property
    def smoothing_error(self) -> float:
        """The largest difference to the penalty, at |z - y| = lam mu gamma/(gamma + mu)."""
        return self.mu * self.lam**2 / 2 * self.gamma / (self.gamma + self.mu)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        end = self.gamma * self.lam
        t = np.minimum(np.abs(z - y), end)
        falling = end * self.lam / 2 - (end - t) ** 2 / (2 * (self.gamma - self.mu))
        return np.where(t <= self.mu * self.lam, t**2 / (2 * self.mu), falling)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        end = self.gamma * self.lam
        t = np.minimum(np.abs(z - y), end)
        return np.sign(z - y) * np.minimum(t / self.mu, (end - t) / (self.gamma - self.mu))


@stored(validate=_validate)
@final
@dataclass(frozen=True)
class SCAD:
    """The Moreau envelope of the smoothly clipped absolute deviation of z - y (Fan and Li 2001).

    The penalty's slope at t = |z - y| is lam up to t = lam, falls to 0 at a lam, and is 0 above. The envelope's slope is t/mu up
    to t = mu lam, lam up to (1 + mu) lam, and falls to 0 at a lam.

    Parameters
    ----------
    lam : float, default 1.0
        Slope of the penalty at 0; positive.
    a : float, default 3.7
        The penalty is constant from a lam on; above 1 + mu.
    mu : float, default 0.5
        Smoothing; below a - 1. The envelope is at most mu lam^2/2 below the penalty.
    """

    lam: float = 1.0
    a: float = 3.7
    mu: float = 0.5

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        _settle(self, self.a - 1)

    @property
    def smoothness(self) -> float:
        """max |phi''|."""
        return max(1 / self.mu, self.lower_smoothness)

    @property
    def lower_smoothness(self) -> float:
        """-min phi'', attained for (1 + mu) lam < |z - y| < a lam."""
        return 1 / (self.a - 1 - self.mu)

    @property
    def smoothing_error(self) -> float:
        """Upper bound on the difference to the penalty, attained for mu <= 1."""
        return self.mu * self.lam**2 / 2

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        lam, mu, end = self.lam, self.mu, self.a * self.lam
        t = np.minimum(np.abs(z - y), end)
        falling = lam**2 * (self.a + 1) / 2 - (end - t) ** 2 / (2 * (self.a - 1 - mu))
        rising = np.where(t <= mu * lam, t**2 / (2 * mu), lam * t - mu * lam**2 / 2)
        return np.where(t <= (1 + mu) * lam, rising, falling)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        end = self.a * self.lam
        t = np.minimum(np.abs(z - y), end)
        slope = np.minimum(np.minimum(t / self.mu, self.lam), (end - t) / (self.a - 1 - self.mu))
        return np.sign(z - y) * slope
