"""Pointwise losses phi(z, y) of a prediction z against an observation y, with bounds on their second derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, final

import numpy as np

from condgrad import checks, kernels
from condgrad.objectives.envelopes import MCP, SCAD, SmoothedAbsolute, SmoothedHinge
from condgrad.storage.stored import stored


class Loss(Protocol):
    """Protocol of a pointwise loss: a smooth function phi(., y) of z, bounded below by ``lower_bound``."""

    @property
    def smoothness(self) -> float:
        """max |phi''|, the Lipschitz constant of phi'."""

    @property
    def lower_smoothness(self) -> float:
        """max(0, -min phi''): 0 for a convex loss."""

    lower_bound: ClassVar[float]
    labels: ClassVar[str]
    """Values that y may have: 'real', '+-1', or 'one-hot' (a row for each observation, with one 1, and -1 elsewhere)."""

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return phi(z, y), elementwise. If labels are 'one-hot', return a number for each row."""

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...


def _validate(loss: Any) -> None:
    for name, value in vars(loss).items():
        checks.positive(value, name)


@stored
@final
@dataclass(frozen=True)
class Squared:
    """The squared loss (z - y)^2 / 2."""

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "real"
    smoothness: ClassVar[float] = 1.0
    lower_smoothness: ClassVar[float] = 0.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # a square above 1e308 is rounded to Inf
            return np.square(z - y) / 2

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return z - y


@stored(validate=_validate)
@final
@dataclass(frozen=True)
class Huber:
    """The Huber loss: (z - y)^2 / 2 if |z - y| <= delta, else delta (|z - y| - delta / 2). Its slope is at most delta.

    Parameters
    ----------
    delta : float, default 1.0
        Residual at which the loss becomes linear; positive.
    """

    delta: float = 1.0

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "real"
    smoothness: ClassVar[float] = 1.0  # phi' is piecewise linear, with slopes 0 and 1
    lower_smoothness: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        checks.settle(self, delta=checks.positive(self.delta, "The delta of Huber"))

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = np.abs(z - y)
        pull = np.minimum(t, self.delta)
        with np.errstate(over="ignore"):  # as in Squared
            return pull * (t - pull / 2)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.clip(z - y, -self.delta, self.delta)


@dataclass(frozen=True)
class _OfSigma:
    """Abstract: a loss that is a function of (z - y)^2 / sigma with slope 1 at 0."""

    sigma: float = 1.0

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        checks.settle(self, sigma=checks.positive(self.sigma, f"The sigma of {type(self).__name__}"))

    @property
    def smoothness(self) -> float:
        """max |phi''|, attained at z = y."""
        return 2 / self.sigma


@stored(validate=_validate)
@final
@dataclass(frozen=True)
class Welsch(_OfSigma):
    """The Welsch loss 1 - exp(-(z - y)^2 / sigma), a smoothed l0 loss with values below 1.

    Parameters
    ----------
    sigma : float, default 1.0
        Squared scale of the residuals; positive.
    """

    @property
    def lower_smoothness(self) -> float:
        """max(0, -min phi''), attained at (z - y)^2 = 3 sigma / 2."""
        return 4 * math.exp(-1.5) / self.sigma

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -np.expm1(-np.square(self._scaled(z, y)))

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = self._scaled(z, y)
        return 2 / math.sqrt(self.sigma) * t * np.exp(-np.square(t))

    def _scaled(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return (z - y) / sqrt(sigma), clipped to [-40, 40]: exp(-40^2) rounds to 0, so the clipping changes no value."""
        width = math.sqrt(self.sigma)
        return np.clip(z - y, -40 * width, 40 * width) / width


@stored(validate=_validate)
@final
@dataclass(frozen=True)
class Cauchy(_OfSigma):
    """The Cauchy loss log(1 + (z - y)^2 / sigma), which grows logarithmically.

    Parameters
    ----------
    sigma : float, default 1.0
        Squared scale of the residuals; positive.
    """

    @property
    def lower_smoothness(self) -> float:
        """max(0, -min phi''), attained at (z - y)^2 = 3 sigma."""
        return 1 / (4 * self.sigma)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        t, width = np.abs(z - y), math.sqrt(self.sigma)
        near, far = np.minimum(t, width), np.maximum(t, width)
        # log(far^2 / sigma) + log(1 + (near / far)^2): accurate near 0, and by square roots without overflow far from 0
        return 4 * np.log(np.sqrt(far) / math.sqrt(width)) + np.log1p(np.square(near / far))

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = z - y
        root = np.hypot(t, math.sqrt(self.sigma))
        return 2 / root * (t / root)


@stored(validate=_validate)
@final
@dataclass(frozen=True)
class GemanMcClure(_OfSigma):
    """The Geman-McClure loss (z - y)^2 / (sigma + (z - y)^2), with values below 1.

    Parameters
    ----------
    sigma : float, default 1.0
        Squared scale of the residuals; positive.
    """

    @property
    def lower_smoothness(self) -> float:
        """max(0, -min phi''), attained at (z - y)^2 = sigma."""
        return 1 / (2 * self.sigma)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = z - y
        return np.square(t / np.hypot(t, math.sqrt(self.sigma)))

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        t, width = z - y, math.sqrt(self.sigma)
        root = np.hypot(t, width)
        return 2 / root * (t / root) * np.square(width / root)


@stored
@final
@dataclass(frozen=True)
class Logistic:
    """The logistic loss log(1 + exp(-y z)), for labels -1 and 1."""

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "+-1"
    smoothness: ClassVar[float] = 0.25
    lower_smoothness: ClassVar[float] = 0.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logaddexp(0, -y * z)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -y * expit(-y * z)


@stored
@final
@dataclass(frozen=True)
class Sigmoid:
    """The sigmoid loss 1 / (1 + exp(y z)), a smoothed 0-1 loss for labels -1 and 1."""

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "+-1"
    smoothness: ClassVar[float] = 1 / (6 * math.sqrt(3))
    lower_smoothness: ClassVar[float] = 1 / (6 * math.sqrt(3))

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return expit(-y * z)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -y * expit(y * z) * expit(-y * z)


def check_loss(loss: Loss, y: np.ndarray) -> None:
    """Raise ValueError if ``loss`` is not a loss, or if ``y`` does not have the labels that it needs."""
    if isinstance(loss, type) or not hasattr(loss, "deriv"):
        raise ValueError(
            f"The loss must be an object such as Squared(), but got {loss!r}: build one of {', '.join(LOSSES)}."
        )
    if loss.labels == "one-hot" and not (
        y.ndim == 2 and (np.sort(y, axis=1) == [-1.0] * (y.shape[1] - 1) + [1.0]).all()
    ):
        raise ValueError(
            f"{type(loss).__name__} needs a row of labels for each observation, with one 1 and -1 elsewhere, but got an array of "
            f"shape {y.shape}: for numbers of classes k pass 2 * np.eye(classes)[k] - 1."
        )
    if loss.labels == "+-1" and not np.isin(y, (-1.0, 1.0)).all():
        found = ", ".join(f"{label:g}" for label in np.unique(y)[:4])
        raise ValueError(
            f"{type(loss).__name__} needs labels -1 and 1, but got {found}: for labels 0 and 1 pass 2 * y - 1."
        )


@dataclass(frozen=True)
class LossEntry:
    """A loss as the documentation, the command line, specs and the contract checks see it.

    Parameters
    ----------
    name : str
        Its name in specs and listings.
    factory : callable
        Builds the loss; it must have a default for each parameter.
    formula : str
        phi(z, y).
    smoothness : str
        Its constants L and l, as text.
    exact : callable, default None
        ``exact(z, y)``, the loss with its default parameters for two floats, written in another way, to compare with.
    """

    name: str
    factory: Callable[..., Loss]
    formula: str
    smoothness: str = ""
    exact: Callable[[float, float], float] | None = None

    @property
    def convex(self) -> bool:
        return self.factory().lower_smoothness == 0.0

    @property
    def labels(self) -> str:
        """What y may be: 'real' or '+-1'."""
        return self.factory().labels


_ENTRIES = (
    LossEntry("squared", Squared, "(z - y)^2 / 2", "L = 1", lambda z, y: (z - y) ** 2 / 2),
    LossEntry(
        "huber", Huber, "c (|z - y| - c / 2), c = min(|z - y|, delta)", "L = 1",
        lambda z, y: (z - y) ** 2 / 2 if abs(z - y) <= 1 else abs(z - y) - 0.5,
    ),
    LossEntry(
        "welsch", Welsch, "1 - exp(-(z - y)^2 / sigma)", "L = 2 / sigma, l = 4 exp(-3/2) / sigma",
        lambda z, y: 1 - math.exp(-((z - y) ** 2)),
    ),
    LossEntry(
        "cauchy", Cauchy, "log(1 + (z - y)^2 / sigma)", "L = 2 / sigma, l = 1 / (4 sigma)",
        lambda z, y: math.log(1 + (z - y) ** 2),
    ),
    LossEntry(
        "geman-mcclure", GemanMcClure, "(z - y)^2 / (sigma + (z - y)^2)", "L = 2 / sigma, l = 1 / (2 sigma)",
        lambda z, y: (z - y) ** 2 / (1 + (z - y) ** 2),
    ),
    LossEntry("logistic", Logistic, "log(1 + exp(-y z))", "L = 1/4", lambda z, y: math.log(1 + math.exp(-y * z))),
    LossEntry(
        "sigmoid", Sigmoid, "1 / (1 + exp(y z))", "L = l = 1 / (6 sqrt(3))", lambda z, y: 1 / (1 + math.exp(y * z))
    ),
    LossEntry(
        "smoothed-absolute", SmoothedAbsolute, "Moreau envelope of |z - y|", "L = 1 / mu",
        lambda z, y: (z - y) ** 2 if abs(z - y) <= 0.5 else abs(z - y) - 0.25,
    ),
    LossEntry(
        "smoothed-hinge", SmoothedHinge, "Moreau envelope of max(0, 1 - y z)", "L = 1 / mu",
        lambda z, y: max(0.0, 1 - y * z) ** 2 if 1 - y * z <= 0.5 else 0.75 - y * z,
    ),
    LossEntry(
        "mcp", MCP, "Moreau envelope of lam t - t^2/(2 gamma), t = |z - y| up to gamma lam",
        "L = max(1 / mu, l), l = 1 / (gamma - mu)",
        lambda z, y: abs(z - y) ** 2 if abs(z - y) <= 0.5 else 1.5 - max(0.0, 3 - abs(z - y)) ** 2 / 5,
    ),
    LossEntry(
        "scad", SCAD, "Moreau envelope of the penalty with slope min(lam, (a lam - t)/(a - 1)), t = |z - y| up to a lam",
        "L = max(1 / mu, l), l = 1 / (a - 1 - mu)",
        lambda z, y: abs(z - y) ** 2 if abs(z - y) <= 0.5 else
        (abs(z - y) - 0.25 if abs(z - y) <= 1.5 else 2.35 - max(0.0, 3.7 - abs(z - y)) ** 2 / 4.4),
    ),
)  # fmt: skip
LOSSES: dict[str, LossEntry] = {entry.name: entry for entry in _ENTRIES}


_PARAMETER = {"welsch": "sigma", "huber": "delta", "cauchy": "sigma", "geman-mcclure": "sigma"}
_COMPILED = {LOSSES[name].factory: name for name in kernels.LOSSES}


MIN_COMPILED = 2048
"""Minimum number of entries for which the kernel of the losses is used: numpy is as fast below, and need not compile."""


def value_and_deriv(
    loss: Loss, z: np.ndarray, y: np.ndarray, weights: np.ndarray, slopes: bool = True
) -> tuple[float, np.ndarray]:
    """Return the sum of w phi(z, y) and the array of w phi'(z, y), by a compiled kernel for the losses of condgrad.

    ``weights`` of length 0 means that all weights are 1.
    """
    name = _COMPILED.get(type(loss))
    if name is not None and len(z) >= MIN_COMPILED:
        return kernels.loss(name, getattr(loss, _PARAMETER.get(name, ""), 1.0), z, y, weights, slopes)
    value, deriv = loss.value(z, y), loss.deriv(z, y) if slopes else z[:0]
    if not weights.size:
        return float(np.sum(value)), deriv
    return float(np.sum(weights * value)), weights * deriv if slopes else deriv


def expit(z: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-z)), without overflow."""
    from scipy.special import expit  # imported here: it takes longer to import than the rest of condgrad

    return expit(z)
