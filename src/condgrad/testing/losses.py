"""Checks of the contract of a pointwise loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from condgrad.objectives import Loss
from condgrad.protocols import missing
from condgrad.testing.report import Check, CheckReport, Skipped, report, require

Z = np.linspace(-15, 15, 60_001)
"""Predictions at which second derivatives are computed."""
H = 1e-5


def check_loss(
    loss: Any,
    *,
    exact: Callable[[float, float], float] | None = None,
    seed: int = 0,
    strict: bool = False,
) -> CheckReport:
    """Check a loss against the contract of losses.

    Parameters
    ----------
    loss : Loss
        The loss, with ``value(z, y)``, ``deriv(z, y)``, ``smoothness``, ``lower_smoothness``, ``lower_bound`` and ``labels``.
    exact : callable, default None
        ``exact(z, y)`` returns the loss of two floats by an independent implementation. None: not compared.
    seed : int, default 0
        Seed of all random numbers.
    strict : bool, default False
        Raise ContractError if a check fails.

    Returns
    -------
    CheckReport
        The result of each check. ``print(report)`` shows it as a table.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad.testing import check_loss
    >>> check_loss(cg.Huber(0.5)).passed
    True
    """
    return report(f"Loss {loss!r}", _Loss(loss, exact, seed).checks(), strict)


class _Loss:
    def __init__(self, loss: Any, exact: Any, seed: int):
        self.loss, self.exact = loss, exact
        self.z = np.random.default_rng(seed).uniform(-20, 20, 200)

    def checks(self) -> Iterator[Check]:
        yield "members", self.members
        if missing(self.loss, Loss):
            return
        yield "labels are 'real' or '+-1'", self.labels
        yield "deriv is the derivative of value", self.derivative
        yield "value has the formula", self.formula
        yield "smoothness and lower_smoothness are the extremes of the second derivative", self.constants
        yield "value is at least lower_bound", self.bound
        yield "huge predictions give no NaN, and finite derivatives", self.huge

    def members(self) -> None:
        lacking = missing(self.loss, Loss)
        require(not lacking, f"it has no {' and no '.join(lacking)}")

    def labels(self) -> None:
        require(self.loss.labels in ("real", "+-1"), f"labels is {self.loss.labels!r}")

    def derivative(self) -> None:
        for y in (-1.0, 1.0):
            value, slope = self.loss.value, self.loss.deriv(self.z, y)
            found = (value(self.z + H, y) - value(self.z - H, y)) / (2 * H)
            off = np.abs(slope - found) - 1e-5 * np.abs(found) - 1e-8 * (1 + np.abs(value(self.z, y)))
            worst = int(off.argmax())
            where = f"at z = {self.z[worst]:.4g}, y = {y:g}"
            require(off[worst] <= 0, f"{where} it is {slope[worst]:.6g}, differences make {found[worst]:.6g}")

    def formula(self) -> None:
        if self.exact is None:
            raise Skipped("give exact=")
        for y in (-1.0, 1.0):
            known = np.array([self.exact(float(z), y) for z in self.z])
            require(
                np.allclose(self.loss.value(self.z, y), known, rtol=1e-9, atol=1e-15), f"another value with y = {y:g}"
            )

    def constants(self) -> str:
        high, low = self.loss.smoothness, self.loss.lower_smoothness
        require(0 <= low <= high, f"lower_smoothness is {low!r}, smoothness is {high!r}")
        top = bottom = 0.0
        for y in (-1.0, 1.0):
            second = (self.loss.deriv(Z + H, y) - self.loss.deriv(Z - H, y)) / (2 * H)
            top, bottom = max(top, float(np.abs(second).max())), max(bottom, float(-second.min()))
        require(top <= high * (1 + 1e-8), f"smoothness is {high:.6g}, but the second derivative reaches {top:.6g}")
        require(bottom <= low * (1 + 1e-8) + 1e-9, f"lower_smoothness is {low:.6g}, but it falls to {-bottom:.6g}")
        return f"seen: {top:.6g} of {high:.6g}, {bottom:.6g} of {low:.6g}"

    def bound(self) -> None:
        for y in (-1.0, 1.0):
            least = float(np.min(self.loss.value(Z, y)))
            require(
                least >= self.loss.lower_bound,
                f"lower_bound is {self.loss.lower_bound:.6g}, but a value is {least:.6g}",
            )

    def huge(self) -> None:
        z, y = np.array([1e300, -1e300, 1e160, 800.0, -800.0, 0.0]), np.array([1.0, 1.0, -1.0, 1.0, 1.0, -1.0])
        require(not np.isnan(self.loss.value(z, y)).any(), "a value is NaN")
        require(np.isfinite(self.loss.deriv(z, y)).all(), "a derivative is NaN or Inf")
